"""Every stage beside the authors' release, on the same inputs and in the same run: make bench (QUICK=1 for small sizes).

Each side runs a stage in a process of its own, so that memory is its own too. Compiling is not timed; reading inputs is not
either. Results are compared before times are printed: a stage that is fast and wrong fails. The table goes to reports/bench.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import inputs
import numpy as np
import pandas as pd
import scipy.sparse as sp
from black_box import release_folder

from saverouter.encoders.features import ResidualFeatures

HERE = Path(__file__).parent
LARGE_POOL = dict(train=5_700, test=22_800, models=289, k=108, tasks=6, words=80)
FULL = {
    "residual features": ("features", dict(train=36_497, words=150)),
    "acquisition, K=4": ("acquisition", dict(train=7_299, models=11, k=4, tasks=86)),
    "acquisition, K=108": ("acquisition", dict(train=5_700, models=289, k=108, tasks=6)),
    "fit and predict": ("fit_and_predict", LARGE_POOL),
    "same, release's tolerance": ("fit_and_predict_alike", LARGE_POOL),
    "capability and residual fit": ("fit", dict(train=7_299, test=2_000, models=11, k=4, tasks=86, words=150)),
    "frontier": ("frontier", dict(test=29_198, models=11)),
    "frontier, large pool": ("frontier", dict(test=22_800, models=289)),
    "whole pipeline": ("pipeline", dict(train=7_299, test=29_198, models=11, k=4, tasks=86, words=150)),
    "one prompt, median": ("one_prompt", dict(train=3_000, test=500, models=11, k=4, tasks=20, words=150)),
    "100,000 queries, one call": ("many_queries", dict(train=3_000, models=11, k=4, tasks=20, words=50, asked=100_000)),
}
NOT_IN_RELEASE = {
    "one_prompt": "95% in {p95:.4f} s",
    "many_queries": "{different} different models chosen",
}
QUICK = {"train": 400, "test": 600, "models": 12, "words": 30, "asked": 1_000}


def sizes(full: dict, quick: bool) -> dict:
    size = {"train": 0, "test": 0, "models": 1, "k": 1, "tasks": 6, "words": 0, "asked": 0} | full
    if quick:
        size |= {name: min(size[name], limit) for name, limit in QUICK.items()}
        size["k"], size["tasks"] = min(size["k"], 5), min(size["tasks"], 8)
    return size


def prepare(folder: Path, stage: str, size: dict) -> None:
    """Write what the stage needs, one file an array."""
    rng = np.random.default_rng(7)
    total = size["train"] + size["test"]
    task = rng.integers(size["tasks"], size=total)
    task[: size["tasks"]] = np.arange(size["tasks"])
    train, test = slice(size["train"]), slice(size["train"], total)
    quality, cost = inputs.outcomes(total, size["models"], task)
    made = {
        "asked": np.array(size["asked"]),
        "k": np.array(size["k"]),
        "groups": task[train],
        "test_groups": task[test],
    }
    made |= {"quality": quality[train], "cost": cost[train]}
    if size["words"]:
        prompts = inputs.texts(total, size["words"], task)
        made |= {"prompts": prompts[train], "test_prompts": prompts[test]}
    if stage.startswith("fit"):
        encoder = ResidualFeatures()
        made["train"] = encoder.fit_transform(made.pop("prompts"))
        made["test"] = encoder.transform(made.pop("test_prompts"))
    if stage in ("frontier", "pipeline"):
        made |= {"true_quality": quality[test], "true_cost": cost[test]}
    if stage == "frontier":
        guess = inputs.estimates(quality[test], cost[test])
        made = made | dict(zip(("estimated_quality", "estimated_cost", "model_cost"), guess, strict=True))
        made = {name: made[name] for name in made if name.startswith(("true", "estimated", "model"))}
    for name, array in made.items():
        if sp.issparse(array):
            sp.save_npz(folder / f"{name}.npz", array, compressed=False)
        else:
            np.save(folder / f"{name}.npy", array)


def run(script: str, stage: str, folder: Path, path: list) -> dict:
    output = folder.parent / f"{script}.npz"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, str(HERE / f"{script}.py"), stage, str(folder), str(output)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{script} failed at {stage}:\n{done.stderr}")
    made = dict(np.load(output))
    if not str(made["origin"]).startswith(str(path[0])):
        raise SystemExit(f"{script} ran {made['origin']}, not the package below {path[0]}")
    return made


def agreement(stage: str, ours: dict, theirs: dict) -> str:
    """What is equal, in words; raises AssertionError where something is not."""
    if stage in NOT_IN_RELEASE:
        return NOT_IN_RELEASE[stage].format(**{name: np.asarray(value).item() for name, value in ours.items()})
    if stage == "features":
        assert (ours["indices"] == theirs["indices"]).all() and (ours["indptr"] == theirs["indptr"]).all()
        return f"same matrix, {len(ours['data']):,} values within {np.abs(ours['data'] - theirs['data']).max():.0e}"
    if stage == "acquisition":
        assert (ours["mask"] == theirs["mask"]).all()
        return f"same {int(ours['mask'].sum()):,} pairs"
    if stage == "fit":
        mine, release = (np.abs(made["quality"] - ours["converged"]).max() for made in (ours, theirs))
        assert mine <= release + 1e-12
        return f"{mine:.0e} from the converged solution, the release {release:.0e}"
    if "quality" in ours:
        worst = np.abs(ours["quality"] - theirs["quality"]).max()
        assert worst < (1e-6 if stage == "fit_and_predict_alike" else 1e-3), f"estimates differ by {worst}"
        if stage.startswith("fit_and_predict"):
            return f"estimates within {worst:.0e}"
    assert abs(ours["peak"] - theirs["peak"]) < 1e-3 and np.isclose(ours["ratio"], theirs["ratio"], atol=1e-3)
    if stage == "pipeline":
        same = max(
            abs(float(ours["peak"] - theirs["peak"])), abs(float(np.nan_to_num(ours["ratio"] - theirs["ratio"])))
        )
        return f"peak and cost ratio within {same:.0e}"
    apart = max(shortfall(ours["front"], theirs["front"]), shortfall(theirs["front"], ours["front"]))
    assert apart < 1e-6, f"frontiers are {apart} apart"
    return f"frontiers of {len(ours['front'])} and {len(theirs['front'])} points, {apart:.0e} apart"


def shortfall(front: np.ndarray, other: np.ndarray) -> float:
    """How much more quality the other frontier has at the same money, at the worst of its points (cost, quality)."""
    within = np.searchsorted(front[:, 0], other[:, 0] * (1 + 1e-6), side="right") - 1  # the release sums in float32
    reached = np.where(within >= 0, front[np.maximum(within, 0), 1], -np.inf)
    return float((other[:, 1] - reached).max())


def compare(names, quick: bool, release: Path | None = None) -> pd.DataFrame:
    """One row a stage: seconds and peak memory of both sides, their ratio, and what was found equal."""
    release, rows = release or release_folder(), []
    for name in names:
        stage, full = FULL[name]
        size = sizes(full, quick)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "given"
            folder.mkdir()
            prepare(folder, stage, size)
            ours = run("ours", stage, folder, [HERE.parent])
            offered = stage not in NOT_IN_RELEASE
            theirs = run("release", stage, folder, [release]) if offered else {"seconds": np.nan, "memory": np.nan}
        seconds, reference = float(ours["seconds"]), float(theirs["seconds"])
        rows.append({
            "stage": name, "queries": size["train"] + size["test"], "models": size["models"], "ours, s": seconds,
            "release, s": reference, "ratio": reference / seconds, "ours, GB": float(ours["memory"]),
            "release, GB": float(theirs["memory"]), "equal": agreement(stage, ours, theirs),
        })  # fmt: skip
        print(line(rows[-1]), flush=True)
    return pd.DataFrame(rows)


def line(row: dict) -> str:
    return (f"{row['stage']:28} {row['queries']:7,} x {row['models']:<4} {row['ours, s']:9.4f} {row['release, s']:10.3f} "
            f"{row['ratio']:6.1f} {row['ours, GB']:8.1f} {row['release, GB']:10.1f}  {row['equal']}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run, and is it equal")
    parser.add_argument("--stage", action="append", choices=list(FULL), help="one of them (repeatable; all)")
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    options = parser.parse_args()
    print(
        f"{'stage':28} {'queries x models':14} {'ours, s':>9} {'release, s':>10} {'ratio':>6} {'ours, GB':>8} {'release, GB':>10}"
    )
    table = compare(options.stage or list(FULL), options.quick)
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "stages.csv", index=False)


if __name__ == "__main__":
    main()
