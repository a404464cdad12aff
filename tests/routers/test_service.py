"""A router in a service: any number of prompts, one by one, and nothing of them is left behind."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import make_workload

import saverouter as sr
from saverouter.encoders import minilm

LIVES = """
import os, resource, sys
import numpy as np
from conftest import make_workload
import saverouter as sr
from saverouter.encoders import minilm

def stand_in(name, prompts):
    asked = np.array([[len(prompt), sum(map(ord, prompt)), *[1] * 382] for prompt in prompts], np.float32)
    return asked / np.linalg.norm(asked, axis=1, keepdims=True)

minilm._encode = stand_in
train = make_workload(with_vectors=False)
router = sr.SaveRouter(k=2).fit(train.queries, train.feedback())
router.route(["warm up"])
handles = max(map(int, os.listdir("/dev/fd"))) + 64
resource.setrlimit(resource.RLIMIT_NOFILE, (handles, handles))
def kept():
    return sum(len(files) for _, _, files in os.walk(os.environ["SAVEROUTER_CACHE"]))
before = kept()
for keep, prompts in ((False, 1500), (True, 200)):
    answers = [router.route([f"prompt number {n}"], cost_weight=0.1, keep=keep)[0] for n in range(prompts)]
    assert set(answers) <= set(router.models_)
    print(kept() - before)
assert (answers == router.route([f"prompt number {n}" for n in range(prompts)], cost_weight=0.1)).all()
"""


def test_a_service_lives_with_few_handles_and_leaves_no_file(own_cache):
    pytest.importorskip("resource")
    if not os.path.isdir("/dev/fd"):
        pytest.skip("this system does not list open files")
    done = subprocess.run([sys.executable, "-c", LIVES], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    unasked, asked = map(int, done.stdout.split())
    assert unasked == 0 < asked <= 2 * 15


def test_route_keeps_vectors_only_where_it_is_asked_to(own_cache, monkeypatch):
    asked = []

    def stand_in(name, prompts):
        asked.extend(prompts)
        return np.eye(len(prompts), 384, dtype=np.float32)

    monkeypatch.setattr(minilm, "_encode", stand_in)
    train, test = make_workload(with_vectors=False).split()
    router = sr.SaveRouter(k=2, residual_scale=0.0).fit(train.queries, train.feedback())
    before, encoded = sorted(own_cache.rglob("*.npy")), len(asked)
    for queries in (test.prompts.tolist(), test.queries, test):
        router.route(queries)
        assert sorted(own_cache.rglob("*.npy")) == before
    assert len(asked) == encoded + 3 * len(test)
    router.route(test.prompts.tolist(), keep=True)
    assert sorted(own_cache.rglob("*.npy")) != before
    router.route(test)
    assert len(asked) == encoded + 4 * len(test)  # read from disk
