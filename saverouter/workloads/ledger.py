"""A ledger of bought outcomes, as a file: what its tables are, what stands in them, and the workload they make.

``saverouter.live`` writes it. Reading needs no more than this: also while somebody writes, and of a copy made while
nobody does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import SaveRouterError
from .workload import Workload

APPLICATION, VERSION = 0x53524C31, 1  # how the file says what it is
OBSERVED = ("quality", "cost", "extra", "input_tokens", "output_tokens", "seconds", "query")
NO_OUTCOME = {"refused": "refused", "gave_up": "given up", "written_off": "written off", "retried": "written off"}
SCHEMA = """
CREATE TABLE run (run INTEGER PRIMARY KEY, at REAL NOT NULL, max_spend REAL NOT NULL, terms TEXT NOT NULL);
CREATE TABLE query (query INTEGER PRIMARY KEY, name TEXT NOT NULL, hash TEXT NOT NULL, prompt TEXT NOT NULL, task TEXT,
    UNIQUE (name, hash));
CREATE TABLE intent (intent INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run, query INTEGER NOT NULL REFERENCES query,
    model TEXT NOT NULL, role TEXT NOT NULL CHECK (role IN ('answer', 'judge')), asked TEXT NOT NULL, request TEXT NOT NULL,
    attempt INTEGER NOT NULL, at REAL NOT NULL, worst REAL NOT NULL CHECK (worst >= 0));
CREATE TABLE result (intent INTEGER PRIMARY KEY REFERENCES intent, at REAL NOT NULL, seconds REAL,
    status TEXT NOT NULL CHECK (status IN ('ok', 'refused', 'failed', 'gave_up', 'written_off', 'retried')),
    served TEXT, reply TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL NOT NULL CHECK (cost >= 0),
    priced TEXT NOT NULL CHECK (priced IN ('usage', 'worst case', 'nothing')), answer TEXT, error TEXT);
CREATE TABLE verdict (verdict INTEGER PRIMARY KEY, intent INTEGER NOT NULL REFERENCES result, judge TEXT NOT NULL,
    at REAL NOT NULL, quality REAL CHECK (quality BETWEEN 0 AND 1), error TEXT, CHECK ((quality IS NULL) <> (error IS NULL)));
CREATE TRIGGER no_second_result BEFORE INSERT ON result WHEN EXISTS (SELECT 1 FROM result WHERE intent = NEW.intent)
    BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
for _table in ("run", "query", "intent", "result", "verdict"):
    for _change in ("UPDATE", "DELETE"):
        SCHEMA += (
            f"CREATE TRIGGER {_table}_{_change.lower()} BEFORE {_change} ON {_table} "
            "BEGIN SELECT RAISE(ABORT, 'append-only'); END;\n"
        )
ROWS = """
SELECT i.intent, i.query, q.name AS query_id, q.hash, i.model, i.role, i.asked, i.request, i.attempt, i.at, i.worst,
    r.seconds, r.status, r.served, r.input_tokens, r.output_tokens, r.cost, r.priced, r.error, v.quality, v.error AS judge_error
FROM intent i JOIN query q USING (query) LEFT JOIN result r USING (intent)
LEFT JOIN (SELECT intent, quality, error, max(verdict) FROM verdict GROUP BY intent) v USING (intent) ORDER BY i.intent
"""


@dataclass(frozen=True)
class LedgerContents:
    """What stood in a ledger when it was read.

    observations : a row per pair with an outcome: query_id, model, quality, cost (of the answer), extra (what the pair cost
        beside it: judge, refused and repeated calls), tokens, seconds
    quarantined : pairs that were paid for, or given up, and have no outcome, with the reason
    ambiguous : calls that may have been billed and have no certain result, with their worst case
    calls : every intent with its result
    spent : the sum of all known costs; ``possibly`` more may have been billed for the ambiguous ones
    """

    path: str
    observations: pd.DataFrame = field(repr=False)
    quarantined: pd.DataFrame = field(repr=False)
    ambiguous: pd.DataFrame = field(repr=False)
    calls: pd.DataFrame = field(repr=False)
    queries: pd.DataFrame = field(repr=False)
    runs: pd.DataFrame = field(repr=False)
    spent: float
    possibly: float
    currency: str

    def __repr__(self) -> str:
        doubt = (
            f", up to {self.possibly:.4g} more for {len(self.ambiguous)} ambiguous calls" if len(self.ambiguous) else ""
        )
        return (
            f"<ledger {Path(self.path).name}: {len(self.observations):,} outcomes, {len(self.quarantined):,} quarantined, "
            f"{self.spent:.6g} {self.currency}".rstrip()
            + f" spent{doubt}>"
        )


def refusal(path: Path, error: Exception) -> SaveRouterError:
    """A database's complaint as a sentence."""
    text = str(error)
    if "full" in text or "disk I/O" in text:
        remedy = "the disk is full or fails; free some space and resume: what was bought is kept"
    elif "locked" in text:
        remedy = "another program keeps it locked; close that one and resume"
    elif "readonly" in text or "unable to open" in text:
        remedy = "it cannot be written here; give a path in a folder that can be"
    else:
        remedy = "it is damaged, or was copied while somebody wrote to it; take a copy made while nobody did"
    return SaveRouterError(f"ledger {path.name} cannot be used ({text}): {remedy}")


@contextmanager
def reading(path: str | Path) -> Iterator:
    """A connection that reads a ledger, whoever writes to it; what is none, or is damaged, is refused."""
    import sqlite3

    path = Path(path)
    if not path.is_file():
        raise SaveRouterError(
            f"there is no ledger {path.name!r}; give the path that LiveFeedback(ledger=...) was given"
        )
    place = path.resolve().as_uri()
    try:
        try:  # a writer that died left a journal, which only somebody who may write can roll back
            connection = sqlite3.connect(f"{place}?mode=rw", uri=True, timeout=5)
            connection.execute("PRAGMA query_only = ON")
            check(connection, path)
        except sqlite3.OperationalError:
            connection = sqlite3.connect(f"{place}?mode=ro", uri=True, timeout=5)
            check(connection, path)
        try:
            yield connection
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise refusal(path, error) from None


def check(connection, path: Path) -> None:
    """Refuse what is no ledger, a newer one, or a damaged one."""
    import sqlite3

    (application,), (version,) = (
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise SaveRouterError(f"{path.name} is no ledger of bought outcomes; give another file, or a new name")
    if version > VERSION:
        raise SaveRouterError(
            f"ledger {path.name} was written by a newer saverouter (form {version}); update saverouter to read it"
        )
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if path.stat().st_size < pages * size:  # it may grow meanwhile, never shrink
        raise sqlite3.DatabaseError(f"cut off: {path.stat().st_size:,} of {pages * size:,} bytes")
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found.splitlines()[-1])


def read_ledger(path: str | Path) -> LedgerContents:
    """Everything in a ledger, also while a run writes to it."""
    with reading(path) as connection:
        calls, queries, runs = (
            pd.read_sql_query(question, connection)
            for question in (ROWS, "SELECT * FROM query ORDER BY query", "SELECT * FROM run ORDER BY run")
        )
    terms = json.loads(runs["terms"].iloc[-1]) if len(runs) else {}
    calls = calls.astype({"cost": float, "quality": float, "seconds": float})
    answers = calls[calls["role"] == "answer"]
    pairs = ["query_id", "model"]
    money = calls.groupby(pairs)["cost"].sum().rename("paid")
    seen = answers[answers["quality"].notna()].drop_duplicates(pairs, keep="last").join(money, on=pairs)
    seen = seen.assign(extra=seen["paid"] - seen["cost"])
    last = answers[answers["status"].notna() & (answers["status"] != "failed")].drop_duplicates(pairs, keep="last")
    lost = (
        last.merge(seen[pairs], how="left", on=pairs, indicator=True)
        .query("_merge == 'left_only'")
        .join(money, on=pairs)
    )
    reasons = lost["judge_error"].fillna(lost["error"]).fillna(lost["status"].map(NO_OUTCOME)).fillna("not judged yet")
    lost = lost.assign(reason=reasons, cost=lost["paid"])
    doubt = calls[calls["status"].isna()]
    return LedgerContents(
        path=str(path),
        observations=seen[[*pairs, *OBSERVED]].reset_index(drop=True),
        quarantined=lost[[*pairs, "reason", "cost"]].reset_index(drop=True),
        ambiguous=doubt[[*pairs, "role", "asked", "attempt", "at", "worst"]].reset_index(drop=True),
        calls=calls, queries=queries, runs=runs, spent=float(calls["cost"].sum()), possibly=float(doubt["worst"].sum()),
        currency=terms.get("currency", ""),
    )  # fmt: skip


def ledger_workload(path: str | Path) -> Workload:
    """The outcomes in a ledger as a workload: NaN where a pair was not bought, queries without any outcome left out."""
    found = read_ledger(path)
    name = Path(path).name
    if not len(found.observations):
        raise SaveRouterError(f"ledger {name} holds no outcome yet; buy some first")
    seen = found.observations
    latest = seen.groupby("query_id", sort=False)["query"].max()
    stale = seen["query"].to_numpy() != latest.loc[seen["query_id"]].to_numpy()
    seen = seen[~stale]
    known = found.queries.set_index("query").loc[latest.sort_values()]
    terms = json.loads(found.runs["terms"].iloc[-1])
    bought = set(seen["model"])
    models = [model for model in terms["pool"] if model in bought]
    models += sorted(bought.difference(models))
    quality = np.full((len(known), len(models)), np.nan)
    cost = quality.copy()
    place = known["name"].tolist()
    rows, columns = pd.Index(place).get_indexer(seen["query_id"]), pd.Index(models).get_indexer(seen["model"])
    quality[rows, columns], cost[rows, columns] = seen["quality"], seen["cost"]
    told = [
        f"bought from live models, read from ledger {name}: {len(seen):,} outcomes of {quality.size:,} pairs, "
        f"{found.spent:.6g} {found.currency}".rstrip()
        + " spent in all",
        "cost is what the answers cost; judges, refused and repeated calls are on the bill of the ledger only",
        f"prices: {terms.get('source') or 'given by the user'}"
        + (f", of {terms['date']}" if terms.get("date") else ""),
    ]
    if len(found.quarantined):
        told.append(f"{len(found.quarantined):,} pairs were asked and have no outcome; they count as unavailable")
    if stale.any():
        told.append(f"{stale.sum():,} outcomes of prompts that were changed later under the same name are left out")
    codes, texts = pd.factorize(known["prompt"])
    if len(texts) < len(codes):
        told.append(
            f"{len(codes) - len(texts):,} queries repeat the prompt of another; a split keeps equal prompts together"
        )
    return Workload(
        query_ids=place, prompts=known["prompt"].tolist(), models=models, quality=quality, cost=cost,
        tasks=known["task"].tolist() if known["task"].notna().all() else None, name=Path(path).stem, provenance=tuple(told),
        clusters=[f"prompt {code + 1}" for code in codes] if len(texts) < len(codes) else None,
    )  # fmt: skip
