"""Reductions up to each element of a dimension: running extremes, running log(sum(exp(x)))."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np, running
from ...arrays.kinds import perhaps
from ...base import return_types
from ...base.errors import may_need_much
from ...base.modes import mode
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.factory import make
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..select.selecting import gather
from ..shape.shape import clone, whole_dim
from .reductions import floating, ordered

FUNCTIONS = "cummax cummin logcumsumexp"
METHODS = "cummax cummin logcumsumexp"


def _running_extreme(name: str, extreme: Any, x: Tensor, dim: int | None, out: Sequence[Tensor] | None) -> Any:
    """The largest (or smallest) so far and where it is; of equal ones the latest, and nan is beyond all others."""
    array, kind = ordered(x, name), getattr(return_types, name)
    dim = whole_dim(dim, array.ndim, name)
    if not array.ndim:
        found = kind(clone(x), make(np.zeros((), np.int64)))
    else:
        known = running.extremes(array, dim, extreme is np.minimum)
        indices = make(_places(extreme, array, dim) if known is None else known[1])
        if known is not None and (not mode.grad or x._storage.writer is None):
            found = kind(make(known[0]), indices)
        else:
            found = kind(gather(x, dim, indices) if array.size else clone(x), indices)
    return write_out(name, found, out)


def _places(extreme: Any, array: Array, dim: int) -> Any:
    if not array.size:
        return np.zeros(array.shape, np.int64)
    steps = np.arange(array.shape[dim]).reshape((-1,) + (1,) * (array.ndim - 1 - dim))
    new = (array == extreme.accumulate(array, dim)) | (array != array)
    return np.maximum.accumulate(np.where(new, steps, 0), dim)


@may_need_much
def cummax(input: Tensor, dim: int | None = None, *, axis: int | None = None,
           out: Sequence[Tensor] | None = None) -> Any:
    """Return the largest so far along a dimension, and where it is.

    >>> import mutagrad as mg
    >>> values, indices = mg.cummax(mg.tensor([1., 3., 2.]), dim=0)
    >>> values, indices
    (tensor([1., 3., 3.]), tensor([0, 1, 1]))
    """
    return _running_extreme("cummax", np.maximum, input, dim if axis is None else axis, out)


@may_need_much
def cummin(input: Tensor, dim: int | None = None, *, axis: int | None = None,
           out: Sequence[Tensor] | None = None) -> Any:
    """Return the smallest so far along a dimension, and where it is.

    >>> import mutagrad as mg
    >>> values, indices = mg.cummin(mg.tensor([3., 1., 2.]), dim=0)
    >>> values, indices
    (tensor([3., 1., 1.]), tensor([0, 1, 1]))
    """
    return _running_extreme("cummin", np.minimum, input, dim if axis is None else axis, out)


def _logcumsumexp(a: Array, dim: int) -> Any:
    if a.dtype.kind == "f":
        return running.log_sum_exp(a, dim)
    out = np.moveaxis(a, dim, 0).copy()
    for i in range(1, len(out)):
        swap = out[i].real > out[i - 1].real
        high, low = np.where(swap, out[i], out[i - 1]), np.where(swap, out[i - 1], out[i])
        out[i] = high + np.log1p(np.exp(low - high))
    return np.moveaxis(out, 0, dim)


def _reversed(xp: Any, operation: Any, x: Any, dim: int) -> Any:
    return xp.flip(operation(xp.flip(x, (dim,)), dim), (dim,))


def _logcumsumexp_rule(xp: Any, g: Any, x: Any, out: Any, dim: int) -> Any:
    """sum over k >= i of g[k] * exp(x[i] - out[k]).

    Relative to the row's largest where that cannot overflow; else in logarithms, separately for g above and below zero.
    """
    top = xp.top_in_range(out, dim)
    if top is not None:
        return xp.exp(x - top) * xp.sums_from_end(g * xp.exp(top - out), dim)

    def part(positive: Any, size: Any) -> Any:
        logarithm = xp.where(positive, xp.log(xp.where(positive, size, 1.0)), -1e30)
        return xp.exp(_reversed(xp, xp.logcumsumexp, logarithm - out, dim) + x)

    return part(g > 0, g) - part(g < 0, -g)


def _top_in_range(a: Array, dim: int) -> Array | None:
    """The largest of each row; None if exp of the distance to the smallest would overflow."""
    if not a.size:
        return a
    top = np.maximum.reduce(a.real, dim, keepdims=True)
    most = np.log(np.finfo(a.dtype).max) / 2
    return top if a.dtype.kind == "c" or not perhaps(top - np.minimum.reduce(a, dim, keepdims=True) >= most) else None


def _constant_top(x: Tensor, dim: int) -> Tensor | None:
    top = _top_in_range(x._array, dim)
    return None if top is None else make(top)


RAW.top_in_range, RECORDED.top_in_range = _top_in_range, _constant_top

logcumsumexp_dim = primitive("logcumsumexp", _logcumsumexp, settings=("dim",),
                             x=lambda xp, g, x, out, dim: _logcumsumexp_rule(xp, g, x, out, dim))


def logcumsumexp(input: Tensor, dim: int | None = None, *, axis: int | None = None, out: Tensor | None = None) -> Any:
    """Return running log(sum(exp(x))) along a dimension, without overflow.

    >>> import mutagrad as mg
    >>> mg.logcumsumexp(mg.zeros(3), dim=0)
    tensor([0.0000, 0.6931, 1.0986])
    """
    floating(input, None, "logcumsumexp")
    dim = whole_dim(dim if axis is None else axis, input._array.ndim, "logcumsumexp")
    return write_out("logcumsumexp", logcumsumexp_dim(input, dim) if input._array.ndim else clone(input), out)
