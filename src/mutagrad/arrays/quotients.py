"""Whole quotients and remainders of many float32 numbers, by division in double: NumPy calls fmod for each element.

Of quotients below 2**24 the one in double rounds to the right integer, and its product with the divisor is exact. Where
one may be larger, or is not finite, NumPy computes them all. (Compiled loops do the same: see expressions.py.)
"""
from __future__ import annotations

from typing import Any

from ..base.operands import Array
from .compiled import reductions
from .compiled.expressions import Symbol
from .kinds import anywhere, is_plain
from .numpy import np

MANY = 1024


def has_zero(b: Array) -> bool:
    """Return whether some divisor is zero."""
    if is_plain(b) and b.flags.c_contiguous and (found := reductions.whole("nonzero", b)) is not None:
        return bool(found[0] < b.size)
    return anywhere(b == 0)


def _whole(a: Array, b: Array, rounding: Any) -> Any:
    """The quotients in double, rounded; None if they are not known to be right."""
    if isinstance(a, Symbol) or isinstance(b, Symbol) or a.dtype.char != "f" or b.dtype.char != "f":
        return None
    if max(a.size, b.size) < MANY or not is_plain(a, b) or np.isinf(b).any():
        return None
    quotients = np.divide(a, b, dtype=np.float64)
    rounding(quotients, out=quotients)
    return quotients if -2.0**24 < quotients.min() <= quotients.max() < 2.0**24 else None


def _rest(a: Array, b: Array, quotients: Array) -> Any:
    quotients *= b  # type: ignore[misc]
    return np.subtract(a, quotients, out=quotients).astype(np.float32)


def floor_divide(a: Array, b: Array) -> Any:
    """Do as np.floor_divide."""
    quotients = _whole(a, b, np.floor)
    return np.floor_divide(a, b) if quotients is None else quotients.astype(np.float32)


def remainder(a: Array, b: Array) -> Any:
    """Do as np.remainder; where all divisors are positive, so is a remainder of zero."""
    quotients = _whole(a, b, np.floor)
    return np.remainder(a, b) if quotients is None or not b.min() > 0 else _rest(a, b, quotients)


def fmod(a: Array, b: Array) -> Any:
    """Do as np.fmod: the rest has the sign of the dividend."""
    quotients = _whole(a, b, np.trunc)
    if quotients is None:
        return np.fmod(a, b)
    found = _rest(a, b, quotients)
    return np.copysign(found, a, out=found)
