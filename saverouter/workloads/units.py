"""Costs that were written in different units: dollars in some rows and thousandths in others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from .findings import Finding, named

if TYPE_CHECKING:
    from .workload import Workload

APART = 2.5  # decades between the two groups of a model's costs; a unit of a thousandth is three
GAP = 0.5  # decades between all but 5% of the one group and all but 5% of the other
LEAST_ROWS = 3  # in the smaller group ...
LEAST_SHARE = 0.005  # ... and its share
BETWEEN = 2.7  # decades between the costs of two models that follow each other


def unit_findings(work: Workload) -> Iterator[Finding]:
    """Two units within a model, and perhaps between models."""
    length = np.log10([len(prompt) for prompt in work.prompts])
    mixed, middles = [], {}
    for column, model in enumerate(work.models):
        rows = np.flatnonzero(work.available[:, column] & (work.cost[:, column] > 0))
        if not len(rows):
            continue
        decades = np.log10(work.cost[rows, column])
        middles[model] = float(np.median(decades))
        if (upper := two_groups(decades)) is None or not _far(decades - length[rows], upper):
            continue  # long prompts cost more; only what they do not explain is a unit
        times = 10 ** (np.median(decades[upper]) - np.median(decades[~upper]))
        example = work.query_ids[rows[np.argmax(upper)]]
        mixed.append(
            f"{model} (about {float(f'{times:.1g}'):,.0f} times on {upper.sum():,} of {len(rows):,}, e.g. {example!r})"
        )
    if mixed:
        yield Finding(
            "blocks", "mixed units", f"Costs of one model lie in two groups that prompt lengths do not explain: {named(mixed)}.",
            "Write all costs in one unit; most likely some rows are in thousandths.",
        )  # fmt: skip
    else:
        yield from _between(middles)


def _between(middles: dict[str, float]) -> Iterator[Finding]:
    order = sorted(middles, key=middles.get)
    for cheap, dear in zip(order, order[1:], strict=False):
        if middles[dear] - middles[cheap] >= BETWEEN:
            times = 10 ** (middles[dear] - middles[cheap])
            yield Finding(
                "notice", "far apart costs", f"{dear} costs {float(f'{times:.1g}'):,.0f} times as much as {cheap}, the next one.",
                "Check that both are in the same unit.",
            )  # fmt: skip


def two_groups(decades: np.ndarray) -> np.ndarray | None:
    """The mask of the upper one of two groups that lie far apart, with next to nothing in between; None where there is one.

    The cut is Otsu's: between the two means lies the largest part of the variance.
    """
    size, ordered = len(decades), np.sort(decades)
    least = max(LEAST_ROWS, int(np.ceil(LEAST_SHARE * size)))
    if size < 2 * least or ordered[-1] - ordered[0] < APART:
        return None
    counts = np.arange(1, size)
    sums = np.cumsum(ordered)
    between = (sums[:-1] / counts - (sums[-1] - sums[:-1]) / (size - counts)) ** 2 * counts * (size - counts)
    cut = least - 1 + int(np.argmax(between[least - 1 : size - least]))
    upper = decades > (ordered[cut] + ordered[cut + 1]) / 2
    return upper if upper.any() and _far(decades, upper) else None


def _far(decades: np.ndarray, upper: np.ndarray) -> bool:
    low, high = decades[~upper], decades[upper]
    apart = np.median(high) - np.median(low)
    return bool(apart >= APART and np.quantile(high, 0.05) - np.quantile(low, 0.95) >= GAP)
