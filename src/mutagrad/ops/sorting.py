"""Sorting: positions are found on the values, then the values are gathered, so the gradient goes where they came from."""
from __future__ import annotations

from typing import Any

from ..backends import np
from ..construct import make
from ..errors import BadValue
from .reduce import Extremes
from .selecting import gather
from .shape import clone, whole_dim


def _order(x: Any, dim: int, descending: bool) -> Any:
    """Stable in both directions: a descending sort is an ascending sort of the mirror image."""
    a = x._array
    if not descending:
        return np.argsort(a, dim, kind="stable")
    return a.shape[dim] - 1 - np.flip(np.argsort(np.flip(a, dim), dim, kind="stable"), dim)


def sort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Extremes:
    """Values in order along a dimension, and where each came from.

    >>> import mutagrad as mg
    >>> mg.tensor([3., 1., 2.]).sort().indices
    tensor([1, 2, 0])
    """
    if not input._array.ndim:
        return Extremes(clone(input), make(np.zeros((), np.int64)))
    dim = whole_dim(dim, input._array.ndim, "sort")
    indices = make(_order(input, dim, descending))
    return Extremes(gather(input, dim, indices), indices)


def argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """Where the values in order are."""
    if not input._array.ndim:
        return make(np.zeros((), np.int64))
    return make(_order(input, whole_dim(dim, input._array.ndim, "argsort"), descending))


def topk(input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Extremes:
    """The k largest (or smallest) along a dimension, in order."""
    n = input._array.shape[whole_dim(dim, input._array.ndim, "topk")] if input._array.ndim else 1
    if not 0 <= k <= n:
        raise BadValue(f"topk: k={k} is out of range for a dimension of size {n}", fix=f"k from 0 to {n}")
    if not input._array.ndim:
        return sort(input)
    dim = whole_dim(dim, input._array.ndim, "topk")
    indices = make(np.take(_order(input, dim, largest), np.arange(k), dim))
    return Extremes(gather(input, dim, indices), indices)
