"""The front page in a real browser: it fits and stays quiet, computes as the package does, and needs no mouse."""

import made_up
import pytest
from browser import WIDTHS, browser, errors, overflow, resize  # noqa: F401
from made_up import HOSTILE, SIMULATED

from saverouter.paper import short

# Workload, router, queries a year, target in per cent, price of the dear model.
SETTINGS = [
    (SIMULATED, "SaveRouter", 1_000_000, 100, 1.0),
    (SIMULATED, "kNN", 250_000, 93.5, 2.5),
    (SIMULATED, "SaveRouter", 40_000, 98.5, 0.3),
    (HOSTILE, "kNN", 5_000, 100, 0.7),
    (HOSTILE, "SaveRouter", 5_000, 100, 1.0),
]
SET = """
const form = document.getElementById("what-if"), [workload, router, volume, target, price] = arguments;
const choose = (select, name) => {
  select.value = [...select.options].findIndex((option) => option.text === name);
  select.dispatchEvent(new Event("change", { bubbles: true }));
};
choose(form.elements.workload, workload);
choose(form.elements.router, router);
for (const [name, value] of Object.entries({ volume, target, price })) {
  form.elements[name].value = value;
  form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
}
const work = JSON.parse(document.getElementById("frontiers").textContent).find((work) => work.name === workload);
const found = judge(work, work.routers.find((each) => each.name === router), volume, target / 100, price);
const said = (id) => document.getElementById(id).textContent;
return { payback: String(found.payback), bill: String(found.bill), best: found.best, policy: found.policy ?? null,
         shown: said("payback"), named: said("policy"), routed: said("routed-bill"), valid: !form.hidden };"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return (made_up.write(tmp_path_factory.mktemp("reports")).parent / "index.html").as_uri()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_stays_quiet(browser, page, width, dark):  # noqa: F811
    resize(browser, width, dark=dark)
    browser.get(page)
    assert errors(browser) == [] and overflow(browser) == 0
    text = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in text[4:-1].split(",")) < 180) == dark
    assert browser.execute_script("return !document.getElementById('what-if').hidden")


@pytest.mark.parametrize(("workload", "router", "volume", "target", "price"), SETTINGS)
def test_the_what_if_computes_as_the_package_does(browser, page, workload, router, volume, target, price):  # noqa: F811
    browser.get(page)
    said = browser.execute_script(SET, workload, router, volume, target, price)
    result = made_up.runs()[workload][router].repriced(price).at(target=target / 100, horizon=volume)
    point = result.operating_point
    bill = result.supervision_cost + volume * result.serving_cost
    payback = float(said["payback"].replace("Infinity", "inf"))
    assert payback == result.sa_bep and float(said["bill"].replace("Infinity", "inf")) == bill
    assert said["valid"] and said["shown"] == short(result.sa_bep)
    assert said["policy"] == (None if point is None else point["policy"])
    if point is None:
        assert said["routed"] == "does not reach the target" and said["named"].startswith("none: its best is")
    else:
        share = float(f"{100 * bill / (volume * result.reference.cost):.3g}")
        assert said["named"] == point["policy"] and said["routed"].startswith(f"{share:g}% · ")


@pytest.mark.parametrize("width", WIDTHS)
def test_tiles_open_with_the_keyboard_and_close_with_escape(browser, page, width):  # noqa: F811
    from selenium.webdriver.common.keys import Keys

    resize(browser, width)
    browser.get(page)
    for tile in browser.find_elements("css selector", "button.tile"):
        words = browser.find_element("id", tile.get_attribute("popovertarget"))
        assert not words.is_displayed()
        tile.send_keys(Keys.ENTER)
        assert words.is_displayed() and overflow(browser) == 0
        box = words.rect
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        browser.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert not words.is_displayed() and browser.switch_to.active_element == tile
    assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_html_in_names_stays_text(browser, page):  # noqa: F811
    browser.get(page)
    browser.execute_script(SET, HOSTILE, "kNN", 5000, 100, 1)
    assert browser.title.startswith("Does LLM routing") and errors(browser) == []
    assert browser.find_elements("css selector", "main img") == []
    shown = {name: browser.find_element("id", name).text for name in ("price-name", "best-name", "target-shown")}
    assert all(HOSTILE in text for text in shown.values()), shown
    options = browser.find_elements("css selector", "select[name=workload] option")
    assert HOSTILE in [option.text for option in options]
