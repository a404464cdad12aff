"""CLIP vectors, with a tiny randomly initialised model of the real one's interface."""

import numpy as np
import pytest
from PIL import Image

import saverouter as sr
from saverouter.encoders import clip
from saverouter.encoders.clip import clip_vectors


def test_clip_without_weights_says_what_to_do(tmp_path):
    for folder in (tmp_path / "nothing", tmp_path):
        with pytest.raises(sr.SaveRouterError, match="no CLIP .* weights .*make data .* SAVEROUTER_CLIP"):
            clip_vectors(["a"], ["a.png"], weights=folder)


def pictures(folder, count):
    paths = [folder / f"{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        pixels = np.random.default_rng(number).integers(0, 255, (40, 50, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return paths


def test_clip_joins_text_and_image_at_equal_weight(tiny_clip, own_cache):
    paths = pictures(tiny_clip, 3)
    vectors = clip_vectors(["a chart", "a chart", "a word " * 200], paths, weights=tiny_clip)
    assert vectors.shape == (3, 1024) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :512], axis=1), np.sqrt(0.5), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(vectors[0, :512], vectors[1, :512], atol=1e-5)  # same text
    assert np.abs(vectors[0, 512:] - vectors[1, 512:]).max() > 1e-3  # other image
    (tiny_clip / "bad.png").write_bytes(b"not an image")
    with pytest.raises(sr.SaveRouterError, match="bad.png' cannot be read .* replace or drop it"):
        clip_vectors(["a"], [tiny_clip / "bad.png"], weights=tiny_clip)


def test_openvino_gives_the_vectors_of_transformers(tiny_clip, own_cache, monkeypatch):
    """Of other numbers of pairs, and of other lengths, than the graph was made with."""
    paths, prompts, found = pictures(tiny_clip, 5), ["a chart", "b", "c d e", "zzz " * 100, "a"], {}
    for name in ("openvino", "torch"):
        monkeypatch.setenv("SAVEROUTER_ENCODER", name)
        found[name] = clip_vectors(prompts, paths, weights=tiny_clip)
    np.testing.assert_allclose(found["openvino"], found["torch"], atol=1e-5)
    assert {path.parent.name for path in own_cache.rglob("*.npy")} >= {"openvino-fp32", "torch-fp32"}


def test_missing_pictures_are_named(tiny_clip, own_cache):
    with pytest.raises(sr.SaveRouterError, match="gone.png' cannot be read"):
        clip_vectors(["a"], [tiny_clip / "gone.png"], weights=tiny_clip)


def test_a_pair_is_encoded_once_and_in_batches(tiny_clip, own_cache, monkeypatch):
    paths, asked = pictures(tiny_clip, 5), []
    whole = clip_vectors([f"word {n}" for n in range(5)], paths, weights=tiny_clip)
    real = clip._encode
    monkeypatch.setattr(clip, "_encode", lambda folder, pairs: asked.extend(pairs) or real(folder, pairs))
    again = clip_vectors(["word 3", "other words", "word 0"], [paths[3], paths[0], paths[0]], weights=tiny_clip)
    assert [prompt for prompt, _ in asked] == ["other words"]
    np.testing.assert_array_equal(again[[0, 2]], whole[[3, 0]])
    monkeypatch.setattr(clip, "BATCH", 2)
    monkeypatch.setattr(clip, "SHARD", 3)
    monkeypatch.setenv("SAVEROUTER_CACHE", str(own_cache / "another"))
    np.testing.assert_allclose(
        clip_vectors([f"word {n}" for n in range(5)], paths, weights=tiny_clip), whole, atol=1e-6
    )


def test_an_interruption_keeps_what_was_encoded(tiny_clip, own_cache, monkeypatch):
    paths, real, asked = pictures(tiny_clip, 5), clip._encode, []

    def failing(folder, pairs):
        if asked:
            raise KeyboardInterrupt
        asked.extend(pairs)
        return real(folder, pairs)

    monkeypatch.setattr(clip, "SHARD", 2)
    monkeypatch.setattr(clip, "_encode", failing)
    with pytest.raises(KeyboardInterrupt):
        clip_vectors(["a b"] * 5, paths, weights=tiny_clip)
    monkeypatch.setattr(clip, "_encode", lambda folder, pairs: asked.extend(pairs) or real(folder, pairs))
    clip_vectors(["a b"] * 5, paths, weights=tiny_clip)
    assert len(asked) == 5 == len({path for _, path in asked})


def test_a_picture_is_read_again_only_where_it_changed(tiny_clip, own_cache, monkeypatch):
    paths, opened, real = pictures(tiny_clip, 3), [], open

    def watched(path, *rest):
        opened.append(path)
        return real(path, *rest)

    first = clip_vectors(["a b"] * 3, paths, weights=tiny_clip)
    monkeypatch.setattr("saverouter.files.open", watched, raising=False)
    np.testing.assert_array_equal(clip_vectors(["a b"] * 3, paths, weights=tiny_clip), first)
    assert opened == []  # neither pictures nor weights
    Image.fromarray(np.zeros((30, 30, 3), np.uint8)).save(paths[1])
    again = clip_vectors(["a b"] * 3, paths, weights=tiny_clip)
    assert opened == [str(paths[1])]
    np.testing.assert_array_equal(again[[0, 2]], first[[0, 2]])
    assert np.abs(again[1] - first[1]).max() > 1e-3
