"""The what-if panel: its sliders ask the same code as the figure, names in it stay text, and headless runs store none."""

import pytest
from conftest import EASY_AND_HARD, by_kind

from saverouter.studies import scenarios
from saverouter.studies.decision import decide
from saverouter.workbook import panel as room


@pytest.fixture(scope="module")
def found():
    return decide(
        by_kind(EASY_AND_HARD, (0.001, 0.01), n=3_000, models=["cheap", "<img src=x onerror=alert(1)>"]), margin=2
    )


def test_sliders_answer_as_the_scenarios_do(found):
    chosen = scenarios.on_test(found)
    box = room.sliders(found, chosen)
    volume, margin, price, answer = box.children
    said = answer.value
    price.value, margin.value, volume.value = 0.5, 5.0, 1e6
    assert answer.value != said
    expected = room.in_a_sentence(found, scenarios.asked_again(found, chosen, 1e6, 5.0, 0.5))
    assert answer.value.replace("&lt;", "<").replace("&gt;", ">").replace("&#x27;", "'") == expected
    assert "read off the test, not promised" in expected


def test_a_name_with_markup_stays_text(found):
    box = room.sliders(found, scenarios.on_test(found))
    assert "<img" not in box.children[-1].value and "&lt;img" in box.children[-1].value


def test_nobody_looks_and_no_widget_is_stored(found):
    assert room.panel(found, scenarios.on_test(found)) is None


def test_without_an_answer_there_is_no_panel():
    found = decide(by_kind(EASY_AND_HARD, (0.001, 0.01), n=20))
    assert room.panel(found, None) is None
