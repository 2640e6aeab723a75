"""The derivatives of convolutions of each channel by itself, with NumPy alone.

As products of matrices these would have a single row or column, which NumPy multiplies element by element. `rows` are
results as sliding.py has them: positions of the flat image, or images.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.numpy import silently
from ...base.operands import Array
from .sliding import EVERY, Windows

ONCE = 1 << 15  # elements that a step is given: what goes from one to the next stays in the cache of its core
PIECE = 1 << 12  # elements that BLAS multiplies and adds in one go: more could be worth its threads to it


def is_depthwise(weight: Array, groups: int) -> bool:
    """Whether each channel has a kernel of its own, which makes one channel of the result."""
    return weight.shape[1] == 1 and weight.shape[0] == groups > 1


def _in_samples(w: Windows, channels: int, n: int, work: Callable[[slice], Any]) -> list[Any]:
    each = max(ONCE // max(channels * w.length, 1), 1)
    return large.in_steps(n, each, work, n * channels * w.length >= large.LARGE)


def _seen(image: Array, w: Windows) -> Any:
    return image.reshape(*image.shape[:2], -1) if w.flat else image


def _factors(weight: Array, w: Windows) -> list[Any]:
    shape = (-1, 1) if w.flat else (-1, *(1,) * len(w.out))
    return [column.reshape(shape) for column in np.ascontiguousarray(weight.reshape(len(weight), -1).T)]


def spread(rows: Array, weight: Array, w: Windows, image: Array) -> None:
    """Add to an image with its border what each window gives back: the transpose."""
    target, factors = _seen(image, w), _factors(weight, w)

    def work(part: slice) -> None:
        g, out = rows[part], target[part]
        scratch = np.empty(g.shape, g.dtype)
        for place, factor in zip(w.places, factors):
            np.multiply(g, factor, out=scratch)
            seen = out[EVERY + place]
            np.add(seen, scratch, out=seen)

    _in_samples(w, rows.shape[1], len(rows), work)


def by_weight(rows: Array, seen: Array) -> Any:
    """The gradient by the weights, as (channels, kernel elements): of what each of them sees, times the adjoint."""
    samples, channels, length = rows.shape
    wide = np.result_type(rows.dtype, np.float64)
    seen = seen.conj() if wide.kind == "c" else seen  # vecdot conjugates it
    total = np.zeros((channels, *seen.shape[2:-1]), wide)
    for start in range(0, length, PIECE):
        part = slice(start, start + PIECE)
        g = rows[..., part].reshape(samples, channels, *(1,) * (seen.ndim - 3), -1)
        total += np.add.reduce(silently(np.vecdot, seen[..., part], g), 0, wide)
    return total.astype(rows.dtype)
