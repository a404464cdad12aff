"""MLP: two small networks, one for quality and one for cost."""

from __future__ import annotations

from .base import DenseRouter
from .shared.neural import known_mean, known_tensors, low_rank_layers, optimise, outputs, seeded, tensor


class MLP(DenseRouter):
    """A network per target, as in the predictive routers of RouterBench (Hu et al., 2024), in ORBIT's shape.

    Each is ``low_rank_layers``: a linear bottleneck, then 256 and 128 hidden units. Its squared error is
    the mean over the known pairs. The estimates are the raw outputs, so a quality may leave 0..1.

    Parameters
    ----------
    epochs, batch, rate : of Adam, for both networks (ORBIT: 20, 2048, 1e-3)
    orbit : "early" or "late", see ``DenseRouter``
    seed : of the initial weights and the order of the minibatches
    """

    label = "MLP"

    def __init__(self, *, epochs=20, batch=2048, rate=1e-3, orbit="early", seed=42):
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        inputs = tensor(vectors)
        *targets, known = known_tensors(quality, cost)
        # Both are drawn before either is trained, as in ORBIT: what a seed draws depends on the order.
        with seeded(self.seed):
            nets = [low_rank_layers(inputs.shape[1], target.shape[1]) for target in targets]
            for net, target in zip(nets, targets, strict=True):
                self._train(net, inputs, target, known)
        self.quality_net_, self.cost_net_ = nets

    def _train(self, net, inputs, target, known):
        optimise(
            lambda rows: known_mean((net(inputs[rows]) - target[rows]) ** 2, known[rows]),
            net.parameters(), len(inputs), epochs=self.epochs, batch=self.batch, rate=self.rate, name=self.label,
        )  # fmt: skip

    def _predict(self, vectors, queries):
        return outputs(self.quality_net_, vectors), outputs(self.cost_net_, vectors)
