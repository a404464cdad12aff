"""Runs one stage of one side on recorded inputs and writes down what it made, its seconds and its peak memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp


def load(folder: Path) -> dict:
    given = {path.stem: np.load(path, allow_pickle=True) for path in folder.glob("*.npy")}
    return given | {path.stem: sp.load_npz(path) for path in folder.glob("*.npz")}


def record(stages: dict, stage: str, folder: str, output: str) -> None:
    """``stages[stage](given)`` returns its seconds and a dict of arrays."""
    import saverouter  # ours or the release: whichever this process can see

    seconds, made = stages[stage](load(Path(folder)))
    np.savez(output, seconds=seconds, memory=peak_memory(), origin=saverouter.__file__, **made)


def peak_memory() -> float:
    """Gigabytes this process held at most; NaN where the system does not tell. (getrusage also counts the parent's.)"""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    peaks = [int(line.split()[1]) / 2**20 for line in lines if line.startswith("VmHWM")]
    return peaks[0] if peaks else float("nan")
