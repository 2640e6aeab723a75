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
from .compiled.compiler import choice
from .compiled.moves import move
from .copies import copy_in_order
from .halves import narrow, widen
from .kinds import is_plain, raw
from .numpy import np, silent
from .parallel import LARGE, every, in_turn, look_up
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


CONVERT = {"ef": widen, "fe": narrow}
SMALL_PIECE = 1 << 15  # elements of which all that lies between fits the cache of a core
WORTH = 1 << 14  # elements from which a compiled loop is worth the call
MANY = 1 << 12  # elements from which a few steps on all of them are faster than NumPy, which goes one by one


def converted(a: Any, dtype: Any) -> Any:
    """Return `a.astype(dtype)`, silently; between float16 and float32 faster than NumPy, which takes long over it."""
    kinds = a.dtype.char + dtype.char
    if a.size >= WORTH and a.dtype is not dtype and is_plain(a):
        keep_memory()
        out = raw.empty(a.shape, dtype)
        if move(out, a):
            return out
    if kinds in ("eE", "Ee") and a.size >= LARGE and is_plain(a) and not choice.on:  # else both steps are loops
        out = raw.empty(a.shape, dtype)
        look_up(_between(a.dtype, dtype), a, out)
        return out
    if kinds == "?E" or kinds in _BY_SINGLE and a.size >= MANY and is_plain(a):
        return converted(converted(a, np.dtype(np.float32)), dtype)
    if kinds not in CONVERT or a.size < MANY or not is_plain(a):
        return _shared(a, dtype) if a.size >= LARGE and is_plain(a) else silent().run(a.astype, dtype)
    out = raw.empty(a.shape, dtype)
    source, target, convert = np.ascontiguousarray(a).reshape(-1), out.reshape(-1), CONVERT[kinds]
    in_turn(a.size, PIECE // SMALL_PIECE, lambda part: convert(source[part], target[part]))
    return out


@cache
def _between(source: Any, dtype: Any) -> Any:
    """What each float of one short type is in the other, by their bits."""
    return converted(converted(every(source), np.dtype(np.float32)), dtype).view(np.uint16)


# What has all values of the first is in between. (A bool goes that way, too: ml_dtypes takes any byte as a number.)
_BY_SINGLE = ("eE", "Ee", "ed", "Ed")


def _shared(a: Any, dtype: Any) -> Any:
    """The same on several threads, for what lies in order; what does not is first put in order."""
    keep_memory()
    source = a if a.flags.c_contiguous else copy_in_order(a)
    out = raw.empty(a.shape, dtype)
    vector, target = source.reshape(-1), out.reshape(-1)

    def work(part: slice) -> None:
        target[part] = vector[part]

    in_turn(a.size, 1, work, True)
    return out


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
