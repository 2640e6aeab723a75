"""Switches of libraries that are not used here, under PyTorch's names: `backends.cudnn.benchmark = True`."""
from importlib import import_module as _import_module
from typing import Any as _Any

_SWITCHES = frozenset(["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"])


def __getattr__(name: str) -> _Any:
    """Load a group of switches when it is first asked for."""
    if name in _SWITCHES:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
