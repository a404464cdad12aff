"""The laws of payback, on random numbers and at the edges."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from saverouter.judging import economics

money = st.floats(1e-6, 1e6)


@settings(max_examples=300, deadline=None)
@given(c0=money, reference=money, share=st.floats(0, 1.5), horizon=st.integers(1, 10**9))
def test_amortised_ratio_is_at_most_one_exactly_from_break_even_on(c0, reference, share, horizon):
    serving = reference * share
    point = economics.sa_bep(c0, reference, serving)
    assert (economics.sa_cr(c0, reference, serving, horizon) <= 1) == (point <= horizon)
    if math.isfinite(point):
        assert economics.sa_cr(c0, reference, serving, point) <= 1
        assert point == 1 or economics.sa_cr(c0, reference, serving, point - 1) > 1


@settings(max_examples=200, deadline=None)
@given(c0=money, reference=money, share=st.floats(0, 0.999), scale=st.integers(-20, 20))
def test_the_unit_of_money_does_not_matter(c0, reference, share, scale):
    numbers = (c0, reference, reference * share)
    scaled = tuple(number * 2.0**scale for number in numbers)
    assert economics.sa_bep(*numbers) == economics.sa_bep(*scaled)
    assert economics.sa_cr(*numbers) == economics.sa_cr(*scaled)


@settings(max_examples=200, deadline=None)
@given(c0=money, reference=money, share=st.floats(0, 0.99), volume=st.integers(1, 10**9))
def test_proposition_1_in_terms_of_net_saving(c0, reference, share, volume):
    serving = reference * share
    saved = economics.net_saving([volume], c0, reference, serving)[0]
    ratio = economics.sa_cr(c0, reference, serving, volume)
    assert ratio == pytest.approx(1 - saved / (volume * reference), rel=1e-9, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(lean=money, extra=money, serving=money, share=st.floats(0, 0.99))
def test_proposition_2_the_dearer_router_wins_only_beyond_the_crossing(lean, extra, serving, share):
    rich = lean + extra
    assume(rich > lean)
    crossing = economics.crossing_horizon((lean, serving), (rich, serving * share))

    def bill(volume, c0, cost):
        return c0 + volume * cost

    for factor, rich_wins in ((0.9, False), (1.1, True)):
        volume = crossing * factor
        assert (bill(volume, rich, serving * share) < bill(volume, lean, serving)) == rich_wins
    assert economics.crossing_horizon((lean, serving), (rich, serving)) == math.inf
    assert economics.crossing_horizon((rich, serving * share), (lean, serving)) == crossing


def test_a_saving_below_rounding_noise_is_no_saving():
    """float32 ties used to give a break-even of 226,741,095,277 queries."""
    reference = 0.0079466
    for serving in (reference, reference * (1 - 1e-15), float(np.float32(reference)), reference * 1.1, math.inf):
        if reference - serving > 1e-9 * reference:
            continue
        assert economics.sa_bep(100.0, reference, serving) == math.inf
        assert economics.sa_cr(100.0, reference, serving) == math.inf
    assert economics.sa_bep(100.0, reference, reference * 0.999) == math.ceil(100 / (reference - reference * 0.999))


def test_free_supervision_and_free_models():
    assert economics.sa_bep(0.0, 1.0, 0.5) == 0
    assert economics.sa_bep(1.0, 0.0, 0.0) == math.inf
    assert economics.sa_cr(1.0, 0.0, 0.0) == math.inf


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="supervision_cost is -1"):
        economics.sa_bep(-1.0, 1.0, 0.5)
    with pytest.raises(ValueError, match="horizon is 0"):
        economics.sa_cr(1.0, 1.0, 0.5, 0)
