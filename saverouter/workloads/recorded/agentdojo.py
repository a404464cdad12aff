"""AgentDojo: tasks for a model with tools, alone and under attack, done by 17 models. Its costs are computed here."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pandas as pd

from ...encoders import token_counts
from ...errors import SaveRouterError
from ...files import data_folder
from ..archives import members
from ..workload import Workload
from .outcomes import complete_table

# Model, suite, task, attack and file. Runs with a defence belong to other pipelines.
MEMBERS = (
    r"[^/]+/runs/(?![^/]*(repeat_user_prompt|spotlighting|tool_filter|pi_detector))[^/]+/[^/]+/[^/]+"
    r"/(none|important_instructions)/[^/]+\.json"
)
PRICES = ("input_usd_per_million", "output_usd_per_million")


def convert(archive: Path) -> Workload:
    """Whether each model did the user's task, and what its run would cost at list prices."""
    useful, runs, wordings = {}, {}, defaultdict(Counter)
    for name, content in members(archive, MEMBERS):
        model, query = re.fullmatch(r"[^/]+/runs/([^/]+)/(.+)\.json", name).groups()
        record = json.loads(content)
        useful[query, model] = float(record["utility"])
        runs[query, model] = [(message["role"], _text(message)) for message in record["messages"]]
        asked = [text for role, text in runs[query, model] if role == "user"]
        wordings[_task(query)].update(asked[:1])
    queries, models = sorted({query for query, _ in runs}), sorted({model for _, model in runs})
    prices = _prices(models)
    costs, unknown, refused = _costs(runs, prices)
    listed = "; ".join(sorted({f"{row.source.partition(' (')[0]}, {row.date}" for row in prices.itertuples()}))
    prompts = {task: counted.most_common(1)[0][0] for task, counted in wordings.items()}
    other = sum(sum(counted.values()) - counted.most_common(1)[0][1] for counted in wordings.values())
    return Workload(
        query_ids=queries,
        prompts=[prompts[_task(query)] for query in queries],
        tasks=[query.partition("/")[0] for query in queries],
        models=models,
        **complete_table({pair: (useful[pair], costs[pair]) for pair in useful}, queries, models),
        clusters=[_task(query) for query in queries],
        name="recorded/agentdojo",
        provenance=(
            "recorded runs shipped in the package agentdojo 0.1.29 (MIT); quality is the recorded utility: was the task done?",
            "costs are computed, not recorded: tokens of the recorded messages, counted with the tokenizer of all-MiniLM-L6-v2, "
            f"times list prices in USD ({listed}, in data/prices.csv); descriptions of tools and cached input are in no record",
            "a run calls its model once per answer: all messages before an answer are input, the answer is output",
            f"{unknown} runs were kept without messages: each costs the mean of its model's other runs of the same task; "
            f"{refused} runs have no answer and cost nothing",
            "a task occurs alone and with several hidden attacks, which its prompt does not show: one cluster; where models were "
            f"asked in other words ({other} runs), the prompt is the wording most of them had",
            "left out: 3,052 runs of pipelines with a defence, and 6,146 under attacks that gpt-4o-2024-05-13 alone met",
        ),
    )


def _task(query: str) -> str:
    """Suite and task of a query, which has the attack and its goal after them."""
    return "/".join(query.split("/")[:2])


def _text(message: dict) -> str:
    calls = [{"function": call["function"], "args": call["args"]} for call in message.get("tool_calls") or ()]
    return (message["content"] or "") + (json.dumps(calls) if calls else "")


def _prices(models: list[str]) -> pd.DataFrame:
    prices = pd.read_csv(data_folder() / "prices.csv", index_col="model")
    unpriced = set(models) - set(prices.index)
    if unpriced:
        raise SaveRouterError(f"data/prices.csv has no price of {min(unpriced)!r}; add a row")
    return prices.loc[models]


def _costs(runs: dict[tuple[str, str], list], prices: pd.DataFrame) -> tuple[dict[tuple[str, str], float], int, int]:
    """Cost of every run in USD, how many had no messages, and how many had messages but no answer."""
    price = {model: row.to_numpy(dtype=np.float64) for model, row in prices[list(PRICES)].iterrows()}
    tokens = token_counts(text for messages in runs.values() for _, text in messages)
    costs, known, refused = {}, defaultdict(list), 0
    for (query, model), messages in runs.items():
        sizes = np.array([tokens[text] for _, text in messages], dtype=np.int64)
        answers = np.array([role == "assistant" for role, _ in messages], dtype=bool)
        read = (np.cumsum(sizes) - sizes)[answers].sum()
        if messages:
            costs[query, model] = float(price[model] @ (read, sizes[answers].sum())) / 1e6
            known[_task(query), model].append(costs[query, model])
            refused += not answers.any()
    unknown = [pair for pair in runs if pair not in costs]
    costs |= {(query, model): _mean(known[_task(query), model]) for query, model in unknown}
    return costs, len(unknown), refused


def _mean(costs: list[float]) -> float:
    if not costs:
        raise SaveRouterError("a run has no messages, nor has any other run of its model and task; it cannot be priced")
    return float(np.mean(costs))
