"""Runs killed at any moment, before a server that makes every mistake: nothing lost, nothing paid twice, never over the cap.

SAVEROUTER_KILLS=50 kills as often as that.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from provider import Provider, serving

import saverouter as sr
from saverouter.live import read_ledger

pytest.importorskip("openai")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, as this system cannot")
KILLS = int(os.environ.get("SAVEROUTER_KILLS", "6"))
FAULTS = {"429": 0.04, "wait seconds": 0.02, "500": 0.04, "late": 0.02, "other model": 0.03, "garbage": 0.03, "drip": 0.015,
          "drop": 0.015, "html": 0.01, "cut": 0.01, "no usage": 0.01}  # fmt: skip


class Buyer:
    """The process that forks the runs."""

    def __enter__(self):
        command = [sys.executable, str(Path(__file__).with_name("buyer.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)

    def start(self, *run):
        """A run that has begun: its process."""
        self.process.stdin.write(json.dumps(run) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def end(self, said=None):
        """What it says until it ends, and its exit code."""
        heard = []
        while True:
            said = self.hear() if said is None else said
            if isinstance(said, dict):
                return heard, said["ended"]
            heard, said = [*heard, said], None


def accounts(provider, found):
    """(billed calls without an intent, billed twice and not declared) by the server's account."""
    prompts = found.calls["query"].map(found.queries.set_index("query")["prompt"])
    pairs = list(zip(found.calls["asked"], prompts, strict=True))
    sent = Counter(pair for pair, status in zip(pairs, found.calls["status"], strict=True) if status != "failed")
    declared = Counter(pair for pair, status in zip(pairs, found.calls["status"], strict=True) if status == "retried")
    lost = sum((provider.billed - sent).values())
    twice = sum(max(count - 1 - declared[pair], 0) for pair, count in provider.billed.items())
    return lost, twice


def test_killed_at_any_moment(ledger, capsys):
    chance, prompts = random.Random(KILLS), max(40, 9 * KILLS)
    provider = Provider(lambda model, prompt: "0.5", latency=0.01, late=0.8)
    provider.chances, cap, kills, capped = FAULTS, 0.004, 0, 0
    with serving(provider) as address, Buyer() as buyer:
        for _ in range(KILLS * 4 + 40):
            child = buyer.start(str(ledger), address, cap, prompts)
            said = buyer.hear()
            if said == "ready" and kills < KILLS:
                time.sleep(chance.uniform(0, 0.35))
                with suppress(ProcessLookupError):  # it has ended
                    os.kill(child, signal.SIGKILL)
            heard, ended = buyer.end(said)
            kills += ended == -signal.SIGKILL
            found = read_ledger(ledger)
            assert found.spent + found.possibly <= cap, heard
            assert ended in (0, 3, -signal.SIGKILL), heard
            if ended == 3:
                capped += 1
                cap *= 1.5
            if ended == 0 and kills == KILLS:
                break
            if ended == 0:  # it was too fast to be killed as often: there is more to buy
                prompts += 20
        time.sleep(1.0)  # what the server still has in hand
    found = read_ledger(ledger)
    lost, twice = accounts(provider, found)
    retried = (found.calls["status"] == "retried").sum()
    assert ended == 0 and kills == KILLS and lost == 0 and twice == 0
    assert provider.money <= found.spent + found.possibly + 1e-12 and found.spent + found.possibly <= cap
    assert len(found.observations) + len(found.quarantined) >= 2 * prompts - len(found.ambiguous)
    work = sr.load(ledger)
    assert len(work) > 0.9 * prompts
    if "SAVEROUTER_KILLS" in os.environ:
        calls = sum(provider.billed.values())
        told = {
            "killed": kills, "stopped by the cap": capped, "billed calls": calls, "billed": provider.money,
            "intents": len(found.calls), "outcomes": len(found.observations), "quarantined": len(found.quarantined),
            "spent": found.spent, "in doubt": found.possibly, "declared ambiguous and made again": int(retried), "cap": cap,
            "lost": lost, "paid twice": twice,
        }  # fmt: skip
        with capsys.disabled():
            print("", *(f"{name}: {value:g}" for name, value in told.items()), sep="\n")
