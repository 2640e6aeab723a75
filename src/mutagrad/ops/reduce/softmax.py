"""Exponentials and their sum along dimensions, without overflow: softmax, its logarithm, log(sum(exp(x)))."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np
from ...arrays.compiled import rows
from ...base.errors import BadArgument
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import dtype
from ...core.op import RECORDED, kernel
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.shape import Dims, reshape, tensor_argument, whole_dim, whole_dims
from .reductions import SETTINGS, floating, numpy_names
from .rows import COMPILED, back, by_rows, is_real, kept_shape, one_dim, row_extreme, row_sum

logsumexp_dims = primitive("logsumexp", lambda a, dims, keepdim: _log_sum_exp(a, dims, keepdim), settings=SETTINGS,
                           x=lambda xp, g, x, out, dims: _log_sum_exp_rule(xp, g, x, out, dims))
softmax_dim = primitive("softmax", lambda a, dim: _softmax(a, dim), settings=("dim",),
                        x=lambda xp, g, out, dim: _softmax_rule(xp, g, out, dim))
log_softmax_dim = primitive("log_softmax", lambda a, dim: _log_softmax(a, dim), settings=("dim",),
                            x=lambda xp, g, out, dim: _log_softmax_rule(xp, g, out, dim))


def _log_sum_exp(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if not a.size:
        return np.log(np.add.reduce(np.exp(a), dims, keepdims=keepdim))
    top = np.maximum.reduce(a.real, dims or None, keepdims=True) if a.ndim else a.real
    top = np.where(np.isfinite(top), top, 0)
    found = np.log(np.add.reduce(np.exp(a - top), dims, keepdims=True)) + top
    return found if keepdim else found.reshape(tuple(n for i, n in enumerate(a.shape) if i not in dims))


@kernel("logsumexp")
def _log_sum_exp_by_rows(a: Array, dims: tuple[int, ...], keepdim: bool) -> Any:
    if not a.size:
        return np.log(np.add.reduce(np.exp(a), dims, keepdims=keepdim))
    if not a.ndim:
        return _log_sum_exp_by_rows(a.reshape(1), (0,), False)
    if (dim := one_dim(dims)) is None or a.dtype.kind == "c":
        out = np.empty(kept_shape(a.shape, dims), a.dtype)
        _log_sum_exp_into(dims, a, out)
    else:
        out = by_rows(_log_sum_exp_into, (a,), dim, len(dims), kept=True)
    return out if keepdim else out.reshape(tuple(n for i, n in enumerate(a.shape) if i not in dims))


def _log_sum_exp_into(axis: int | tuple[int, ...], a: Array, out: Array) -> None:
    top = row_extreme(np.maximum, a.real, axis)
    top[~np.isfinite(top)] = 0
    e = np.subtract(a, top)
    np.exp(e, e)
    np.log(row_sum(e, axis), out)
    np.add(out, top, out)


def _log_sum_exp_rule(xp: Any, g: Any, x: Any, out: Any, dims: tuple[int, ...]) -> Any:
    kept = kept_shape(x.shape, dims)
    if is_real(xp, x) and (dim := one_dim(dims)) is not None:
        return by_rows(_log_sum_exp_back, (x, g.reshape(kept), out.reshape(kept)), dim, len(dims))
    return back(xp, g, x.shape, dims) * xp.exp(x - xp.reshape(out, kept))


def _log_sum_exp_back(axis: int, a: Array, g: Array, total: Array, out: Array) -> None:
    np.subtract(a, total, out)
    np.exp(out, out)
    np.multiply(out, g, out)


def _softmax(a: Array, dim: int) -> Any:
    e = np.exp(a - np.maximum.reduce(a, dim, keepdims=True)) if a.size else a.copy()
    return e / np.add.reduce(e, dim, keepdims=True)


@kernel("softmax")
def _softmax_by_rows(a: Array, dim: int) -> Any:
    if not a.size:
        return a.copy()
    return by_rows(_softmax_into, (a,), dim)


MANY, FAR = 1 << 14, 40.0  # elements; numbers up to this have powers of e whose sums do not overflow


def _softmax_into(axis: int, a: Array, out: Array) -> None:
    if a.size >= MANY and a.min() > -FAR and a.max() < FAR:  # as a rule, and the steps row by row are the slow ones
        np.exp(a, out)
    else:
        np.subtract(a, row_extreme(np.maximum, a, axis), out)
        np.exp(out, out)
    np.divide(out, row_sum(out, axis), out)


def _softmax_rule(xp: Any, g: Any, out: Any, dim: int) -> Any:
    if is_real(xp, out):
        return by_rows(_softmax_back, (out, g), dim)
    return out * (g - xp.sum(g * out, (dim,), True))


def _softmax_back(axis: int, y: Array, g: Array, out: Array) -> None:
    np.multiply(g, y, out)
    np.subtract(g, row_sum(out, axis), out)
    np.multiply(out, y, out)


def _log_softmax(a: Array, dim: int) -> Any:
    shifted = a - np.maximum.reduce(a, dim, keepdims=True) if a.size else a.copy()
    return shifted - np.log(np.add.reduce(np.exp(shifted), dim, keepdims=True))


@kernel("log_softmax")
def _log_softmax_by_rows(a: Array, dim: int) -> Any:
    if not a.size:
        return a.copy()
    return by_rows(_log_softmax_into, (a,), dim)


def _log_softmax_into(axis: int, a: Array, out: Array) -> None:
    np.subtract(a, row_extreme(np.maximum, a, axis), out)
    np.subtract(out, np.log(row_sum(np.exp(out), axis)), out)


def _log_softmax_rule(xp: Any, g: Any, out: Any, dim: int) -> Any:
    if is_real(xp, out):
        return by_rows(_log_softmax_back, (out, g), dim)
    return g - xp.exp(out) * xp.sum(g, (dim,), True)


def _log_softmax_back(axis: int, y: Array, g: Array, out: Array) -> None:
    np.exp(y, out)
    np.multiply(out, row_sum(g, axis), out)
    np.subtract(g, out, out)


COMPILED.update({
    _softmax_into: rows.softmax, _softmax_back: rows.softmax_back,
    _log_softmax_into: rows.log_softmax, _log_softmax_back: rows.log_softmax_back,
    _log_sum_exp_into: rows.log_sum_exp, _log_sum_exp_back: rows.log_sum_exp_back})


def logsumexp(input: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None,
              keepdims: bool | None = None, out: Tensor | None = None) -> Any:
    """Return log(sum(exp(x))) along dimensions, without overflow.

    >>> import mutagrad as mg
    >>> mg.logsumexp(mg.zeros(2, 3), dim=1)
    tensor([1.0986, 1.0986])
    """
    dim, keepdim = numpy_names("logsumexp", dim, keepdim, axis, keepdims)
    if dim is None:
        raise BadArgument("logsumexp: needs to be told along which dimensions", fix="x.logsumexp(dim=-1)")
    input = input if tensor_argument(input, "logsumexp")._array.dtype.kind in "fcV" else RECORDED.add(input, 0.0)
    return write_out("logsumexp", logsumexp_dims(input, whole_dims(dim, input._array.ndim, "logsumexp"), keepdim), out)


def _normalised(operation: Callable[..., Tensor], name: str, x: Tensor, dim: int | None, dtype: dtype | None,
                axis: int | None, out: Tensor | None) -> Any:
    x = floating(x, dtype, name)
    dim = whole_dim(dim if axis is None else axis, x._array.ndim, name)
    return write_out(name, operation(x, dim) if x._array.ndim else reshape(operation(reshape(x, 1), dim), ()), out)


def softmax(input: Tensor, dim: int | None = None, dtype: dtype | None = None, *, axis: int | None = None,
            out: Tensor | None = None) -> Any:
    """Return exp(x) normalised to sum to one along a dimension.

    >>> import mutagrad as mg
    >>> mg.softmax(mg.tensor([[0., 0.], [0., 1.]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.2689, 0.7311]])
    """
    return _normalised(softmax_dim, "softmax", input, dim, dtype, axis, out)


def log_softmax(input: Tensor, dim: int | None = None, dtype: dtype | None = None, *, axis: int | None = None,
                out: Tensor | None = None) -> Any:
    """Return the logarithm of softmax, without underflow.

    >>> import mutagrad as mg
    >>> mg.log_softmax(mg.tensor([1., 1.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    return _normalised(log_softmax_dim, "log_softmax", input, dim, dtype, axis, out)
