"""What notebooks leave behind: tables, figures, and the versions they ran with.

``save_table`` and ``save_figure`` write only when the runner has set ``SAVEROUTER_REPORTS``, so that
a notebook read in JupyterLab leaves no files. Both return their argument, so that they can end a cell.
A spreadsheet takes text that begins with = + - @ for a formula, and a model may be called so: ``as_text`` prevents it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TypeVar

import pandas as pd

from ..encoders import encoder_name
from ..errors import SaveRouterError
from ..files import atomic_path
from ..studies.decision import Decision

Table, Drawn = TypeVar("Table"), TypeVar("Drawn")
WATERMARK = ("numpy", "pandas", "scikit-learn", "openvino", "torch", "sentence-transformers")
DISTRIBUTION = "saverouter-workbook"
FORMULA = re.compile(r"'*[=+\-@\t\n]")
NUMBER = re.compile(r"[+-]?(\d[\d,.]*(e[+-]?\d+)?|\.\d+|inf)%?|-", re.IGNORECASE)  # and a dash, which computes nothing


def save_table(frame: Table, name: str) -> Table:
    """Write a frame (or a styled one) as ``tables/<name>.csv``; return it unchanged."""
    if target := _target("tables", f"{_checked(name)}.csv"):
        plain = getattr(frame, "data", frame)  # a Styler keeps its frame there
        with atomic_path(target) as temporary:
            plain.to_csv(
                temporary, index=not isinstance(plain.index, pd.RangeIndex), encoding="utf-8", lineterminator="\r\n"
            )
            temporary.write_bytes(as_text(temporary.read_bytes().decode("utf-8")).encode("utf-8"))
        _record(target)
    return frame


def as_text(table: str) -> str:
    """CSV in which no cell, header or label is a formula: a leading apostrophe makes it text. Numbers stay as they are.

    ``table`` has lines that end in CR LF, which makes pandas quote a cell with either of the two.
    """
    written = io.StringIO(newline="")
    rows = csv.reader(io.StringIO(table, newline=""))
    csv.writer(written, lineterminator="\n").writerows([_apostrophe(cell) for cell in row] for row in rows)
    return written.getvalue()


def _apostrophe(cell: str) -> str:
    plain = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{plain}" if FORMULA.match(plain) and not NUMBER.fullmatch(plain) else plain


def as_named(cell: str) -> str:
    """What ``as_text`` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def save_figure(figure: Drawn, name: str) -> Drawn:
    """Write a figure, or the figure of some axes, as ``figures/<name>.png`` and ``.svg``; return the argument."""
    _checked(name)
    for suffix, options in (("png", {"dpi": 150}), ("svg", {"metadata": {"Date": None}})):
        if target := _target("figures", f"{name}.{suffix}"):
            with atomic_path(target) as temporary:
                _figure_of(figure).savefig(temporary, bbox_inches="tight", **options)
            _record(target)
    return figure


def save_decision(found: Decision) -> Decision:
    """Write ``decision.json`` and, where something was decided, the fitted router with its policy as ``router/``."""
    if reports := os.environ.get("SAVEROUTER_REPORTS"):
        shutil.rmtree(Path(reports, "router"), ignore_errors=True)  # an earlier one must not pass for this decision's
        if found.router is not None:
            found.save(Path(reports, "router"))
        with atomic_path(Path(reports, "decision.json")) as temporary:
            temporary.write_text(json.dumps(found.to_dict(), indent=1), encoding="utf-8")
    return found


def watermark() -> pd.DataFrame:
    """Versions of Python and of the packages that can change a number, and what encoded the prompts."""
    rows = [("python", platform.python_version())]
    rows += [(name, _version(name)) for name in WATERMARK]
    rows += [("saverouter", _version(DISTRIBUTION)), ("encoder", encoder_name())]
    return pd.DataFrame(rows, columns=["package", "version"]).set_index("package")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _checked(name: str) -> str:
    if not re.fullmatch(r"[\w-]+", name):
        raise SaveRouterError(f"'{name}' cannot name a table or figure: use letters, digits, '_' and '-', no suffix")
    return name


def _target(folder: str, name: str) -> Path | None:
    reports = os.environ.get("SAVEROUTER_REPORTS")
    return Path(reports, folder, name) if reports else None


def _record(target: Path) -> None:
    """Note which notebook wrote the file, for the index page; the runner names the list."""
    if listing := os.environ.get("SAVEROUTER_REPORTS_LIST"):
        with open(listing, "a", encoding="utf-8") as lines:
            lines.write(f"{target.parent.name}/{target.name}\n")


def _figure_of(thing):
    """The figure behind a figure, axes, an array of axes or a seaborn grid."""
    if hasattr(thing, "savefig"):
        return thing
    if hasattr(thing, "flat"):
        thing = thing.flat[0]
    return thing.figure.figure if hasattr(thing.figure, "figure") else thing.figure
