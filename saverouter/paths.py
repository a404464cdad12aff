"""Where the files live that the project ships: specifications and published tables."""

from __future__ import annotations

from pathlib import Path

from .errors import SaveRouterError


def data_folder() -> Path:
    """The ``data`` folder: inside the package in an installed wheel, at the root in a checkout."""
    package = Path(__file__).resolve().parent
    for folder in (package / "data", package.parent / "data"):
        if (folder / "published").is_dir():
            return folder
    raise SaveRouterError(f"no data folder beside {package.name}; reinstall saverouter, or work in a full checkout")
