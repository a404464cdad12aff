"""What a careful person would warn of before a table decides anything: who was asked what, and what the numbers look like.

Every check is a function of a workload that gives findings. Thresholds stand here by name; those on who is compared with
whom stand in ``coverage``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .coverage import CONTENDS, common_rows, mean_error, on_other_queries, only_where_good
from .findings import Finding, named
from .units import unit_findings

if TYPE_CHECKING:
    from .workload import Workload

TOO_FEW = 50  # queries, with which a verdict would be chance
FEW = 300  # queries, below which it is weak; or this many for each model:
FEW_FOR_MODEL = 10
LOG = 0.1  # a table is a log where fewer of its queries have outcomes of two models
OFTEN_REPEATED = 0.05  # share of queries whose prompt stands under another id as well: more weaken a verdict
ENOUGH = 20  # outcomes from which on "always the same" means something
SAME = 0.01  # models that differ on a smaller share of the queries are as good as equal
HALF_THE_COST = 0.02  # share of the queries that carries half of a model's cost


def findings_of(work: Workload) -> Iterator[Finding]:
    """Everything that is found, in the order in which it is looked for."""
    picked = only_where_good(work.quality)
    yield from _log(work)
    yield from _picked(work, picked)
    yield from _never(work)
    yield from _few_outcomes(work, picked)
    yield from _other_queries(work, picked)
    yield from _few_queries(work)
    yield from _alike_names(work)
    yield from _repeated_prompts(work)
    yield from _constant_quality(work, picked)
    yield from _nothing_to_choose(work)
    yield from unit_findings(work)
    yield from _costs(work)


def _log(work: Workload) -> Iterator[Finding]:
    several = (work.available.sum(axis=1) > 1).mean()
    if len(work.models) < 2:
        yield Finding("weakens", "one model", f"The pool has one model, {work.models[0]}.", "Add one to choose from.")
    elif several < LOG:
        how = "Every query has" if several == 0 else f"{1 - several:.1%} of the queries have"
        yield Finding(
            "blocks", "log", f"{how} outcomes of one model only, as in a log of production: each model was asked other things.",
            "Run the same few hundred queries through every model; what is logged says little about who is better.",
        )  # fmt: skip


def _picked(work: Workload, picked: list[int]) -> Iterator[Finding]:
    for column in picked:
        rows = work.available[:, column]
        yield Finding(
            "blocks", "recorded where it did well",
            f"{work.models[column]} has outcomes on {rows.mean():.0%} of the queries, with mean quality "
            f"{work.quality[rows, column].mean():.2f} and hardly a bad one, where other models often do badly.",
            "Record its failures too, or leave the model out.",
        )  # fmt: skip


def _never(work: Workload) -> Iterator[Finding]:
    gone = [model for model, there in zip(work.models, work.available.any(axis=0), strict=True) if not there]
    if gone:
        yield Finding("weakens", "never available", f"No outcome at all: {named(gone)}.", "Record some, or drop it.")


def _few_outcomes(work: Workload, picked: list[int]) -> Iterator[Finding]:
    share = work.available.mean(axis=0)
    few = np.setdiff1d(np.flatnonzero((share > 0) & (share < CONTENDS)), picked)
    if len(few) and (work.available.sum(axis=1) > 1).mean() >= LOG:
        shown = [f"{work.models[column]} ({share[column]:.0%})" for column in few[np.argsort(share[few])]]
        yield Finding(
            "weakens", "few outcomes", f"Outcomes on less than {CONTENDS:.0%} of the queries: {named(shown)}.",
            "They are no candidates for the best single model; run them on the queries that the others have.",
        )  # fmt: skip
    contend, shared = common_rows(work.quality)
    if len(contend) > 1 and (work.available.sum(axis=1) > 1).mean() >= LOG and shared.sum() < TOO_FEW <= len(work):
        yield Finding(
            "blocks", "few common queries",
            f"The models with most outcomes share {shared.sum():,} of {len(work):,} queries.",
            f"Run them on the same queries, at least {TOO_FEW}, better several hundred.",
        )  # fmt: skip


def _other_queries(work: Workload, picked: list[int]) -> Iterator[Finding]:
    shown = {}
    for column, found in on_other_queries(work.quality).items():
        if column not in picked:
            apart = f"{abs(found.here - found.rest):.0f} points {'easier' if found.bias > 0 else 'harder'}"
            shown[f"{work.models[column]} ({apart}, {found.share:.0%} of the queries)"] = -abs(found.bias)
    if shown:
        yield Finding(
            "weakens", "other queries",
            "Recorded on other queries than the rest, as the other models' quality there tells: "
            f"{named(sorted(shown, key=shown.get))}.",
            "Its mean says as much about those queries; run it on the others too, or ask who decided what it was run on.",
        )  # fmt: skip


def _few_queries(work: Workload) -> Iterator[Finding]:
    size, wanted = len(work), max(FEW, FEW_FOR_MODEL * len(work.models))
    if size >= wanted:
        return
    contend, shared = common_rows(work.quality)
    rows = shared if shared.any() else np.ones(size, dtype=bool)
    means = [np.nanmean(work.quality[rows, column]) if np.isfinite(work.quality[rows, column]).any() else -1.0
             for column in contend]  # fmt: skip
    best = contend[int(np.argmax(means))]
    known = work.quality[work.available[:, best], best]
    error = mean_error(known)
    sure = _two_digits(len(known) * error**2)
    yield Finding(
        "blocks" if size < TOO_FEW else "weakens", "few queries",
        f"{size} queries for {len(work.models)} models: the mean quality of the best, {work.models[best]}, is known to "
        f"{error:.1f} points only (standard error).",
        f"Collect at least {wanted} queries" + (f"; for one point of standard error about {sure:,}." if sure > wanted else "."),
    )  # fmt: skip


def _two_digits(number: float) -> int:
    return int(float(f"{number:.1e}"))


def plain_name(model: str) -> tuple[str, ...]:
    """A name without case, spaces and punctuation; "gpt-3.5" and "gpt-35", "r" and "r+" stay apart."""
    seen = "".join(letter for letter in model if unicodedata.category(letter) != "Cf")  # a space without width is not
    text = unicodedata.normalize("NFKC", seen).casefold()
    return tuple(re.findall(r"[^\W\d_]+|\d+|[^\w\s\-.,:;/'\"()\[\]]", text)) or (text,)


def _alike_names(work: Workload) -> Iterator[Finding]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for model in work.models:
        alike.setdefault(plain_name(model), []).append(model)
    groups = [" and ".join(map(repr, names)) for names in alike.values() if len(names) > 1]
    if groups:
        yield Finding(
            "weakens", "alike names", f"Names that differ in case, spaces or punctuation only: {named(groups)}.",
            "If they are one model, give it one name: it counts as several with fewer outcomes each.",
        )  # fmt: skip


def _repeated_prompts(work: Workload) -> Iterator[Finding]:
    codes, prompts = pd.factorize(work.prompts)
    repeated = np.bincount(codes)[codes] > 1
    if not repeated.any() or _kept_together(work, codes):
        return
    first = work.query_ids[codes == codes[int(np.argmax(repeated))]][:2]
    yield Finding(
        "weakens" if repeated.mean() >= OFTEN_REPEATED else "notice", "repeated prompts",
        f"{repeated.sum():,} of {len(work):,} queries ({repeated.mean():.1%}) have a prompt that stands under another id too, "
        f"e.g. {first[0]!r} and {first[1]!r}; {len(prompts):,} prompts differ.",
        'A split keeps equal prompts on one side with together="prompt"; else a router has seen its test.',
    )  # fmt: skip


def _kept_together(work: Workload, codes: np.ndarray) -> bool:
    """Whether equal prompts are in one declared cluster anyway."""
    return work.clusters is not None and bool((pd.Series(work.clusters).groupby(codes).nunique() == 1).all())


def _constant_quality(work: Workload, picked: list[int]) -> Iterator[Finding]:
    counts = work.available.sum(axis=0)
    filled = [np.where(work.available, work.quality, end) for end in (np.inf, -np.inf)]
    low, high = filled[0].min(axis=0), filled[1].max(axis=0)
    same = np.setdiff1d(np.flatnonzero((counts >= ENOUGH) & (low == high)), picked)
    if len(same) == len(work.models) and len(set(low[same])) == 1:
        return  # which is said of all together
    if len(same):
        shown = [f"{work.models[column]} (always {low[column]:g})" for column in same]
        yield Finding(
            "weakens", "constant quality", f"The same quality on every query: {named(shown)}.",
            "Check that its answers were judged, and not a default or a failed call recorded.",
        )  # fmt: skip


def _nothing_to_choose(work: Workload) -> Iterator[Finding]:
    several = work.available.sum(axis=1) > 1
    if several.sum() < ENOUGH:
        return
    quality = work.quality[several]
    differ = (np.nanmax(quality, axis=1) > np.nanmin(quality, axis=1)).mean()
    if differ < SAME:
        means = np.array([np.nanmean(cost) if np.isfinite(cost).any() else np.inf for cost in work.cost.T])
        yield Finding(
            "weakens", "nothing to route",
            f"The models score the same on {'every query' if differ == 0 else f'{1 - differ:.1%} of the queries'}.",
            f"Take the cheapest, {work.models[int(np.argmin(means))]}, or judge more finely.",
        )  # fmt: skip


def _costs(work: Workload) -> Iterator[Finding]:
    cost, there = work.cost, work.available
    paid = np.where(there, cost, 0.0)
    free = np.flatnonzero(there.any(axis=0) & (paid.max(axis=0) == 0))
    if not paid.any():
        yield Finding("blocks", "no costs", "All costs are 0, so nothing can be saved.", "Record what each call costs.")
        return
    if len(free):
        shown = named([work.models[column] for column in free])
        yield Finding("weakens", "free models", f"Cost 0 on every query: {shown}.", "If they are not free, record it.")
    low = np.where(there, cost, np.inf).min(axis=0)
    flat = np.flatnonzero((there.sum(axis=0) >= ENOUGH) & (low == paid.max(axis=0)) & (low > 0))
    if len(flat):
        shown = named([work.models[column] for column in flat])
        yield Finding(
            "notice", "constant cost", f"The same cost on every query, as from a price list: {shown}.",
            "A measured cost would tell long queries from short ones.",
        )  # fmt: skip
    yield from _few_carry_most(work, paid)


def _few_carry_most(work: Workload, paid: np.ndarray) -> Iterator[Finding]:
    column = int(np.argmax(paid.sum(axis=0)))
    each = np.sort(paid[work.available[:, column], column])[::-1]
    count = 1 + int(np.searchsorted(np.cumsum(each), each.sum() / 2))
    if len(each) >= TOO_FEW and count <= max(1, HALF_THE_COST * len(each)):
        yield Finding(
            "weakens", "skewed costs",
            f"{count:,} of {len(each):,} queries carry half of the cost of {work.models[column]}.",
            "A saving then hangs on those few: look at them, and trust an interval rather than a mean.",
        )  # fmt: skip
