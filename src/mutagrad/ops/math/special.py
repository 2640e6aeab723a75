"""Special functions: gamma, beta, error, Bessel and their kin, and the elementwise functions that few programs use."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial, inf, log as ln, pi, sqrt
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.bfloat16 import SHORT
from ...arrays.kinds import anywhere, perhaps
from ...arrays.numpy import choose, without_nan
from ...arrays.scipy import erfc as _erfc, lgamma as _lgamma, polynomial, scipy, special
from ...base import return_types
from ...base.docstrings import with_example
from ...base.errors import BadArgument, BadValue, DTypeError
from ...base.operands import Array
from ...core.codegen import elementwise, in_place
from ...core.dtypes import COMPLEX, finfo
from ...core.factory import make
from ...core.number import whole_number
from ...core.op import RAW, RECORDED, zero
from ...core.out_arg import write_out
from ...core.promote import as_operand, operand_dtype
from ...core.storage import TensorBase as Tensor
from ...core.write import check_stays
from ..reduce.reductions import sum_dims
from ..shape.shape import tensor_argument, unsqueeze
from . import elementwise as basic
from .elementwise import Value, cast, clamp, logit, mul, pow_values

FUNCTIONS = """
    clamp_max clamp_min copysign digamma erfc erfinv float_power frexp gcd heaviside i0 igamma igammac
    isneginf isposinf isreal lcm ldexp lgamma logaddexp2 mvlgamma nan_to_num nextafter polygamma sinc xlogy
"""
METHODS = """
    bitwise_left_shift_ bitwise_right_shift_ copysign copysign_ digamma digamma_ erfc erfc_ erfinv erfinv_
    float_power float_power_ frexp gcd gcd_ heaviside heaviside_ i0 i0_ igamma igamma_ igammac igammac_ isneginf
    isposinf isreal lcm lcm_ ldexp ldexp_ lgamma lgamma_ logaddexp2 logit_ mvlgamma mvlgamma_ nan_to_num
    nan_to_num_ nextafter nextafter_ polygamma polygamma_ sinc sinc_ xlogy xlogy_
"""


def _real(a: Array) -> Array:
    """The array itself; a TypeError, which becomes the usual one about types, for complex numbers."""
    if a.dtype.kind == "c":
        raise TypeError
    return a


def _only_floats(a: Array) -> Array:
    if a.dtype.kind not in "fV":
        raise TypeError
    return a


# ---------------------------------------------------------------------------------------------------- gamma and its kin

lgamma = elementwise("lgamma", _lgamma, promotes="float", x=lambda xp, g, x: g * xp.digamma(x))
digamma = elementwise("digamma", lambda a: special("psi", "digamma")(_real(a)), promotes="float",
                      x=lambda xp, g, x: g * xp.polygamma(x, 1))
polygamma_values = elementwise("polygamma", lambda a, order: _polygamma(a, order), promotes="float",
                               settings=("order",), x=lambda xp, g, x, order: g * xp.polygamma(x, order + 1))
igamma = elementwise("igamma", special("gammainc", "igamma"), promotes="float", inputs=("a", "x"), a=None,
                     x=lambda xp, g, a, x: g * _gamma_density(xp, a, x))
igammac = elementwise("igammac", special("gammaincc", "igammac"), promotes="float", inputs=("a", "x"), a=None,
                      x=lambda xp, g, a, x: -g * _gamma_density(xp, a, x))
zeta = elementwise("zeta", special("zeta"), promotes="float", inputs=("x", "q"),
                   x=None, q=lambda xp, g, x, q: -g * x * xp.zeta(x + 1, q))


def _polygamma(a: Array, n: int) -> Any:
    _real(a)
    if n == 0:
        return special("psi", "polygamma")(a)
    x = a.astype(np.float64)
    mirrored = (x < 0) & (x != np.floor(x))  # zeta would go from there to 0 one by one, which may take for ever
    if not perhaps(mirrored):
        return _polygamma_by_zeta(x, n).astype(a.dtype)
    found = (-1) ** n * _polygamma_by_zeta(np.where(mirrored, 1 - x, x), n)
    cotangent = 1 / np.tan(pi * (x - np.rint(x)))
    bent = found - pi ** (n + 1) * polynomial(_cotangent_slope(n), cotangent)
    return np.where(mirrored, bent, (-1) ** n * found).astype(a.dtype)


def _polygamma_by_zeta(x: Array, n: int) -> Any:
    return (-1) ** (n + 1) * float(factorial(n)) * scipy("special", "polygamma").zeta(float(n + 1), x)


@cache
def _cotangent_slope(n: int) -> tuple[float, ...]:
    """The n-th derivative of the cotangent, as a polynomial in the cotangent; the highest power first."""
    powers = [0, 1]
    for _ in range(n):
        slope = [k * v for k, v in enumerate(powers)][1:]
        powers = [-a - b for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    return tuple(map(float, powers[::-1]))


def _gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of the regularized incomplete gamma function by x."""
    return xp.exp((a - 1) * xp.log(x) - x - xp.lgamma(a))


def _order(n: Any, name: str) -> int:
    order = whole_number(n, name, "n")
    if order < 0:
        raise BadValue(f"{name}: n must not be negative, got {n}", fix=f"mutagrad.{name}(1, x)")
    return order


def polygamma(*operands: Any, n: int | None = None, input: Tensor | None = None, out: Tensor | None = None) -> Any:
    """Return the n-th derivative of digamma: `polygamma(n, x)`, and as a method `x.polygamma(n)`.

    >>> import mutagrad as mg
    >>> mg.polygamma(1, mg.tensor([1., 2.]))
    tensor([1.6449, 0.6449])
    """
    given = [*operands, *(v for v in (n, input) if v is not None)]
    if len(given) != 2:
        raise BadArgument(f"polygamma: takes n and a tensor, got {len(given)} arguments",
                          fix="mutagrad.polygamma(1, x)")
    order, x = given if not isinstance(given[0], Tensor) else given[::-1]
    return polygamma_values(tensor_argument(x, "polygamma"), _order(order, "polygamma"), out=out)


def polygamma_(x: Tensor, n: int) -> Any:
    """Write the n-th derivative of `digamma` into the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2.]).polygamma_(1)
    tensor([1.6449, 0.6449])
    """
    return polygamma_values(x, _order(n, "polygamma_"), out=x)


def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension p.

    >>> import mutagrad as mg
    >>> mg.mvlgamma(mg.tensor([2., 3.]), 2)
    tensor([0.4516, 1.5502])
    """
    tensor_argument(input, "mvlgamma")
    p = whole_number(p, "mvlgamma", "p")
    if p < 1:
        raise BadValue(f"mvlgamma: p must be at least 1, got {p}", fix="mutagrad.mvlgamma(x, 1)")
    input = basic.add(input, 0.0)
    steps = make((-np.arange(p) / 2).astype(input._array.dtype))
    terms = lgamma(basic.add(unsqueeze(input, -1), steps))
    return basic.add(sum_dims(terms, (input._array.ndim,), False), p * (p - 1) / 4 * ln(pi), out=out)


# ------------------------------------------------------------------------------------------- error and normal functions

erfc = elementwise("erfc", _erfc, promotes="float", x=lambda xp, g, x: g * xp.exp(-x * x) * (-2 / sqrt(pi)))
erfcx = elementwise("erfcx", special("erfcx"), promotes="float", x=lambda g, x, out: g * (2 * x * out - 2 / sqrt(pi)))
_erfinv_of = special("erfinv")


def _erfinv(a: Array) -> Any:
    """In double: SciPy's own for float32 is three units in the last place off."""
    single = a.__class__ is np.ndarray and a.dtype.char == "f"
    return _erfinv_of(a.astype(np.float64)).astype(a.dtype) if single else _erfinv_of(a)


erfinv = elementwise("erfinv", _erfinv, promotes="float",
                     x=lambda xp, g, out: g * xp.exp(out * out) * (sqrt(pi) / 2))
ndtr = elementwise("ndtr", special("ndtr"), promotes="float",
                   x=lambda xp, g, x: g * xp.exp(-0.5 * x * x) * (1 / sqrt(2 * pi)))
ndtri = elementwise("ndtri", special("ndtri"), promotes="float",
                    x=lambda xp, g, out: g * xp.exp(0.5 * out * out) * sqrt(2 * pi))
log_ndtr = elementwise("log_ndtr", special("log_ndtr"), promotes="float",
                       x=lambda xp, g, x: g / xp.erfcx(x * -sqrt(0.5)) * sqrt(2 / pi))

# --------------------------------------------------------------------------------------------------------------- Bessel

i0 = elementwise("i0", special("i0"), promotes="float", x=lambda xp, g, x: g * xp.i1(x))
i1 = elementwise("i1", special("i1"), promotes="float", x=lambda xp, g, x, out: g * (xp.i0(x) - _ratio(xp, out, x)))
i0e = elementwise("i0e", special("i0e"), promotes="float", x=lambda xp, g, x, out: g * (xp.i1e(x) - xp.sgn(x) * out))
i1e = elementwise("i1e", special("i1e"), promotes="float",
                  x=lambda xp, g, x, out: g * (xp.i0e(x) - xp.sgn(x) * out - _ratio(xp, out, x)))
bessel_j0 = elementwise("bessel_j0", special("j0", "bessel_j0"), promotes="float",
                        x=lambda xp, g, x: -g * xp.bessel_j1(x))
bessel_j1 = elementwise("bessel_j1", special("j1", "bessel_j1"), promotes="float",
                        x=lambda xp, g, x, out: g * (xp.bessel_j0(x) - _ratio(xp, out, x)))
bessel_y0 = elementwise("bessel_y0", special("y0", "bessel_y0"), promotes="float",
                        x=lambda xp, g, x: -g * xp.bessel_y1(x))
bessel_y1 = elementwise("bessel_y1", special("y1", "bessel_y1"), promotes="float",
                        x=lambda xp, g, x, out: g * (xp.bessel_y0(x) - out / x))
modified_bessel_i0, modified_bessel_i1 = i0, i1
modified_bessel_k0 = elementwise("modified_bessel_k0", special("k0", "modified_bessel_k0"), promotes="float",
                                 x=lambda xp, g, x: -g * xp.modified_bessel_k1(x))
modified_bessel_k1 = elementwise("modified_bessel_k1", special("k1", "modified_bessel_k1"), promotes="float",
                                 x=lambda xp, g, x, out: -g * (xp.modified_bessel_k0(x) + out / x))
scaled_modified_bessel_k0 = elementwise("scaled_modified_bessel_k0", special("k0e", "scaled_modified_bessel_k0"),
                                        promotes="float",
                                        x=lambda xp, g, x, out: g * (out - xp.scaled_modified_bessel_k1(x)))
scaled_modified_bessel_k1 = elementwise("scaled_modified_bessel_k1", special("k1e", "scaled_modified_bessel_k1"),
                                        promotes="float",
                                        x=lambda xp, g, x, out: g * (out - xp.scaled_modified_bessel_k0(x) - out / x))
spherical_bessel_j0 = elementwise("spherical_bessel_j0", lambda a: _sine_ratio(a), promotes="float",
                                  x=lambda xp, g, x, out: g * _sine_ratio_slope(xp, x, out))
airy_values = elementwise(
    "airy_ai", lambda a, derivative: _airy(a, derivative), promotes="float", settings=("derivative",),
    x=lambda xp, g, x, derivative: g * x * xp.airy_ai(x, 0) if derivative else g * xp.airy_ai(x, 1))


def _ratio(xp: Any, out: Any, x: Any) -> Any:
    """out / x, with its limit of one half at zero."""
    return xp.where(x == 0, 0.5, out / xp.where(x == 0, 1.0, x))


def _sine_ratio(a: Array) -> Any:
    ratio = np.sin(_real(a)) / np.where(a == 0, 1, a)
    return np.where(a == 0, 1, np.where(np.isinf(a), 0, ratio)).astype(a.dtype, copy=False)


def _sine_ratio_slope(xp: Any, x: Any, out: Any) -> Any:
    """The derivative of out = sin(x) / x: near zero, where (cos(x) - out) / x cancels, its power series."""
    near = xp.abs(x) < 0.3
    square = x * x
    series = x * (square * (square * (square / 45360 - 1 / 840) + 1 / 30) - 1 / 3)
    return xp.where(near, series, (xp.cos(x) - out) / xp.where(near, 1.0, x))


def _airy(a: Array, derivative: int) -> Any:
    return np.asarray(scipy("special", "airy_ai").airy(a)[derivative]).astype(a.dtype, copy=False)


def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Any:
    """The Airy function Ai.

    >>> import mutagrad as mg
    >>> mg.special.airy_ai(mg.tensor([0., 1.]))
    tensor([0.3550, 0.1353])
    """
    return airy_values(input, 0, out=out)


# ----------------------------------------------------------------------------------------------- orthogonal polynomials

class Family(NamedTuple):
    """Polynomials by degree: p[0] = 1, p[1] = slope * x + constant, p[k+1] = (a * x + b) * p[k] - c * p[k-1].

    `recurrence` gives a, b, c by k. `closed`, where there is one, gives those of any degree at the cosine (or its image
    in the shifted ones) of an angle; `far` is SciPy's function for degrees to which stepping would take long.
    """

    slope: float
    constant: float
    recurrence: Callable[[int], tuple[float, float, float]]
    closed: Callable[[Any, Any], Any] | None = None
    far: str = ""


LONG, FAR = 8, 1000  # degrees above which the closed form, or SciPy's function, is taken


def _evaluate(family: Family, a: Array, n: Array, derivative: int) -> Any:
    """The derivative of that order of the polynomial of degree n, element by element; 0 where n is negative."""
    degrees = np.broadcast_to(n.astype(np.int64), np.broadcast_shapes(a.shape, n.shape))
    x = np.broadcast_to(_real(a), degrees.shape)
    if family.far and not derivative and anywhere(degrees > FAR):
        short = _by_recurrence(family, x, np.minimum(degrees, FAR), 0)
        far = getattr(scipy("special", "a polynomial of high degree"), family.far)(np.maximum(degrees, 0), x)
        return np.where((degrees > FAR) & (short == short), far, short).astype(a.dtype, copy=False)
    if family.closed is None or derivative:
        return RAW.by_recurrence(family, x, degrees, derivative)
    cosine = family.recurrence(1)[0] / 2 * x + family.recurrence(1)[1] / 2
    inside = (degrees > LONG) & (np.abs(cosine) < 1)
    short = RAW.by_recurrence(family, x, np.where(inside, 0, degrees), 0)
    if not perhaps(inside):
        return short
    return np.where(inside, family.closed(np.arccos(cosine), degrees), short).astype(a.dtype, copy=False)


def _by_recurrence(family: Family, x: Array, degrees: Array, derivative: int) -> Any:
    ones, zeros = np.ones_like(x), np.zeros_like(x)
    previous = [ones] + [zeros] * derivative  # the values of the polynomial one degree lower, and of its derivatives
    current = [family.slope * x + family.constant, family.slope * ones, *[zeros] * derivative][:derivative + 1]
    found = np.where(degrees == 0, previous[derivative], np.where(degrees == 1, current[derivative], zeros))
    for k in range(1, int(degrees.max(initial=0))):
        slope, constant, back = family.recurrence(k)
        following = [(slope * x + constant) * q - back * p for q, p in zip(current, previous)]
        for m in range(1, derivative + 1):
            following[m] = following[m] + m * slope * current[m - 1]
        previous, current = current, following
        found = np.where(degrees == k + 1, current[derivative], found)
        ahead = degrees > k + 1
        if k % 16 == 0 and np.isnan(current[derivative][ahead]).all():  # nothing but nan is left to find
            return np.where(ahead, current[derivative], found)
    return found


RAW.by_recurrence = _by_recurrence


def _polynomial(name: str, family: Family, words: str, shown: str) -> Any:
    """A family's public function, and its operation: the derivative of any order is the next order's.

    `shown` are the values of degree 2 at 0.5 and 2.
    """
    values = elementwise(name, lambda a, n, derivative: _evaluate(family, a, n, derivative), promotes="float",
                         settings=("derivative",), inputs=("x", "n"),
                         x=lambda xp, g, x, n, derivative: g * getattr(xp, name)(x, n, derivative + 1), n=None)

    def function(input: Value, n: Value, *, out: Tensor | None = None) -> Any:
        return values(input, n, 0, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = with_example(f"The {words} polynomial of degree n at x.",
                                    f">>> mg.special.{name}(mg.tensor([0.5, 2.]), 2)", f"tensor([{shown}])")
    return function


def _plain(k: int) -> tuple[float, float, float]:
    return 2, 0, 1


def _shifted(k: int) -> tuple[float, float, float]:
    """As the plain one, of 2 x - 1."""
    return 4, -2, 1


def _closed_t(angle: Array, n: Array) -> Any:
    return np.cos(n * angle)


def _closed_u(angle: Array, n: Array) -> Any:
    return np.sin((n + 1) * angle) / np.sin(angle)


def _closed_v(angle: Array, n: Array) -> Any:
    return np.cos((n + 0.5) * angle) / np.cos(angle / 2)


def _closed_w(angle: Array, n: Array) -> Any:
    return np.sin((n + 0.5) * angle) / np.sin(angle / 2)


chebyshev_polynomial_t = _polynomial("chebyshev_polynomial_t", Family(1, 0, _plain, _closed_t),
                                     "Chebyshev (first kind)", "-0.5000,  7.0000")
chebyshev_polynomial_u = _polynomial("chebyshev_polynomial_u", Family(2, 0, _plain, _closed_u),
                                     "Chebyshev (second kind)", " 0., 15.")
chebyshev_polynomial_v = _polynomial("chebyshev_polynomial_v", Family(2, -1, _plain, _closed_v),
                                     "Chebyshev (third kind)", "-1., 11.")
chebyshev_polynomial_w = _polynomial("chebyshev_polynomial_w", Family(2, 1, _plain, _closed_w),
                                     "Chebyshev (fourth kind)", " 1., 19.")
shifted_chebyshev_polynomial_t = _polynomial("shifted_chebyshev_polynomial_t", Family(2, -1, _shifted, _closed_t),
                                             "shifted Chebyshev (first kind)", "-1., 17.")
shifted_chebyshev_polynomial_u = _polynomial("shifted_chebyshev_polynomial_u", Family(4, -2, _shifted, _closed_u),
                                             "shifted Chebyshev (second kind)", "-1., 35.")
shifted_chebyshev_polynomial_v = _polynomial("shifted_chebyshev_polynomial_v", Family(4, -3, _shifted, _closed_v),
                                             "shifted Chebyshev (third kind)", "-1., 29.")
shifted_chebyshev_polynomial_w = _polynomial("shifted_chebyshev_polynomial_w", Family(4, -1, _shifted, _closed_w),
                                             "shifted Chebyshev (fourth kind)", "-1., 41.")
hermite_polynomial_h = _polynomial("hermite_polynomial_h", Family(2, 0, lambda k: (2, 0, 2 * k)),
                                   "physicist's Hermite", "-1., 14.")
hermite_polynomial_he = _polynomial("hermite_polynomial_he", Family(1, 0, lambda k: (1, 0, k)),
                                    "probabilist's Hermite", "-0.7500,  3.0000")
laguerre_polynomial_l = _polynomial("laguerre_polynomial_l", Family(
    -1, 1, lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)), far="eval_laguerre"),
    "Laguerre", " 0.1250, -1.0000")
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", Family(1, 0, lambda k: ((2 * k + 1) / (k + 1), 0, k / (k + 1)), far="eval_legendre"),
    "Legendre", "-0.1250,  5.5000")

# ------------------------------------------------------------------------------------------------ logarithms and powers

xlogy = elementwise("xlogy", lambda a, b: _times_log(a, b, np.log), promotes="float",
                    x=lambda xp, g, x, y: g * xp.where((x == 0) & (y <= 0), 0.0, xp.log(y)),
                    y=lambda g, x, y: g * x / y)
xlog1py = elementwise("xlog1py", lambda a, b: _times_log(a, b, np.log1p), promotes="float",
                      x=lambda xp, g, x, y: g * xp.where((x == 0) & (y <= -1), 0.0, xp.log1p(y)),
                      y=lambda g, x, y: g * x / (y + 1))
entr = elementwise("entr", lambda a: _entropy(a), promotes="float", x=lambda xp, g, x: -g * (xp.log(x) + 1))
logaddexp2 = elementwise("logaddexp2", lambda a, b: _logaddexp2(a, b), promotes="float",
                         x=lambda xp, g, x, y: g / (1 + xp.exp2(y - x)), y=lambda xp, g, x, y: g / (1 + xp.exp2(x - y)))
sinc = elementwise("sinc", np.sinc, promotes="float",
                   x=lambda xp, g, x, out: g * _sine_ratio_slope(xp, x * pi, out) * pi)


def _logaddexp2(a: Array, b: Array) -> Any:
    """As NumPy's, which goes one by one."""
    if a.dtype.kind != "f":
        return np.logaddexp2(a, b)
    larger = np.maximum(a, b)
    less = np.exp2(choose(a == b, a.dtype.type(0), np.minimum(a, b) - larger))
    return larger + np.log1p(less) * (1 / ln(2))


def _times_log(a: Array, b: Array, log: Callable[[Array], Array]) -> Any:
    """a * log(b), and 0 where a is, unless b is nan."""
    return np.where((a == 0) & (b == b), a * 0, _real(a) * log(b))


def _entropy(a: Array) -> Any:
    """-a * log(a): 0 at 0, and minus infinity below."""
    positive = np.where(_real(a) > 0, a, 1).astype(a.dtype, copy=False)
    entropy = np.where(a == 0, np.zeros_like(a), np.where(a == a, -positive * np.log(positive), a))
    return np.where(a < 0, -np.ones_like(a) * inf, entropy)


def ldexp(input: Tensor, other: Value, *, out: Tensor | None = None) -> Any:
    """`x * 2**other`.

    >>> import mutagrad as mg
    >>> mg.ldexp(mg.tensor([1., 3.]), mg.tensor([2, 1]))
    tensor([4., 6.])
    """
    return mul(input, pow_values(2.0, other), out=out)


def _in_double(name: str, *values: Any) -> tuple[Any, ...]:
    """Operands in double precision, complex if one of them is."""
    operands = [as_operand(v, name) for v in values]
    wide = np.dtype("complex128" if operand_dtype(operands).category == COMPLEX else "float64")
    return tuple(cast(v, wide) if isinstance(v, Tensor) else make(np.array(v, wide)) for v in operands)


def float_power(input: Value, exponent: Value, *, out: Tensor | None = None) -> Any:
    """`x ** y` in double precision.

    >>> import mutagrad as mg
    >>> mg.float_power(mg.tensor([1, 2]), 3)
    tensor([1., 8.], dtype=mutagrad.float64)
    """
    base, power = _in_double("float_power", input, exponent)
    if out is not None and isinstance(out, Tensor) and out._array.dtype is not base._array.dtype:
        raise DTypeError(f"float_power: the result is of type {base._array.dtype.name}, "
                         f"and what it is written into of {out._array.dtype.name}",
                         why="it is always computed in double precision",
                         fix="mutagrad.float_power(x, y), without out=")
    return pow_values(base, power, out=out)


mantissa = elementwise("frexp", lambda a: np.frexp(_only_floats(a))[0], x=lambda xp, g, x: g / xp.power_of_two_in(x))


def _power_of_two_in(a: Array) -> Any:
    return np.ldexp(np.ones_like(a), np.frexp(a)[1])


RAW.power_of_two_in, RECORDED.power_of_two_in = _power_of_two_in, lambda x: make(_power_of_two_in(x._array))


def frexp(input: Tensor, *, out: Tensor | None = None) -> Any:
    """Return a mantissa from 0.5 to 1 and an integer exponent with `x == mantissa * 2**exponent`.

    >>> import mutagrad as mg
    >>> mg.frexp(mg.tensor([6.])).mantissa
    tensor([0.7500])
    """
    found = return_types.frexp(mantissa(tensor_argument(input, "frexp")), make(np.frexp(input._array)[1]))
    return write_out("frexp", found, out)


# ------------------------------------------------------------------------------------------ signs, steps, whole numbers

copysign = elementwise("copysign", np.copysign, promotes="float",
                       x=lambda xp, g, x, out: g * (xp.sgn(x) * xp.sgn(out)), y=zero)
# The neighbour of a number moves with it, unless both are equal.
nextafter = elementwise("nextafter", lambda a, b: np.nextafter(_only_floats(a), b),
                        x=lambda xp, g, x, y: xp.where(x == y, 0.0, g), y=zero)
step_values = elementwise("heaviside", lambda a, b: np.where(a == 0, b, _real(a) > 0).astype(a.dtype),
                          inputs=("x", "values"), x=zero, values=lambda xp, g, x: xp.where(x == 0, g, 0.0))
gcd = elementwise("gcd", np.gcd, inputs=("x", "y"))
lcm = elementwise("lcm", np.lcm, inputs=("x", "y"))
isneginf = elementwise("isneginf", lambda a: _real(a) == -inf if a.dtype.kind == "f" else np.zeros_like(_real(a), bool),
                       inputs=("x",))
isposinf = elementwise("isposinf", lambda a: _real(a) == inf if a.dtype.kind == "f" else np.zeros_like(_real(a), bool),
                       inputs=("x",))
isreal = elementwise("isreal", lambda a: a.imag == 0 if a.dtype.kind == "c" else np.ones_like(a, bool), inputs=("x",))
finite_values = elementwise("nan_to_num", lambda a, nan, posinf, neginf: without_nan(a, nan, posinf, neginf),
                            settings=("nan", "posinf", "neginf"), x=lambda xp, g, x: xp.where(xp.isfinite(x), g, 0.0))


def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Any:
    """1 for positive numbers, 0 for negative ones, and `values` at zero.

    >>> import mutagrad as mg
    >>> mg.heaviside(mg.tensor([-1., 0., 2.]), mg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if tensor_argument(input, "heaviside")._array.dtype is not tensor_argument(values, "heaviside")._array.dtype:
        raise DTypeError(f"heaviside: input and values must be of one type, got {input.dtype} and {values.dtype}",
                         fix="values.to(x.dtype)")
    return step_values(input, values, out=out)


def nan_to_num(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None,
               *, out: Tensor | None = None) -> Any:
    """nan replaced by 0 (or `nan`), infinities by the largest and smallest finite numbers (or `posinf`, `neginf`).

    >>> import mutagrad as mg
    >>> mg.nan_to_num(mg.tensor([1., float("nan")]), nan=0.)
    tensor([1., 0.])
    """
    if tensor_argument(input, "nan_to_num")._array.dtype.char in SHORT:  # computed in float32, which holds more
        limits = finfo(input.dtype)
        posinf, neginf = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    return finite_values(input, 0.0 if nan is None else nan, posinf, neginf, out=out)


def clamp_min(input: Tensor, min: Value, *, out: Tensor | None = None) -> Any:
    """`x`, but at least `min`.

    >>> import mutagrad as mg
    >>> mg.clamp_min(mg.tensor([-1., 2.]), 0)
    tensor([0., 2.])
    """
    return clamp(input, as_operand(min, "clamp_min"), out=out)


def clamp_max(input: Tensor, max: Value, *, out: Tensor | None = None) -> Any:
    """`x`, but at most `max`.

    >>> import mutagrad as mg
    >>> mg.clamp_max(mg.tensor([-1., 2.]), 1)
    tensor([-1.,  1.])
    """
    return clamp(input, None, as_operand(max, "clamp_max"), out=out)


# ------------------------------------------------------------------------------------------------------------- in place

lgamma_, digamma_, igamma_, igammac_ = in_place(lgamma), in_place(digamma), in_place(igamma), in_place(igammac)
erfc_, erfinv_, i0_, sinc_ = in_place(erfc), in_place(erfinv), in_place(i0), in_place(sinc)
xlogy_, copysign_, nextafter_ = in_place(xlogy), in_place(copysign), in_place(nextafter)
gcd_, lcm_ = in_place(gcd), in_place(lcm)
bitwise_left_shift_, bitwise_right_shift_ = in_place(basic.bitwise_left_shift), in_place(basic.bitwise_right_shift)


def mvlgamma_(x: Tensor, p: int) -> Any:
    """Write the logarithm of the multivariate gamma function into the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([2., 3.]).mvlgamma_(2)
    tensor([0.4516, 1.5502])
    """
    return mvlgamma(x, p, out=x)


def ldexp_(x: Tensor, other: Value) -> Any:
    """Multiply the tensor in place by 2 to the power of `other`; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 3.]).ldexp_(mg.tensor([2, 1]))
    tensor([4., 6.])
    """
    return ldexp(x, other, out=x)


def float_power_(x: Tensor, exponent: Value) -> Any:
    """Raise a tensor of doubles to a power in place; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2.], dtype=mg.float64).float_power_(3)
    tensor([1., 8.], dtype=mutagrad.float64)
    """
    check_stays("float_power_", x, exponent)
    return float_power(x, exponent, out=x)


def heaviside_(x: Tensor, values: Tensor) -> Any:
    """Write 0, `values` or 1, where elements are negative, zero or positive, into the tensor; return it.

    >>> import mutagrad as mg
    >>> mg.tensor([-1., 0., 2.]).heaviside_(mg.tensor(0.5))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return heaviside(x, values, out=x)


def nan_to_num_(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    """Replace nan and infinities in place by numbers; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., float("nan")]).nan_to_num_()
    tensor([1., 0.])
    """
    return nan_to_num(x, nan, posinf, neginf, out=x)


def logit_(x: Tensor, eps: float | None = None) -> Any:
    """Write the logarithm of x / (1 - x) into the tensor; return the tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([0.5, 0.9]).logit_()
    tensor([0.0000, 2.1972])
    """
    return logit(x, eps, out=x)
