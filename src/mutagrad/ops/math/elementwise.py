"""Operations on corresponding elements: arithmetic, functions, comparisons, logic.

`g` is the incoming adjoint, `out` the result; a rule saves only what its parameters name.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf, log as _ln, pi
from typing import Any

from ...arrays import np, quotients
from ...arrays.bfloat16 import SHORT, converted
from ...arrays.copies import small_window
from ...arrays.kinds import check_range, is_plain, perhaps, unknown
from ...arrays.numpy import at_least, at_most, choose, clip, silently
from ...arrays.parallel import AS_UFUNC, LARGE
from ...arrays.places import nonzero
from ...arrays.scipy import erf as _erf
from ...base.errors import BadArgument, BadValue, DivisionByZero, DTypeError, bad_choice, may_need_much
from ...base.modes import mode
from ...base.operands import Array, kind_name
from ...core.codegen import elementwise, in_place, primitive
from ...core.dtypes import BOOL, FLOAT
from ...core.evidence import cut
from ...core.factory import laid_out_alike, make
from ...core.number import PLAIN, number
from ...core.op import RAW, RECORDED, Op, same, zero
from ...core.promote import as_operand, operand_dtype
from ...core.storage import TensorBase as Tensor
from ...core.write import check_stays, into

Value = Tensor | complex  # int and float pass for complex where types are checked

# --------------------------------------------------------------------------------------------------------- element type

_cast = primitive("cast_float", lambda a, to, source: cast_array(a, to), settings=("to", "source"),
                  x=lambda xp, g, source: xp.cast(g, source))


def cast_array(a: Array, to: Any) -> Any:
    """A copy of another element type; what is out of its range becomes inf or wraps, silently, as in PyTorch."""
    return converted(a.real if a.dtype.kind == "c" and to.kind not in "cb" else a, to)


@may_need_much
def cast(x: Tensor, to: Any) -> Any:
    """A copy of another element type (an array type); to a float or complex type it is differentiable."""
    source = x._array.dtype
    if to.kind in "fcV" and source.kind in "fcV":
        return laid_out_alike(lambda x: _cast(x, to, source), x)
    cut("cast", x)
    return laid_out_alike(lambda x: make(cast_array(x._array, to)), x)


RAW.cast, RECORDED.cast = cast_array, cast

RAW.zeros_like = np.zeros_like

# ----------------------------------------------------------------------------------------------------------- arithmetic


def _divisible(name: str, function: Callable[..., Array]) -> Any:
    """Integers have no infinity to give: PyTorch refuses what NumPy makes 0. Booleans are not divided."""
    def error(_: Any, where: Any) -> DivisionByZero:
        return DivisionByZero(f"{name}: ZeroDivisionError: an integer was divided by zero",
                              why="integers have no infinity", fix="x.float() / y, or y.clamp(min=1)", where=where)

    def check(a: Array, b: Array) -> None:
        if b.dtype.kind in "iu" and a.size:
            if unknown(b):
                check_range((b == 0).astype(np.int8), 0, 0, error)
            elif quotients.has_zero(b):
                raise error(0, None)
        if b.dtype.kind == "b":
            raise TypeError  # it becomes the usual error about types

    def forward(a: Array, b: Array) -> Any:
        check(a, b)
        return function(a, b)

    forward.check, forward.of = check, function  # type: ignore[attr-defined]
    return forward


def _trunc_quotient(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    return quotients.trunc_divide(a, b)


def _power(a: Array, b: Array) -> Any:
    """Integers to negative powers are 0, but for 1 and -1, as in PyTorch (NumPy has no answer); booleans stay so."""
    if a.dtype.kind == "b":
        return a | ~b
    if a.dtype.kind == "i" and perhaps(b < 0):
        whole = np.power(a, np.abs(b))
        return np.where((b >= 0) | (np.abs(a) == 1), whole, np.zeros_like(whole))
    if not b.ndim and a.ndim and is_plain(b) and a.dtype.char in "fd":
        few = _FEW_FACTORS.get(float(b))
        if few is not None:
            return few(a)
    return np.power(a, b)


def _logaddexp(a: Array, b: Array) -> Any:
    """As NumPy's, which goes one by one; the difference of two that are infinite alike is 0."""
    if a.dtype.kind != "f":
        return np.logaddexp(a, b)
    larger = np.maximum(a, b)
    return larger + np.log1p(np.exp(choose(a == b, a.dtype.type(0), np.minimum(a, b) - larger)))


def _third_power(a: Array) -> Array:
    a = small_window(a)
    found = a * a
    found *= a
    return found


def _fourth_power(a: Array) -> Array:
    found = a * a
    found *= found  # of an array without dimensions, NumPy's products are numbers, which are no place for results
    return found


# Powers that are a few products, in a hundredth of the time that NumPy takes over logarithms of negative numbers.
_FEW_FACTORS = {1.0: np.copy, 2.0: np.square, 3.0: _third_power, 4.0: _fourth_power,
                0.5: np.sqrt, -0.5: lambda a: np.reciprocal(np.sqrt(a) + 0),
                -1.0: np.reciprocal, -2.0: lambda a: np.reciprocal(a * a)}


def _power_by_base(xp: Any, g: Any, x: Any, y: Any) -> Any:
    """The derivative by the base, which is 0 where the exponent is."""
    if xp is RAW and not y.ndim and is_plain(y) and y.dtype.char in "fd" and (exponent := float(y)):
        few = _FEW_FACTORS.get(exponent - 1)
        return g * y * (np.power(x, y - 1) if few is None else few(x))
    return xp.where(y == 0, 0.0, g * y * xp.pow(x, y - 1))


def _power_of_base(xp: Any, g: Any, out: Any, x: Any, flat: Any) -> Any:
    """The derivative by the exponent; `flat` where it is zero because a base of zero stays zero."""
    return xp.where(flat, 0.0, g * out * xp.log(xp.where(flat, 1.0, x)))


add_values = elementwise("add", np.add, x=same, y=same)
sub_values = elementwise("sub", np.subtract, x=same, y=lambda g: -g)
mul = elementwise("mul", np.multiply, x=lambda g, y: g * y, y=lambda g, x: g * x)
div_values = elementwise("div", np.true_divide, promotes="float",
                         x=lambda g, y: g / y, y=lambda g, y, out: -(g / y) * out)
pow_values = elementwise(
    "pow", lambda a, b: _power(a, b),
    x=lambda xp, g, x, y: _power_by_base(xp, g, x, y),
    y=lambda xp, g, x, y, out: _power_of_base(xp, g, out, x, (x == 0) & xp.not_negative(y)))
# Of a complex number, its real part.
RAW.not_negative, RECORDED.not_negative = lambda a: a.real >= 0, lambda x: make(x._array.real >= 0)
remainder = elementwise("remainder", _divisible("remainder", quotients.remainder),
                        x=same, y=lambda xp, g, x, y: -g * xp.floor_divide(x, y))
fmod = elementwise("fmod", _divisible("fmod", quotients.fmod), x=same, y=lambda xp, g, x, y: -g * xp.trunc(x / y))
floor_divide = elementwise("floor_divide", _divisible("floor_divide", quotients.floor_divide), x=zero, y=zero)
trunc_divide = elementwise("trunc_divide", _divisible("trunc_divide", lambda a, b: _trunc_quotient(a, b)),
                           x=zero, y=zero)
neg = elementwise("neg", np.negative, x=lambda g: -g)
# NumPy 2.4's np.negative(a, out=b) is wrong for some strides (x[:, 0] of eight doubles a row), but not into new memory.
neg.op.into = False
reciprocal = elementwise("reciprocal", np.reciprocal, promotes="float", x=lambda g, out: -g * out * out)
square_values = elementwise("square", np.square, x=lambda g, x: g * (x + x))
abs = elementwise("abs", np.abs, x=lambda xp, g, x: g * xp.sgn(x))
sign = elementwise("sign", lambda a: _sign(a), promotes="real", x=zero)
sgn = elementwise("sgn", lambda a: _sign(a), x=lambda xp, g, x, out: _sgn_rule(xp, g, x, out))
conj_physical = elementwise("conj", lambda a: np.conjugate(a) if a.dtype.kind == "c" else a.copy(),
                            x=lambda xp, g: xp.conj(g))
positive = elementwise("positive", np.positive, x=same)


def conj(input: Tensor) -> Any:
    """The conjugates of complex numbers; of real ones the tensor itself.

    >>> import mutagrad as mg
    >>> mg.conj(mg.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    return input if isinstance(input, Tensor) and input._array.dtype.kind != "c" else conj_physical(input)


def _sign(a: Array) -> Any:
    """As NumPy's, but 0 for nan, and booleans are their own sign."""
    if a.dtype.kind == "b":
        return a.copy()
    if a.dtype.kind != "f":
        return np.sign(a)
    return (a > 0).astype(a.dtype) - (a < 0).astype(a.dtype)


RAW.is_complex, RECORDED.is_complex = lambda a: a.dtype.kind == "c", lambda x: x._array.dtype.kind == "c"


def _sgn_rule(xp: Any, g: Any, x: Any, out: Any) -> Any:
    """Zero for real numbers; a complex one of size r turns by what of g / r is not along it."""
    if not xp.is_complex(x):
        return xp.zeros_like(g)
    r = xp.abs(x)
    turned = g / xp.where(r == 0, 1.0, r)
    along = turned * out
    return xp.where(r == 0, 0.0, turned - 0.5 * (along + xp.conj(along)) * xp.conj(out))


# ------------------------------------------------------------------------------------------------ powers and logarithms

# By x, not by the result: of a negative number that is nan, which passes through the rule without ringing the alarm.
sqrt = elementwise("sqrt", np.sqrt, promotes="float", x=lambda xp, g, x: 0.5 * g / xp.sqrt(x))
rsqrt = elementwise("rsqrt", lambda a: 1 / np.sqrt(a), promotes="float", x=lambda xp, g, x: -0.5 * g / (x * xp.sqrt(x)))
exp = elementwise("exp", np.exp, promotes="float", x=lambda g, out: g * out)
exp2 = elementwise("exp2", np.exp2, promotes="float", x=lambda g, out: g * out * _ln(2))
expm1 = elementwise("expm1", np.expm1, promotes="float", x=lambda g, out: g * (out + 1))
log = elementwise("log", np.log, promotes="float", x=lambda g, x: g / x)
log2 = elementwise("log2", np.log2, promotes="float", x=lambda g, x: g / (x * _ln(2)))
log10 = elementwise("log10", np.log10, promotes="float", x=lambda g, x: g / (x * _ln(10)))
log1p = elementwise("log1p", np.log1p, promotes="float", x=lambda g, x: g / (x + 1))
logaddexp = elementwise("logaddexp", lambda a, b: _logaddexp(a, b), promotes="float",
                        x=lambda xp, g, x, y: g / (1 + xp.exp(y - x)), y=lambda xp, g, x, y: g / (1 + xp.exp(x - y)))
hypot = elementwise("hypot", np.hypot, promotes="float",
                    x=lambda g, x, out: g * (x / out), y=lambda g, y, out: g * (y / out))

# ----------------------------------------------------------------------------------------- trigonometric and hyperbolic

sin = elementwise("sin", np.sin, promotes="float", x=lambda xp, g, x: g * xp.cos(x))
cos = elementwise("cos", np.cos, promotes="float", x=lambda xp, g, x: -g * xp.sin(x))
tan = elementwise("tan", np.tan, promotes="float", x=lambda g, out: g * (1 + out * out))
asin = elementwise("asin", np.arcsin, promotes="float", x=lambda xp, g, x: g * xp.rsqrt(1 - x * x))
acos = elementwise("acos", np.arccos, promotes="float", x=lambda xp, g, x: -g * xp.rsqrt(1 - x * x))
atan = elementwise("atan", np.arctan, promotes="float", x=lambda g, x: g / (1 + x * x))
atan2 = elementwise("atan2", np.arctan2, promotes="float",
                    x=lambda xp, g, x, y: g * _over_square(xp, y, x, y),
                    y=lambda xp, g, x, y: -g * _over_square(xp, x, x, y))
sinh = elementwise("sinh", np.sinh, promotes="float", x=lambda xp, g, x: g * xp.cosh(x))
cosh = elementwise("cosh", np.cosh, promotes="float", x=lambda xp, g, x: g * xp.sinh(x))
tanh = elementwise("tanh", np.tanh, promotes="float", x=lambda g, out: g * (1 - out * out))
asinh = elementwise("asinh", np.arcsinh, promotes="float", x=lambda xp, g, x: g * xp.rsqrt(x * x + 1))
acosh = elementwise("acosh", np.arccosh, promotes="float", x=lambda xp, g, x: g * xp.rsqrt(x - 1) * xp.rsqrt(x + 1))
atanh = elementwise("atanh", np.arctanh, promotes="float", x=lambda g, x: g / (1 - x * x))
deg2rad = elementwise("deg2rad", lambda a: a * (pi / 180), promotes="float", x=lambda g: g * (pi / 180))
rad2deg = elementwise("rad2deg", lambda a: a * (180 / pi), promotes="float", x=lambda g: g * (180 / pi))


def _over_square(xp: Any, part: Any, x: Any, y: Any) -> Any:
    """part / (x² + y²), and 0 at the origin."""
    square = x * x + y * y
    return part / xp.where(square == 0, 1.0, square)


# --------------------------------------------------------------------------------------------- activations and the like

sigmoid = elementwise("sigmoid", lambda a: 1 / (1 + np.exp(-a)), promotes="float", x=lambda g, out: g * out * (1 - out))
relu = elementwise("relu", lambda a: at_least(a, 0), promotes="real", warns=False,
                   x=lambda xp, g, out: g * xp.slope(out != 0, out))
slope = elementwise("slope", lambda mask, a: mask.astype(a.dtype), promotes="mask", inputs=("mask", "x"), mask=None,
                    x=zero)
erf = elementwise("erf", _erf, promotes="float", x=lambda xp, g, x: g * xp.exp(-x * x) * (2 / pi**0.5))
logit_values = elementwise("logit", lambda a: np.log(a / (1 - a)), promotes="float",
                           x=lambda xp, g, x: xp.where((x >= 0) & (x <= 1), g / (x * (1 - x)), float("nan")))

# The slope of one of two straight pieces: a number that depends on x, though its derivative is zero. So second
# derivatives of relu are zero, as PyTorch's are, where a comparison alone would say that there are none.
RAW.slope, RECORDED.slope = lambda mask, x: mask, slope

# --------------------------------------------------------------------------------------------------- piecewise constant



def _rounding(function: Callable[..., Array]) -> Any:
    """Integers are round already (older NumPy would turn them into floats)."""
    return lambda a: a.copy() if a.dtype.kind in "iub" else function(a)


floor = elementwise("floor", _rounding(np.floor), x=zero)
ceil = elementwise("ceil", _rounding(np.ceil), x=zero)
trunc = elementwise("trunc", _rounding(np.trunc), x=zero)
round_values = elementwise("round", lambda a, decimals: a.copy() if a.dtype.kind == "b" else np.round(a, decimals),
                           settings=("decimals",), x=zero)
frac = elementwise("frac", lambda a: a - np.trunc(a), x=same)

# --------------------------------------------------------------------------------------------------- choosing, bounding

where_values = elementwise("where", choose, promotes="mask", warns=False, inputs=("mask", "x", "y"), mask=None,
                           x=lambda xp, g, mask: xp.where(mask, g, 0.0), y=lambda xp, g, mask: xp.where(mask, 0.0, g))
maximum = elementwise("maximum", np.maximum, promotes="real", x=lambda xp, g, x, y: _share(xp, g, x < y, x == y),
                      y=lambda xp, g, x, y: _share(xp, g, y < x, x == y))
minimum = elementwise("minimum", np.minimum, promotes="real", x=lambda xp, g, x, y: _share(xp, g, x > y, x == y),
                      y=lambda xp, g, x, y: _share(xp, g, y > x, x == y))
fmax = elementwise("fmax", np.fmax, promotes="real", x=lambda xp, g, x, y: xp.where((x >= y) | xp.isnan(y), g, 0.0),
                   y=lambda xp, g, x, y: xp.where((x >= y) | xp.isnan(y), 0.0, g))
fmin = elementwise("fmin", np.fmin, promotes="real", x=lambda xp, g, x, y: xp.where((x <= y) | xp.isnan(y), g, 0.0),
                   y=lambda xp, g, x, y: xp.where((x <= y) | xp.isnan(y), 0.0, g))
clamp_values = elementwise("clamp", lambda a, low, high: _clamp(a, low, high), promotes="real", warns=False,
                           settings=("low", "high"),
                           x=lambda xp, g, x, low, high: xp.where(_inside(x, low, high), g, 0.0))

raised = elementwise("clamp_min", np.maximum, promotes="real",
                     x=lambda xp, g, x, y: xp.where(_above(y, x), 0.0, g),
                     y=lambda xp, g, x, y: xp.where(_above(y, x), g, 0.0))
lowered = elementwise("clamp_max", np.minimum, promotes="real",
                      x=lambda xp, g, x, y: xp.where(_below(y, x), 0.0, g),
                      y=lambda xp, g, x, y: xp.where(_below(y, x), g, 0.0))


def _above(bound: Any, x: Any) -> Any:
    """Where the bound takes the place of x: a bound that is nan always does."""
    return (bound > x) | (bound != bound)


def _below(bound: Any, x: Any) -> Any:
    return (bound < x) | (bound != bound)


def _clamp(a: Array, low: Any, high: Any) -> Any:
    return at_most(a, high) if low is None else at_least(a, low) if high is None else np.clip(a, low, high)


AS_UFUNC.update({
    relu.op.forward: lambda a: (clip, (a, 0, inf)),
    clamp_values.op.forward: lambda a, low, high: (
        clip, (a, -inf if low is None else low, inf if high is None else high)),
    **{f.op.forward: lambda a, ufunc=ufunc: (ufunc, (a,)) for f, ufunc in (
        (floor, np.floor), (ceil, np.ceil), (trunc, np.trunc))},
    round_values.op.forward: lambda a, decimals: None if decimals else (np.rint, (a,)),
    pow_values.op.forward: lambda a, b: (np.power, (a, b)) if b.ndim or float(b) not in _FEW_FACTORS
    else (np.square, (a,)) if b == 2 else None})


def _share(xp: Any, g: Any, loses: Any, ties: Any) -> Any:
    """Where two are equal, each gets half: the subgradient that PyTorch takes."""
    return xp.where(ties, g * 0.5, xp.where(loses, 0.0, g))


def _inside(x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


lerp_values = elementwise("lerp", lambda a, b, w: _lerp(a, b, w), inputs=("x", "y", "weight"),
                          x=lambda g, weight: g * (1 - weight), y=lambda g, weight: g * weight,
                          weight=lambda g, x, y: g * (y - x))
addcmul_values = elementwise("addcmul", lambda a, b, c, value: a + value * b * c, settings=("value",),
                             inputs=("x", "y", "z"),
                             x=same, y=lambda g, z, value: g * z * value, z=lambda g, y, value: g * y * value)
addcdiv_values = elementwise("addcdiv", lambda a, b, c, value: a + value * b / c, promotes="float", settings=("value",),
                             inputs=("x", "y", "z"),
                             x=same, y=lambda g, z, value: g / z * value,
                             z=lambda g, y, z, value: -g * (y / (z * z)) * value)


def _lerp(a: Array, b: Array, w: Array) -> Any:
    """Counted from the nearer end, so that a weight of 1 gives the other end itself, without rounding."""
    step, near = b - a, np.abs(w) < 0.5
    if not w.ndim and is_plain(w):
        return a + w * step if near else b - step * (1 - w)
    return choose(near, a, b) + choose(near, w, w - 1) * step


# ---------------------------------------------------------------------------------------- comparisons, logic, bits

eq = elementwise("eq", np.equal, inputs=("x", "y"))
ne = elementwise("ne", np.not_equal, inputs=("x", "y"))
lt = elementwise("lt", np.less, promotes="real", inputs=("x", "y"))
le = elementwise("le", np.less_equal, promotes="real", inputs=("x", "y"))
gt = elementwise("gt", np.greater, promotes="real", inputs=("x", "y"))
ge = elementwise("ge", np.greater_equal, promotes="real", inputs=("x", "y"))
logical_and = elementwise("logical_and", np.logical_and, inputs=("x", "y"))
logical_or = elementwise("logical_or", np.logical_or, inputs=("x", "y"))
logical_xor = elementwise("logical_xor", np.logical_xor, inputs=("x", "y"))
logical_not = elementwise("logical_not", np.logical_not, inputs=("x",))
bitwise_and = elementwise("bitwise_and", np.bitwise_and, inputs=("x", "y"))
bitwise_or = elementwise("bitwise_or", np.bitwise_or, inputs=("x", "y"))
bitwise_xor = elementwise("bitwise_xor", np.bitwise_xor, inputs=("x", "y"))
bitwise_not = elementwise("bitwise_not", np.invert, inputs=("x",))
bitwise_left_shift = elementwise("bitwise_left_shift", np.left_shift, inputs=("x", "y"))
bitwise_right_shift = elementwise("bitwise_right_shift", np.right_shift, inputs=("x", "y"))
isnan = elementwise("isnan", np.isnan, inputs=("x",))
isinf = elementwise("isinf", np.isinf, inputs=("x",))
isfinite = elementwise("isfinite", np.isfinite, inputs=("x",))
signbit = elementwise("signbit", np.signbit, inputs=("x",))
isclose_values = elementwise("isclose", np.isclose, settings=("rtol", "atol", "equal_nan"), inputs=("x", "y"))

# ------------------------------------------------------------------------------------- the same with PyTorch's settings


def _scaled(x: Any, y: Any, alpha: Any) -> Any:
    """alpha * y in the type of the sum, which alpha does not change."""
    if alpha.__class__ not in PLAIN:
        alpha = number(alpha)
    if alpha == 1:
        return y
    common = operand_dtype([as_operand(x, "add"), as_operand(y, "add")])
    if common.category < FLOAT and not isinstance(alpha, int):
        raise DTypeError(f"add: alpha={alpha!r} would make fractions of a sum of {common.name}",
                         why="alpha does not change the type of the sum", fix="x.float().add(y, alpha=alpha)")
    if common.category == BOOL:
        return y & bool(alpha)
    return mul(cast(y, common.array_type), alpha) if isinstance(y, Tensor) else y * alpha


def _old_order(name: str, setting: str, number: Any) -> Any:
    """PyTorch once had the number first, `p.add_(-lr, grad)`, and many optimizers are still written so: that number."""
    warnings.warn(f"This overload of {name} is deprecated, with the number before the tensors: give it as {setting}=",
                  UserWarning, stacklevel=3)
    return number


def add(input: Tensor, other: Value, tensor: Tensor | None = None, *, alpha: float = 1,
        out: Tensor | None = None) -> Any:
    """`x + alpha * y`.

    >>> import mutagrad as mg
    >>> mg.add(mg.ones(2), mg.ones(2), alpha=3)
    tensor([4., 4.])
    """
    if tensor is not None:
        other, alpha = tensor, _old_order("add", "alpha", other)
    return add_values(input, _scaled(input, other, alpha), out=out)


def sub(input: Value, other: Value, tensor: Tensor | None = None, *, alpha: float = 1,
        out: Tensor | None = None) -> Any:
    """`x - alpha * y`.

    >>> import mutagrad as mg
    >>> mg.sub(mg.tensor([5., 6.]), mg.tensor([1., 2.]), alpha=2)
    tensor([3., 2.])
    """
    if tensor is not None:
        other, alpha = tensor, _old_order("sub", "alpha", other)
    return sub_values(input, _scaled(input, other, alpha), out=out)


def rsub(input: Tensor, other: Value, *, alpha: float = 1) -> Any:
    """`y - alpha * x`.

    >>> import mutagrad as mg
    >>> mg.rsub(mg.tensor([1., 2.]), 10)
    tensor([9., 8.])
    """
    return sub(other, input, alpha=alpha)


_ROUNDING = {None: div_values, "floor": floor_divide, "trunc": trunc_divide}


def div(input: Tensor, other: Value, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Any:
    """`x / y`; `rounding_mode` "floor" or "trunc" rounds the quotient.

    >>> import mutagrad as mg
    >>> mg.div(mg.tensor([7., -7.]), 2)
    tensor([ 3.5000, -3.5000])
    >>> mg.div(mg.tensor([7., -7.]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode not in _ROUNDING:
        raise bad_choice(rounding_mode, str, f"div: rounding_mode {rounding_mode!r} is not None, 'trunc' or 'floor'",
                         fix="rounding_mode='floor'")
    return _ROUNDING[rounding_mode](input, other, out=out)


def square(input: Tensor, *, out: Tensor | None = None) -> Any:
    """`x * x`; booleans are counted, as in PyTorch.

    >>> import mutagrad as mg
    >>> mg.square(mg.tensor([1., -3.]))
    tensor([1., 9.])
    """
    is_bool = isinstance(input, Tensor) and input._array.dtype.kind == "b"
    return square_values(cast(input, np.dtype("int64")) if is_bool else input, out=out)


_POWERS = {2: square_values, 0.5: sqrt, -1: reciprocal, 1: positive}


def pow(input: Value, exponent: Value, *, out: Tensor | None = None) -> Any:
    """`x ** y`. The powers 2, 1/2 and -1 of float tensors go to the function that is exact and fast there.

    >>> import mutagrad as mg
    >>> mg.pow(mg.tensor([1., 2., 3.]), 2)
    tensor([1., 4., 9.])
    >>> mg.pow(2, mg.tensor([1., 2., 3.]))
    tensor([2., 4., 8.])
    """
    if (exponent.__class__ in (int, float) and exponent in _POWERS
            and isinstance(input, Tensor) and input._array.dtype.kind in "fV"):
        return _POWERS[exponent](input, out=out)
    if exponent.__class__ is int and exponent < 0 and isinstance(input, Tensor) and input._array.dtype.kind in "iu":
        raise DTypeError(f"pow: integers have no power {exponent}",
                         why="the result would be a fraction", fix="x.float() ** y")
    return pow_values(input, exponent, out=out)


def _bounds(name: str, low: Value | None, high: Value | None) -> tuple[Any, Any]:
    if low is None and high is None:
        raise BadValue(f"{name}: At least one of 'min' or 'max' must not be None", fix=f"x.{name}(min=0.0)")
    return None if low is None else as_operand(low, name), None if high is None else as_operand(high, name)


def clamp(input: Tensor, min: Value | None = None, max: Value | None = None, *, out: Tensor | None = None) -> Any:
    """`x` limited to between `min` and `max`, numbers or tensors; gradient flows where x is inside.

    >>> import mutagrad as mg
    >>> mg.tensor([-1., 0.5, 2.]).clamp(0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    min, max = _bounds("clamp", min, max)
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        if min is not None:
            input = raised(input, min, out=out if max is None else None)
        return input if max is None else lowered(input, max, out=out)
    return clamp_values(_beside(input, min, max), as_element(min, input), as_element(max, input), out=out)


def as_element(value: Any, x: Any) -> Any:
    """A number that elements of `x` are compared with, rounded as they are if they are floats of two bytes."""
    short = isinstance(value, float) and isinstance(x, Tensor) and x._array.dtype.char in SHORT
    return float(silently(np.array(value).astype, x._array.dtype)) if short else value


def _beside(x: Any, *numbers: Any) -> Any:
    """`x` as an operation with these settings computes it: integers meet a float as floats."""
    is_integer = isinstance(x, Tensor) and x._array.dtype.kind in "iub"
    meets_float = is_integer and any(isinstance(n, float) for n in numbers)
    return add_values(x, 0.0) if meets_float else x


def where(condition: Tensor, input: Value | None = None, other: Value | None = None,
          *, out: Tensor | None = None) -> Any:
    """Elements of `x` where the condition holds, else of `y`; with the condition alone, the indices where it holds.

    >>> import mutagrad as mg
    >>> mg.where(mg.tensor([True, False]), mg.tensor([1., 2.]), 0.)
    tensor([1., 0.])
    """
    if input is None and other is None:
        if out is not None:
            raise BadArgument("where: out= has no meaning with a condition alone",
                              why="the result is a tuple of indices", fix="mutagrad.where(x > 0, a, b, out=y)")
        return tuple(make(i) for i in nonzero(condition._array))
    if not isinstance(condition, Tensor) or condition._array.dtype.kind not in "bu":
        raise DTypeError("where: the condition must be a boolean tensor, "
                         f"not {getattr(condition, 'dtype', type(condition).__name__)}",
                         fix="mutagrad.where(x > 0, a, b)")
    if condition._array.dtype.kind == "u":
        condition = cast(condition, np.dtype(bool))
    return where_values(condition, input, other, out=out)


def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Any:
    """Nearest integer, halves to even, or nearest at so many decimals.

    >>> import mutagrad as mg
    >>> mg.round(mg.tensor([0.5, 1.5, 2.4]))
    tensor([0., 2., 2.])
    >>> mg.round(mg.tensor([2.345]), decimals=1)
    tensor([2.3000])
    """
    return round_values(input, decimals, out=out)


def lerp(input: Tensor, end: Tensor, weight: Value, *, out: Tensor | None = None) -> Any:
    """`x + weight * (end - x)`.

    >>> import mutagrad as mg
    >>> mg.lerp(mg.tensor([0., 10.]), mg.tensor([1., 20.]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    return lerp_values(input, end, weight, out=out)


def addcmul(input: Tensor, tensor1: Value, tensor2: Value, tensor: Tensor | None = None, *, value: float = 1,
            out: Tensor | None = None) -> Any:
    """`x + value * tensor1 * tensor2`.

    >>> import mutagrad as mg
    >>> mg.addcmul(mg.ones(2), mg.tensor([1., 2.]), mg.tensor([3., 4.]), value=2)
    tensor([ 7., 17.])
    """
    if tensor is not None:
        value, tensor1, tensor2 = _old_order("addcmul", "value", tensor1), tensor2, tensor
    return addcmul_values(_beside(input, value), tensor1, tensor2, value, out=out)


def addcdiv(input: Tensor, tensor1: Value, tensor2: Value, tensor: Tensor | None = None, *, value: float = 1,
            out: Tensor | None = None) -> Any:
    """`x + value * tensor1 / tensor2`.

    >>> import mutagrad as mg
    >>> mg.addcdiv(mg.ones(2), mg.tensor([1., 2.]), mg.tensor([4., 4.]), value=2)
    tensor([1.5000, 2.0000])
    """
    if tensor is not None:
        value, tensor1, tensor2 = _old_order("addcdiv", "value", tensor1), tensor2, tensor
    return addcdiv_values(input, tensor1, tensor2, value, out=out)


def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Any:
    """log(x / (1 - x)), with x first clamped to [eps, 1 - eps] if eps is given.

    >>> import mutagrad as mg
    >>> mg.logit(mg.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    """
    return logit_values(input if eps is None else clamp(input, eps, 1 - eps), out=out)


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether |x - y| <= atol + rtol * |y|, element by element.

    >>> import mutagrad as mg
    >>> mg.isclose(mg.tensor([1., 2.]), mg.tensor([1.000001, 2.1]))
    tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        raise BadValue(f"isclose: tolerances must not be negative, got rtol={rtol} and atol={atol}",
                       fix="mutagrad.isclose(x, y, rtol=1e-5)")
    return isclose_values(input, other, rtol, atol, equal_nan)


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements are equal within tolerances: |input - other| <= atol + rtol |other|.

    >>> import mutagrad as mg
    >>> mg.allclose(mg.tensor([1., 2.]), mg.tensor([1., 2.00001]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@may_need_much
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import mutagrad as mg
    >>> mg.equal(mg.tensor([1, 2]), mg.tensor([1, 2]))
    True
    """
    for x in (input, other):
        if not isinstance(x, Tensor):
            raise BadArgument(f"equal: expects two tensors, got {kind_name(x)}",
                              fix="mutagrad.equal(x, mutagrad.as_tensor(y))")
    return bool(input._array.shape == other._array.shape and np.array_equal(input._array, other._array))


# ------------------------------------------------------------------------------------------------------------ in place

add_values_, sub_values_, mul_ = map(in_place, (add_values, sub_values, mul))
div_values_, pow_values_ = map(in_place, (div_values, pow_values))


# `x += alpha * y` in one step, for what is recorded nowhere: in a history it is two.
_UPDATE = Op("add", lambda a, b, alpha: a + b * alpha, ("x", "y"), ("alpha",),
             {"x": same, "y": lambda g, alpha: g * alpha}, "any")


def _is_large_update(x: Any, y: Any, alpha: Any) -> bool:
    """Whether `x += alpha * y` is like a step of an optimizer: large, and in nobody's history."""
    return (alpha.__class__ in (float, int) and alpha != 1 and isinstance(x, Tensor) and isinstance(y, Tensor)
            and x._array.size >= LARGE and x._array.dtype is y._array.dtype and x._array.dtype.char in "fd"
            and not (mode.grad and (x._storage.writer is not None or y._storage.writer is not None)))


def add_(x: Tensor, other: Value, tensor: Tensor | None = None, *, alpha: float = 1) -> Any:
    """Add `alpha * other` to the tensor in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2.]).add_(mg.tensor([3., 4.]), alpha=2)
    tensor([ 7., 10.])
    """
    if tensor is not None:
        other, alpha = tensor, _old_order("add_", "alpha", other)
    if _is_large_update(x, other, alpha):
        return into(_UPDATE, x, (x, other), (alpha,))
    return add_values_(x, _scaled(x, other, alpha))


def sub_(x: Tensor, other: Value, tensor: Tensor | None = None, *, alpha: float = 1) -> Any:
    """Subtract `alpha * other` from the tensor in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([5., 6.]).sub_(mg.tensor([1., 2.]), alpha=2)
    tensor([3., 2.])
    """
    if tensor is not None:
        other, alpha = tensor, _old_order("sub_", "alpha", other)
    if _is_large_update(x, other, alpha):
        return into(_UPDATE, x, (x, other), (-alpha,))
    return sub_values_(x, _scaled(x, other, alpha))


def div_(x: Tensor, other: Value, *, rounding_mode: str | None = None) -> Any:
    """Divide the tensor in place, rounded as in `div`; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([7., -7.]).div_(2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    return div(x, other, rounding_mode=rounding_mode, out=x)


def pow_(x: Tensor, exponent: Value) -> Any:
    """Raise the tensor to a power in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2., 3.]).pow_(2)
    tensor([1., 4., 9.])
    """
    return pow(x, exponent, out=x)


def clamp_(x: Tensor, min: Value | None = None, max: Value | None = None) -> Any:
    """Write each element, kept between bounds, into the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([-1., 0.5, 2.]).clamp_(0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    check_stays("clamp_", x, min, max)
    return clamp(x, min, max, out=x)


def round_(x: Tensor, *, decimals: int = 0) -> Any:
    """Write each element, rounded to the nearest even number, into the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([0.4, 1.6]).round_()
    tensor([0., 2.])
    """
    return round(x, decimals=decimals, out=x)


def lerp_(x: Tensor, end: Tensor, weight: Value) -> Any:
    """Move the tensor in place towards `end`, by the share `weight`; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([0., 10.]).lerp_(mg.tensor([1., 20.]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    return lerp(x, end, weight, out=x)


def addcmul_(x: Tensor, tensor1: Value, tensor2: Value, tensor: Tensor | None = None, *, value: float = 1) -> Any:
    """Add `value * tensor1 * tensor2` to the tensor in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.ones(2).addcmul_(mg.tensor([1., 2.]), mg.tensor([3., 4.]), value=2)
    tensor([ 7., 17.])
    """
    return addcmul(x, tensor1, tensor2, tensor, value=value, out=x)


def addcdiv_(x: Tensor, tensor1: Value, tensor2: Value, tensor: Tensor | None = None, *, value: float = 1) -> Any:
    """Add `value * tensor1 / tensor2` to the tensor in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.ones(2).addcdiv_(mg.tensor([1., 2.]), mg.tensor([4., 4.]), value=2)
    tensor([1.5000, 2.0000])
    """
    return addcdiv(x, tensor1, tensor2, tensor, value=value, out=x)
