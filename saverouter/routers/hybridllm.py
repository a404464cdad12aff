"""HybridLLM: a small model where it will do, else a large one."""

from __future__ import annotations

import numpy as np
from torch.nn.functional import binary_cross_entropy_with_logits

from .shared.neural import low_rank_layers, optimise, outputs, seeded, tensor
from .shared.preference import PreferenceRouter

EARLY_CUT = 0.5  # on the raw logit, that is a probability of 0.62


class HybridLLM(PreferenceRouter):
    """Predicts whether the cheapest model (by mean cost) does at least as well as the dearest, and uses only these two.

    Parameters
    ----------
    epochs, batch, rate : of Adam
    orbit : "early" uses the small model where the raw logit reaches 0.5, "late" where the probability does;
        for costs and operating points see ``PreferenceRouter``
    seed : of initial weights and minibatches

    ``predict_quality`` is a preference, not an estimate. Models other than the two are at -1, and serve only where
    neither of the two is available.
    """

    label = "HybridLLM"

    def __init__(self, *, epochs=50, batch=4096, rate=1e-3, orbit="early", seed=42):
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn_preference(self, vectors, quality):
        tried = np.isfinite(quality).any(axis=0)
        self.small_ = int(np.argmin(np.where(tried, self.mean_cost_, np.inf)))
        self.large_ = int(np.argmax(np.where(tried, self.mean_cost_, -np.inf)))
        small, large = quality[:, self.small_], quality[:, self.large_]
        both = np.isfinite(small) & np.isfinite(large)
        inputs, suffices = tensor(vectors[both]), tensor(small[both] >= large[both])
        with seeded(self.seed):
            self.net_ = low_rank_layers(vectors.shape[1], 1)
            optimise(
                lambda rows: binary_cross_entropy_with_logits(self.net_(inputs[rows])[:, 0], suffices[rows]),
                self.net_.parameters(), len(inputs), epochs=self.epochs, batch=self.batch, rate=self.rate, name="HybridLLM",
            )  # fmt: skip

    def _preference(self, vectors):
        probability = 1 / (1 + np.exp(-outputs(self.net_, vectors)[:, 0]))
        quality = np.full((len(vectors), len(self.models_)), -1.0)
        quality[:, self.large_] = 1 / (1 + np.exp(-EARLY_CUT)) if self.orbit == "early" else 0.0
        quality[:, self.small_] = probability if self.orbit == "early" else probability - 0.5
        return quality

    def _estimates(self, queries):
        """Where one of the two is available, no threshold may leave only a third model."""
        quality, cost = super()._estimates(queries)
        pair = [self.small_, self.large_]
        others = ~np.isin(np.arange(quality.shape[1]), pair)
        served = np.isfinite(quality[:, pair]).any(axis=1)
        return np.where(served[:, None] & others, -np.inf, quality), cost
