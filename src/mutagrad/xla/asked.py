"""What of Python a step asks for by calling C functions, of which a profiler sees the call and not the arguments.

`getattr(x, name)` is read off the bytecode before the call. Iterators, random generators and files are advanced by
being used: their positions before and after a trace tell.
"""
from __future__ import annotations

import builtins
import dis
import io
import os
import pickle
import random
import sys
import time
import warnings
from datetime import date, datetime
from types import FrameType, GeneratorType
from typing import Any

import numpy

from .items import Reading

UNKNOWN = object()
LOOKUPS = {getattr, hasattr, vars}
# Whose answer is another one in each run, though no state of the program's own changes.
CLOCKS: dict[Any, str] = {
    getattr(module, name): f"{module.__name__}.{name}" for module, names in
    ((time, "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns localtime"),
     (os, "urandom"), (builtins, "open input")) for name in names.split() if hasattr(module, name)}
CLOCKS |= {datetime.now: "datetime.now", datetime.today: "datetime.today", date.today: "date.today"}
# Functions that draw from the global generators of Python and of NumPy, by name.
DRAWS = {name for kind in (random.Random, numpy.random.RandomState) for name in dir(kind) if not name.startswith("_")}
GENERATORS = random._inst, numpy.random.mtrand._rand  # type: ignore[attr-defined]

_SKIPPED = ("CACHE", "EXTENDED_ARG", "NOP", "RESUME")
_LOCAL = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_NAME", "LOAD_FROM_DICT_OR_DEREF")


def arguments_of(frame: FrameType) -> list[Any]:
    """Return what the call that a frame is at was given, as far as the code says it simply; UNKNOWN for the rest."""
    code = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti and i.opname not in _SKIPPED]
    call = code.pop()
    if call.opname == "CALL" and code and code[-1].opname == "PRECALL":  # of Python 3.11, which takes the arguments
        call = code.pop()
    if call.opname not in ("CALL", "PRECALL", "CALL_FUNCTION") or call.arg is None:
        return []
    found: list[Any] = []
    for _ in range(call.arg):
        expression: list[dis.Instruction] = []
        depth = 0
        while code and depth < 1:
            expression.insert(0, code.pop())
            depth += dis.stack_effect(expression[0].opcode, expression[0].arg)
        if depth != 1:
            return [UNKNOWN] * call.arg
        found.insert(0, _evaluated(expression, frame))
    return found


def _evaluated(expression: list[dis.Instruction], frame: FrameType) -> Any:
    """The value of names and attributes; nothing of the user's code is called for it."""
    value: Any = UNKNOWN
    for i in expression:
        if i.opname.startswith("LOAD_CONST"):
            value = i.argval
        elif i.opname.startswith(_LOCAL) and isinstance(i.argval, str):
            value = frame.f_locals.get(i.argval, frame.f_globals.get(i.argval, UNKNOWN))
        elif i.opname == "LOAD_GLOBAL":
            value = frame.f_globals.get(i.argval, UNKNOWN)
        elif i.opname == "LOAD_ATTR" and value is not UNKNOWN:
            value = _held(value, i.argval)
        else:
            return UNKNOWN
    return value


def _held(value: Any, name: str) -> Any:
    own = getattr(value, "__dict__", {})
    for table in (own, own.get("_modules"), own.get("_parameters"), own.get("_buffers")):
        if type(table) is dict and name in table:
            return table[name]
    return UNKNOWN


@Reading
def position(value: Any) -> Any:
    """Return how far an iterator, a random generator or a file has come; None for anything else."""
    if isinstance(value, random.Random):
        return value.getstate() if type(value).getstate is random.Random.getstate else None
    if isinstance(value, numpy.random.RandomState):
        return pickle.dumps(value.get_state(legacy=False))
    if isinstance(value, numpy.random.Generator):
        return pickle.dumps(value.bit_generator.state)
    if isinstance(value, io.IOBase):
        return _told(value)
    kind = type(value)
    if not hasattr(kind, "__next__") or kind is GeneratorType:
        return None
    return _reduced(value) if kind.__module__ in ("builtins", "itertools", "collections") else None


def _told(file: io.IOBase) -> Any:
    try:
        return file.tell()
    except (OSError, ValueError):  # a terminal, or closed
        return None


def _reduced(iterator: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return iterator.__reduce__()
    except TypeError:
        return repr(iterator)  # count(3) says it


def inner(state: Any) -> list[Any]:
    """The iterators that an iterator is made of."""
    parts = [p for v in state if isinstance(v, tuple) for p in v] if isinstance(state, tuple) else []
    return [p for p in parts if hasattr(type(p), "__next__")]


def asked_by(frame: FrameType | None, users: Any) -> FrameType | None:
    """Return the user's frame on whose behalf the standard library runs, or None where a library does."""
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if users(name):
            return frame
        if name.partition(".")[0] not in sys.stdlib_module_names:
            return None
        frame = frame.f_back
    return None
