"""What the routers with a neural network share: seed and thread, minibatches, masked losses, prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from ...progress import counted

CHUNK = 8192


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch draws from this seed and works in one thread; the caller's random state stays as it was.

    These networks are too small for threads to help, and with threads the result would depend on the number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def tensor(values: ArrayLike) -> torch.Tensor:
    """Values as a float32 tensor."""
    return torch.as_tensor(np.asarray(values, dtype=np.float32))


def known_tensors(quality: np.ndarray, cost: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Quality and cost with 0 where unknown, and the mask of what is known."""
    known = np.isfinite(quality)
    return tensor(np.where(known, quality, 0.0)), tensor(np.where(known, cost, 0.0)), torch.as_tensor(known)


def cost_unit(cost: np.ndarray) -> float:
    """What to divide costs by for a net whose outputs lie in 0..1: 1, as published, or the largest cost if that is more."""
    return max(1.0, float(np.nanmax(cost)))


def known_mean(losses: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Mean loss over the known entries."""
    return (losses * known).sum() / known.sum().clamp(min=1)


def better_pairs(quality: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """(n, M, M) mask of pairs of models: both are known for the query, and the first is better."""
    return (quality[:, :, None] > quality[:, None, :]) & known[:, :, None] & known[:, None, :]


def ranking_losses(score: torch.Tensor, better: torch.Tensor) -> torch.Tensor:
    """softplus(-(s_i - s_j)) where i is better than j, else 0."""
    return nn.functional.softplus(score[:, None, :] - score[:, :, None]) * better


def in_parts(loss: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor, size: int) -> torch.Tensor:
    """The loss of a batch too large for memory, for ``optimise``.

    ``loss`` gives a part's share of the batch's loss. The gradients of all parts but the last are added up here, so
    ``optimise`` then steps along the gradient of the whole batch.
    """
    *parts, last = rows.split(size)
    for part in parts:
        loss(part).backward()
    return loss(last)


def optimise(
    loss: Callable[[torch.Tensor], torch.Tensor], parameters: Iterable[nn.Parameter], n: int, *, epochs: int,
    batch: int, rate: float = 1e-3, decay: float = 0.0, smallest: int = 1,
    kind: type[torch.optim.Optimizer] = torch.optim.Adam, name: str = "",
) -> None:  # fmt: skip
    """Minimise ``loss(rows)`` over shuffled minibatches; one with fewer than ``smallest`` rows is skipped."""
    optimiser = kind(list(parameters), lr=rate, weight_decay=decay, fused=True)
    for _ in counted(epochs, name, "epochs"):
        for rows in torch.randperm(n).split(batch):
            if len(rows) >= smallest:
                optimiser.zero_grad(set_to_none=True)
                loss(rows).backward()
                optimiser.step()


@torch.inference_mode()
def outputs(function: Callable[[torch.Tensor], torch.Tensor], vectors: np.ndarray, chunk: int = CHUNK) -> np.ndarray:
    """``function`` of the vectors, a chunk at a time, as float64."""
    parts = [function(part) for part in tensor(vectors).split(chunk)]
    return torch.cat(parts).double().numpy()


def layers(*sizes: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU, and dropout where asked for, between them."""
    parts: list[nn.Module] = []
    for here, there in zip(sizes, sizes[1:], strict=False):
        parts += [nn.Linear(here, there), nn.ReLU(), *([nn.Dropout(dropout)] if dropout else [])]
    while not isinstance(parts[-1], nn.Linear):
        parts.pop()
    return nn.Sequential(*parts)


def low_rank_layers(inputs: int, outputs: int) -> nn.Sequential:
    """ORBIT's "MF-MLP": a linear bottleneck of a quarter of the inputs and back, then 256 and 128 with ReLU."""
    narrow = max(inputs // 4, 1)
    net = nn.Sequential(nn.Linear(inputs, narrow), nn.Linear(narrow, inputs), *layers(inputs, 256, 128, outputs))
    for part in net:
        if isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=0.01)
            nn.init.zeros_(part.bias)
    return net


class CostNet:
    """ORBIT's shared cost network (late), for routers without a cost model: 128 and 64 hidden units on z-scores."""

    def fit(self, vectors: np.ndarray, cost: np.ndarray, seed: int) -> CostNet:
        """Learn the (n, M) costs where they are known."""
        self.scale_ = _moments(vectors)
        self.cost_scale_ = _moments(cost)
        scaled = (cost - self.cost_scale_[0]) / self.cost_scale_[1]
        target, _, known = known_tensors(scaled, scaled)
        inputs = tensor((vectors - self.scale_[0]) / self.scale_[1])
        with seeded(seed):
            self.net_ = layers(vectors.shape[1], 128, 64, cost.shape[1])
            optimise(
                lambda rows: known_mean((self.net_(inputs[rows]) - target[rows]) ** 2, known[rows]),
                self.net_.parameters(), len(inputs), epochs=50, batch=256, kind=torch.optim.AdamW, name="cost",
            )  # fmt: skip
        return self

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """(n, M) costs."""
        scaled = outputs(self.net_, (vectors - self.scale_[0]) / self.scale_[1])
        return scaled * self.cost_scale_[1] + self.cost_scale_[0]


def _moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation per column, over the known entries; a constant column keeps its scale."""
    known = np.isfinite(values)
    counts = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, values, 0.0).sum(axis=0) / counts
    spread = np.sqrt((np.where(known, values - mean, 0.0) ** 2).sum(axis=0) / counts)
    return mean, np.where(spread < 1e-6, 1.0, spread)
