"""Arrays of one shape as rows of elements, for loops over what does not lie in memory as one vector.

Dimensions that lie in all arrays as if they were one are counted as one. What is left is a row of elements, and at most
two dimensions of such rows; where it is more, no loop is made.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from ctypes import c_void_p
from functools import lru_cache
from typing import Any, NamedTuple

import numpy

from ...base.operands import Array

SHORT = 16  # elements of a row below which each costs as much as the row's beginning
STEPS = 2, 3, 4  # elements apart that vectors are made of with little waste


class Rows(NamedTuple):
    """How many rows there are, how many of them in one step of the outer dimension, and how many elements in each.

    `strides` are those of each array in bytes: of the two dimensions of rows, and of a row. `kinds` say what its row
    is: "row" of neighbours, "each" for one element that stands for all, "2" for every second and so on, "far".
    """

    number: int
    cut: int
    n: int
    strides: tuple[tuple[int, int, int], ...]
    kinds: tuple[str, ...]


def rows_of(shape: tuple[int, ...], arrays: Sequence[Array]) -> Rows | None:
    """Return how loops go over arrays that broadcast to this shape; their order in memory is that of the last array."""
    return _rows_of(shape, *[(a.shape, a.strides, a.itemsize) for a in arrays])


@lru_cache(1024)
def _rows_of(shape: tuple[int, ...], *about: tuple[tuple[int, ...], tuple[int, ...], int]) -> Rows | None:
    ndim = len(shape)
    strides = [[0] * (ndim - len(sizes)) + [0 if n == 1 else s for n, s in zip(sizes, given)]
               for sizes, given, _ in about]
    order = sorted((d for d in range(ndim) if shape[d] != 1), key=lambda d: abs(strides[-1][d]))  # the innermost first
    sizes: list[int] = []
    steps: list[list[int]] = []
    for d in order:
        here = [s[d] for s in strides]
        if sizes and here == [s * sizes[-1] for s in steps[-1]]:
            sizes[-1] *= shape[d]
        else:
            sizes.append(shape[d])
            steps.append(here)
    if not sizes or len(sizes) > 3:
        return None
    _longer_rows(sizes, steps, [item for _, _, item in about])
    missing = 3 - len(sizes)
    n, cut, outer = [*sizes, *[1] * missing]
    inner, middle, far = [*steps, *[[0] * len(about)] * missing]
    kinds = [_kind(s, item) for s, (_, _, item) in zip(inner, about)]
    return Rows(cut * outer, cut, n, tuple(zip(far, middle, inner)), tuple(kinds))


def _longer_rows(sizes: list[int], steps: list[list[int]], items: list[int]) -> None:
    """Have rows go along another dimension where they are short, as of pairs, and that is a way that vectors go."""
    for d in range(1, len(sizes) if sizes[0] < SHORT else 0):
        if sizes[d] > SHORT and all(_kind(s, item) != "far" for s, item in zip(steps[d], items)):
            sizes[0], sizes[d] = sizes[d], sizes[0]
            steps[0], steps[d] = steps[d], steps[0]
            return


def _kind(stride: int, item: int) -> str:
    if stride in (0, item):
        return "row" if stride else "each"
    return str(stride // item) if stride in [item * step for step in STEPS] else "far"


def _asked(array: Any) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _read(array: Any) -> int:
    return _Pointer.from_address(id(array) + _HEAD).value or 0


# In the memory of an array the address of its elements comes first, after what all objects have: part of NumPy's binary
# interface. To read it takes a quarter of the time of asking.
_Pointer, _HEAD = c_void_p, object.__basicsize__
_sample = numpy.zeros(1)
address = _read if sys.implementation.name == "cpython" and _read(_sample) == _asked(_sample) else _asked
