"""What runs the encoders: OpenVINO where it is installed, else torch, which is the reference."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import ModuleType

from ..errors import SaveRouterError, one_of

ENCODERS, PRECISIONS = ("auto", "openvino", "torch"), ("fp32", "bf16")


def encoder_name() -> str:
    """What encodes and how exactly: "openvino-fp32", "openvino-bf16" or "torch-fp32".

    ``SAVEROUTER_ENCODER`` chooses ("auto" is OpenVINO where it is installed), and ``SAVEROUTER_PRECISION``.
    """
    kind = os.environ.get("SAVEROUTER_ENCODER") or "auto"
    precision = os.environ.get("SAVEROUTER_PRECISION") or "fp32"
    one_of("SAVEROUTER_ENCODER", kind, ENCODERS)
    one_of("SAVEROUTER_PRECISION", precision, PRECISIONS)
    if kind == "auto":
        kind = "torch" if openvino() is None else "openvino"
    if kind == "openvino" and openvino() is None:
        raise SaveRouterError("SAVEROUTER_ENCODER is 'openvino', which is not installed here; pip install openvino")
    if precision == "bf16" and (kind == "torch" or not openvino().can_bf16()):
        raise SaveRouterError(
            "SAVEROUTER_PRECISION is 'bf16', which needs OpenVINO and a processor that has it; leave it out for fp32"
        )
    return f"{kind}-{precision}"


@cache
def openvino() -> ModuleType | None:
    """The encoders' fast forms; None where there is no OpenVINO for this machine."""
    sys.modules.setdefault("openvino_telemetry", None)  # else OpenVINO reports every import to its maker
    try:
        return import_module("._openvino", __package__)
    except ImportError:
        return None


@contextmanager
def no_progress_bar() -> Iterator[None]:
    """transformers shows a bar for loading weights from disk, which would end up in notebooks."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
