"""The front page: the question, its answer in three computed sentences, and the evidence at a glance.

Everything is read from the tables that notebooks left in a profile's folder. ``NN_frontiers``, ``NN_singles``,
``NN_seeds`` and ``NN_claims...`` count, of notebooks that finished; what a missing table would show is left out, and the
page says which notebook gives it. Names of workloads, models and policies are text, never markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..judging import Reference, Result
from ..paper import published, short
from ..paper.claims import FAILS, HOLDS, UNTESTABLE, UNTOLD
from .outputs import as_named

TEMPLATES = Path(__file__).with_name("templates")
OURS = "SaveRouter"
MARGINS = (0.0, 0.5, 1.0, 2.0)  # points below the best single model
YEAR = 1_000_000  # queries, unless somebody said how many
LOWEST_TARGET = 0.9  # of the what-if; points of lower quality need not be embedded
DOLLARS = re.compile(r"paretobandit|recorded/.*", re.DOTALL)  # workloads whose costs are known to be in dollars
SOURCES = {"simulated": "simulated", "original": "recorded", "recorded": "recorded"}  # what stands before the slash
YOURS = "11"  # the notebook on one's own table, whose frontier counts where it stands alone
NOISE = 1e-9
STEPS = 2  # of the slider of quality targets in a per cent
TIE = 0.01  # cost ratios that differ by no more are as good as equal; a router's supervision is not in them
SYMBOLS = {HOLDS: "✓", FAILS: "✗", UNTOLD: "~", UNTESTABLE: "?"}
WORDS = {"workload", "router", "reference", "policy", "model", "method"}
FRONTIERS = ["workload", "router", "reference", "reference_quality", "reference_cost", "supervision_cost", "reference_spent",
             "policy", "quality", "cost", "reference_part"]  # fmt: skip
SINGLES = ["workload", "model", "quality", "cost"]
SEEDS = ["workload", "method", "seed", "sa_bep"]


def render(folder: Path, about: dict, prefix: str = "", others: dict | None = None) -> str:
    """The page of one profile; on the page above all profiles, ``prefix`` leads to the profile's folder.

    A folder ``alone`` holds one notebook on one table, whose own answer says it all.
    """
    finished = {entry["name"][:2]: entry for entry in about["entries"] if not entry["failed"]}
    places = read_places(folder, finished)
    groups = read_claims(folder, finished)
    rows, pairs = payback_rows(places), [found for found in map(need_rows, places) if found]
    question = decided(folder) if about["alone"] else {}
    if about["alone"]:
        rows, pairs = [], []
    scripted = any(place.results for place in places) or groups
    script = (TEMPLATES / "whatif.js").read_text(encoding="utf-8") if scripted else ""
    told = {
        "answers": [payback_answer(rows), router_answer(pairs), claims_answer(groups)], "data_line": data_line(places),
        "rows": rows, "ticks": ticks(rows), "pairs": pairs, "groups": groups, "symbols": SYMBOLS, "never": math.inf,
        "script": Markup(script), "data": Markup(embedded(places, question.get("currency"))) if places else "",
        "policy": allowed(about["policy"], script), "year": 12 * question.get("monthly", YEAR / 12),
        "target": target_of(places, question.get("margin", 0.0)),
    }  # fmt: skip
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True, lstrip_blocks=True)  # fmt: skip
    environment.filters |= {"short": short, "percent": percent, "left": left}
    return environment.get_template("index.html.j2").render({**about, **told}, prefix=prefix, others=others or {})


def decided(folder: Path) -> dict:
    """What was asked of the decision in a folder; nothing where there is none."""
    try:
        return json.loads((folder / "decision.json").read_text(encoding="utf-8"))["asked"]
    except (OSError, ValueError, KeyError):
        return {}


def target_of(places: list[Place], margin: float) -> float:
    """The margin that was asked for as a share of the reference's quality, per cent: rounded up, so that no more may go."""
    quality = places[0].reference.quality if places and places[0].results else 0.0
    least = math.ceil(STEPS * (100 - margin / quality)) / STEPS if margin and quality else 100.0
    return max(100 * LOWEST_TARGET, least)


def allowed(policy: str, script: str) -> str:
    """The content policy, which lets the one script of the page run and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'" if script else policy


@dataclass(frozen=True)
class Place:
    """What the tables say of one workload: results and supervision spent on the best model by router, models, seeds."""

    name: str
    results: dict[str, Result]
    spent: dict[str, float]
    models: list[dict] = field(default_factory=list)
    seeds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        before, _, after = self.name.partition("/")
        return after if before in SOURCES and after else self.name

    @property
    def source(self) -> str:
        return SOURCES.get(self.name.partition("/")[0], "recorded")

    @property
    def reference(self) -> Reference:
        return next(iter(self.results.values())).reference


def read_tables(folder: Path, pattern: str, columns: list[str], finished: Iterable[str]) -> dict[str, pd.DataFrame]:
    """The tables of finished notebooks by file; one without these columns is not what is asked for."""
    found = {}
    for path in sorted((folder / "tables").glob(pattern)):
        try:
            frame = pd.read_csv(path, dtype=str, keep_default_na=False).map(as_named)  # a model may be called "NA"
            numbers = {name: frame[name].replace("", "nan").astype(float) for name in columns if name not in WORDS}
        except (ValueError, KeyError, OSError):
            continue
        if path.name[:2] in finished and set(columns) <= set(frame):
            found[path.name] = frame.assign(**numbers)
    return found


def _by_workload(folder: Path, kind: str, columns: list[str], finished: Iterable[str]) -> dict[str, pd.DataFrame]:
    """A workload that two notebooks speak of is the later one's."""
    frames = read_tables(folder, f"[0-9][0-9]_{kind}.csv", columns, finished).values()
    return {name: part for frame in frames for name, part in frame.groupby("workload", sort=False)}


def read_places(folder: Path, finished: Iterable[str]) -> list[Place]:
    """The workloads on which SaveRouter was judged, in the notebooks' order."""
    finished = {number for number in finished if number != YOURS} or finished
    models, seeds = (_by_workload(folder, *asked, finished) for asked in (("singles", SINGLES), ("seeds", SEEDS)))
    places = []
    for name, frame in _by_workload(folder, "frontiers", FRONTIERS, finished).items():
        routers = dict(list(frame.groupby("router", sort=False)))
        if OURS in routers:
            alone = models[name].dropna(subset=["quality", "cost"]).to_dict("records") if name in models else []
            drawn = {key: list(part["sa_bep"]) for key, part in seeds[name].groupby("method")} if name in seeds else {}
            results = {router: _result(part) for router, part in routers.items()}
            spent = {router: float(part["reference_spent"].iloc[0]) for router, part in routers.items()}
            places.append(Place(name, results, spent, alone, drawn))
    return places


def _result(part: pd.DataFrame) -> Result:
    first = part.iloc[0]
    points = part[["policy", "quality", "cost", "reference_part"]].rename(columns={"reference_part": "reference_cost"})
    reference = Reference(first["reference"], float(first["reference_quality"]), float(first["reference_cost"]))
    points = points.sort_values("cost", kind="stable", ignore_index=True)
    return Result(first["router"], first["workload"], points, reference, float(first["supervision_cost"]))


def payback_rows(places: list[Place]) -> list[dict]:
    """A row per workload: when SaveRouter pays back, and the next router, which is the first of the others."""
    paper = pd.concat([published("main_results"), published("large_pool")]).set_index(["benchmark", "method"])["sa_bep"]
    rows = []
    for place in places:
        others = [router for router in place.results if router != OURS]
        rival = min(others, key=lambda router: place.results[router].sa_bep, default=None)
        known = place.label if place.name != place.label else None
        marks = [_mark(place, router, paper.get((known, router))) for router in (OURS, rival) if router]
        if len(marks) == 2 and math.isinf(marks[1]["payback"]):
            marks[1] |= {"router": "any other router", "published": None, "seeds": [], "told": ""}
        row = {"label": place.label, "source": place.source, "model": place.reference.model, "marks": marks}
        rows.append(
            row | {"first": marks[0]["payback"] < min([mark["payback"] for mark in marks[1:]], default=math.inf)}
        )
    return rows


def _mark(place: Place, router: str, paper: float | None) -> dict:
    """One router's place on the axis; ``seeds`` are the finite ones, ``misses`` says how many never pay back."""
    drawn = [value for value in place.seeds.get(router, []) if not math.isnan(value)]
    finite, count = [value for value in drawn if math.isfinite(value)], len(drawn)
    misses = f"never on {count - len(finite)} of {count} seeds" if len(finite) < count else ""
    spread = f"{short(min(finite))} to {short(max(finite))} over {count} seeds" if len(finite) > 1 else ""
    told = ", ".join(text for text in (spread, misses) if text)
    return {
        "router": router,
        "payback": place.results[router].sa_bep,
        "published": paper,
        "seeds": finite,
        "told": told,
    }


def ticks(rows: list[dict]) -> list[float]:
    """Powers of ten around everything that is drawn, 1K to 10M at least."""
    drawn = [x for row in rows for mark in row["marks"] for x in (mark["payback"], mark["published"], *mark["seeds"])]
    powers = [math.log10(max(x, 1)) for x in drawn if x is not None and math.isfinite(x)]
    return [10.0**n for n in range(min([3, *map(math.floor, powers)]), max([7, *map(math.ceil, powers)]) + 1)]


def left(payback: float, marks: list[float]) -> float:
    """Per cent from the left end of the axis; "never" has a lane of its own at the right end."""
    if math.isinf(payback):
        return 93.5
    low, high = math.log10(marks[0]), math.log10(marks[-1])
    return round(2 + 80 * (math.log10(max(payback, 1)) - low) / (high - low), 2)


def need_rows(place: Place) -> list[dict]:
    """SaveRouter's cost ratio beside that of the cheapest single model that is as good, at each margin."""
    rows, best = [], place.reference
    for margin in MARGINS:
        result = place.results[OURS].at(margin=margin)
        good = [model for model in place.models if model["quality"] >= result.target_quality - NOISE]
        if not good or best.cost == 0:
            continue
        alone = min(good, key=lambda model: model["cost"])
        ratio, router = alone["cost"] / best.cost, result.cost_ratio
        cheaper = "equal" if abs(ratio - router) <= TIE else "single" if ratio < router else "router"
        rows.append({"label": place.label, "source": place.source, "best": best.model, "margin": margin, "router": router,
                     "model": alone["model"], "single": ratio, "cheaper": cheaper,
                     "needless": cheaper != "router" and ratio < 1 - NOISE})  # fmt: skip
    return rows


def read_claims(folder: Path, finished: dict[str, dict]) -> list[dict]:
    """The paper's statements by notebook, with the notebook's name and title."""
    groups: dict[str, dict] = {}
    for file, frame in read_tables(folder, "[0-9][0-9]_claims*.csv", [], finished).items():
        if {"the paper says", "here"} <= set(frame):
            entry = finished[file[:2]]
            group = groups.setdefault(
                entry["name"], {"name": entry["name"], "title": entry["card"].title, "claims": []}
            )
            group["claims"] += [
                {"statement": row["the paper says"], "here": row["here"], "there": row.get("published table", ""),
                 "numbers": row.get("measured numbers", ""), "published": row.get("published numbers", "")}
                for row in frame.to_dict("records") if row["here"] in SYMBOLS
            ]  # fmt: skip
    return [group for group in groups.values() if group["claims"]]


def payback_answer(rows: list[dict]) -> dict | None:
    """On how many workloads SaveRouter pays back, when, and whether before every other router."""
    if not rows:
        return None
    ours = [row["marks"][0]["payback"] for row in rows if math.isfinite(row["marks"][0]["payback"])]
    firsts = [row["marks"] for row in rows if row["first"]]
    leads = [marks[1]["payback"] / marks[0]["payback"] for marks in firsts if len(marks) > 1]
    leads = [lead for lead in leads if math.isfinite(lead)]
    found = {"figure": f"{len(ours)} of {len(rows)}", "title": f"SaveRouter pays back on {_of(len(ours), rows)}"}
    if not ours:
        rivals = sum(math.isfinite(mark["payback"]) for row in rows for mark in row["marks"][1:])
        text = f"SaveRouter reaches the best single model's quality and pays back on {_of(0, rows)}"
        return found | {"sentence": f"{text}; another router does on {rivals}."}
    text = f"SaveRouter reaches the best single model's quality and pays back on {_of(len(ours), rows)}, {_after(ours)}"
    ahead = f", where the next router takes {_span(leads)} times as many" if leads else ""
    title = f"{found['title']}, before every other router on {len(firsts)}"
    return found | {"title": title, "sentence": f"{text}; it is the first router to do so on {len(firsts)}{ahead}."}


def router_answer(pairs: list[list[dict]]) -> dict | None:
    """Whether a router is needed if one point of quality may go."""
    rows = [row for found in pairs for row in found if row["margin"] == 1]
    if not rows:
        return None
    found = [row["label"] for row in rows if row["needless"]]
    named = f" ({', '.join(found)})" if 0 < len(found) <= 3 else ""
    text = f"on {_of(len(found), rows)}{named} a single cheaper model does it at about SaveRouter's cost or less"
    title = f"With one point of quality to spare, a single model is enough on {_of(len(found), rows)}"
    return {
        "figure": f"{len(found)} of {len(rows)}",
        "title": title,
        "sentence": f"If one point of quality may go, {text}.",
    }


def claims_answer(groups: list[dict]) -> dict | None:
    """How many of the paper's statements hold here."""
    here = [claim["here"] for group in groups for claim in group["claims"]]
    if not here:
        return None
    holds, fails, untold, untested = (here.count(answer) for answer in (HOLDS, FAILS, UNTOLD, UNTESTABLE))
    verbs = ("holds" if holds == 1 else "hold", "does" if fails == 1 else "do")
    title = f"{holds} of {len(here)} statements of the paper {verbs[0]} here"
    text = f"Of {len(here)} statements of the paper {holds} {verbs[0]} here, {fails} {verbs[1]} not"
    more = [f"{number} cannot be {what}" for number, what in ((untold, "told"), (untested, "tested")) if number]
    text += "".join(f", {told}" for told in more[:-1]) + (f", and {more[-1]}." if more else ".")
    return {"figure": f"{holds} of {len(here)}", "title": title, "sentence": text}


def data_line(places: list[Place]) -> str:
    """Where the outcomes come from."""
    simulated = sum(place.source == "simulated" for place in places)
    return f"{simulated} of {len(places)} workloads simulated, {len(places) - simulated} recorded" if places else ""


def _of(count: int, rows: list) -> str:
    return f"{count or 'none'} of {len(rows)} workload{'' if len(rows) == 1 else 's'}"


def _after(values: list[float]) -> str:
    low, high = short(min(values)), short(max(values))
    return f"after {low} queries" if low == high else f"after {low} to {high} queries"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"


def percent(ratio: float) -> str:
    """0.4686 as 46.9%."""
    return f"{float(f'{100 * ratio:.3g}'):g}%" if math.isfinite(ratio) else "not reached"


def embedded(places: list[Place], currency: str | None = None) -> str:
    """What the what-if needs, as JSON that cannot end the block it stands in. Costs are in ``currency`` if one is known."""
    told = []
    for place in places:
        best = place.reference
        least = LOWEST_TARGET * best.quality - 2 * NOISE
        routers = [
            {"name": router, "supervision": result.supervision_cost, "spent": place.spent[router], "peak": result.peak_score,
             "points": result.frontier[result.frontier["quality"] >= least].to_numpy().tolist()}
            for router, result in sorted(place.results.items(), key=lambda item: item[0] != OURS)
        ]  # fmt: skip
        models = [[row["model"], row["quality"], row["cost"]] for row in place.models if row["quality"] >= least]
        told.append({"name": place.name, "model": best.model, "quality": best.quality, "cost": best.cost,
                     "currency": currency or ("USD" if DOLLARS.fullmatch(place.name) else ""), "routers": routers,
                     "models": models})  # fmt: skip
    return json.dumps(told).replace("<", "\\u003c")
