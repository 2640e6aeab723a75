"""NumPy, set up for this library.

PyTorch computes inf and nan without a word, and so does this, whatever the host program has told NumPy to do about them
and without changing that. `silent().run(f, *arguments)` calls f so; entering a copy of a context costs a fifth of
setting the error state and setting it back, and no interrupt can leave it behind. (`silently` is the same where one
more call does not matter.) What calls the user's own code must not hide the user's context from it, and sets the state
instead:

    before = fp_state()
    try:
        set_fp_state(SILENT)
        ...
    finally:
        set_fp_state(before)

All three are C functions, and the state is read before the `try`: a signal handler that raises right after one of them
finds nothing to undo yet, or the `finally` that undoes it.

Either way `fp_error.raised` is no longer empty once something was divided by zero or undefined: the processor notices
that for free, and a sweep asks for it.
"""
from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from functools import wraps
from math import inf
from threading import local
from types import ModuleType
from typing import Any

from ..base.operands import Array
from .openblas_env import numpy

# NumPy's functions under their names, in a module of its own: kinds.py exchanges some of them once there are other
# kinds of array. Untyped on purpose: what an array is to a type checker is in base/operands.py.
np: Any = ModuleType("numpy")
np.__dict__.update(vars(numpy))

__all__ = ["KNOWN", "SILENT", "choose", "clip", "constant", "fp_error", "fp_state", "np", "set_fp_state", "silenced",
           "silent", "silently"]


class _FPError(local):
    """Of one thread: `raised`, which is not empty after something was divided by zero or undefined."""

    def __init__(self) -> None:
        self.raised: list[bool] = []

    def flag(self, *_: Any) -> None:
        self.raised[:] = (True,)


fp_error = _FPError()

# Elements of which NumPy's loops make a piece where operands are cast or repeated. It copies a repeated operand, and
# those beside it, into such pieces, unless they are shorter than a row: with its own 8192, a matrix and a column of
# factors takes twice as long. Shorter ones than this cost casts and narrow rows more than that saves.
PIECE = 1024

# NumPy keeps its error state in a context variable: the one that this sets in an empty context.
_silent = Context()
_silent.run(np.seterr, divide="call", invalid="call", over="ignore", under="ignore")
_silent.run(np.seterrcall, fp_error.flag)
_silent.run(np.setbufsize, PIECE)
((_variable, SILENT),) = _silent.items()
fp_state: Callable[[], Any] = _variable.get
set_fp_state: Callable[[Any], Any] = _variable.set
silent: Callable[[], Any] = _silent.copy


def silently(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call `function(*arguments, **settings)` without floating point warnings or errors."""
    return silent().run(function, *arguments, **settings)


def silenced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, computing so: for one that no operation is declared with and that calls no user code."""
    @wraps(function)
    def run(*arguments: Any) -> Any:
        return silent().run(function, *arguments)

    return run


# Python numbers as 0-d arrays, remembered: NumPy takes twice as long over a Python number as over an array. By the size
# of the float type, then by value; never zero, because -0.0 == 0.0.
KNOWN: dict[int, dict[float, Array]] = {2: {}, 4: {}, 8: {}}


def constant(value: bool | int | float | complex, dtype: Any) -> Array:
    """Return a number as a read-only 0-d array; one beyond an integer type's range wraps around, as in PyTorch."""
    try:
        made: Array = silent().run(
            np.array, value if dtype.kind != "V" else float(value), dtype)  # type: ignore[arg-type]
    except OverflowError:
        if not -2**63 <= value < 2**64:  # type: ignore[operator]
            raise
        made = np.array(value % 2**64, np.uint64).astype(dtype)  # type: ignore[operator]
    made.flags.writeable = False
    if value and dtype.kind == "f":
        known = KNOWN[dtype.itemsize]
        if len(known) > 4096:
            known.clear()
        known[value] = made  # type: ignore[index]
    return made


clip: Any = np._core.umath.clip  # np.clip without the half of its time that it takes to get there
_BITS = {"f": np.dtype(np.int32), "d": np.dtype(np.int64)}


def choose(mask: Array, x: Array | float, y: Array | float) -> Any:
    """Compute `np.where(mask, x, y)`, for many floats by their bits.

    A branch for each element takes ten times as long where the mask is random.
    """
    larger = x if isinstance(x, np.ndarray) and x.ndim else y
    if (not isinstance(larger, np.ndarray) or larger.size < 4096 or larger.dtype.char not in _BITS
            or mask.shape != larger.shape or mask.dtype.kind != "b"):
        return np.where(mask, x, y)
    dtype = larger.dtype
    x, y = (np.array(v, dtype) if isinstance(v, (int, float)) else v for v in (x, y))
    if any(v.dtype is not dtype or v.ndim and v.shape != mask.shape for v in (x, y)):
        return np.where(mask, x, y)
    kind, out = _BITS[dtype.char], np.empty_like(mask if mask.flags.c_contiguous else larger, dtype)
    chosen = out.view(kind)
    a, b = x.view(kind), y.view(kind)
    if not a.ndim and not a:
        mask, a, b = ~mask, b, a
    np.negative(mask, out=chosen, dtype=kind)  # all ones, or all zeros, whatever byte stands for True
    if not b.ndim and not b:
        np.bitwise_and(chosen, a, out=chosen)
    else:
        np.bitwise_and(chosen, a ^ b, out=chosen)
        np.bitwise_xor(chosen, b, out=chosen)
    return out


def at_least(a: Any, low: float) -> Any:
    """Compute `np.maximum(a, low)` for a number; of many floats by `np.clip`, which is several times faster."""
    if isinstance(a, np.ndarray) and a.size >= 4096 and a.dtype.char in _BITS:
        return np.clip(a, low, inf)
    return np.maximum(a, low)


def at_most(a: Any, high: float) -> Any:
    """Compute `np.minimum(a, high)` for a number, in the same way."""
    if isinstance(a, np.ndarray) and a.size >= 4096 and a.dtype.char in _BITS:
        return np.clip(a, -inf, high)
    return np.minimum(a, high)


def without_nan(a: Any, nan: float | None, above: float | None, below: float | None) -> Any:
    """Compute `np.nan_to_num`, of many floats without its branch for each element."""
    if above is below is None and isinstance(a, np.ndarray) and a.size >= 4096 and a.dtype.char in _BITS:
        limits = np.finfo(a.dtype)
        return choose(a == a, np.clip(a, limits.min, limits.max), nan or 0.0)
    return np.nan_to_num(a, nan=0.0 if nan is None else nan, posinf=above, neginf=below)
