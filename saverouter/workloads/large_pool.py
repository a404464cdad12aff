"""A large pool by rule: names that carry a parameter size, qualities that grow with it, costs that follow from it.

Typing hundreds of placeholder models would hide the few numbers that matter: how many models of which size there are,
how good that size is on average, and how far its models lie apart.
"""

from __future__ import annotations

import math
import re

import numpy as np

from ..errors import SaveRouterError

PRODUCT = re.compile(r"-(\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)+)b", re.IGNORECASE)
PLAIN = re.compile(r"-(\d+(?:\.\d+)?)\s*b\b", re.IGNORECASE)


def models_by_rule(rule: dict, listed: list[dict]) -> list[dict]:
    """The listed models and those of the rule, sorted by name, each with its price by size.

    Qualities are drawn around the mean of their size, and kept ``below_best`` under the best listed one: which model is
    best must not depend on a draw.
    """
    rng = np.random.default_rng(rule["seed"])
    ceiling = max(model["quality"] for model in listed) - rule["below_best"]
    models = list(listed)
    for entry in rule["sizes"]:
        names = [f"{family}-{entry['size']}-{kind}" for kind in rule["kinds"] for family in rule["families"]]
        if entry["count"] > len(names):
            raise SaveRouterError(
                f"{entry['count']} models of size {entry['size']} but {len(names)} names; add families or kinds"
            )
        drawn = entry["quality"] + rule["spread"] * rng.standard_normal(entry["count"])
        models += [
            {"name": name, "quality": round(float(value), 5)}
            for name, value in zip(names, np.clip(drawn, rule["lowest"], ceiling), strict=False)
        ]
    models.sort(key=lambda model: model["name"])
    prices = prices_by_size([model["name"] for model in models])
    return [{**model, "price": float(price)} for model, price in zip(models, prices, strict=True)]


def billions(name: str) -> float | None:
    """Parameters in billions, from the size after a hyphen, by RouterEval's rule; None where the name has none.

    A product counts wherever it stands, by its whole part: 56 of "-8x7b", 7 of "-4x1.8b". Otherwise the first plain size counts:
    7 of "-7b", 1.5 of "-1.5b".
    """
    if product := PRODUCT.search(name):
        return float(int(math.prod(float(factor) for factor in product[1].lower().split("x"))))
    plain = PLAIN.search(name)
    return float(plain[1]) if plain else None


def prices_by_size(names: list[str]) -> np.ndarray:
    """RouterEval's cost proxy: log(1 + billions), moved into 0.1..0.9 with a margin of a tenth of its range at both ends.

    The cheapest model of any pool costs 1/6, the dearest 5/6.
    """
    sizes = [billions(name) for name in names]
    if None in sizes:
        name = names[sizes.index(None)]
        raise SaveRouterError(f"model {name!r} has no parameter size in its name; expected one like '-7b' or '-8x7b'")
    logs = np.log1p(sizes)
    lowest, width = logs.min(), np.ptp(logs)
    if width == 0:
        raise SaveRouterError("all models have the same parameter size; their costs need at least two sizes")
    return 0.1 + 0.8 * (logs - lowest + 0.1 * width) / (1.2 * width)
