"""One loop for a whole elementwise function, in the place of one for each of its steps.

`forward` and `backward` give a compiled loop for a function of vectors, where there is one already. It is found by the
function and by what its arguments are, and runs on a part of the vectors, without the interpreter's lock.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy

from ...base.operands import Array
from ..numpy import fp_error
from .casts import NAMES as SHORT, bits
from .compiler import Kernel, choice, compiled
from .expressions import Symbol, Tape, Unknown, Valued

Loop = Callable[[slice], None]
_FLOATS = {"f": "float32", "d": "float64", "e": "float32", "E": "float32"}  # by array type: what it is computed in
_BOOL = numpy.dtype(bool)
_known: dict[Any, Kernel | None] = {}  # None: it is no elementwise work
_BY_VALUE: Any = object()  # there is a kernel for each value of the settings
_VECTORS = {"vector": "{}[::1]", "truths": "boolean[::1]", "e": "uint16[::1]", "E": "uint16[::1]"}
MANY = 1024  # kinds of loops that are kept in mind; what comes after them NumPy computes


def forward(function: Callable[..., Any], vectors: Sequence[Any], settings: tuple[Any, ...], out: Array) -> Loop | None:
    """A loop for `out[...] = function(*vectors, *settings)`."""
    function = getattr(function, "of", function)  # of short floats: they are computed in float32 here, too
    return _loop(function, lambda given: [function(*given)], (*vectors, *settings), None, [out])


def backward(rules: Callable[..., Any], xp: Any, g: Any, saved: Sequence[Any], inputs: Sequence[Any],
             outs: Sequence[Array | None]) -> Loop | None:
    """A loop for what the rules of an operation give for those inputs that want it."""
    wanted = tuple([k is not None for k in inputs])

    def traced(given: list[Any]) -> list[Any]:
        found = rules(xp, given[0], given[1:], [True if w else None for w in wanted])
        return [f for f, w in zip(found, wanted) if w]

    return _loop(rules, traced, (g, *saved), wanted, [o for o in outs if o is not None])


def update(formula: Callable[..., Any], hyper: tuple[Any, ...], vectors: Sequence[Array]) -> Loop | None:
    """A loop for an optimizer's formula: what it gives replaces the vectors, but for the second, the gradient."""
    count = len(hyper)
    outs = [vectors[0], *vectors[2:]]
    return _loop(formula, lambda given: list(formula(tuple(given[:count]), *given[count:])), (*hyper, *vectors),
                 len(vectors), outs)


def _loop(function: Any, traced: Callable[[list[Any]], list[Any]], given: tuple[Any, ...], wanted: Any,
          outs: list[Array]) -> Loop | None:
    kind = outs[0].dtype
    if not choice.on or kind.char not in _FLOATS or any(o.dtype is not kind for o in outs):
        return None
    about = [_about(v, kind) for v in given]
    if None in about:
        return None
    # A vector that is written to as well as read has one name: LLVM makes no vectors of two that may overlap.
    where = [next((i for i, v in enumerate(given) if v is out), None) for out in outs]
    wanted = wanted, *where
    try:
        kernel = _known[key := (function, wanted, kind, *about)]
    except KeyError:
        kernel = _known[key] = _new(traced, about, kind, where) if len(_known) < MANY else None
    except TypeError:  # a setting that is no key
        return None
    if kernel is _BY_VALUE:
        about = [(float, v.item(), v.ndim) if what is float and isinstance(v, numpy.ndarray)
                 else (float, v) if what is float else what for v, what in zip(given, about)]
        key = function, wanted, kind, *about
        if key not in _known:
            _known[key] = _new(traced, about, kind, where) if len(_known) < MANY else None
        kernel = _known[key]
    call = None if kernel is None else kernel.get()
    if call is None:
        return None
    arguments = [_in_memory(v) if what is not float else float(v) for v, what in zip(given, about)
                 if what is float or what in _VECTORS]
    return partial(_run, call, arguments, [_in_memory(out) for out, at in zip(outs, where) if at is None])


def _in_memory(array: Any) -> Any:
    return bits(array) if array.dtype.char in SHORT else array


def _about(value: Any, kind: Any) -> Any:
    """What of an argument is part of a loop: that it is a vector, or a number, or what it is; None: not known."""
    if isinstance(value, numpy.ndarray):
        if value.dtype is not kind and value.dtype != _BOOL:
            return None
        if not value.ndim:
            return float if value.dtype is kind else None
        return "truths" if value.dtype is not kind else kind.char if kind.char in SHORT else "vector"
    return float if type(value) is float else (type(value), value)


def _run(call: Callable[..., bool], arguments: list[Any], outs: list[Array], part: slice) -> None:
    if call(part.start, part.stop, *arguments, *outs):
        fp_error.flag()


def _new(traced: Callable[[list[Any]], list[Any]], about: list[Any], kind: Any,
         where: list[int | None]) -> Kernel | None:
    """Find out what a function computes; a kernel for it, or None if it is no work for a loop.

    `where` says for each result which argument it is written to; None for memory of its own.
    """
    name, short = _FLOATS[kind.char], SHORT.get(kind.char)
    tape = Tape(numpy.dtype(name))
    given: list[Any] = []
    heads, types, loads, vectors = [], [], [], []
    for i, what in enumerate(about):
        if what is float:
            heads.append(f"v{i}")
            types.append("float64")
            given.append(Symbol(tape, tape.step(f"F(v{i})"), ndim=0))
        elif what in _VECTORS:
            heads.append(f"v{i}")
            vectors.append(f"v{i}")
            types.append(_VECTORS[what].format(name))
            loads.append(tape.step(f"v{i}[i]" if what not in SHORT else f"of_{short}(v{i}[i])"))
            given.append(Symbol(tape, loads[-1], what == "truths"))
        else:
            given.append(what[1] if len(what) == 2 else numpy.array(what[1], tape.kind))
    try:
        found = traced(given)
        targets = [f"out{k}" if at is None else f"v{at}" for k, at in enumerate(where)]
        store = "{}[i] = {}" if short is None else f"{{}}[i] = to_{short}({{}})"
        stores = [store.format(target, _stored(tape, f)) for target, f in zip(targets, found)]
    except Valued:
        return None if any(type(what) is tuple and what[0] is float for what in about) else _BY_VALUE
    except Exception:  # whatever a function does with what is no array
        return None
    if len(tape.lines) - len(loads) < 1:
        return None
    stores += [f"wrong |= not abs({_stored(tape, f)}) < np.inf" for f in found]  # a sweep looks at it then
    body = [*tape.lines, *stores]
    new = [target for target, at in zip(targets, where) if at is None]
    source = "\n".join(["import math", f"F = np.{name}", "", "",
                        f"def kernel(start, stop, {', '.join([*heads, *new])}):",
                        *(f"    {v} = {v}[start:stop]" for v in (*vectors, *new)),
                        "    wrong = False", f"    for i in range({targets[0]}.size):",
                        *(f"        {line}" for line in body), "    return wrong", ""])
    types += [f"{name}[::1]" if short is None else "uint16[::1]"] * len(new)
    return Kernel(f"{name}: " + "; ".join(body), partial(compiled, source, f"boolean(intp, intp, {', '.join(types)})"))


def _stored(tape: Tape, value: Any) -> str:
    if not isinstance(value, Symbol):
        raise Unknown("no array")
    return value.as_float()
