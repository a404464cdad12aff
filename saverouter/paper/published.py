"""The paper's own numbers, typed once into data/published, to stand beside measured ones."""

from __future__ import annotations

import pandas as pd

from ..files import data_folder


def published(name: str) -> pd.DataFrame:
    """A published table by name, e.g. "main_results"."""
    return pd.read_csv(data_folder() / "published" / f"{name}.csv")


def main_results(benchmark: str) -> pd.DataFrame:
    """Table 1 of the paper for one benchmark, one row per method."""
    table = published("main_results")
    return table[table["benchmark"] == benchmark].drop(columns="benchmark").set_index("method")
