"""Mixinstruct: 110,000 instructions, 12 models, quality = BERTScore, one price per model (``llm-blender/mix-instruct``)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ...errors import SaveRouterError
from ..workload import Workload
from .cleaning import unique_names, whole_pairs

# Proxy prices: size in billions of parameters, relative to the largest.
PRICES = {
    "alpaca-native": 13, "chatglm-6b": 6, "dolly-v2-12b": 12, "flan-t5-xxl": 11, "koala-7B-HF": 7,
    "llama-7b-hf-baize-lora-bf16": 7, "moss-moon-003-sft": 16, "mpt-7b": 7, "mpt-7b-instruct": 7,
    "oasst-sft-4-pythia-12b-epoch-3.5": 12, "stablelm-tuned-alpha-7b": 7, "vicuna-13b-1.1": 13,
}  # fmt: skip
PARTS = ("train_data_prepared.jsonl", "val_data_prepared.jsonl", "test_data_prepared.jsonl")


def convert(files: dict[str, Path]) -> Workload:
    """Train, validation and test parts in that order; a task is the source that an id names before its first slash."""
    columns = {model: column for column, model in enumerate(PRICES)}
    names, prompts, quality = [], [], []
    for part in PARTS:
        with files[part].open(encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                name, prompt, scores = _record(line, columns, f"{part}, line {number}")
                names.append(name)
                prompts.append(prompt)
                quality.append(scores)
    price = np.array(list(PRICES.values())) / max(PRICES.values())
    quality, cost, notes = whole_pairs(np.array(quality), np.tile(price, (len(names), 1)))
    ids, repeats = unique_names(names)
    return Workload(
        query_ids=ids,
        prompts=prompts,
        tasks=[name.partition("/")[0] for name in names],
        models=tuple(PRICES),
        quality=quality,
        cost=cost,
        name="original/mixinstruct",
        provenance=(
            f"{len(names):,} records read from train, validation and test, in that order",
            *repeats,
            *notes,
            "quality is the recorded BERTScore; cost is a proxy, one number per model: parameters / 16 billion",
        ),
        grouping="global",
    )


def _record(line: str, columns: dict[str, int], place: str) -> tuple[str, str, np.ndarray]:
    scores = np.full(len(columns), np.nan)
    try:
        record = json.loads(line)
        for candidate in record["candidates"]:
            if candidate["model"] in columns:
                scores[columns[candidate["model"]]] = float(candidate["scores"]["bertscore"])
        return str(record["id"]), f"{record['instruction']} {record.get('input') or ''}", scores
    except (ValueError, KeyError, TypeError) as error:
        raise SaveRouterError(
            f"{place}: {type(error).__name__} {error}; expected id, instruction, input and candidates with model and "
            "scores.bertscore"
        ) from error
