"""The notebooks as files: which there are, what they declare, what they show, and how they are refreshed."""

from __future__ import annotations

import ast
import copy
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

from ..errors import SaveRouterError, did_you_mean
from ..files import atomic_path, digest_of

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
TWINS = NOTEBOOKS.parent / "tests" / "smoke"  # the same code cells at profile smoke, for the tests
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
DATA = ("workload", "data")  # parameters that name a workload or a file of the user's
READS_DEFAULT = "reads-default"  # tag of prose that reads numbers of the default data
WIDGET = "application/vnd.jupyter.widget-view+json"
QUIET = ["--log-level=CRITICAL"]  # else a kernel warns of its own sockets, and of being told to stop


def all_notebooks(folder: str | Path = NOTEBOOKS) -> list[Path]:
    """The numbered notebooks of a folder, in reading order."""
    return sorted(Path(folder).resolve().glob("[0-9][0-9]_*.ipynb"))


def select(names: list[str] | None = None, folder: str | Path = NOTEBOOKS) -> list[Path]:
    """Notebooks by number or name (``2``, ``02``, ``02_topic``); all of them by default."""
    found = all_notebooks(folder)
    if not found:
        raise SaveRouterError(f"no notebook named NN_topic.ipynb in {folder}; run from a clone of the project")
    if not names:
        return found
    return sorted({_named(name, found) for name in names})


def _named(name: str, found: list[Path]) -> Path:
    wanted = Path(name).name.removesuffix(".ipynb")
    wanted = wanted.zfill(2) if wanted.isdigit() else wanted
    for path in found:
        if wanted in (path.stem, path.stem[:2], path.stem[3:]):
            return path
    stems = [path.stem for path in found]
    raise SaveRouterError(f"unknown notebook '{name}': {did_you_mean(wanted, stems)}there are {', '.join(stems)}")


def read_notebook(path: str | Path) -> NotebookNode:
    """A notebook from its file."""
    return nbformat.read(path, as_version=4)


def tagged(notebook: NotebookNode, tag: str) -> NotebookNode | None:
    """The first cell with that tag, or None."""
    return next((cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])), None)


def declared_parameters(path: str | Path) -> dict:
    """Name and default of every parameter; the cell tagged ``parameters`` may hold plain literals only."""
    cell = tagged(read_notebook(path), "parameters")
    if cell is None:
        return {}
    declared = {}
    for statement in ast.parse(cell.source).body:
        try:
            (target,) = statement.targets if isinstance(statement, ast.Assign) else (statement.target,)
            declared[target.id] = ast.literal_eval(statement.value)
        except (AttributeError, ValueError, TypeError):
            problem = f"`{ast.unparse(statement)}` in the parameters cell is not `name = literal`"
            raise SaveRouterError(f"{Path(path).name}: {problem}") from None
    return declared


def source_fingerprint(path: str | Path) -> str:
    """A hash of what a notebook says and does; its outputs and other metadata do not matter."""
    cells = read_notebook(path).cells
    return digest_of([[cell.cell_type, cell.source, sorted(cell.metadata.get("tags", []))] for cell in cells])


def cell_text(cell: NotebookNode) -> str:
    """What a cell printed or returned, as text."""
    texts = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        texts.append(output.get("text") or data.get("text/markdown") or _unquoted(data.get("text/plain", "")))
    return "\n".join(text.strip() for text in texts if text.strip())


def _unquoted(text: str) -> str:
    """A returned string is shown as its repr; give back the string."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, str) else text


@dataclass(frozen=True)
class Card:
    """What the index page shows of one executed notebook."""

    title: str
    question: str
    answer: str
    figure: tuple[str, str] | None  # MIME type and content, as the notebook stores them
    alt: str  # what the figure shows, for those who cannot see it


def card(path: str | Path) -> Card:
    """Title, question, verdict and key figure of an executed notebook."""
    notebook = read_notebook(path)
    prose = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found = re.search(r"^# +(.+)$", prose, re.MULTILINE)
    title = _plain(found[1]) if found else Path(path).stem
    question = _first_paragraph(prose[found.end() :] if found else prose)
    verdict, figure = tagged(notebook, "verdict"), tagged(notebook, "key-figure")
    return Card(
        title=title,
        question=question,
        answer=_plain(cell_text(verdict)) if verdict else "",
        figure=_first_image(figure),
        alt=_said_alt(figure) or f"Key figure: {title}. {question}",
    )


def alt_texts(path: str | Path) -> dict[str, str]:
    """What the figures of each code cell show, by the cell's id: its ``# alt:`` comment, or the heading above it."""
    notebook, shown = read_notebook(path), card(path)
    key_figure, heading, texts = tagged(notebook, "key-figure"), shown.title, {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = _plain(([heading] + re.findall(r"^#+ +(.+)$", cell.source, re.MULTILINE))[-1])
        elif "id" in cell:
            texts[cell.id] = shown.alt if cell is key_figure else _said_alt(cell) or f"Figure: {heading}"
    return texts


def _said_alt(cell) -> str:
    """The ``# alt:`` comment that begins a cell, over as many comment lines as it takes."""
    said = re.match(r"# *alt: *(.+(?:\n# *.+)*)", cell.source) if cell else None
    return re.sub(r"\s*\n# *", " ", said[1]).strip() if said else ""


def _first_paragraph(prose: str) -> str:
    """The first blockquote or paragraph of text, without its Markdown marks."""
    blocks = (block.strip() for block in re.split(r"\n\s*\n", prose))
    text = next((block for block in blocks if block and not block.startswith(("#", "|", "```", "!["))), "")
    return _plain(re.sub(r"^> ?", "", text, flags=re.MULTILINE))


def _plain(markdown: str) -> str:
    """Markdown as running text: links become their words, emphasis and code marks go."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r"(\*\*|`)(.+?)\1", r"\2", text)
    text = re.sub(r"(?<![\w*])\*(?!\s)([^*\n]+?)\*(?![\w*])", r"\1", text)
    return text.strip()


def _first_image(cell) -> tuple[str, str] | None:
    for output in cell.get("outputs", []) if cell else []:
        for kind in ("image/png", "image/jpeg", "image/svg+xml"):
            if kind in output.get("data", {}):
                return kind, "".join(output["data"][kind])
    return None


def refresh(path: str | Path, twins: Path | None = None) -> None:
    """Execute a notebook in place at its own defaults, and store nothing that differs between two machines.

    Its twin (``smoke_twin``) is written to the folder ``twins``, executed too.
    """
    path = Path(path)
    _execute(read_notebook(path), path)
    if twins is not None:
        _execute(smoke_twin(read_notebook(path)), Path(twins, path.name))


def _execute(notebook: NotebookNode, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    options = {"timeout": None, "kernel_name": KERNEL["name"], "record_timing": False, "extra_arguments": QUIET}
    NotebookClient(notebook, resources={"metadata": {"path": str(target.parent)}}, **options).execute()
    with atomic_path(target) as temporary:
        nbformat.write(tidy(notebook), temporary)


def smoke_twin(notebook: NotebookNode) -> NotebookNode:
    """The code cells alone, with ``profile = "smoke"``: what the tests execute and compare, without prose that reads numbers."""
    twin = copy.deepcopy(notebook)
    twin.cells = [cell for cell in twin.cells if cell.cell_type == "code"]
    if (cell := tagged(twin, "parameters")) is not None:
        cell.source = re.sub(r'^profile = "\w+"', 'profile = "smoke"', cell.source, flags=re.MULTILINE)
    for cell in twin.cells:
        cell.outputs, cell.execution_count = [], None
    return twin


def without_widgets(notebook: NotebookNode) -> NotebookNode:
    """Widgets become what they say without a kernel, a picture or a text; of one that only names itself nothing is left."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        outputs = cell.get("outputs", [])
        widgets = [output for output in outputs if output.get("data", {}).pop(WIDGET, None) is not None]
        mute = [output for output in widgets if not output.data or _is_repr(output.data)]
        if mute:
            cell.outputs = [output for output in outputs if not any(output is other for other in mute)]
    return notebook


def _is_repr(data: dict) -> bool:
    """``VBox(children=(...`` and nothing else; ipywidgets shortens it."""
    return set(data) == {"text/plain"} and bool(re.fullmatch(r"\w+\(.*(\)|…)\s*", data["text/plain"], re.DOTALL))


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Drop timings, file names, live widgets and the interpreter's patch version; give every cell a stable id."""
    notebook = without_widgets(notebook)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.setdefault("id", f"cell-{number:02d}")
    return notebook
