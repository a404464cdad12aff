"""MiniLM run by torch and by OpenVINO, in turns in one run: python benchmarks/encoders.py

Prompts of about 130 tokens for the rate, of about 100 for one prompt at a time, as a service routes them. Memory is that of
a process that fits SaveRouter and routes one prompt. The table goes to reports/bench.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from recording import peak_memory

import saverouter as sr
from saverouter.encoders import backend, minilm

REFERENCE = "torch-fp32"
ROUNDS = 3


def encoders() -> list[str]:
    fast = backend.openvino()
    return [REFERENCE, *(["openvino-fp32"] if fast else []), *(["openvino-bf16"] if fast and fast.can_bf16() else [])]


def chosen(name: str):
    kind, precision = name.split("-")
    return mock.patch.dict(os.environ, SAVEROUTER_ENCODER=kind, SAVEROUTER_PRECISION=precision)


def texts(size: int, parts: int) -> list[str]:
    """Simulated prompts, several joined into one; about 33 tokens each."""
    prompts = sr.load("simulated/routerbench", size=size * parts).prompts
    return sorted((" ".join(prompts[row::size]) for row in range(size)), key=len)


def fitted(size: int) -> sr.SaveRouter:
    train = sr.load("simulated/routerbench", size=size)
    return sr.SaveRouter(k=4).fit(train.queries, train.feedback())


def compare(size: int) -> pd.DataFrame:
    """One row per encoder."""
    names, prompts, short = encoders(), texts(size, parts=4), texts(max(size // 4, 20), parts=3)
    seconds, single = ({name: [] for name in names} for _ in range(2))
    vectors, router = {name: minilm._encode(name, prompts) for name in names}, fitted(size)
    for _ in range(ROUNDS):
        for name in names:
            with chosen(name):
                seconds[name].append(timed(minilm._encode, name, prompts))
                single[name] += [timed(router.route, [prompt]) for prompt in short]
    exact = vectors[REFERENCE]
    rows = [{
        "encoder": name, "prompts per second": size / np.median(seconds[name]),
        "times torch": np.median(seconds[REFERENCE]) / np.median(seconds[name]),
        "one prompt routed, ms": 1e3 * np.median(single[name]), "memory to fit and route, GB": memory(name, size),
        "largest difference": np.abs(vectors[name] - exact).max(),
        "lowest cosine": np.float64(vectors[name] * exact).sum(axis=1).min(),
    } for name in names]  # fmt: skip
    return pd.DataFrame(rows)


def timed(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def memory(name: str, size: int) -> float:
    """Of a process of its own, from an empty cache."""
    with chosen(name), tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SAVEROUTER_CACHE=folder):
        command = [sys.executable, __file__, "--queries", str(size), "--memory"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--output", type=Path, default=Path("reports/bench"))
    parser.add_argument("--memory", action="store_true", help="only fit and route, and print the memory that it took")
    options = parser.parse_args()
    if options.memory:
        fitted(options.queries).route(["How many moons has Mars?"])
        print(peak_memory())
        return
    table = compare(options.queries)
    print(table.to_string(index=False, float_format="{:.4g}".format))
    options.output.mkdir(parents=True, exist_ok=True)
    table.to_csv(options.output / "encoders.csv", index=False)


if __name__ == "__main__":
    main()
