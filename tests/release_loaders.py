"""Reads a benchmark's files with the authors' release, in a process of its own: its package has the same name as ours.

usage: python release_loaders.py benchmark folder output.json
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

NAMES = {"llmrouterbench": "LLMRouterBench", "mixinstruct": "Mixinstruct", "mmrbench": "MMRBench", "routerbench": "Routerbench",
         "routereval": "RouterEval"}  # fmt: skip


class Split(list):
    def to_pandas(self):
        return pd.DataFrame(list(self))


def main(benchmark, folder, output):
    from saverouter.benchmarks import get_loader

    import saverouter

    folder = Path(folder)
    place = folder / "made" if benchmark in ("llmrouterbench", "routereval", "mmrbench") else folder
    given = str(place)
    if benchmark == "routerbench":
        given = str(folder / "routerbench_raw.pkl")
    elif benchmark == "mmrbench":
        shutil.copy(folder / "MMR-Bench.csv", place)
    elif benchmark == "mixinstruct":
        given = {name: Split(records(folder / f"{part}_data_prepared.jsonl"))
                 for name, part in (("train", "train"), ("validation", "val"), ("test", "test"))}  # fmt: skip
    options = {"dataset": {"name": NAMES[benchmark], "split": {"ratios": [0.2, 0.8], "seed": 42}}}
    models, table = get_loader(NAMES[benchmark])(str(place), options).process(given)
    found = {"file": saverouter.__file__, "models": list(models), "ids": table["sample_id"].astype(str).tolist(),
             "prompts": table["prompt"].tolist(), "tasks": table["eval_name"].astype(str).tolist()}  # fmt: skip
    for kind, column in (("quality", "performance"), ("cost", "cost")):
        columns = [table[f"model_{place}_{column}"].astype(object).map(number) for place in range(len(models))]
        found[kind] = np.column_stack(columns).astype(float).tolist()
    Path(output).write_text(json.dumps(found))


def records(path):
    """The release cannot add an input that is None to an instruction; to us it is an empty one."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        return [{**record, "input": record["input"] or ""} for record in map(json.loads, lines)]


def number(value) -> float:
    return float("nan") if value is None or value is pd.NA else float(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
