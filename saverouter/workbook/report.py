"""Pages for reading: each executed notebook as HTML, and index pages of questions, answers and key figures.

``reports/index.html`` shows the profile that has the most to tell, ``reports/<profile>/index.html`` each of them. All
links are relative and all styles inline, so that the folder can be opened, zipped and sent as it is. How pages look is
in ``templates``.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..files import atomic_path
from ..studies import PROFILES, profile
from . import notebooks

TEMPLATES = Path(__file__).with_name("templates")
KINDS = ("tables", "figures")  # folders of files that notebooks write
ORIGINAL = "-original"  # ends the folder's name of a run on the original benchmarks
# What a browser may load and run: nothing from elsewhere, and no script, whatever a notebook's prose or outputs say.
POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'"
ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def write_page(notebook: Path, target: Path) -> None:
    """An executed notebook as one HTML file; its bar leads to the pages beside ``target`` that are finished."""
    from nbconvert import HTMLExporter

    places = {"template_name": "page", "extra_template_basedirs": [str(TEMPLATES)]}
    exporter = HTMLExporter(**places, sanitize_html=True, filters={"clean_html": _cleaned})
    executed = notebooks.read_notebook(notebook)
    executed.metadata.pop("widgets", None)  # they need scripts; their text is shown instead
    told = {"policy": POLICY, "bar": _bar(target), "alt_texts": notebooks.alt_texts(notebook)}
    told["metadata"] = {"name": notebooks.card(notebook).title}
    _write(target, exporter.from_notebook_node(executed, told)[0])


def _cleaned(html: str) -> str:
    """A cell's prose or output without scripts; links to notebooks lead to their pages."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(html, "html.parser")
    for script in soup("script"):
        script.decompose()
    for link in soup("a", href=re.compile(r"^\d\d_[\w-]+\.ipynb")):
        link["href"] = link["href"].replace(".ipynb", ".html", 1)
    return str(soup)


def _bar(page: Path) -> str:
    """The line above a notebook's page."""
    names = [other.stem for other in _pages(page.parent.parent)]
    before = max((name for name in names if name < page.stem), default=None)
    after = min((name for name in names if name > page.stem), default=None)
    return ENVIRONMENT.get_template("bar.html.j2").render(before=before, after=after)


def _pages(folder: Path) -> list[Path]:
    """The pages of finished notebooks; one that is being made anew has no marker."""
    pages = {name: path.with_suffix(".html") for name, path in _finished(folder).items()}
    return [page for name, page in pages.items() if page.exists() and _marker(folder, name)]


def write_index(folder: Path) -> None:
    """``index.html`` for the notebooks that have run into a profile's folder, and the front page above it."""
    for page in _pages(folder):
        if _bar(page) not in page.read_text(encoding="utf-8"):  # it has other neighbours now
            write_page(page.with_suffix(".ipynb"), page)
    _write(folder / "index.html", _cards(folder))
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


def _cards(folder: Path, prefix: str = "", others: dict[str, str] | None = None) -> str:
    """The page of one profile's cards; on the front page, ``prefix`` leads to the profile's folder."""
    cap = profile(folder.name.removesuffix(ORIGINAL)).max_queries
    entries = [_entry(folder, name, path) for name, path in _tried(folder).items()]
    about = {"profile": folder.name, "cap": cap, "count": _count(folder), "entries": entries, "policy": POLICY}
    return ENVIRONMENT.get_template("index.html.j2").render(about, prefix=prefix, others=others or {})


def _entry(folder: Path, name: str, path: Path) -> dict:
    """What a card shows: the notebook's own words and figure, its settings besides the profile, and its files."""
    card, marker, failed = notebooks.card(path), _marker(folder, name), _failed(path)
    image = _image(*card.figure) if card.figure and not failed else None
    settings = [f"{key} = {value}" for key, value in marker.get("parameters", {}).items() if key != "profile"]
    files = {kind: [file for file in marker.get("files", []) if file.startswith(f"{kind}/")] for kind in KINDS}
    more = {"settings": settings, "files": {kind: found for kind, found in files.items() if found}}
    return {"name": name, "file": path.name, "failed": failed, "card": card, "image": image} | more


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
