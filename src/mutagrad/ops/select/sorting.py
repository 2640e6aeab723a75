"""Sorting: positions are found on the values, which are then gathered, so the gradient goes where they came from."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...arrays.bfloat16 import widened
from ...arrays.kinds import is_plain
from ...arrays.places import first_of
from ...arrays.slices import in_slices
from ...base import return_types
from ...base.errors import BadArgument, BadValue, DTypeError, OutOfMemory, may_need_much
from ...base.operands import Array
from ...core.evidence import cut
from ...core.factory import make
from ...core.number import whole_number
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.shape import clone, tensor_argument, whole_dim
from .selecting import gather


def order(array: Array, dim: int, descending: bool = False) -> Any:
    """Return the positions that sort an array: stable both ways, as a descending sort is a mirrored ascending one."""
    array = widened(array)  # NumPy does not know which bfloat16 is nan
    try:
        if not descending:
            return in_slices(lambda part: np.argsort(part, dim, kind="stable"), array, (dim,))
        return array.shape[dim] - 1 - np.flip(order(np.flip(array, dim), dim), dim)
    except MemoryError as error:
        raise OutOfMemory.found_by("sort", error) from None


def place_in_order(rows: Array, k: int) -> Any:
    """Return `order(rows, -1)[:, k:k + 1]` for a matrix, by setting the k smallest of each row apart."""
    rows = widened(rows)
    if not is_plain(rows) or rows.shape[1] < 64:
        return order(rows, -1)[:, k:k + 1]
    try:
        return in_slices(lambda part: _place_apart(part, k), rows, (1,))
    except MemoryError as error:
        raise OutOfMemory.found_by("sort", error) from None


def _place_apart(rows: Array, k: int) -> Any:
    value = np.partition(rows, k, -1)[:, k:k + 1]
    if (value != value).any():  # it is no more than itself, nor equal to it
        return np.argsort(rows, -1, kind="stable")[:, k:k + 1]
    equal = rows == value
    earlier = k - np.count_nonzero(rows < value, -1, keepdims=True)  # equal ones that come before, in a stable order
    if earlier.any():
        equal &= np.cumsum(equal, -1) == earlier + 1
    return np.argmax(equal, -1, keepdims=True)


def _direction(name: str, **settings: Any) -> bool:
    """Whether to sort downwards; every sort is stable, so that `stable` need only be a truth value."""
    for what, value in settings.items():
        if value.__class__ is not bool and value is not None:
            raise BadArgument(f"{name}: {what} must be True or False, not {type(value).__name__}", why=f"got {value!r}",
                              fix=f"{what}=True")
    return bool(settings["descending"])


def _sortable(x: Tensor, name: str) -> Tensor:
    if tensor_argument(x, name)._array.dtype.kind == "c":
        raise DTypeError(f"{name}: complex numbers have no order", fix="x.abs() or x.real")
    cut(name, x)
    return x


@may_need_much
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = False, *,
         axis: int | None = None, out: Sequence[Tensor] | None = None) -> Any:
    """Sort the values along a dimension, and say where each came from; equal ones keep their order.

    >>> import mutagrad as mg
    >>> mg.tensor([3., 1., 2.]).sort().indices
    tensor([1, 2, 0])
    """
    descending = _direction("sort", descending=descending, stable=stable)
    dim = whole_dim(dim if axis is None else axis, _sortable(input, "sort")._array.ndim, "sort")
    if input._array.ndim:
        indices = make(order(input._array, dim, descending))
        found = return_types.sort(gather(input, dim, indices), indices)
    else:
        found = return_types.sort(clone(input), make(np.zeros((), np.int64)))
    return write_out("sort", found, out)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool | None = False, *,
            axis: int | None = None) -> Any:
    """Return where the values in order are.

    >>> import mutagrad as mg
    >>> mg.argsort(mg.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    descending = _direction("argsort", descending=descending, stable=stable)
    dim = whole_dim(dim if axis is None else axis, _sortable(input, "argsort")._array.ndim, "argsort")
    return make(order(input._array, dim, descending) if input._array.ndim else np.zeros((), np.int64))


def _order_of_first(array: Array, k: int, dim: int, largest: bool) -> Any:
    """The first k of `order`. Few of many are first set apart, which takes a fraction of the time of sorting all."""
    n = array.shape[dim]
    if dim == array.ndim - 1 and (found := first_of(widened(array), k, largest)) is not None:
        return found
    if k > n // 4 or n < 64:
        return np.take(order(array, dim, largest), np.arange(k), dim)
    array = widened(array)
    apart = np.argpartition(array, n - k if largest else k - 1, dim) if k else np.zeros_like(array, np.int64)
    first = np.take(apart, np.arange(n - k, n) if largest else np.arange(k), dim)
    found = np.sort(first, dim)  # equal ones in their order
    return np.take_along_axis(found, order(np.take_along_axis(array, found, dim), dim, largest), dim)


@may_need_much
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, axis: int | None = None,
         out: Sequence[Tensor] | None = None) -> Any:
    """Return the k largest (or smallest) along a dimension, in order.

    >>> import mutagrad as mg
    >>> values, indices = mg.topk(mg.tensor([3., 1., 2.]), 2)
    >>> values, indices
    (tensor([3., 2.]), tensor([0, 2]))
    """
    array = _sortable(input, "topk")._array
    dim, k = whole_dim(dim if axis is None else axis, array.ndim, "topk"), whole_number(k, "topk", "k")
    n = array.shape[dim] if array.ndim else 1
    if not 0 <= k <= n:
        raise BadValue(f"topk: selected index k out of range: {k} for a dimension of size {n}", fix=f"k from 0 to {n}")
    if not array.ndim:
        return write_out("topk", return_types.topk(sort(input)), out)
    indices = make(_order_of_first(array, k, dim, largest))
    return write_out("topk", return_types.topk(gather(input, dim, indices), indices), out)
