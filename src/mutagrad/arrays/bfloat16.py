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
from .allocator import keep_memory
from .compiled.moves import move
from .copies import copy_in_order
from .kinds import is_plain
from .numpy import clip, np, silent
from .parallel import LARGE, in_turn
from .sizes import PIECE

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
    return converted(value, np.dtype(np.float32)) if short else value


def rounded(value: Any, dtype: Any) -> Any:
    """Return a float32 array in a short type; anything else as it is."""
    single = isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.float32
    return converted(value, dtype) if single else value


WORTH = 1 << 14  # elements from which a compiled loop is worth the call
MANY = 1 << 12  # elements from which a few steps on all of them are faster than NumPy, which goes one by one


def converted(a: Any, dtype: Any) -> Any:
    """Return `a.astype(dtype)`, silently; between float16 and float32 faster than NumPy, which takes long over it."""
    kinds = a.dtype.char + dtype.char
    if a.size >= WORTH and a.dtype is not dtype and is_plain(a):
        keep_memory()
        out = np.empty(a.shape, dtype)
        if move(out, a):
            return out
    if kinds == "?E" or kinds in _BY_SINGLE and a.size >= MANY and is_plain(a):
        return converted(converted(a, np.dtype(np.float32)), dtype)
    if kinds not in ("ef", "fe") or a.size < MANY or not is_plain(a):
        return _shared(a, dtype) if a.size >= LARGE and is_plain(a) else silent().run(a.astype, dtype)
    convert = _half_to_single if kinds == "ef" else _single_to_half
    if a.size < PIECE:
        return silent().run(convert, a)
    out = np.empty(a.shape, dtype)
    source, target = np.ascontiguousarray(a).reshape(-1), out.reshape(-1)

    def work(part: slice) -> None:
        target[part] = convert(source[part])

    in_turn(a.size, 1, work)
    return out


# What has all values of the first is in between. (A bool goes that way, too: ml_dtypes takes any byte as a number.)
_BY_SINGLE = ("eE", "Ee", "ed", "Ed")


def _shared(a: Any, dtype: Any) -> Any:
    """The same on several threads, for what lies in order; what does not is first put in order."""
    keep_memory()
    source = a if a.flags.c_contiguous else copy_in_order(a)
    out = np.empty(a.shape, dtype)
    vector, target = source.reshape(-1), out.reshape(-1)

    def work(part: slice) -> None:
        target[part] = vector[part]

    in_turn(a.size, 1, work, True)
    return out


_REST = np.array(0x8FFFE000, np.uint32).view(np.int32)[()]  # the sign, and the bits of a half where float32 has them


def _half_to_single(a: Any) -> Any:
    """The bits are the same, but for an exponent that counts from elsewhere."""
    half = a.view(np.int16)
    if (half & 0x7FFF).max() >= 0x7C00:  # inf and nan have the largest exponent in either type
        return a.astype(np.float32)
    bits = half.astype(np.int32)
    bits <<= 13
    bits &= _REST
    found = bits.view(np.float32)
    found *= np.float32(2.0**112)
    return found


_EXPONENT, _LEAST, _LARGEST = 0xFF << 23, (127 - 14) << 23, 65520  # bits of float32, of 2**-14; what rounds to inf


def _single_to_half(a: Any) -> Any:
    """The sum with a number 2**13 times as large rounds as a half does: its last bits count steps of the half.

    They count on from one exponent to the next, as the bits of a half do, which has all below 2**-14 in steps alike.
    """
    size = np.abs(a)
    if not size.max() < _LARGEST:
        return a.astype(np.float16)
    power = size.view(np.int32) & _EXPONENT
    clip(power, _LEAST, _EXPONENT, power)
    power += 13 << 23
    size += power.view(np.float32)
    bits = size.view(np.int32)
    bits -= power
    power >>= 13
    bits += power
    bits -= (_LEAST + (13 << 23)) >> 13
    sign = a.view(np.int32) >> 16
    sign &= -0x8000
    bits |= sign
    return bits.astype(np.int16).view(np.float16)


# What computes short floats as they are, and gives a wider type, or None where it cannot; by the forward it stands for.
DIRECT: dict[Any, Callable[..., Any]] = {}


def in_single(forward: Any, dtype: Any) -> Callable[..., Any]:
    """Return `forward` for arrays of a short type: computed in float32 and rounded."""
    direct = DIRECT.get(forward)

    def single(*arguments: Any) -> Any:
        if direct is not None and (found := direct(*arguments)) is not None:
            return found.astype(dtype)
        return rounded(forward(*map(widened, arguments)), dtype)

    single.of = forward  # type: ignore[attr-defined]
    return single
