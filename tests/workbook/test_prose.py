"""Every number in prose stands in an output beside it, or in the file that its sentence names; nothing is executed."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from prose import ROOT, numbers, sentences, unfounded, unfounded_in_notebook

from saverouter.workbook import notebooks

PATHS = notebooks.all_notebooks()
PAGES = [ROOT / name for name in ("README.md", "data/README.md", "benchmarks/README.md", "examples/gateway/README.md")]


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_the_numbers_of_a_notebook_stand_in_its_outputs(path):
    assert unfounded_in_notebook(path) == []


ANY_DATA = [path for path in PATHS if set(notebooks.DATA) & set(notebooks.declared_parameters(path))]


@pytest.mark.parametrize("path", ANY_DATA, ids=[path.stem for path in ANY_DATA])
def test_prose_of_a_notebook_for_any_data_reads_numbers_only_where_it_says_so(path):
    """What is not tagged ``reads-default`` is true of every table: its numbers are those of the code."""
    cells = notebooks.read_notebook(path).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    tagged = [notebooks.READS_DEFAULT in cell.metadata.get("tags", []) for cell in cells]
    prose = [(cell.source, mark) for cell, mark in zip(cells, tagged, strict=True) if cell.cell_type == "markdown"]
    assert not [number for text, mark in prose if not mark for number in unfounded(text, "0 and 1", code)]
    assert any(unfounded(text, "0 and 1", code) for text, mark in prose if mark)  # else nothing had to be tagged


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_numbers_of_a_page_come_from_committed_tables(path):
    assert unfounded(path.read_text(encoding="utf-8"), "") == []


@pytest.mark.parametrize(("prose", "shown"), [
    ("at 47% of its cost", "cost ratio 0.4691"), ("at 47% of its cost", "47%"), ("after 4,900 queries", "4.92K"),
    ("after 193,000 queries", "193.1K"), ("1.2 million", "1,200,317"), ("0.60", "0.6013"), ("-0.2 points", "-0.17"),
    ("nine of twelve arrivals", "9 of 12"), ("`7` of [9](x/9.csv), Figure 3, K = 8, seed 42", ""),
])  # fmt: skip
def test_a_number_stands_where_an_output_rounds_to_it(prose, shown):
    assert unfounded(prose, shown) == []


@pytest.mark.parametrize(("prose", "shown"), [
    ("at 48% of its cost", "cost ratio 0.4691"), ("after 4,900 queries", "4.96K"), ("after 4,917 queries", "4.92K"),
    ("0.61", "0.6013"), ("0.2 points", "-0.17"), ("eight of twelve arrivals", "9 of 12"), ("1.3 million", "1,200,317"),
    ("0.601", "0.6"), ("17%", "17"[:0]),
])  # fmt: skip
def test_a_wrong_or_finer_number_is_found(prose, shown):
    assert len(unfounded(prose, shown)) == 1


def test_a_planted_wrong_number_is_found_in_a_committed_notebook(tmp_path):
    """One digit of one sentence is changed; the check names the number and the sentence."""
    notebook = notebooks.read_notebook(PATHS[0])
    lead = notebook.cells[0]
    old = next(number.text for number in numbers(lead.source) if number.text.endswith("%"))
    wrong = f"{int(old[:-1]) + 13}.7%"
    lead.source = lead.source.replace(old, wrong, 1)
    nbformat.write(notebook, tmp_path / PATHS[0].name)
    (found,) = set(unfounded_in_notebook(tmp_path / PATHS[0].name)) - set(unfounded_in_notebook(PATHS[0]))
    assert wrong in found


def test_a_section_may_not_borrow_from_another(tmp_path):
    output = new_output("stream", text="0.4691")
    cells = [
        new_markdown_cell("# Title\n\nIt is 47%."),
        new_markdown_cell("## One"),
        new_code_cell("shown", outputs=[output]),
        new_markdown_cell("## Two\n\nIt is 47%."),
        new_markdown_cell("## Take-aways\n\nIt is 47%."),
    ]
    nbformat.write(new_notebook(cells=cells), tmp_path / "00_x.ipynb")
    assert len(unfounded_in_notebook(tmp_path / "00_x.ipynb")) == 1


def test_a_named_source_is_looked_up():
    said = "The paper says 30%.<!-- source: data/published/saturation.csv --> Here 35%."
    assert [text.split()[-1] for text, _ in sentences(said) if text.strip()] == ["30%.", "35%."]
    assert unfounded(said, "0.35") == []
    assert len(unfounded(said.replace("30%", "31%"), "0.35")) == 1
