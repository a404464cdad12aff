"""Encoders run by OpenVINO: the fast forms, tested for equality with sentence-transformers and transformers.

MiniLM needs neither of these, nor torch: its graph, BERT with pooling, is made from the packaged weights. A graph is
made once and kept in the cache.
"""

from __future__ import annotations

import inspect
import json
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
from numba import config
from openvino import opset13 as ops
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from ..files import atomic_path, digest_of, only_one

LONGEST = 256  # tokens, sentence-transformers' limit for this model


class MiniLM:
    """Unit vectors of prompts, as sentence-transformers' ``encode`` gives them."""

    def __init__(self, folder: Path, kept: Path, precision: str):
        """``folder`` has the packaged weights; a graph that was made before is in the folder ``kept``, by its code."""
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.no_padding()
        path = kept / f"graph-{digest_of(inspect.getsource(_bert))[:8]}.xml"
        self.run, self.turn = compiled(lambda: _bert(folder), path, precision), threading.Lock()

    def encode(self, prompts: list[str]) -> np.ndarray:
        """(n, 384) float32. One at a time: as fast as in batches, and no vector depends on its neighbours' padding."""
        vectors = np.empty((len(prompts), 384), np.float32)
        for row, encoding in enumerate(self.tokenizer.encode_batch_fast(prompts)):
            with self.turn:  # a graph runs once at a time, whichever thread asks
                vectors[row] = self.run([np.array([encoding.ids])])[0]
        return vectors


def converted(load: Callable, example: dict) -> ov.Model:
    """The graph of a torch module, with the example's names for its inputs and any sizes."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of branches that depend on sizes: a test compares other sizes too
        graph = ov.convert_model(load(), example_input={name: torch.as_tensor(part) for name, part in example.items()})
    graph.reshape({name: [-1] * part.ndim for name, part in example.items()})
    return graph


def can_bf16() -> bool:
    """Whether this processor calculates with 16 bits."""
    return "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def compiled(make: Callable[[], ov.Model], kept: Path, precision: str) -> ov.CompiledModel:
    """A graph ready to run, read from where it is ``kept``, or made now and kept there."""
    core = ov.Core()
    with only_one(kept):
        try:
            graph = core.read_model(kept)
        except RuntimeError:  # not there, or damaged
            graph = make()
            with atomic_path(kept) as description, atomic_path(kept.with_suffix(".bin")) as weights:
                ov.serialize(graph, description, weights)
    return core.compile_model(graph, "CPU", {
        "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[precision],
        "INFERENCE_NUM_THREADS": config.NUMBA_NUM_THREADS,
        "ENABLE_CPU_PINNING": False,  # two processes of one thread each would share the first core
        "PERFORMANCE_HINT": "LATENCY",
    })  # fmt: skip


def _bert(folder: Path) -> ov.Model:
    """(n, length) tokens of prompts of one length to (n, width) unit vectors."""
    weights = load_file(folder / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    width, heads = settings["hidden_size"], settings["num_attention_heads"]

    def linear(x, name):
        product = ops.matmul(x, ops.constant(weights[f"{name}.weight"]), False, True)
        return ops.add(product, ops.constant(weights[f"{name}.bias"]))

    def normal(x, name):
        centred = ops.mvn(x, [-1], True, settings["layer_norm_eps"], "INSIDE_SQRT")
        scaled = ops.multiply(centred, ops.constant(weights[f"{name}.weight"]))
        return ops.add(scaled, ops.constant(weights[f"{name}.bias"]))

    def by_head(x):
        return ops.transpose(ops.reshape(x, [0, 0, heads, width // heads], True), [0, 2, 1, 3])

    tokens = ops.parameter([-1, -1], np.int64, "tokens")
    position = ops.range(0, ops.gather(ops.shape_of(tokens), 1, 0), 1, "i64")
    words, places, kinds = (
        weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")
    )
    x = ops.gather(ops.constant(words), tokens, 0)
    x = ops.add(x, ops.gather(ops.constant(places + kinds[0]), position, 0))
    x = normal(x, "embeddings.LayerNorm")
    for layer in range(settings["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        query, key, value = (by_head(linear(x, f"{name}.attention.self.{part}")) for part in ("query", "key", "value"))
        heard = ops.scaled_dot_product_attention(query, key, value)
        heard = ops.reshape(ops.transpose(heard, [0, 2, 1, 3]), [0, 0, width], True)
        x = normal(ops.add(x, linear(heard, f"{name}.attention.output.dense")), f"{name}.attention.output.LayerNorm")
        inner = ops.gelu(linear(x, f"{name}.intermediate.dense"), "ERF")
        x = normal(ops.add(x, linear(inner, f"{name}.output.dense")), f"{name}.output.LayerNorm")
    return ov.Model([ops.normalize_l2(ops.reduce_mean(x, [1]), [1], 1e-12, "max")], [tokens], "minilm")
