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
from functools import cache, wraps
from importlib import import_module
from threading import local
from types import ModuleType
from typing import Any

from ..base.operands import Array
from .openblas_env import numpy

# NumPy's functions under their names, in a module of its own: kinds.py exchanges some of them once there are other
# kinds of array. Untyped on purpose: what an array is to a type checker is in base/operands.py.
np: Any = ModuleType("numpy")
np.__dict__.update(vars(numpy))

__all__ = ["KNOWN", "SILENT", "add_at", "choose", "constant", "fp_error", "fp_state", "np", "set_fp_state", "silenced",
           "silent", "silently"]


class _FPError(local):
    """Of one thread: `raised`, which is not empty after something was divided by zero or undefined."""

    def __init__(self) -> None:
        self.raised: list[bool] = []

    def flag(self, *_: Any) -> None:
        self.raised[:] = (True,)


fp_error = _FPError()

# NumPy keeps its error state in a context variable: the one that this sets in an empty context.
_silent = Context()
_silent.run(np.seterr, divide="call", invalid="call", over="ignore", under="ignore")
_silent.run(np.seterrcall, fp_error.flag)
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
    kind, out = _BITS[dtype.char], np.empty(mask.shape, dtype)
    chosen = out.view(kind)
    np.negative(mask.view(np.int8), out=chosen)  # all ones, or all zeros
    a, b = x.view(kind), y.view(kind)
    if not b.ndim and not b:
        np.bitwise_and(chosen, a, out=chosen)
    else:
        np.bitwise_and(chosen, a ^ b, out=chosen)
        np.bitwise_xor(chosen, b, out=chosen)
    return out


MANY = 1 << 14  # elements from which adding is worth SciPy, which takes a tenth of a second to import


def add_at(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `array[index] += values` with every duplicate counted; `index` has an array or a full slice a dimension.

    NumPy is ten times as fast over positions in a vector as over several indices or over rows, so it is given those;
    SciPy adds rows ten times as fast again, and elements twice as fast. They read the values while they add; NumPy's
    own check for shared memory is none of theirs.
    """
    if np.may_share_memory(array, values):
        values = values.copy()
    if array.dtype.char in "eE" and values.size > 1:
        return _add_short(array, index, values)
    if array.flags.c_contiguous and array.ndim > 1 and (len(index) == array.ndim or values.size > 256):
        if values.size >= MANY and _picks_rows(index) and _add_rows(array, index[0], values):
            return
        places = _places(array.shape, index)
        values = np.broadcast_to(values, places.shape).reshape(-1)
        array, index = array.reshape(-1), (places.reshape(-1),)
    if (values.size < MANY or array.ndim > 1 or not array.flags.c_contiguous
            or not _add_elements(array, index[0], values)):
        np.add.at(array, index, values)


def _add_short(array: Array, index: tuple[Any, ...], values: Array) -> None:
    """Do `array[index] += values` for floats of two bytes: what goes to one place is added in double and rounded once.

    In float16 2048 + 1 is 2048, and in bfloat16 256 + 1 is 256: one after the other, a sum would stick.
    """
    places = _places(array.shape, index)
    unique, numbers = np.unique(places, return_inverse=True)
    total = np.bincount(numbers.reshape(-1), np.broadcast_to(values, places.shape).astype(np.float64).reshape(-1))
    at = np.unravel_index(unique, array.shape)
    array[at] = (array[at].astype(np.float64) + total).astype(array.dtype)


def _add_elements(array: Array, places: Array, values: Array) -> bool:
    """Do `array[places] += values` for a vector, as the product of a sparse column of the values with 1.

    Return False where that cannot be.
    """
    if array.dtype.char not in "fd" or values.dtype is not array.dtype or (add := _sparse_product()) is None:
        return False
    values = np.ascontiguousarray(np.broadcast_to(values, places.shape))
    add(array.size, 1, 1, np.array([0, places.size]), np.ascontiguousarray(places).reshape(-1), values.reshape(-1),
        np.ones(1, array.dtype), array)
    return True


def _picks_rows(index: tuple[Any, ...]) -> bool:
    return isinstance(index[0], np.ndarray) and not any(isinstance(part, np.ndarray) for part in index[1:])


def _places(shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """The positions in a vector of what `index` picks of an array of this shape."""
    arrays = [d for d, part in enumerate(index) if isinstance(part, np.ndarray)]
    picked = np.broadcast_shapes(*(index[d].shape for d in arrays)) if len(arrays) > 1 else index[arrays[0]].shape
    # Where NumPy puts the dimensions that were picked.
    lead = arrays[0] if arrays[-1] - arrays[0] + 1 == len(arrays) else 0
    ndim, axis = len(shape) - len(arrays) + len(picked), 0
    places: Any = 0
    for d, size in enumerate(shape):
        if d in arrays:
            after = ndim - lead - len(picked)
            part = index[d] if after == 0 else index[d].reshape(index[d].shape + (1,) * after)
        else:
            axis += len(picked) if axis == lead else 0
            part = np.arange(size).reshape((-1,) + (1,) * (ndim - 1 - axis))
            axis += 1
        places = places * size + part if d else part
    return places


def _add_rows(array: Array, rows: Array, values: Array) -> bool:
    """Do `array[rows] += values` by SciPy's product with a sparse matrix of ones.

    Return False, with nothing done, where that cannot be.
    """
    if array.dtype.char not in "fd" or values.dtype is not array.dtype or (add := _sparse_product()) is None:
        return False
    values = np.ascontiguousarray(np.broadcast_to(values, (*rows.shape, *array.shape[1:])))
    rows = np.ascontiguousarray(rows).reshape(-1)
    add(array.shape[0], rows.size, array[0].size, np.arange(rows.size + 1), rows, np.ones(rows.size, array.dtype),
        values.reshape(-1), array.reshape(-1))
    return True


@cache
def _sparse_product() -> Any:
    """SciPy's `y += matrix @ x` for a matrix in columns; None where there is none that works as expected.

    Its public product makes a whole new array instead of adding to ours.
    """
    try:
        found = import_module("scipy.sparse._sparsetools").csc_matvecs
        total = numpy.ones(2)
        found(2, 2, 1, np.arange(3), numpy.array([1, 1]), numpy.ones(2), numpy.array([2.0, 3.0]), total)
    except Exception:  # no SciPy, or one that keeps it elsewhere
        return None
    return found if total.tolist() == [1, 6] else None
