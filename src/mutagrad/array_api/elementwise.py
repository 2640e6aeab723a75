"""The standard's functions of corresponding elements: ours under its names, with its promotion."""
from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any

from ..arrays import np
from ..base.docstrings import with_example
from ..core.factory import make
from ..ops.math import complex as parts, elementwise as ops, special
from ..ops.shape.shape import clone, tensor_argument
from ..tensors.tensor import Tensor
from .kinds import common


def of_one(name: str, operation: Callable[..., Tensor], *shown: str) -> Callable[..., Tensor]:
    """Return an operation on one tensor, which the standard passes by position."""
    def function(x: Tensor, /) -> Tensor:
        return operation(tensor_argument(x, name))

    return named(function, name, _described(name, operation, "every element", *shown))


def of_two(name: str, operation: Callable[..., Tensor], *shown: str) -> Callable[..., Tensor]:
    """Return an operation on two operands, converted as the standard promotes them."""
    def function(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return operation(*common(name, x1, x2))

    return named(function, name, _described(name, operation, "corresponding elements", *shown))


def named(function: Any, name: str, text: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _described(name: str, operation: Callable[..., Tensor], words: str, given: str = "", returned: str = "") -> str:
    """Return a docstring; what it shows is the operation's own first example, unless another is given."""
    text = f"The standard's `{name}`: {operation.__name__.strip('_')} of {words}."
    if given:
        return with_example(text, f">>> mg.array_api.{name}({given})", returned)
    _, _, session = cleandoc(operation.__doc__ or "").partition("\n\n")
    first = "\n>>> ".join(session.split("\n>>> ")[:2])  # the import, and a call with its result
    return f"{text}\n\n{first.replace(f'mg.{operation.__name__}(', f'mg.array_api.{name}(')}"


def _sign(x: Tensor) -> Tensor:
    """As PyTorch's, but the sign of nan is nan."""
    return ops.where(make(np.isnan(x._array)), x, ops.sgn(x)) if x._array.dtype.kind in "fc" else ops.sgn(x)


def _real(x: Tensor) -> Tensor:
    return parts.real(x) if x._array.dtype.kind == "c" else x


def _imag(x: Tensor) -> Tensor:
    return parts.imag(x) if x._array.dtype.kind == "c" else make(np.zeros_like(x._array))


abs = of_one("abs", ops.abs)
acos = of_one("acos", ops.acos)
acosh = of_one("acosh", ops.acosh)
asin = of_one("asin", ops.asin)
asinh = of_one("asinh", ops.asinh)
atan = of_one("atan", ops.atan)
atanh = of_one("atanh", ops.atanh)
bitwise_invert = of_one("bitwise_invert", ops.bitwise_not)
ceil = of_one("ceil", ops.ceil)
conj = of_one("conj", ops.conj)
cos = of_one("cos", ops.cos)
cosh = of_one("cosh", ops.cosh)
exp = of_one("exp", ops.exp)
expm1 = of_one("expm1", ops.expm1)
floor = of_one("floor", ops.floor)
imag = of_one("imag", _imag, "mg.tensor([1 + 2j])", "tensor([2.])")
isfinite = of_one("isfinite", ops.isfinite)
isinf = of_one("isinf", ops.isinf)
isnan = of_one("isnan", ops.isnan)
log = of_one("log", ops.log)
log10 = of_one("log10", ops.log10)
log1p = of_one("log1p", ops.log1p)
log2 = of_one("log2", ops.log2)
logical_not = of_one("logical_not", ops.logical_not)
negative = of_one("negative", ops.neg)
positive = of_one("positive", ops.positive)
real = of_one("real", _real, "mg.tensor([1 + 2j])", "tensor([1.])")
reciprocal = of_one("reciprocal", ops.reciprocal)
round = of_one("round", ops.round)
sign = of_one("sign", _sign, "mg.tensor([-3., 0., 2.])", "tensor([-1.,  0.,  1.])")
signbit = of_one("signbit", ops.signbit)
sin = of_one("sin", ops.sin)
sinh = of_one("sinh", ops.sinh)
sqrt = of_one("sqrt", ops.sqrt)
square = of_one("square", ops.square)
tan = of_one("tan", ops.tan)
tanh = of_one("tanh", ops.tanh)
trunc = of_one("trunc", ops.trunc)

add = of_two("add", ops.add_values, "mg.tensor([5., 6.]), mg.tensor([1., 2.])", "tensor([6., 8.])")
atan2 = of_two("atan2", ops.atan2)
bitwise_and = of_two("bitwise_and", ops.bitwise_and)
bitwise_left_shift = of_two("bitwise_left_shift", ops.bitwise_left_shift)
bitwise_or = of_two("bitwise_or", ops.bitwise_or)
bitwise_right_shift = of_two("bitwise_right_shift", ops.bitwise_right_shift)
bitwise_xor = of_two("bitwise_xor", ops.bitwise_xor)
copysign = of_two("copysign", special.copysign)
divide = of_two("divide", ops.div_values)
equal = of_two("equal", ops.eq)
floor_divide = of_two("floor_divide", ops.floor_divide)
greater = of_two("greater", ops.gt)
greater_equal = of_two("greater_equal", ops.ge)
hypot = of_two("hypot", ops.hypot)
less = of_two("less", ops.lt)
less_equal = of_two("less_equal", ops.le)
logaddexp = of_two("logaddexp", ops.logaddexp)
logical_and = of_two("logical_and", ops.logical_and)
logical_or = of_two("logical_or", ops.logical_or)
logical_xor = of_two("logical_xor", ops.logical_xor)
maximum = of_two("maximum", ops.maximum)
minimum = of_two("minimum", ops.minimum)
multiply = of_two("multiply", ops.mul)
nextafter = of_two("nextafter", special.nextafter)
not_equal = of_two("not_equal", ops.ne)
pow = of_two("pow", ops.pow)
remainder = of_two("remainder", ops.remainder)
subtract = of_two("subtract", ops.sub_values, "mg.tensor([5., 6.]), mg.tensor([1., 2.])", "tensor([4., 4.])")


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Return the tensor limited to between min and max, numbers or tensors; None is no limit.

    >>> import mutagrad as mg
    >>> mg.array_api.clip(mg.tensor([-1., 0.5, 2.]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        return clone(tensor_argument(x, "clip"))
    x, *limits = common("clip", x, *(v for v in (min, max) if v is not None))
    return ops.clamp(x, None if min is None else limits[0], None if max is None else limits[-1])


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Return elements of x1 where the condition holds, else of x2.

    >>> import mutagrad as mg
    >>> mg.array_api.where(mg.tensor([True, False]), mg.tensor([1., 2.]), mg.zeros(2))
    tensor([1., 0.])
    """
    numbers = isinstance(x1, (bool, int, float, complex)) and isinstance(x2, (bool, int, float, complex))
    return ops.where(condition, *((x1, x2) if numbers else common("where", x1, x2)))
