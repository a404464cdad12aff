"""The authors' release in a folder of its own, because its package has the name of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from saverouter.files import cache_folder


def release_folder() -> Path:
    """Where it lies; installed the first time. Raises ``subprocess.CalledProcessError`` where that cannot be done."""
    folder = cache_folder("release-0.1.0")
    if not (folder / "saverouter").is_dir():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(folder),
            "saverouter==0.1.0",
        ]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return folder
