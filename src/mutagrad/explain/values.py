"""What can be told of an array in a few numbers, whatever kind it is of: its norm, its zeros, what is not finite."""
from __future__ import annotations

from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.bfloat16 import widened
from ..arrays.kinds import all_values
from ..arrays.numpy import fp_error, silently

SMALL = 32  # elements up to which values are shown


class Facts(NamedTuple):
    """Of all elements of one or several arrays: the norm, how many there are, how many are zero, nan or infinite."""

    norm: float
    size: int
    zeros: int
    nans: int
    infinite: int


def on_host(value: Any) -> Any:
    """Return a tensor or array as one of NumPy's, of all slices where there are any; None where values are not known.

    (A step that is being compiled has none.) Short floats come in a type that NumPy computes in.
    """
    array = getattr(value, "_array", value)
    found = all_values(array)
    return widened(found) if found.size or not array.size else None


def facts_of(value: Any) -> Facts | None:
    """Return the facts of a tensor or array, or of the arrays in a dict; None where values are not known."""
    arrays = [on_host(part) for part in (value.values() if isinstance(value, dict) else [value]) if part is not None]
    if any(array is None or array.dtype.kind not in "fciub" for array in arrays):
        return None
    before = fp_error.raised[:]  # a sweep asks whether its own arithmetic was undefined somewhere
    try:
        return silently(_facts, arrays)  # type: ignore[no-any-return]
    finally:
        fp_error.raised[:] = before


def _facts(arrays: list[Any]) -> Facts:
    squares, size, zeros, nans, infinite = 0.0, 0, 0, 0, 0
    for array in arrays:
        wide = np.abs(array).astype(np.float64).reshape(-1)
        squares += float(wide @ wide)
        size, zeros = size + wide.size, zeros + wide.size - int(np.count_nonzero(wide))
        if squares - squares != 0:  # it is not finite
            nans, infinite = nans + int(np.isnan(wide).sum()), infinite + int(np.isinf(wide).sum())
    return Facts(squares ** 0.5, size, zeros, nans, infinite)


def not_finite(value: Any) -> int:
    """Return how many elements of a tensor are nan or infinite; 0 where values are not known."""
    array = value._array
    if array.dtype.kind not in "fcV" or (array := on_host(array)) is None:
        return 0
    return int(array.size - np.count_nonzero(np.isfinite(array)))


def small_copy(value: Any) -> Any:
    """Return the values of a small tensor or array as nested lists; None of a larger one, or an unknown one."""
    array = getattr(value, "_array", value)
    if getattr(array, "size", SMALL + 1) > SMALL:
        return None
    array = on_host(array)
    return None if array is None or array.size > SMALL or array.dtype.kind not in "fciub" else array.tolist()
