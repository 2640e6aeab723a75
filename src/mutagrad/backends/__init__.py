"""The only place that names an array library: `np` is the array namespace that everything else is written against.

The modules under PyTorch's names (`backends.cudnn.benchmark = True`) hold switches of libraries that are not used here.
"""
from importlib import import_module as _import_module
from typing import Any as _Any

from .host import np

__all__ = ["np"]

_SWITCHES = frozenset(["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"])


def __getattr__(name: str) -> _Any:
    """Switches are loaded when first asked for."""
    if name in _SWITCHES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
