"""An executed notebook as one HTML page: its answer first, code folded, and only the parameters that counted.

Prose reads the numbers of the committed run: defaults of the parameters cell, profile ``standard``. A page of any
other run says so in a banner. Where it is a run on other data, prose tagged ``reads-default`` is folded: its headings stay,
and so do title and question. How pages look is in ``templates/page``.
"""

from __future__ import annotations

import ast
import base64
import re
import struct
from pathlib import Path

from nbformat import NotebookNode

from ..files import digest_of, digest_of_files
from . import notebooks
from .markup import cleaned

TEMPLATES = Path(__file__).with_name("templates")
# What a browser may load and run: nothing from elsewhere, and no script, whatever a notebook's prose or outputs say.
POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'"
READ = {"profile": "standard"}  # how committed notebooks are executed, besides their defaults
COLOURS = {"light": "default", "dark": "github-dark"}  # of code, from pygments
Neighbour = tuple[str, str] | None  # name and title of a notebook, where there is one


def page(notebook: Path, before: Neighbour = None, after: Neighbour = None) -> str:
    """The page of an executed notebook, with the way to the one before and the one after."""
    from nbconvert import HTMLExporter

    places = {"template_name": "page", "extra_template_basedirs": [str(TEMPLATES)], "anchor_link_text": "#"}
    exporter = HTMLExporter(**places, sanitize_html=True, filters={"clean_html": cleaned, "size": _size})
    executed, card = notebooks.read_notebook(notebook), notebooks.card(notebook)
    ran, _ = settings(executed)
    told = {
        "policy": POLICY, "stamp": stamp(before, after), "colours": {name: _colours(name) for name in COLOURS},
        "title": card.title, "before": before, "after": after, "contents": contents(executed),
        "banner": banner(executed), "answer": card.answer, "alt_texts": notebooks.alt_texts(notebook),
        "ran": ", ".join(f"{name} {value}" for name, value in ran.items() if value is not None),
    }  # fmt: skip
    return exporter.from_notebook_node(prepared(executed), told)[0]


def stamp(before: Neighbour, after: Neighbour) -> str:
    """A hash of what a page is made with, besides its notebook: as long as it stays, so does the page."""
    made_by = [path for path in (TEMPLATES / "page").iterdir() if path.is_file()]
    made_by += [Path(__file__), Path(__file__).with_name("markup.py")]
    return digest_of(before, after, digest_of_files(TEMPLATES.parent, made_by))


def prepared(executed: NotebookNode) -> NotebookNode:
    """The notebook as its page shows it. What the template has to know of a cell is in its metadata ``page``."""
    executed = notebooks.without_widgets(executed)  # they need scripts
    fold = of_other_data(executed)
    _merge_parameters(executed)
    _split_lead(executed)
    if fold:
        _fold(executed)
    for number, cell in enumerate(executed.cells):
        noted = cell.metadata.setdefault("page", {})
        noted["id"] = cell.get("id", f"cell-{number:02d}")
        noted["claims"] = False
    judged = notebooks.tagged(executed, "claims") or next(
        (cell for cell in executed.cells if _saves_claims(cell)), None
    )
    if judged:
        judged.metadata.page["claims"] = True
    last = executed.cells[-1] if executed.cells else None
    if last and last.cell_type == "code" and "watermark()" in last.source:
        last.metadata.page["versions"] = True
    return executed


def _saves_claims(cell: NotebookNode) -> bool:
    """Whether a code cell leaves the table that the wall of claims is made of."""
    return cell.cell_type == "code" and bool(re.search(r"""save_table\([^\n]*["']\d\d_claims""", cell.source))


def contents(notebook: NotebookNode) -> list[tuple[str, str]]:
    """Anchor and words of the headings of second order."""
    from bs4 import BeautifulSoup
    from nbconvert.filters import markdown2html

    prose = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    soups = (BeautifulSoup(markdown2html(source), "html.parser") for source in prose if "##" in source)
    found = [heading for soup in soups for heading in soup("h2", id=True)]
    for mark in (mark for heading in found for mark in heading(class_="anchor-link")):
        mark.decompose()
    return [(heading["id"], heading.get_text().strip()) for heading in found]


def settings(notebook: NotebookNode) -> tuple[dict, dict]:
    """The parameters that a notebook ran with, and those whose numbers its prose reads."""
    declared, injected = (_values(notebooks.tagged(notebook, tag)) for tag in ("parameters", "injected-parameters"))
    ran = declared | injected
    return ran, ran | declared | {name: value for name, value in READ.items() if name in ran}


def differing(notebook: NotebookNode) -> dict[str, tuple]:
    """Parameters of which text and numbers are of different runs: what it ran with, and what the text reads."""
    ran, read = settings(notebook)
    return {name: (ran[name], read[name]) for name in ran if ran[name] != read[name]}


def of_other_data(notebook: NotebookNode) -> bool:
    """Whether a notebook ran on other data than its text reads."""
    return bool(differing(notebook).keys() & set(notebooks.DATA))


def banner(notebook: NotebookNode) -> str:
    """What a reader has to know where text and numbers are of different runs; empty where they agree."""
    differ = differing(notebook)
    if not differ:
        return ""
    this, text = (", ".join(f"{name} = {pair[side]}" for name, pair in differ.items()) for side in (0, 1))
    if of_other_data(notebook):
        return f"Run with {this}. Text that reads the numbers of {text} is folded."
    return (
        f"Run with {this}. Tables, figures, claims and the computed answer are of this run; "
        f"the numbers in the text are those of {text}."
    )


def _values(cell: NotebookNode | None) -> dict:
    """The literals that a cell assigns."""
    return {name: _value(node) for name, node in _assigned(cell.source if cell else "").items()}


def _assigned(source: str) -> dict[str, ast.expr]:
    """What each plain assignment of a cell gives a name."""
    try:
        statements = ast.parse(source).body
    except SyntaxError:
        return {}
    pairs = [(node.targets[0], node.value) for node in statements if isinstance(node, ast.Assign)]
    pairs += [(node.target, node.value) for node in statements if isinstance(node, ast.AnnAssign) and node.value]
    return {target.id: value for target, value in pairs if isinstance(target, ast.Name)}


def _value(node: ast.expr):
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _merge_parameters(notebook: NotebookNode) -> None:
    """One cell of parameters: the defaults, with what papermill injected below them in their place."""
    declared, injected = (notebooks.tagged(notebook, tag) for tag in ("parameters", "injected-parameters"))
    if declared is not None and injected is not None:
        declared.source = _rewritten(declared.source, injected.source)
        notebook.cells = [cell for cell in notebook.cells if cell is not injected]
    shown = declared if declared is not None else injected
    if shown is not None:
        values = ", ".join(f"{name} = {value!r}" for name, value in _values(shown).items())
        shown.metadata["page"] = {"summary": f"Parameters: {values}"}


def _rewritten(source: str, injected: str) -> str:
    """Source whose assignments have the values of other assignments; those it does not know follow at its end."""
    raw, here, there = source.encode(), _assigned(source), _assigned(injected)
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for name, old in reversed(here.items()):  # from the end, so that places stay
        if name in there:
            begin, end = starts[old.lineno - 1] + old.col_offset, starts[old.end_lineno - 1] + old.end_col_offset
            raw = raw[:begin] + ast.get_source_segment(injected, there[name]).encode() + raw[end:]
    more = [f"\n{name} = {ast.get_source_segment(injected, node)}" for name, node in there.items() if name not in here]
    return raw.decode() + "".join(more)


def _split_lead(notebook: NotebookNode) -> None:
    """Part the first text below title and question, where the computed answer goes."""
    for place, cell in enumerate(notebook.cells):
        title = re.search(r"^# +.+$", cell.source, re.MULTILINE) if cell.cell_type == "markdown" else None
        if title:
            question = re.match(r"\s*(?![#|!`\s])\S.*?(?=\n\s*\n|\Z)", cell.source[title.end() :], re.DOTALL)
            end = title.end() + (question.end() if question else 0)
            _part(notebook, place, end)
            cell.metadata["page"] = {"lead": True}
            return


def _part(notebook: NotebookNode, place: int, end: int) -> NotebookNode | None:
    """Part a cell after so many characters; gives the rest, which keeps the tags, where there is any."""
    cell = notebook.cells[place]
    rest = NotebookNode(cell | {"source": cell.source[end:], "metadata": cell.metadata})
    if "id" in cell:
        rest.id = f"{cell.id[:59]}-rest"
    cell.source, cell.metadata = cell.source[:end], NotebookNode()
    if not rest.source.strip():
        return None
    notebook.cells.insert(place + 1, rest)
    return rest


def _fold(notebook: NotebookNode) -> None:
    """Prose that reads numbers of the default data is shown as such, and not at first sight."""
    for place, cell in reversed(list(enumerate(notebook.cells))):
        if cell.cell_type == "markdown" and notebooks.READS_DEFAULT in cell.metadata.get("tags", []):
            headings = re.match(r"(\s*#+ .*(\n|\Z))*", cell.source).end()
            text = _part(notebook, place, headings) if headings else cell
            if text is not None:
                text.metadata["page"] = {"of_default": True}


def _colours(name: str) -> str:
    """The rules that colour code."""
    from pygments.formatters import HtmlFormatter

    return HtmlFormatter(style=COLOURS[name]).get_style_defs(".highlight")


def _size(output: NotebookNode) -> tuple[int, int] | None:
    """Width and height at which a PNG is shown: as the notebook says, else as the picture is."""
    said = output.get("metadata", {}).get("image/png", {})
    if "width" in said and "height" in said:
        return int(said["width"]), int(said["height"])
    head = base64.b64decode("".join(output.data["image/png"].split())[:40] + "==")
    return struct.unpack(">II", head[16:24]) if head[1:4] == b"PNG" and len(head) >= 24 else None
