"""`nn.modules.utils`: one number for every dimension, or one for each."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number n times, and leaves several as they are."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * n


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)
