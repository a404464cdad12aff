"""MMRBench: 10,370 questions on pictures, 10 models, recorded scores and costs with gaps (``gh0stHunter/MMR-Bench``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ...errors import SaveRouterError
from ..workload import Workload
from .cleaning import need_columns, numbers, unique_names, whole_pairs

MODELS = (
    "Qwen2.5-VL-3B", "Qwen2.5-VL-72B", "InternVL3-78B", "Gemma3-4B", "Qwen2.5-VL-7B", "Claude3-7V_Sonnet",
    "gpt-5-nano-2025-08-07", "GeminiPro2-5", "gpt-5-2025-08-07", "GeminiFlash2-5",
)  # fmt: skip
RENAMED = {"SEEDBench2_Plus": "SEEDBenchv2Plus"}
SUFFIXES = (".jpg", ".jpeg", ".png")


def convert(files: dict[str, Path]) -> Workload:
    """The publisher's table in its order; a task is the part of ``dataset_idx`` before its last underscore."""
    path = files["MMR-Bench.csv"]
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise SaveRouterError(f"{path.name} cannot be read ({error}); remove it and fetch it again") from error
    need_columns(table, ("dataset_idx", "question"), path.name)
    outcomes, notes = {}, []
    for kind, suffix in (("quality", "correct"), ("cost", "cost")):
        columns = [_column(table, model, suffix) for model in MODELS]
        need_columns(table, columns, path.name)
        found, wrong = zip(*(numbers(table[column]) for column in columns), strict=True)
        outcomes[kind] = np.column_stack(found)
        if sum(wrong):
            notes.append(f"{sum(wrong):,} entries of {kind} are no numbers and count as missing")
    quality, cost, missing = whole_pairs(outcomes["quality"], outcomes["cost"])
    ids, repeats = unique_names(table["dataset_idx"])
    return Workload(
        query_ids=ids,
        prompts=table["question"],
        tasks=[_place(name)[0] for name in table["dataset_idx"]],
        models=MODELS,
        quality=quality,
        cost=cost,
        name="original/mmrbench",
        provenance=(f"{len(table):,} rows read", *notes, *missing, *repeats, "costs are the recorded ones, unchanged"),
    )


def _column(table: pd.DataFrame, model: str, suffix: str) -> str:
    """A model's column; the publisher writes some names with "-Instruct"."""
    longer = f"{model}-Instruct_{suffix}"
    return longer if longer in table.columns else f"{model}_{suffix}"


def _place(name: str) -> tuple[str, str]:
    """Dataset and question of an id: "SEEDBench2_Plus_7" is number 7 of SEEDBenchv2Plus."""
    dataset, _, question = name.partition("#")[0].rpartition("_")
    return RENAMED.get(dataset, dataset), question


def image_paths(work: Workload, folder: Path) -> list[Path]:
    """The picture of each query, ``<dataset>/<question>.jpg`` (or .jpeg, .png) anywhere below the folder."""
    known = {
        (path.parent.name, path.stem): path
        for path in sorted(folder.rglob("*"), reverse=True)
        if path.suffix in SUFFIXES
    }
    wanted = [_place(name) for name in work.query_ids]
    missing = [place for place in wanted if place not in known]
    if missing:
        raise SaveRouterError(
            f"{len(missing):,} of {len(wanted):,} pictures are missing below {folder.name}/, the first is "
            f"{'/'.join(missing[0])} with one of {', '.join(SUFFIXES)}; unpack images.tar.gz there or fetch it again"
        )
    return [known[place] for place in wanted]
