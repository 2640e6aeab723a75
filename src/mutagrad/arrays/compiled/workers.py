"""Threads that do a share of a kernel's work, and need no interpreter for it.

To wake a thread of Python's, and to give it the interpreter's lock, takes longer than a kernel does for 100,000
elements. So a worker that has done its share looks for the next one for a while, in compiled code, before it goes to
sleep. What it is to do is put into a box of a few words: whoever wants help writes which function, for which items, and
what it is given; does its own share; and does the worker's as well if that has not begun it. Nobody waits for a worker
that has other work or is still asleep, and where the cuts are depends on the number of threads alone, so the same
program gives the same bits.

All that happens while memory is in use happens in one call of compiled code: an interrupt comes before it, or after it.

A kernel that can be shared takes `start, stop` and the address of the words that it is given, and returns a number that
is not zero if something was infinite or undefined.
"""
from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import numpy

from . import boxes
from .compiler import compiled
from .layout import address

# How often a worker looks for more before it sleeps: about 250 microseconds. Between two kernels of the programs of the
# benchmarks there are 10 to 150 microseconds of Python.
SPINS = 250_000
MOST = 63  # threads that share a kernel: the bits of a word say which of them are busy
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"  # Python runs kernels as they are, for tests
_WORDS = boxes.SIZE // 8
_CONSTANTS = "".join(f"{name} = {value}\n" for name, value in vars(boxes).items() if name.isupper())
_SIGNATURES = {boxes.serve: "void(intp, intp)", boxes.share: "intp(intp, intp, int64[::1], int64[::1])",
               boxes.run: "intp(intp, intp, intp, int64[::1])"}


@cache
def native(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return one of the functions of boxes.py, compiled."""
    source = import_module("inspect").getsource(function).replace(f"def {function.__name__}(", "def kernel(", 1)
    return compiled(f"{_CONSTANTS}\n\n{source}", _SIGNATURES[function])


class Workers:
    """Threads with a box each. They are daemons: they never keep a program from ending."""

    def __init__(self) -> None:
        memory = numpy.zeros((MOST + 1) * _WORDS, numpy.int64)
        skip = -address(memory) % boxes.SIZE // 8
        self.words = memory[skip:skip + MOST * _WORDS].reshape(MOST, _WORDS)
        self.address, self.looked_at = address(self.words), memoryview(self.words)  # type: ignore[arg-type]
        self.calls: list[SimpleQueue[None]] = [SimpleQueue() for _ in range(MOST)]
        self.numbers = iter(range(MOST))
        self.started = 0

    def wake(self, count: int) -> None:
        """See to it that so many workers look into their boxes."""
        while self.started < count:
            try:
                start_new_thread(self._work, ())
            except RuntimeError:  # no more can be started, or the interpreter is ending: do without
                return
            self.started += 1
        for k in range(count):
            if not self.looked_at[k, 1]:
                self.calls[k].put(None)

    def _work(self) -> None:
        serve, k = native(boxes.serve), next(self.numbers, None)  # on this thread no interrupt comes in between
        while k is not None:
            self.words[k, 1] = 1
            serve(self.address + k * boxes.SIZE, SPINS)
            self.calls[k].get()


_workers = Workers()


def _forget() -> None:
    """Threads do not survive a fork."""
    global _workers
    _workers = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@lru_cache(1024)
def bounds(count: int, threads: int) -> Any:
    """Return where the shares of range(count) begin, and where the last ends."""
    return numpy.linspace(0, count, max(min(count, threads, MOST), 1) + 1).astype(numpy.int64)


class Shared:
    """A kernel for several threads: `shared(count, given, threads)` goes over range(count)."""

    __slots__ = ("function", "where")

    def __init__(self, source: str, sums: bool = False) -> None:
        if INTERPRETED:
            self.function, self.where = compiled(source, "", sums, ""), 0
            return
        self.function = compiled(source, "int64(int64, int64, int64)", sums, "cfunc")
        self.where = self.function.address  # type: ignore[attr-defined]
        for function in _SIGNATURES:  # nobody waits for them later
            native(function)

    def part(self, start: int, stop: int, given: Any) -> int:
        """Go over some of them, on this thread."""
        if INTERPRETED:
            return int(self.function(start, stop, address(given)))  # type: ignore[call-overload]
        return int(native(boxes.run)(self.where, start, stop, given))

    def __call__(self, count: int, given: Any, threads: int) -> int:
        if threads < 2 or count < 2 or INTERPRETED:
            return self.part(0, count, given)
        parts = bounds(count, threads)
        _workers.wake(parts.size - 2)
        return int(native(boxes.share)(_workers.address, self.where, given, parts))
