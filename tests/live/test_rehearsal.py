"""A rehearsal answers, charges and can be interrupted as recorded; what is drawn of its ledger is its money."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.live import LiveFeedback, Rehearsal, read_ledger
from saverouter.workbook import figures

matplotlib.use("Agg")


def terms(server, folder, **changes):
    given = {"models": server.models, "judge": server.judge, "prices": server.prices, "max_spend": 100.0, "workers": 4}
    return given | {"ledger": folder / "bought.sqlite"} | changes


@pytest.fixture
def work():
    return make_workload(n=60, models=3, missing=0.2)


def test_it_answers_and_charges_as_recorded(work, tmp_path):
    work = replace(work, cost=np.where([True, True, False], work.cost, 0 * work.cost))  # the third is free
    mask = np.isfinite(work.quality)
    rows, columns = np.nonzero(mask)
    with Rehearsal(work) as server, LiveFeedback(work, **terms(server, tmp_path), available=mask) as feedback:
        quality, cost = feedback.reveal(rows, columns)
        assert (quality == work.quality[mask]).all()
        np.testing.assert_allclose(cost, work.cost[mask], rtol=1e-3)
        assert server.calls == mask.sum() and server.billed == pytest.approx(feedback.spent)
        row, column = np.argwhere(~mask)[0]
        with pytest.raises(KeyError):
            server.answer(work.models[column], work.prompts[row])


def test_an_interruption_loses_nothing_and_the_router_is_the_recorded_one(work, tmp_path):
    work = make_workload(n=60, models=3)
    options = {"k": 2, "seed": 3, "batch": 6}
    with Rehearsal(work, seconds=0.002, interrupt_after=30) as server:
        with LiveFeedback(work, **terms(server, tmp_path)) as feedback, pytest.raises(KeyboardInterrupt):
            sr.SaveRouter(**options).fit(work.queries, feedback)
        assert server.calls == len(read_ledger(tmp_path / "bought.sqlite").observations) < 120
        with LiveFeedback(work, **terms(server, tmp_path)) as feedback:
            router = sr.SaveRouter(**options).fit(work.queries, feedback)
        assert server.calls == 120 and server.billed == pytest.approx(feedback.spent)
    recorded = work.feedback()
    same = sr.SaveRouter(**options).fit(work.queries, recorded)
    bought = ["row", "model", "quality"]
    assert feedback.observations[bought].equals(recorded.observations[bought])
    assert (router.predict_quality(work.queries) == same.predict_quality(work.queries)).all()
    book = read_ledger(tmp_path / "bought.sqlite")
    ax = figures.money_over_time(book)
    spent = [line.get_ydata() for line in ax.lines if line.get_label() == "spent"]
    later = [line for line in ax.lines if len(line.get_ydata()) > 2]
    assert len(spent) == 1 and len(later) == 2 and later[-1].get_ydata()[-1] == pytest.approx(book.spent)
    assert "stopped" in " ".join(text.get_text() for text in ax.texts) and "cap" not in {
        text.get_text() for text in ax.texts
    }


def test_it_listens_on_this_machine_alone(work):
    with Rehearsal(work) as server:
        assert server.address.startswith("http://127.0.0.1:")
