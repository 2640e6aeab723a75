"""Several threads for the work on one large array.

NumPy uses one core, and lets other threads run while it computes. `in_spans` cuts the work into one span for each
thread. A span is done by whoever takes it first: a helper, or the caller once it has done its own. So nobody waits for
helpers that have other work, that of another thread of the user's for example; and where the cuts are depends on the
number of threads alone. As results come back in the order of the spans, the same program gives the same bits.

**Interrupts.** What a signal handler raises (Ctrl-C) comes up wherever a function begins, a call ends or a loop goes
back. The caller may be stopped at any of these places, also while it waits, and must not leave while helpers still use
the memory. So:

- Two calls share nothing but the queue on which spans are offered. Whatever an interrupted call has left there is
  closed: a helper that finds it does nothing.
- A helper holds a span's lock for as long as it is at it. The caller leaves through one call of a C function, in a
  `finally`, that takes all its spans' locks: no Python code runs before or within it. Of all that Python offers for
  waiting, only what a Condition takes its lock back with cannot be interrupted; that is what `_close` calls.
- No loop stands within that `try`, nor within the `with` of any lock: since Python 3.12 the jump back to its beginning
  may belong to no handler, and what a signal handler raises there passes by the `finally`. Loops are in functions that
  are called there (`tests/stress/test_interrupts.py` looks at the compiled code).
"""
from __future__ import annotations

import os
from _thread import start_new_thread
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from operator import methodcaller
from queue import SimpleQueue
from threading import RLock
from time import perf_counter
from typing import Any

from ..base.errors import BadValue
from ..base.modes import OTHER_KIND, mode
from .numpy import SILENT, fp_error, set_fp_state, silent
from .sizes import BLOCK, PIECE

HEAD_START = 0.1  # how much more the calling thread does: the others have to wake first

_threads = 0


def get_num_threads() -> int:
    """Return how many threads share the work on a large array: as many as there are cores, unless set.

    >>> import mutagrad as mg
    >>> mg.get_num_threads() >= 1
    True
    """
    global _threads
    if not _threads:
        _threads = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
    return _threads


def set_num_threads(count: int) -> None:
    """Set how many threads share the work on a large array; 1 switches sharing off.

    >>> import mutagrad as mg
    >>> before = mg.get_num_threads()
    >>> mg.set_num_threads(1)
    >>> mg.get_num_threads()
    1
    >>> mg.set_num_threads(before)
    """
    global _threads
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadValue(f"set_num_threads: the number of threads must be a positive integer, not {count!r}",
                       fix="mutagrad.set_num_threads(1)")
    _threads = count


# Takes a span's lock, without being interrupted, in the name of no thread: nobody will have it again.
_close = methodcaller("_acquire_restore", (1, 0))


class _Span:
    """A part of somebody's work."""

    __slots__ = ("claim", "error", "found", "fp_error", "lock", "part")

    def __init__(self, work: Callable[[slice], Any], part: slice) -> None:
        self.claim, self.part, self.lock = [work], part, RLock()  # whoever pops the work does it
        self.found: Any = None
        self.error: BaseException | None = None
        self.fp_error = False

    def take(self) -> None:
        """Does the work, unless somebody else has begun it."""
        try:
            work = self.claim.pop()
        except IndexError:
            return
        self.found = work(self.part)

    def help(self) -> None:
        """The same on a helper; the caller is told what is raised."""
        if self.lock.acquire(blocking=False):
            try:
                self.take()
            except BaseException as error:
                self.error = error
            finally:
                self.fp_error = bool(fp_error.raised)
                fp_error.raised.clear()
                self.lock.release()


class _Helpers:
    """Threads that wait for spans. They are daemons: they never keep a program from ending."""

    def __init__(self) -> None:
        self.offered: SimpleQueue[_Span] = SimpleQueue()
        self.started = 0

    def offer(self, spans: list[_Span]) -> None:
        while self.started < len(spans):
            try:  # not by threading.Thread, whose start() waits for ever if an exception has met it at its birth
                start_new_thread(_help_with, (self.offered,))
            except RuntimeError:  # no more threads can be started, or the interpreter is ending: the caller does it all
                return
            self.started += 1
        for span in spans:
            self.offered.put(span)


def _help_with(offered: SimpleQueue[_Span]) -> None:
    set_fp_state(SILENT)  # as wherever we compute; the work is never the user's own code
    while True:
        span = offered.get()
        span.help()
        del span  # or it would live until the next one comes


_helpers: _Helpers | None = None


def _start_helpers() -> _Helpers:
    global _helpers
    if hasattr(os, "register_at_fork"):  # threads do not survive a fork
        os.register_at_fork(after_in_child=_forget_helpers)
    _helpers = _Helpers()
    return _helpers


def _forget_helpers() -> None:
    global _helpers
    if _helpers is not None:
        _helpers = _Helpers()


def _take_all(spans: list[_Span]) -> None:
    for span in spans:
        span.take()


@lru_cache(1024)
def cut(size: int, count: int) -> list[slice]:
    """Return at most `count` slices that together cover range(size), and at least one."""
    if count == 1 or size < 2:
        return [slice(0, size)]
    first = int(size * (1 + HEAD_START) / count)
    step = -(-(size - first) // (count - 1))
    ends = [0, *range(first, size, step), size]
    return [slice(start, stop) for start, stop in pairwise(ends) if start < stop]


def other_kind_is_on() -> bool:
    """Return whether this thread makes arrays of another kind, which the others would not."""
    level = mode.now.kind
    return level is not None and level.real is not None


def in_spans(size: int, work: Callable[[slice], Any]) -> list[Any]:
    """Return what `work` gives for slices that cover range(size), in order; each on a thread of its own if that can be.

    It computes silently on all of them: which error state of NumPy's is in force must not depend on who does the work.
    """
    first, *others = cut(size, 1 if OTHER_KIND and other_kind_is_on() else get_num_threads())
    if not others:
        return [silent().run(work, first)]
    spans = [_Span(work, part) for part in others]
    closing = map(_close, [span.lock for span in spans])
    try:
        (_helpers or _start_helpers()).offer(spans)
        found = silent().run(work, first)
        silent().run(_take_all, spans)
    finally:
        any(closing)  # in one call: see above
    if any(span.fp_error for span in spans):
        fp_error.flag()
    raised = [span.error for span in spans if span.error is not None]
    if raised:
        for span in spans:
            span.error = None
        try:
            raise raised[0]
        finally:
            raised.clear()  # or this frame would keep alive what was raised, which keeps this frame
    return [found, *(span.found for span in spans)]


def in_steps(count: int, step: int, work: Callable[[slice], Any], threads: bool = True) -> list[Any]:
    """Return what `work` gives for slices of `step` items or fewer that together cover range(count), in their order."""
    def span(part: slice) -> list[Any]:
        return [work(slice(start, min(start + step, part.stop))) for start in range(part.start, part.stop, step)]

    if not threads or count <= 1:
        return silent().run(span, slice(0, count))
    return [found for part in in_spans(count, span) for found in part]


# Seconds of one thread's work from which others are woken. Until they run, and have told that they are done, it could
# have made several passes over a million elements. Where it has steps, whoever has done one may find the interpreter's
# lock taken, and has to be woken for the next: there it is the time for as much of it as fits the cache.
WORTH, WORTH_EACH = 4e-4, 2e-4


def in_turn(count: int, each: int, work: Callable[[slice], Any], whole: bool = False, fixed: bool = False) -> list[Any]:
    """Return what `work` gives for slices that cover range(count) items of `each` elements, which fit the cache.

    For work on each item by itself. How long the first slice took says whether several threads are worth it: then
    slices are larger. `whole`: it is one step, and what is left need not be cut at all. `fixed`: where it is cut is the
    same whatever the clock says, for sums.
    """
    def steps(start: int, stop: int, step: int) -> list[Any]:
        found = []
        while start < stop:
            end = start + step if stop - start - step > step // 8 else stop  # few would be computed in another way
            found.append(work(slice(start, end)))
            start = end
        return found

    first = max((BLOCK if fixed else PIECE) // max(each, 1), 1)
    first = first if count - first > first // 8 else count
    begin = perf_counter()
    found = [silent().run(work, slice(0, first))]
    seconds, rest = perf_counter() - begin, count - first
    if not rest:
        return found
    if get_num_threads() == 1 or (seconds * rest < WORTH * first if whole else seconds < WORTH_EACH):
        return found + silent().run(steps, first, count, rest if whole else first)
    if whole:
        return found + in_spans(rest, lambda part: work(slice(first + part.start, first + part.stop)))
    step = first if fixed else max(BLOCK // max(each, 1), 1)
    many = max(rest // step + (rest % step > step // 8), 1)  # as `steps` cuts all of it
    parts = in_spans(many, lambda part: steps(
        first + part.start * step, count if part.stop == many else first + part.stop * step, step))
    return found + [one for part in parts for one in part]
