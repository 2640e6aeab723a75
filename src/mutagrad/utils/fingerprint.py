"""Fingerprints of arrays: few numbers that tell whether values have changed by more than rounding.

Each block of an array is weighed with fixed random numbers, so that neither a changed element nor two that were
exchanged leave the sum as it was. What is computed again may be rounded otherwise (threads may share a sum in another
way), so fingerprints are compared with a tolerance of some roundings, far below what a gradient would notice.
"""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..arrays.kinds import all_values, remembered
from ..arrays.numpy import silently
from ..base.operands import Array

BLOCK = 1024
_WEIGHTS = np.random.Generator(np.random.PCG64(0)).standard_normal(BLOCK)
_BY_TYPE = {np.dtype(kind): _WEIGHTS.astype(kind) for kind in ("float32", "float64")}
_ROUNDINGS = 16 * BLOCK ** 0.5  # how many roundings of the largest element the sum of a block may be off by


def fingerprint(array: Array, most: int | None = None) -> Array:
    """Return the weighed sums of its blocks; of an array with more than `most` elements, of so many picked evenly."""
    flat = _numbers(_picked(array, most))
    weights = _BY_TYPE[flat.dtype]
    whole = flat.size // BLOCK * BLOCK
    rest = flat[whole:]
    sums = silently(np.matmul, flat[:whole].reshape(-1, BLOCK), weights)  # of infinities without meaning: equal or not
    return np.append(sums, silently(np.matmul, rest, weights[:rest.size])) if rest.size or not whole else sums


def unchanged(before: Array, array: Array, most: int | None = None) -> bool:
    """Return whether an array still has this fingerprint."""
    now = fingerprint(array, most)
    if before.shape != now.shape or before.dtype != now.dtype:
        return False
    if np.array_equal(before, now, equal_nan=True):
        return True
    return bool(silently(_nearly, before, now, _numbers(_picked(array, most))))


def _nearly(before: Array, now: Array, values: Array) -> Any:
    """Whether sums differ by rounding alone."""
    scale = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    off = np.abs(before - now)
    return ((off <= _ROUNDINGS * np.finfo(now.dtype).eps * scale) | (np.isnan(before) & np.isnan(now))).all()


def _picked(array: Array, most: int | None) -> Array:
    array = np.asarray(all_values(array))
    if most is None or array.size <= most:
        return array.reshape(-1)
    places = _evenly(array.size, most)
    return array.reshape(-1)[places] if array.flags.c_contiguous else array[np.unravel_index(places, array.shape)]


@remembered(256)
def _evenly(size: int, count: int) -> Array:
    return np.linspace(0, size - 1, count).astype(np.int64)


def _numbers(flat: Array) -> Array:
    """Elements of any type as floats of a type that is summed as it is."""
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return flat if flat.dtype in _BY_TYPE else flat.astype(np.float32 if flat.dtype.kind in "fV" else np.float64)
