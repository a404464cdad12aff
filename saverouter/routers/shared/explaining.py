"""Why a router chose a model for a prompt, and how wrong its estimates may be before it would choose another."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from ...judging import Policy
from ...workloads import Asked

HALVINGS = 50  # of the error that is looked for; then it is known to sixteen digits


@dataclass(frozen=True)
class Explanation:
    """The choice for one prompt.

    choice : the model
    rule : what chose it, in words
    group : the group of the prompt, where the router has groups
    margin : by how much the utility of the choice exceeds the next (Proposition 3); inf where no error could change it, NaN
        where the router chooses by a rule of its own
    frame : a row per model: ``quality`` and ``cost`` as estimated, what else the router knows (for SaveRouter what its group
        scores, what the words add, how many outcomes of it were bought in the group), ``utility`` where a cost weight
        chooses, ``chosen``, and ``error``: how much all estimates of quality must be wrong, in favour of this model, before
        the choice changes
    """

    choice: str
    rule: str
    group: str | None
    margin: float
    frame: pd.DataFrame = field(compare=False)

    @property
    def error(self) -> float:
        """The choice stands as long as every estimate of quality is wrong by less: half the margin."""
        return self.margin / 2

    def __str__(self) -> str:
        where = "" if self.group is None else f" in group {self.group!r}"
        said = f"{self.choice}{where}, by {self.rule}"
        if np.isnan(self.margin):
            return f"{said}; the router's own rule, which has no margin."
        if np.isinf(self.margin):
            return f"{said}; no error of the estimates would change that."
        return f"{said}; another model would be chosen if estimates were wrong by {100 * self.error:.2g} points."


def explain(router, prompt: Asked, cost_weight: float, policy: Policy | None, own_rule: bool) -> Explanation:
    """``Router.explain``; a router with a rule of its own for a cost weight has no utility."""
    queries = router._queries(prompt)
    if len(queries) != 1:
        raise SaveRouterError(f"explain was given {len(queries)} prompts; give one, e.g. prompts[0]")
    quality, cost = router._estimates(queries)
    group, columns = router._details(queries)
    frame = pd.DataFrame({"model": list(router.models_), "quality": quality[0], "cost": cost[0], **columns})
    if policy is not None:
        chosen, rule = int(policy.choice(quality, cost)[0]), policy.label
        errors = tolerated(policy, quality[0], cost[0], chosen)
    else:
        chosen, rule = int(router._choose(queries, cost_weight)[0]), f"cost weight {cost_weight:.4g}"
        errors = np.full(len(frame), np.nan)
        if not own_rule:
            frame["utility"] = router._utility(quality, cost, cost_weight)[0]
            errors = (frame["utility"][chosen] - frame["utility"].to_numpy()) / 2
    errors[chosen] = np.nan
    rivals = np.delete(errors, chosen)
    margin = 2 * rivals.min() if len(rivals) else np.inf
    frame = frame.assign(error=errors, chosen=np.arange(len(frame)) == chosen)
    return Explanation(router.models_[chosen], rule, group, float(margin), frame)


def tolerated(policy: Policy, quality: np.ndarray, cost: np.ndarray, chosen: int) -> np.ndarray:
    """(M,) how far each model's estimate must rise, and all others fall, before a policy chooses differently.

    Found by halving, so that it holds for any policy; inf where an error of more than the whole range changes nothing.
    """
    known = np.isfinite(quality)
    rivals = np.flatnonzero(known & (np.arange(len(quality)) != chosen))
    costs, rows = np.tile(cost, (len(rivals), 1)), np.arange(len(rivals))

    def changes(error: np.ndarray) -> np.ndarray:
        wrong = quality - error[:, None]
        wrong[rows, rivals] = quality[rivals] + error
        return policy.choice(wrong, costs) != chosen

    errors, least = np.full(len(quality), np.inf), np.zeros(len(rivals))
    most = np.full(len(rivals), 1 + np.ptp(quality[known]))  # qualities lie between 0 and 1
    ever = changes(most)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        changed = changes(middle)
        least, most = np.where(changed, least, middle), np.where(changed, middle, most)
    errors[rivals] = np.where(ever, most, np.inf)
    return errors
