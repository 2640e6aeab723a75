"""Functions that treat slices of an array each by itself, such as transforms and sorts along a dimension."""
from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..base.operands import Array
from . import parallel as large
from .kinds import is_plain
from .numpy import np

MANY = 1 << 16  # elements from which threads are worth it for work that is more than a pass over memory
FEW = 8  # slices that cannot be shared out evenly


def in_slices(function: Callable[[Array], Any], array: Array, dims: Collection[int]) -> Any:
    """Return `function(array)`, on several threads, if it works along `dims` alone.

    The first slice is computed twice: it tells the shape and type of the result.
    """
    dims = {d % array.ndim for d in dims}
    free = next((d for d, n in enumerate(array.shape) if d not in dims and n >= FEW), None)
    if free is None or array.size < MANY or not is_plain(array):
        return function(array)
    before, n = (slice(None),) * free, array.shape[free]
    first = function(array[before + (slice(1),)])
    out = np.empty((*first.shape[:free], n, *first.shape[free + 1:]), first.dtype)

    def work(part: slice) -> None:
        out[before + (part,)] = function(array[before + (part,)])

    large.in_steps(n, max(large.BLOCK * n // array.size, 1), work)
    return out
