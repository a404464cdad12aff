"""Kunko's audit of judges: made-up emails and coding tasks, sorted by four models."""

from __future__ import annotations

from pathlib import Path

from ...errors import SaveRouterError
from ..archives import members
from ..workload import Workload
from .outcomes import complete_table, lines

SETS = ("email-routing-v2", "email-routing-adversarial-v2", "task-routing-v2")
RUNS = {"gemini-3.6-flash": "llm-gemini-3.6-flash", "jev": "jev", "laya": "laya", "qwen3-8b": "llm-qwen3-8b"}
MEMBERS = (
    rf"[^/]+/(examples/({'|'.join(SETS)})/labels\.jsonl"
    rf"|docs/runs/v05/({'|'.join(SETS)})/({'|'.join(RUNS.values())})\.ckpt\.jsonl)"
)


def convert(archive: Path) -> Workload:
    """Whether each model's decision equals the label, at what it cost."""
    files = {name.partition("/")[2]: list(lines(content)) for name, content in members(archive, MEMBERS)}
    asked, found = {}, {}
    for part in SETS:
        labels = [record for record in _of(files, f"examples/{part}/labels.jsonl") if record.get("idx") != -1]
        asked |= {f"{part}-{number:04d}": record for number, record in enumerate(labels)}
        for model, run in RUNS.items():
            for record in _of(files, f"docs/runs/v05/{part}/{run}.ckpt.jsonl")[1:]:  # the first line is a header
                query, (answer,) = f"{part}-{record['idx']:04d}", record["judgments"]
                right = answer["decision"] == asked[query]["labels"][answer["question"]]
                found[query, model] = float(right), answer["cost_usd"]
    queries = list(asked)
    return Workload(
        query_ids=queries,
        prompts=[_prompt(record) for record in asked.values()],
        tasks=[query.rpartition("-")[0] for query in queries],
        models=tuple(RUNS),
        **complete_table(found, queries, tuple(RUNS)),
        families={"template": [record["_meta"]["template"] for record in asked.values()]},
        name="recorded/kunko",
        provenance=(
            "recorded answers and costs in USD shipped in the package kunko-judge-audit 0.6.0rc2 (Apache-2.0)",
            "the texts are made up from templates, the answers are real; a template's texts are near-duplicates, which "
            "split(together='template') keeps on one side",
            "quality is 1 where the decision is the label; cost is as recorded, 0 for the local models",
            "left out: 3,050 rows of logprob-qwen3-8b, qwen3-8b read in another way; repeats; sets without texts",
        ),
    )


def _of(files: dict[str, list[dict]], name: str) -> list[dict]:
    if name not in files:
        raise SaveRouterError(f"there is no {name} in it; it is not the expected file")
    return files[name]


def _prompt(record: dict) -> str:
    (question,) = record["questions"]
    return f"{question['instructions']}: {', '.join(question['options'])}\n\n{record['state']}"
