"""What each model can do and costs, estimated from the few outcomes that were bought.

Sections 4.2 and 4.3 of the paper: an additive prior over groups and models, local evidence with
shrinkage, a residual predictor on the words of the query, and cost means with back-off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ._ridge import ridges

UNSEEN_COST = 1.05  # an untried model counts as a little dearer than the dearest one (release)


@dataclass(frozen=True)
class Observations:
    """The bought outcomes as arrays: row of the query, group of the query, model, quality, cost."""

    rows: np.ndarray
    groups: np.ndarray
    models: np.ndarray
    quality: np.ndarray
    cost: np.ndarray
    n_groups: int
    n_models: int

    @classmethod
    def of(
        cls, rows: np.ndarray, models: np.ndarray, quality: np.ndarray, cost: np.ndarray, groups: np.ndarray,
        n_groups: int, n_models: int,
    ) -> Observations:  # fmt: skip
        """Sorted by query, then model, so that the order of purchase cannot matter."""
        order = np.lexsort((models, rows))
        rows = rows[order]
        return cls(rows, groups[rows], models[order], quality[order], cost[order], n_groups, n_models)

    def table(self, values: np.ndarray | None = None) -> np.ndarray:
        """(G, M) sums of ``values`` over the observations, or their counts."""
        cell = self.groups * self.n_models + self.models
        sums = np.bincount(cell, weights=values, minlength=self.n_groups * self.n_models)
        return sums.reshape(self.n_groups, self.n_models).astype(np.float64)


def additive_prior(counts: np.ndarray, sums: np.ndarray, ridge: float) -> np.ndarray:
    """pi_gm: ridge regression of quality on group and model, with a free intercept, clipped to 0..1.

    The design has one row per observation, but it enters only through counts and sums per cell, so the
    normal equations have 1 + G + M unknowns however many observations there are.
    """
    n_groups, n_models = counts.shape
    by_group, by_model, total = counts.sum(1), counts.sum(0), counts.sum()
    top = np.concatenate([[total], by_group, by_model])
    normal = np.zeros((len(top), len(top)))
    normal[0], normal[:, 0] = top, top
    inner = normal[1:, 1:]
    inner[:n_groups, n_groups:] = counts
    inner[n_groups:, :n_groups] = counts.T
    inner[np.diag_indices_from(inner)] = top[1:] + ridge
    solution = np.linalg.solve(normal, np.concatenate([[sums.sum()], sums.sum(1), sums.sum(0)]))
    effects = solution[1 : n_groups + 1, None] + solution[None, n_groups + 1 :]
    return np.clip(solution[0] + effects, 0.0, 1.0)


def shrunken(counts: np.ndarray, sums: np.ndarray, prior: np.ndarray, strength: float) -> np.ndarray:
    """mu_gm: the cell's mean drawn towards the prior, which is worth ``strength`` observations (tau)."""
    weight = counts + strength
    return np.divide(sums + strength * prior, weight, out=prior.copy(), where=weight > 0)


def residual_weights(
    seen: Observations, prior: np.ndarray, features: sp.csr_matrix, *, shrinkage: float, ridge: float,
    min_observations: int, tolerance: float,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """One ridge predictor per model of what its group estimate misses: (D, M) weights and (M,) intercepts.

    Each target leaves its own outcome out of the group estimate. A model with fewer than
    ``min_observations`` outcomes gets zero weights.
    """
    cells = seen.groups, seen.models
    counts, sums = seen.table()[cells] - 1, seen.table(seen.quality)[cells] - seen.quality
    target = seen.quality - shrunken(counts, sums, prior[cells], shrinkage)
    tried = np.bincount(seen.models, minlength=seen.n_models)
    return ridges(
        features, seen.rows, seen.models, target, chosen=np.flatnonzero(tried >= max(min_observations, 1)),
        n_models=seen.n_models, ridge=ridge, tolerance=tolerance,
    )  # fmt: skip


def cost_table(seen: Observations) -> tuple[np.ndarray, np.ndarray]:
    """(G, M) expected cost with back-off to the model's mean, and the (M,) means themselves."""
    counts, sums = seen.table(), seen.table(seen.cost)
    tried = counts.sum(0) > 0
    means = np.divide(sums.sum(0), counts.sum(0), out=np.zeros(seen.n_models), where=tried)
    means[~tried] = UNSEEN_COST * means[tried].max()
    return np.divide(sums, counts, out=np.tile(means, (seen.n_groups, 1)), where=counts > 0), means
