"""Normalisation over batches, layers, groups and instances.

Each is one node. It saves its input, and the mean and reciprocal deviation of every set of elements that was normalised
together; in reverse the normalised values are computed again from these, block by block, in one pass for all inputs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.numpy import silenced, silently
from ...base.errors import BadArgument, BadValue, DTypeError, ShapeError, may_need_much
from ...base.modes import UNRECORDED, call_with
from ...base.operands import Array, kind_name
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, of_array
from ...core.factory import make
from ...core.indexing import copy_
from ...core.number import number, whole_number
from ...core.op import RAW, RECORDED
from ...core.size import sizes
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import add_, cast, mul_
from ..reduce.reductions import mean_dims
from ..shape.shape import goes_along_channels, in_format_of, movedim, reshape, tensor_argument
from .normal_passes import Plan, normalise_channels, normalise_groups, reverse_channels, reverse_groups

FUNCTIONS = """
    _batch_norm_with_update _native_batch_norm_legit group_norm layer_norm native_batch_norm native_layer_norm
    rms_norm
"""


__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


# -------------------------------------------------------------------------------------- the derivative, in whole arrays

def _spread(xp: Any, values: Any, x: Any, plan: Plan) -> tuple[Any, Any]:
    """The centred elements and their reciprocal deviation."""
    if plan.given:
        mean, scale = xp.constants(values, x)
        return x - mean, scale
    centred = x - xp.mean(x, plan.over, True) if plan.centred else x
    return centred, xp.rsqrt(xp.mean(centred * centred, plan.over, True) + plan.eps)


def _grad_input(xp: Any, g: Any, x: Any, weight: Any, plan: Plan, moments: Any) -> Any:
    shape = x.shape
    centred, scale = _spread(xp, moments, xp.reshape(x, plan.shape), plan)
    g = xp.reshape(g, plan.shape)
    g = g * xp.reshape(weight, plan.affine) if len(weight.shape) else g
    if plan.given:
        return xp.reshape(g * scale, shape)
    normal = centred * scale
    rest = g - normal * xp.mean(g * normal, plan.over, True)
    rest = rest - xp.mean(g, plan.over, True) if plan.centred else rest
    return xp.reshape(scale * rest, shape)


def _grad_weight(xp: Any, g: Any, x: Any, weight_shape: tuple[int, ...], plan: Plan, moments: Any) -> Any:
    centred, scale = _spread(xp, moments, xp.reshape(x, plan.shape), plan)
    return xp.reshape(xp.sum(xp.reshape(g, plan.shape) * (centred * scale), plan.repeated, True), weight_shape)


def _grad_bias(xp: Any, g: Any, bias_shape: tuple[int, ...], plan: Plan) -> Any:
    return xp.reshape(xp.sum(xp.reshape(g, plan.shape), plan.repeated, True), bias_shape)


RAW.constants, RECORDED.constants = lambda values, x: values, lambda values, x: tuple(make(v) for v in values)


def _declare(name: str, forward: Callable[..., Array], reverse: Callable[..., Sequence[Any]]) -> Any:
    """A normalisation: its rules are for recorded sweeps; on raw arrays one pass, `layer_norm_reverse`, serves all."""
    reverse_name = f"{name}_reverse"
    setattr(RAW, reverse_name, reverse)
    function = primitive(
        name, forward, settings=("plan", "moments"),
        x=lambda xp, g, x, weight, plan, moments: _grad_input(xp, g, x, weight, plan, moments),
        weight=lambda xp, g, x, weight_shape, plan, moments: _grad_weight(xp, g, x, weight_shape, plan, moments),
        bias=lambda xp, g, bias_shape, plan: _grad_bias(xp, g, bias_shape, plan))
    op = function.op
    rules = op.reverse
    names = "x", "weight", "plan", "moments", "weight_shape", "bias_shape"
    slots = [op.saves.index(op.source(name)) for name in names]

    def joint(xp: Any, g: Any, s: Any, i: Any) -> Any:
        if xp is not RAW or s[slots[0]] is None:
            return rules(xp, g, s, i)
        x, weight, plan, moments, weight_shape, bias_shape = [s[slot] for slot in slots]
        found = getattr(RAW, reverse_name)(g, x, weight, plan, moments, [k is not None for k in i[:3]])
        return [f if f is None or f.shape == shape and f.dtype is g.dtype else f.reshape(shape).astype(g.dtype)
                for f, shape in zip(found, (x.shape, weight_shape, bias_shape))]

    op.reverse = joint
    return function


_layer_norm = _declare("layer_norm", normalise_groups, reverse_groups)
_rms_norm = _declare("rms_norm", normalise_groups, reverse_groups)
_group_norm = _declare("group_norm", normalise_groups, reverse_groups)
_batch_norm = _declare("batch_norm", normalise_channels, reverse_channels)
_ABSENT = make(np.ones(()))  # stands for a weight or bias that was not given


@may_need_much
def _run(operation: Callable[..., Tensor], x: Tensor, weight: Tensor | None, bias: Tensor | None, plan: Plan,
         moments: Any = None) -> tuple[Any, Any]:
    """The result, and the mean and reciprocal deviation of what was normalised together."""
    if moments is None:
        dtype = np.dtype(np.float32) if x._array.dtype.char in "eE" else x._array.dtype
        moments = np.zeros((2, *[1 if d in plan.over else n for d, n in enumerate(plan.shape)]), dtype)
    scale, shift = _ABSENT if weight is None else weight, _ABSENT if bias is None else bias
    return operation(x, scale, shift, plan, moments), moments


# ------------------------------------------------------------------------------------------------------------ functions

def _floats(name: str, x: Tensor, *others: tuple[str, Tensor | None]) -> None:
    """Raise unless all are floating point tensors of one type."""
    tensor_argument(x, name)
    dtype = of_array(x._array.dtype)
    if dtype.category != FLOAT:
        raise DTypeError(f"{name}: expects a floating point tensor, got {dtype.name}", fix=f"{name}(x.float(), ...)")
    for what, value in others:
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise BadArgument(f"{name}: {what} must be a tensor, not {kind_name(value)}",
                              fix=f"{what}=mutagrad.tensor(...)")
        if value._array.dtype is not x._array.dtype:
            raise DTypeError(f"{name}: {what} has type {of_array(value._array.dtype).name} and the input {dtype.name}",
                             why="they must be equal", fix=f"{what}.to(x.dtype)")


def _widened(function: Callable[[Tensor], Tensor], x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Any:
    """`function` of x, in the type of the weights where that is float32 and x shorter; the result is of x's type."""
    if isinstance(x, Tensor) and x._array.dtype.char in "eE":
        wide = next((v._array.dtype for v in (weight, bias) if isinstance(v, Tensor)), None)
        if wide == np.float32:
            return cast(function(cast(x, wide)), x._array.dtype)
    return function(x)


def _statistics(name: str, *running: Tensor | None) -> None:
    """Raise unless they are floating point tensors; a wider type than the input's is welcome."""
    for value in running:
        if value is not None and not (isinstance(value, Tensor) and value._array.dtype.kind in "fV"):
            raise BadArgument(f"{name}: running_mean and running_var must be floating point tensors",
                              fix="mutagrad.zeros(channels), mutagrad.ones(channels)")


def _vectors(name: str, size: int, *given: tuple[str, Tensor | None]) -> None:
    """Raise unless each has one element for each channel."""
    for what, value in given:
        if value is not None and (value._array.ndim != 1 or value._array.size != size):
            raise ShapeError(f"{name}: {what} has shape {value._array.shape}",
                             why=f"the input has {size} channels", fix=f"a {what} of shape ({size},)")


def _trailing(name: str, x: Tensor, normalized_shape: Any, weight: Tensor | None,
              bias: Tensor | None) -> tuple[int, ...]:
    shape = sizes((normalized_shape,))
    if not shape:
        raise BadValue(f"{name}: normalized_shape must name at least one size, got {normalized_shape!r}",
                       fix=f"{name}(x, x.shape[-1:])")
    for what, value in (("weight", weight), ("bias", bias)):
        if value is not None and value._array.shape != shape:
            raise ShapeError(f"{name}: {what} has shape {value._array.shape} and normalized_shape is {shape}",
                             fix=f"a {what} of shape {shape}")
    if x._array.shape[-len(shape):] != shape:
        raise ShapeError(f"{name}: an input of shape {x._array.shape} does not end in normalized_shape {shape}",
                         fix=f"normalized_shape={x._array.shape[-1:]}")
    return shape


def _rows_plan(x: Tensor, shape: tuple[int, ...], eps: float, centred: bool) -> Plan:
    eps = number(eps)
    n = prod(shape)
    count = prod(x._array.shape[:x._array.ndim - len(shape)])
    return Plan((count, 1, n, 1), (2, 3), (1, 1, n, 1), eps, centred)


def layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Any:
    """Bring the last dimensions of each item to mean 0 and variance 1, then scale and shift them.

    >>> import mutagrad as mg
    >>> mg.nn.functional.layer_norm(mg.tensor([[1., 3.], [2., 6.]]), (2,))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """
    return _widened(lambda x: _layer_normed(x, normalized_shape, weight, bias, eps)[0], input, weight, bias)


def _layer_normed(x: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                  eps: float) -> tuple[Any, Any]:
    _floats("layer_norm", x, ("weight", weight), ("bias", bias))
    shape = _trailing("layer_norm", x, normalized_shape, weight, bias)
    return _run(_layer_norm, x, weight, bias, _rows_plan(x, shape, eps, True))


def native_layer_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Any, Any, Any]:
    """`layer_norm`, and the mean and reciprocal deviation that it divided by, without gradient.

    >>> import mutagrad as mg
    >>> out, mean, rstd = mg.native_layer_norm(mg.tensor([[1., 3.]]), (2,), None, None, 0.)
    >>> out, mean, rstd
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))
    """
    out, moments = _layer_normed(input, normalized_shape, weight, bias, eps)
    kept = input._array.ndim - len(normalized_shape)
    shape = input._array.shape[:kept] + (1,) * len(normalized_shape)
    return out, *(make(m.reshape(shape).astype(input._array.dtype)) for m in moments)  # copies: the rules need theirs


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Any:
    """Divide the last dimensions of each item by the root of their mean square, then scale them.

    >>> import mutagrad as mg
    >>> mg.rms_norm(mg.tensor([[3., 4.]]), (2,))
    tensor([[0.8485, 1.1314]])
    """
    tensor_argument(input, "rms_norm")
    eps = number(eps)
    wide = np.float32 if input._array.dtype.char in "eE" else input._array.dtype  # in which short types are computed
    eps = float(np.finfo(wide).eps) if eps is None and input._array.dtype.kind in "fcV" else eps or 0.0
    if input._array.dtype.kind == "c":
        shape = _trailing("rms_norm", input, normalized_shape, weight, None)
        dims = tuple(range(input._array.ndim - len(shape), input._array.ndim))
        out = input * RECORDED.rsqrt(mean_dims(input * input, dims, True) + eps)
        return out if weight is None else out * weight
    _floats("rms_norm", input, ("weight", weight))
    shape = _trailing("rms_norm", input, normalized_shape, weight, None)
    return _run(_rms_norm, input, weight, None, _rows_plan(input, shape, eps, False))[0]


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Any:
    """Bring each group of channels of each item to mean 0 and variance 1, then scale and shift each channel.

    >>> import mutagrad as mg
    >>> mg.group_norm(mg.tensor([[1., 3., 2., 6.]]), 2, eps=0.)
    tensor([[-1.,  1., -1.,  1.]])
    """
    out = _widened(lambda x: _group_normed(x, num_groups, weight, bias, eps), input, weight, bias)
    return in_format_of(input, out)


def _group_normed(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Any:
    _floats("group_norm", input, ("weight", weight), ("bias", bias))
    shape = input._array.shape
    if len(shape) < 2:
        raise ShapeError(f"group_norm: expects items and channels, got shape {shape}", fix="x.unsqueeze(0)")
    num_groups = whole_number(num_groups, "group_norm", "num_groups")
    if num_groups <= 0 or shape[1] % num_groups:
        raise BadValue(f"group_norm: {shape[1]} channels cannot be put into {num_groups} groups of one size",
                       fix="a num_groups that divides the channels")
    _vectors("group_norm", shape[1], ("weight", weight), ("bias", bias))
    plan = _groups_plan(shape, num_groups, eps)
    return _run(_group_norm, input, weight, bias, plan)[0]


def _groups_plan(shape: tuple[int, ...], groups: int, eps: float) -> Plan:
    each = shape[1] // groups
    return Plan((shape[0], groups, each, prod(shape[2:])), (2, 3), (1, groups, each, 1), number(eps))


def _several(name: str, x: Tensor, count: int) -> None:
    """PyTorch refuses to normalise a single value, which would always give 0."""
    if count == 1:
        raise BadValue(f"{name}: Expected more than 1 value per channel when training, "
                       f"got input of shape {x._array.shape}",
                       why="one value has no deviation", fix="a larger batch, or running statistics")


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """Bring each channel of each item to mean 0 and variance 1, then scale and shift it.

    >>> import mutagrad as mg
    >>> mg.nn.functional.instance_norm(mg.tensor([[[1., 3.], [2., 6.]]])).round()
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    momentum = number(momentum)
    _floats("instance_norm", input, ("weight", weight), ("bias", bias))
    _statistics("instance_norm", running_mean, running_var)
    shape = input._array.shape
    if len(shape) < 2:
        raise ShapeError(f"instance_norm: expects items and channels, got shape {shape}", fix="x.unsqueeze(0)")
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise BadValue("instance_norm: without use_input_stats it needs running_mean and running_var",
                           fix="use_input_stats=True")
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    _vectors("instance_norm", shape[1], ("weight", weight), ("bias", bias), ("running_mean", running_mean),
             ("running_var", running_var))
    if prod(shape[2:]) == 1:
        raise BadValue(f"instance_norm: expected more than 1 spatial element when training, got input of shape {shape}",
                       why="one value has no deviation", fix="layer_norm, or larger items")
    plan = _groups_plan(shape, shape[1], eps)
    out, (mean, scale) = _run(_group_norm, input, weight, bias, plan)
    variance = _unbiased(scale, plan)
    _follow(running_mean, silently(mean.reshape(shape[:2]).mean, 0), momentum)
    _follow(running_var, silently(variance.reshape(shape[:2]).mean, 0), momentum)
    return out


@silenced
def _reciprocal_deviation(variance: Array, eps: Any) -> Any:
    return 1 / np.sqrt(variance + eps)


@silenced
def _unbiased(scale: Array, plan: Plan) -> Any:
    """The variance with n - 1 for n, out of the reciprocal deviation."""
    unbiased = scale.dtype.type(plan.members / max(plan.members - 1, 1))
    return (1 / (scale * scale) - scale.dtype.type(plan.eps)) * unbiased


def _times(value: Array, factor: float, dtype: Any) -> Any:
    return value.astype(dtype) * dtype.type(factor)


def _follow(running: Tensor | None, value: Array, momentum: float) -> None:
    """Move running statistics towards those of this batch: no part of the differentiable program."""
    if running is None:
        return
    step = make(silently(_times, value, momentum, running._array.dtype))
    call_with(UNRECORDED, lambda: add_(mul_(running, 1 - momentum), step))


def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Any:
    """Bring each channel to mean 0 and variance 1 over all items, then scale and shift it.

    Training takes both from the input and moves the running ones towards them, in place and without gradient.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[1., 4.], [3., 0.]])
    >>> mg.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000,  1.0000],
            [ 1.0000, -1.0000]])
    """
    if training and eps <= 0:
        raise BadValue(f"batch_norm: eps must be positive in training, got {eps}",
                       why="a channel of equal values has variance 0", fix="eps=1e-5")

    def normed(x: Any) -> Any:
        return _batch_normed("batch_norm", x, running_mean, running_var, weight, bias, training, momentum, eps)[0]

    if isinstance(input, Tensor) and goes_along_channels(input):
        rows = movedim(input, 1, -1)
        shape = rows._array.shape
        out = _widened(normed, reshape(rows, -1, shape[-1]), weight, bias)
        return movedim(reshape(out, *shape), -1, 1)
    return in_format_of(input, _widened(normed, input, weight, bias))


def _batch_normed(name: str, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None,
                  bias: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Any, Any]:
    momentum, eps = number(momentum), number(eps)
    _floats(name, x, ("weight", weight), ("bias", bias))
    _statistics(name, running_mean, running_var)
    shape = x._array.shape
    if shape == (0,):  # PyTorch lets an empty vector pass
        return RECORDED.clone(x), (x._array, x._array)
    if len(shape) < 2:
        raise ShapeError(f"{name}: expects items and channels, got shape {shape}", fix="x.unsqueeze(0)")
    _vectors(name, shape[1], ("running_mean", running_mean), ("running_var", running_var), ("weight", weight),
             ("bias", bias))
    plan = Plan((shape[0], shape[1], prod(shape[2:])), (0, 2), (1, shape[1], 1), eps, given=not training)
    if not training:
        if running_mean is None or running_var is None:
            raise BadValue(f"{name}: outside training it needs running_mean and running_var", fix="training=True")
        wide = np.float32 if x._array.dtype.char in "eE" else x._array.dtype
        variance = running_var._array.astype(wide)
        given = running_mean._array.astype(wide), _reciprocal_deviation(variance, np.asarray(eps, wide))
        return _run(_batch_norm, x, weight, bias, plan, tuple(v.reshape(1, -1, 1) for v in given))
    _several(name, x, plan.members)
    out, (mean, scale) = _run(_batch_norm, x, weight, bias, plan)
    if plan.members:  # a batch without items has no statistics
        _follow(running_mean, mean.reshape(-1), momentum)
        _follow(running_var, _unbiased(scale, plan).reshape(-1), momentum)
    return out, (mean, scale)


def native_batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Any, Any, Any]:
    """`batch_norm`, and the mean and reciprocal deviation of the batch (empty outside training), without gradient.

    >>> import mutagrad as mg
    >>> out, mean, rstd = mg.native_batch_norm(mg.tensor([[1.], [3.]]), *[None] * 4, True, 0.1, 1e-5)
    >>> mean, rstd
    (tensor([2.]), tensor([1.0000]))
    """
    out, moments = _batch_normed("native_batch_norm", input, running_mean, running_var, weight, bias, training,
                                 momentum, eps)
    mean, scale = (make(m.flatten()) if training else make(np.zeros(0, m.dtype)) for m in moments)
    return out, mean, scale


def _native_batch_norm_legit(input: Tensor, weight: Tensor | None, bias: Tensor | None,
                             *rest: Any) -> tuple[Any, Any, Any]:
    """As native_batch_norm; the running statistics may be left out."""
    running = rest if len(rest) == 5 else (None, None, *rest)
    return native_batch_norm(input, weight, bias, *running)


def _batch_norm_with_update(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                            running_var: Tensor | None, momentum: float, eps: float) -> tuple[Any, Any, Any, Any]:
    """As native_batch_norm in training; the fourth result is an empty reserve, which only other devices use."""
    normed = native_batch_norm(input, weight, bias, running_mean, running_var, True, momentum, eps)
    return *normed, make(np.zeros(0, np.uint8))


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Divide each element by (k + alpha * mean square over `size` neighbouring channels) to the power beta.

    >>> import mutagrad as mg
    >>> mg.nn.functional.local_response_norm(mg.ones(1, 4, 3), 2).shape
    mutagrad.Size([1, 4, 3])
    """
    tensor_argument(input, "local_response_norm")
    shape = input._array.shape
    if len(shape) < 3:
        raise ShapeError("local_response_norm: expects items, channels and at least one more dimension, "
                         f"got shape {shape}", fix="x.unsqueeze(-1)")
    if not input._array.size:
        return input
    flat = reshape(input * input, shape[0], shape[1], -1)
    return input / reshape((_window_means(flat, size) * alpha + k) ** beta, *shape)


def _window_means(x: Tensor, size: int) -> Any:
    """Means over `size` channels around each, those beyond the ends counting as zeros."""
    before, after = size // 2, (size - 1) // 2
    count, channels, inner = x._array.shape
    padded = make(np.zeros((count, channels + before + after, inner), x._array.dtype))
    copy_(RECORDED.narrow(padded, 1, before, channels), x)
    total = RECORDED.narrow(padded, 1, 0, channels)
    for step in range(1, size):
        total = total + RECORDED.narrow(padded, 1, step, channels)
    return total // size if total._array.dtype.kind in "iu" else total / size
