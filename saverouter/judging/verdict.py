"""The verdict on a router in words: a few sentences, with numbers rounded to what can be trusted."""

from __future__ import annotations

import math

SAVES = 0.995  # of the reference's bill: more would be read as 100%


def verdict(result, selected: str) -> str:
    """Whether routing pays for itself; ``selected`` says how the operating point was chosen."""
    if result.refusal:
        return f"No verdict: {result.refusal}"
    warning = result.coverage.warning if result.coverage else ""
    return f"{_answer(result, selected)}{warning and f' {warning}'}"


def _answer(result, selected: str) -> str:
    goal, best = _goal(result)
    single, point = result.comparable_single, result.operating_point
    bill = result.serving_cost + result.supervision_cost / result.horizon
    if single is not None and single.model != result.reference.model and single.cost <= bill:
        return _single(result, single, bill, goal, best, selected)
    if point is None:
        return f"No: {result.router} peaks at {result.peak_score:.2f} and does not reach {goal} ({best})."
    if not result.reaches:
        return (
            f"No: {result.router} scores {point['quality']:.2f} (policy: {point['policy']}) and does not reach {goal} ({best}), "
            f"at {result.cost_ratio:.0%} of its cost (operating point {selected}).{_interval(result)}"
        )
    if math.isinf(result.sa_bep):
        return f"No: {result.router} reaches {goal} ({best}) but saves nothing over it."
    pays = "Not within the horizon" if result.sa_bep > result.horizon else "Yes" if result.sa_cr < SAVES else "Hardly"
    bought = "supervision and certificate" if result.certificate_cost else "supervision"
    return (
        f"{pays}: {result.router} reaches {goal} ({best}) at {result.cost_ratio:.0%} of its cost (policy: {point['policy']}). "
        f"The {bought} {'are' if result.certificate_cost else 'is'} paid back after about {two_digits(result.sa_bep):,} queries; "
        f"over {result.horizon:,.0f} queries the whole bill, {bought} included, is {result.sa_cr:.0%} of {_whose(result)} "
        f"(operating point {selected}).{_interval(result)}{_test(result)}"
    )


def in_points(margin: float) -> str:
    """1 point, 2 points."""
    return f"{margin:g} point{'' if margin == 1 else 's'}"


def _whose(result) -> str:
    return f"{result.reference.model}'s" if result.named_reference else "the best single model's"


def _goal(result) -> tuple[str, str]:
    goal, value = f"{_whose(result)} quality", f"{result.reference.quality:.2f}"
    if result.margin is not None:
        goal = f"within {in_points(result.margin)} of {goal}"
    elif result.target != 1:
        goal = f"{result.target:.4g} of {goal}"
    return goal, value if result.named_reference else f"{result.reference.model}, {value}"


def _single(result, single, bill: float, goal: str, best: str, selected: str) -> str:
    alone, routed = (cost / result.reference.cost if result.reference.cost > 0 else 1.0 for cost in (single.cost, bill))
    other = (
        f"{result.router} takes {routed:.0%}, supervision included" if result.reaches else f"{result.router} does not"
    )
    how = f"model and operating point {selected}" if result.selection == "test" else "model chosen on test outcomes"
    return (
        f"No router needed: {single.model} alone reaches {goal} ({best}) at {alone:.0%} of its cost; {other} ({how})."
    )


def _interval(result, level: float = 0.9) -> str:
    if result.sample is None or result.operating_point.name < 0:  # a point that no policy realises has no outcomes
        return ""
    low, high = (result.interval(level)[end] for end in ("low", "high"))
    paid = " to ".join(f"{two_digits(n):,}" if math.isfinite(n) else "never" for n in (low["sa_bep"], high["sa_bep"]))
    return (
        f" {level:.0%} intervals over the test queries: quality {low.iloc[0]:+.1f} to {high.iloc[0]:+.1f} points from "
        f"{_whose(result)}, saving {low['saving']:.0%} to {high['saving']:.0%}, payback {paid}."
    )


def _test(result) -> str:
    if result.test_cost is None or not result.reference.cost > 0:
        return ""
    calls = two_digits(result.test_cost / result.reference.cost)
    return f" The test outcomes are on no bill; they cost as much as {calls:,} calls of {result.reference.model}."


def two_digits(number: float) -> int:
    """1,234 as 1,200: a break-even point moves by more than that from seed to seed."""
    return int(float(f"{number:.1e}"))
