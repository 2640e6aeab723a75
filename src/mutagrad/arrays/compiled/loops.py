"""One loop for a whole elementwise function, in the place of one for each of its steps.

`forward`, `backward` and `update` give a compiled loop for a function of arrays, where there is one already. It is
found by the function, by what its arguments are and by how they lie in memory (layout.py), and runs on a share of the
elements, without the interpreter's lock. It is given addresses: so one loop serves windows and what is broadcast, too.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

import numpy

from ...base.operands import Array
from ..numpy import fp_error
from .compiler import Kernel, choice
from .expressions import Symbol, Tape, Unknown, Valued
from .layout import address, rows_of
from .workers import Shared

ndarray = numpy.ndarray
_COMPUTED = {"f": "float32", "d": "float64", "e": "float32", "E": "float32"}  # by array type: what it is computed in
# And what kernels call the type; integers are computed in their own.
_CALLED = {char: char for char in _COMPUTED}
for _name, _letter in (("int8", "y"), ("uint8", "b"), ("int16", "h"), ("int32", "i"), ("int64", "q")):
    _COMPUTED[numpy.dtype(_name).char], _CALLED[numpy.dtype(_name).char] = _name, _letter
_BOOL, _SINGLE = numpy.dtype(bool), numpy.dtype(numpy.float32)
_known: dict[Any, Kernel | None] = {}  # None: it is no elementwise work
_BY_VALUE: Any = object()  # there is a kernel for each value of the settings
MANY = 1024  # kinds of loops that are kept in mind; what comes after them NumPy computes
WRONG, DOUBTFUL = 1, 2  # what a loop says of its results: one is not finite, they are worth nothing
FEW = 16  # rows that are not shared out evenly: their elements are instead


class Loop:
    """Goes over all elements: `loop.run(threads)`."""

    __slots__ = ("arrays", "count", "given", "shared")

    def __init__(self, shared: Shared, given: Any, count: int, arrays: Sequence[Any]) -> None:
        self.shared, self.given, self.count = shared, given, count
        self.arrays = arrays  # their memory is in use

    def run(self, threads: int) -> bool:
        """Go over all of them; False where the results are worth nothing (see expressions.py)."""
        found = self.shared(self.count, self.given, threads)
        if found & WRONG:
            fp_error.flag()
        return not found & DOUBTFUL


def forward(function: Callable[..., Any], arrays: Sequence[Any], settings: tuple[Any, ...], out: Array,
            fresh: bool = False) -> Loop | None:
    """A loop for `out[...] = function(*arrays, *settings)`; `fresh`: `out` is none of the arrays."""
    function = getattr(function, "of", function)  # of short floats: they are computed in float32 here, too
    return _loop(function, lambda given: [function(*given)], (*arrays, *settings), None, [out], fresh)


def backward(rules: Callable[..., Any], xp: Any, g: Any, saved: Sequence[Any], inputs: Sequence[Any],
             outs: Sequence[Array | None]) -> Loop | None:
    """A loop for what the rules of an operation give for those inputs that want it."""
    wanted = tuple([k is not None for k in inputs])

    def traced(given: list[Any]) -> list[Any]:
        found = rules(xp, given[0], given[1:], [True if w else None for w in wanted])
        return [f for f, w in zip(found, wanted) if w]

    return _loop(rules, traced, (g, *saved), wanted, [o for o in outs if o is not None], True)


def update(formula: Callable[..., Any], hyper: tuple[Any, ...], vectors: Sequence[Array]) -> Loop | None:
    """A loop for an optimizer's formula: what it gives replaces the vectors, but for the second, the gradient."""
    count = len(hyper)
    outs = [vectors[0], *vectors[2:]]
    return _loop(formula, lambda given: list(formula(tuple(given[:count]), *given[count:])), (*hyper, *vectors),
                 len(vectors), outs)


class Plan(NamedTuple):
    """How a loop is made for arguments of certain types and layouts."""

    kernel: Kernel
    size: int  # how many rows there are, or elements of few
    numbers: list[int]  # which of the values are given as they are
    arrays: list[int]  # which are given by address
    words: bytes  # what the kernel is given: all but these
    pack: Callable[..., None]  # where these belong among the words


_plans: dict[Any, Any] = {}  # or _BY_VALUE: there is a plan for each value of the numbers
_FORM = Struct("4q")  # of the rows: whether they are shared out, and how many; the first of the words
_FRESH = (None,) * 64  # results that are none of the arguments


def _loop(function: Any, traced: Callable[[list[Any]], list[Any]], given: tuple[Any, ...], wanted: Any,
          outs: list[Array], fresh: bool = False) -> Loop | None:
    if not choice.on:
        return None
    # An array that is written to as well as read has one name: LLVM makes no vectors of two that may overlap.
    where = _FRESH[:len(outs)] if fresh else tuple([_place(out, given) for out in outs])
    values = (*given, *outs)
    key = function, wanted, *where, *_kinds_of(values)
    try:
        plan = _plans.get(key, _plans)
        if plan is _BY_VALUE:
            key = key, *[v.item() if v.__class__ is ndarray else v for v in given if _is_number(v)]
            plan = _plans.get(key, _plans)
        if plan is _plans:
            plan, lasting = _plan(function, traced, given, wanted, outs, where)
            if len(_plans) >= 4 * MANY:  # a program of ever new shapes
                _plans.clear()
            _plans[key] = plan if lasting or key[0].__class__ is tuple else _BY_VALUE
    except TypeError:  # a setting that is no key
        return None
    return None if plan is None else by_plan(plan, values)


def by_plan(plan: Plan, values: tuple[Any, ...]) -> Loop | None:
    """The loop for arguments and results of the types and layouts that a plan was made for, if it is compiled."""
    kernel, count, numbers, arrays, words, pack = plan
    shared = kernel.get()
    if shared is None:
        return None
    used, memory = [values[i] for i in arrays], bytearray(words)
    pack(memory, _FORM.size, *[values[i] for i in numbers], *map(address, used))
    return Loop(shared, numpy.frombuffer(memory, numpy.int64), count, used)


def plan_of(function: Callable[..., Any], arrays: Sequence[Any], out: Array) -> Plan | None:
    """The plan that `forward` has made for a fresh result; None where there is none, or it depends on values."""
    values = (*arrays, out)
    plan = _plans.get((getattr(function, "of", function), None, None, *_kinds_of(values)))
    return None if plan is _BY_VALUE else plan


def _kinds_of(values: tuple[Any, ...]) -> list[Any]:
    """What of arguments and results tells one plan from another."""
    return [(v.dtype, v.shape, v.strides) if v.__class__ is ndarray
            else float if v.__class__ is float else (v.__class__, v) for v in values]


def _place(array: Any, given: tuple[Any, ...]) -> int | None:
    for i, value in enumerate(given):
        if value is array:
            return i
    return None


def _is_number(value: Any) -> bool:
    return value.__class__ is float or value.__class__ is ndarray and not value.ndim


def _plan(function: Any, traced: Callable[[list[Any]], list[Any]], given: tuple[Any, ...], wanted: Any,
          outs: list[Array], where: tuple[int | None, ...]) -> tuple[Plan | None, bool]:
    """Return a plan, if there can be a loop, and whether it is the same for all values of numbers."""
    kind = outs[0].dtype
    if kind is _BOOL:  # what is asked of floats
        kind = next((v.dtype for v in given if isinstance(v, numpy.ndarray) and v.dtype is not _BOOL), _SINGLE)
    if kind.char not in _COMPUTED or any(o.dtype is not outs[0].dtype for o in outs):
        return None, True
    about = [_about(v, kind) for v in given]
    if None in about:
        return None, True
    values = (*given, *outs)
    arrays = [i for i, what in enumerate(about) if what.__class__ is str]
    arrays += [len(given) + k for k, at in enumerate(where) if at is None]
    rows = rows_of(outs[0].shape, [*(values[i] for i in arrays), outs[0]])
    if rows is None or "far" in rows.kinds:
        return None, True
    kernel, exact = _kernel(function, traced, given, about, kind, (wanted, outs[0].dtype, *where), rows.kinds)
    if kernel is None:
        return None, exact == about
    numbers = [i for i, what in enumerate(exact) if what is float]
    form = _FORM.pack(rows.number >= FEW, rows.number, rows.cut, rows.n)
    own = Struct(("q" if kind.kind in "iu" else "d") * len(numbers) + "q" * len(arrays))
    strides = [s for steps in rows.strides for s in steps]
    words = form + bytes(own.size) + Struct("q" * len(strides)).pack(*strides)
    count = rows.n if rows.number < FEW else rows.number
    return Plan(kernel, count, numbers, arrays, words, own.pack_into), exact == about


def _kernel(function: Any, traced: Callable[[list[Any]], list[Any]], given: tuple[Any, ...], about: list[Any],
            kind: Any, written: tuple[Any, ...], rows: tuple[str, ...]) -> tuple[Kernel | None, list[Any]]:
    """Return the kernel for such arguments, and what of them it is for: there may be one for each value of a number."""
    for by_value in (False, True):
        if by_value:
            about = [(float, v.item(), v.ndim) if what is float and isinstance(v, numpy.ndarray)
                     else (float, v) if what is float else what for v, what in zip(given, about)]
        key = function, kind, written, rows, *about
        try:
            kernel = _known.get(key, _known)
        except TypeError:  # a setting that is no key
            return None, about
        if kernel is _known:
            kernel = _known[key] = _new(traced, about, kind, written, rows) if len(_known) < MANY else None
        if kernel is not _BY_VALUE:
            break
    return kernel, about  # type: ignore[return-value]


def _about(value: Any, kind: Any) -> Any:
    """What of an argument is part of a loop: the type of an array, or a number, or what it is; None: not known."""
    if isinstance(value, numpy.ndarray):
        if value.dtype is not kind and value.dtype != _BOOL:
            return None
        if not value.ndim:
            return float if value.dtype is kind else None
        return "bool" if value.dtype is not kind else _CALLED[kind.char]
    return float if type(value) is float and kind.kind == "f" else (type(value), value)


# By the type of an array: how an element is loaded, and stored.
_ELEMENTS = {**dict.fromkeys(("f", "d", "bool", *"ybhiq"), ("{}", "{}")),
             "e": ("of_half({})", "to_half({})"), "E": ("of_bfloat16({})", "to_bfloat16({})")}


class _Text:
    """The source of a loop: the words that it is given, and what it does before each row."""

    def __init__(self, rows: tuple[str, ...]) -> None:
        self.rows = iter(rows)
        self.given = ["by_rows", "number", "cut", "n"]
        self.strides: list[str] = []
        self.before: list[str] = []

    def array(self, name: str, kind: str) -> str:
        """Enter the next array; return how an element of it is written."""
        row = next(self.rows)
        at, far, near, step = (f"{name}_{part}" for part in ("at", "far", "near", "step"))
        self.given.append(at)
        self.strides += far, near, step
        size = {"row": "high - low", "each": "1"}.get(row, f"(high - low - 1) * {row} + 1")
        found = f"row_{kind}({at} + i * {far} + k * {near} + low * {step}, {size})"
        self.before.append(f"{name} = {found}" + ("[0]" if row == "each" else ""))
        return {"row": f"{name}[j]", "each": name}.get(row, f"{name}[j * {row}]")


def _new(traced: Callable[[list[Any]], list[Any]], about: list[Any], kind: Any, written: tuple[Any, ...],
         rows: tuple[str, ...]) -> Kernel | None:
    """Find out what a function computes; a kernel for it, or None if it is no work for a loop.

    `written` says for each result which argument it is written to; None for memory of its own.
    """
    _, out, *where = written
    name, result = _COMPUTED[kind.char], "bool" if out is _BOOL else _CALLED[kind.char]
    tape, text = Tape(numpy.dtype(name)), _Text(rows)
    given: list[Any] = []
    elements = {}
    for i, what in enumerate(about):  # numbers come before arrays
        if what is float:
            text.given.append(f"v{i}")
    for i, what in enumerate(about):
        if what is float:
            given.append(Symbol(tape, tape.step(f"F(v{i})"), ndim=0))
        elif what.__class__ is str:
            elements[i] = text.array(f"v{i}", what)
            given.append(Symbol(tape, tape.step(_ELEMENTS[what][0].format(elements[i])), what == "bool"))
        else:
            given.append(what[1] if len(what) == 2 else numpy.array(what[1], tape.kind))
    loads = len(tape.lines)
    try:
        found = [_stored(f, result) for f in traced(given)]
    except Valued:
        return None if any(type(what) is tuple and what[0] is float for what in about) else _BY_VALUE
    except Exception:  # whatever a function does with what is no array
        return None
    if len(tape.lines) == loads and out is kind or tape.doubts and None not in where:
        return None
    targets = [text.array(f"out{k}", result) if at is None else elements[at] for k, at in enumerate(where)]
    body = [*tape.lines, *(f"{target} = {_ELEMENTS[result][1].format(f)}" for target, f in zip(targets, found))]
    body += [f"doubtful |= {doubt}" for doubt in tape.doubts]
    if result != "bool" and not tape.whole:
        body += [f"wrong |= not abs({f}) < np.inf" for f in found]  # a sweep looks at it then
    numbers = {f"v{i}" for i, what in enumerate(about) if what is float}
    words = [f"{v} = " + (f"d_of_l(given[{w}])" if v in numbers and not tape.whole else f"given[{w}]")
             for w, v in enumerate([*text.given, *text.strides])]
    source = "\n".join([
        "import math", f"F = np.{name}", "", "", "def kernel(start, stop, given):",
        f"    given = row_q(given, {len(words)})", *(f"    {line}" for line in words),
        "    first, last, low, high = (start, stop, 0, n) if by_rows else (0, number, start, stop)",
        "    wrong = doubtful = False",
        "    for r in range(first, last):", "        i = r // cut", "        k = r - i * cut",
        *(f"        {line}" for line in text.before), "        for j in range(high - low):",
        *(f"            {line}" for line in body),
        f"    return {WRONG} * np.int64(wrong) + {DOUBTFUL} * np.int64(doubtful)", ""])
    return Kernel(f"{name}: " + "; ".join(body), partial(Shared, source))


def _stored(value: Any, result: str) -> str:
    if not isinstance(value, Symbol) or result == "bool" and not value.truth:
        raise Unknown("no such array")
    return value.name if result == "bool" else value.as_float()
