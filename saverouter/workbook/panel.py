"""A panel of sliders for a live notebook: what if volume, margin and price were others? Reports have a figure instead."""

from __future__ import annotations

from html import escape

from ..judging import Result, in_points
from ..progress import watched
from ..studies.advice import money, time
from ..studies.decision import Decision
from ..studies.scenarios import asked_again

MARGINS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0)
PRICES = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # of the reference, relative to today's


def panel(found: Decision, chosen: Result | None):
    """Sliders and the answer below them; None where nobody looks, so that a headless run stores no widget."""
    return sliders(found, chosen) if watched() and chosen is not None else None


def sliders(found: Decision, chosen: Result):
    """The panel itself, an ``ipywidgets.VBox``."""
    import ipywidgets as widgets

    wide = {"layout": widgets.Layout(width="34em"), "style": {"description_width": "11em"}}
    volume = widgets.FloatLogSlider(value=found.monthly, base=10, min=2, max=9, step=0.1, description="queries a month",
                                    readout_format=",.2s", **wide)  # fmt: skip
    margins = sorted({*MARGINS, found.margin})
    margin = widgets.SelectionSlider(options=[(in_points(one), one) for one in margins], value=found.margin,
                                     description="may be lost", **wide)  # fmt: skip
    price = widgets.SelectionSlider(options=[(f"{one:g} × today's", one) for one in PRICES], value=1.0,
                                    description="reference's price", **wide)  # fmt: skip
    answer = widgets.HTML()

    def show(_=None):
        answer.value = escape(in_a_sentence(found, asked_again(found, chosen, volume.value, margin.value, price.value)))

    for slider in (volume, margin, price):
        slider.observe(show, names="value")
    show()
    return widgets.VBox([volume, margin, price, answer])


def in_a_sentence(found: Decision, answer: dict) -> str:
    """The answer in a sentence."""
    bill, saved = (money(answer[name], found.currency) for name in ("bill", "saved"))
    if not answer["saved"]:
        return f"{found.reference} alone costs {bill} a month, and nothing is saved ({answer['basis']})."
    return (
        f"{found.reference} alone costs {bill} a month; {saved} of it are saved, and the evaluation is back after "
        f"{time(answer['back after days'])} ({answer['basis']})."
    )
