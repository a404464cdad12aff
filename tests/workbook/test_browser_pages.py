"""Two committed notebooks as pages in a real browser: at a desk and on a phone, in light and dark."""

import nbformat
import pandas as pd
import pytest
from browser import errors, open_browser, overflow
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from saverouter.workbook import notebooks, report, tables

pytest.importorskip("selenium", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

HOSTILE = "<img src=x onerror='document.title=1'>"
VIEWS = [(1280, False), (1280, True), (390, False), (390, True)]
# How many characters a line holds on average, for every paragraph of four lines or more.
LINES = """
const counts = [];
for (const p of document.querySelectorAll('.prose > p')) {
  const lines = Math.round(p.getBoundingClientRect().height / parseFloat(getComputedStyle(p).lineHeight));
  if (lines >= 4) counts.push(p.textContent.length / lines);
}
return counts;"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of the first and the third notebook, and of one with hostile names."""
    folder = tmp_path_factory.mktemp("reports") / "smoke" / "notebooks"
    folder.mkdir(parents=True)
    (folder.parent / ".done").mkdir()
    for path in notebooks.select(["0", "2"]):
        nbformat.write(notebooks.read_notebook(path), folder / path.name)
        report.write_page(path, folder / f"{path.stem}.html")
        (folder.parent / ".done" / f"{path.stem}.json").write_text('{"parameters": {}, "files": []}')
    path = folder / "09_hostile.ipynb"
    frame = pd.DataFrame({HOSTILE: [HOSTILE, "b"]}, index=[HOSTILE, "a"])
    outputs = [
        frame._repr_html_(),
        tables.pretty(frame, caption=HOSTILE).data,
        tables.folded(HOSTILE, tables.pretty(frame)).data,
        tables.pretty(
            pd.DataFrame({"cost": [0.1, 0.2]}, index=pd.Index([0.5, 1.0], name="points")), key="numbers"
        ).data,
    ]
    cells = [new_code_cell("1", outputs=[new_output("display_data", {"text/html": html}) for html in outputs])]
    cells.insert(0, new_markdown_cell("# Hostile\n\nWhy?"))
    nbformat.write(new_notebook(cells=cells), path)
    report.write_page(path, path.with_suffix(".html"))
    report.write_index(folder.parent)  # now each page knows its neighbours
    return sorted(folder.glob("*.html"))


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{'dark' if view[1] else 'light'}")
def view(request):
    width, dark = request.param
    with open_browser(width, dark) as browser:
        yield browser, width, dark


def luminance(browser, element):
    """How bright the background of an element is, from 0 to 255."""
    text = browser.find_element(By.CSS_SELECTOR, element).value_of_css_property("background-color")
    return sum(float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3]) / 3


def test_pages_fit_and_stay_quiet(view, pages):
    browser, width, dark = view
    for page in pages:
        browser.get(page.as_uri())
        assert errors(browser) == [] and overflow(browser) == 0
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert (luminance(browser, "body") < 60) == dark == (luminance(browser, ".bar") < 60)
        browser.execute_script("window.scrollTo(0, document.body.scrollHeight / 2)")
        assert browser.execute_script("return document.querySelector('.bar').getBoundingClientRect().top") == 0


def test_lines_have_about_72_characters(pages):
    with open_browser(1280, False) as browser:
        for page in pages[:2]:
            browser.get(page.as_uri())
            counts = browser.execute_script(LINES)
            assert counts and 62 <= sum(counts) / len(counts) <= 76


def test_code_is_closed_and_opens_with_the_keyboard(view, pages):
    browser, *_ = view
    browser.get(pages[0].as_uri())
    assert visible_code(browser) and not any(visible_code(browser))
    browser.find_element(By.CSS_SELECTOR, ".code summary").send_keys(Keys.ENTER)
    assert visible_code(browser)[0] and not any(visible_code(browser)[1:])
    browser.find_element(By.ID, "show-code").send_keys(Keys.SPACE)
    assert all(visible_code(browser))


def visible_code(browser):
    return browser.execute_script("return [...document.querySelectorAll('.highlight')].map(e => e.checkVisibility())")


def test_contents_lead_below_the_bar(view, pages):
    browser, *_ = view
    browser.get(pages[1].as_uri())
    browser.find_element(By.CSS_SELECTOR, ".contents summary").send_keys(Keys.ENTER)
    link = browser.find_elements(By.CSS_SELECTOR, ".contents li a")[1]
    assert link.is_displayed()
    link.send_keys(Keys.ENTER)
    top, bar = browser.execute_script(
        "return [document.querySelector(':target'), document.querySelector('.bar')].map(e => e.getBoundingClientRect())"
    )
    assert bar["bottom"] <= top["top"] < 200


def test_previous_and_next_lead_there_and_back(view, pages):
    browser, *_ = view
    browser.get(pages[0].as_uri())
    for link, page in ((".onward .after", pages[1]), (".onward .before", pages[0]), ("#bar .after", pages[1])):
        found = browser.find_element(By.CSS_SELECTOR, link)
        assert found.is_displayed()
        found.send_keys(Keys.ENTER)
        assert browser.current_url == page.as_uri() and errors(browser) == []


def test_wide_tables_scroll_inside_and_keep_their_first_column(pages):
    with open_browser(390, False) as browser:
        browser.get(pages[1].as_uri())
        widths = "return [...document.querySelectorAll('.table')].map(t => t.scrollWidth - t.clientWidth)"
        widest = browser.execute_script(widths)
        assert max(widest) > 100
        left = """const table = document.querySelectorAll('.table')[arguments[0]]; table.scrollLeft = 100;
            return [table, table.querySelector('tbody .first')].map(e => e.getBoundingClientRect().left)"""
        table, first = browser.execute_script(left, widest.index(max(widest)))
        assert abs(first - table) <= 2


def test_numbers_stand_below_their_headers(pages):
    """Also those of a table's index, whose own style says left."""
    sides = "return [...document.querySelectorAll('#T_numbers .number')].map(e => getComputedStyle(e).textAlign)"
    with open_browser(1280, False) as browser:
        browser.get(pages[2].as_uri())
        assert browser.execute_script(sides) == ["right"] * 6


def test_html_in_names_stays_text(pages):
    with open_browser(1280, False) as browser:
        browser.get(pages[2].as_uri())
        browser.find_element(By.CSS_SELECTOR, ".html summary").send_keys(Keys.ENTER)
        assert browser.title == "Hostile" and browser.find_elements(By.CSS_SELECTOR, "main img, script") == []
        cells = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, ".table td, .table th, .html summary")]
        assert cells.count(HOSTILE) == 3 * 3 + 1
