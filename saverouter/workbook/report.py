"""Pages for reading: each executed notebook as HTML, and index pages of questions, answers and key figures.

``reports/index.html`` shows the profile that has the most to tell, ``reports/<profile>/index.html`` each of them. All
links are relative and all styles inline, so that the folder can be opened, zipped and sent as it is. A notebook's page is
made by ``pages``; what is here knows the folders.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from ..files import atomic_path
from ..studies import PROFILES, profile
from . import front, notebooks, pages

KINDS = ("tables", "figures")  # folders of files that notebooks write
ORIGINAL = "-original"  # ends the folder's name of a run on the original benchmarks


def write_page(notebook: Path, target: Path) -> None:
    """An executed notebook as one HTML file; its bar leads to the pages beside ``target`` that are finished."""
    _write(target, pages.page(notebook, *_neighbours(target)))


def _neighbours(page: Path) -> tuple[pages.Neighbour, pages.Neighbour]:
    """Name and title of the notebooks before and after a page, where there are any."""
    names = [other.stem for other in _pages(page.parent.parent)]
    before = max((name for name in names if name < page.stem), default=None)
    after = min((name for name in names if name > page.stem), default=None)
    return _titled(page.parent, before), _titled(page.parent, after)


def _titled(folder: Path, name: str | None) -> pages.Neighbour:
    return (name, notebooks.card(folder / f"{name}.ipynb").title) if name else None


def _pages(folder: Path) -> list[Path]:
    """The pages of finished notebooks; one that is being made anew has no marker."""
    made = {name: path.with_suffix(".html") for name, path in _finished(folder).items()}
    return [page for name, page in made.items() if page.exists() and _marker(folder, name)]


def write_index(folder: Path, alone: bool = False) -> None:
    """``index.html`` for the notebooks that have run into a profile's folder, and the front page above it.

    A folder ``alone`` is no profile's: no page above it shows it, and what it lacks no other run will give.
    """
    for page in _pages(folder):
        if pages.stamp(*_neighbours(page)) not in page.read_text(encoding="utf-8"):  # other neighbours or templates
            write_page(page.with_suffix(".ipynb"), page)
    _write(folder / "index.html", _cards(folder, alone=alone))
    if not alone:
        write_front(folder.parent)


def write_front(reports: Path) -> None:
    """``reports/index.html``: the cards of the profile that has the most to tell, and the way to the others."""
    names = [f"{name}{suffix}" for suffix in ("", ORIGINAL) for name in PROFILES]
    ran = [reports / name for name in names if (reports / name / "index.html").exists()]
    best = _richest(ran)
    others = {folder.name: _count(folder) for folder in ran if folder != best}
    _write(reports / "index.html", _cards(best, prefix=f"{best.name}/", others=others))


def _richest(folders: list[Path]) -> Path:
    """The largest profile in which all the notebooks finished that were ever tried, else the largest with any."""
    tried = {name for folder in folders for name in _tried(folder)}
    whole = [folder for folder in folders if _finished(folder).keys() == tried]
    return (whole or [folder for folder in folders if _finished(folder)] or folders)[-1]


def _cards(folder: Path, prefix: str = "", others: dict[str, str] | None = None, alone: bool = False) -> str:
    """The page of one profile's cards; on the front page, ``prefix`` leads to the profile's folder."""
    tried = _tried(folder)
    size = _size(tried) if alone else folder.name
    cap = profile(size.removesuffix(ORIGINAL)).max_queries
    entries = [_entry(folder, name, path) for name, path in tried.items()]
    about = {"profile": size, "cap": cap, "count": _count(folder), "entries": entries, "policy": pages.POLICY}
    about["alone"] = alone
    about["banner"] = _banner([entry for entry in entries if not entry["failed"]])
    return front.render(folder, about, prefix, others)


def _size(tried: dict[str, Path]) -> str:
    """The profile with which the notebooks of a folder ran."""
    ran = (pages.settings(notebooks.read_notebook(path))[0].get("profile") for path in tried.values())
    return next((name for name in ran if name in PROFILES), PROFILES[1])


def _entry(folder: Path, name: str, path: Path) -> dict:
    """What a card shows: the notebook's own words and figure, its settings besides the profile, and its files."""
    card, marker, failed = notebooks.card(path), _marker(folder, name), _failed(path)
    image = _image(*card.figure) if card.figure and not failed else None
    settings = [f"{key} = {value}" for key, value in marker.get("parameters", {}).items() if key != "profile"]
    files = {kind: [file for file in marker.get("files", []) if file.startswith(f"{kind}/")] for kind in KINDS}
    more = {"settings": settings, "files": {kind: found for kind, found in files.items() if found}}
    more["differing"] = pages.differing(notebooks.read_notebook(path))
    return {"name": name, "file": path.name, "failed": failed, "card": card, "image": image} | more


def _banner(entries: list[dict]) -> str:
    """Which numbers the notebooks' text reads, where this is another run; a setting of only some of them names them."""
    found: dict[tuple, list[str]] = {}
    for entry in entries:
        for name, pair in entry["differing"].items():
            found.setdefault((name, *map(str, pair)), []).append(entry["name"][:2])
    if not found:
        return ""
    this, text = [], []
    for (name, ran, read), numbers in found.items():
        where = f" (notebook {', '.join(numbers)})" if len(numbers) < len(entries) else ""
        this.append(f"{name} = {ran}{where}")
        text += [f"{name} = {read}"] if f"{name} = {read}" not in text else []
    return (
        f"Run with {', '.join(this)}. What stands on this page is computed from this run; "
        f"the numbers in the text of the notebooks are those of {', '.join(text)}."
    )


def _image(kind: str, content: str) -> str:
    """A figure as an address that holds it."""
    if kind == "image/svg+xml":
        content = base64.b64encode(content.encode()).decode()
    return f"data:{kind};base64,{''.join(content.split())}"


def _tried(folder: Path) -> dict[str, Path]:
    """Finished and failed notebooks by name, in reading order."""
    paths = sorted((folder / "notebooks").glob("[0-9]*.ipynb"))
    return {path.name.removesuffix(".ipynb").removesuffix(".failed"): path for path in paths}


def _finished(folder: Path) -> dict[str, Path]:
    return {name: path for name, path in _tried(folder).items() if not _failed(path)}


def _failed(path: Path) -> bool:
    return path.name.endswith(".failed.ipynb")


def _count(folder: Path) -> str:
    done, tried = len(_finished(folder)), len(_tried(folder))
    failed = f", {tried - done} failed" if done < tried else ""
    return f"{done} notebook{'' if done == 1 else 's'}{failed}"


def _marker(folder: Path, name: str) -> dict:
    """What the runner noted of a finished notebook."""
    try:
        return json.loads((folder / ".done" / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _write(target: Path, text: str) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
