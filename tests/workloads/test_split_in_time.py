"""A user's table is split with equal prompts on one side, or by time: the past teaches, what came later tests."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import long_frame, make_workload

import saverouter as sr


@pytest.fixture
def repeats() -> sr.Workload:
    """A log in which every prompt stands five times, under new ids."""
    once = long_frame(make_workload(n=60, models=3, with_vectors=False))
    return sr.from_frame(pd.concat([once.assign(query_id=once["query_id"] + f"-{n}") for n in range(5)]))


def test_equal_prompts_of_a_users_table_stay_on_one_side(repeats):
    for seed in range(5):
        train, test = repeats.split(seed=seed)
        assert not {*train.prompts} & {*test.prompts} and len(train) == 60 and len(train) + len(test) == 300
    assert "240 queries repeat the prompt of another; a split keeps equal prompts together" in repeats.provenance


def test_prompts_that_differ_in_spaces_and_case_only_are_equal():
    """The text encoder gives them one vector, so a router would have seen its test."""
    once = long_frame(make_workload(n=60, models=3, with_vectors=False))
    again = {"upper": str.upper, "spaces": "{} \n".format, "more spaces": lambda text: text.replace(" ", "  ")}
    rows = [once.assign(query_id=once["query_id"] + f"-{n}", prompt=once["prompt"].map(f)) for n, f in again.items()]
    work = sr.from_frame(pd.concat([once, *rows]))
    for seed in range(5):
        train, test = work.split(seed=seed)
        assert not {" ".join(p.lower().split()) for p in train.prompts} & {
            " ".join(p.lower().split()) for p in test.prompts
        }
        assert len(train) == 48
    assert "180 queries repeat the prompt of another; a split keeps equal prompts together" in work.provenance


def test_the_papers_split_stays_available_by_name(repeats):
    train, test = repeats.split(together=False)
    order = np.random.RandomState(42).permutation(300)
    assert [*train.query_ids, *test.query_ids] == repeats.query_ids[order].tolist()
    assert {*train.prompts} & {*test.prompts}


def test_a_table_without_repeats_is_split_as_in_the_paper():
    work = sr.from_frame(long_frame(make_workload(n=60, models=3, with_vectors=False)))
    assert work.clusters is None
    order = np.random.RandomState(42).permutation(60)
    assert [*work.split()[0].query_ids] == work.query_ids[order[:12]].tolist()


def timed(work, when) -> sr.Workload:
    return replace(work, moments={"created_at": when})


def test_the_past_teaches_and_what_came_later_tests(work):
    when = np.random.default_rng(0).permutation(300)
    train, test = timed(work, when).split(by="time", column="created_at", train=0.2)
    assert len(train) == 60 and train.moments["created_at"].max() < test.moments["created_at"].min()
    assert (np.diff(train.moments["created_at"]) > 0).all()
    np.testing.assert_array_equal(train.quality, work.quality[np.argsort(when)[:60]])
    again = timed(work, when).split(by="time", column="created_at", train=0.2, seed=7)
    assert [*again[0].query_ids] == [*train.query_ids]


def test_one_moment_is_never_split(work):
    """Days of 37 queries: two of them are nearest to a fifth of 300."""
    train, test = timed(work, np.arange(300) // 37).split(by="time", column="created_at")
    assert {*train.moments["created_at"]} == {0, 1} and len(train) == 74
    with pytest.raises(sr.SaveRouterError, match="of 300 queries, all of one moment, leaves 300 to learn from and 0"):
        timed(work, np.zeros(300)).split(by="time", column="created_at")


def test_what_belongs_together_counts_as_its_earliest_query(repeats):
    """The first of every prompt was asked early or late; the others came after the end."""
    when = np.where(np.arange(300) < 60, np.arange(300), 1_000 + np.arange(300))
    train, test = timed(repeats, when).split(by="time", column="created_at", train=0.2)
    assert {*train.prompts} == {*repeats.prompts[:12]} and len(train) == 60 and len(test) == 240
    train, _ = timed(repeats, when).split(by="time", column="created_at", train=0.2, together=False)
    assert [*train.query_ids] == [*repeats.query_ids[:60]]


def test_a_file_is_split_by_its_own_column(tmp_path, work):
    frame = long_frame(work).assign(
        created_at=lambda f: [f"2026-01-{1 + int(q[1:]) % 28:02}T10:00:00Z" for q in f["query_id"]]
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    train, test = sr.load(tmp_path / "log.csv").split(by="time", column="created_at", train=0.5)
    assert {int(query[1:]) % 28 for query in train.query_ids} == set(range(14))


@pytest.mark.parametrize("options, message", [
    ({"by": "time"}, "column is None; log has 'created_at', 'turn' to order queries in time"),
    ({"by": "time", "column": "created"}, "column is 'created'; did you mean 'created_at'. log has 'created_at', 'turn'"),
    ({"by": "date", "column": "created_at"}, "by is 'date'; expected by=\"time\" with a column, or neither"),
    ({"column": "created_at"}, "by is None; expected by=\"time\" with a column"),
    ({"by": "time", "column": "turn"}, r"turn of query 'q3' is missing \(2 such queries\); fill it, or split work.take"),
    ({"by": "time", "column": "created_at", "train": 20}, "train is 20; .* write 0.2 for 20%"),
])  # fmt: skip
def test_a_split_by_time_says_what_it_needs(work, options, message):
    turn = np.where(np.isin(np.arange(300), [3, 8]), np.nan, 1.0)
    log = replace(work, name="log", moments={"created_at": np.arange(300), "turn": turn})
    with pytest.raises(sr.SaveRouterError, match=message):
        log.split(**options)
    with pytest.raises(
        sr.SaveRouterError, match="small has no columns of numbers or dates .* write dates as 2026-01-31"
    ):
        work.split(by="time", column="created_at")


def test_moments_are_checked_and_part_of_what_a_workload_is(work):
    log = timed(work, np.arange(300))
    assert log.fingerprint != work.fingerprint != timed(work, np.arange(300) + 1).fingerprint != log.fingerprint
    assert log.take(slice(3, 5)).moments["created_at"].tolist() == [3, 4]
    with pytest.raises(
        sr.SaveRouterError, match=r"moments of 'created_at' of small has shape \(3,\); expected \(300,\)"
    ):
        timed(work, [1, 2, 3])
