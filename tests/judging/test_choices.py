"""All choices of a family at once are, to the last tie, those of its policies one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from saverouter.judging.operating_points import (
    COST_WEIGHTS,
    ChoicePolicies,
    CostWeightPolicies,
    GatePolicies,
    Policies,
    ThresholdPolicies,
    threshold_grid,
)

SHAPE = st.tuples(st.integers(1, 6), st.integers(1, 7))
COARSE = st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 0.5, 1.0, 1.0 + 2**-52])  # ties, and near misses of ties
NUMBER = st.one_of(COARSE, st.floats(0, 2))
QUALITY = st.one_of(NUMBER, st.just(-np.inf))


def one_by_one(family):
    return np.array([family.choice(index) for index in range(len(family))])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_cost_weights(data):
    shape = data.draw(SHAPE)
    family = CostWeightPolicies(
        data.draw(arrays(float, shape, elements=QUALITY)),
        data.draw(arrays(float, shape, elements=NUMBER)),
        COST_WEIGHTS,
    )
    np.testing.assert_array_equal(family.choices(), one_by_one(family))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(["cheapest", "first"]), st.booleans())
def test_thresholds(data, fallback, one_price):
    shape = data.draw(SHAPE)
    quality = data.draw(arrays(float, shape, elements=QUALITY))
    quality[~np.isfinite(quality).any(axis=1)] = 0.5  # every query has a model
    cost = data.draw(arrays(float, shape[1:] if one_price else shape, elements=NUMBER))
    family = ThresholdPolicies(quality, cost, threshold_grid(cost, 5), fallback)
    np.testing.assert_array_equal(family.choices(), one_by_one(family))


@pytest.mark.parametrize("kind", [CostWeightPolicies, ThresholdPolicies])
def test_a_large_pool_where_dearer_models_are_better(kind):
    rng = np.random.default_rng(0)
    cost = np.sort(rng.random((200, 289)), axis=1)
    family = kind(cost**0.5 + 0.1 * rng.random(cost.shape), cost, np.linspace(0, 1, 30))
    np.testing.assert_array_equal(family.choices(), one_by_one(family))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_gates_score_what_their_choices_do(data):
    size, models = data.draw(SHAPE)
    column = arrays(np.int64, size, elements=st.integers(0, models - 1))
    gain = data.draw(arrays(float, size, elements=NUMBER))
    gates = np.unique(data.draw(arrays(float, 5, elements=NUMBER)))
    family = GatePolicies(data.draw(column), data.draw(column), gain, gates, "any")
    outcomes = [data.draw(arrays(float, (size, models), elements=st.floats(0, 2))) for _ in range(2)]
    np.testing.assert_allclose(family.realised(*outcomes), Policies.realised(family, *outcomes), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 127, 128, 1_000])
def test_outcomes_are_means_of_what_was_chosen(size):
    rng = np.random.default_rng(0)
    family = ChoicePolicies(rng.integers(5, size=(7, size)), list("abcdefg"))
    quality, cost = rng.random((2, 5, size)).transpose(0, 2, 1)  # not in the order of memory
    rows = np.arange(size)
    expected = [[outcome[rows, chosen].mean() for chosen in family.choices()] for outcome in (quality, cost)]
    np.testing.assert_allclose(family.realised(quality, cost), expected, rtol=1e-13)


@pytest.mark.parametrize("model", [-1, 5])
def test_a_choice_beyond_the_pool_is_refused(model):
    with pytest.raises(IndexError, match="beyond the pool"):
        ChoicePolicies(np.array([[0, model]]), ["wrong"]).realised(np.ones((2, 5)), np.ones((2, 5)))
