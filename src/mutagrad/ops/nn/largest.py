"""The largest element in each window of an image, and where it lies: one dimension after the other."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere, is_plain
from ...base.operands import Array
from ...core.op import RAW
from . import planes
from .sliding import EVERY, Windows, padded_image


def largest(a: Array, w: Windows) -> tuple[Any, Any]:
    """The largest in each window, and which kernel element it lies under: the first of several, the last nan.

    One dimension after the other, the last one first: fewer and longer steps than over all kernel elements.
    """
    if (found := planes.largest(a, w)) is not None:
        return found
    lowest = -np.inf if a.dtype.kind in "fV" else np.iinfo(a.dtype).min
    image = best = padded_image(a, w, lowest)
    where = np.zeros((1,) * a.ndim, np.uint8 if len(w.places) <= 256 else np.int32)
    number = 1
    for d in reversed(range(a.ndim - 2)):
        if not _leaves(w, d):
            best, where = _largest_along(best, where, w, d, number)
            number *= w.kernel[d]
    if best is image:
        best, where = image.copy(), np.broadcast_to(where, image.shape).copy()
    if a.dtype.kind in "fV" and anywhere(np.isnan(best)):
        for k, place in enumerate(w.places):
            where[np.isnan(image[EVERY + place])] = k
    if w.padded != a.shape[2:] and anywhere(nothing := best == lowest):  # the border is not to be picked
        real = padded_image(np.ones((1, 1, *a.shape[2:]), bool), w, False)
        for k, place in reversed(list(enumerate(w.places))):
            where[nothing & real[EVERY + place]] = k
    return best, where


RAW.largest_in_windows = largest


def _leaves(w: Windows, d: int) -> bool:
    """Whether windows leave a dimension as it is."""
    return w.kernel[d] == 1 and w.out[d] == w.padded[d]


def _places_along(w: Windows, d: int) -> list[Any]:
    """What each kernel element along one dimension sees, while others before it may have been done."""
    shift, step = w.shifts[d] // prod(w.padded[d + 1:]), w.steps[d] // prod(w.padded[d + 1:])
    span = step * (w.out[d] - 1) + 1
    return [(slice(None),) * (d + 2) + (slice(k * shift, k * shift + span, step),) for k in range(w.kernel[d])]


def largest_alone(a: Array, w: Windows) -> Any:
    """The largest in each window, along the first dimension first: of rows NumPy is quicker than of neighbours."""
    if (found := planes.largest_alone(a, w)) is not None:
        return found
    best = padded_image(a, w, -np.inf if a.dtype.kind in "fV" else np.iinfo(a.dtype).min)
    for d in range(a.ndim - 2):
        if not _leaves(w, d):
            first, *others = (best[place] for place in _places_along(w, d))
            best = np.maximum(first, others[0]) if others else first
            for part in others[1:]:
                np.maximum(best, part, out=best)
    return best.copy() if best.base is not None or best is a else best


def _largest_along(values: Array, where: Array, w: Windows, d: int, number: int) -> tuple[Any, Any]:
    """The same along one dimension; `number` is what a step along it adds to the number of a kernel element."""
    places = _places_along(w, d)
    best = values[places[0]].copy()
    known = where.shape == values.shape
    at = where[places[0]].copy() if known else np.zeros(best.shape, where.dtype)
    for k, place in enumerate(places[1:], 1):
        part = values[place].copy()  # two steps on what is contiguous take less time than one on what is not
        better = part > best
        np.maximum(part, best, out=best)
        found = where.dtype.type(k * number)
        # Later ones have larger numbers; a mask takes ten times as long.
        np.maximum(at, (where[place] + found if known else found) * better, out=at)
    return best, at


def largest_between_alone(a: Array, positions: Sequence[Array]) -> Any:
    """The largest of windows by what they hold along each dimension."""
    for d, at in enumerate(positions):
        best = a.take(at[:, 0], d + 2)
        for k in range(1, at.shape[1]):
            np.maximum(best, a.take(at[:, k], d + 2), out=best)
        a = best
    return a


def largest_between(a: Array, positions: Sequence[Array]) -> Any | None:
    """Where in flat images the first of the largest of these lies; None where there are nans: the last is the largest.

    The last dimension first, or the first of several would be another.
    """
    if (found := planes.largest_between(a, positions)) is not None:
        return found
    if not is_plain(a) or a.dtype.kind == "f" and np.isnan(np.maximum.reduce(a, None)):
        return None
    best, where, inner = a, None, 1
    for d in reversed(range(len(positions))):
        values, at = best, positions[d]
        best = values.take(at[:, 0], d + 2)
        number = np.zeros(best.shape, np.min_scalar_type(at.shape[1]))
        for k in range(1, at.shape[1]):
            part = values.take(at[:, k], d + 2)
            np.maximum(number, (part > best) * number.dtype.type(k), out=number)
            np.maximum(best, part, out=best)
        beside = np.arange(len(at)).reshape(-1, *(1,) * (len(positions) - 1 - d))
        picked = at[beside, number]
        where = picked if where is None else np.take_along_axis(where, picked, d + 2) + picked * inner
        inner *= a.shape[d + 2]
    return where
