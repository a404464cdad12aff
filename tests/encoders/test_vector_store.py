"""The store of vectors: keyed by content, shared between processes, and whole after an interruption."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from saverouter import progress
from saverouter.encoders import minilm
from saverouter.encoders.vector_store import VectorStore
from saverouter.files import unkept


def stand_in(asked):
    """Encodes a prompt as its number, and notes what it was asked."""

    def encode(name, prompts):
        asked.extend(prompts)
        return np.array([[int(prompt.split()[-1]), *[0] * 383] for prompt in prompts], dtype=np.float32)

    return encode


def numbered(*numbers):
    return [f"prompt {number}" for number in numbers]


def test_a_prompt_is_encoded_once(own_cache, monkeypatch):
    asked = []
    monkeypatch.setattr(minilm, "_encode", stand_in(asked))
    first = minilm.minilm_vectors(numbered(*range(30), *range(30)))
    assert sorted(asked) == sorted(numbered(*range(30))) and first[:, 0].tolist() == [*range(30), *range(30)]
    again = minilm.minilm_vectors(numbered(*range(40, 10, -1)))
    assert again[:, 0].tolist() == [*range(40, 10, -1)] and len(asked) == len(set(asked)) == 41


def test_what_passes_once_is_not_kept_and_what_is_known_is_not_encoded_again(own_cache, monkeypatch):
    asked = []
    monkeypatch.setattr(minilm, "_encode", stand_in(asked))
    minilm.minilm_vectors(numbered(*range(20)))
    files = sorted(own_cache.rglob("*.npy"))
    with unkept():
        assert minilm.minilm_vectors(numbered(*range(40)))[:, 0].tolist() == [*range(40)]
    minilm.minilm_vectors(numbered(100))  # too few to be looked for
    assert sorted(own_cache.rglob("*.npy")) == files and len(asked) == len(set(asked)) == 41


def test_an_interruption_loses_only_the_part_at_work(own_cache, monkeypatch):
    asked = []
    encode = stand_in(asked)

    def failing(name, prompts):
        if len(asked) >= 20:
            raise KeyboardInterrupt
        return encode(name, prompts)

    monkeypatch.setattr(minilm, "SHARD", 5)
    monkeypatch.setattr(minilm, "_encode", failing)
    with pytest.raises(KeyboardInterrupt):
        minilm.minilm_vectors(numbered(*range(30)))
    assert len(asked) == 20
    monkeypatch.setattr(minilm, "_encode", encode)
    assert minilm.minilm_vectors(numbered(*range(30)))[:, 0].tolist() == [*range(30)]
    assert len(asked) == 30 == len(set(asked))


def test_an_emptied_store_is_filled_again(own_cache, monkeypatch):
    asked = []
    monkeypatch.setattr(minilm, "_encode", stand_in(asked))
    minilm.minilm_vectors(numbered(*range(20)))
    for path in own_cache.rglob("*.npy"):
        path.unlink()
    assert minilm.minilm_vectors(numbered(*range(20)))[:, 0].tolist() == [*range(20)] and len(asked) == 40


def test_many_files_are_not_open_at_once(own_cache):
    store, wanted = VectorStore(own_cache, "a", "things"), {bytes([n, *[0] * 15]): n for n in range(200)}
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        found = store.complete(wanted, lambda things: np.array([[thing] for thing in things], np.float32), part=1)
        assert len(list(own_cache.glob("*.npy"))) == 200 and [int(found[key][0]) for key in wanted] == [*range(200)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


SHARING = """
import sys, time
import numpy as np
from saverouter.encoders import minilm
def encode(name, prompts):
    time.sleep(0.02)
    print(len(prompts), flush=True)
    return np.array([[int(prompt.split()[-1]), *[0] * 383] for prompt in prompts], dtype=np.float32)
minilm._encode, minilm.SHARD = encode, 10
found = minilm.minilm_vectors([f"prompt {number}" for number in range(500)])
assert found[:, 0].tolist() == list(range(500))
"""


def test_two_processes_share_the_work(own_cache):
    both = [subprocess.Popen([sys.executable, "-c", SHARING], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    encoded = [sum(map(int, process.communicate()[0].split())) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(encoded) == 500 and min(encoded) > 50  # neither waited for the other


def test_who_waits_is_told_how_fast_it_goes(own_cache, monkeypatch, caplog):
    monkeypatch.setattr(minilm, "SHARD", 20)
    monkeypatch.setattr(minilm, "_encode", stand_in([]))
    with caplog.at_level("INFO", logger="saverouter"):
        minilm.minilm_vectors(numbered(*range(40)))
        assert not caplog.messages  # over in a moment
        monkeypatch.setattr(progress, "EVERY", 0.0)
        minilm.minilm_vectors(numbered(*range(100, 140)))
        assert [line.split(",")[0] for line in caplog.messages] == [f"MiniLM: {n} of 40 new prompts" for n in (20, 40)]
        assert all(" per second, " in line and line.endswith(" s left") for line in caplog.messages)
        caplog.clear()
        minilm.minilm_vectors(numbered(*range(100, 140)))  # known by now
        assert not caplog.messages
