"""Wrong arguments of public functions: a SaveRouterError that names the thing and the remedy, and nothing is bought."""

import math

import numpy as np
import pandas as pd
import pytest
from conftest import long_frame, make_workload

import saverouter as sr

WORK = make_workload(n=120)
TRAIN, TEST = WORK.split()
PLAIN = make_workload(n=120, with_vectors=False)


@pytest.fixture(scope="module")
def router():
    return sr.SaveRouter(k=2).fit(TRAIN.queries, TRAIN.feedback())


def refused(call, *arguments, match, **options):
    with pytest.raises(sr.SaveRouterError, match=match):
        call(*arguments, **options)


@pytest.mark.parametrize("name, options, message", [
    ("saverouter", {"k": None}, "k is None; expected a whole number"),
    ("saverouter", {"k": 2.5}, "k is 2.5; expected a whole number"),
    ("saverouter", {"k": True}, "k is True"),
    ("saverouter", {"seed": -1}, "seed is -1; expected a whole number of at least 0"),
    ("saverouter", {"seed": 1.5}, "seed is 1.5"),
    ("saverouter", {"shrinkage": "40"}, "shrinkage is '40'; expected a finite number"),
    ("saverouter", {"acquisition": "ucbs"}, "acquisition is 'ucbs'; did you mean 'ucb'"),
    ("saverouter", {"grouping": "label"}, "grouping is 'label'; did you mean 'labels'"),
    ("saverouter", {"newcomer": "model-1", "newcomer_share": 10}, "newcomer_share is 10.*: write 0.1 for 10%"),
    ("knn", {"k": None}, "k is None"),
    ("knn", {"k": 0}, "k is 0; expected a whole number, at least 1"),
    ("knn", {"fraction": 30}, "fraction is 30; .*: write 0.3 for 30%"),
    ("knn", {"orbit": "latest"}, "orbit is 'latest'; did you mean 'late'"),
    ("embedllm", {"epochs": "many"}, "epochs is 'many'"),
    ("embedllm", {"seed": None}, "seed is None"),
])  # fmt: skip
def test_options_are_checked_before_anything_is_bought(name, options, message):
    feedback, router = TRAIN.feedback(), sr.make_router(name, **options)
    refused(router.fit, TRAIN.queries, feedback, match=message)
    assert feedback.spent == 0
    refused(router.route, ["a prompt"], match="has not been fitted; call fit")


@pytest.mark.parametrize("arguments", [
    (TRAIN.feedback(), TRAIN.queries), (TRAIN.queries, TRAIN), (TRAIN, TRAIN.quality), (TRAIN.queries, None),
])  # fmt: skip
def test_swapped_and_foreign_arguments_of_fit(arguments):
    refused(sr.SaveRouter().fit, *arguments, match=r"fit was given a .*: fit\(train.queries, train.feedback\(\)\)")


@pytest.mark.parametrize("name", sorted(sr.ROUTERS))
def test_a_router_that_was_not_fitted_says_so(name):
    router = sr.make_router(name)
    for call in (router.predict_quality, router.predict_cost, router.route):
        refused(call, TEST, match="has not been fitted; call fit")
    refused(sr.evaluate, router, TEST, supervision_cost=0.0, match="has not been fitted; call fit")


def test_half_learnt_is_not_fitted():
    router = sr.SaveRouter(k=2).fit(TRAIN.queries, TRAIN.feedback())
    router.set_params(grouping="nonsense")
    refused(router.fit, TRAIN.queries, TRAIN.feedback(), match="grouping is 'nonsense'")
    refused(router.route, TEST.queries, match="has not been fitted")


@pytest.mark.parametrize("asked, message", [
    (long_frame(TEST), "queries are a DataFrame; give the prompts alone, e.g. table.'prompt'."),
    ({"prompt": "Hello"}, "queries are a dict; give the prompts alone"),
    (["Hello", ""], "prompt 1 is ''; expected a non-empty string"),
    (["Hello", None], "prompt 1 is None"),
    (7, "queries are 7; expected a prompt, a list of prompts"),
    (["Hello"], "fitted on queries with vectors of 4 numbers and is asked about queries without vectors of their own"),
])  # fmt: skip
def test_what_is_no_prompt_is_not_routed(router, asked, message):
    refused(router.route, asked, match=message)


@pytest.mark.parametrize("name", ["saverouter", "knn", "wiserouter", "embedllm", "semirouter"])
def test_plain_prompts_and_vectors_are_not_mixed_up(name):
    router = sr.make_router(name).fit(TRAIN.queries, TRAIN.feedback())
    for call in (router.route, router.predict_quality, router.predict_cost, router.policies):
        refused(call, ["Hello"], match="ask it with saverouter.Queries.prompts, vectors=")
    wide = sr.Queries(TEST.prompts, vectors=np.ones((len(TEST), 9)))
    refused(router.route, wide, match="vectors of 4 numbers .* vectors of 9 numbers")
    refused(sr.evaluate, router, PLAIN.split()[1], supervision_cost=0.0, match="without vectors of their own")


def test_queries_have_no_outcomes_to_judge_by(router):
    refused(
        sr.evaluate,
        router,
        TEST.queries,
        supervision_cost=0.0,
        match="test is a Queries; expected a Workload with outcomes",
    )


@pytest.mark.parametrize("weight", [-1, math.nan, math.inf, "0.1", None])
def test_cost_weights_are_finite_and_positive(router, weight):
    refused(router.route, TEST.queries, weight, match="cost_weight is .*; expected a finite number >= 0")


@pytest.mark.parametrize("options, message", [
    ({"train": 20}, "train is 20; expected a fraction between 0 and 1: write 0.2 for 20%"),
    ({"train": 0}, "train is 0; expected a fraction"),
    ({"train": "0.2"}, "train is '0.2'"),
    ({"seed": -1}, "seed is -1"),
])  # fmt: skip
def test_splits(options, message):
    refused(WORK.split, match=message, **options)


@pytest.mark.parametrize("call, message", [
    (lambda: sr.load("paretobandit", size=0), "size is 0; expected a whole number of queries, at least 1"),
    (lambda: sr.load("paretobandit", size=10**6), "size is 1000000; paretobandit has 3,609"),
    (lambda: sr.load("paretobandit", size=10, seed=-1), "seed is -1"),
    (lambda: sr.load("simulated/routerbench", size=10, seed=-3), "seed is -3"),
    (lambda: sr.load("paretobandid"), "did you mean 'paretobandit'"),
    (lambda: sr.load("x" * 5_000), "no workload or file is called 'x{79}; there are paretobandit"),
    (lambda: sr.load(None), "a workload is named None; expected a name or a path"),
    (lambda: sr.load(long_frame(TEST)), "saverouter.from_frame.table. for a table in memory"),
    (lambda: sr.from_frame({"prompt": ["a"]}), "the table is a dict; expected a pandas DataFrame"),
    (lambda: TRAIN.feedback().reveal([0.5], [1]), "query rows are .0.5.; expected positions from 0"),
    (lambda: TRAIN.feedback().reveal([0], [True, False]), "models are array.*; expected positions from 0"),
    (lambda: sr.make_router("saverooter"), "did you mean 'saverouter'"),
    (lambda: sr.make_router("saverouter", shrinkag=3), "no option 'shrinkag'; did you mean 'shrinkage'"),
    (lambda: sr.ROUTERS.__setitem__("mine", "KNN"), "router 'mine' is 'KNN'; register a subclass"),
    (lambda: sr.best_single(TEST.queries), "test is a Queries; expected a Workload"),
    (lambda: sr.load("recorded/../published/structure"), "no recorded workload '../published/structure'"),
    (lambda: sr.load("simulated/../published/structure"), "no simulated benchmark '../published/structure'"),
    (lambda: sr.load("original/../registry"), "'../registry'"),
    (lambda: sr.load("https://example.org/table.csv"), "no workload or file is called 'https://example.org/table.csv'"),
])  # fmt: skip
def test_loading_and_making(call, message):
    refused(call, match=message)


def test_the_former_keyword_still_decides_what_is_bought():
    bought = []
    for options in ({"acquisition": "random"}, {"policy": "random"}, {}):
        feedback = TRAIN.feedback()
        sr.SaveRouter(k=1, **options).fit(TRAIN.queries, feedback)
        bought.append(feedback.observations)
    pd.testing.assert_frame_equal(bought[0], bought[1])
    assert not bought[0].equals(bought[2])


def test_things_are_shown_in_a_line():
    feedback = TRAIN.feedback()
    feedback.reveal([0, 1], 2)
    assert repr(feedback).startswith("<ReplayFeedback: 24 queries x 5 models, 2 outcomes bought for 0.00")
    assert repr(TRAIN.queries) == "<Queries: 24 with vectors>" and repr(PLAIN.queries) == "<Queries: 120>"
    for thing in (feedback, TRAIN, TRAIN.queries):
        assert len(repr(thing)) < 120 and "array" not in repr(thing)


def test_floats_of_a_table_come_back_to_the_last_digit(tmp_path):
    rng = np.random.default_rng(0)
    work = make_workload(n=400, models=3, seed=2)
    work = sr.Workload(
        query_ids=work.query_ids, prompts=work.prompts, tasks=work.tasks, models=work.models,
        quality=rng.random(work.quality.shape), cost=rng.random(work.cost.shape) * 10.0 ** rng.integers(-12, 3, work.cost.shape),
    )  # fmt: skip
    long_frame(work).to_csv(tmp_path / "table.csv", index=False)
    read = sr.load(tmp_path / "table.csv")
    np.testing.assert_array_equal(read.quality, work.quality)
    np.testing.assert_array_equal(read.cost, work.cost)
