"""A service that lives: distinct prompts routed one by one, with few file handles. python benchmarks/service.py

In a process of its own with an empty cache and at most 256 open files: 20,000 prompts with an encoder that stands in for
MiniLM, and fewer with the real one. Nothing may fail, no file may be left, and the last prompts may take no longer than
the first, nor may memory grow. The table goes to reports/bench.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import saverouter as sr
from saverouter.encoders import minilm

PARTS = 10  # the first and the last tenth of the prompts are compared


def serve(prompts: int, handles: int, stub: bool, keep: bool = False) -> dict:
    """Milliseconds per prompt and memory at the beginning and at the end, and the files that were left."""
    if stub:
        minilm._encode = stand_in
    train = sr.load("simulated/routerbench", size=400)
    router = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
    router.route(["warm up"], cost_weight=0.1, keep=keep)
    before, seconds, memory = kept_files(), np.empty(prompts), []
    allow(handles)
    for number in range(prompts):
        start = time.perf_counter()
        router.route([f"prompt number {number} of {prompts}, about thing{number % 977}"], cost_weight=0.1, keep=keep)
        seconds[number] = time.perf_counter() - start
        if number % (prompts // PARTS) == 0 or number == prompts - 1:
            memory.append(resident())
    first, last = seconds[: prompts // PARTS], seconds[-(prompts // PARTS) :]
    return {
        "encoder": "stand-in" if stub else "MiniLM", "kept": keep, "prompts": prompts, "handles": handles,
        "p50 first tenth, ms": 1e3 * np.median(first), "p50 last tenth, ms": 1e3 * np.median(last),
        "memory after a tenth, MB": memory[1], "memory at the end, MB": memory[-1], "files left": kept_files() - before,
    }  # fmt: skip


def stand_in(name: str, prompts: list[str]) -> np.ndarray:
    """Unit vectors that depend on the prompt alone."""
    found = np.array([np.random.default_rng(abs(hash(prompt))).normal(size=384) for prompt in prompts])
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def allow(handles: int) -> None:
    """As ``ulimit -n`` does, where there is such a limit."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (handles, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def resident() -> float:
    """Memory of this process in MB, now and not at its peak; NaN where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS")), float("nan"))


def kept_files() -> int:
    return sum(path.is_file() for path in Path(os.environ["SAVEROUTER_CACHE"]).rglob("*"))


def alone(**options) -> dict:
    """``serve`` in a process of its own, from an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, __file__, "--serve", json.dumps(options)], capture_output=True, text=True,
            env=os.environ | {"SAVEROUTER_CACHE": folder},
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the service died: {done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--prompts", type=int, default=20_000)
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    parser.add_argument("--serve", type=json.loads, help="options of one run, as JSON: what the others are made of")
    options = parser.parse_args()
    if options.serve is not None:
        print(json.dumps(serve(**options.serve), default=float))
        return
    table = pd.DataFrame([
        alone(prompts=options.prompts, handles=256, stub=True),
        alone(prompts=options.prompts // 4, handles=256, stub=True, keep=True),
        alone(prompts=options.prompts // 10, handles=256, stub=False),
    ])  # fmt: skip
    print(table.to_string(index=False, float_format="{:.4g}".format))
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "service.csv", index=False)


if __name__ == "__main__":
    main()
