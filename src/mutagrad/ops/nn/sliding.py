"""Windows that slide over an image: how many there are, and where they lie in memory."""
from __future__ import annotations

from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.kinds import remembered
from ...arrays.parallel import assign
from ...base.operands import Array

Sizes = tuple[int, ...]
EVERY = slice(None), slice(None)  # all samples and channels


class Windows(NamedTuple):
    """Where the windows of a kernel lie in an image with its border."""

    kernel: Sizes
    out: Sizes  # how many windows there are along each dimension
    padding: Sizes
    padded: Sizes  # the sizes of the image with its border
    shifts: Sizes  # from one kernel element to the next, in elements of the image, for each dimension
    steps: Sizes  # from one window to the next
    places: tuple[tuple[slice, ...], ...]  # what each kernel element sees of the image; of the flat image, if `flat`
    flat: bool  # whether rows are taken as one piece
    length: int  # of a row of columns


@remembered(1024)
def windows(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes,
            in_rows: bool = True) -> Windows:
    reach = tuple((o - 1) * s + d * (k - 1) + 1 for o, s, d, k in zip(out, stride, dilation, kernel))
    padded = tuple(max(n + 2 * p, r) for n, p, r in zip(size, padding, reach))
    memory = tuple(prod(padded[i + 1:]) for i in range(len(padded)))
    length = sum((o - 1) * m for o, m in zip(out, memory)) + 1
    flat = in_rows and max(stride) == 1 and 0 not in out and length <= 2 * prod(out)
    offsets = product(*(range(0, k * d, d) for k, d in zip(kernel, dilation)))
    places: tuple[tuple[slice, ...], ...]
    if flat:
        starts = (sum(i * m for i, m in zip(at, memory)) for at in offsets)
        places = tuple((slice(start, start + length),) for start in starts)
    else:
        places = tuple(tuple(slice(i, i + (o - 1) * s + 1, s) if o else slice(0) for i, o, s in zip(at, out, stride))
                       for at in offsets)
    shifts = tuple(d * m for d, m in zip(dilation, memory))
    steps = tuple(s * m for s, m in zip(stride, memory))
    return Windows(kernel, out, padding, padded, shifts, steps, places, flat, length if flat else prod(out))


def out_sizes(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, s, p, d in zip(size, kernel, stride, padding, dilation))


def padded_image(a: Array, w: Windows, fill: float = 0) -> Any:
    """A contiguous image with its border."""
    if a.shape[2:] == w.padded:
        return np.ascontiguousarray(a)
    out = np.full((*a.shape[:2], *w.padded), fill, a.dtype)
    assign(out[_inside(w, a.shape[2:])], a)
    return out


def _inside(w: Windows, size: Sizes) -> tuple[Any, ...]:
    return EVERY + tuple(slice(p, p + n) for p, n in zip(w.padding, size))


def without_border(a: Any, w: Windows, size: Sizes) -> Any:
    return a if size == w.padded else a[_inside(w, size)]
