"""The ledger: append-only, one writer, readable at any time; what is damaged or full ends in a sentence and loses nothing."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from shop import PROMPTS, Desk, buying, pool, reply

import saverouter as sr
from saverouter.live import read_ledger
from saverouter.workloads.ledger import APPLICATION

HERE = Path(__file__).parent


@pytest.fixture
def full(ledger):
    """A ledger with something of everything."""

    def say(model, prompt, number):
        if prompt == PROMPTS[3]:
            raise TimeoutError
        return "<html>" if prompt == PROMPTS[4] else reply(model, "0.5" if model.name == "a" else "1")

    with buying(ledger, Desk(say)) as feedback:
        feedback.reveal(np.arange(6), 0)
        feedback.reveal([0, 1], 1)
    return ledger


def test_a_ledger_is_a_workload(full):
    work = sr.load(full)
    assert work.models == ("a", "b") and len(work) == 4 and np.isfinite(work.quality).sum() == 6
    assert set(work.prompts) == {PROMPTS[row] for row in (0, 1, 2, 5)} and work.name == "bought"
    told = " ".join(work.provenance)
    assert "bought from live models, read from ledger bought.sqlite" in told and "2 pairs were asked" not in told
    assert "1 pairs were asked and have no outcome" in told
    train, _ = work.split(0.5)
    sr.SaveRouter(k=1).fit(train.queries, train.feedback())
    with pytest.raises(sr.SaveRouterError, match="scale is for a table"):
        sr.load(full, scale=(1, 5))
    assert len(sr.load(full, size=2)) == 2


def test_equal_prompts_stay_together_and_changed_ones_are_left_out(ledger):
    queries = sr.Queries(np.array(["p", "p", "q", "r"], dtype=object), ids=np.array(list("wxyz"), dtype=object))
    with buying(ledger, prompts=queries) as feedback:
        feedback.reveal(np.arange(4), 0)
    changed = sr.Queries(np.array(["s"], dtype=object), ids=np.array(["z"], dtype=object))
    with buying(ledger, prompts=changed) as feedback:
        feedback.reveal([0], 1)
    work = sr.load(ledger)
    assert work.clusters.tolist() == ["prompt 1", "prompt 1", "prompt 2", "prompt 3"]
    assert work.prompts.tolist() == ["p", "p", "q", "s"] and np.isnan(work.quality[3, 0])
    assert any("1 outcomes of prompts that were changed later" in line for line in work.provenance)


def test_an_empty_ledger_says_so(ledger):
    buying(ledger).close()
    with pytest.raises(sr.SaveRouterError, match="ledger bought.sqlite holds no outcome yet"):
        sr.load(ledger)
    assert read_ledger(ledger).spent == 0


@pytest.mark.parametrize("table", ["intent", "result", "verdict", "query", "run"])
def test_nothing_is_ever_changed(full, table):
    connection = sqlite3.connect(full)
    for command in (f"DELETE FROM {table}", f"UPDATE {table} SET rowid = rowid"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(command)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("INSERT OR REPLACE INTO result SELECT * FROM result LIMIT 1")
    connection.close()


def test_a_run_can_be_read_while_it_goes_on(ledger):
    go, seen = threading.Event(), threading.Event()

    def say(model, prompt, number):
        if number == 5:
            seen.set()
            go.wait(10)
        return reply(model)

    with buying(ledger, Desk(say), workers=1) as feedback:
        run = threading.Thread(target=feedback.reveal, args=(np.arange(12), 0))
        run.start()
        seen.wait(10)
        found = read_ledger(ledger)
        assert len(found.observations) >= 4 and len(found.ambiguous) == 1 and found.possibly > 0
        assert "1 ambiguous calls" in repr(found)
        go.set()
        run.join()
        assert len(read_ledger(ledger).observations) == 12


def test_a_second_writer_is_told_so(ledger):
    with buying(ledger) as feedback:
        feedback.reveal([0], 0)
        for _ in range(2):
            with pytest.raises(
                sr.SaveRouterError, match=r"another run writes to ledger bought.sqlite.*also\(queries\)"
            ):
                buying(ledger)
        done = subprocess.run([sys.executable, "-c", SECOND, str(ledger)], cwd=HERE, capture_output=True, text=True)
        assert "another run writes to ledger bought.sqlite" in done.stdout, done.stderr
        feedback.reveal([1], 0)
    with pytest.raises(sr.SaveRouterError, match="ledger bought.sqlite was closed; make LiveFeedback anew"):
        feedback.reveal([2], 0)
    buying(ledger).close()


SECOND = """
import sys
import saverouter as sr
from shop import buying
try:
    buying(sys.argv[1])
except sr.SaveRouterError as error:
    print(error)
"""


def test_a_feedback_that_is_forgotten_lets_go(ledger):
    feedback = buying(ledger)
    feedback.reveal([0], 0)
    del feedback
    buying(ledger).close()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_a_truncated_ledger_ends_in_a_sentence(full, share):
    content = full.read_bytes()
    full.write_bytes(content[: int(share * len(content))])
    for use in (read_ledger, sr.load):
        with pytest.raises(sr.SaveRouterError, match="bought.sqlite"):
            use(full)
    if share:
        with pytest.raises(sr.SaveRouterError, match="bought.sqlite"):
            buying(full)
        assert full.read_bytes() == content[: int(share * len(content))]


@pytest.mark.parametrize("place", [0, 20, 100, 4096, 9000, 20000])
def test_a_damaged_ledger_is_a_sentence_or_whole(full, place):
    content = bytearray(full.read_bytes())
    content[place : place + 200] = os.urandom(200)
    full.write_bytes(content)
    try:
        read_ledger(full)
    except sr.SaveRouterError as error:
        assert "bought.sqlite" in str(error)


def test_a_copy_goes_on_where_the_ledger_was(full):
    copy = full.with_name("copy.sqlite")
    shutil.copy(full, copy)
    before = read_ledger(full)
    desk = Desk()
    with buying(copy, desk) as feedback:
        feedback.reveal([0, 1, 2, 5], 0)
        assert not desk.asked
        feedback.reveal([2], 1)
    assert read_ledger(copy).spent > before.spent == read_ledger(full).spent


def test_what_is_no_ledger_is_refused(ledger):
    for content, message in ((b"", "is no ledger"), (b"query,model\n" * 50, "bought.sqlite"), (None, "is no ledger")):
        if content is None:
            ledger.unlink()
            sqlite3.connect(ledger).execute("CREATE TABLE t (a)").connection.close()
        else:
            ledger.write_bytes(content)
        with pytest.raises(sr.SaveRouterError, match=message):
            read_ledger(ledger)
    with pytest.raises(sr.SaveRouterError, match="is no ledger"):
        buying(ledger)
    newer = sqlite3.connect(ledger)
    newer.executescript(f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = 9;")
    newer.close()
    with pytest.raises(sr.SaveRouterError, match="written by a newer saverouter .form 9.; update saverouter"):
        buying(ledger)
    with pytest.raises(sr.SaveRouterError, match="there is no ledger 'none.sqlite'"):
        read_ledger(ledger.with_name("none.sqlite"))
    with pytest.raises(sr.SaveRouterError, match="ends in .sqlite"):
        buying(ledger.with_suffix(".csv"))
    with pytest.raises(sr.SaveRouterError, match="folder of ledger 'a.sqlite' does not exist"):
        buying(ledger.parent / "no" / "a.sqlite")


@pytest.mark.parametrize("pages", [0, 1, 2, 4])
def test_a_full_disk_is_a_sentence_and_nothing_is_lost(ledger, pages):
    """The database may not grow any more: what stops is said, and every billed call stands in it."""
    desk = Desk(lambda model, prompt, number: reply(model, "1" + " " * 900))
    with buying(ledger, desk, workers=2) as feedback:
        feedback.reveal([0, 1], 0)
        connection = feedback._account.ledger._connection
        (size,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {size + pages}")
        with pytest.raises(
            sr.SaveRouterError, match="ledger bought.sqlite cannot be used .*the disk is full or fails; free"
        ):
            feedback.reveal(np.repeat(np.arange(12), 2), np.tile([0, 1], 12))
        connection.execute("PRAGMA max_page_count = 100000")
        found = read_ledger(ledger)
        assert set(desk.asked) <= set(zip(found.calls["model"], PROMPTS_OF(found), strict=True))
        budget = feedback._account.budget
        assert budget.spent == pytest.approx(found.spent) and budget.doubt == pytest.approx(found.possibly)
    with buying(ledger, desk, resolve="retry") as feedback:
        assert np.nansum(feedback.reveal(np.arange(12), 0)[0]) == 12


def PROMPTS_OF(found):
    return found.calls["query"].map(found.queries.set_index("query")["prompt"])


def fill(path, limit):
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        buying(path, prompts=[f"prompt {number}" for number in range(400)]).reveal(np.arange(400), 0)
    except sr.SaveRouterError as error:
        Path(path).with_name("said").write_text(str(error)[:limit])


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
@pytest.mark.parametrize("limit", [2_000, 60_000, 90_000])
def test_a_file_that_cannot_grow_is_a_sentence(ledger, limit):
    run = multiprocessing.get_context("spawn").Process(target=fill, args=(str(ledger), limit))
    run.start()
    run.join(60)
    assert "cannot be used" in ledger.with_name("said").read_text() and run.exitcode == 0
    if limit > 2_000:
        found = read_ledger(ledger)
        assert len(found.observations) > 5 and len(found.ambiguous) <= 4
    with buying(ledger, models=pool(), resolve="write off") as feedback:
        feedback.reveal([0], 0)
