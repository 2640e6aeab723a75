"""Utilities under PyTorch's names."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from . import _pytree

__all__ = ["_pytree", "benchmark", "checkpoint", "collect_env", "data", "deterministic", "dlpack", "flop_counter",
           "hooks", "tensorboard", "weak"]

_LATER = ("_foreach_utils", "_mode_utils", "_python_dispatch", "benchmark", "checkpoint", "collect_env", "data",
          "deterministic", "dlpack", "flop_counter", "hooks", "tensorboard", "weak")


def __getattr__(name: str) -> Any:
    """What is loaded when first named."""
    if name not in _LATER:
        raise AttributeError(f"module 'mutagrad.utils' has no attribute {name!r}")
    return import_module(f"mutagrad.utils.{name}")
