"""The figures: functions of results that return axes or a figure. ``look`` has what all of them share."""

from .bills import frontier, margins, payback, saturation_curve
from .choices import explained
from .contests import seeds, strips, targets
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
from .races import hero, paybacks, race

__all__ = [
    "ACCENT",
    "COLOURS",
    "GREY",
    "INK",
    "SOFT",
    "arrival_scores",
    "budget",
    "changes",
    "colour",
    "explained",
    "frontier",
    "headline",
    "hero",
    "legend_below",
    "margins",
    "never_lane",
    "panels",
    "payback",
    "paybacks",
    "queries_axis",
    "race",
    "saturation_curve",
    "seeds",
    "short",
    "strips",
    "style",
    "targets",
    "variants",
]
