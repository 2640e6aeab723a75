"""Samples of ops/select/searching.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, P, R, elsewhere, op

NUMBERS = np.array([[3, 1, 2, 3, 3], [1, 1, 2, 3, 0]])
ROWS = np.array([[1, 2], [0, 5], [1, 2], [1, 2], [0, 5]])

op("msort", R(5, 7), ref=lambda x: np.sort(x, 0), ties=True)

# -------------------------------------------------------------------------------------------------------- distinct values


def unique(x: Array, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """With the inverse in the shape of the input: NumPy's has had several."""
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    found = [values] + [inverse.reshape(x.shape if dim is None else -1)] * return_inverse + [counts] * return_counts
    return found[0] if len(found) == 1 else tuple(found)


def runs(x: Array, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    rows = x.reshape(-1, 1) if dim is None else np.moveaxis(x, dim, 0)
    new = np.array([not i or bool((rows[i] != rows[i - 1]).any()) for i in range(len(rows))])
    number = np.cumsum(new) - 1
    values = x.reshape(-1)[new] if dim is None else np.compress(new, x, dim)
    found = [values] + [number.reshape(x.shape if dim is None else -1)] * return_inverse + [np.bincount(number)] * return_counts
    return found[0] if len(found) == 1 else tuple(found)


for name, ref in (("unique", unique), ("unique_consecutive", runs)):
    op(name, NUMBERS, ref=ref, grad=False)
    op(name, NUMBERS, return_inverse=True, return_counts=True, ref=ref, grad=False)
    op(name, ROWS, return_inverse=True, return_counts=True, dim=0, ref=ref, grad=False)
    op(name, np.array(3), return_inverse=True, ref=ref, grad=False)
op("unique", ROWS, dim=1, ref=unique, grad=False)
op("isin", NUMBERS, np.array([1, 3]), ref=np.isin, grad=False)
op("isin", NUMBERS, np.array([1, 3]), invert=True, ref=np.isin, grad=False)
op("isin", NUMBERS, 2, ref=np.isin, grad=False)

# --------------------------------------------------------------------------------------------- places in sorted sequences

SORTED = np.array([-1.0, -0.5, 0.0, 0.0, 1.5])


def searchsorted(sequence: Array, values: Any, right: bool = False, side: str = "left", out_int32: bool = False, sorter: Any = None) -> Array:
    side = "right" if right else side
    sequence = sequence if sorter is None else np.take_along_axis(sequence, sorter, -1)
    if sequence.ndim == 1:
        return np.searchsorted(sequence, values, side).astype(np.int32 if out_int32 else np.int64)
    return np.stack([searchsorted(s, v, side=side) for s, v in zip(sequence, values)])


PLACES = np.array([[0.0, 2.0, -3.0], [-0.5, 0.1, 1.5]])
op("searchsorted", SORTED, PLACES, ref=searchsorted, grad=False)
op("searchsorted", SORTED, PLACES, right=True, out_int32=True, ref=searchsorted, grad=False)
op("searchsorted", np.stack([SORTED, SORTED + 1]), PLACES, side="right", ref=searchsorted, grad=False)
op("searchsorted", SORTED[[4, 0, 2, 1, 3]], PLACES, sorter=np.array([1, 3, 2, 4, 0]), ref=searchsorted, grad=False)
op("searchsorted", SORTED, 0.0, ref=searchsorted, grad=False)
op("bucketize", PLACES, SORTED, ref=lambda x, b: np.searchsorted(b, x), grad=False)
op("bucketize", PLACES, SORTED, right=True, ref=lambda x, b, right: np.searchsorted(b, x, "right"), grad=False)

# -------------------------------------------------------------------------------------------------------------- histograms

op("histc", R(5, 7), bins=4, min=-1, max=1, ref=lambda x, bins, min, max: np.histogram(x, bins, (min, max))[0].astype(x.dtype), grad=False)
op("histc", R(5, 7), 5, ref=lambda x, bins: np.histogram(x, bins)[0].astype(x.dtype), grad=False)


def histogram(x: Array, bins: Any, range: Any = None, weight: Any = None, density: bool = False) -> Any:
    counted, edges = np.histogram(x, bins, range, density, weight)
    return counted.astype(x.dtype), edges.astype(x.dtype)


op("histogram", R(5, 7), 4, ref=histogram, grad=False)
op("histogram", R(5, 7), 4, range=(-1.0, 1.0), density=True, ref=histogram, grad=False)
elsewhere("histogramdd")  # tests/ops/test_statistics.py: its results are nested
op("bincount", np.array([3, 1, 3, 0]), ref=np.bincount, grad=False)
op("bincount", np.array([3, 1, 3, 0]), P(4), 6, ref=lambda x, w, n: np.bincount(x, w, n).astype(w.dtype))

# --------------------------------------------------------------------------------------------------------------- positions


def nonzero_static(x: Array, size: int, fill_value: int = -1) -> Array:
    rows = np.full((size, x.ndim), fill_value)
    found = np.argwhere(x)[:size]
    rows[:len(found)] = found
    return rows


op("nonzero_static", NUMBERS - 1, size=12, ref=nonzero_static, grad=False)
op("nonzero_static", NUMBERS - 1, size=2, fill_value=9, ref=nonzero_static, grad=False)
op("unravel_index", np.array([[0, 5], [7, 11]]), (2, 3, 2), ref=np.unravel_index, grad=False)
op("unravel_index", np.array(5), 7, ref=np.unravel_index, grad=False)

# ------------------------------------------------------------------------------------------------------------ index_reduce

REDUCE = {"prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Array:
    moved, given = np.moveaxis(x, dim, 0).copy(), np.moveaxis(source, dim, 0)
    for i in np.unique(index):
        met = [moved[i]] * include_self + [given[k] for k in range(len(index)) if index[k] == i]
        moved[i] = REDUCE[reduce](np.stack(met), 0)
    return np.moveaxis(moved, 0, dim)


for how in REDUCE:
    op("index_reduce", P(5, 7), 0, np.array([3, 1, 3]), P(3, 7), how, ref=index_reduce, ties=True)
op("index_reduce", P(5, 7), 1, np.array([3, 1, 3]), P(5, 3), "mean", include_self=False, ref=index_reduce, ties=True)
