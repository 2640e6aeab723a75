"""Numbers that say what is in an array, of whatever type and size."""
from __future__ import annotations

from math import nan, prod, sqrt
from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.kinds import all_values

BLOCK = 1 << 20


class Statistics(NamedTuple):
    """Of how many elements; of those that are finite, the range, mean and standard deviation; and shares of some.

    Of complex numbers, range, mean and deviation are those of the magnitudes.
    """

    size: int
    smallest: float
    largest: float
    mean: float
    std: float
    zeros: float
    nans: int
    infs: int


def statistics(array: Any) -> Statistics:
    """Return them, computed a block at a time, in double precision."""
    once, times = _without_repeats(all_values(array))
    flat = once.reshape(-1)
    total, parts = flat.size, [_block(flat[i:i + BLOCK]) for i in range(0, flat.size, BLOCK)]
    finite = sum(part[0] for part in parts)
    mean = sum(part[0] * part[1] for part in parts if part[0]) / finite if finite else nan
    squares = sum(part[2] + part[0] * (part[1] - mean) * (part[1] - mean) for part in parts if part[0])
    degrees = finite * times - 1
    return Statistics(
        total * times, min((part[3] for part in parts if part[0]), default=nan),
        max((part[4] for part in parts if part[0]), default=nan), mean,
        sqrt(squares * times / degrees) if finite and degrees > 0 else nan,
        sum(part[5] for part in parts) / total if total else 0.0,
        sum(part[6] for part in parts) * times, sum(part[7] for part in parts) * times)


def _without_repeats(array: Any) -> tuple[Any, int]:
    """Return an array without dimensions that repeat the same memory, as `expand` makes them, and how often they do."""
    once = array[tuple(slice(1 if stride == 0 else None) for stride in array.strides)]
    return once, prod(array.shape) // max(prod(once.shape), 1)


def _block(values: Any) -> tuple[Any, ...]:
    """Return count, mean, sum of squares, smallest and largest of the finite ones; how many are 0, nan and infinite."""
    zeros, nans, infs = 0, 0, 0
    with np.errstate(all="ignore"):
        if values.dtype.kind in "fcV":
            isnan = np.isnan(values)
            isinf = np.isinf(values)
            nans, infs = int(isnan.sum()), int(isinf.sum())
            values = values[~(isnan | isinf)] if nans + infs else values
        zeros = int((values == 0).sum())
        wide = (np.abs(values) if values.dtype.kind == "c" else values).astype(np.float64)
        if not wide.size:
            return 0, 0.0, 0.0, 0.0, 0.0, zeros, nans, infs
        mean = float(wide.mean())
        squares = float(np.square(wide - mean).sum())
        return wide.size, mean, squares, float(wide.min()), float(wide.max()), zeros, nans, infs
