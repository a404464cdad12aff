"""TRouter: recognise the task, then look up what each model does on it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from .base import DenseRouter, distinct_tasks
from .shared.descriptions import text_vectors
from .shared.neural import cost_unit, known_mean, known_tensors, layers, optimise, outputs, seeded, tensor

HIDDEN = 256
DROPOUT = 0.1


class TRouter(DenseRouter):
    """Task-type router in the toolkit ORBIT's in-domain variant.

    A recogniser reads the query's vector and a sentence about each training task, and gives a distribution over these
    tasks. One decoder per model turns each sentence into quality and cost. The task of a test query is not read; tasks
    that only test queries have are unknown. Sentences are encoded by MiniLM; where queries bring vectors of their own,
    see ``text_vectors``.

    Parameters
    ----------
    temperature : of the distribution over tasks
    task_weight : of the recogniser's own loss
    epochs, batch, rate : of Adam
    orbit, seed : see ``DenseRouter``

    Decoded costs lie between 0 and 1, as the published costs do; where a cost is larger, costs are divided by the
    largest one for training.
    """

    label = "TRouter"
    deviation = "sentences about tasks are our own; lists the tasks of training queries only"

    def __init__(self, *, temperature=0.07, task_weight=1.0, epochs=20, batch=256, rate=1e-3, orbit="early", seed=42):
        self.temperature = temperature
        self.task_weight = task_weight
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.orbit = orbit
        self.seed = seed

    def _learn(self, vectors, quality, cost, queries):
        self.tasks_, task = distinct_tasks(queries)
        sentences = text_vectors([task_sentence(name) for name in self.tasks_], vectors.shape[1])
        self.unit_ = cost_unit(cost)
        inputs, task = tensor(vectors), torch.as_tensor(task)
        quality, cost, known = known_tensors(quality, cost / self.unit_)
        with seeded(self.seed):
            self.net_ = _TaskNet(tensor(sentences), quality.shape[1], self.temperature)

            def loss(rows):
                log_tasks = self.net_.log_tasks(inputs[rows])
                scored, paid = (log_tasks.exp() @ table for table in self.net_.tables())
                missed = (scored - quality[rows]) ** 2 + (paid - cost[rows]) ** 2
                chance = log_tasks.gather(1, task[rows, None]).exp()
                return known_mean(missed, known[rows]) - self.task_weight * torch.log(chance + 1e-8).mean()

            optimise(
                loss, self.net_.parameters(), len(inputs),
                epochs=self.epochs, batch=self.batch, rate=self.rate, name=self.label,
            )  # fmt: skip
        self.net_.eval()

    def _predict(self, vectors, queries):
        posterior = outputs(lambda part: self.net_.log_tasks(part).exp(), vectors, chunk=1024)
        with torch.inference_mode():
            quality, cost = (table.double().numpy() for table in self.net_.tables())
        return posterior @ quality, posterior @ cost * self.unit_


def task_sentence(name: str) -> str:
    """A sentence about a task, from its name."""
    words = " ".join(str(name).replace("_", " ").replace("-", " ").split())
    return f"Task type: {words or 'general'}."


class _TaskNet(nn.Module):
    def __init__(self, sentences: torch.Tensor, n_models: int, temperature: float):
        super().__init__()
        size = sentences.shape[1]
        self.register_buffer("sentences", sentences)
        self.temperature = temperature
        self.query, self.task = layers(size, HIDDEN, size), layers(size, HIDDEN, size)
        self.pair = nn.Linear(2 * size, HIDDEN)
        self.after = nn.Sequential(
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, 1),
        )
        self.decoders = nn.ModuleList([_Decoders(size, n_models) for _ in range(2)])

    def log_tasks(self, vectors):
        """(n, tasks) log-probabilities. The layer on [query; task] is a sum of two, each computed once."""
        size = vectors.shape[1]
        of_query = F.linear(self.query(vectors), self.pair.weight[:, :size], self.pair.bias)
        of_task = F.linear(self.task(self.sentences), self.pair.weight[:, size:])
        return torch.log_softmax(self.after(of_query[:, None] + of_task)[..., 0] / self.temperature, dim=1)

    def tables(self):
        """(tasks, M) quality and cost."""
        return [decoder(self.sentences) for decoder in self.decoders]


class _Decoders(nn.Module):
    """One small network per model, all evaluated together."""

    def __init__(self, size: int, n_models: int):
        super().__init__()
        nets = [layers(size, HIDDEN, HIDDEN, 1) for _ in range(n_models)]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for depth in (0, 2, 4):
            self.weights.append(torch.stack([net[depth].weight.detach().T for net in nets]))
            self.biases.append(torch.stack([net[depth].bias.detach() for net in nets]))

    def forward(self, sentences):
        values = sentences.expand(len(self.biases[0]), -1, -1)
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if depth:
                values = F.dropout(F.relu(values), DROPOUT, self.training)
            values = torch.baddbmm(bias[:, None], values, weight)
        return torch.sigmoid(values[..., 0]).T
