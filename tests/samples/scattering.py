"""Samples of copies in which one window holds other values."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, R, op


def written(window: Any) -> Any:
    """A reference: a copy, with src written to `window(copy, ...)`."""
    def reference(x: Array, src: Array, *arguments: Any, **settings: Any) -> Array:
        found = x.copy()
        window(found, *arguments, **settings)[...] = src
        return found

    return reference


def diagonal(x: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    found = np.diagonal(x, offset, dim1, dim2)
    found.flags.writeable = True
    return found


op("diagonal_scatter", R(5, 7), R(5), ref=written(diagonal))
op("diagonal_scatter", R(5, 7), R(3), -2, ref=written(diagonal))
op("diagonal_scatter", R(2, 3, 4), R(3, 2), offset=1, dim1=0, dim2=2, ref=written(diagonal))
op("select_scatter", R(5, 7), R(5), 1, 3, ref=written(lambda x, dim, i: x[:, i]))
op("select_scatter", R(5, 7), R(7), dim=0, index=-1, ref=written(lambda x, dim, index: x[index]))
op("slice_scatter", R(5, 7), R(2, 7), start=1, end=3, ref=written(lambda x, start, end: x[start:end]))
op("slice_scatter", R(5, 7), R(5, 3), 1, 1, 7, 2, ref=written(lambda x, dim, start, end, step: x[:, start:end:step]))
op("as_strided_scatter", R(5, 7), R(3, 4), (3, 4), (7, 2), 1,
   ref=written(lambda x, size, steps, at: np.lib.stride_tricks.as_strided(x.reshape(-1)[at:], size, [s * x.itemsize for s in steps])))
