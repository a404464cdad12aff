"""The front page, from small made-up tables."""

import json
import re

import made_up
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from made_up import HOSTILE, SIMULATED

from saverouter.paper import published
from saverouter.workbook import front, outputs


def page_of(folder):
    return BeautifulSoup((folder / "index.html").read_text(), "html.parser")


def words(tag):
    return " ".join(tag.get_text(" ").split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made_up.write(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def page(folder):
    return page_of(folder)


def test_the_question_is_answered_in_three_computed_sentences(page):
    assert page.h1.text == "Does LLM routing pay for itself?"
    said = [words(item.find_all("p")[-1]) for item in page.select(".answers li")]
    assert len(said) == 3
    assert "pays back on 1 of 2 workloads, after 2K queries; it is the first router to do so on 1" in said[0]
    assert "the next router takes 10 times as many" in said[0]
    assert (
        "on 1 of 2 workloads (llmrouterbench) a single cheaper model does it at about SaveRouter's cost or less"
        in said[1]
    )
    assert said[2] == "Of 3 statements of the paper 1 holds here, 1 does not, and 1 cannot be tested."


def test_a_router_that_never_pays_back_stands_in_the_lane_of_never(page):
    lane = f"left:{front.left(float('inf'), [1e3, 1e7])}%"
    first, second = page.select(".payback > li:not(.axis)")
    assert [mark["style"] for mark in second.select("i.ours:not(.hollow)")] == [lane]
    assert "SaveRouter never pays back; kNN pays back after 8K queries" in words(second.select_one(".hidden"))
    assert lane not in [mark.get("style") for mark in first.select("i.ours:not(.hollow)")]
    assert "never on 1 of 3 seeds" in words(first.select_one(".values .ours"))
    assert [words(tick) for tick in page.select(".axis span")] == ["1K", "10K", "100K", "1M", "10M", "never"]


def test_published_values_are_hollow_marks_and_seeds_whiskers(page):
    first, second = page.select(".payback > li:not(.axis)")
    marks = [1e3, 1e7]
    paper = published("main_results").set_index(["benchmark", "method"])["sa_bep"]["llmrouterbench"]
    assert paper["SaveRouter"] == 5300
    hollow = [f"left:{front.left(paper[name], marks)}%" for name in ("SaveRouter", "kNN")]
    assert [mark["style"] for mark in first.select("i.hollow")] == hollow
    assert "published 5.3K" in words(first.select_one(".hidden"))
    (ours, other) = [mark["style"] for mark in first.select("i.whisker")]
    assert ours == f"left:{front.left(1500, marks)}%;right:{100 - front.left(2600, marks)}%"
    assert other == f"left:{front.left(15_000, marks)}%;right:{100 - front.left(40_000, marks)}%"
    assert not second.select("i.hollow, i.whisker")  # a workload of one's own has neither


def test_the_cheapest_single_model_stands_beside_the_router_at_every_margin(page):
    first, second = page.select(".mini")
    assert [words(name) for name in first.select("dt")] == [
        "as good as the best", "0.5 points below", "1 point below", "2 points below"
    ]  # fmt: skip
    told = [words(share) for share in first.select(".share")]
    assert told[:2] == ["◂ 50% SaveRouter , cheaper", "100% big"]
    assert told[4:6] == ["35% SaveRouter", "◂ 20% small , cheaper"]
    assert "not reached SaveRouter" in words(second.select_one("dd.ours.unreached"))
    assert words(second.find_all("dd", class_="next")[0]) == f"◂ 100% {HOSTILE} , cheaper"


def test_a_tile_tells_the_statement_and_both_numbers_and_leads_to_the_cell(folder, page):
    tiles = page.select(".claim")
    assert [words(tile.button) for tile in tiles] == ["✓", "✗", "?"]
    assert tiles[0].button["aria-label"] == "holds: SaveRouter pays back first"
    assert tiles[0].button["popovertarget"] == tiles[0].find(popover=True)["id"]
    assert words(tiles[0].dl) == "Here ✓ holds SaveRouter 2K kNN 20K Published holds SaveRouter 5.3K kNN 9K"
    for name, prefix in (("index.html", ""), ("../index.html", "standard/")):
        link = BeautifulSoup((folder / name).read_text(), "html.parser").select_one(".claim a")["href"]
        assert link == f"{prefix}notebooks/02_main.html#claims"
    target = BeautifulSoup((folder / "notebooks" / "02_main.html").read_text(), "html.parser").select_one("#claims")
    assert words(target) == "judged"


@pytest.mark.parametrize(
    ("kinds", "left_out"),
    [
        (("claims",), ["The payback of SaveRouter", "The comparison with single models"]),
        (("frontiers",), ["The comparison with single models", "The wall of the paper's claims"]),
        ((), ["The payback of SaveRouter", "The comparison with single models", "The wall of the paper's claims"]),
        (made_up.ALL, []),
    ],
)
def test_what_no_table_tells_is_left_out_with_a_word_on_what_to_run(tmp_path, kinds, left_out):
    page = page_of(made_up.write(tmp_path, kinds))
    said = [words(part) for part in page.select("p.missing") if part.find_parent("noscript") is None]
    assert [text.split(" is left out")[0] for text in said] == left_out
    assert all("make reproduce" in text and re.search(r"notebooks? \d\d", text) for text in said)
    parts = {".payback": "frontiers", "#frontiers": "frontiers", ".wall": "claims"}
    for part, kind in parts.items():
        assert bool(page.select(part)) == (kind in kinds)
    assert bool(page.select(".mini")) == ({"frontiers", "singles"} <= set(kinds))
    assert len(page.select("article.card")) == 1


def test_a_broken_table_and_one_of_a_failed_notebook_count_for_nothing(tmp_path):
    folder = made_up.write(tmp_path)
    (folder / "tables" / "02_frontiers.csv").write_text("workload,router\n'a")
    (folder / "tables" / "02_claims.csv").rename(folder / "tables" / "05_claims.csv")
    about = {"profile": "standard", "cap": None, "count": "", "banner": "", "entries": [], "policy": "default-src 'none'",
             "alone": False}  # fmt: skip
    soup = BeautifulSoup(front.render(folder, about), "html.parser")
    assert not soup.select(".payback, .mini, .claim, script")


def test_hostile_names_stay_text(folder):
    for name in ("index.html", "../index.html"):
        page = BeautifulSoup((folder / name).read_text(), "html.parser")
        assert page.select("main img, main b:not(.track b)") == []
        assert [script.get("type") for script in page("script")] == ["application/json", None]
        for place in (".workload .name", ".mini h3 .name", ".mini dd .who", ".statement", ".card h3", ".card .answer"):
            assert HOSTILE in " ".join(words(tag) for tag in page.select(place)), place
        assert f"does not hold: It beats {HOSTILE}" in [tile["aria-label"] for tile in page.select("button.tile")]


def test_a_name_that_looks_like_a_formula_is_shown_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SAVEROUTER_REPORTS", str(tmp_path))
    names = ["=1+1", "'=1", "@home", "-", "plain"]
    table = pd.DataFrame({"workload": "w", "model": names, "quality": 0.5, "cost": 1.0})
    outputs.save_table(table, "00_singles")
    assert "'=1+1" in (tmp_path / "tables" / "00_singles.csv").read_text()
    read = front.read_tables(tmp_path, "*_singles.csv", front.SINGLES, ["00"])["00_singles.csv"]
    assert read["model"].tolist() == names


def test_embedded_data_cannot_end_its_block_and_only_the_script_may_run(folder):
    text = (folder / "index.html").read_text()
    (block,) = re.findall(r'<script type="application/json" id="frontiers">(.*?)</script', text, re.DOTALL)
    assert "<" not in block
    first, second = json.loads(block)
    assert first["name"] == SIMULATED and second["name"] == second["model"] == HOSTILE
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert (
        front.allowed("", script).removeprefix("; ") in policy.replace("&#39;", "'")
        and "unsafe" not in policy.split("script-src")[1]
    )
