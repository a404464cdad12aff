"""Qualities as fractions and costs in one unit: from a scale, from tokens and prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TypeAlias

import numpy as np

from ...errors import SaveRouterError
from .columns import TOKENS
from .grid import Grid
from .sheet import Sheet

Prices: TypeAlias = Mapping[str, tuple[float, float]]
SCALES = ((1, 5), (0, 5), (0, 10), (0, 100))


def price(grid: Grid, prices: Prices, sheet: Sheet, told: list[str]) -> None:
    """Costs of all pairs from their tokens; a pair without tokens, or without a quality, is unavailable."""
    paid = _checked_prices(prices, grid.models, sheet)
    tokens = {kind: grid.numbers[kind] for kind in TOKENS}
    for kind, counts in tokens.items():
        _refuse(grid, sheet, counts < 0, counts, kind, "a number >= 0")
    cost = sum(counts * paid[:, place] for place, counts in enumerate(tokens.values()))
    quality = grid.numbers["quality"]
    lone = np.isnan(cost) != np.isnan(quality)
    grid.numbers["cost"] = np.where(lone, np.nan, cost)
    grid.numbers["quality"] = np.where(lone, np.nan, quality)
    told.append("costs are computed from tokens and prices")
    if lone.any():
        told.append(f"{lone.sum():,} pairs without tokens or without a quality count as unavailable")


def rescale(grid: Grid, scale: tuple[float, float] | None, sheet: Sheet, told: list[str]) -> None:
    """Qualities from a scale to 0..1. Without a scale, qualities that seem to be on one are refused."""
    quality = grid.numbers["quality"]
    if scale is None:
        likely = _likely_scale(quality)
        if likely is not None:
            remedy = (
                f"0..1; the table has {np.nanmin(quality):g}..{np.nanmax(quality):g}. If {likely[0]} is the worst and "
                f"{likely[1]} the best there can be: {sheet.with_option(f'scale={likely}')}"
            )
            _refuse(grid, sheet, quality > 1, quality, "quality", remedy)
        return
    worst, best = _checked_scale(scale, sheet)
    outside = (quality < min(worst, best)) | (quality > max(worst, best))
    _refuse(grid, sheet, outside, quality, "quality", f"{worst:g}..{best:g}, as scale says")
    grid.numbers["quality"] = (quality - worst) / (best - worst)
    told.append(f"qualities are rescaled from {worst:g}..{best:g} to 0..1")


def _refuse(grid: Grid, sheet: Sheet, bad: np.ndarray, values: np.ndarray, what: str, expected: str) -> None:
    if bad.any():
        query, model = np.argwhere(bad)[0]
        more = f" ({bad.sum():,} such values)" if bad.sum() > 1 else ""
        raise SaveRouterError(
            f"{sheet.at(grid.row(query, model))}: {what} of model {grid.models[model]!r} for query {grid.ids[query]!r:.80} "
            f"is {values[query, model]:g}{more}; expected {expected}"
        )


def _checked_prices(prices: Prices, models: Sequence[str], sheet: Sheet) -> np.ndarray:
    """(M, 2) prices per input and output token of the pool, in its order."""
    example = sheet.with_option('prices={"gpt": (2.5e-6, 1e-5)}')
    if not isinstance(prices, Mapping):
        raise SaveRouterError(
            f"prices is {prices!r:.60}; expected (input, output) per token for every model: {example}"
        )
    given = {str(model).strip(): pair for model, pair in prices.items()}
    lacking = [model for model in models if model not in given]
    if lacking:
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise SaveRouterError(
            f"prices has no price for {', '.join(map(repr, lacking[:5]))}{more}; it has {', '.join(given) or 'none'}"
        )
    for model in models:
        pair = given[model]
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(_is_price(price) for price in pair):
            raise SaveRouterError(
                f"the price of {model!r} is {pair!r:.60}; expected (input, output) per token, two numbers >= 0: {example}"
            )
    return np.array([given[model] for model in models], dtype=np.float64)


def _is_price(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < np.inf


def _checked_scale(scale: object, sheet: Sheet) -> tuple[float, float]:
    """(worst, best), two different numbers."""
    try:
        worst, best = scale
        if isinstance(worst, Real) and isinstance(best, Real) and np.isfinite([worst, best]).all() and worst != best:
            return float(worst), float(best)
    except (TypeError, ValueError):
        pass
    raise SaveRouterError(
        f"scale is {scale!r:.60}; expected the worst and the best quality: {sheet.with_option('scale=(1, 5)')}"
    )


def _likely_scale(quality: np.ndarray) -> tuple[int, int] | None:
    """The scale that qualities seem to be on, where many are above 1; one that is too high is a slip."""
    known = quality[~np.isnan(quality)]
    if not len(known) or (known > 1).mean() <= 0.1:
        return None
    return next((scale for scale in SCALES if scale[0] <= known.min() and known.max() <= scale[1]), None)
