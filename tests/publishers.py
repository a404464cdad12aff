"""Small files in the publishers' formats, made from generated values: the awkward cases included.

Each function fills a folder with a benchmark's files, under the names of ``data/registry.csv``.
"""

import csv
import json
import pickle
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from saverouter.workloads.originals import llmrouterbench, mixinstruct, mmrbench, routerbench, routereval

MAKER = {
    "WizardLM-13B-V1.2": "WizardLM/", "code-llama-instruct-34b-chat": "meta/", "llama-2-70b-chat": "meta/",
    "mistral-7b-chat": "mistralai/", "mixtral-8x7b-chat": "mistralai/", "Yi-34B-Chat": "zero-one-ai/",
}  # fmt: skip


def long_table(seed=0, queries=8) -> pd.DataFrame:
    """RouterBench's rows, shuffled, with models that are not in the pool."""
    rng, rows = np.random.default_rng(seed), []
    for query in rng.permutation(queries):
        for model in (*(MAKER.get(m, "") + m for m in routerbench.MODELS), "meta/codellama-7b", "no_model_correct"):
            rows.append({
                "sample_id": f"task-{query % 3}.val.{query}", "model_name": model, "performance": float(rng.integers(2)),
                "cost": float(rng.uniform(1e-5, 1e-2)), "prompt": f"['Question {query}?']", "eval_name": f"task-{query % 3}",
                "response": "some text",
            })  # fmt: skip
    return pd.DataFrame(rows).sample(frac=1, random_state=seed).reset_index(drop=True)


def old_pickle(table: pd.DataFrame, path: Path) -> None:
    """Texts as objects, as every pandas before 3 wrote them."""
    table = table.astype({name: object for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])})
    table.columns = pd.Index(table.columns.to_numpy(dtype=object), dtype=object)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pickle.dump(table, file, protocol=4)


def make_routerbench(folder: Path) -> None:
    """One repeated row, one number written as text, one entry that is no number, one pair left out."""
    table = long_table().astype({"performance": object})
    ours = table["model_name"].str.startswith(("claude", "gpt")).to_numpy().nonzero()[0]
    table.loc[ours[0], "performance"] = "0.25"
    table.loc[ours[1], "performance"] = "not rated"
    table = pd.concat([table.drop(index=ours[2]), table.loc[[ours[3]]].assign(performance=0.125)], ignore_index=True)
    old_pickle(table, folder / "routerbench_raw.pkl")


def make_mixinstruct(folder: Path) -> None:
    """Candidates in any order, inputs that are empty or absent, an id that comes twice, line separators inside a text."""
    rng, sources = np.random.default_rng(1), ("alpaca-gpt4", "dolly-15k", "gpt4all-laion", "sharegpt")
    folder.mkdir(parents=True, exist_ok=True)
    for part, size in zip(mixinstruct.PARTS, (6, 3, 2), strict=True):
        records = []
        for number in range(size):
            models = [*rng.permutation(list(mixinstruct.PRICES)), "gpt-4"]
            scores = rng.uniform(0.5, 0.9, len(models))
            record = {
                "id": f"{sources[number % 4]}/{part[:2]}{0 if number == 5 else number}", "instruction": f"Say\u2028 {number}.",
                "input": None if number == 1 else "" if number == 2 else f"about {part[:5]}", "output": "text",
                "candidates": [{"model": m, "text": "t", "scores": {"bleu": 1.0, "bertscore": float(s)}}
                               for m, s in zip(models, scores, strict=True)],
            }  # fmt: skip
            record["id"] = "alpaca-gpt4/tr0" if number == 4 else record["id"]
            records.append(json.dumps(record, ensure_ascii=False))
        (folder / part).write_text("\n".join(records) + "\n", encoding="utf-8", newline="\n")


def make_mmrbench(folder: Path) -> None:
    """Textual booleans, entries that are no numbers, pairs with one outcome only, an id that comes twice, and pictures."""
    rng = np.random.default_rng(2)
    names = ["MathVerse_1", "SEEDBench2_Plus_7", "OCRBench_12", "MMStar_2", "MMStar_2", "RealWorldQA_3"]
    columns = [m + "-Instruct" if m.startswith("Qwen") else m for m in mmrbench.MODELS]
    rows = []
    for number, name in enumerate(names):
        row = {"dataset_idx": name, "question": f"What is  shown, {number}?", "answer": "A"}
        for place, column in enumerate(columns):
            truth = bool(rng.integers(2))
            row[f"{column}_correct"] = [truth, str(truth), str(truth).lower(), int(truth), float(truth)][
                (number + place) % 5
            ]
            row[f"{column}_cost"] = round(float(rng.uniform(1e-4, 1e-2)), 6)
            row[f"{column}_prediction"] = "A"
        rows.append(row)
    rows[0]["Gemma3-4B_correct"], rows[1]["Gemma3-4B_correct"], rows[2]["GeminiPro2-5_cost"] = "", "error", "n/a"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "MMR-Bench.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    pictures = folder / "made"
    for place in ("MathVerse/1.png", "SEEDBenchv2Plus/7.jpg", "OCRBench/12.jpeg", "MMStar/2.png", "RealWorldQA/3.jpg"):
        (pictures / place).parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(pictures / place)
    with tarfile.open(folder / "images.tar.gz", "w:gz") as archive:
        archive.add(pictures, arcname="images")


def llm_record(index: int, rng) -> dict:
    tokens = int(rng.integers(20, 200)), int(rng.integers(50, 900))
    return {
        "index": int(index), "origin_query": f"query {index}", "prompt": f"Solve\tproblem {index}.", "prediction": "42",
        "raw_output": "It is 42.", "ground_truth": "42", "score": float(rng.integers(2)), "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1], "cost": tokens[0] * 1.25e-6 + tokens[1] * 1e-5,
    }  # fmt: skip


# What happens to records of one model on the first dataset, which has enough priced ones to learn prices from, and on the
# second, which has not: name -> (changes, how the cost is repaired).
ZEROS = {
    "tokens": ({"cost": 0}, "tokens"),
    "only prompt tokens": ({"cost": 0, "completion_tokens": 0}, "tokens"),
    "tokens as text": ({"cost": 0.0, "prompt_tokens": "100", "completion_tokens": "10"}, "tokens"),
    "answer without tokens": ({"cost": 0, "prompt_tokens": 0, "completion_tokens": 0}, "median"),
    "only a prediction": ({"cost": 0, "prompt_tokens": 0, "completion_tokens": 0, "raw_output": ""}, "median"),
    "negative tokens": ({"cost": 0, "prompt_tokens": -1}, "median"),
    "nothing": ({"cost": 0, "prompt_tokens": 0, "completion_tokens": 0, "raw_output": " ", "prediction": None}, "nothing"),
    "failure": ({"cost": 0, "prompt_tokens": 0, "completion_tokens": 0, "raw_output": "[Generation failed: x]",
                 "prediction": "[]"}, "nothing"),
}  # fmt: skip


def make_llmrouterbench(folder: Path, change=lambda dataset, model, records: None, top: str = "bench-release") -> Path:
    """Older result files, a dataset without its split's folder, a model's folder without "-2507", missing scores, zero costs."""
    rng, root = np.random.default_rng(3), folder / "made" / top
    for number, (dataset, split) in enumerate(llmrouterbench.DATASETS):
        size = 34 if number == 0 else 12
        for model in llmrouterbench.MODELS:
            records = [llm_record(index, rng) for index in rng.permutation(size)]
            if number < 2 and model == "gpt-5":
                records.sort(key=lambda record: record["index"])
                for record, (zero, _) in zip(records, ZEROS.values(), strict=False):
                    record.update(zero)
            if model == "glm-4.6":
                records[0]["score"] = None
                records[1]["prompt"] = records[1]["prompt"].replace("\t", "\r\n ")
            change(dataset, model, records)
            place = root / dataset if dataset == "arenahard" else root / dataset / split
            place = place / ("qwen3-235b-a22b-thinking" if dataset == "gpqa" and "thinking" in model else model)
            place.mkdir(parents=True, exist_ok=True)
            for stamp, content in (("20250901_120000", {"records": records}), ("20250831_235959", {"records": []})):
                (place / f"{dataset}-{split}-{model}-{stamp}.json").write_text(json.dumps(content))
    with tarfile.open(folder / "bench-release.tar.gz", "w:gz") as archive:
        archive.add(root, arcname=top)
    return root


def make_routereval(folder: Path) -> Path:
    """Pools that overlap, models that one file lacks or whose name tells no size, prompts with odd white space."""
    names = ["oak-7b-chat", "elm-13b", "fir-8x7b-v2", "ash-1.5b", "yew-70B", "oak-unsized", "only-here-3b"]
    made = folder / "made"
    made.mkdir(parents=True, exist_ok=True)
    for number, task in enumerate(routereval.TASKS):
        rng = np.random.default_rng(number)
        here = names if task == "mmlu" else names[:-1]
        sizes = dict(zip(routereval.PARTS, (5, 2, 3), strict=True))
        truth = {part: rng.integers(0, 2, (size, len(here))).astype(float) for part, size in sizes.items()}

        def pool(chosen, here=here, truth=truth):
            data = {f"{part}_score": values[:, chosen] for part, values in truth.items()}
            return {"model": [here[place] for place in chosen], "data": data}

        indices = rng.permutation(10)
        table = {
            "easy": {3: {"all_strong": pool([0, 1, 2]), "all_weak": pool([3, 5, 1])}},
            "hard": {3: {"all_strong": pool([4, 0, 3])}, 7: {"strong_to_weak": pool(list(range(len(here)))[::-1])}},
            "split_index": dict(zip(("train_indices", "val_indices", "test_indices"), np.split(indices, [5, 7]), strict=True)),
            "prompt": {f"{part}_prompt": [f" {task}  {part}\n{i} " for i in range(size)] for part, size in sizes.items()},
        }  # fmt: skip
        with (made / f"{task}_router_dataset.pkl").open("wb") as file:
            pickle.dump(table, file, protocol=4)
    with zipfile.ZipFile(folder / "router_dataset.zip", "w") as archive:
        for path in sorted(made.iterdir()):
            archive.write(path, f"router_dataset/{path.name}")
    return made


MAKERS = {
    "llmrouterbench": make_llmrouterbench, "mixinstruct": make_mixinstruct, "mmrbench": make_mmrbench,
    "routerbench": make_routerbench, "routereval": make_routereval,
}  # fmt: skip
