"""Questions on pictures as numbers: frozen CLIP ViT-B/16 vectors, kept by content, so that a pair is encoded once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

import numpy as np

from ..errors import SaveRouterError
from ..files import cache_folder, contents_of
from .backend import encoder_name, no_progress_bar, openvino
from .vector_store import VectorStore, keys_of

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
BATCH = 32
WIDTH = 1024  # numbers of a vector: half of the text, half of the picture
SHARD = BATCH  # pairs encoded between two saves, a few seconds: what an interruption may lose


def clip_vectors(prompts: Iterable[str], images: Iterable[str | Path], *, weights: str | Path) -> np.ndarray:
    """(n, 1024) vectors: unit text and image vectors side by side, normalised again, so that each half counts alike.

    ``weights`` is a folder with the model in the format of transformers; it is never fetched here. A picture that cannot be
    read is an error.
    """
    folder = _weights_folder(weights)
    prompts, images = list(prompts), list(images)
    keys = _keys(prompts, images)
    wanted = dict(zip(keys, zip(prompts, images, strict=True), strict=True))
    store = VectorStore(_kept(folder) / encoder_name(), "CLIP", "pairs")
    known = store.complete(wanted, partial(_encode, folder), SHARD)
    return np.stack([known[key] for key in keys]) if keys else np.empty((0, WIDTH), np.float32)


def _weights_folder(given: str | Path) -> Path:
    folder = Path(given).expanduser()
    if not (folder / "config.json").is_file() or not any((folder / name).is_file() for name in WEIGHTS):
        raise SaveRouterError(
            f"no CLIP ViT-B/16 weights in {folder.name}/: fetch them with 'make data BENCHMARK=mmrbench', name a folder that "
            "has them in SAVEROUTER_CLIP, or give the workload its own vectors"
        )
    return folder


def _kept(folder: Path) -> Path:
    return cache_folder("clip", contents_of([_weights(folder)])[0][:12])


def _weights(folder: Path) -> Path:
    return next(folder / name for name in WEIGHTS if (folder / name).is_file())


def _keys(prompts: list[str], images: list) -> list[bytes]:
    """A pair by the text and by what is in the picture's file."""
    try:
        contents = contents_of(images)
    except OSError as error:
        raise SaveRouterError(
            f"picture {Path(error.filename).name!r} cannot be read ({error.strerror}); replace or drop it"
        ) from error
    return keys_of(f"{content} {prompt}" for content, prompt in zip(contents, prompts, strict=True))


@cache
def _model(folder: Path, name: str) -> tuple:
    """The encoder as a function of arrays by name, and what makes arrays of words and of pictures."""
    from transformers import CLIPTokenizer
    from transformers.models.clip import CLIPImageProcessorPil  # the same pixels with and without torchvision

    words = CLIPTokenizer.from_pretrained(folder, local_files_only=True)
    pictures = CLIPImageProcessorPil.from_pretrained(folder, local_files_only=True)
    kind, precision = name.split("-")
    if kind == "torch":
        return partial(_with_torch, _reference(folder)), words, pictures
    pixels = np.zeros((2, 3, pictures.crop_size["height"], pictures.crop_size["width"]), np.float32)
    example = {**words(["a", "b"], return_tensors="pt"), "pixel_values": pixels}
    make = partial(openvino().converted, partial(_reference, folder), example)
    graph = openvino().compiled(make, _kept(folder) / "graph.xml", precision)
    return lambda arrays: list(graph(arrays).values()), words, pictures


def _reference(folder: Path):
    """The model as torch runs it: text vectors and image vectors, of all that CLIP gives."""
    import torch
    from transformers import CLIPModel

    class Halves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.clip = CLIPModel.from_pretrained(folder, local_files_only=True).eval()

        def forward(self, input_ids, attention_mask, pixel_values):
            found = self.clip(input_ids=input_ids, attention_mask=attention_mask, pixel_values=pixel_values)
            return found.text_embeds, found.image_embeds

    with no_progress_bar():
        return Halves()


def _with_torch(model, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    import torch

    with torch.inference_mode():
        return [half.numpy() for half in model(**{name: torch.from_numpy(array) for name, array in arrays.items()})]


def _encode(folder: Path, pairs: list) -> np.ndarray:
    run, words, pictures = _model(folder, encoder_name())
    vectors = []
    for start in range(0, len(pairs), BATCH):
        prompts, images = zip(*pairs[start : start + BATCH], strict=True)
        text = words(list(prompts), return_tensors="np", padding=True, truncation=True, max_length=77)
        pixels = pictures(images=[_picture(path) for path in images], return_tensors="np")
        vectors.append(np.hstack([_unit(half) for half in run({**text, **pixels})]))
    return _unit(np.concatenate(vectors)).astype(np.float32)


def _picture(path):
    from PIL import Image

    try:
        with Image.open(path) as opened:
            return opened.convert("RGB")
    except (OSError, Image.DecompressionBombError) as error:
        raise SaveRouterError(f"picture {Path(path).name!r} cannot be read ({error}); replace or drop it") from error


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
