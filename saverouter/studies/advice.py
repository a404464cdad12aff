"""A decision in words: what to do, what it saves, what it costs to find out, and which data would say more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..judging import in_points
from ..paper import short

if TYPE_CHECKING:
    from .decision import Decision

MONTHS = (
    12  # over which evaluation has to come back; sets how many fresh queries and how large a K are worth their money
)

LONG = 100 * 365.25  # days, beyond which nobody counts


def days(queries: float, monthly: float) -> float:
    """How long so many queries take."""
    return queries / monthly * 365.25 / 12


def sentences(found: Decision) -> str:
    """The decision in a few sentences, for reading aloud."""
    if found.action == "no answer":
        return f"No answer: {found.reason}."
    told = [_do(found)]
    if found.action != "keep":
        told += [_saves(found), _quality(found)]
    told += [_evaluation(found)]
    return " ".join([*told, *wanted(found)])


def money(amount: float, currency: str) -> str:
    """12,300 USD, 0.00123 USD: three digits, and no more precise than that."""
    if not math.isfinite(amount):
        return "never"
    rounded = float(f"{amount:.3g}") if amount else 0.0
    text = f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.10f}".rstrip("0").rstrip(".")
    return f"{text} {currency}".strip()


def time(span: float) -> str:
    """Days as people say them."""
    if not math.isfinite(span):
        return "never"
    if span > LONG:
        return "more than 100 years"
    for size, unit in ((1 / 24, "hours"), (1, "days"), (365.25 / 12, "months"), (365.25, "years")):
        number = span / size
        if number < {"hours": 48, "days": 60, "months": 24, "years": math.inf}[unit]:
            return (
                f"{number:.2g} {unit}"
                if number >= 1
                else f"less than {'an hour' if unit == 'hours' else 'a ' + unit[:-1]}"
            )
    raise AssertionError(span)


def _do(found: Decision) -> str:
    whose = found.reference if found.named else f"{found.reference} (the best single model, as none was named)"
    if found.action == "keep":
        return f"Keep {whose}: {found.reason}."
    if found.action == "replace":
        return f"Replace {whose} by {found.policy.model}, for all queries; no router is needed."
    return (
        f"Put SaveRouter before {whose}: its certified policy sends {found.certificate.share:.0%} of the queries to cheaper "
        "models."
    )


def _saves(found: Decision) -> str:
    value, low, high = (money(part, "") for part in found.saved)
    bill = money(found.month * found.result.reference.cost, found.currency)
    span = "a month" if found.month == found.monthly else f"over {found.month:,.0f} queries"
    return f"That saves {value} {span} ({low} to {high}, {found.confidence:.0%} interval) of {bill}."


def _quality(found: Decision) -> str:
    value, low, high = found.quality
    broken = ""
    if high < -found.margin:
        broken = " The test contradicts that: certify on more fresh queries before you deploy."
    elif round(value, 1) < -found.margin:
        broken = f" The test measured a larger loss, which on its {found.tested:,} queries may be chance."
    return (
        f"Quality changes by {value:+.1f} points as tested ({low:+.1f} to {high:+.1f}), and was shown beforehand to lose at "
        f"most {in_points(found.margin)} ({found.confidence:.0%} confidence).{broken}"
    )


def _evaluation(found: Decision) -> str:
    spent, size = money(found.evaluation, found.currency), len(found.router.models_)
    taught = f"{found.k} of {size} models" if found.router.budget is None else f"{found.outcomes:,} outcomes"
    what = (
        f"Finding out takes {spent} of model calls ({taught} on {found.learnt:,} queries to teach the router, "
        f"then {found.certificate.bought:,} of {found.fresh:,} fresh queries to certify)"
    )
    if found.action == "keep":
        return f"{what}, which nothing earns back."
    back = days(found.payback, found.monthly)
    return f"{what}, earned back after {short(found.payback)} queries: {time(back)} at {found.monthly:,.0f} a month."


def wanted(found: Decision) -> list[str]:
    """Which data would say more, where these are few."""
    plan, told = found.plan, []
    if found.fresh >= plan.recommended:
        return told
    if found.fresh < plan.fewest and math.isfinite(plan.fewest):
        least = math.ceil(100 * found.margin * plan.fewest / found.fresh) / 100  # never as little as was asked for
        told.append(
            f"So few fresh queries can show a loss of at most {in_points(least)}, not {found.margin:g}; {plan.fewest:,} are the "
            f"fewest, which a table of about {table_for(found, plan.fewest):,} such queries holds."
        )
    told.append(
        f"More would show more: {plan.recommended:,} fresh queries are worth their price over {MONTHS} months, which a table of "
        f"about {table_for(found, plan.recommended):,} queries holds; this one held {found.fresh:,}."
    )
    return told


def table_for(found: Decision, fresh: float) -> int:
    """How many queries a table like this one needs to hold so many fresh ones, to two digits."""
    return int(float(f"{fresh * found.queries / found.fresh:.1e}"))
