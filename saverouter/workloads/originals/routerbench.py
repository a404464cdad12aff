"""RouterBench: 36,497 prompts of 86 tasks, 11 models, recorded scores and USD costs (``withmartian/routerbench``)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ..workload import Workload
from .cleaning import need_columns, numbers, whole_pairs
from .pickles import read_pickle

MODELS = (
    "WizardLM-13B-V1.2", "claude-instant-v1", "claude-v1", "claude-v2", "gpt-3.5-turbo-1106", "gpt-4-1106-preview",
    "code-llama-instruct-34b-chat", "llama-2-70b-chat", "mistral-7b-chat", "mixtral-8x7b-chat", "Yi-34B-Chat",
)  # fmt: skip
COLUMNS = ("sample_id", "model_name", "performance", "cost", "prompt", "eval_name")


def convert(files: dict[str, Path]) -> Workload:
    """The publisher's long table, one row per query and model, with queries in the order of their ids."""
    path = files["routerbench_raw.pkl"]
    table = read_pickle(path)
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame()
    need_columns(table, COLUMNS, path.name)
    notes = [f"{len(table):,} rows of {table['model_name'].nunique()} models read"]
    names = table["model_name"].astype(str).str.rpartition("/")[2]  # the publisher writes "meta/llama-2-70b-chat"
    table = table.assign(model_name=names)[names.isin(MODELS)].reset_index(drop=True)
    values = {}
    for column in ("performance", "cost"):
        found, wrong = numbers(table[column])
        values[column] = table[["sample_id", "model_name"]].assign(value=found)
        if wrong:
            notes.append(f"{wrong:,} entries of {column} are no numbers and count as missing")
    repeated = int(table.duplicated(["sample_id", "model_name"]).sum())
    if repeated:
        notes.append(f"{repeated:,} rows repeat a query and model; the first value was taken")
    queries = table.groupby("sample_id")[
        ["prompt", "eval_name"]
    ].first()  # sorted by id: the order the split starts from
    wide = {
        column: frame.pivot_table(
            index="sample_id", columns="model_name", values="value", aggfunc="first", dropna=False
        )
        .reindex(index=queries.index, columns=MODELS)
        .to_numpy(dtype=float)
        for column, frame in values.items()
    }
    quality, cost, missing = whole_pairs(wide["performance"], wide["cost"])
    return Workload(
        query_ids=queries.index.astype(str),
        prompts=queries["prompt"].astype(object).where(queries["prompt"].notna(), ""),
        tasks=queries["eval_name"].astype(str),
        models=MODELS,
        quality=quality,
        cost=cost,
        name="original/routerbench",
        provenance=(*notes, *missing, "costs are the recorded USD, unchanged"),
    )
