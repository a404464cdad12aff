"""Pages for reading: each executed notebook as HTML, and index pages of questions, answers and key figures.

``reports/index.html`` shows the profile that has the most to tell, ``reports/<profile>/index.html`` each of them. All
links are relative and all styles inline, so that the folder can be opened, zipped and sent as it is.
"""

from __future__ import annotations

import base64
import json
import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from . import notebooks
from .cache import atomic_path
from .profiles import PROFILES, profile

NO_ALT = 'alt="No description has been provided for this image"'  # as nbconvert writes it

# Above each notebook's page: the way back, its neighbours, and a box that hides the code without any script. Printed
# sentences wrap between words.
BAR_STYLE = """<style>
#bar {font: 14px/1.5 system-ui, sans-serif; display: flex; flex-wrap: wrap; gap: .3em 1.5em; padding: .6em 1em;
  border-bottom: 1px solid #ddd}
#bar a {color: #0b62a4; text-decoration: underline}
.jp-RenderedText pre {white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere}
body:has(#hide-code:checked) .jp-CodeCell > .jp-Cell-inputWrapper {display: none}
</style>
"""

STYLE = """
:root {color-scheme: light dark; --ink: #1c2330; --soft: #5a6472; --paper: #f6f7f9; --card: #fff; --line: #dfe3e8;
  --accent: #0b62a4; --bad: #b3261e}
@media (prefers-color-scheme: dark) {
  :root {--ink: #e6e9ee; --soft: #a3adba; --paper: #14171c; --card: #1d2128; --line: #333a44;
    --accent: #7cc0f5; --bad: #ff8a80}
}
* {box-sizing: border-box}
body {margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif}
main {max-width: 1120px; margin: 0 auto; padding: 2rem 1.25rem 4rem}
h1 {margin: 0 0 .3rem; font-size: 1.7rem; line-height: 1.25}
h2 {margin: 0 0 .4rem; font-size: 1.2rem; line-height: 1.35}
a {color: var(--accent); text-underline-offset: .15em}
header p {margin: 0 0 .5rem}
.soft {color: var(--soft)}
.contents {columns: 2; column-gap: 1.5rem; margin: 1rem 0 0; padding: 0; list-style: none; font-size: .95rem}
.contents li {display: flex; gap: .6rem; padding: .15rem 0; break-inside: avoid}
article {display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.5rem; align-items: start;
  margin-top: 1.25rem; padding: 1.4rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px}
article.plain {grid-template-columns: minmax(0, 1fr)}
article p {margin: 0 0 .8rem; overflow-wrap: anywhere}
.answer {padding-left: .8rem; border-left: 3px solid var(--accent); white-space: pre-line}
.failed {padding-left: .8rem; border-left: 3px solid var(--bad)}
.links {font-size: .9rem}
.links p {margin: 0 0 .3rem}
summary {cursor: pointer; color: var(--soft)}
img {display: block; width: 100%; height: auto; background: #fff; border-radius: 6px}
@media (max-width: 760px) {
  main {padding: 1.25rem .9rem 3rem}
  .contents {columns: 1}
  article {grid-template-columns: minmax(0, 1fr); padding: 1rem; gap: .8rem}
}
"""

ORIGINAL = "-original"  # ends the folder's name of a run on the original benchmarks


def write_page(notebook: Path, target: Path) -> None:
    """An executed notebook as one HTML file."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter()  # outputs hold their images; embedding those of the prose would break inline tags
    body, _ = exporter.from_filename(str(notebook), {"metadata": {"name": notebooks.card(notebook).title}})
    body = re.sub(r"<script\b.*?</script>", "", body, flags=re.DOTALL)  # all of them would be fetched from elsewhere
    body = re.sub(r'href="(\d\d_[\w-]+)\.ipynb', r'href="\1.html', body)  # from notebook to notebook, from page to page
    body = _described(body, notebooks.alt_texts(notebook))
    start = body.index(">", body.index("<body")) + 1
    _write(target, body[:start] + BAR_STYLE + _bar() + body[start:])


def _described(body: str, texts: dict[str, str]) -> str:
    """The page with an alt text for every figure; ``texts`` has them by the id of their cell."""
    before, *cells = re.split(r'(?<=\bid="cell-id=)', body)
    for number, cell in enumerate(cells):
        text = texts.get(cell.partition('"')[0])
        cells[number] = cell.replace(NO_ALT, f'alt="{escape(text)}"') if text else cell
    return before + "".join(cells)


def _bar(before: str | None = None, after: str | None = None) -> str:
    """The line above a notebook's page; neighbours are named by their files' stems."""
    links = [_link("../index.html", "All notebooks")]
    links += [_link(f"{before}.html", f"← {before.replace('_', ' ')}")] if before else []
    links += [_link(f"{after}.html", f"{after.replace('_', ' ')} →")] if after else []
    box = '<label><input type="checkbox" id="hide-code"> Hide code</label>'
    return f'<nav id="bar" aria-label="Notebooks">{" ".join(links)} {box}</nav>\n'


def _link_neighbours(folder: Path) -> None:
    """Let the pages that are there lead to each other; one that is being made anew has no marker."""
    pages = [path.with_suffix(".html") for path in _executed(folder) if _marker(folder, path.stem)]
    pages = [page for page in pages if page.exists()]
    names = [None, *(page.stem for page in pages), None]
    for page, before, after in zip(pages, names, names[2:], strict=False):
        old, bar = page.read_text(encoding="utf-8"), _bar(before, after)
        new = re.sub(r'<nav id="bar".*?</nav>\n', lambda _, bar=bar: bar, old, count=1, flags=re.DOTALL)
        if new != old:
            _write(page, new)


def write_index(folder: Path) -> None:
    """``index.html`` for the notebooks that have run into a profile's folder, and the front page above it."""
    _link_neighbours(folder)
    _write_cards(folder / "index.html", folder, f"All profiles: {_link('../index.html', 'front page')}")
    write_front(folder.parent)


def write_front(reports: Path) -> None:
    """``reports/index.html``: the cards of the profile that has the most to tell, and the way to the others."""
    names = [f"{name}{suffix}" for suffix in ("", ORIGINAL) for name in PROFILES]
    ran = [reports / name for name in names if (reports / name / "index.html").exists()]
    best = _richest(ran)
    links = [
        f"{_link(f'{folder.name}/index.html', folder.name)} ({_count(folder)})" for folder in ran if folder != best
    ]
    aside = f"Other profiles: {' · '.join(links)}" if links else "No other profile was run."
    _write_cards(reports / "index.html", best, aside)


def _richest(folders: list[Path]) -> Path:
    """The largest profile in which all the notebooks finished that were ever tried, else the largest with any."""
    finished = {folder: set(_names(_executed(folder))) for folder in folders}
    tried = {name for folder in folders for name in _names(_tried(folder))}
    whole = [folder for folder in folders if finished[folder] == tried]
    return (whole or [folder for folder in folders if finished[folder]] or folders)[-1]


def _write_cards(target: Path, folder: Path, aside: str) -> None:
    """The page of one profile's cards, in its own folder or in the one above."""
    prefix = "" if target.parent == folder else f"{folder.name}/"
    shown = {path: notebooks.card(path) for path in _tried(folder)}
    cards = "\n".join(_card(folder, path, card, prefix) for path, card in shown.items())
    titles = dict(zip(_names(shown), (card.title for card in shown.values()), strict=True))
    _write(target, _document(f"saverouter, {folder.name}", f"{_heading(folder, aside, titles)}\n{cards}"))


def _heading(folder: Path, aside: str, titles: dict[str, str]) -> str:
    """What the page is about, of which profile, and its contents."""
    cap = profile(folder.name.removesuffix(ORIGINAL)).max_queries
    size = "whole benchmarks" if cap is None else f"at most {cap:,} queries a benchmark"
    items = [
        f'<li><span class="soft">{name[:2]}</span><a href="#{escape(name)}">{escape(title)}</a></li>'
        for name, title in titles.items()
    ]
    return (
        f"<header><h1>Does LLM routing pay for itself?</h1>"
        f"<p>Questions and answers of profile <strong>{escape(folder.name)}</strong> ({size}): {_count(folder)}. "
        f"A title leads to the whole notebook.</p>"
        f'<p class="soft">Where numbers come from simulated outcomes, the notebook\'s tables and figures say so.</p>'
        f'<p class="soft">{aside}</p>'
        f'<nav aria-label="Contents"><ol class="contents">{"".join(items)}</ol></nav></header>'
    )


def _executed(folder: Path) -> list[Path]:
    return [path for path in _tried(folder) if not _failed(path)]


def _tried(folder: Path) -> list[Path]:
    return sorted((folder / "notebooks").glob("[0-9]*.ipynb"))


def _failed(path: Path) -> bool:
    return path.name.endswith(".failed.ipynb")


def _names(paths) -> list[str]:
    return [path.name.removesuffix(".ipynb").removesuffix(".failed") for path in paths]


def _count(folder: Path) -> str:
    done, tried = len(_executed(folder)), len(_tried(folder))
    failed = f", {tried - done} failed" if done < tried else ""
    return f"{done} notebook{'' if done == 1 else 's'}{failed}"


def _card(folder: Path, path: Path, shown: notebooks.Card, prefix: str) -> str:
    """One notebook: title, question, answer and key figure; ``prefix`` leads from the page to the profile's folder."""
    (name,) = _names([path])
    marker = _marker(folder, name)
    title, image = escape(shown.title), ""
    parts = [f'<p class="soft">{escape(shown.question)}</p>']
    if _failed(path):
        parts.append('<p class="failed">This notebook failed; what it had computed until then is linked below.</p>')
        links = _link(f"{prefix}notebooks/{path.name}", "notebook up to the error")
    else:
        title = f'<a href="{escape(quote(f"{prefix}notebooks/{name}.html"))}">{title}</a>'
        parts.append(f'<p class="answer">{escape(shown.answer)}</p>' if shown.answer else "")
        image = _image(shown)
        links = _link(f"{prefix}notebooks/{path.name}", "notebook (.ipynb)")
    parts.append(f'<div class="links"><p>{links}{_settings(marker)}</p>{_files(marker, prefix)}</div>')
    text = f'<div><h2><span class="soft">{name[:2]}</span> {title}</h2>{"".join(parts)}</div>'
    return f'<article id="{escape(name)}"{"" if image else " class=plain"}>{text}{image}</article>'


def _marker(folder: Path, name: str) -> dict:
    """What the runner noted of a finished notebook."""
    try:
        return json.loads((folder / ".done" / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _settings(marker: dict) -> str:
    """What the notebook was told besides the profile: its answer holds for that."""
    told = [f"{name} = {value}" for name, value in marker.get("parameters", {}).items() if name != "profile"]
    return f" · run with <strong>{escape(', '.join(told))}</strong>" if told else ""


def _files(marker: dict, prefix: str) -> str:
    """Links to the tables and figures that the notebook wrote, by kind."""
    files = marker.get("files", [])
    rows, kinds = [], []
    for kind in ("tables", "figures"):
        links = [_link(f"{prefix}{file}", Path(file).name) for file in files if file.startswith(f"{kind}/")]
        if links:
            kinds.append(kind)
            rows.append(f'<p><span class="soft">{kind.title()}:</span> {" · ".join(links)}</p>')
    if not rows:
        return ""
    return f"<details><summary>Files: {' and '.join(kinds)}</summary>{''.join(rows)}</details>"


def _link(target: str, text: str) -> str:
    return f'<a href="{escape(quote(target))}">{escape(text)}</a>'


def _image(shown: notebooks.Card) -> str:
    if shown.figure is None:
        return ""
    kind, content = shown.figure
    if kind == "image/svg+xml":
        content = base64.b64encode(content.encode()).decode()
    source = f"data:{kind};base64,{''.join(content.split())}"
    return f'<img src="{escape(source)}" alt="{escape(shown.alt)}">'


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _write(target: Path, text: str) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
