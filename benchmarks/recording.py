"""Runs one stage of one side on recorded inputs and writes down what it made, its seconds and its peak memory."""

from __future__ import annotations

import resource
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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts kilobytes
    np.savez(output, seconds=seconds, memory=peak, origin=saverouter.__file__, **made)
