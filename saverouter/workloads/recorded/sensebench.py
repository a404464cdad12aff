"""SenseBench: which sense of a word is meant, answered by a cheap and a dear model."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

from ..archives import MOST_BYTES_OF_A_FILE, members
from ..workload import Workload
from .outcomes import complete_table, lines

MEMBERS = r"[^/]+/results/[^/]+-reasoning-[^/]+/(predictions\.jsonl|calls\.jsonl\.gz)"


def convert(archive: Path) -> Workload:
    """Whether each model chose a right sense, at what it cost; no valid answer is a wrong one."""
    found, prompts, runs, invalid = {}, {}, set(), 0
    for name, content in members(archive, MEMBERS):
        run, file = name.split("/")[2:]
        model = run.partition("-reasoning-")[0]  # such as "gpt-5-mini-minimal": the model and how much it may think
        runs.add(model)
        if file == "predictions.jsonl":
            for record in lines(content):
                found[record["item_id"], model] = float(record["is_correct"] or 0), record["cost"]["total_usd"]
                invalid += record["is_correct"] is None
        else:
            for record in lines(_unzipped(content)):
                asked = [message["content"] for message in record["messages"] if message["role"] == "user"]
                prompts[record["item_id"]] = asked[0]
    queries, models = sorted({query for query, _ in found}), sorted(runs)
    return Workload(
        query_ids=queries,
        prompts=[prompts[query] for query in queries],
        tasks=[query.partition(".")[0] for query in queries],
        models=models,
        **complete_table(found, queries, models),
        name="recorded/sensebench",
        provenance=(
            "recorded answers and costs in USD shipped in the package sensebench 0.1.0 (Apache-2.0)",
            "quality is 1 where the chosen sense is a right one; cost is the recorded total, second tries included",
            f"{invalid} answers were not valid: they count as wrong, with their cost; nothing is left out",
        ),
    )


def _unzipped(content: bytes) -> bytes:
    with gzip.open(io.BytesIO(content)) as file:
        found = file.read(MOST_BYTES_OF_A_FILE + 1)
    if len(found) > MOST_BYTES_OF_A_FILE:
        raise ValueError("calls.jsonl.gz unpacks to more than was agreed")
    return found
