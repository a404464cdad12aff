"""What belongs together stays on one side of a split; without clusters it is the paper's split."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.workloads.splits import joined


def clustered(work, size=5):
    return replace(work, clusters=[f"c{row // size}" for row in range(len(work))])


def sides(parts, labels):
    """The labels that occur among the rows to learn from, and those among the rows to test on."""
    train, test = parts
    return ({labels[name] for name in part.query_ids} for part in (train, test))


def test_clusters_are_kept_on_one_side(work):
    work = clustered(work)
    labels = dict(zip(work.query_ids, work.clusters, strict=True))
    for seed in range(5):
        parts = work.split(0.2, seed)
        train, test = sides(parts, labels)
        assert not train & test
        assert len(parts[0]) == 60 and len(parts[1]) == 240  # whole clusters make up a fifth exactly
        assert {*parts[0].query_ids} | {*parts[1].query_ids} == {*work.query_ids}
        assert parts[0].clusters.tolist() == [labels[name] for name in parts[0].query_ids]
        assert np.diff([int(name[1:]) for name in parts[0].query_ids]).min() < 0  # shuffled


def test_false_is_the_papers_split_whatever_there_is(work):
    plain, cut = work.split(), clustered(work).split(together=False)
    assert [part.query_ids.tolist() for part in cut] == [part.query_ids.tolist() for part in plain]
    kept = clustered(work).split()
    assert [part.query_ids.tolist() for part in kept] != [part.query_ids.tolist() for part in plain]
    assert [part.query_ids.tolist() for part in work.split(together=None)] == [p.query_ids.tolist() for p in plain]


def test_the_nearest_number_of_rows_is_taken(work):
    """Clusters of very different sizes: no other number of whole clusters would be nearer."""
    sizes = np.resize([1, 2, 30, 7], 300)
    labels = np.repeat([f"c{n}" for n in range(300)], sizes)[:300]
    work = replace(work, clusters=labels)
    for seed in range(10):
        train, test = work.split(0.2, seed)
        assert abs(len(train) - 60) <= 15 and len(train) + len(test) == 300


def test_equal_prompts_and_clusters_are_joined(work):
    """Two clusters that share a prompt are on one side together, also when no row has both labels."""
    prompts = work.prompts.copy()
    prompts[5:10] = prompts[:5]  # the first two clusters
    work = clustered(replace(work, prompts=prompts))
    for seed in range(10):
        train, _ = work.split(0.5, seed, together="prompt")
        names = {*train.query_ids}
        assert len({f"q{row}" in names for row in range(10)}) == 1
    alone = replace(work, clusters=None).split(0.5, 3, together="prompt")
    train, test = ({*part.prompts} for part in alone)
    assert not train & test


def test_a_family_is_heeded_by_name(work):
    templates = [f"t{row % 20}" for row in range(len(work))]
    work = replace(work, families={"template": templates})
    assert [p.query_ids.tolist() for p in work.split()] == [p.query_ids.tolist() for p in work.split(together=False)]
    parts = work.split(together="template")
    train, test = ({*part.families["template"]} for part in parts)
    assert not train & test and len(train) == 4
    with pytest.raises(sr.SaveRouterError, match="together is 'templat'; small has 'template', 'prompt'"):
        work.split(together="templat")
    with pytest.raises(sr.SaveRouterError, match="together is True"):
        work.split(together=True)


def test_one_cluster_cannot_be_split(work):
    with pytest.raises(sr.SaveRouterError, match="leaves 0 to learn from"):
        replace(work, clusters=["all"] * len(work)).split()


def test_groups_are_joined_through_other_rows():
    group = joined([np.array(["a", "a", "b", "c", "d"]), np.array(["1", "2", "2", "3", "4"])])
    assert group[0] == group[1] == group[2] and len({group[0], group[3], group[4]}) == 3


def test_clusters_are_checked_and_part_of_what_a_workload_is(work):
    assert clustered(work).fingerprint != work.fingerprint != clustered(work, 6).fingerprint
    assert replace(work, families={"template": work.tasks}).fingerprint != work.fingerprint
    assert replace(work, families={"clusters": work.tasks}).fingerprint != work.fingerprint
    assert clustered(work).take(slice(3, 9)).clusters.tolist() == ["c0", "c0", *["c1"] * 4]
    with pytest.raises(sr.SaveRouterError, match=r"clusters of small has shape \(299,\)"):
        replace(work, clusters=work.tasks[1:])
    with pytest.raises(sr.SaveRouterError, match=r"family 'template' of small has shape \(1,\)"):
        replace(work, families={"template": ["x"]})
    with pytest.raises(sr.SaveRouterError, match=r"cluster of query 'q3' \(row 3\) is empty"):
        replace(work, clusters=["a", "a", "a", " ", *["b"] * 296])


def test_what_leaks_where_repeated_prompts_are_on_both_sides():
    """Outcomes are drawn at random per prompt, so nothing can be learnt about a new one; yet every prompt occurs five
    times. A split that ignores this lets nearest neighbours beat the best single model by far; one that heeds it does not.
    """
    rng = np.random.default_rng(0)
    which = np.repeat(np.arange(300), 5)
    once = rng.random((300, 4)) < 0.5
    vectors = rng.normal(size=(300, 16))
    work = replace(
        make_workload(n=1500, models=4, flat_cost=True),
        prompts=[f"prompt {number}" for number in which],
        tasks=None,
        quality=once[which].astype(float),
        vectors=(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[which],
    )

    def gain(together):
        gains = []
        for seed in range(3):
            train, test = work.split(0.5, seed, together=together)
            feedback = train.feedback()
            router = sr.make_router("knn", k=5).fit(train.queries, feedback)
            result = sr.evaluate(router, test, supervision_cost=feedback.spent)
            gains.append(result.peak_score - test.quality.mean(axis=0).max())
        return np.mean(gains)

    assert gain(False) > 0.25
    assert gain("prompt") < 0.08
