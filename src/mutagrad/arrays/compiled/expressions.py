"""What a function of arrays computes for each element, found out by calling it with symbols.

A symbol is an array without elements, known to NumPy by its protocols, that writes down what is done with it. Forwards
and derivative rules of elementwise operations are functions of NumPy's that run on it as they are; so all of them can
be compiled to one loop, and there is no second table of formulas. Whatever is no elementwise work on numbers of one
type and truth values is refused, and then NumPy computes it.

Some steps are right for most values alone, as a quotient in double is the whole quotient of integers below 2**53. They
write down a doubt: a condition under which the loop's results are worth nothing, and NumPy computes them all.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin


class Unknown(Exception):
    """Something that has no place in a loop over elements."""


class Valued(Unknown):
    """What is done depends on the value of a setting."""


class Tape:
    """The steps of a loop: names for values, each computed once."""

    def __init__(self, kind: numpy.dtype[Any]) -> None:
        self.kind, self.whole = kind, kind.kind in "iu"
        self.bits = 64 if self.whole else kind.itemsize * 8
        self.lines: list[str] = []
        self.doubts: list[str] = []
        self.known: dict[str, str] = {}

    def step(self, text: str) -> str:
        """Return the name of a value, by how it is computed."""
        name = self.known.get(text)
        if name is None:
            name = self.known[text] = f"t{len(self.known)}"
            self.lines.append(f"{name} = {text}")
        return name

    def number(self, value: float) -> str:
        if self.whole:
            limits = numpy.iinfo(self.kind)
            if value != int(value) or not limits.min <= value <= limits.max:
                raise Unknown("no such integer")
            return f"F({int(value)})"
        text = {math.inf: "np.inf", -math.inf: "-np.inf"}.get(value) or ("np.nan" if value != value else repr(value))
        return f"F({text})"


class Symbol(NDArrayOperatorsMixin):
    """A value of each element, by its name on a tape; `truth`: it is a truth value. Writing to it gives it another."""

    __array_priority__ = 1000

    def __init__(self, tape: Tape, name: str, truth: bool = False, ndim: int = 1) -> None:
        self.tape, self.name, self.truth, self.ndim = tape, name, truth, ndim

    @property
    def dtype(self) -> Any:
        return numpy.dtype(bool) if self.truth else self.tape.kind

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python and NumPy look for
            raise AttributeError(name)
        raise Unknown(name) if self.ndim else Valued(name)

    def asked(self, *_: Any, **__: Any) -> Any:
        """Asked for its elements: a number may be part of the loop."""
        raise Unknown("elements") if self.ndim else Valued("a number")

    __array__ = __bool__ = __float__ = __int__ = asked

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        dtype = numpy.dtype(dtype)
        if dtype == self.dtype:
            return self.copy()
        if dtype == self.tape.kind:
            return Symbol(self.tape, self.as_float(), ndim=self.ndim)
        raise Unknown(str(dtype))

    def copy(self) -> Symbol:
        return Symbol(self.tape, self.name, self.truth, self.ndim)

    def as_float(self) -> str:
        return self.tape.step(f"where_{self.tape.bits}({self.name}, F(1.0), F(0.0))") if self.truth else self.name

    def become(self, other: Any) -> Symbol:
        """Have the value of another."""
        found = _named(self.tape, other)
        if self.truth and not found.truth:
            raise Unknown("a float among truth values")
        self.name = found.name if found.truth == self.truth else found.as_float()
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis or isinstance(index, slice) and index == slice(None):
            self.become(value)
        elif isinstance(index, Symbol) and index.truth:
            self.become(_where(index, value, self))
        else:
            raise Unknown("index")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
        if method != "__call__" or settings.pop("dtype", self.tape.kind) != self.tape.kind or settings:
            raise Unknown(f"{ufunc.__name__}, {method}")
        found = _apply(self.tape, ufunc.__name__, inputs)
        if out is None:
            return found
        target, = out
        if not isinstance(target, Symbol):
            raise Unknown("out")
        return target.become(found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        known = _FUNCTIONS.get(function.__name__)
        if known is None or settings.pop("out", None) is not None:
            raise Unknown(function.__name__)
        return known(*arguments, **settings)


def _named(tape: Tape, value: Any) -> Symbol:
    """A number as a symbol; a symbol as it is."""
    if isinstance(value, Symbol):
        return value
    if isinstance(value, (bool, numpy.bool_)):
        return Symbol(tape, repr(bool(value)), True, 0)
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.ndim or value.dtype != tape.kind:
            raise Unknown("another type")
        value = value.item()
    if not isinstance(value, (int, float)):
        raise Unknown(type(value).__name__)
    return Symbol(tape, tape.number(value if tape.whole else float(value)), ndim=0)


_TWO = {"add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "divide": "{} / {}", "true_divide": "{} / {}",
        "maximum": "larger_B({}, {})", "minimum": "smaller_B({}, {})", "logaddexp": "logaddexp_B({}, {})",
        "copysign": "F(math.copysign({}, {}))", "hypot": "hypot_B({}, {})"}
_ONE = {"negative": "-{}", "positive": "{}", "absolute": "abs({})", "fabs": "abs({})", "square": "{0} * {0}",
        "reciprocal": "F(1.0) / {}", "sqrt": "sqrt_B({})", "exp": "exp_B({})", "exp2": "exp2_B({})", "log": "log_B({})",
        "expm1": "expm1_B({})", "log1p": "log1p_B({})", "tanh": "tanh_B({})", "sign": "sign_B({})",
        "deg2rad": "{} * F(0.017453292519943295)",
        "rad2deg": "{} * F(57.29577951308232)", "floor": "np.floor({})", "ceil": "np.ceil({})",
        "trunc": "np.trunc({})", "rint": "round_B({})"}
# The same of integers: what Numba computes in 64 bits wraps to their own, as NumPy's does.
_WHOLE = {"add": "{} + {}", "subtract": "{} - {}", "multiply": "{} * {}", "maximum": "max({}, {})",
          "minimum": "min({}, {})", "negative": "-{}", "positive": "{}", "square": "{0} * {0}",
          "absolute": "{0} if {0} > 0 else -{0}", "sign": "({0} > 0) - ({0} < 0)", "bitwise_and": "{} & {}",
          "bitwise_or": "{} | {}", "bitwise_xor": "{} ^ {}", "invert": "~{}"}
_OF_TRUTHS = "multiply", "add", "maximum", "minimum"
_TURNS = "sin", "cos", "tan"
_ASKS = {"greater": "{} > {}", "greater_equal": "{} >= {}", "less": "{} < {}", "less_equal": "{} <= {}",
         "equal": "{} == {}", "not_equal": "{} != {}", "isnan": "{0} != {0}", "isinf": "abs({}) == np.inf",
         "isfinite": "abs({}) < np.inf", "signbit": "math.copysign(F(1.0), {}) < F(0.0)"}
_LOGIC = {"logical_and": "{} & {}", "bitwise_and": "{} & {}", "logical_or": "{} | {}", "bitwise_or": "{} | {}",
          "logical_not": "not {}", "invert": "not {}", "logical_xor": "{} != {}", "bitwise_xor": "{} != {}"}


def _apply(tape: Tape, name: str, inputs: Sequence[Any]) -> Symbol:
    given = [_named(tape, v) for v in inputs]
    ndim = max(v.ndim for v in given)
    if name == "power":
        return _power(tape, *given)
    truths = all(v.truth for v in given)
    of_bits = tape.whole and name in _WHOLE and not truths
    if name in _LOGIC and not of_bits or name in _OF_TRUTHS and truths:
        if name not in _LOGIC or not truths:
            raise Unknown(name)
        return Symbol(tape, tape.step(_LOGIC[name].format(*[v.name for v in given])), True, ndim)
    floats = [v.as_float() for v in given]
    if name in _ASKS:
        return Symbol(tape, tape.step(_ASKS[name].format(*floats)), True, ndim)
    if name in _ROUNDED:
        return Symbol(tape, _quotient(tape, name, *floats), ndim=ndim)
    if tape.whole:
        if name not in _WHOLE:
            raise Unknown(name)
        return Symbol(tape, tape.step(f"F({_WHOLE[name].format(*floats)})"), ndim=ndim)
    text = _TWO.get(name) or _ONE.get(name)
    if text is None and name in _TURNS and tape.bits == 64:  # NumPy has vectors of these for float32 alone
        tape.doubts.append(f"abs({floats[0]}) > 1e6")
        text = f"{name}_64({{}})"
    if text is None:
        raise Unknown(name)
    return Symbol(tape, tape.step(text.replace("_B(", f"_{tape.bits}(").format(*floats)), ndim=ndim)


# How a quotient in double is rounded, by what is asked of it.
_ROUNDED = {"floor_divide": "floor", "remainder": "floor", "fmod": "trunc"}


def _quotient(tape: Tape, name: str, x: str, y: str) -> str:
    """A whole quotient, or what it leaves, by one division in double.

    Of integers it rounds to the right one where that and the operands are exact in double, and of float32 where the
    quotient is below 2**24: then its product with the divisor is exact, too. Of float64 it may be one too large.
    """
    rounded = tape.step(f"np.{_ROUNDED[name]}(np.float64({x}) / np.float64({y}))")
    if tape.whole:
        if tape.kind.itemsize > 4:
            tape.doubts += [f"({v} > {2**53}) | ({v} < -{2**53})" for v in (x, y)]
        quotient = tape.step(f"F(np.int64({rounded}))")
        return quotient if name == "floor_divide" else tape.step(f"F({x} - {quotient} * {y})")
    most = 2.0 ** (24 if tape.bits == 32 else 52)
    tape.doubts.append(f"not ((abs({rounded}) < {most}) & (abs({y}) < np.inf))")
    if tape.bits == 64:
        return tape.step(f"whole_64({x}, {y}, {rounded})" if name == "floor_divide"
                         else f"rest_64({x}, {y}, {rounded}, {x if name == 'fmod' else y})")
    if name == "floor_divide":
        return tape.step(f"F({rounded})")
    rest = tape.step(f"F(np.float64({x}) - {rounded} * np.float64({y}))")
    return tape.step(f"F(math.copysign({rest}, {x}))" if name == "fmod"
                     else f"where_32({rest} == 0, F(math.copysign({rest}, {y})), {rest})")


def _power(tape: Tape, base: Symbol, exponent: Symbol) -> Symbol:
    x = base.as_float()
    if tape.whole:
        raise Unknown("power")
    known = {"F(2.0)": f"{x} * {x}", "F(3.0)": f"power3_{tape.bits}({x})", "F(1.0)": x,
             "F(0.5)": f"sqrt_{tape.bits}({x})", "F(-1.0)": f"F(1.0) / {x}", "F(-2.0)": f"F(1.0) / ({x} * {x})"}
    if exponent.name not in known:
        raise Unknown("power")
    return Symbol(tape, tape.step(known[exponent.name]))


def _where(condition: Any, a: Any, b: Any) -> Symbol:
    tape = next(v.tape for v in (condition, a, b) if isinstance(v, Symbol))
    condition, a, b = (_named(tape, v) for v in (condition, a, b))
    if not condition.truth:
        raise Unknown("where")
    if a.truth and b.truth:
        return Symbol(tape, tape.step(f"({condition.name} & {a.name}) | ((not {condition.name}) & {b.name})"), True)
    return Symbol(tape, tape.step(f"where_{tape.bits}({condition.name}, {a.as_float()}, {b.as_float()})"))


def _clip(x: Any, low: Any, high: Any) -> Any:
    found = x if low is None else numpy.maximum(x, low)
    return found if high is None else numpy.minimum(found, high)


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    limits = numpy.finfo(x.dtype)
    found = _where(numpy.isnan(x), nan, x)
    found = _where(numpy.equal(x, math.inf), float(limits.max) if posinf is None else posinf, found)
    return _where(numpy.equal(x, -math.inf), float(limits.min) if neginf is None else neginf, found)


def _round(x: Any, decimals: int = 0) -> Any:
    if decimals.__class__ is not int or decimals:
        raise Unknown("decimals")
    return numpy.rint(x)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "round": _round,
    "where": _where, "clip": _clip,
    "zeros_like": lambda x: _named(x.tape, 0.0), "ones_like": lambda x: _named(x.tape, 1.0),
    "full_like": lambda x, value: _named(x.tape, value), "nan_to_num": _nan_to_num}


_SINGLE = {"erfinv", "lgamma"}  # in float32 alone


def known_function(name: str, x: Symbol) -> Symbol:
    """A function of one argument that NumPy does not have."""
    if name not in ("erf", "erfc") and (name not in _SINGLE or x.tape.bits > 32):
        raise Unknown(name)
    return Symbol(x.tape, x.tape.step(f"{name}_{x.tape.bits}({x.as_float()})"))
