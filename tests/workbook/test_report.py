"""Pages of reports, from small notebooks whose outputs are written by hand."""

import base64
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from saverouter.workbook import markup, notebooks, pages, report

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text>ü</text></svg>'
LOADED = {"src", "href", "data", "srcset", "poster"}  # attributes whose address a browser fetches by itself
HOSTILE = """<script>alert("1")</script> & 'co' <b onclick="x">"""


class Page(HTMLParser):
    """The tags of a page as a browser would find them, and the text of each kind of tag."""

    def __init__(self, path):
        super().__init__()
        self.path, self.tags, self.texts, self._open = path, [], {}, []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def all(self, tag, attribute):
        return [attributes[attribute] for name, attributes in self.tags if name == tag and attribute in attributes]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "reports" / "smoke"
    (path / "notebooks").mkdir(parents=True)
    (path / ".done").mkdir()
    return path


def code(source="1", *outputs, tags=()):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})


def shown(kind, content):
    return new_output("display_data", {kind: content})


def finish(folder, name, *cells, title="Title", question="Why?", files=(), metadata=(), **parameters):
    """Leave behind what a finished notebook does, and give its page."""
    path = folder / "notebooks" / f"{name}.ipynb"
    cells = [new_markdown_cell(f"# {title}\n\n{question}"), *cells]
    nbformat.write(new_notebook(cells=cells, metadata=dict(metadata)), path)
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).touch()
    report.write_page(path, path.with_suffix(".html"))
    marker = {"parameters": {"profile": "smoke", **parameters}, "files": list(files)}
    (folder / ".done" / f"{name}.json").write_text(json.dumps(marker))
    report.write_index(folder)
    return Page(path.with_suffix(".html"))


def indexes(folder):
    return [Page(folder / "index.html"), Page(folder.parent / "index.html")]


def test_hostile_words_are_shown_as_they_are(folder):
    figure = code(f"# alt: {HOSTILE}\nplot()", shown("image/png", PNG), tags=["key-figure"])
    verdict = code("", new_output("stream", text=HOSTILE), tags=["verdict"])
    page = finish(folder, "00_a", figure, verdict, title=HOSTILE, question=HOSTILE, benchmark=HOSTILE)
    for index in indexes(folder):
        assert not {"script", "b"} & index.texts.keys()
        assert [text.split(maxsplit=1)[1].strip() for text in index.texts["h3"]] == [HOSTILE]
        assert f"00{HOSTILE}" in index.texts["li"]
        assert index.texts["p"].count(HOSTILE) == 2  # question and answer
        assert f"benchmark = {HOSTILE}" in index.texts["strong"]
        assert index.all("img", "alt") == [HOSTILE]
    assert page.texts["title"] == [HOSTILE] and page.all("img", "alt") == [HOSTILE]
    assert HOSTILE in page.texts["pre"] and "script" not in page.texts


def test_pages_run_nothing_and_load_nothing(folder):
    scripts = '<p>kept</p><script src="https://example.org/a.js"></script><SCRIPT>alert(1)</SCRIPT>'
    view = {"model_id": "m", "version_major": 2, "version_minor": 0}
    state = {"application/vnd.jupyter.widget-state+json": {"state": {"m": {}}, "version_major": 2, "version_minor": 0}}
    widget = new_output("display_data", {"application/vnd.jupyter.widget-view+json": view, "text/plain": "a widget"})
    outputs = [shown("text/html", scripts), shown("text/markdown", scripts)]
    outputs += [shown("application/javascript", "alert(1)"), widget]
    prose = f"Inline $x^2$ and\n\n$$y$$\n\n{scripts}\n\n```mermaid\ngraph TD\n```"
    raw = nbformat.v4.new_raw_cell(scripts, metadata={"raw_mimetype": "text/html"})
    cells = [new_markdown_cell(prose), code("1", *outputs), raw]
    page = finish(folder, "00_a", *cells, metadata={"widgets": state})
    text = page.path.read_text()
    assert "<script" not in text.lower() and "alert(1)" not in text
    assert page.texts["p"].count("kept") == 4 and "Inline $x^2$ and" in page.texts["p"]
    assert "a widget" in page.texts["pre"]
    for made in (page, *indexes(folder)):
        loaded = [attributes[key] for tag, attributes in made.tags if tag != "a" for key in LOADED & attributes.keys()]
        assert all(address.startswith("data:") for address in loaded)
        style = "".join(made.texts["style"])
        assert style and "@import" not in style and "url(http" not in style
        assert made.all("meta", "http-equiv") == ["Content-Security-Policy"]
        assert pages.POLICY in made.all("meta", "content")


@pytest.mark.parametrize(
    ("kind", "content", "held"),
    [("image/png", PNG, PNG.strip()), ("image/svg+xml", SVG, base64.b64encode(SVG.encode()).decode())],
)
def test_figures_are_inside_with_their_alt_text(folder, kind, content, held):
    output = new_output("display_data", {kind: content, "text/plain": "<Figure>"})
    cells = [
        code("# alt: The key\nplot()", output, tags=["key-figure"]),
        new_markdown_cell("## Then"),
        code("1", output),
    ]
    page = finish(folder, "00_a", *cells)
    assert page.all("img", "alt") == ["The key", "Figure: Then"]
    for made, count in [(page, 2), *((index, 1) for index in indexes(folder))]:
        assert [address.strip() for address in made.all("img", "src")] == [f"data:{kind};base64,{held}"] * count
        assert made.all("img", "alt")[0] == "The key"


def test_a_notebook_without_figure_has_a_plain_card(folder):
    page = finish(folder, "00_a", code())
    for made in (page, *indexes(folder)):
        assert "img" not in made.texts
    assert all(index.all("article", "class") == ["card plain"] for index in indexes(folder))


def test_a_cell_without_id_has_some_alt_text(folder):
    path = folder / "notebooks" / "00_a.ipynb"
    notebook = new_notebook(cells=[code("1", shown("image/png", PNG))])
    notebook.nbformat_minor = 4
    del notebook.cells[0]["id"]
    nbformat.write(notebook, path)
    report.write_page(path, path.with_suffix(".html"))
    assert Page(path.with_suffix(".html")).all("img", "alt") == ["Figure"]


def test_a_failed_notebook_is_named_and_leads_to_what_it_computed(folder):
    finish(folder, "00_a", code())
    cells = [new_markdown_cell("# Broken\n\nWhy?"), code("plot()", shown("image/png", PNG), tags=["key-figure"])]
    nbformat.write(new_notebook(cells=cells), folder / "notebooks" / "01_b.failed.ipynb")
    report.write_index(folder)
    for index in indexes(folder):
        assert "Broken" in index.texts["h3"][1] and "01Broken" in index.texts["li"]
        (said,) = [text for text in index.texts["p"] if "This notebook failed" in text]
        links = [link for link in index.all("a", "href") if "01_b" in link]
        assert links[0] == "#01_b" and [link.endswith("notebooks/01_b.failed.ipynb") for link in links[1:]] == [True]
        (about,) = [text for text in index.texts["p"] if "Profile smoke" in text]
        assert "1 notebook, 1 failed" in " ".join(about.split())
        assert index.all("img", "src") == []


def test_every_link_leads_to_a_file(folder):
    files = ["tables/main table.csv", "figures/a&b.svg"]
    prose = "[next](01_b.ipynb), [part](01_b.ipynb#Title), <a href='01_b.ipynb'>too</a>, `01_b.ipynb`, "
    prose += "[elsewhere](https://a.org/01_b.ipynb)"
    finish(folder, "00_a", new_markdown_cell(prose), files=files)
    finish(folder, "01_b")
    page = Page(folder / "notebooks" / "00_a.html")
    links = page.all("a", "href")
    assert links.count("01_b.html") == 4 and "01_b.html#Title" in links and "01_b.ipynb" in page.texts["code"]
    assert "https://a.org/01_b.ipynb" in links
    for made in (page, Page(folder / "notebooks" / "01_b.html"), *indexes(folder)):
        for link in made.all("a", "href"):
            target, _, anchor = link.partition("#")
            if target:
                assert target.startswith("https:") or (made.path.parent / unquote(target)).is_file()
            else:
                assert unquote(anchor) in {unquote(attributes.get("id", "")) for _, attributes in made.tags}
    for index, prefix in zip(indexes(folder), ("", "smoke/"), strict=True):
        assert {f"{prefix}tables/main%20table.csv", f"{prefix}figures/a%26b.svg"} <= set(index.all("a", "href"))


def test_only_pages_with_new_neighbours_are_made_anew(folder, monkeypatch):
    for name in ("00_a", "01_b", "03_d"):
        finish(folder, name)
    made, write = [], report.write_page
    monkeypatch.setattr(report, "write_page", lambda path, target: made.append(target.stem) or write(path, target))
    report.write_index(folder)
    assert made == []
    finish(folder, "02_c")
    assert made == ["02_c", "01_b", "03_d"]
    (folder / ".done" / "02_c.json").unlink()  # as when it is run again
    report.write_index(folder)
    assert made[3:] == ["01_b", "03_d"]


def test_code_is_folded_and_text_of_the_notebook_stays(folder):
    cells = [new_markdown_cell("*Q*<sub>b</sub>"), code("print('<i>')", new_output("stream", text="<i>"))]
    page = finish(folder, "00_a", *cells)
    assert page.all("input", "id") == ["show-code"] and "#show-code:checked" in "".join(page.texts["style"])
    assert page.texts["summary"] == ["Code"] and not page.all("details", "open")
    assert page.texts["sub"] == ["b"] and page.texts["pre"] == ["print('<i>')\n", "<i>"]


def test_one_cell_shows_the_parameters_that_counted(folder):
    declared = code('profile = "standard"  # größe\nseed = 42\nnames = ["a",\n  "b"]', tags=["parameters"])
    injected = code('# Parameters\nprofile = "smoke"\nnames = []\n', tags=["injected-parameters"])
    page = finish(folder, "00_a", declared, injected)
    assert page.texts["summary"] == ["Parameters: profile = 'smoke', seed = 42, names = []"]
    assert page.texts["pre"] == ['profile = "smoke"  # größe\nseed = 42\nnames = []\n']


@pytest.mark.parametrize(
    ("declared", "injected", "this", "text"),
    [
        ('profile = "standard"\nseed = 42', 'profile = "standard"', "", ""),
        ('profile = "standard"\nseed = 42', "", "", ""),
        ('profile = "standard"\nseed = 42', 'seed = 7\nprofile = "smoke"', "profile = smoke, seed = 7",
         "profile = standard, seed = 42"),
        ('profile = "smoke"', "", "profile = smoke", "profile = standard"),  # prose never reads smoke
        ('workload = "<b>"', 'workload = "<script>"', "workload = <script>", "workload = <b>"),
        ("", "", "", ""),
    ],
)  # fmt: skip
def test_a_banner_names_the_run_that_the_text_does_not_read(folder, declared, injected, this, text):
    cells = [code(declared, tags=["parameters"]), code(injected, tags=["injected-parameters"])]
    page = finish(folder, "00_a", *cells)
    said = [words for words in page.texts["p"] if words.startswith("Run with")]
    assert bool(said) == bool(this)
    if said:
        folded = "workload" in this  # the text of a run on other data
        ending = f"reads the numbers of {text} is folded." if folded else f"in the text are those of {text}."
        assert said[0].startswith(f"Run with {this}. ") and said[0].endswith(ending)
    for index in indexes(folder):
        said = [words for words in index.texts["p"] if words.startswith("Run with")]
        assert bool(said) == bool(this)
        if said:
            assert said[0].startswith(f"Run with {this}. ") and said[0].endswith(f"notebooks are those of {text}.")


def test_the_banner_of_an_index_names_the_notebooks_that_differ(folder):
    declared = code('profile = "smoke"\nbenchmark = "all"', tags=["parameters"])
    finish(folder, "00_a", declared)
    finish(folder, "01_b", declared, code('benchmark = "<i>"', tags=["injected-parameters"]))
    failed = [new_markdown_cell("# Broken"), code("seed = 1", tags=["parameters"])]
    failed.append(code("seed = 2", tags=["injected-parameters"]))  # what failed shows no numbers
    nbformat.write(new_notebook(cells=failed), folder / "notebooks" / "02_c.failed.ipynb")
    report.write_index(folder)
    for index in indexes(folder):
        (said,) = [words for words in index.texts["p"] if words.startswith("Run with")]
        assert said.startswith("Run with profile = smoke, benchmark = <i> (notebook 01). ")
        assert said.endswith("are those of profile = standard, benchmark = all.")


READS = {"tags": ["reads-default"]}


@pytest.mark.parametrize(("name", "injected", "folded"), [
    ("workload", 'workload = "my.csv"', True), ("data", 'data = "my.csv"', True), ("workload", 'profile = "smoke"', False),
    ("benchmark", 'benchmark = "other"', False),
])  # fmt: skip
def test_prose_that_reads_the_default_data_is_folded_on_others(folder, name, injected, folded):
    cells = [
        code(f'profile = "standard"\n{name} = "paretobandit"', tags=["parameters"]),
        code(injected, tags=["injected-parameters"]),
        new_markdown_cell("## A part\n\nThe 9 models.", metadata=READS),
        new_markdown_cell("## Another\n\nTrue of any."),
        new_markdown_cell("It was 10.", metadata=READS),
        new_markdown_cell("### Heading alone", metadata=READS),
    ]
    page = finish(folder, "00_a", *cells, question="> Why?\n\nOf 3,609 it is 47%.")
    path = folder / "notebooks" / "00_a.ipynb"
    notebook = nbformat.read(path, 4)
    notebook.cells[0].metadata = READS
    nbformat.write(notebook, path)
    report.write_page(path, page.path)
    soup = BeautifulSoup(page.path.read_text(), "html.parser")
    hidden = [part.extract() for part in soup.select("details.of-default")]
    texts = [part.select_one(".prose").get_text().strip() for part in hidden]
    assert texts == (["Of 3,609 it is 47%.", "The 9 models.", "It was 10."] if folded else [])
    assert all(not part.has_attr("open") and "default data" in part.summary.text for part in hidden)
    left = soup.main.get_text()
    assert all(words in left for words in ("Title", "Why?", "A part", "True of any.", "Heading alone"))
    assert ("3,609" in left) == ("It was 10." in left) == (not folded)
    assert len({tag["id"] for tag in soup.find_all(id=True)}) == len(soup.find_all(id=True))


def test_a_widget_shows_its_static_form_or_nothing(folder):
    kind, view = "application/vnd.jupyter.widget-view+json", {"model_id": "m", "version_major": 2, "version_minor": 0}
    boxes = [
        "VBox(children=(FloatSlider(value=1.0), Output()))",
        "interactive(children=(IntSlider(value=1, description='k…",
    ]
    outputs = [new_output("display_data", {kind: view, "text/plain": text}) for text in boxes]
    outputs += [new_output("display_data", {kind: view}), shown("image/png", PNG)]
    outputs += [new_output("display_data", {kind: view, "text/plain": "Output()", "image/png": PNG})]
    outputs += [new_output("display_data", {kind: view, "text/plain": "Volume 1,000 (a month)"})]
    page = finish(folder, "00_a", code("panel()", *outputs), code("repr", shown("text/plain", "VBox(1)")))
    assert page.texts["pre"] == ["panel()\n", "Volume 1,000 (a month)", "repr\n", "VBox(1)"]
    assert len(page.all("img", "src")) == 2
    text = page.path.read_text()
    assert not [word for word in ("Loading", "widget", "model_id", "FloatSlider", "interactive(") if word in text]


def test_a_committed_notebook_keeps_no_live_widget():
    kind, view = "application/vnd.jupyter.widget-view+json", {"model_id": "differs"}
    outputs = [new_output("display_data", {kind: view, "text/plain": "VBox(children=())"}), shown("image/png", PNG)]
    tidied = notebooks.tidy(new_notebook(cells=[code("panel()", *outputs)], metadata={"widgets": {"x": 1}}))
    assert [list(output.data) for output in tidied.cells[0].outputs] == [
        ["image/png"]
    ] and "widgets" not in tidied.metadata


def test_the_computed_answer_stands_below_the_question_and_in_its_place(folder):
    cells = [code("seed = 7", tags=["parameters"]), code("", new_output("stream", text="42 <b>\n"), tags=["verdict"])]
    page = finish(folder, "00_a", *cells, question="> Why?\n\nBecause.")
    assert page.texts["p"][page.texts["p"].index("Why?") :][:3] == ["Why?", "42 <b>", "Because."]
    assert "Computed answer (seed 7)" in page.texts["h2"] and "42 <b>\n" in page.texts["pre"]
    assert "Computed answer" not in finish(folder, "01_b").path.read_text()


def test_pages_name_their_neighbours_by_title(folder):
    for name, title in {"00_a": "What's <first>?", "01_b": "Second", "02_c": "Third & last"}.items():
        finish(folder, name, title=title)
    page = Page(folder / "notebooks" / "01_b.html")
    assert {"What's <first>?", "PreviousWhat's <first>?", "Third & last", "NextThird & last"} <= set(page.texts["a"])
    assert page.all("a", "href").count("00_a.html") == page.all("a", "href").count("02_c.html") == 2


def test_cells_and_headings_can_be_linked_to(folder):
    cells = [
        new_markdown_cell("## A *part*\n\n## Its `end`"),
        code("1", shown("text/html", "x"), tags=["claims"]),
        code(),
    ]
    page = finish(folder, "00_a", *cells)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) and {"claims", "A-part", "Its-end", cells[1].id, cells[2].id} <= set(ids)
    assert page.texts["li"] == ["A part", "Its end"] and {"#A-part", "#Its-end"} <= set(page.all("a", "href"))


@pytest.mark.parametrize("tags", [(), ("claims",)])
def test_the_wall_of_claims_finds_its_cell(folder, tags):
    source = 'save_table(judged, f"01_claims_{benchmark}")'
    cells = [code("save_table(x, '01_x')"), code(source, new_output("stream", text="here"), tags=tags), code(source)]
    soup = BeautifulSoup(finish(folder, "01_b", *cells).path.read_text(), "html.parser")
    (place,) = soup.select("#claims")
    assert place.get_text().strip() == "here" and place.parent["id"] == cells[1].id


def test_versions_are_folded_below_the_way_on(folder):
    finish(folder, "00_a", code("watermark()", shown("text/html", "<p>numpy 2</p>")))
    finish(folder, "01_b")
    text = (folder / "notebooks" / "00_a.html").read_text()
    places = [text.index(part) for part in ('class="onward"', "<summary>Versions</summary>", "<p>numpy 2</p>")]
    assert places == sorted(places) and "watermark()" not in text


def test_what_could_act_is_gone_and_folded_tables_stay():
    table = "<details open><summary>All</summary><table><tr><td>1</td></tr></table></details>"
    hostile = (
        "<a href='JavaScript:x()' onclick='x()'>a</a><iframe src=x></iframe><meta http-equiv=refresh><base href=x>"
    )
    html = markup.cleaned(f"{table}{hostile}<style scoped>th {{color: red}}</style><style>#T_a {{color: red}}</style>")
    assert "<summary>All</summary>" in html and "<td>1</td>" in html.replace(' class="number"', "") and "#T_a" in html
    assert not [word for word in ("javascript", "onclick", "iframe", "meta", "base", "th {") if word in html.lower()]


def test_tables_align_numbers_and_keep_their_first_column():
    index = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")], names=["name", "part"])
    frame = pd.DataFrame({("cost", "here"): ["1.2K", "never", "—"], ("cost", "note"): ["<b>", "", "2"]}, index=index)
    soup = BeautifulSoup(markup.cleaned(frame.to_html()), "html.parser")
    assert [cell.text for cell in soup.select("tbody .number")] == ["1.2K", "never", "—"]
    assert [cell.text for cell in soup.select("thead .number")] == ["here"]
    assert [[cell.text for cell in row("th")] for row in soup.select("thead tr")][1] == ["name", "part", "here", "note"]
    assert [cell.text for cell in soup.select("tbody .first")] == ["a", "b"] and "<b>" in soup.text
    assert soup.select_one("div.table[tabindex='0'] > table")


def test_pages_have_the_colours_of_the_index():
    def colours(name):
        text = (pages.TEMPLATES / name).read_text()
        return re.findall(r"--(?:ink|soft|paper|card|line|accent|bad): #\w+", text)

    assert len(colours("page/page.css")) == 14 and colours("page/page.css") == colours("style.css")
