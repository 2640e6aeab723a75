"""Sums, norms and softmax of sparse tensors: over all elements, or over some dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..base.errors import NotSupported
from ..core import dtypes
from ..core.factory import make
from ..ops.create.create import zeros
from ..ops.reduce import reductions as dense, softmax as dense_softmax
from ..ops.select.selecting import index_add, index_select
from ..ops.shape.shape import whole_dim, whole_dims
from ..tensors.tensor import Tensor
from .compressed import Compressed
from .convert import in_layout_of
from .coordinates import Coordinates, _distinct, coordinates, everywhere
from .shapes import unsqueeze
from .table import answers, refused
from .tensor import SparseTensor, index_of

Dims = int | Sequence[int] | None
ElementType = dtypes.dtype


@answers("sum")
def sum(input: Any, dim: Dims = None, keepdim: bool = False, *, dtype: ElementType | None = None) -> Any:
    """Return the sum of all elements, or over some dimensions: sparse again, unless no sparse dimension is left.

    >>> import mutagrad as mg
    >>> mg.sparse.sum(mg.eye(2).to_sparse(), 0).to_dense()
    tensor([1., 1.])
    """
    if not isinstance(input, SparseTensor):
        return dense.sum(input, dim, keepdim, dtype=dtype)
    dims = tuple(range(input.dim())) if dim is None or dim == () else tuple(whole_dims(dim, input.dim(), "sum"))
    if len(dims) == input.dim() and not keepdim:
        return dense.sum(input._numbers, dtype=dtype)
    if dtype is None and input.dtype.category < dtypes.FLOAT:
        dtype = dtypes.int64
    found = _over(coordinates(input), set(dims), dtype)
    for d in sorted(dims) if keepdim else ():
        found = unsqueeze(found, d) if isinstance(found, SparseTensor) else found.unsqueeze(d)
    if keepdim and isinstance(input, Compressed):
        return in_layout_of(found if isinstance(found, Coordinates) else everywhere(found), input)
    return found


def _over(x: Coordinates, gone: set[int], dtype: ElementType | None) -> Any:
    first = x.sparse_dim()
    values = x._numbers if dtype is None else x._numbers.to(dtype)
    inner = [d - first + 1 for d in gone if d >= first]
    values = dense.sum(values, inner) if inner else values
    rows = [d for d in range(first) if d not in gone]
    size = [n for d, n in enumerate(x.shape) if d not in gone]
    if not rows:
        return dense.sum(values, 0)
    coalesced = x._coalesced and len(rows) == first
    return Coordinates.of(index_of(x._places._array[rows]), values, size, coalesced).coalesce()


@answers("norm")
def norm(input: Any, p: Any = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None,
         ord: Any = None) -> Any:
    """Return the norm of all elements."""
    wanted = ord if ord is not None else 2 if p in ("fro", None) else p
    if dim is not None and len(whole_dims(dim, input.dim(), "norm")) != input.dim() or keepdim:
        raise NotSupported("norm: norm_sparse currently only supports full reductions, so 'dim' must either be "
                           "empty or contain all dimensions of the input", fix="x.to_dense().norm(dim=...)")
    if isinstance(wanted, str) or wanted < 0 and input._nnz() < input.numel():
        raise refused(f"norm(p={wanted})", fix="x.to_dense().norm(p)")
    return dense.norm(input._entries()._numbers.reshape(-1), wanted, dtype=dtype)


@answers("any")
def any(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether some element is not zero."""
    if dim is not None:
        raise refused("any(dim=)", fix="x.to_dense().any(dim)")
    return dense.any(input._entries()._numbers)


@answers("all")
def all(input: Any, dim: Dims = None, keepdim: bool = False) -> Any:
    """Whether no element is zero."""
    if dim is not None:
        raise refused("all(dim=)", fix="x.to_dense().all(dim)")
    entries = input._entries()._numbers
    found = dense.all(entries)
    return found if entries.numel() == input.numel() else make(np.array(False))


# -------------------------------------------------------------------------------------------------------------- softmax

def softmax(input: Any, dim: int, *, dtype: ElementType | None = None) -> Any:
    """Return the softmax along a dimension among the elements that are there; the others are taken for -inf.

    >>> import mutagrad as mg
    >>> mg.sparse.softmax(mg.tensor([[1., 0.], [2., 2.]]).to_sparse(), 1).values()
    tensor([1.0000, 0.5000, 0.5000])
    """
    return _softmax(input, dim, dtype, False)


def log_softmax(input: Any, dim: int, *, dtype: ElementType | None = None) -> Any:
    """Return the logarithm of `sparse.softmax`.

    >>> import mutagrad as mg
    >>> mg.sparse.log_softmax(mg.eye(2).to_sparse(), 1).values()
    tensor([0., 0.])
    """
    return _softmax(input, dim, dtype, True)


def _softmax(input: Any, dim: int, dtype: ElementType | None, log: bool) -> Any:
    if not isinstance(input, SparseTensor):
        raise NotSupported("sparse.softmax: expects a sparse tensor", fix="x.softmax(dim)")
    x = coordinates(input).coalesce()
    x = x if dtype is None else x.to(dtype)
    at, first = whole_dim(dim, x.dim(), "softmax"), x.sparse_dim()
    if at >= first:
        function = dense_softmax.log_softmax if log else dense_softmax.softmax
        return in_layout_of(x._with(function(x._numbers, at - first + 1)), input)
    others = np.delete(x._places._array, at, axis=0)
    places, _, which = _distinct(others, tuple(np.delete(np.array(x.shape), at)))
    return in_layout_of(x._with(_among(x._numbers, which, max(places.shape[1], 1), log)), input)


def _among(values: Tensor, which: Any, count: int, log: bool) -> Tensor:
    """Return the softmax of the values in each group."""
    highest = np.full((count, *values.shape[1:]), -np.inf, values._array.dtype)
    np.maximum.at(highest, which, values._array)
    highest[np.isneginf(highest)] = 0
    group = index_of(which)
    shifted = values - make(highest[which])
    powers = shifted.exp()
    sums = index_add(zeros(highest.shape, dtype=values.dtype), 0, group, powers)
    if log:
        return shifted - index_select(sums, 0, group).log()  # type: ignore[no-any-return]
    return powers / index_select(sums, 0, group)  # type: ignore[no-any-return]


