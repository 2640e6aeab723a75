"""The standard's functions that summarize, search or sort elements along axes."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..arrays import np
from ..base.errors import BadValue
from ..core.dtypes import as_dtype, bool_, dtype, int64, uint64
from ..core.factory import make
from ..core.storage import TensorBase
from ..ops.math import differences
from ..ops.reduce import reductions as reduce
from ..ops.select import searching, sorting
from ..ops.shape.shape import cat, clone, tensor_argument, whole_dim
from ..tensors.tensor import Tensor
from .creation import full
from .kinds import KINDS, as_floating, as_type, common, type_of
from .manipulation import axes_of, flat

Axis = int | tuple[int, ...] | None


def summable(x: Tensor, dtype: dtype | None, name: str) -> Tensor:
    """Return the tensor in the type of its sum: integers have 64 bits, and stay without a sign where they have none."""
    kind = type_of(tensor_argument(x, name))
    if dtype is not None:
        return as_type(x, as_dtype(dtype))
    if kind in KINDS["unsigned integer"]:
        return as_type(x, uint64)
    return as_type(x, int64 if kind in KINDS["signed integer"] or kind is bool_ else kind)


# ----------------------------------------------------------------------------------------------------------- statistics

def sum(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the sum over all elements, or along axes.

    >>> import mutagrad as mg
    >>> mg.array_api.sum(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([3., 7.])
    """
    x = summable(x, dtype, "sum")
    return reduce.sum_dims(x, axes_of(axis, len(x.shape), "sum"), keepdims)


def prod(x: Tensor, /, *, axis: Axis = None, dtype: dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the product of all elements, or along axes.

    >>> import mutagrad as mg
    >>> mg.array_api.prod(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([ 2., 12.])
    """
    x = summable(x, dtype, "prod")
    return reduce.prod_dims(x, axes_of(axis, len(x.shape), "prod"), keepdims)


def mean(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the average of all elements, or along axes.

    >>> import mutagrad as mg
    >>> mg.array_api.mean(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([1.5000, 3.5000])
    """
    x = as_floating(x, "mean")
    return reduce.mean_dims(x, axes_of(axis, len(x.shape), "mean"), keepdims)


def var(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance: squared deviations from the average, over their number less the correction.

    >>> import mutagrad as mg
    >>> mg.array_api.var(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([0.2500, 0.2500])
    """
    x = as_floating(x, "var")
    return reduce.var_dims(x, axes_of(axis, len(x.shape), "var"), keepdims, correction)


def std(x: Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the square root of the variance.

    >>> import mutagrad as mg
    >>> mg.array_api.std(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([0.5000, 0.5000])
    """
    x = as_floating(x, "std")
    return reduce.std_dims(x, axes_of(axis, len(x.shape), "std"), keepdims, correction)


def _extreme(name: str, operation: Callable[..., Tensor], x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    dims = axes_of(axis, len(tensor_argument(x, name).shape), name)
    reduce.not_empty(x, dims, name)
    return operation(x, dims, keepdims) if dims else clone(x)


def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the largest of all elements, or along axes.

    >>> import mutagrad as mg
    >>> mg.array_api.max(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([2., 4.])
    """
    return _extreme("max", reduce.amax_dims, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the smallest of all elements, or along axes.

    >>> import mutagrad as mg
    >>> mg.array_api.min(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([1., 3.])
    """
    return _extreme("min", reduce.amin_dims, x, axis, keepdims)


def _running(name: str, operation: Callable[..., Tensor], first: int, x: Tensor, axis: int | None, dtype: dtype | None,
             include_initial: bool) -> Tensor:
    x = summable(x, dtype, name)
    if axis is None and len(x.shape) != 1:
        raise BadValue(f"{name}: a tensor of shape {tuple(x.shape)} has several axes to go along",
                       fix=f"{name}(x, axis=0)")
    dim = whole_dim(0 if axis is None else axis, len(x.shape), name)
    found = operation(x, dim)
    if not include_initial:
        return found
    shape = tuple(1 if i == dim else n for i, n in enumerate(x.shape))
    return cat([full(shape, first, dtype=type_of(found)), found], dim)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None,
                   include_initial: bool = False) -> Tensor:
    """Return the sum of each element and all before it, after a zero if `include_initial`.

    >>> import mutagrad as mg
    >>> mg.array_api.cumulative_sum(mg.tensor([1., 2., 3.]))
    tensor([1., 3., 6.])
    """
    return _running("cumulative_sum", reduce.cumsum_dim, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: dtype | None = None,
                    include_initial: bool = False) -> Tensor:
    """Return the product of each element and all before it, after a one if `include_initial`.

    >>> import mutagrad as mg
    >>> mg.array_api.cumulative_prod(mg.tensor([1., 2., 3.]))
    tensor([1., 2., 6.])
    """
    return _running("cumulative_prod", reduce.cumprod_dim, 1, x, axis, dtype, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None,
         append: Tensor | None = None) -> Tensor:
    """Return the differences of neighbours along an axis, n times over.

    >>> import mutagrad as mg
    >>> mg.array_api.diff(mg.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
    x, *ends = common("diff", x, *(v for v in (prepend, append) if v is not None))
    return differences.diff(x, n, axis, None if prepend is None else ends[0], None if append is None else ends[-1])


def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements are true.

    >>> import mutagrad as mg
    >>> mg.array_api.all(mg.tensor([True, False]))
    tensor(False)
    """
    return make(np.all(tensor_argument(x, "all")._array, axis, keepdims=keepdims))


def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether some element is true.

    >>> import mutagrad as mg
    >>> mg.array_api.any(mg.tensor([True, False]))
    tensor(True)
    """
    return make(np.any(tensor_argument(x, "any")._array, axis, keepdims=keepdims))


# --------------------------------------------------------------------------------------------------- searching, sorting

def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the first largest element, among all or along an axis.

    >>> import mutagrad as mg
    >>> mg.array_api.argmax(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([1, 1])
    """
    return make(np.argmax(tensor_argument(x, "argmax")._array, axis, keepdims=keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the first smallest element, among all or along an axis.

    >>> import mutagrad as mg
    >>> mg.array_api.argmin(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([0, 0])
    """
    return make(np.argmin(tensor_argument(x, "argmin")._array, axis, keepdims=keepdims))


def count_nonzero(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return how many elements are not zero.

    >>> import mutagrad as mg
    >>> mg.array_api.count_nonzero(mg.tensor([[1., 2.], [3., 4.]]), axis=1)
    tensor([2, 2])
    """
    return make(np.add.reduce(tensor_argument(x, "count_nonzero")._array != 0, axis, np.int64, keepdims=keepdims))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Return where in the sorted vector x1 the elements of x2 belong.

    >>> import mutagrad as mg
    >>> mg.array_api.searchsorted(mg.tensor([1., 3., 5.]), mg.tensor([2., 5.]))
    tensor([1, 2])
    """
    sequence, values = (v._array if isinstance(v, TensorBase) else v for v in common("searchsorted", x1, x2))
    return make(np.searchsorted(sequence, values, side, None if sorter is None else sorter._array))


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the positions of the elements in sorted order.

    >>> import mutagrad as mg
    >>> mg.array_api.argsort(mg.tensor([3., 1., 2.]))
    tensor([1, 2, 0])
    """
    return sorting.argsort(tensor_argument(x, "argsort"), axis, descending, stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in sorted order.

    >>> import mutagrad as mg
    >>> mg.array_api.sort(mg.tensor([3., 1., 2.]))
    tensor([1., 2., 3.])
    """
    return sorting.sort(tensor_argument(x, "sort"), axis, descending, stable).values


# ----------------------------------------------------------------------------------------------------------------- sets

class UniqueAll(NamedTuple):
    """What `unique_all` finds."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` finds."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` finds."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the different elements in sorted order, where each is first, which one each element is, and how often.

    No nan equals another, so each is an element of its own.

    >>> import mutagrad as mg
    >>> mg.array_api.unique_all(mg.tensor([2, 1, 2])).counts
    tensor([1, 2])
    """
    _, first, inverse, counts = np.unique(tensor_argument(x, "unique_all")._array, True, True, True, equal_nan=False)
    return UniqueAll(flat(x)[make(first)], make(first), make(inverse.reshape(x.shape)), make(counts))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the different elements, and how often each occurs.

    >>> import mutagrad as mg
    >>> mg.array_api.unique_counts(mg.tensor([2, 1, 2])).counts
    tensor([1, 2])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the different elements, and which one each element is.

    >>> import mutagrad as mg
    >>> mg.array_api.unique_inverse(mg.tensor([2, 1, 2])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return the different elements.

    >>> import mutagrad as mg
    >>> mg.array_api.unique_values(mg.tensor([2, 1, 2]))
    tensor([1, 2])
    """
    return unique_all(x).values


def isin(x1: Tensor, x2: Tensor, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of x1 is among those of x2.

    >>> import mutagrad as mg
    >>> mg.array_api.isin(mg.tensor([1, 2, 3]), mg.tensor([2, 4]))
    tensor([False,  True, False])
    """
    return searching.isin(*common("isin", x1, x2), invert=invert)
