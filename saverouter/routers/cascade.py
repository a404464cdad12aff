"""A cascade: ask a cheap model first, have its answer judged, and ask the next model where it is not good enough.

FrugalGPT (Chen et al. 2023) and AutoMix (Aggarwal et al. 2024) learn such a judge from answers. None are recorded here, so the
judge is stated instead, as RouterBench (Hu et al. 2024) does: it knows the quality of an answer q, and with a probability e it
says 1 - q. That leaves out that a judge of answers may be wrong more often where a query is hard (the second setting,
``judge_errs="on hard"``, has that), alike on similar queries, or in favour of one model, and that it takes time.

Nothing is drawn: what a cascade scores and costs is an expectation over the errors of its judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.base import clone

from ..errors import SaveRouterError, one_of, share, whole
from ..judging import masked, pareto
from ..workloads import Asked, Feedback, Queries, model_means
from .base import Router, buy

ERRS = ("evenly", "on hard")
LEARNT_ANEW = ("judge_error", "judge_cost", "judge_errs", "stages")
WORTH = 12  # models that chains are made of, at most
THRESHOLDS = 20  # of a stage, at most ...
COMBINATIONS = 5_000  # ... and no more than keep all chains within this many, before gates
GATES = np.arange(1, 10) / 10  # quantiles of what the router ahead expects a stage to lack
ROWS = 4_096  # of training queries at a time


@dataclass(frozen=True)
class StatedJudge:
    """A judge that says 1 - q of an answer of quality q with probability ``error``; a judgement costs ``cost``.

    errs : "evenly", or "on hard": the error rises linearly with the rank of a query's difficulty, which is 1 - the mean quality
        of its answers over the pool. Its mean is the same, and it never exceeds 0.5.
    """

    error: float
    cost: float
    errs: str

    def errors(self, quality: np.ndarray) -> np.ndarray:
        """(n,) probability of an error for each query, from (n, M) outcomes."""
        if self.errs == "evenly":
            return np.full(len(quality), self.error)
        known = np.isfinite(quality)
        mean = np.where(known, quality, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        place = (rankdata(1 - mean) - 0.5) / len(mean)
        lowest = max(0.0, 2 * self.error - 0.5)
        return lowest + 2 * (self.error - lowest) * place

    def rejects(self, quality: np.ndarray, errors: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """(thresholds, n) probability that an answer is said to be below a threshold."""
        thresholds = np.asarray(thresholds)[:, None]
        return (1 - errors) * (quality < thresholds) + errors * (1 - quality < thresholds)


@dataclass(frozen=True)
class Stages:
    """One cascade: columns of the pool in the order they are asked, a threshold for each but the last, and the gate.

    gate : a query enters at the first stage that the router ahead expects to score this much more than the last (negative: less);
        -inf is always the first
    """

    columns: tuple[int, ...]
    thresholds: tuple[float, ...] = ()
    gate: float = -np.inf

    def label(self, models: Sequence[str]) -> str:
        steps = [
            f"{models[column]} at {least:.4g}" for column, least in zip(self.columns, self.thresholds, strict=False)
        ]
        said = ", then ".join([*steps, models[self.columns[-1]]])
        if np.isneginf(self.gate):
            return said
        how = f"{self.gate:.4g} better than" if self.gate > 0 else f"within {-self.gate:.4g} of"
        return f"{said}, entered at the first expected {how} the last"


@dataclass(frozen=True)
class CascadePolicies:
    """Cascades as operating points: what they serve hangs on answers, so that they choose nothing beforehand.

    fallback : columns in the order in which they answer a query that can have no stage
    estimates : (n, M) qualities that the router ahead expects, or None
    """

    cascades: Sequence[Stages]
    models: tuple[str, ...]
    judge: StatedJudge
    fallback: np.ndarray
    estimates: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.cascades)

    def label(self, index: int) -> str:
        return self.cascades[index].label(self.models)

    def choice(self, index: int, models: tuple[str, ...] = ()):
        raise SaveRouterError(
            f"{self.label(index)!r} chooses by the answers it gets, so that no model can be named beforehand; call "
            "realised(quality, cost), or served(index, quality, cost, column) for each query's share"
        )

    policy = choice

    def realised(self, quality: np.ndarray, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean quality and mean cost of every cascade, all calls and judgements charged."""
        served = _Served(quality, cost, self.judge, self.fallback, self.estimates)
        means = np.array([served.by(stages).mean(axis=1) for stages in self.cascades]).reshape(-1, 2)
        return means[:, 0], means[:, 1]

    def served(
        self, index: int, quality: np.ndarray, cost: np.ndarray, column: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n,) expected quality and cost, and the part of the cost that one model takes at whatever stage."""
        served = _Served(quality, cost, self.judge, self.fallback, self.estimates, payee=column)
        return tuple(served.by(self.cascades[index]))


class _Served:
    """Outcomes by query, and what cascades make of them: expected quality, cost and, of that, what a payee is paid.

    payee : the column of one model, or None; without it there are two figures instead of three
    """

    def __init__(self, quality, cost, judge: StatedJudge, fallback, estimates=None, errors=None, payee=None):
        self.quality, self.cost, self.payee = quality, cost, payee
        self.there = np.isfinite(quality)
        self.judge = judge
        self.errors = judge.errors(quality) if errors is None else errors
        self.fallback = fallback[np.argmax(self.there[:, fallback], axis=1)]
        self.estimates = None if estimates is None else masked(estimates, self.there)

    def outcomes(self, columns: np.ndarray | int, there: np.ndarray) -> np.ndarray:
        """(figures, n) of one model, or of a model per query; 0 where a query cannot have it."""
        rows, columns = np.arange(len(self.quality)), np.broadcast_to(columns, len(self.quality))
        cost = self.cost[rows, columns]
        shares = [] if self.payee is None else [np.where(columns == self.payee, cost, 0.0)]
        return np.where(there, np.stack([self.quality[rows, columns], cost, *shares]), 0.0)

    def by(self, stages: Stages) -> np.ndarray:
        """(figures, n) of one cascade."""
        reached = self.from_each(stages.columns, [np.array([least]) for least in stages.thresholds])
        entry = self.entries(stages.columns, np.array([stages.gate]))[:, 0]
        return np.stack(reached)[entry, :, 0, np.arange(len(entry))].T

    def means(self, columns: tuple[int, ...], grids: list[np.ndarray], gates: np.ndarray) -> np.ndarray:
        """(figures, thresholds, gates) means; thresholds in the order of ``itertools.product``."""
        reached, entry = self.from_each(columns, grids), self.entries(columns, gates)
        found = 0.0
        for stage, values in enumerate(reached):
            part = values @ (entry == stage).astype(float)
            found = found + np.tile(part, (1, reached[0].shape[1] // values.shape[1], 1))
        return found / len(entry)

    def from_each(self, columns: tuple[int, ...], grids: list[np.ndarray]) -> list[np.ndarray]:
        """For each stage, (figures, thresholds from there on, n) for queries that enter there.

        From the last to the first: what an answer is worth if it is accepted, else what the stages after it give. A stage that a
        query cannot have is passed by, and the last that it can have is accepted unseen.
        """
        there = self.there[:, columns]
        last = _last(there)
        value, found = self.outcomes(self.fallback, ~there.any(axis=1))[:, None], []
        for stage in reversed(range(len(columns))):
            here = there[:, stage]
            outcomes = self.outcomes(columns[stage], here)
            judged = here & (last != stage)
            on = np.zeros((1, len(here)))
            if stage < len(grids):
                on = np.where(judged, self.judge.rejects(outcomes[0], self.errors, grids[stage]), 0.0)
            on = np.where(here, on, 1.0)
            value = on[:, None] * value[:, None]  # (figures, thresholds here, thresholds after, n)
            value[0] += ((1 - on) * outcomes[0])[:, None]
            value[1:] += outcomes[1:, None, None]
            value[1] += self.judge.cost * judged
            value = value.reshape(len(value), -1, len(here))
            found.append(value)
        return found[::-1]

    def entries(self, columns: tuple[int, ...], gates: np.ndarray) -> np.ndarray:
        """(n, gates) stage at which each query enters."""
        there = self.there[:, columns]
        if self.estimates is None:
            return np.zeros((len(there), len(gates)), dtype=np.int64)
        good = self.gaps(columns)[:, :, None] >= gates
        good[np.arange(len(there)), _last(there)] = True
        return np.argmax(good, axis=1)

    def gaps(self, columns: tuple[int, ...]) -> np.ndarray:
        """(n, stages) how much more than the last that a query can have each stage is expected to score."""
        there = self.there[:, columns]
        expected = self.estimates[:, columns]
        final = expected[np.arange(len(there)), _last(there)]
        return expected - np.where(np.isfinite(final), final, 0.0)[:, None]


def _last(there: np.ndarray) -> np.ndarray:
    return there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)


class Cascade(Router):
    """Asks cheap models first and escalates where a stated judge says that an answer is not good enough.

    It buys every available outcome of a ``share`` of the training queries: a threshold needs all stages of the same query. Chains
    are the models worth asking (no other was both better and cheaper, or as good and cheaper) in the order of their mean price.
    Thresholds are quantiles of bought qualities. Every chain with every threshold is scored on what was bought, and the frontier
    of those is what it offers. In a large pool 12 models are worth asking, evenly spread from the cheapest to the best, and a
    stage has as many thresholds, up to 20, as keep all that is scored within 5,000 cascades.

    When serving, every call and every judgement is charged. When learning, answers of bought outcomes are judged with the stated
    error and for nothing. A stage that is unavailable is passed by; the last one is not judged.

    Parameters
    ----------
    judge_error : e, probability that the judge says 1 - q of an answer of quality q; 0.5 is a coin
    judge_cost : money per judgement, in the unit of the costs
    judge_errs : "evenly", or "on hard": more often on hard queries, with the same mean
    stages : models that are asked for one query, at most
    share : of the training queries, drawn at random, of which every available outcome is bought
    ahead : a router that says at which stage a query enters, or None: always at the first. It is cloned, and fitted on the same
        queries through the same feedback, which charges a pair twice that both buy (``feedback.spent_distinct`` counts it
        once). The cascades without its help stay on offer. Its estimates of the training queries are those of a router that
        has seen their outcomes, so that it looks better in learning than it is.
    seed : of the draw

    After ``fit``: ``cascades_``, ``worth_`` (columns), ``bought_rows_`` and ``bought_`` (their quality and cost), and ``ahead_``.
    """

    needs_answers = True

    def __init__(
        self, *, judge_error: float = 0.1, judge_cost: float = 0.0, judge_errs: str = "evenly", stages: int = 3,
        share: float = 1.0, ahead: Router | None = None, seed: int = 42,
    ) -> None:  # fmt: skip
        self.judge_error = judge_error
        self.judge_cost = judge_cost
        self.judge_errs = judge_errs
        self.stages = stages
        self.share = share
        self.ahead = ahead
        self.seed = seed

    @property
    def label(self) -> str:
        return "Cascade" if self.ahead is None else f"Cascade, {self.ahead.label} ahead"

    def _refuse_options(self) -> None:
        super()._refuse_options()
        if self.judge_error > 0.5:
            raise SaveRouterError(
                f"judge_error is {self.judge_error}; expected at most 0.5, which is a coin: of a judge that errs more often, "
                "believe the opposite"
            )
        one_of("judge_errs", self.judge_errs, ERRS)
        whole("stages", self.stages, least=1)
        share("share", self.share)
        if self.ahead is not None and not callable(getattr(self.ahead, "estimates", None)):
            raise SaveRouterError(f"ahead is {self.ahead!r:.60}; expected a router, e.g. saverouter.SaveRouter(k=4)")
        if getattr(self.ahead, "hindsight", False) or getattr(self.ahead, "needs_answers", False):
            raise SaveRouterError(f"{self.ahead.label} expects nothing before an answer; put a router ahead that does")

    def _fit(self, queries: Queries, feedback: Feedback) -> None:
        wanted = np.array(feedback.available(queries))
        size = max(1, round(self.share * len(wanted)))
        drawn = np.random.default_rng(self.seed).choice(len(wanted), size, replace=False)
        wanted[np.setdiff1d(np.arange(len(wanted)), drawn)] = False
        quality, cost = buy(feedback, wanted)
        self.bought_rows_ = np.flatnonzero(np.isfinite(quality).any(axis=1))
        self.bought_ = np.stack([quality, cost])[:, self.bought_rows_]
        self.mean_quality_, self.mean_cost_ = map(model_means, self.bought_)
        self.worth_ = worth_asking(self.bought_[0], self.mean_quality_, self.mean_cost_)
        self.ahead_ = None if self.ahead is None else clone(self.ahead).fit(queries, feedback)
        self._learn(queries)

    def relearnt(self, *, ahead: Router | None = None, **changes) -> Cascade:
        """A copy that learns anew from what was bought, with another judge, other stages, or a fitted router ahead."""
        self._refuse_unfitted()
        for name in changes:
            one_of("what a cascade can learn anew", name, LEARNT_ANEW)
        new = self._copied()
        for name, value in changes.items():
            setattr(new, name, value)
        if ahead is not None:
            new.ahead = new.ahead_ = ahead
        new._refuse_options()
        if new.ahead_ is not None and not hasattr(new, "train_queries_"):
            raise SaveRouterError("a copied cascade does not hold the queries it was fitted on; fit it again")
        new._learn(getattr(new, "train_queries_", None))
        return new

    @property
    def _judge(self) -> StatedJudge:
        return StatedJudge(float(self.judge_error), float(self.judge_cost), self.judge_errs)

    @property
    def _fallback(self) -> np.ndarray:
        """Columns in the order in which they answer where no stage can: those worth asking first, the cheapest first."""
        by_price = np.argsort(self.mean_cost_, kind="stable")
        return np.concatenate([self.worth_, by_price[~np.isin(by_price, self.worth_)]])

    def _learn(self, queries: Queries | None) -> None:
        """The frontier of all cascades on what was bought, and that of those that need no router ahead."""
        cascades, points = self._scored(queries)
        kept = pareto(points)["place"].tolist()
        kept += pareto(points[points["plain"]])["place"].tolist()
        self.cascades_ = [cascades[place] for place in dict.fromkeys(kept)]

    def _scored(self, queries: Queries | None) -> tuple[list[Stages], pd.DataFrame]:
        quality, cost = self.bought_
        known = None if self.ahead_ is None else self.ahead_.estimates(queries.take(self.bought_rows_))[0]
        judge, errors = self._judge, self._judge.errors(quality)
        parts = [slice(start, start + ROWS) for start in range(0, len(quality), ROWS)]
        served = [
            _Served(quality[part], cost[part], judge, self._fallback, None if known is None else known[part], errors[part])
            for part in parts
        ]  # fmt: skip
        sizes = np.array([len(part.there) for part in served]) / len(quality)
        most = thresholds_of(len(self.worth_), self.stages)
        grid = {column: threshold_quantiles(quality[:, column], most) for column in self.worth_}
        cascades, means = [], []
        for columns in chains(self.worth_, self.stages):
            grids, gates = [grid[column] for column in columns[:-1]], np.array([-np.inf])
            if known is not None and len(columns) > 1:
                gaps = np.concatenate([part.gaps(columns)[:, :-1].ravel() for part in served])
                gaps = gaps[np.isfinite(gaps)]
                gates = np.append(gates, np.unique(np.quantile(gaps, GATES))) if len(gaps) else gates
            mean = sum(size * part.means(columns, grids, gates) for size, part in zip(sizes, served, strict=True))
            means.append(mean.reshape(2, -1))
            cascades += [
                Stages(columns, tuple(map(float, least)), float(gate))
                for least, gate in product(product(*grids), gates)
            ]
        scored, paid = np.concatenate(means, axis=1)
        plain = np.isneginf([stages.gate for stages in cascades])
        columns = {"quality": scored, "cost": paid, "plain": plain, "place": np.arange(len(cascades))}
        return cascades, pd.DataFrame(columns)

    def policies(self, queries: Asked) -> list:
        queries = self._queries(queries)
        known = None if self.ahead_ is None else self.ahead_.estimates(queries)[0]
        return [CascadePolicies(self.cascades_, self.models_, self._judge, self._fallback, known)]

    def predict_quality(self, queries: Asked) -> np.ndarray:
        """What each model alone is expected to score: its mean, or what the router ahead says. So ``predict_cost``."""
        return self._alone(queries, "predict_quality", "mean_quality_")

    def predict_cost(self, queries: Asked) -> np.ndarray:
        return self._alone(queries, "predict_cost", "mean_cost_")

    def _alone(self, queries: Asked, ask: str, means: str) -> np.ndarray:
        queries = self._queries(queries)
        if self.ahead_ is not None:
            return getattr(self.ahead_, ask)(queries)
        return np.tile(getattr(self, means), (len(queries), 1))

    def _choose(self, queries, cost_weight):
        raise SaveRouterError(
            f"{self.label} cannot route: which model serves a query hangs on the answers it gets, and no judge of answers is "
            "here. Judge it with evaluate(router, test, ...), or route with a router of estimates, e.g. saverouter.SaveRouter"
        )


def worth_asking(quality: np.ndarray, mean_quality: np.ndarray, mean_cost: np.ndarray) -> np.ndarray:
    """Columns by rising mean price of models that were tried, and that none beats in both means; at most 12, evenly spread."""
    tried = np.flatnonzero(np.isfinite(quality).any(axis=0))
    means = pd.DataFrame({"quality": mean_quality[tried], "cost": mean_cost[tried], "column": tried})
    columns = pareto(means)["column"].to_numpy()
    return columns[np.unique(np.linspace(0, len(columns) - 1, WORTH).round().astype(int))]


def chains(columns: np.ndarray, stages: int) -> list[tuple[int, ...]]:
    """Every choice of up to so many models, in the order given."""
    columns = [int(column) for column in columns]
    return [chain for size in range(1, stages + 1) for chain in combinations(columns, size)]


def thresholds_of(models: int, stages: int) -> int:
    """How many thresholds a stage may have."""
    for most in range(THRESHOLDS, 1, -1):
        if sum(comb(models, size) * most ** (size - 1) for size in range(1, stages + 1)) <= COMBINATIONS:
            return most
    return 1


def threshold_quantiles(quality: np.ndarray, most: int) -> np.ndarray:
    """Quantiles of qualities above the lowest, which would reject nothing: of answers that are right or wrong, one."""
    quality = quality[np.isfinite(quality)]
    least = np.unique(np.quantile(quality, np.arange(1, most + 1) / most, method="inverted_cdf"))
    return least[least > quality.min()] if len(least) and least[-1] > quality.min() else least[-1:]
