"""A fitted router as a folder: what it learnt, and nothing of what it learnt from. Arrays and JSON, no pickle.

``router.json`` says what the router is, for people too, and names the file of arrays by its content. A router says what it
learnt in ``_state`` and takes it back in ``_restore``; the rest is here.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ...encoders import encoder_name
from ...errors import SaveRouterError, one_of, whole
from ...files import atomic_path, remove
from ...judging import Certificate, Policy, certificate_from, policy_from

FORMAT, VERSION = "saverouter router", 1
MAIN = "router.json"
PLAIN = (str, int, float, bool, type(None))


class State(Mapping):
    """What a saved router learnt, handed out by name only where it is of the shape and kind that is expected."""

    def __init__(self, values: dict, place: str):
        self._values, self.place = values, place

    def __getitem__(self, name: str):
        if name not in self._values:
            self.refuse(f"lacks {name!r}")
        return self._values[name]

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def refuse(self, what: str) -> NoReturn:
        """Say what is wrong with it."""
        raise SaveRouterError(f"the saved router in {self.place} {what}; save it again from the fitted router")

    def array(self, name: str, *shape: int | None, missing: bool = False) -> np.ndarray:
        """Finite numbers of that shape, None standing for any length; NaN is allowed where some may be ``missing``."""
        value = self[name]
        expected = " x ".join("any" if size is None else str(size) for size in shape)
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.ndim != len(shape):
            self.refuse(f"has a {name!r} that is no array of {expected} numbers")
        if any(size not in (None, found) for size, found in zip(shape, value.shape, strict=True)):
            self.refuse(f"has a {name!r} of {' x '.join(map(str, value.shape))} numbers; expected {expected}")
        if not (np.isfinite(value) | (np.isnan(value) & missing)).all():
            self.refuse(f"has a {name!r} with a number that is not finite")
        return value

    def texts(self, name: str, size: int | None = None) -> list[str]:
        """A list of texts, of that length."""
        value = self[name]
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            self.refuse(f"has a {name!r} that is no list of texts")
        if size not in (None, len(value)):
            self.refuse(f"has a {name!r} of {len(value)} texts; expected {size}")
        return value

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number."""
        return whole(f"{name} of the saved router in {self.place}", self[name], least)

    def word(self, name: str, known: Iterable[str]) -> str:
        """One of the known words."""
        one_of(f"{name} of the saved router in {self.place}", self[name], known)
        return self[name]

    def number(self, name: str) -> float | None:
        """A number, or None."""
        value = self[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            self.refuse(f"has a {name!r} of {value!r:.40}; expected a number")
        return value


def save_router(router, folder: str | Path, policy: Policy | None, certificate: Certificate | None) -> Path:
    """``Router.save``."""
    router._refuse_unfitted()
    state = _split(router._state())
    arrays = save(state.pop("arrays"))
    digest = hashlib.sha256(arrays).hexdigest()
    content = {
        "router": type(router).__name__, "models": list(router.models_), "options": _options(router),
        "own_vectors": router.own_vectors_, "costs": _costs(router), "holds": router.holds,
        "policy": policy and policy.to_dict(), "certificate": certificate and certificate.to_dict(),
        "provenance": _provenance(router), "arrays": digest, **state,
    }  # fmt: skip
    text = json.dumps({"format": FORMAT, "version": VERSION, "sha256": _digest(content), **content}, indent=1)
    folder = _own(folder)
    with atomic_path(folder / _arrays(digest)) as path:
        path.write_bytes(arrays)
    # From here on the folder holds the new router; until here, the one it held before.
    with atomic_path(folder / MAIN) as path:
        path.write_text(text, encoding="utf-8")
    for path in folder.glob("arrays-*.safetensors"):
        if path.name != _arrays(digest):
            remove(path)
    return folder


def restored(folder: str | Path, make: Callable):
    """``load_router``; ``make(name of its class, **options)`` gives a router that was not fitted."""
    folder = Path(folder)
    content = _read_main(folder)
    state = State(_joined(content, _read_arrays(folder, content["arrays"])), folder.name)
    router = make(content["router"], **content["options"])
    router._refuse_options()
    router.models_ = tuple(state.texts("models"))
    router.own_vectors_ = state.whole("own_vectors")
    if not router.models_ or len(set(router.models_)) < len(router.models_):
        state.refuse("has no pool, or one with the same model twice")
    router._restore(state)
    router.policy_ = content["policy"] and policy_from(content["policy"])
    router.certificate_ = content["certificate"] and certificate_from(content["certificate"])
    for policy in (router.policy_, router.certificate_ and router.certificate_.policy):
        if policy is not None:
            policy.refuse_pool(router.models_)
    router.provenance_ = content["provenance"]
    return router


def _options(router) -> dict:
    options = {}
    for name, value in router.get_params().items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, PLAIN) or (isinstance(value, float) and not math.isfinite(value)):
            raise SaveRouterError(
                f"option {name!r} of {type(router).__name__} is {value!r:.60}, which JSON cannot hold; give a word or a number"
            )
        options[name] = value
    return options


def _costs(router) -> dict[str, float] | None:
    """Mean cost per model, for who reads the file."""
    means = getattr(router, "model_cost_", getattr(router, "mean_cost_", None))
    return None if means is None else dict(zip(router.models_, map(float, means), strict=True))


def _provenance(router) -> dict:
    """What made it, when, and how many queries taught it; a router that was loaded before remembers that number."""
    known = getattr(router, "train_queries_", None)
    queries = (router.provenance_ or {}).get("training queries") if known is None else len(known)
    return {
        "saverouter": import_module(__name__.partition(".")[0]).__version__,
        "encoder": None if router.own_vectors_ else encoder_name(),
        "training queries": queries,
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _split(state: dict) -> dict:
    """Arrays; values that JSON holds; and lists of texts, which stand among the arrays as the bytes of their JSON."""
    arrays, values, texts = {}, {}, []
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            # safetensors writes an array of another order wrongly, and does not say so.
            arrays[name] = np.ascontiguousarray(value)
        elif isinstance(value, list):
            arrays[name] = np.frombuffer(json.dumps(value).encode(), np.uint8)
            texts.append(name)
        else:
            values[name] = value
    return {"arrays": arrays, "values": values, "texts": texts}


def _joined(content: dict, arrays: dict[str, np.ndarray]) -> dict:
    found = {"models": content["models"], "own_vectors": content["own_vectors"], **content["values"]}
    for name, value in arrays.items():
        # A copy lies in memory as arrays usually do, and can be written to.
        found[name] = _texts(value) if name in content["texts"] else value.copy()
    return found


def _texts(value: np.ndarray) -> object:
    with suppress(ValueError):
        return json.loads(value.tobytes())
    return None  # refused when it is asked for


def _own(folder: str | Path) -> Path:
    """The folder, made where it does not exist; one with other things in it is refused."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise SaveRouterError(f"{folder.name} is a file; name a folder for the router")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MAIN).is_file():
        left = [path for path in folder.iterdir() if not re.fullmatch(r"\.?(arrays|router)-.*", path.name)]
        if left:  # else an interrupted save
            raise SaveRouterError(
                f"{folder.name}/ holds other files, e.g. {left[0].name}; name a new folder for the router"
            )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _arrays(digest: str) -> str:
    return f"arrays-{digest[:16]}.safetensors"


def _digest(content: dict) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


KINDS = {
    "router": str, "models": list, "options": dict, "own_vectors": int, "arrays": str, "values": dict, "texts": list,
    "policy": (dict, type(None)), "certificate": (dict, type(None)), "provenance": dict,
}  # fmt: skip


def _read_main(folder: Path) -> dict:
    place = f"{folder.name}/{MAIN}"
    try:
        found = json.loads((folder / MAIN).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise SaveRouterError(
            f"no saved router in {folder.name}/: it has no {MAIN}; name the folder that router.save(folder) was given"
        ) from None
    except (ValueError, RecursionError):  # neither JSON nor text
        raise SaveRouterError(f"{place} is damaged: it is no JSON; save the router again") from None
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise SaveRouterError(f"{place} is no saved router; name the folder that router.save(folder) was given")
    version = found.pop("version", None)
    if type(version) is int and version > VERSION:
        raise SaveRouterError(
            f"{place} was written by a newer saverouter (format {version}; this one reads {VERSION}); update saverouter"
        )
    if version != VERSION or found.pop("sha256", None) != _digest(found):
        raise SaveRouterError(f"{place} is damaged, or was changed after it was saved; save the router again")
    for name, kind in KINDS.items():
        if not isinstance(found.get(name), kind):
            raise SaveRouterError(f"{place} has no {name!r} of the kind expected; save the router again")
    return found


def _read_arrays(folder: Path, digest: str) -> dict[str, np.ndarray]:
    if not re.fullmatch("[0-9a-f]{64}", digest):  # a name is made from it
        raise SaveRouterError(f"{folder.name}/{MAIN} names no file of arrays; save the router again")
    place = f"{folder.name}/{_arrays(digest)}"
    try:
        content = (folder / _arrays(digest)).read_bytes()
    except FileNotFoundError:
        raise SaveRouterError(f"{place} is missing; copy the whole folder, or save the router again") from None
    if hashlib.sha256(content).hexdigest() != digest:  # a flipped bit would be read without an error
        raise SaveRouterError(f"{place} is damaged or cut short; copy it again, or save the router again")
    try:
        return load(content)
    except SafetensorError as error:
        raise SaveRouterError(f"{place} holds no arrays ({error}); save the router again") from None
