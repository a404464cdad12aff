"""LLMRouterBench, its performance-cost part: 12,446 prompts of 10 datasets, 12 models (``NPULH/LLMRouterBench``).

Some records cost exactly nothing although the model answered. ``repaired_costs`` prices them and counts how many in which way.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from ..workload import Workload

DATASETS = (
    ("aime", "hybrid"), ("arenahard", "test"), ("gpqa", "test"), ("hle", "test"), ("livecodebench", "test"),
    ("livemathbench", "test"), ("mmlupro", "test_3000"), ("simpleqa", "test"), ("swe-bench", "verified"), ("tau2", "test"),
)  # fmt: skip
MODELS = (
    "claude-sonnet-4", "deepseek-v3-0324", "deepseek-v3.1-terminus", "deepseek-r1-0528", "gemini-2.5-flash",
    "gemini-2.5-pro", "gpt-5", "qwen3-235b-a22b-2507", "qwen3-235b-a22b-thinking-2507", "glm-4.6", "kimi-k2-0905",
    "intern-s1",
)  # fmt: skip
TIMESTAMP = re.compile(r"\d{8}_\d{6}")
NO_ANSWER = {"", "None", "null", "[]", "{}", "''"}
FAILURE = "generation failed"
ENOUGH = 20  # priced records that a task needs for token prices of its own


def convert(files: dict[str, Path]) -> Workload:
    """Datasets in their fixed order, queries by index; costs repaired and divided by the largest of all."""
    folder = files["bench-release.tar.gz"]
    records = pd.concat([_records(folder, dataset, split) for dataset, split in DATASETS], ignore_index=True)
    cost, steps = repaired_costs(records)
    first = records[records["model"] == MODELS[0]]
    largest = cost.max()
    wide = records.assign(cost=(cost / largest).astype(np.float32)).set_index(["dataset", "index", "model"])

    def matrix(column):
        return np.column_stack([wide.xs(model, level="model")[column].to_numpy(dtype=np.float64) for model in MODELS])

    splits = dict(DATASETS)
    return Workload(
        query_ids=[
            f"{name}/{splits[name]}/{index}" for name, index in zip(first["dataset"], first["index"], strict=True)
        ],
        prompts=first["prompt"],
        tasks=first["dataset"],
        models=MODELS,
        quality=matrix("score"),
        cost=matrix("cost"),
        name="original/llmrouterbench",
        provenance=(
            f"{len(first):,} queries of {len(DATASETS)} datasets, all answered by {len(MODELS)} models",
            f"{int(records['unscored'].sum()):,} records without a score count as 0",
            *steps,
            f"all costs were divided by the largest, {largest:.6g} USD, and rounded to single precision",
        ),
    )


def _records(folder: Path, dataset: str, split: str) -> pd.DataFrame:
    """All models' records of a dataset, in the order of index and model; they must cover the same queries."""
    parts = []
    for model in MODELS:
        path = newest(_model_folder(folder, dataset, split, model))
        try:
            found = json.loads(path.read_text(encoding="utf-8"))["records"]
            rows = [_record(record, f"{dataset}/{split}/{model}") for record in found]
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, SaveRouterError):
                raise
            raise SaveRouterError(f"{dataset}/{split}/{model}/{path.name} cannot be read: {error}") from error
        part = pd.DataFrame(rows).assign(model=model, dataset=dataset).sort_values("index", kind="stable")
        if part["index"].duplicated().any():
            twice = part.loc[part["index"].duplicated(), "index"].iloc[0]
            raise SaveRouterError(
                f"{dataset}/{split}/{model}/{path.name} has index {twice} twice; fetch the archive again"
            )
        _same_queries(parts[0] if parts else part, part, f"{dataset}/{split}")
        parts.append(part.reset_index(drop=True))
    return pd.concat(parts).sort_values("index", kind="stable")


def _record(record: dict, place: str) -> dict:
    place = f"{place}, index {record['index']}"
    unscored = record["score"] is None
    score, cost = 0.0 if unscored else float(record["score"]), float(record["cost"])
    prompt = re.sub("\r\n|[\r\u2028\u2029]", "\n", str(record["prompt"] or ""))
    for name, value, expected in (("score", score, 0 <= score <= 1), ("cost", cost, 0 <= cost < np.inf)):
        if not expected:
            raise SaveRouterError(
                f"{place}: {name} is {value}; expected {'0..1' if name == 'score' else 'a number >= 0'}"
            )
    if not prompt.strip():
        raise SaveRouterError(f"{place}: the prompt is empty")
    return {
        "index": int(record["index"]), "prompt": prompt, "score": score, "unscored": unscored, "cost": cost,
        "prompt_tokens": _tokens(record.get("prompt_tokens", 0)),
        "completion_tokens": _tokens(record.get("completion_tokens", 0)),
        "answered": any(_is_answer(record.get(field)) for field in ("raw_output", "prediction")),
    }  # fmt: skip


def _tokens(value) -> float:
    """A token count, NaN where the value is none."""
    try:
        count = float(value)
    except (TypeError, ValueError):
        return np.nan
    return count if 0 <= count < np.inf else np.nan


def _is_answer(value) -> bool:
    text = str(value).strip()
    return text not in NO_ANSWER and FAILURE not in text.lower()


def _same_queries(one: pd.DataFrame, other: pd.DataFrame, place: str) -> None:
    """Refuse two models with different queries; prompts may differ in white space alone."""
    models = one["model"].iloc[0], other["model"].iloc[0]
    if one["index"].tolist() != other["index"].tolist():
        odd = sorted(set(one["index"]) ^ set(other["index"]))[:1]
        raise SaveRouterError(
            f"{place}: {models[0]} and {models[1]} do not cover the same queries (index {odd[0]} is one)"
        )
    texts = ["".join(text.split()) for text in one["prompt"]], ["".join(text.split()) for text in other["prompt"]]
    for index, mine, theirs in zip(one["index"], *texts, strict=True):
        if mine != theirs:
            raise SaveRouterError(f"{place}, index {index}: {models[0]} and {models[1]} were given different prompts")


def _model_folder(folder: Path, dataset: str, split: str, model: str) -> Path:
    """``.../<dataset>/<split>/<model>``; a dataset may lack the split's folder, and a model's folder its "-2507"."""
    places = [
        f"{dataset}/{middle}{name}" for middle in (f"{split}/", "") for name in (model, model.removesuffix("-2507"))
    ]
    for place in dict.fromkeys(places):
        found = [path for path in sorted(folder.glob(f"**/{place}")) if path.is_dir()]
        if found:
            return found[0]
    raise SaveRouterError(f"no results of {model} on {dataset}/{split} below {folder.name}/; fetch the archive again")


def newest(folder: Path) -> Path:
    """The result file with the latest timestamp in its name; without any, the last by name."""
    files = list(folder.glob("*.json"))
    if not files:
        raise SaveRouterError(f"no result file (*.json) in {folder.parent.name}/{folder.name}; fetch the archive again")
    return max(files, key=lambda path: (TIMESTAMP.findall(path.name)[-1:], path.name))


def repaired_costs(records: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Costs with the zeros of answered calls filled in, and how many were filled in which way.

    A record with tokens but without cost is priced by token prices. These are fitted by least squares without intercept
    on the model's priced records of the task where there are at least 20, else on all its priced records. A record that
    cannot be priced so is given the median of the model's priced records of the task, else of the model, else of all.
    A call without tokens and without an answer did cost nothing.
    """
    cost = records["cost"].to_numpy(dtype=np.float64).copy()
    tokens = records[["prompt_tokens", "completion_tokens"]].to_numpy(dtype=np.float64)
    valid, priced = np.isfinite(tokens).all(axis=1), cost > 0
    empty = valid & (tokens.sum(axis=1) == 0)
    zero = ~priced
    nothing = zero & empty & ~records["answered"].to_numpy()
    by_tokens, everyone = np.zeros(len(cost), dtype=bool), float(np.median(cost[priced])) if priced.any() else np.nan
    filled = cost.copy()
    for _, mine in records.groupby("model", sort=False).indices.items():
        own = mine[priced[mine]]
        all_tasks = _token_prices(tokens[own], cost[own], valid[own])
        for _, places in records.iloc[mine].groupby("dataset", sort=False).indices.items():
            rows = mine[places]
            known = rows[priced[rows]]
            usual = np.median(cost[known] if len(known) else cost[own] if len(own) else [everyone])
            prices = _token_prices(tokens[known], cost[known], valid[known]) if len(known) >= ENOUGH else None
            prices = all_tasks if prices is None else prices
            for row in rows[zero[rows] & ~nothing[rows]]:
                estimate = tokens[row] @ prices if prices is not None and valid[row] and not empty[row] else np.nan
                by_tokens[row] = np.isfinite(estimate) and estimate > 0
                filled[row] = estimate if by_tokens[row] else usual
    if not np.isfinite(filled).all():
        raise SaveRouterError("no record of LLMRouterBench has a cost; there is nothing to learn prices from")
    by_median = zero & ~nothing & ~by_tokens
    return filled, [
        f"{int(zero.sum()):,} of {len(cost):,} records cost exactly 0",
        f"{int(by_tokens.sum()):,} of them were priced by their tokens",
        f"{int(by_median.sum()):,} were given a median cost",
        f"{int(nothing.sum()):,} have neither tokens nor an answer and keep cost 0",
    ]


def _token_prices(tokens: np.ndarray, cost: np.ndarray, valid: np.ndarray) -> np.ndarray | None:
    """USD per prompt token and per completion token, or None where they make no sense."""
    tokens, cost = tokens[valid], cost[valid]
    if not len(cost):
        return None
    prices = np.linalg.lstsq(tokens / 1e6, cost, rcond=None)[0] / 1e6
    return prices if np.isfinite(prices).all() and (prices >= 0).all() and prices.any() else None
