"""Pages for reading: each executed notebook as HTML, and an index of questions, answers and key figures.

All links are relative and all styles inline, so that the folder can be opened, zipped and sent as it is.
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
from .profiles import PROFILES

# Above each notebook's page: the way back, and a box that hides the code without any script.
BAR = """<style>
#bar {font: 14px system-ui, sans-serif; display: flex; gap: 1.5em; padding: .6em 1em; border-bottom: 1px solid #ddd}
#bar a {color: #0b62a4; text-decoration: underline}
body:has(#hide-code:checked) .jp-CodeCell > .jp-Cell-inputWrapper {display: none}
</style>
<nav id="bar"><a href="../index.html">All notebooks</a>
<label><input type="checkbox" id="hide-code"> Hide code</label></nav>
"""

STYLE = """
:root {--ink: #1c2330; --soft: #5a6472; --paper: #f6f7f9; --card: #fff; --line: #dfe3e8;
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
.soft {color: var(--soft)}
article {display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 1.5rem; align-items: start;
  margin-top: 1.25rem; padding: 1.4rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px}
article.plain {grid-template-columns: minmax(0, 1fr)}
article p {margin: 0 0 .8rem; overflow-wrap: anywhere}
.answer {padding-left: .8rem; border-left: 3px solid var(--accent); white-space: pre-line}
.failed {padding-left: .8rem; border-left: 3px solid var(--bad)}
.links {font-size: .9rem}
.links p {margin-bottom: .3rem}
img {display: block; width: 100%; height: auto; background: #fff; border-radius: 6px}
@media (max-width: 760px) {
  main {padding: 1.25rem .9rem 3rem}
  article {grid-template-columns: minmax(0, 1fr); padding: 1rem; gap: .8rem}
}
"""


def write_page(notebook: Path, target: Path) -> None:
    """An executed notebook as one HTML file."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter()  # outputs hold their images; embedding those of the prose would break inline tags
    body, _ = exporter.from_filename(str(notebook), {"metadata": {"name": notebooks.card(notebook).title}})
    body = re.sub(r"<script\b.*?</script>", "", body, flags=re.DOTALL)  # all of them would be fetched from elsewhere
    body = re.sub(r'href="(\d\d_[\w-]+)\.ipynb', r'href="\1.html', body)  # from notebook to notebook, from page to page
    start = body.index(">", body.index("<body")) + 1
    _write(target, body[:start] + BAR + body[start:])


def write_index(folder: Path) -> None:
    """``index.html`` for the notebooks that have run into a folder, and the page above that leads to it."""
    found = _executed(folder)
    cards = "\n".join(_card(folder, path) for path in found) or "<p>No notebook has finished yet.</p>"
    lead = f"Profile <strong>{escape(folder.name)}</strong> · {_number(len(found))}"
    lead += ' · <a href="../index.html">other profiles</a>'
    note = "Where numbers come from simulated outcomes, the notebook's tables and figures say so."
    heading = f'<h1>Does LLM routing pay for itself?</h1><p class="soft">{lead}<br>{note}</p>'
    _write(folder / "index.html", _document(f"saverouter, {folder.name}", f"{heading}\n{cards}"))
    write_front(folder.parent)


def write_front(reports: Path) -> None:
    """``reports/index.html``: the profiles that have been run."""
    names = [name for name in PROFILES if (reports / name / "index.html").exists()]
    items = "\n".join(
        f'<article class="plain"><div><h2><a href="{name}/index.html">{name}</a></h2>'
        f"<p>{_number(len(_executed(reports / name)))}</p></div></article>"
        for name in names
    )
    heading = '<h1>Does LLM routing pay for itself?</h1><p class="soft">Reports by profile, smallest first.</p>'
    _write(reports / "index.html", _document("saverouter reports", f"{heading}\n{items}"))


def _executed(folder: Path) -> list[Path]:
    return sorted((folder / "notebooks").glob("[0-9]*.ipynb"))


def _number(count: int) -> str:
    return "1 notebook" if count == 1 else f"{count} notebooks"


def _card(folder: Path, path: Path) -> str:
    name = path.name.removesuffix(".ipynb").removesuffix(".failed")
    shown = notebooks.card(path)
    parts = [f"<h2>{escape(shown.title)}</h2>", f'<p class="soft">{escape(shown.question)}</p>']
    if path.name.endswith(".failed.ipynb"):
        parts.append('<p class="failed">This notebook failed; what it had computed until then is linked below.</p>')
        image, links = "", [_link(f"notebooks/{path.name}", "notebook up to the error")]
    else:
        parts.append(f'<p class="answer">{escape(shown.answer)}</p>' if shown.answer else "")
        image = _image(shown)
        links = [_link(f"notebooks/{name}.html", "read (HTML)"), _link(f"notebooks/{path.name}", "notebook")]
    text = f'<div>{"".join(parts)}<div class="links"><p>{" · ".join(links)}</p>{_files(folder, name)}</div></div>'
    return f"<article{'' if image else ' class=plain'}>{text}{image}</article>"


def _files(folder: Path, name: str) -> str:
    """Links to the tables and figures that the notebook wrote, by kind."""
    try:
        marker = json.loads((folder / ".done" / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    rows = []
    for kind in ("tables", "figures"):
        links = [_link(file, Path(file).name) for file in marker["files"] if file.startswith(f"{kind}/")]
        if links:
            rows.append(f'<p><span class="soft">{kind.title()}:</span> {" · ".join(links)}</p>')
    return "".join(rows)


def _link(target: str, text: str) -> str:
    return f'<a href="{escape(quote(target))}">{escape(text)}</a>'


def _image(shown: notebooks.Card) -> str:
    if shown.figure is None:
        return ""
    kind, content = shown.figure
    if kind == "image/svg+xml":
        content = base64.b64encode(content.encode()).decode()
    source = f"data:{kind};base64,{''.join(content.split())}"
    return f'<img src="{escape(source)}" alt="{escape(f"Key figure of: {shown.title}")}">'


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _write(target: Path, text: str) -> None:
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
