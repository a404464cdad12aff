"""The figures: functions of results that return axes or a figure. ``look`` has what all of them share."""

from .bills import frontier, margins, payback, saturation_curve
from .choices import explained
from .contests import seeds, strips, targets
from .decisions import answers, bill_over_k, by_kind, chances, month, on_other_halves
from .look import (
    ACCENT,
    COLOURS,
    GREY,
    INK,
    SOFT,
    colour,
    headline,
    legend_below,
    never_lane,
    panels,
    queries_axis,
    short,
    style,
)
from .parts import arrival_scores, budget, changes, variants
from .promises import bills_over_fresh, certificate_path, differences
from .purchases import gains, gains_by_size, money_over_time, savings_by_judge
from .races import hero, paybacks, race
from .splits import batch_sizes, ceilings, payback_over_splits, saved_by_traits, scores_over_budgets, verdicts

__all__ = [
    "ACCENT",
    "COLOURS",
    "GREY",
    "INK",
    "SOFT",
    "answers",
    "arrival_scores",
    "batch_sizes",
    "bill_over_k",
    "bills_over_fresh",
    "budget",
    "by_kind",
    "ceilings",
    "certificate_path",
    "chances",
    "changes",
    "colour",
    "differences",
    "explained",
    "frontier",
    "gains",
    "gains_by_size",
    "headline",
    "hero",
    "legend_below",
    "margins",
    "money_over_time",
    "month",
    "never_lane",
    "on_other_halves",
    "panels",
    "payback",
    "payback_over_splits",
    "paybacks",
    "queries_axis",
    "race",
    "saturation_curve",
    "saved_by_traits",
    "scores_over_budgets",
    "savings_by_judge",
    "seeds",
    "short",
    "strips",
    "style",
    "targets",
    "variants",
    "verdicts",
]
