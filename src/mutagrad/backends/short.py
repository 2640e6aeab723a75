"""bfloat16, which NumPy does not have: float32 without the last 16 bits of its fraction.

Its arrays come from ml_dtypes, which is looked for when first used. Their kind is "V" where that of other floats is "f", and
NumPy's functions of them mix badly with Python's numbers (bfloat16 times 2.5 is float32), so but for plain arithmetic they are
computed in float32 and rounded once, as PyTorch does.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import MissingExtra
from .host import np


@cache
def bfloat16_type() -> Any:
    """The array type, or an error that says how to get it."""
    try:
        return np.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise MissingExtra("bfloat16: needs ml_dtypes, which is not installed", why="NumPy has no such type",
                           fix="pip install 'mutagrad[bfloat16]'") from None


def widened(value: Any) -> Any:
    """A bfloat16 array in float32; anything else as it is."""
    return value.astype(np.float32) if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "V" else value


def rounded(value: Any) -> Any:
    """A float32 array in bfloat16; anything else as it is."""
    return value.astype(bfloat16_type()) if isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float32 else value


def in_single(forward: Any) -> Callable[..., Any]:
    """`forward` for bfloat16 arrays: computed in float32 and rounded."""
    return lambda *arguments: rounded(forward(*map(widened, arguments)))
