"""Which test outcomes there are, and whether a verdict can rest on them: who is compared with whom, on which queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..workloads import (
    COMMON,
    CONTENDS,
    Workload,
    common_rows,
    difference,
    mean_error,
    named,
    on_other_queries,
    only_where_good,
)

LEAST_QUERIES = 30  # test queries on which models can be compared; below it there is no verdict
FEW_QUERIES = 100  # below it, a verdict says how few they are
LEAST_SHARE = 0.7  # of the test queries that the reference must have
FLATTERED = 1.0  # points by which the reference's mean may be off because of the queries that it lacks ...
SURE = 3.0  # ... where this many standard errors show that those are others


@dataclass(frozen=True)
class Reference:
    """A single model on the test outcomes: its name, quality and cost; of the best one, Q_b and C_b."""

    model: str
    quality: float
    cost: float


def on_common_queries(test: Workload, reference: Reference, singles: Sequence[Reference]) -> tuple[Reference, ...]:
    """Single models as they do on the reference's queries, judged by those that they share with it.

    The difference in quality and the ratio of costs are those on shared queries. A model with less than half of the
    reference's queries is left out; one with the same queries keeps its means as they are.
    """
    there, column = np.isfinite(test.quality), test.models.index(reference.model)
    own, found = there[:, column], []
    for one in singles:
        place = test.models.index(one.model)
        both = own & there[:, place]
        if (there[:, place] == own).all():
            found.append(one)
        elif both.sum() >= CONTENDS * own.sum():
            quality, cost = test.quality[both], test.cost[both]
            gain, paid = (quality[:, place] - quality[:, column]).mean(), cost[:, column].mean()
            price = cost[:, place].mean() * (reference.cost / paid if paid > 0 else 1.0)
            found.append(replace(one, quality=reference.quality + float(gain), cost=float(price)))
    return tuple(found)


@dataclass(frozen=True)
class Coverage:
    """The test outcomes behind a result.

    queries, models : size of the test table
    share : of the queries on which the reference has an outcome
    common : queries on which all models have one that contend for the best single model
    compared : queries with outcomes of two models or more
    error : standard error of the reference's mean quality, in points
    bias, sure : points by which that mean flatters it, by what others score on the queries it lacks, and standard errors
    apart : models that do not contend, for want of outcomes
    elsewhere : models recorded on surely easier or harder queries than those that they lack
    picked : models that seem to be recorded only where they did well
    """

    queries: int
    models: int
    share: float
    common: int
    compared: int
    error: float
    bias: float = 0.0
    sure: float = 0.0
    apart: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    picked: tuple[str, ...] = ()

    @classmethod
    def of(cls, test: Workload, reference: int) -> Coverage:
        """Of a test workload and the reference's column."""
        there, values = np.isfinite(test.quality), test.quality[:, reference]
        known = values[there[:, reference]]
        shared = common_rows(test.quality)[1]
        other = difference(test.quality, reference)
        few = np.flatnonzero(there.mean(axis=0) < CONTENDS)
        return cls(
            queries=len(test),
            models=len(test.models),
            share=len(known) / len(test),
            common=int(shared.sum()),
            compared=int((there.sum(axis=1) > 1).sum()),
            error=mean_error(known),
            bias=other.bias if other else 0.0,
            sure=other.sure if other else 0.0,
            apart=tuple(test.models[column] for column in few),
            elsewhere=tuple(test.models[column] for column in on_other_queries(test.quality)),
            picked=tuple(test.models[column] for column in only_where_good(test.quality)),
        )

    def refusal(self, reference: str, given: bool = False) -> str | None:
        """Why there is no verdict, and which data would give one; ``given`` where the reference was not looked for."""
        if self.models > 1 and self.compared < min(LEAST_QUERIES, self.queries):
            return (
                f"{self.compared} of {self.queries:,} test queries have outcomes of two models or more, so the models were "
                f"asked different things and cannot be compared. Run the same {LEAST_QUERIES} queries or more, better "
                "several hundred, through every model."
            )
        if self.queries < LEAST_QUERIES:
            return (
                f"{self.queries} test queries are too few: {reference}'s mean quality is known to {self.error:.1f} points "
                f"only (standard error). At least {LEAST_QUERIES} test queries are needed, better several hundred."
            )
        if self.picked:
            return (
                f"{named(self.picked)} {'has' if len(self.picked) == 1 else 'have'} outcomes on some queries only, and hardly a "
                "bad one, where other models often do badly: it looks as if failures were not recorded. Record every "
                "outcome, or leave the model out."
            )
        if self.share < LEAST_SHARE:
            return (
                f"{reference} has outcomes on {self.share:.0%} of the {self.queries:,} test queries, and a comparison on all "
                f"of them needs {LEAST_SHARE:.0%}. Run it on the others, keep only the queries that it has, or name a "
                "reference that has more."
            )
        if abs(self.bias) >= FLATTERED and self.sure >= SURE:
            kind = "harder" if self.bias > 0 else "easier"
            return (
                f"{reference} lacks {1 - self.share:.0%} of the test queries, and these are {kind} than those it has: its mean "
                f"is off by about {abs(self.bias):.1f} points. Run it on the others, or keep only the queries that it has."
            )
        if not given and self.common < max(LEAST_QUERIES, COMMON * self.queries):
            return (
                f"the models have outcomes in common on {self.common:,} of {self.queries:,} test queries only, so the best "
                f"single one is not known. Run the models on the same queries, at least {COMMON:.0%} of them, or leave "
                "out those with few."
            )
        return None

    @property
    def warning(self) -> str:
        """What a verdict should not be read without, or nothing."""
        said = []
        if self.queries < FEW_QUERIES:
            said.append(
                f"Only {self.queries} test queries: a mean quality is known to {self.error:.1f} points (standard error)."
            )
        if self.apart:
            said.append(f"Outcomes on less than half of the test queries, so no candidate: {named(self.apart)}.")
        if self.elsewhere:
            said.append(f"Recorded on easier or harder queries than the rest: {named(self.elsewhere)}.")
        return " ".join(said)


def coverage_from(content: Mapping | None) -> Coverage | None:
    """What ``dataclasses.asdict`` and JSON made of a coverage."""
    if content is None:
        return None
    return Coverage(**{name: tuple(value) if isinstance(value, list) else value for name, value in content.items()})
