"""When routing pays for itself: break-even volume, amortised cost ratio, net saving, crossing of two routers.

Section 5.1 and appendix B of the paper. Ratios of float64 sums are taken exactly (as fractions), so that
SA-CR(H) <= 1 holds exactly when SA-BEP <= H, and a saving below rounding noise counts as none.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SaveRouterError, number

NOISE = 1e-9  # relative to the reference cost; sums of float64 are good to about 1e-13


def saving_per_query(reference_cost: float, serving_cost: float) -> float:
    """Delta c, or 0 where the difference is no larger than rounding noise."""
    saving = reference_cost - serving_cost
    return saving if saving > NOISE * reference_cost else 0.0


def sa_bep(supervision_cost: float, reference_cost: float, serving_cost: float) -> float:
    """Queries until the supervision is paid back, inf where nothing is saved (a whole number otherwise)."""
    if not _pays(supervision_cost, reference_cost, serving_cost):
        return math.inf
    saved = Fraction(reference_cost) - Fraction(serving_cost)
    return math.ceil(Fraction(supervision_cost) / saved)


def sa_cr(supervision_cost: float, reference_cost: float, serving_cost: float, horizon: float = 1_000_000) -> float:
    """Cost relative to the reference with the supervision spread over ``horizon`` queries, inf where nothing is saved."""
    if not horizon > 0:
        raise SaveRouterError(f"horizon is {horizon}; expected a positive number of queries")
    if not _pays(supervision_cost, reference_cost, serving_cost):
        return math.inf
    volume = Fraction(horizon)
    ratio = (Fraction(supervision_cost) + volume * Fraction(serving_cost)) / (volume * Fraction(reference_cost))
    rounded = float(ratio)
    return math.nextafter(1.0, 2.0) if ratio > 1 and rounded <= 1 else rounded


def _pays(supervision_cost: float, reference_cost: float, serving_cost: float) -> bool:
    number("supervision_cost", supervision_cost)
    return math.isfinite(serving_cost) and saving_per_query(reference_cost, serving_cost) > 0


def net_saving(volumes: ArrayLike, supervision_cost: float, reference_cost: float, serving_cost: float) -> np.ndarray:
    """S(T) = T (C_ref - C_serve) - C_0 for every deployment volume T."""
    return np.asarray(volumes, dtype=np.float64) * (reference_cost - serving_cost) - supervision_cost


def crossing_horizon(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Volume beyond which the more heavily supervised of two routers is the cheaper one (Proposition 2).

    Each router is (supervision cost, serving cost per query) at the same quality. inf where the extra
    supervision never pays; 0 where it is cheaper from the first query (same supervision, lower serving cost).
    """
    lean, rich = sorted((first, second))
    saved = lean[1] - rich[1]
    if not math.isfinite(saved) or saved <= NOISE * max(abs(lean[1]), abs(rich[1])):
        return math.inf
    return (rich[0] - lean[0]) / saved
