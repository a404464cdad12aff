"""Reads a publisher's pickle without running what it says: pandas and numpy containers, and nothing else.

A pickle is a program. This reader knows a closed list of names; any other name ends the reading before anything is
called. Classes of pandas are handed out as empty subclasses made for one reading, so that not even their attributes
can be changed by a file.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pandas as pd
from numpy._core import multiarray, numeric
from pandas._libs import internals
from pandas.core.internals.managers import BlockManager, SingleBlockManager

from ...errors import SaveRouterError

_INDEXES = {"Index": pd.Index, "RangeIndex": pd.RangeIndex, "MultiIndex": pd.MultiIndex,
            # what pandas had until 2.0
            "Int64Index": pd.Index, "UInt64Index": pd.Index, "Float64Index": pd.Index, "NumericIndex": pd.Index}  # fmt: skip
_PLAIN = {"dict": dict, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "int": int, "float": float,
          "str": str, "bool": bool, "bytes": bytes, "bytearray": bytearray, "complex": complex, "slice": slice,
          "range": range}  # fmt: skip
_NUMPY = ("numpy.core", "numpy._core")
_PANDAS = ("pandas", "pandas.core.frame", "pandas.core.series", "pandas.core.internals.managers")


def read_pickle(path: Path) -> object:
    """The object in a file, built from containers of Python, numpy and pandas alone."""
    try:
        with path.open("rb") as file:
            found = _Reader(file).load()
    except SaveRouterError as error:
        raise SaveRouterError(f"{path.name} is not used: {error}") from error
    except Exception as error:  # a broken or a hostile file can fail in any way
        raise SaveRouterError(
            f"{path.name} cannot be read as a pickle ({type(error).__name__}: {error}); remove it and fetch it again"
        ) from error
    return pd.DataFrame(found) if isinstance(found, pd.DataFrame) else found


class _Reader(pickle.Unpickler):
    def __init__(self, file):
        super().__init__(file)
        kinds = {kind.__name__: kind for kind in (pd.DataFrame, pd.Series, BlockManager, SingleBlockManager)}
        self._own = {name: type(name, (kind,), {}) for name, kind in kinds.items()}
        self._indexes = {name: type(name, (), {}) for name in _INDEXES}  # tokens for ``_new_index``, never built
        self._real = {token: _INDEXES[name] for name, token in self._indexes.items()}

    def find_class(self, module: str, name: str):
        """What a name stands for, by table; the named module is never imported."""
        if module in ("builtins", "__builtin__") and name in _PLAIN:
            return _PLAIN[name]
        if module == "collections" and name == "OrderedDict":
            return type(name, (OrderedDict,), {})
        if module == "_codecs" and name == "encode":
            return lambda text, encoding="latin1": _latin1(text, encoding)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if module in [f"{root}.multiarray" for root in _NUMPY] and name in ("_reconstruct", "scalar"):
            return lambda *given: _empty_array(*given) if name == "_reconstruct" else multiarray.scalar(*given)
        if module in [f"{root}.numeric" for root in _NUMPY] and name == "_frombuffer":
            return lambda *given: numeric._frombuffer(*given)
        if (module == "pandas" or module.startswith("pandas.core.indexes.")) and name in self._indexes:
            return self._indexes[name]
        if module == "pandas.core.indexes.base" and name == "_new_Index":
            return lambda kind, parts: self._new_index(kind, parts)
        if module == "pandas._libs.internals" and name == "_unpickle_block":
            return lambda *given: internals._unpickle_block(*given)
        if module in _PANDAS and name in self._own:
            return self._own[name]
        raise SaveRouterError(
            f"it asks for {module}.{name}, and only containers of pandas and numpy are admitted; if its publisher "
            "really means that, convert it to CSV or Parquet elsewhere"
        )

    def persistent_load(self, identifier):
        raise SaveRouterError("it refers to something outside the file")

    def _new_index(self, kind, parts: dict):
        real = self._real.get(kind)
        if real is None or not isinstance(parts, dict):
            raise SaveRouterError("it holds an index of an unknown kind")
        parts = {name: value for name, value in parts.items() if name in ("data", "name", "names", "start", "stop", "step",
                                                                          "levels", "codes", "sortorder")}  # fmt: skip
        if isinstance(parts.get("data"), np.ndarray):
            parts["dtype"] = parts["data"].dtype  # else texts would be given the type of today's pandas
        return real(**parts)


def _empty_array(kind, shape, code):
    """How numpy begins an array. Memory is taken for content that is there, never for a size that the file claims."""
    if kind is not np.ndarray or tuple(shape) != (0,):
        raise SaveRouterError("it begins an array of an unusual kind")
    return multiarray._reconstruct(np.ndarray, (0,), code)


def _latin1(text: str, encoding: str) -> bytes:
    if not isinstance(text, str) or encoding != "latin1":
        raise SaveRouterError(f"it encodes something as {encoding!r}")
    return text.encode("latin1")
