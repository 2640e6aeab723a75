"""Activations, dropout and the layers' products: functions that stand between the layers of a network."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...arrays import np, parallel as large, pieces
from ...arrays.compiled import gates
from ...arrays.compiled.library import rows_of
from ...arrays.kinds import is_plain
from ...arrays.numpy import at_least, at_most, choose, clip, silently
from ...arrays.parallel import AS_UFUNC
from ...arrays.scipy import erf as _erf, polynomial
from ...base.errors import BadValue, DTypeError, ShapeError, bad_choice
from ...base.operands import Array
from ...core.codegen import elementwise, primitive
from ...core.dtypes import dtype as DType, of_array
from ...core.factory import make
from ...core.op import RAW, RECORDED, kernel
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import as_element, clamp, mul, relu as relu_values, sigmoid, tanh
from ..random.generator import Generator, source
from ..reduce import softmax as softmaxes
from ..reduce.reductions import norm, sum as total, to_dtype
from ..shape.shape import reshape, tensor_argument, whole_dim

FUNCTIONS = "_softmax_backward_data celu celu_ hardshrink prelu relu_ rrelu rrelu_ selu selu_ threshold threshold_"
METHODS = "hardshrink prelu"

__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "gumbel_softmax", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hardtanh_", "leaky_relu", "leaky_relu_", "log_softmax", "logsigmoid", "mish", "normalize", "prelu",
    "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu", "selu_", "sigmoid", "silu", "softmax", "softmin", "softplus",
    "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_"]


def floating(value: Any, name: str, kinds: str = "f") -> Any:
    """A tensor of real numbers, or of those kinds that the function is defined for."""
    kind = tensor_argument(value, name)._array.dtype.kind
    if kind not in kinds + "V":
        raise DTypeError(f"{name}: not defined for {of_array(value._array.dtype).name}",
                         why="it takes floating point tensors", fix=f"{name}(x.float())")
    return value


# ------------------------------------------------------------------------------------------------------ straight pieces


def _leaky_relu(a: Array, slope: float) -> Any:
    return np.maximum(a, a * slope) if 0 <= slope <= 1 else choose(a > 0, a, a * slope)


def _leaky_slope(xp: Any, g: Any, x: Any, slope: float) -> Any:
    return g * (xp.as_float(xp.slope(x > 0, x), g) * (1 - slope) + slope)


# Products with a mask take a fraction of the time of `where`, which has to guess for each element.
leaky_relu_values = elementwise("leaky_relu", _leaky_relu, settings=("slope",),
                                x=lambda xp, g, x, slope: _leaky_slope(xp, g, x, slope))
hardtanh_values = elementwise("hardtanh", lambda a, low, high: np.clip(a, low, high), settings=("low", "high"),
                              x=lambda xp, g, x, low, high: g * xp.slope((x > low) & (x < high), x))
AS_UFUNC[hardtanh_values.op.forward] = lambda a, low, high: (clip, (a, low, high))
hardsigmoid_values = elementwise("hardsigmoid", lambda a: np.clip(a + 3, 0, 6) / 6,
                                 x=lambda xp, g, x: xp.where((x > -3) & (x < 3), g / 6, 0.0))
hardswish_values = elementwise("hardswish", lambda a: a * np.clip(a + 3, 0, 6) / 6,
                               x=lambda xp, g, x: xp.where(x <= -3, 0.0, xp.where(x >= 3, g, g * (x / 3 + 0.5))))
hardshrink_values = elementwise("hardshrink",
                                lambda a, lambd: choose((a >= -lambd) & (a <= lambd), a.dtype.type(0), a),
                                settings=("lambd",),
                                x=lambda xp, g, x, lambd: xp.where((x < -lambd) | (x > lambd), g, 0.0))
softshrink_values = elementwise("softshrink", lambda a, lambd, edge: a - np.clip(a, -lambd, lambd),
                                settings=("lambd", "edge"),
                                x=lambda xp, g, x, edge: xp.where((x < -edge) | (x > edge), g, 0.0))
threshold_values = elementwise("threshold",
                               lambda a, bound, value: choose(a <= bound, np.array(value).astype(a.dtype), a),
                               settings=("bound", "value"), x=lambda xp, g, x, bound: xp.where(x <= bound, 0.0, g))
prelu_values = elementwise("prelu", lambda a, w: choose(a > 0, a, a * w), inputs=("x", "weight"),
                           x=lambda xp, g, x, weight: xp.where(x > 0, g, g * weight),
                           weight=lambda xp, g, x: xp.where(x > 0, 0.0, g * x))


def relu(input: Tensor, inplace: bool = False) -> Any:
    """`max(x, 0)`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.relu(mg.tensor([-2., 0.5, 3.]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return relu_(input) if inplace else relu_values(tensor_argument(input, "relu"))


def relu_(input: Tensor) -> Any:
    """relu, written into its input.

    >>> import mutagrad as mg
    >>> mg.nn.functional.relu_(mg.tensor([-2., 0.5, 3.]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return relu_values(tensor_argument(input, "relu_"), out=input)


def relu6(input: Tensor, inplace: bool = False) -> Any:
    """x limited to between 0 and 6.

    >>> import mutagrad as mg
    >>> mg.nn.functional.relu6(mg.tensor([-2., 0.5, 3.]))
    tensor([0.0000, 0.5000, 3.0000])
    """
    return hardtanh(input, 0, 6, inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """x limited to between two numbers; unlike clamp's, its gradient is zero at the bounds themselves.

    >>> import mutagrad as mg
    >>> mg.nn.functional.hardtanh(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    kind = tensor_argument(input, "hardtanh")._array.dtype.kind
    if kind in "bc" or kind == "u" and min_val < 0:
        raise DTypeError(f"hardtanh: {of_array(input._array.dtype).name} cannot be limited "
                         f"to between {min_val} and {max_val}", fix="hardtanh(x.float())")
    if min_val > max_val:
        raise BadValue(f"hardtanh: min_val {min_val} is greater than max_val {max_val}",
                       fix=f"hardtanh(x, {max_val}, {min_val})")
    low, high = (min_val, max_val) if kind in "fV" else (int(min_val), int(max_val))
    return hardtanh_values(input, low, high, out=input if inplace else None)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """hardtanh, written into its input.

    >>> import mutagrad as mg
    >>> mg.nn.functional.hardtanh_(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    return hardtanh(input, min_val, max_val, inplace=True)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """x where it is positive, `negative_slope * x` elsewhere.

    >>> import mutagrad as mg
    >>> mg.nn.functional.leaky_relu(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.0200,  0.5000,  3.0000])
    """
    return leaky_relu_values(floating(input, "leaky_relu"), negative_slope, out=input if inplace else None)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Any:
    """leaky_relu, written into its input.

    >>> import mutagrad as mg
    >>> mg.nn.functional.leaky_relu_(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.0200,  0.5000,  3.0000])
    """
    return leaky_relu(input, negative_slope, inplace=True)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Any:
    """Return a sigmoid of three straight pieces: 0 below -3, 1 above 3.

    >>> import mutagrad as mg
    >>> mg.nn.functional.hardsigmoid(mg.tensor([-2., 0.5, 3.]))
    tensor([0.1667, 0.5833, 1.0000])
    """
    return hardsigmoid_values(floating(input, "hardsigmoid"), out=input if inplace else None)


def hardswish(input: Tensor, inplace: bool = False) -> Any:
    """`x * hardsigmoid(x)`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.hardswish(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.3333,  0.2917,  3.0000])
    """
    return hardswish_values(floating(input, "hardswish"), out=input if inplace else None)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Any:
    """x, but 0 where it is between -lambd and lambd.

    >>> import mutagrad as mg
    >>> mg.hardshrink(mg.tensor([-1., 0.3, 2.]))
    tensor([-1.,  0.,  2.])
    """
    return hardshrink_values(floating(input, "hardshrink"), as_element(lambd, input), out=out)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Any:
    """x moved towards 0 by lambd, and no further than 0.

    >>> import mutagrad as mg
    >>> mg.nn.functional.softshrink(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.5000,  0.0000,  2.5000])
    """
    if lambd < 0:
        raise BadValue(f"softshrink: lambd must not be negative, got {lambd}", fix=f"softshrink(x, {-lambd})")
    return softshrink_values(floating(input, "softshrink"), lambd, as_element(lambd, input), out=out)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False,
              *, out: Tensor | None = None) -> Any:
    """x where it is above the threshold, `value` elsewhere.

    >>> import mutagrad as mg
    >>> mg.threshold(mg.tensor([0.5, 2.]), 1., 0.)
    tensor([0., 2.])
    """
    floating(input, "threshold", "fiu")
    return threshold_values(input, threshold, value, out=input if inplace else out)


def threshold_(input: Tensor, threshold: float, value: float) -> Any:
    """threshold, written into its input.

    >>> import mutagrad as mg
    >>> mg.threshold_(mg.tensor([0.5, 2.]), 1., 0.)
    tensor([0., 2.])
    """
    return threshold_values(floating(input, "threshold_", "fiu"), threshold, value, out=input)


def prelu(input: Tensor, weight: Tensor) -> Any:
    """x where it is positive, `weight * x` elsewhere; one weight for all, or one for each channel (dimension 1).

    >>> import mutagrad as mg
    >>> mg.prelu(mg.tensor([-2., 3.]), mg.tensor([0.25]))
    tensor([-0.5000,  3.0000])
    """
    floating(input, "prelu")
    count, ndim = tensor_argument(weight, "prelu")._array.size, input._array.ndim
    if weight._array.dtype is not input._array.dtype:
        raise DTypeError(f"prelu: x is of type {of_array(input._array.dtype).name} "
                         f"and weight {of_array(weight._array.dtype).name}", fix="weight.to(x.dtype)")
    if weight._array.ndim > 1:
        raise ShapeError(f"prelu: weight must be a number or a vector, not of shape {weight._array.shape}",
                         fix="weight.flatten()")
    if weight._array.ndim and count != 1:
        channels = input._array.shape[1] if ndim > 1 else 1
        if not ndim or count != channels:
            raise ShapeError(f"prelu: {count} weights for {channels if ndim else 'no'} channels of x "
                             f"of shape {input._array.shape}",
                             why="there must be one, or one for each channel (dimension 1)", fix="weight[:1]")
        weight = reshape(weight, *(count if d == 1 else 1 for d in range(ndim)))
    return prelu_values(input, weight if weight._array.ndim == ndim or not weight._array.ndim else reshape(weight, ()))


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False,
          *, generator: Generator | None = None) -> Any:
    """leaky_relu with a random slope between two bounds for each element; with their mean if not training.

    >>> import mutagrad as mg
    >>> mg.rrelu(mg.tensor([-4., 2.]), 0.25, 0.25)
    tensor([-1.,  2.])
    """
    floating(input, "rrelu")
    if not (math.isfinite(lower) and math.isfinite(upper)) or lower > upper:
        raise BadValue(f"rrelu: the slopes must be finite and in order, got lower={lower} and upper={upper}",
                       fix="rrelu(x, 1 / 8, 1 / 3)")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    array = input._array
    factor = make(_slopes(array, lower, upper, source(generator)))
    return mul(input, factor, out=input if inplace else None)


def _slopes(array: Array, lower: float, upper: float, draws: Any) -> Any:
    """1, or where numbers are negative, or zero, a slope that is drawn for each of them."""
    below = array <= 0
    if not is_plain(array):
        drawn = draws.uniform(array.shape, np.float64, lower, upper)
        return np.where(below, drawn, 1.0).astype(array.dtype)
    found = np.ones(array.shape)
    kind = np.float64 if array.dtype == np.float64 else np.float32
    lower, upper = float(kind(lower)), float(kind(upper))
    unit = draws.uniform((np.count_nonzero(below),), np.float64, 0, 1)
    found[below] = unit * (upper - lower) + lower
    return found.astype(array.dtype)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
           *, generator: Generator | None = None) -> Any:
    """rrelu, written into its input.

    >>> import mutagrad as mg
    >>> mg.rrelu_(mg.tensor([-4., 2.]), 0.25, 0.25)
    tensor([-1.,  2.])
    """
    return rrelu(input, lower, upper, training, inplace=True, generator=generator)


# --------------------------------------------------------------------------------------------------------- exponentials

def _elu(a: Array, alpha: float, scale: float, input_scale: float) -> Any:
    below = at_most(a, 0)
    found = np.expm1(below if input_scale == 1 else below * input_scale)
    found = found if alpha * scale == 1 else found * (alpha * scale)
    above = at_least(a, 0)
    return found + (above if scale == 1 else above * scale)


def _elu_rule(xp: Any, g: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """The slope of the bent piece, which for positive x is that at 0, and the difference to the straight piece's."""
    bent = alpha * scale * input_scale
    slope = xp.exp(xp.clamp(x, None, 0.0) * input_scale)
    slope = slope if bent == 1 else slope * bent
    return g * (slope if bent == scale else slope + xp.as_float(x > 0, g) * (scale - bent))


elu_values = elementwise("elu", _elu, settings=("alpha", "scale", "input_scale"),
                         x=lambda xp, g, x, alpha, scale, input_scale: _elu_rule(xp, g, x, alpha, scale, input_scale))
# Where a network's activations keep mean 0 and variance 1.
SELU = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where it is positive, `alpha * (exp(x) - 1)` elsewhere.

    >>> import mutagrad as mg
    >>> mg.nn.functional.elu(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return elu_values(floating(input, "elu"), alpha, 1.0, 1.0, out=input if inplace else None)


def elu_(input: Tensor, alpha: float = 1.0) -> Any:
    """elu, written into its input.

    >>> import mutagrad as mg
    >>> mg.nn.functional.elu_(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.8647,  0.5000,  3.0000])
    """
    return elu(input, alpha, inplace=True)


def selu(input: Tensor, inplace: bool = False) -> Any:
    """elu, scaled so that deep networks keep mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.selu(mg.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    alpha, scale = SELU
    return elu_values(floating(input, "selu"), alpha, scale, 1.0, out=input if inplace else None)


def selu_(input: Tensor) -> Any:
    """selu, written into its input.

    >>> import mutagrad as mg
    >>> mg.selu_(mg.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return selu(input, inplace=True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Any:
    """x where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere: smooth for every alpha.

    >>> import mutagrad as mg
    >>> mg.celu(mg.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    if alpha == 0:
        raise BadValue("celu: alpha must not be 0", why="x is divided by it", fix="relu(x)")
    return elu_values(floating(input, "celu"), alpha, 1.0, 1 / alpha, out=input if inplace else None)


def celu_(input: Tensor, alpha: float = 1.0) -> Any:
    """celu, written into its input.

    >>> import mutagrad as mg
    >>> mg.celu_(mg.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """
    return celu(input, alpha, inplace=True)


def _sigmoid_rule(xp: Any, g: Any, x: Any) -> Any:
    share = xp.sigmoid(x)
    return g * (share * (1 + x * (1 - share)))


def _mish_factor(xp: Any, x: Any) -> Any:
    """tanh(log(1 + exp(x))), as a fraction of polynomials in exp(x); from 20 on it is 1."""
    e = xp.exp(xp.clamp(x, None, 20.0))
    n = e * (e + 2)
    return n / (n + 2)


def _mish_rule(xp: Any, g: Any, x: Any) -> Any:
    factor = _mish_factor(xp, x)
    return g * (factor + x * xp.sigmoid(x) * (1 - factor * factor))


def _softplus(a: Array, beta: float, bound: float) -> Any:
    scaled = a * beta
    return choose(scaled > bound, a, np.log1p(np.exp(at_most(scaled, bound))) / beta)


silu_values = elementwise("silu", lambda a: a / (1 + np.exp(-a)), x=_sigmoid_rule)
mish_values = elementwise("mish", lambda a: a * _mish_factor(RAW, a), x=_mish_rule)
softplus_values = elementwise("softplus", _softplus, settings=("beta", "bound"),
                              x=lambda xp, g, x, beta, bound: xp.where(x * beta > bound, g, g * xp.sigmoid(x * beta)))
logsigmoid_values = elementwise("logsigmoid", lambda a: at_most(a, 0) - np.log1p(np.exp(-np.abs(a))),
                                x=lambda xp, g, x: g * xp.sigmoid(-x))


def silu(input: Tensor, inplace: bool = False) -> Any:
    """`x * sigmoid(x)`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.silu(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.2384,  0.3112,  2.8577])
    """
    return silu_values(floating(input, "silu", "fc"), out=input if inplace else None)


def mish(input: Tensor, inplace: bool = False) -> Any:
    """`x * tanh(softplus(x))`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.mish(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.2525,  0.3752,  2.9865])
    """
    return mish_values(floating(input, "mish"), out=input if inplace else None)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Any:
    """`log(1 + exp(beta * x)) / beta`; x itself where beta * x is above the threshold.

    >>> import mutagrad as mg
    >>> mg.nn.functional.softplus(mg.tensor([-2., 0.5, 3.]))
    tensor([0.1269, 0.9741, 3.0486])
    """
    return softplus_values(floating(input, "softplus"), beta, threshold, out=out)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the logarithm of sigmoid, without underflow.

    >>> import mutagrad as mg
    >>> mg.nn.functional.logsigmoid(mg.tensor([-2., 0.5, 3.]))
    tensor([-2.1269, -0.4741, -0.0486])
    """
    return logsigmoid_values(floating(input, "logsigmoid"), out=out)


def softsign(input: Tensor) -> Any:
    """`x / (1 + |x|)`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.softsign(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.6667,  0.3333,  0.7500])
    """
    x = tensor_argument(input, "softsign")
    return x / (RECORDED.abs(x) + 1)


def tanhshrink(input: Tensor) -> Any:
    """`x - tanh(x)`.

    >>> import mutagrad as mg
    >>> mg.nn.functional.tanhshrink(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.0360,  0.0379,  2.0049])
    """
    return tensor_argument(input, "tanhshrink") - tanh(input)


def _halves(a: Array, dim: int) -> Any:
    """The array in rows of which the first half belongs to the second; None where it does not lie so."""
    if not a.flags.c_contiguous:
        return None
    return a.reshape(math.prod(a.shape[:dim]), -1) if a.size else None


def _glu(a: Array, dim: int) -> Any:
    n = a.shape[dim] // 2
    rows = _halves(a, dim)
    if rows is not None and (loop := rows_of(rows, gates.gated)) is not None:
        out = np.empty((*a.shape[:dim], n, *a.shape[dim + 1:]), a.dtype)
        found = out.reshape(len(rows), -1)
        loop.share(len(rows), a.size, rows, found)
        return out
    before = (slice(None),) * dim
    first, second = a[before + (slice(n),)], a[before + (slice(n, None),)]
    if a.dtype.char in "fd" and first.size >= large.LARGE and is_plain(a):
        return large.evaluate(_gated, (first, second), (), first.shape, a.dtype)
    return _gated(first, second)


def _gated(a: Array, b: Array) -> Any:
    return a * RAW.sigmoid(b)


def _gated_back(a: Any, b: Any, g: Any) -> tuple[Any, Any]:
    share = RAW.sigmoid(b)
    return g * share, g * a * share * (1 - share)


def _glu_rule(xp: Any, g: Any, x: Any, dim: int) -> Any:
    n = x.shape[dim] // 2
    rows = _halves(x, dim) if xp is RAW else None
    if rows is not None and g.dtype is x.dtype and g.flags.c_contiguous and (
            loop := rows_of(rows, gates.gated_back)) is not None and is_plain(g):
        out, slope = np.empty(rows.shape, x.dtype), g.reshape(len(rows), -1)
        loop.share(len(rows), x.size, rows, slope, out)
        return out.reshape(x.shape)
    if rows is not None and g.dtype is x.dtype and x.dtype.char in "fd" and g.size >= large.LARGE and is_plain(g):
        before, out = (slice(None),) * dim, np.empty(x.shape, x.dtype)
        a, b, *slopes = (v[before + (part,)] for v in (x, out) for part in (slice(n), slice(n, None)))
        if pieces.run(_gated_back, lambda given: _gated_back(*given), (a, b, g), None, slopes):
            return out
    first, share = xp.narrow(x, dim, 0, n), xp.sigmoid(xp.narrow(x, dim, n, n))
    return xp.join([g * share, g * first * share * (1 - share)], dim)


glu_values = primitive("glu", _glu, settings=("dim",), x=_glu_rule)


def glu(input: Tensor, dim: int = -1) -> Any:
    """Return the first half of a dimension times the sigmoid of the second.

    >>> import mutagrad as mg
    >>> mg.nn.functional.glu(mg.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """
    floating(input, "glu")
    if not input._array.ndim:
        raise ShapeError("glu: a 0-d tensor has no dimension to halve", fix="glu(x.reshape(2))")
    dim = whole_dim(dim, input._array.ndim, "glu")
    size = input._array.shape[dim]
    if size % 2:
        raise ShapeError(f"glu: dimension {dim} of shape {input._array.shape} cannot be halved",
                         why=f"{size} is odd", fix="x[:-1]")
    return glu_values(input, dim)


# ----------------------------------------------------------------------------------------------------------------- gelu

# atanh(erf(x / sqrt(2))) / x as a polynomial in x squared, fitted for the smallest error of gelu itself, which is below
# 7e-8: what single precision has to give. Further out it keeps growing, and its tanh is 1. With NumPy's vectorized tanh
# it takes a tenth of the time of SciPy's erf, but for a few elements, where the number of calls counts.
_NORMAL = (1.80528304e-09, -1.33432767e-07, 3.96890675e-06, -5.52387896e-05,
           -3.31342908e-05, 3.63342892e-02, 7.97884214e-01)
_FEW = 512
_TINY = 1e-30


def _normal_share(a: Array) -> Any:
    """The share of a normal distribution that lies below a: a fresh array."""
    if a.dtype.char != "f" or a.size < _FEW:
        return 0.5 * (1 + _erf(a * math.sqrt(0.5)))
    squares = a * a
    found = polynomial(_NORMAL, squares)
    found *= a
    np.tanh(found, out=found)
    found += 1
    found *= np.float32(0.5)
    return found


def _with_dimensions(compute: Callable[..., Array]) -> Any:
    """`compute` may work in place, which NumPy's scalars cannot, nor one element that stands for many."""
    def wide(*values: Any) -> Any:
        most = max([v for v in values if v is not None], key=lambda v: v.size)
        first, *others = [v if v is None else np.atleast_1d(v) for v in values]
        if most is not values[0]:
            first = np.broadcast_to(first, np.shape(most))
        return compute(first, *others).reshape(np.shape(most))

    return wide


def _gelu(a: Array) -> Any:
    return a * (_erf(a * a.dtype.type(math.sqrt(0.5))) + 1) * a.dtype.type(0.5)


def _gelu_slope(a: Array, out: Any, g: Array) -> Any:
    share = (_erf(a * a.dtype.type(math.sqrt(0.5))) + 1) * a.dtype.type(0.5)
    return g * (share + a * np.exp(a * a * a.dtype.type(-0.5)) * a.dtype.type(1 / math.sqrt(2 * math.pi)))


def _gelu_in_place(a: Array) -> Any:
    found = _normal_share(a)
    found *= a
    return found


def _gelu_rule(a: Array, out: Array | None, g: Array) -> Array:
    """The slope is the share and a times the density; the share is `out / a`, a tenth of the work of computing it.

    What comes after has mostly saved the result, too. One array is all that it takes: this is where training a
    transformer needs the most memory.
    """
    found = a * a
    found *= -0.5
    np.exp(found, out=found)
    found *= 1 / math.sqrt(2 * math.pi)
    found *= a
    found *= a
    found += _gelu_in_place(a) if out is None else out
    found /= a
    found[np.abs(a) < _TINY] = 0.5  # zero, or so small that half of it is not
    found *= g
    return found


def _gelu_rule_recorded(x: Tensor, out: Any, g: Tensor) -> Any:
    share = 0.5 * (1 + RECORDED.erf(x * math.sqrt(0.5)))
    return g * (share + x * RECORDED.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi)))


RAW.gelu_rule, RECORDED.gelu_rule = _gelu_slope, _gelu_rule_recorded
kernel("gelu_rule")(_with_dimensions(_gelu_rule))
_CUBE, _SCALE = 0.044715, math.sqrt(2 / math.pi)


def _gelu_bend(xp: Any, x: Any) -> Any:
    return xp.tanh(x * (x * x * _CUBE + 1) * _SCALE)


def _gelu_tanh_rule(xp: Any, g: Any, x: Any) -> Any:
    bend = _gelu_bend(xp, x)
    return g * (0.5 * (1 + bend) + x * (1 - bend * bend) * (x * x * (3 * _CUBE) + 1) * (0.5 * _SCALE))


gelu_values = elementwise("gelu", _gelu, x=lambda xp, g, x, out: xp.gelu_rule(x, out, g))
# Of floats of two bytes the result is rounded so far that the slope does not come from it.
gelu_short_values = elementwise("gelu_short", _gelu, x=lambda xp, g, x: xp.gelu_rule(x, None, g))
kernel("gelu")(_with_dimensions(_gelu_in_place))
kernel("gelu_short")(_with_dimensions(_gelu_in_place))
gelu_tanh_values = elementwise("gelu_tanh", lambda a: a * (1 + _gelu_bend(RAW, a)) * 0.5, x=_gelu_tanh_rule)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Any:
    """x times the share of a normal distribution that lies below x; `approximate="tanh"` for the formula with tanh.

    >>> import mutagrad as mg
    >>> mg.nn.functional.gelu(mg.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """
    forms = {"none": gelu_values, "tanh": gelu_tanh_values}
    if approximate not in forms:
        raise bad_choice(approximate, str,
                         f"gelu: approximate argument must be either none or tanh, got {approximate!r}",
                         fix="gelu(x, approximate='tanh')")
    short = floating(input, "gelu")._array.dtype.char in "eE" and approximate == "none"
    return (gelu_short_values if short else forms[approximate])(input, out=out)


# -------------------------------------------------------------------------------------------------------------- softmax

def _softmax_dim(name: str, x: Tensor, dim: int | None, stacklevel: int) -> int:
    """Without a dimension PyTorch picks one by the number of dimensions, and says that it should be given."""
    if dim is not None:
        return dim
    warnings.warn(f"Implicit dimension choice for {name}: no dim was given, and one is picked by the number of "
                  "dimensions. Give dim=-1.", stacklevel=stacklevel)
    return 0 if tensor_argument(x, name)._array.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """exp(x) normalised to sum to one along a dimension.

    >>> import mutagrad as mg
    >>> mg.nn.functional.softmax(mg.zeros(4), dim=0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return softmaxes.softmax(tensor_argument(input, "softmax"),
                             _softmax_dim("softmax", input, dim, _stacklevel), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """softmax of -x.

    >>> import mutagrad as mg
    >>> mg.nn.functional.softmin(mg.tensor([0., 1.]), dim=0)
    tensor([0.7311, 0.2689])
    """
    return softmaxes.softmax(-tensor_argument(input, "softmin"),
                             _softmax_dim("softmin", input, dim, _stacklevel), dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Any:
    """Return the logarithm of softmax, without underflow.

    >>> import mutagrad as mg
    >>> mg.nn.functional.log_softmax(mg.tensor([0., 1.]), dim=0)
    tensor([-1.3133, -0.3133])
    """
    return softmaxes.log_softmax(tensor_argument(input, "log_softmax"),
                                 _softmax_dim("log_softmax", input, dim, _stacklevel), dtype=dtype)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType) -> Any:
    """Return the adjoint of softmax's input, out of its result and the result's adjoint."""
    g, y = tensor_argument(grad_output, "_softmax_backward_data"), tensor_argument(output, "_softmax_backward_data")
    return to_dtype(y * (g - total(g * y, dim, True)), input_dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1,
                   *, generator: Generator | None = None) -> Any:
    """Draw a choice along a dimension with probabilities softmax(logits), softened by `tau` to be differentiable.

    `hard` gives the choice itself, and the gradient of the soft one.

    >>> import mutagrad as mg
    >>> mg.nn.functional.gumbel_softmax(mg.zeros(3), hard=True).sum().item()
    1.0
    """
    array = floating(logits, "gumbel_softmax")._array
    if eps != 1e-10:
        warnings.warn("gumbel_softmax: eps has no effect", stacklevel=2)
    noise = make(-silently(np.log, source(generator).exponential(array.shape, array.dtype, 1.0)))
    soft = softmaxes.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    found = np.atleast_1d(soft._array)
    dim = whole_dim(dim, array.ndim, "gumbel_softmax")
    chosen = np.zeros_like(found)
    np.put_along_axis(chosen, np.argmax(found, dim, keepdims=True), 1, dim)
    return make((chosen - found).reshape(array.shape)) + soft


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Any:
    """x divided by its p-norm along a dimension, or by eps where that is larger.

    >>> import mutagrad as mg
    >>> mg.nn.functional.normalize(mg.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    return RECORDED.div(input, clamp(norm(tensor_argument(input, "normalize"), p, dim, True), eps), out=out)
