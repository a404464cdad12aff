"""YentlBench: 70 emergency patients, each described in four ways, triaged by 15 models."""

from __future__ import annotations

import json
from pathlib import Path

from ..archives import members
from ..workload import Workload
from .outcomes import complete_table

MEMBERS = r"yentlbench/results/[^/]+\.run\.json"
NANODOLLAR = 1e-9


def convert(archive: Path) -> Workload:
    """Whether each model named the right urgency, at what it cost.

    A run holds one model and one wording. Its subruns are the patients, whose number stands at the end of ``pyRunId``.
    """
    found, prompts = {}, {}
    for _, content in members(archive, MEMBERS):
        run = json.loads(content)
        model, wording = run["modelVersion"]["slug"], run["taskVersion"]["name"].partition("_scorer_")[2]
        for subrun in run["subruns"]:
            query = f"{wording}-{int(subrun['pyRunId'].partition('#')[2]):02d}"
            (conversation,), (result,) = subrun["conversations"], subrun["results"]
            metrics = conversation["metrics"]
            cost = int(metrics["inputTokensCostNanodollars"]) + int(metrics["outputTokensCostNanodollars"])
            found[query, model] = float(result["dictResult"]["is_correct"]), cost * NANODOLLAR
            prompts[query] = _asked(conversation["requests"][0]["contents"])
    queries, models = sorted(prompts), sorted({model for _, model in found})
    return Workload(
        query_ids=queries,
        prompts=[prompts[query] for query in queries],
        models=models,
        **complete_table(found, queries, models),
        clusters=[f"patient {query.rpartition('-')[2]}" for query in queries],
        name="recorded/yentlbench",
        provenance=(
            "recorded answers and costs in USD shipped in the package yentlbench 0.2.3 (MIT)",
            "quality is 1 where the urgency that the model named is the recorded one; cost is input plus output, as recorded",
            "a patient occurs in four wordings, which are one cluster; nothing is left out",
        ),
    )


def _asked(contents: list[dict]) -> str:
    return "\n".join(
        part["text"] for entry in contents if entry["role"] == "CONTENT_ROLE_USER" for part in entry["parts"]
    )
