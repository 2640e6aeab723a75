"""Floats of two bytes: float16, and bfloat16, which is float32 without the last 16 bits of its fraction.

But for plain arithmetic they are computed in float32 and rounded once, as PyTorch does: in float16 2048 + 1 is 2048 and
300 * 300 infinite, and a result of several steps would be rounded several times. NumPy does not have bfloat16. Its
arrays come from ml_dtypes, which is looked for when first used; their kind is "V" where that of other floats is "f",
and NumPy's functions of them mix badly with Python's numbers (bfloat16 times 2.5 is float32).
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..base.errors import MissingExtra
from .compiled.casts import convert
from .numpy import np, silent

SHORT = "eE"  # the characters of their array types


@cache
def bfloat16_type() -> Any:
    """Return the array type, or raise an error that says how to get it."""
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise MissingExtra("bfloat16: needs ml_dtypes, which is not installed", why="NumPy has no such type",
                           fix="pip install 'mutagrad[bfloat16]'") from None


def widened(value: Any) -> Any:
    """Return a short array in float32; anything else as it is."""
    short = isinstance(value, (np.ndarray, np.generic)) and value.dtype.char in SHORT
    if not short:
        return value
    found = convert(value, np.dtype(np.float32))
    return value.astype(np.float32) if found is None else found


def rounded(value: Any, dtype: Any) -> Any:
    """Return a float32 array in a short type; anything else as it is."""
    single = isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float32
    if not single:
        return value
    found = convert(value, dtype)
    return silent().run(value.astype, dtype) if found is None else found


def in_single(forward: Any, dtype: Any) -> Callable[..., Any]:
    """Return `forward` for arrays of a short type: computed in float32 and rounded."""
    def single(*arguments: Any) -> Any:
        return rounded(forward(*map(widened, arguments)), dtype)

    single.of = forward  # type: ignore[attr-defined]
    return single
