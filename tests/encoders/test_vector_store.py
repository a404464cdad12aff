"""The store of vectors: keyed by content, shared between processes, and whole after an interruption."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from saverouter import SaveRouterError, progress
from saverouter.encoders import minilm, vector_store
from saverouter.encoders.vector_store import VectorStore
from saverouter.files import keeping, unkept


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
    with keeping(True):  # asked for, so that even one is kept, and found
        for _ in range(2):
            assert minilm.minilm_vectors(numbered(200))[:, 0].tolist() == [200]
    assert len(asked) == len(set(asked)) == 42 and len(list(own_cache.rglob("*.npy"))) == len(files) + 1


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


def things(*numbers):
    return {bytes([number % 256, number // 256, *[0] * 14]): number for number in numbers}


def encoded(numbers):
    return np.array([[number, 1] for number in numbers], np.float32)


def test_small_files_are_merged_and_few_are_open_at_once(own_cache):
    store, wanted = VectorStore(own_cache, "a", "things"), things(*range(700))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, before[1]))
    try:
        found = store.complete(wanted, encoded, part=1)
        files = [path for path in own_cache.rglob("*") if path.is_file()]
        assert len(files) <= 3 * (vector_store.MERGED - 1)  # of one vector, of 16, of 256
        assert [int(found[key][0]) for key in wanted] == [*range(700)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    vector_store._index_of.cache_clear()  # as another process sees it
    again = VectorStore(own_cache, "a", "things").complete(wanted, None, part=1)
    assert [int(again[key][0]) for key in wanted] == [*range(700)]


def test_a_file_that_another_process_merged_is_found_again(own_cache):
    store, wanted, other = VectorStore(own_cache, "a", "things"), things(*range(15)), things(15)
    store.complete(wanted, encoded, part=1)
    mine = vector_store._index_of(own_cache)
    vector_store._index_of.cache_clear()
    store.complete(other, encoded, part=1)
    (merged,) = own_cache.glob("*.npy")
    mine.update = lambda: []  # as if it had looked a moment before
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_store, "_index_of", lambda folder: mine)
        found = store.complete(wanted, lambda numbers: asked.extend(numbers) or encoded(numbers), part=4)
    assert [int(found[key][0]) for key in wanted] == sorted(asked) == [*range(15)]  # at worst, encoded once more


@pytest.mark.parametrize(
    "damage", ["nan", "infinite", "truncated", "empty", "text", "pickle", "width", "fields", "single"]
)
def test_what_is_damaged_is_encoded_again_and_said(own_cache, caplog, damage):
    store, wanted = VectorStore(own_cache, "a", "things"), things(*range(10))
    store.complete(wanted, encoded, part=10)
    (path,) = own_cache.glob("*.npy")
    shard, whole = np.load(path), path.read_bytes()
    if damage in ("nan", "infinite"):
        shard["vector"][3, 1] = {"nan": np.nan, "infinite": -np.inf}[damage]
        np.save(path, shard)
    elif damage == "width":
        wrong = np.zeros(4, dtype=[("key", np.uint8, 16), ("vector", np.float32, 3)])
        wrong["key"] = shard["key"][:4]
        np.save(path, shard[4:])
        np.save(own_cache / "wrong.npy", wrong)
    elif damage == "single":
        np.save(path, np.zeros(10, dtype=[("key", np.uint8, 16), ("vector", np.float32)]))
    elif damage == "fields":
        np.save(path, np.zeros((10, 2), np.float32))
    elif damage == "pickle":
        np.save(path, np.array([print], dtype=object), allow_pickle=True)
    else:
        path.write_bytes({"truncated": whole[:-7], "empty": b"", "text": b"a vector, surely"}[damage])
    vector_store._index_of.cache_clear()
    with caplog.at_level("INFO", logger="saverouter"):
        found = store.complete(wanted, encoded, part=10)
    assert [int(found[key][0]) for key in wanted] == [*range(10)] and np.isfinite(list(found.values())).all()
    assert "in the cache is damaged and is removed; what was in it is encoded again" in caplog.text
    vector_store._index_of.cache_clear()
    assert len(store.complete(wanted, None, part=10)) == 10  # mended


def test_an_encoder_that_gives_no_number_is_refused_and_nothing_is_kept(own_cache):
    store = VectorStore(own_cache, "MiniLM", "prompts")
    with pytest.raises(SaveRouterError, match="MiniLM gave a vector that is not finite for one of 4 prompts"):
        store.complete(things(*range(4)), lambda numbers: np.full((len(numbers), 2), np.nan), part=10)
    assert not list(own_cache.glob("*.npy"))


def test_the_limit_of_the_cache_holds_while_it_is_filled(own_cache, monkeypatch):
    monkeypatch.setattr(minilm, "_encode", stand_in([]))
    monkeypatch.setenv("SAVEROUTER_CACHE_GB", "0.001")
    for start in range(0, 2000, 400):
        vectors = minilm.minilm_vectors(numbered(*range(start, start + 400)))
        assert vectors[:, 0].tolist() == [*range(start, start + 400)]
        assert sum(path.stat().st_size for path in own_cache.rglob("*.npy")) <= 1e6


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
