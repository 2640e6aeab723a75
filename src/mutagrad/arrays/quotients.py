"""Whole quotients and remainders of many numbers, by division in double: NumPy goes one by one, and calls fmod.

Of float32 quotients below 2**24 the one in double rounds to the right integer, and its product with the divisor is
exact; that of integers does where they are below 2**53. Where one may be larger, or is not finite, NumPy computes them
all. (Compiled loops do the same: see expressions.py.)
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
    """The operands and quotients in double, these rounded; None if they are not known to be right."""
    if isinstance(a, Symbol) or isinstance(b, Symbol) or a.dtype.char != "f" or b.dtype.char != "f":
        return None
    if max(a.size, b.size) < MANY or not is_plain(a, b) or np.isinf(b).any():
        return None
    a, b = a.astype(np.float64), b.astype(np.float64)
    quotients = np.divide(a, b)
    rounding(quotients, out=quotients)
    return (a, b, quotients) if -2.0**24 < quotients.min() <= quotients.max() < 2.0**24 else None


def _whole_of_integers(a: Array, b: Array, rounding: Any) -> Any:
    """The same of integers, as integers of their type. (NumPy divides by a single one as quickly.)"""
    if isinstance(a, Symbol) or isinstance(b, Symbol) or a.dtype is not b.dtype or a.dtype.kind not in "iu":
        return None
    if not b.ndim:
        return None
    if max(a.size, b.size) < MANY or not is_plain(a, b) or not (_are_exact(a) and _are_exact(b)):
        return None
    quotients = np.divide(a, b)
    return rounding(quotients, out=quotients).astype(a.dtype)


def _are_exact(a: Array) -> bool:
    """Whether integers are numbers of double precision, and have quotients of their own type."""
    limits = np.iinfo(a.dtype)
    least, most = (limits.min, limits.max) if limits.bits < 32 else (a.min(), a.max())
    return bool(least > -2**53 and most < 2**53 and (limits.bits < 32 or least > limits.min or not least))


def _rest(a: Array, b: Array, quotients: Array) -> Any:
    quotients *= b  # type: ignore[misc]
    return np.subtract(a, quotients, out=quotients).astype(np.float32)


_SIGN = np.int32(-1 << 31)


def floor_divide(a: Array, b: Array) -> Any:
    """Do as np.floor_divide."""
    if (quotients := _whole_of_integers(a, b, np.floor)) is not None:
        return quotients
    found = _whole(a, b, np.floor)
    return np.floor_divide(a, b) if found is None else found[2].astype(np.float32)


def trunc_divide(a: Array, b: Array) -> Any:
    """Do the same with integers, rounded towards zero."""
    if (quotients := _whole_of_integers(a, b, np.trunc)) is not None:
        return quotients
    found = np.floor_divide(a, b)
    return np.where((found < 0) & (found * b != a), found + 1, found)


def remainder(a: Array, b: Array) -> Any:
    """Do as np.remainder; where all divisors are positive, so is a remainder of zero."""
    if (quotients := _whole_of_integers(a, b, np.floor)) is not None:
        return a - quotients * b
    found = _whole(a, b, np.floor)
    return np.remainder(a, b) if found is None or not b.min() > 0 else _rest(*found)


def fmod(a: Array, b: Array) -> Any:
    """Do as np.fmod: the rest has the sign of the dividend."""
    if (quotients := _whole_of_integers(a, b, np.trunc)) is not None:
        return a - quotients * b
    known = _whole(a, b, np.trunc)
    if known is None:
        return np.fmod(a, b)
    found = _rest(*known)
    bits = found.view(np.int32)
    bits |= a.view(np.int32) & _SIGN  # it has that of the dividend, unless it is zero
    return found
