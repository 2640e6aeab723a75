"""Losses of numbers and of probabilities."""
from __future__ import annotations

import math
import warnings
from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere, extremes, perhaps
from ...arrays.numpy import at_most, silently
from ...base.errors import BadArgument, BadValue, DTypeError, bad_choice, may_need_much
from ...base.operands import Array, kind_name
from ...core.codegen import elementwise
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.number import number
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import abs as abs_values, add_values, exp, log, where
from ..reduce.reductions import mean as average, sum as total
from ..shape.shape import broadcast_tensors, tensor_argument, unsqueeze

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "poisson_nll_loss", "smooth_l1_loss"]

# ------------------------------------------------------------------------------------------------------------ arguments


def reduction_of(name: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None,
                 more: tuple[str, ...] = ()) -> str:
    """The reduction's name; the two older arguments, where one is given, take its place."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return "none"
        return "mean" if size_average is None or size_average else "sum"
    if reduction not in ("none", "mean", "sum", *more):
        raise bad_choice(reduction, str,
                         f"{name}: {reduction!r} is not a valid value for reduction, which is 'none', 'mean' or 'sum'",
                         fix=f"{name}(x, y, reduction='mean')")
    return str(reduction)


def reduced(loss: Tensor, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return average(loss) if reduction == "mean" else total(loss)


def check_tensors(name: str, *values: Any) -> None:
    for value in values:
        tensor_argument(value, name)


def _weighted(name: str, loss: Tensor, x: Tensor, weight: Tensor | None, reduction: str, by_weight: bool) -> Any:
    """The loss times a weight for each element; `by_weight`: the mean is over the weights, not over the elements."""
    if weight is None:
        return reduced(loss, reduction)
    if tensor_argument(weight, name)._array.shape != x._array.shape:
        raise BadValue(f"{name}: weight of shape {weight._array.shape} for x of shape {x._array.shape}",
                       why="there must be one for each element", fix="weight.expand_as(x)")
    loss = loss * weight
    return total(loss) / total(weight) if by_weight and reduction == "mean" else reduced(loss, reduction)


def _paired(name: str, x: Tensor, y: Tensor) -> None:
    """Two tensors of one shape; PyTorch broadcasts others, and warns, since a column against a row is rarely meant."""
    check_tensors(name, x, y)
    if x._array.shape != y._array.shape:
        broadcast_tensors(x, y)
        # Programs look for PyTorch's words.
        warnings.warn(f"{name}: a target of size {tuple(y._array.shape)} for an input of size {tuple(x._array.shape)}. "
                      "This will likely lead to incorrect results due to broadcasting. "
                      "Please ensure they have the same size.", stacklevel=3)


def check_same_shape(name: str, x: Tensor, y: Tensor) -> None:
    check_tensors(name, x, y)
    if x._array.shape != y._array.shape:
        raise BadValue(f"{name}: Using a target size ({y._array.shape}) for an input size ({x._array.shape})",
                       why="they must have one shape", fix="target.reshape(x.shape), or target.expand_as(x)")


def check_float(name: str, x: Tensor) -> None:
    if tensor_argument(x, name)._array.dtype.kind not in "fV":
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(x._array.dtype).name}",
                         fix=f"{name}(x.float(), target)")


# ----------------------------------------------------------------------------------------------- differences of numbers

squared_error = elementwise("squared_error", lambda a, b: np.square(a - b),
                            x=lambda g, x, y: (x - y) * (g + g), y=lambda g, x, y: (y - x) * (g + g))


def _huber(a: Array, b: Array, delta: float, scale: float) -> Any:
    if a.dtype.kind == "c":
        raise TypeError  # the slope of a size is no clamped difference there; it becomes the usual error about types
    size = np.abs(a - b)
    near = at_most(size, delta)
    return near * (size - 0.5 * near) * scale


huber_values = elementwise("huber", _huber, settings=("delta", "scale"), promotes="float",
                           x=lambda xp, g, x, y, delta, scale: g * xp.clamp(x - y, -delta, delta) * scale,
                           y=lambda xp, g, x, y, delta, scale: g * xp.clamp(y - x, -delta, delta) * scale)


def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Any:
    """Return the mean of the squared differences.

    >>> import mutagrad as mg
    >>> mg.nn.functional.mse_loss(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(2.)
    """
    reduction = reduction_of("mse_loss", reduction, size_average, reduce)
    _paired("mse_loss", input, target)
    return _weighted("mse_loss", squared_error(input, target), input, weight, reduction, True)


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Any:
    """Return the mean of the absolute differences.

    >>> import mutagrad as mg
    >>> mg.nn.functional.l1_loss(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(1.)
    """
    reduction = reduction_of("l1_loss", reduction, size_average, reduce)
    _paired("l1_loss", input, target)
    return _weighted("l1_loss", abs_values(input - target), input, weight, reduction, True)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Any:
    """Return the absolute difference, but half its square divided by beta where it is below beta.

    >>> import mutagrad as mg
    >>> mg.nn.functional.smooth_l1_loss(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(0.7500)
    """
    reduction = reduction_of("smooth_l1_loss", reduction, size_average, reduce)
    _paired("smooth_l1_loss", input, target)
    beta = number(beta)
    if beta < 0:
        raise BadValue(f"smooth_l1_loss: beta must not be negative, got {beta}", fix=f"beta={-beta}")
    if beta == 0:
        return reduced(abs_values(input - target), reduction)
    return reduced(huber_values(input, target, beta, 1 / beta), reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Any:
    """Return half the squared difference, but growing linearly from where the difference is delta.

    >>> import mutagrad as mg
    >>> mg.nn.functional.huber_loss(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(0.7500)
    """
    reduction = reduction_of("huber_loss", reduction)
    if delta <= 0:
        raise BadValue(f"huber_loss: delta must be positive, got {delta}", fix="delta=1.0")
    _paired("huber_loss", input, target)
    return _weighted("huber_loss", huber_values(input, target, delta, 1.0), input, weight, reduction, False)


# ----------------------------------------------------------------------------------------------------- of probabilities

def _binary(a: Array, b: Array) -> Any:
    return (b - 1) * np.maximum(np.log1p(-a), -100) - b * np.maximum(np.log(a), -100)


def _softplus_of_negative(a: Array) -> Any:
    return np.maximum(-a, 0) + np.log1p(np.exp(-np.abs(a)))


def _binary_logits(a: Array, b: Array) -> Any:
    return (1 - b) * a + _softplus_of_negative(a)


binary_values = elementwise(
    "binary_cross_entropy", _binary,
    x=lambda xp, g, x, y: g * (x - y) / xp.clamp(x * (1 - x), 1e-12, None),
    y=lambda xp, g, x: g * (xp.clamp(xp.log1p(-x), -100.0, None) - xp.clamp(xp.log(x), -100.0, None)))
binary_logits_values = elementwise("binary_cross_entropy_with_logits", _binary_logits,
                                   x=lambda xp, g, x, y: g * (xp.sigmoid(x) - y), y=lambda g, x: -g * x)
binary_positive_values = elementwise(
    "binary_cross_entropy_pos_weight", lambda a, b, p: (1 - b) * a + (1 + (p - 1) * b) * _softplus_of_negative(a),
    inputs=("x", "y", "p"),
    x=lambda xp, g, x, y, p: g * (1 - y - (1 + (p - 1) * y) * xp.sigmoid(-x)),
    y=lambda xp, g, x, p: -g * (x + (p - 1) * xp.logsigmoid(x)),
    p=lambda xp, g, x, y: -g * y * xp.logsigmoid(x))


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Any:
    """Return the mean of -(y * log(x) + (1 - y) * log(1 - x)) for targets y; the logarithms are at least -100.

    >>> import mutagrad as mg
    >>> mg.nn.functional.binary_cross_entropy(mg.tensor([0.5, 0.9]), mg.tensor([0., 1.]))
    tensor(0.3993)
    """
    reduction = reduction_of("binary_cross_entropy", reduction, size_average, reduce)
    check_same_shape("binary_cross_entropy", input, target)
    check_float("binary_cross_entropy", input)
    a = input._array
    low, high = extremes(a) if a.size else (0, 1)
    if not (low >= 0 and high <= 1):
        raise BadValue("binary_cross_entropy: all elements of x should be between 0 and 1, "
                       f"and they are from {low} to {high}", fix="binary_cross_entropy_with_logits(x, target)")
    loss = binary_values(input, target)
    return reduced(loss if weight is None else loss * tensor_argument(weight, "binary_cross_entropy"), reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Any:
    """binary_cross_entropy of sigmoid(x), without underflow; `pos_weight` weighs the targets that are 1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.binary_cross_entropy_with_logits(mg.zeros(3), mg.ones(3))
    tensor(0.6931)
    """
    reduction = reduction_of("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    check_same_shape("binary_cross_entropy_with_logits", input, target)
    check_float("binary_cross_entropy_with_logits", input)
    if pos_weight is None:
        loss = binary_logits_values(input, target)
    else:
        loss = binary_positive_values(input, target, tensor_argument(pos_weight, "binary_cross_entropy_with_logits"))
    if weight is not None:
        loss = loss * tensor_argument(weight, "binary_cross_entropy_with_logits")
    return reduced(loss, reduction)


def _divergence(a: Array, b: Array) -> Any:
    return b * np.log(np.where(b == 0, b.dtype.type(1), b)) - b * a


divergence_values = elementwise("kl_div", _divergence, promotes="float", x=lambda g, y: -g * y,
                                y=lambda xp, g, x, y: g * (xp.log(y) + (1 - x)))
log_divergence_values = elementwise("kl_div_log", lambda a, b: np.exp(b) * (b - a), promotes="float",
                                    x=lambda xp, g, y: -g * xp.exp(y),
                                    y=lambda xp, g, x, y: g * xp.exp(y) * (y - x + 1))


def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Any:
    """target * (log(target) - x), for x that are log-probabilities; "batchmean" is the sum by the first size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.kl_div(mg.tensor([0.5, 0.5]).log(), mg.tensor([0.25, 0.75]), reduction="sum")
    tensor(0.1308)
    """
    reduction = reduction_of("kl_div", reduction, size_average, reduce, more=("batchmean",))
    check_tensors("kl_div", input, target)
    loss = (log_divergence_values if log_target else divergence_values)(input, target)
    if reduction == "batchmean":
        loss = total(loss)
        return loss / input._array.shape[0] if input._array.ndim else loss
    return reduced(loss, reduction)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Any:
    """x - target * log(x) for counts of mean x, or exp(x) if `log_input`; `full` adds Stirling's terms.

    >>> import mutagrad as mg
    >>> mg.nn.functional.poisson_nll_loss(mg.tensor([0., 1.]), mg.tensor([1., 2.]))
    tensor(0.8591)
    """
    reduction = reduction_of("poisson_nll_loss", reduction, size_average, reduce)
    check_tensors("poisson_nll_loss", input, target)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        safe = where(target > 1, target, 1)
        stirling = safe * log(safe) - safe + 0.5 * log(safe * (2 * math.pi))
        loss = loss + where(target > 1, stirling, 0)
    return reduced(loss, reduction)


def at_least(x: Tensor, low: float) -> Any:
    """x, raised to at least `low` without taking its gradient away."""
    array = x._array
    if not perhaps(array < low):
        return x
    return add_values(x, make(silently(np.subtract, np.maximum(array, array.dtype.type(low)), array)))


@may_need_much
def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Any:
    """-log of a normal distribution's density with mean x and variance `var`, without the constant unless `full`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.gaussian_nll_loss(mg.tensor([1.]), mg.tensor([2.]), mg.tensor([0.5]))
    tensor(0.6534)
    """
    reduction = reduction_of("gaussian_nll_loss", reduction)
    check_tensors("gaussian_nll_loss", input, target)
    if not isinstance(var, (Tensor, int, float)):
        raise BadArgument(f"gaussian_nll_loss: var must be a tensor or a number, not {kind_name(var)}",
                          fix="var=mutagrad.ones_like(x)")
    variance = var if isinstance(var, Tensor) else make(np.full(input._array.shape, var, input._array.dtype))
    shape, spread = input._array.shape, variance._array.shape
    if anywhere(variance._array < 0):
        raise BadValue(f"gaussian_nll_loss: var has negative entry/entries, the lowest {extremes(variance._array)[0]}",
                       fix="var.exp(), if these are logarithms")
    if spread != shape and spread == shape[:-1]:
        variance = unsqueeze(variance, -1)
    elif spread != shape and not (len(spread) == len(shape) and sum(n for m, n in zip(shape, spread) if m != n) == 1):
        raise BadValue(f"gaussian_nll_loss: var is of incorrect size, {spread} for x of {shape}",
                       why="one size may be 1 or left out at the end", fix="var.expand_as(x)")
    variance = at_least(variance, eps)
    loss = (log(variance) + squared_error(input, target) / variance) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
