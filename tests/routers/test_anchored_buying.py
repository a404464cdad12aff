"""Anchored buying: the compiled form against the readable one, known purchases on recorded tables, and its laws."""

import numpy as np
import pytest
from conftest import Losing, corrupted, make_workload
from test_acquisition import BATCHES, AskedLive

import saverouter as sr
from saverouter.routers.saverouter.acquisition import acquire

REFERENCE = "model-4"  # the dearest of five


def groups_of(work):
    return np.unique(work.tasks.astype(str), return_inverse=True)[1]


def bought(feedback, work, budget, reference=REFERENCE, **options):
    return acquire(feedback, groups_of(work), rule="anchored", reference=reference, budget=budget, **options)


class Priced(AskedLive):
    """Live feedback with a price list."""

    @property
    def prices(self):
        return np.nanmean(self.cost, axis=0)


def third(work):
    return np.nansum(work.cost) / 3


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("batch", BATCHES)
def test_the_compiled_rule_is_the_readable_one(missing, batch):
    """A replay stops before the outcome that would exceed the money, a live purchase after the batch that reaches it."""
    work = make_workload(missing=missing, models=7)
    fast = bought(work.feedback(), work, third(work), "model-5", batch=batch)
    slow = bought(Priced(work), work, third(work), "model-5", batch=batch)
    shared = len(fast[0])
    assert 0 <= len(slow[0]) - shared <= batch
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other[:shared])


def test_missing_outcomes_are_paid_for_and_not_learnt_from(masked_work):
    replayed = Losing(masked_work)
    live = Priced(masked_work, replayed.lost)
    fast, slow = (bought(feedback, masked_work, third(masked_work)) for feedback in (replayed, live))
    assert np.isfinite(fast[2]).all() and replayed.observations["quality"].isna().any()
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_array_equal(one, other[: len(one)])


# Table, seed, K of the paper's rule whose money is spent, batch and reference; then the pairs that are bought, how many of them
# of the reference, the money in calls to the reference (their mean cost on the test), and the first pairs.
KNOWN = [
    ("mmlu_pro.parquet", 10, 1, 1, "gpt4o", 3078, 257, 411.72, [(2037, 14), (1064, 5), (1373, 18), (1050, 6)]),
    ("ulab_llmrouter.parquet", 10, 1, 1, "llama-3.1-nemotron-51b-instruct", 2924, 382, 872.41, []),
    ("routerbench_5shot_3tasks.parquet", 11, 2, 32, "gpt-4-1106-preview", 2961, 199, 685.74, []),
    ("recorded/paretobandit", 12, 2, 1, "google/gemini-2.5-pro", 2057, 626, 648.43, []),
]


@pytest.mark.parametrize("source, seed, k, batch, reference, pairs, of_reference, money, first", KNOWN)
def test_known_purchases_on_recorded_tables(
    source, seed, k, batch, reference, pairs, of_reference, money, first, request
):
    recorded = source.startswith("recorded/")
    work = sr.load(source if recorded else request.getfixturevalue("real_data") / source)
    work = work.take(work.available.all(axis=1))  # of mmlu_pro, some lack a model
    train, test = work.split(seed=seed, together=False)
    groups, paper, feedback = groups_of(train), train.feedback(), train.feedback()
    acquire(paper, groups, k=k, seed=seed)
    rows, models, *_ = acquire(
        feedback, groups, rule="anchored", reference=reference, budget=paper.spent, seed=seed, batch=batch
    )
    column = work.models.index(reference)
    assert (len(rows), int((models == column).sum())) == (pairs, of_reference)
    assert list(zip(rows.tolist(), models.tolist(), strict=True))[: len(first)] == first
    assert feedback.spent <= paper.spent * (1 + 1e-9)
    assert feedback.spent / test.cost[:, column].mean() == pytest.approx(money, abs=0.005)


def test_money_is_spent_and_never_exceeded(work):
    for share in (0.05, 0.3, 0.9):
        feedback, budget = work.feedback(), share * work.cost.sum()
        bought(feedback, work, budget)
        assert budget - work.cost.max() < feedback.spent <= budget * (1 + 1e-9)
    pairs = feedback.observations[["row", "model"]]
    assert not pairs.duplicated().any()


def test_more_money_goes_on_where_less_stopped(work):
    little, much = (bought(work.feedback(), work, share * work.cost.sum()) for share in (0.2, 0.4))
    for one, other in zip(little, much, strict=True):
        np.testing.assert_array_equal(one, other[: len(one)])
    assert len(much[0]) > len(little[0])


def test_with_money_for_all_it_buys_all_that_is_not_dearer(masked_work):
    feedback = masked_work.feedback()
    bought(feedback, masked_work, 1e9, "model-2")
    seen = feedback.observations["model"]
    assert set(seen) == {"model-0", "model-1", "model-2"}
    assert len(seen) == masked_work.available[:, :3].sum()


def test_the_unit_of_money_does_not_matter(work):
    cents = sr.Workload(**{**vars(work), "cost": 100 * work.cost})
    dollars, other = bought(work.feedback(), work, third(work)), bought(cents.feedback(), cents, 100 * third(work))
    np.testing.assert_array_equal(dollars[0], other[0])
    np.testing.assert_array_equal(dollars[1], other[1])


def test_what_was_not_bought_does_not_matter(work):
    feedback = work.feedback()
    rows, models, *_ = bought(feedback, work, third(work))
    seen = np.zeros(work.quality.shape, dtype=bool)
    seen[rows, models] = True
    other = corrupted(work, seen)
    other = sr.Workload(**{**vars(other), "cost": work.cost})  # prices are public
    np.testing.assert_array_equal(bought(other.feedback(), other, third(work))[:2], (rows, models))


def test_a_feedback_without_names_prices_or_meter_will_do(work):
    """Dearer models are then left out by what they turn out to cost, and money is counted by what was bought."""

    class Bare:
        def available(self, queries=None):
            return work.available

        def reveal(self, rows, models):
            return work.quality[rows, models], work.cost[rows, models]

    money = work.cost[:, :3].sum() / 2
    options = {"acquisition": "anchored", "reference": "model-2", "budget": money}
    router = sr.SaveRouter(**options).fit(work.queries, Bare())
    assert money <= router.observations_.cost.sum() < money + work.cost.max()
    assert (router.bought_[:, 3:].sum(axis=0) < router.bought_[:, 2].sum()).all() and router.bought_[:, 3:].sum() < 40


def test_the_paper_s_rule_with_money_buys_what_it_buys_first(work):
    """Of the same passes, until the money is spent."""
    whole, part = work.feedback(), work.feedback()
    acquire(whole, groups_of(work), k=5)
    acquire(part, groups_of(work), k=1, budget=whole.spent / 2)
    shown = whole.observations.head(len(part.observations))
    assert part.observations.equals(shown) and part.spent == pytest.approx(whole.spent / 2, rel=0.02)


def test_a_router_that_buys_so_is_kept_and_served(work, tmp_path):
    train, test = work.split()
    feedback = train.feedback()
    router = sr.SaveRouter(acquisition="anchored", reference=REFERENCE, budget=third(train)).fit(
        train.queries, feedback
    )
    assert feedback.spent <= router.budget * (1 + 1e-9)
    loaded = sr.load_router(router.save(tmp_path / "router"))
    assert loaded.get_params() == router.get_params()
    assert (loaded.route(test.queries) == router.route(test.queries)).all()


@pytest.mark.parametrize("options, message", [
    ({"budget": 1.0}, "name the model in use today: reference='model-0', for example"),
    ({"reference": REFERENCE}, "instead of k outcomes per query; give it: budget="),
    ({"reference": "model-9", "budget": 1.0}, "the reference 'model-9' is not in the pool; did you mean 'model-"),
    ({"reference": REFERENCE, "budget": -1.0}, "budget is -1.0; expected money for outcomes"),
    ({"reference": REFERENCE, "budget": float("nan")}, "budget is nan"),
    ({"reference": REFERENCE, "budget": 1e-9}, "a budget of 1e-09 is less than one outcome"),
    ({"acquisition": "ucb", "reference": REFERENCE}, "acquisition 'ucb' buys without one"),
])  # fmt: skip
def test_bad_questions_are_refused_before_anything_is_bought(work, options, message):
    feedback = work.feedback()
    with pytest.raises(sr.SaveRouterError, match=message):
        sr.SaveRouter(**{"acquisition": "anchored", **options}).fit(work.queries, feedback)
    assert feedback.spent == 0
