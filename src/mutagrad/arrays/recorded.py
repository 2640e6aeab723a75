"""What a function of arrays computes, as steps of NumPy's that can be done piece by piece (`pieces.py`).

A `Value` is an array without elements, known to NumPy by its protocols. A forward, a rule or a formula is called with
values once, and each of NumPy's functions that it calls becomes a step, with the same operands and in the same order;
so the results are the same. Some steps are written down in another form that gives the same numbers in less time: a
choice by a random mask is one of bits, because a branch for each element takes ten times as long. Whatever is no
elementwise work raises `Unknown`.
"""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.lib.mixins import NDArrayOperatorsMixin

from .compiled.expressions import Unknown, Valued
from .halves import narrow, widen
from .kinds import raw as numpy
from .numpy import clip
from .sizes import PIECE

_INTS = {1: numpy.dtype(numpy.int8), 2: numpy.dtype(numpy.int16), 4: numpy.dtype(numpy.int32),
         8: numpy.dtype(numpy.int64)}
_BOOL = numpy.dtype(bool)


class Operand(NamedTuple):
    """Where a step finds a value: the number of the step (or of what was given) that made it, seen as a type."""

    made: int
    dtype: Any


class Step(NamedTuple):
    """`function(*operands, out=...)`; operands are of the kind above, or numbers as they are."""

    function: Callable[..., Any]
    operands: tuple[Any, ...]
    dtype: Any
    ndim: int


class Record:
    """The steps of a function, each done once. The first of them stand for what it is given."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.known: dict[Any, int] = {}

    def given(self, dtype: Any, ndim: int) -> Value:
        self.steps.append(Step(given, (), dtype, ndim))
        return Value(self, Operand(len(self.steps) - 1, dtype), ndim)

    def step(self, function: Callable[..., Any], operands: tuple[Any, ...], dtype: Any, ndim: int) -> Value:
        """Return the value of a step, which may have been done before."""
        about = function, tuple([o if o.__class__ is Operand else (o.dtype, o.tobytes()) for o in operands])
        made = self.known.get(about)
        if made is None:
            made = self.known[about] = len(self.steps)
            self.steps.append(Step(function, operands, dtype, ndim))
        return Value(self, Operand(made, dtype), ndim)


def given(out: Any) -> None:
    raise AssertionError("what is given is not computed")


def convert(value: Any, out: Any) -> None:
    """Write a value in another type."""
    numpy.copyto(out, value, "unsafe")


SHORT = "eE"  # characters of the types of floats of two bytes
_HALF, _SINGLE = numpy.dtype(numpy.float16), numpy.dtype(numpy.float32)


def widened(value: Value) -> Value:
    """A float of two bytes as float32, in which they are computed."""
    return _converted(value, widen if value.dtype == _HALF else convert, _SINGLE)


def rounded(value: Value, dtype: Any) -> Value:
    """A value as floats of two bytes."""
    return _converted(value.astype(_SINGLE), narrow if dtype == _HALF else convert, dtype)


def _converted(value: Value, function: Callable[..., Any], dtype: Any) -> Value:
    return value.record.step(function if value.ndim else dtype.type, (value.at,), dtype, value.ndim)


def written_where(value: Any, mask: Any, number: Any, out: Any) -> None:
    """Write a value, and a number in its place where a mask is true, which it rarely is."""
    if out is not value:
        numpy.copyto(out, value)
    if mask.any():
        out[mask] = number


class Value(NDArrayOperatorsMixin):
    """The value of each element, or a number (`ndim` 0) that is known when the function runs."""

    __array_priority__ = 1000
    __slots__ = ("at", "ndim", "record")
    size = PIECE  # of many: functions may ask whether they are few

    def __init__(self, record: Record, at: Operand, ndim: int) -> None:
        self.record, self.at, self.ndim = record, at, ndim

    @property
    def dtype(self) -> Any:
        return self.at.dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unknown(name) if self.ndim else Valued(name)

    def asked(self, *_: Any, **__: Any) -> Any:
        """Asked for its elements."""
        raise Unknown("elements") if self.ndim else Valued("a number")

    __array__ = __bool__ = __float__ = __int__ = __index__ = __len__ = __iter__ = asked

    def astype(self, dtype: Any, copy: bool = True) -> Value:
        dtype = numpy.dtype(dtype)
        if dtype == self.dtype:
            return self.copy()
        if self.dtype == _BOOL and dtype.itemsize == 1:
            return self.view(dtype)
        if dtype.kind not in "biuf" or self.dtype.kind not in "biuf":
            raise Unknown(str(dtype))
        return _converted(self, convert, dtype)

    def view(self, dtype: Any) -> Value:
        dtype = numpy.dtype(dtype)
        if dtype.itemsize != self.dtype.itemsize:
            raise Unknown("view")
        return Value(self.record, Operand(self.at.made, dtype), self.ndim)

    def copy(self) -> Value:
        return Value(self.record, self.at, self.ndim)

    def reshape(self, shape: Any) -> Value:
        if shape is not _SHAPE:
            raise Unknown("reshape")
        return self.copy()

    def become(self, other: Any) -> Value:
        """Have the value of another."""
        found = _value(self.record, other, self.dtype).astype(self.dtype)
        if found.ndim != self.ndim:
            raise Unknown("a number in the place of an array, or the other way round")
        self.at = found.at
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis or isinstance(index, slice) and index == slice(None):
            self.become(value)
        elif isinstance(index, Value) and index.dtype == _BOOL and isinstance(value, (int, float)):
            given = self.at, index.at, _number(value, self.dtype)
            self.at = self.record.step(written_where, given, self.dtype, self.ndim).at
        else:
            raise Unknown("index")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
        if method != "__call__" or settings or ufunc.nout != 1:
            raise Unknown(f"{ufunc.__name__}, {method}")
        found = _applied(self.record, ufunc, inputs)
        if out is None:
            return found
        target, = out
        if not isinstance(target, Value):
            raise Unknown("out")
        return target.become(found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        known = _FUNCTIONS.get(function.__name__)
        if known is None or settings.get("out") is not None:
            raise Unknown(function.__name__)
        return known(*arguments, **settings)


_SHAPE = object()  # of what every value has


def _value(record: Record, value: Any, dtype: Any) -> Value:
    """A number as a value of a type that it is given by what stands beside it; a value as it is."""
    if isinstance(value, Value):
        return value
    return record.step(_constant, (_number(value, dtype),), dtype, 0)


def _constant(value: Any) -> Any:
    return value


def _number(value: Any, dtype: Any) -> Any:
    """A number as an array: one of Python's is of the type of what stands beside it."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.ndim or value.dtype.kind not in "biuf":
            raise Unknown("another array")
        return numpy.asarray(value)
    if not isinstance(value, (bool, int, float)):
        raise Unknown(type(value).__name__)
    if isinstance(value, float) and dtype.kind != "f":
        return numpy.asarray(value)
    return numpy.array(value, bool if isinstance(value, bool) else dtype)


_types: dict[Any, Any] = {}  # of the results of NumPy's functions, by what they are given


def _type_of(ufunc: Any, inputs: tuple[Any, ...]) -> Any:
    about = ufunc, *[v.dtype if isinstance(v, (Value, numpy.ndarray, numpy.generic)) else type(v) for v in inputs]
    found = _types.get(about)
    if found is None:
        given = [numpy.ones(1, v.dtype) if isinstance(v, Value) else v for v in inputs]
        found = _types[about] = ufunc(*given).dtype
    return found


def _applied(record: Record, ufunc: Any, inputs: tuple[Any, ...]) -> Value:
    lowered = LOWERED.get(ufunc)
    found = None if lowered is None else lowered(record, *inputs)
    return _plain(record, ufunc, inputs) if found is None else found


def _plain(record: Record, ufunc: Any, inputs: tuple[Any, ...]) -> Value:
    """A step that is this very function; what is to be widened first is so once, and not by each function."""
    dtype = _type_of(ufunc, inputs)
    beside = next(v.dtype for v in inputs if isinstance(v, Value))
    operands: list[Any] = []
    for value in inputs:
        if not isinstance(value, Value):
            value = _number(value, beside)
            operands.append(value.astype(dtype) if value.dtype == _BOOL and dtype.kind == "f" else value)
        elif value.dtype == _BOOL and dtype.kind == "f":
            operands.append(value.astype(dtype).at)
        else:
            operands.append(value.at)
    return record.step(ufunc, tuple(operands), dtype, max(v.ndim for v in inputs if isinstance(v, Value)))


def _is_float(value: Any) -> bool:
    return isinstance(value, Value) and value.ndim > 0 and value.dtype.char in "fd"


def _reciprocal(record: Record, x: Any) -> Any:
    return _plain(record, numpy.true_divide, (1.0, x)) if _is_float(x) else None


def _bounded(low: bool) -> Callable[..., Any]:
    """The larger, or smaller, of floats and a number: `clip` has vectors for that, which maximum has not."""
    def lowered(record: Record, x: Any, y: Any) -> Any:
        x, bound = (x, y) if _is_float(x) else (y, x)
        if not _is_float(x) or not (isinstance(bound, (int, float)) or not bound.ndim) or _type_of(
                numpy.maximum, (x, bound)) != x.dtype:
            return None
        return _plain(record, clip, (x, bound, math.inf) if low else (x, -math.inf, bound))

    return lowered


def _sign_of(record: Record, x: Any, y: Any) -> Any:
    """`copysign`, by bits: NumPy goes one by one."""
    if not all(_is_float(v) or isinstance(v, (int, float)) for v in (x, y)) or _type_of(
            numpy.copysign, (x, y)) != (x if isinstance(x, Value) else y).dtype:
        return None
    beside = (x if isinstance(x, Value) else y).dtype
    kind = _INTS[beside.itemsize]
    sign = numpy.array(numpy.iinfo(kind).min, kind)
    x, y = (v.view(kind) if isinstance(v, Value) else numpy.array(v, beside).view(kind) for v in (x, y))
    return ((x & ~sign) | (y & sign)).view(beside)


def _next_after(record: Record, x: Any, y: Any) -> Any:
    """`nextafter`, by bits, which count on from one number to the next: NumPy goes one by one."""
    if any(isinstance(v, Value) and record.steps[v.at.made].function in (widen, convert) for v in (x, y)):
        raise Unknown("the neighbour of a float of two bytes is another one in float32")
    if not _is_float(x) or not _is_float(y) or x.dtype != y.dtype:
        return None
    kind = _INTS[x.dtype.itemsize]
    least = numpy.array(numpy.iinfo(kind).min, kind)
    start = _where(x == 0, y, x).view(kind)  # a step from zero is away from it, and has the sign of y
    below = start >> (8 * kind.itemsize - 1)
    step = ((y > x).view(numpy.int8) - (y < x).view(numpy.int8)).astype(kind)
    found = (((x.view(kind) & ~least) + ((step ^ below) - below)) | (start & least)).view(x.dtype)
    return _where((x != x) | (y != y), x + y, found)


def _logic(ufunc: Any) -> Callable[..., Any]:
    def lowered(record: Record, *inputs: Any) -> Any:
        truths = all(isinstance(v, Value) and v.dtype == _BOOL for v in inputs)
        return _plain(record, ufunc, inputs) if truths else None

    return lowered


def _by_one(record: Record, x: Any, y: Any) -> Any:
    """Times 1, or divided by it."""
    return x.copy() if _is_float(x) and isinstance(y, (int, float)) and y == 1 else None


def _times(record: Record, x: Any, y: Any) -> Any:
    found = _by_one(record, x, y)
    return _by_one(record, y, x) if found is None else found


# Where NumPy has vectors of expm1 (of Intel's, which are written for this), they are quicker than its own of exp.
_HAS_EXPM1 = sys.platform == "linux" and bool(
    getattr(numpy._core._multiarray_umath, "__cpu_features__", {}).get("AVX512_SKX"))


def _plus(record: Record, x: Any, y: Any) -> Any:
    """`1 + exp(x)` as `2 + expm1(x)`."""
    x, y = (y, x) if isinstance(x, (int, float)) else (x, y)
    if not (_HAS_EXPM1 and isinstance(y, (int, float)) and y == 1 and _is_float(x) and x.dtype == _SINGLE):
        return None
    made = record.steps[x.at.made]
    if made.function is not numpy.exp:
        return None
    return _plain(record, numpy.add, (record.step(numpy.expm1, made.operands, made.dtype, made.ndim), 2.0))


def _less(record: Record, x: Any, y: Any) -> Any:
    """The difference of two truth values, as bytes: it is made a float once."""
    made = [record.steps[v.at.made] for v in (x, y) if _is_float(v)]
    if len(made) < 2 or any(m.function is not convert or m.operands[0].dtype != _BOOL for m in made):
        return None
    signs = [Value(record, Operand(m.operands[0].made, _INTS[1]), m.ndim) for m in made]
    return _plain(record, numpy.subtract, tuple(signs)).astype(x.dtype)


LOWERED: dict[Any, Callable[..., Any]] = {
    numpy.add: _plus, numpy.subtract: _less, numpy.multiply: _times, numpy.true_divide: _by_one,
    numpy.reciprocal: _reciprocal, numpy.maximum: _bounded(True), numpy.minimum: _bounded(False),
    numpy.copysign: _sign_of, numpy.nextafter: _next_after, numpy.logical_and: _logic(numpy.bitwise_and),
    numpy.logical_or: _logic(numpy.bitwise_or), numpy.positive: lambda record, x: x.copy()}

# Those that take longer by themselves than in the other form.
SLOW = {numpy.reciprocal, numpy.copysign, numpy.nextafter}


def _all_bits(mask: Value, kind: Any) -> Value:
    """All ones where it is true, else zeros, in an integer type."""
    ones = _plain(mask.record, numpy.negative, (mask.view(numpy.int8),))
    return ones if kind.itemsize == 1 else _converted(ones, convert, kind)


def _where(condition: Any, a: Any, b: Any) -> Value:
    """A choice between values of one type, by their bits."""
    chosen = [v for v in (a, b) if isinstance(v, Value)]
    beside = max(chosen, key=lambda v: v.ndim).dtype if chosen else None
    if not isinstance(condition, Value) or not condition.ndim or condition.dtype != _BOOL:
        raise Unknown("where")
    record = condition.record
    if beside is None:
        raise Unknown("where")
    if beside == _BOOL:
        return (condition & a) | (~condition & b)  # type: ignore[no-any-return]
    kind = _INTS[beside.itemsize]
    a, b = (v if isinstance(v, Value) else _number(v, beside) for v in (a, b))
    if any(v.dtype != beside for v in (a, b)):
        raise Unknown("where")
    a, b = a.view(kind), b.view(kind)
    if isinstance(a, numpy.ndarray) and not a:
        condition, a, b = _plain(record, numpy.logical_not, (condition,)), b, a
    bits = _all_bits(condition, kind)
    found = bits & a if isinstance(b, numpy.ndarray) and not b else b ^ (bits & (a ^ b))
    return found.view(beside)  # type: ignore[no-any-return]


def _clip(x: Any, low: Any = None, high: Any = None) -> Any:
    if not isinstance(x, Value) or _is_float(x) and all(v is None or isinstance(v, (int, float)) for v in (low, high)):
        return clip(x, -math.inf if low is None else low, math.inf if high is None else high)
    found = x if low is None else numpy.maximum(x, low)
    return found if high is None else numpy.minimum(found, high)


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not _is_float(x):
        raise Unknown("nan_to_num")
    limits = numpy.finfo(x.dtype)
    if posinf is neginf is None:
        return _where(x == x, clip(x, limits.min, limits.max), nan)
    found = _where(x == x, x, nan)
    found = _where(x == math.inf, float(limits.max) if posinf is None else posinf, found)
    return _where(x == -math.inf, float(limits.min) if neginf is None else neginf, found)


def _round(x: Any, decimals: int = 0) -> Any:
    if decimals.__class__ is not int or decimals or not _is_float(x):
        raise Unknown("decimals")
    return numpy.rint(x)


def _alike(x: Any, value: Any) -> Any:
    return _value(x.record, value, x.dtype)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where, "clip": _clip, "nan_to_num": _nan_to_num, "round": _round, "atleast_1d": lambda x: x,
    "shape": lambda x: _SHAPE, "zeros_like": lambda x: _alike(x, 0), "ones_like": lambda x: _alike(x, 1),
    "full_like": _alike}
