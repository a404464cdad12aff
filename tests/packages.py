"""Small packages in the layout of the published ones, with the awkward cases of each.

Each function returns a package's files by name; ``packed`` makes an archive of them.
"""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

from saverouter.workloads.recorded import kunko as kunko_reader


def texts(rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def yentlbench(right=(True, False)) -> dict:
    """Two models on two patients in two wordings."""
    made = {}
    for model, cost in (("a/cheap", 1_000), ("b/dear", 50_000)):
        for wording in ("male", "female"):
            subruns = [
                {"pyRunId": f"triage_{wording}-Run #{patient + 1}", "results": [{"dictResult": {"is_correct": value}}],
                 "conversations": [{"metrics": {"inputTokensCostNanodollars": str(cost), "outputTokensCostNanodollars": "500"},
                                    "requests": [{"contents": [
                                        {"role": "CONTENT_ROLE_USER", "parts": [{"text": f"Sex: {wording}, patient {patient}"}]},
                                        {"role": "CONTENT_ROLE_ASSISTANT", "parts": [{"text": "2"}]}]}]}]}
                for patient, value in enumerate(right)
            ]  # fmt: skip
            run = {
                "modelVersion": {"slug": model},
                "taskVersion": {"name": f"batch_scorer_{wording}"},
                "subruns": subruns,
            }
            made[f"yentlbench/results/{wording}-{model[0]}.run.json"] = json.dumps(run).encode()
    return made


def sensebench(verdict=True, cost=2e-3) -> dict:
    """A model that is always right, and one without a valid answer to the second of two items."""
    made = {}
    for model, verdicts in (("cheap-minimal", (verdict, None)), ("dear-medium", (True, True))):
        folder = f"sensebench-0.1.0/results/{model}-reasoning-p001"
        items = [f"{part}.d0.t{number}" for number, part in enumerate(("senseval2", "semeval2013"))]
        made[f"{folder}/predictions.jsonl"] = texts(
            {"item_id": item, "is_correct": right, "cost": {"total_usd": cost}}
            for item, right in zip(items, verdicts, strict=True)
        )
        calls = [
            {"item_id": item, "messages": [{"role": "system", "content": "?"}, {"role": "user", "content": f"art in {item}?"},
                                           *extra]}
            for item in items for extra in ([], [{"role": "assistant", "content": "?"}, {"role": "user", "content": "again"}])
        ]  # fmt: skip
        made[f"{folder}/calls.jsonl.gz"] = gzip.compress(texts(calls))
    return made


def kunko(cost=1e-5) -> dict:
    """Two texts of one template in every set; the second is decided wrongly by all models but jev."""
    made, top = {}, "kunko_judge_audit-0.6.0rc2"
    question = {"name": "category", "instructions": "Sort this", "options": ["order", "spam"]}
    for part in kunko_reader.SETS:
        labels = [{"idx": -1, "dataset": {}}] + [
            {"state": f"{part} no {n}", "questions": [question], "labels": {"category": "order"},
             "_meta": {"template": "order/en-1"}}
            for n in range(2)
        ]  # fmt: skip
        made[f"{top}/examples/{part}/labels.jsonl"] = texts(labels)
        for run in (*kunko_reader.RUNS.values(), "logprob-qwen3-8b"):
            rows = [
                {"idx": n, "judgments": [{"question": "category", "decision": decision, "cost_usd": cost}]}
                for n, decision in enumerate(("order", "order" if run == "jev" else ""))
            ]
            made[f"{top}/docs/runs/v05/{part}/{run}.ckpt.jsonl"] = texts([{"idx": -1, "run": {}}, *rows])
    return made


RUN = [
    ("system", "Be useful."), ("user", "Who comes to the party?"), ("assistant", "I will look."),
    ("tool", "Ann and Bob"), ("assistant", "Ann and Bob do."),
]  # fmt: skip


def agentdojo(utility=True) -> dict:
    """Two models on one task, alone and attacked; the dear one's attacked run was kept without messages."""
    made, top = {}, "agentdojo-0.1.29/runs"
    for model in ("gpt-4o-mini-2024-07-18", "gpt-4o-2024-05-13", "gpt-4o-2024-05-13-tool_filter"):
        for attack in ("none/none", "important_instructions/injection_task_0", "dos/injection_task_0"):
            kept = [] if "important" in attack and "mini" not in model else RUN
            messages = [{"role": role, "content": text, "tool_calls": None} for role, text in kept]
            record = {"utility": utility, "messages": messages}
            made[f"{top}/{model}/slack/user_task_0/{attack}.json"] = json.dumps(record).encode()
    return made


MAKERS = {"agentdojo": agentdojo, "kunko": kunko, "sensebench": sensebench, "yentlbench": yentlbench}


def zipped(path: Path, *members, link: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
        if link:
            info = zipfile.ZipInfo(link)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, "/etc/passwd")
    return path


def packed(path: Path, files: dict, link: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".whl":
        return zipped(path, *files.items(), link=link)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        if link:
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(info)
    return path
