"""Large arrays: memory that stays mapped, and several threads.

For a million elements the arithmetic is the smallest part. First, fresh memory costs a page fault for every 4 KiB: glibc
gives large blocks back to the system when they are freed, and the next array pays again. `keep_memory` tells it not to
(MUTAGRAD_KEEP_MEMORY=0 in the environment leaves glibc as it is); that alone makes a chain of operations three times as
fast. Second, NumPy uses one core. Elementwise work can be cut anywhere, and NumPy lets other threads run while it
computes, so each thread takes one span (`set_num_threads`). A function of several steps goes over its span in pieces, so
that what lies between two steps needs little memory.
"""
from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from ..errors import BadValue
from .host import ALARM, hush, np

LARGE = 1 << 18  # elements from which an operation is worth splitting: below, waking a thread costs more than it saves
# Operations that do little more than move memory, and from how many elements on they are worth it.
PLAIN = {np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute, np.square, np.maximum, np.minimum}
VERY_LARGE = 3 << 18
HEAD_START = 0.1  # how much more the calling thread does: the others have to wake first


def keep_memory() -> None:
    """Asks glibc to keep blocks of up to 32 MiB for reuse, by all threads alike, instead of unmapping them; does nothing elsewhere."""
    if os.environ.get("MUTAGRAD_KEEP_MEMORY", "1") == "0":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    trim_threshold, mmap_threshold, arena_max = -1, -3, -8
    mallopt(mmap_threshold, 32 << 20)
    mallopt(trim_threshold, 1 << 30)
    mallopt(arena_max, 1)  # what one thread has freed would otherwise be of no use to another


_threads = 0


def get_num_threads() -> int:
    """How many threads share the work on a large array: as many as there are cores, unless set."""
    global _threads
    if not _threads:
        _threads = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
    return _threads


def set_num_threads(count: int) -> None:
    """Sets how many threads share the work on a large array; 1 switches sharing off."""
    global _threads
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadValue(f"set_num_threads: the number of threads must be a positive integer, not {count!r}", fix="mutagrad.set_num_threads(1)")
    _threads = count


class _Helper:
    """A thread that waits for work. It is a daemon: it never keeps a program from ending."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.results: SimpleQueue[BaseException | None] = SimpleQueue()
        self.rung: list[bool] = []  # the alarm of that thread
        threading.Thread(target=self._loop, daemon=True, name="mutagrad").start()

    def _loop(self) -> None:
        hush(ALARM.setting)
        self.rung = ALARM.rung
        while True:
            task = self.tasks.get()
            try:
                task()
            except BaseException as error:  # handed to whoever asked
                self.results.put(error)
            else:
                self.results.put(None)
            del task


_pool: list[_Helper] = []
_busy = threading.Lock()
if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.clear)


def in_spans(size: int, work: Callable[[slice], None]) -> None:
    """Calls `work` with slices that together cover range(size), each on a thread of its own."""
    count = get_num_threads()
    if count == 1 or not _busy.acquire(blocking=False):  # a second thread of the user's works alone
        return work(slice(0, size))
    try:
        while len(_pool) < count - 1:
            _pool.append(_Helper())
        first = int(size * (1 + HEAD_START) / count)
        step = -(-(size - first) // (count - 1))
        used = _pool[: count - 1]
        for k, helper in enumerate(used):
            helper.tasks.put(partial(work, slice(min(first + k * step, size), min(first + (k + 1) * step, size))))
        try:
            work(slice(0, first))
        finally:
            errors = [helper.results.get() for helper in used]
        for helper, error in zip(used, errors):
            if helper.rung:
                helper.rung.clear()
                ALARM.ring()
            if error is not None:
                raise error
    finally:
        _busy.release()


# Elements that work of several steps is given at once, measured with normalisation, attention and gelu: they lie in the cache
# that the cores share. With fewer, threads spend their time handing the interpreter lock over.
BLOCK = 1 << 17
PIECE = BLOCK  # the same for elementwise functions of several steps


def in_blocks(count: int, size: int, work: Callable[[slice], None], threads: bool = True, parts: int = 1) -> None:
    """Calls `work` with slices that cover range(count), each of about BLOCK elements where an item has `size`; on threads if that pays.

    For work that goes over the same items several times: what one step leaves in the cache, the next finds there. (If it goes over
    an item in `parts`, blocks are that much larger.) Its many steps make the threads wait for each other, so there has to be more
    of it than of a single step.
    """
    step = max(BLOCK * parts // max(size, 1), 1)

    def span(part: slice) -> None:
        for start in range(part.start, part.stop, step):
            work(slice(start, min(start + step, part.stop)))

    if threads and count > 1 and count * size >= 2 * LARGE:
        in_spans(count, span)
    else:
        span(slice(0, count))


def flat(array: Any, shape: tuple[int, ...]) -> Any | None:
    """An array as the vector that spans are cut from: itself if it is the same everywhere, None if it cannot be cut."""
    if not isinstance(array, np.ndarray):
        return array
    if array.size == 1:
        return array.reshape(())
    if array.shape != shape:
        return None
    if array.flags.c_contiguous:
        return array.reshape(-1)
    return array[(0,) * array.ndim] if not any(array.strides) else None


def pieces(part: slice) -> list[slice]:
    """Slices of at most PIECE elements that together are `part`."""
    return [slice(start, min(start + PIECE, part.stop)) for start in range(part.start, part.stop, PIECE)]


def cut(value: Any, part: slice) -> Any:
    return value[part] if isinstance(value, np.ndarray) and value.ndim else value


def apply(function: Callable[..., Any], arrays: tuple[Any, ...], settings: tuple[Any, ...], out: Any) -> bool:
    """`out[...] = function(*arrays, *settings)` on several threads; False, with nothing done, where they cannot be cut."""
    shape = out.shape
    vectors = [flat(a, shape) for a in arrays]
    if any(v is None for v in vectors) or not out.flags.c_contiguous:
        return False
    target = out.reshape(-1)
    direct = isinstance(function, np.ufunc)
    if direct and out.size < VERY_LARGE and function in PLAIN:
        function(*arrays, out=out)
        return True

    def work(part: slice) -> None:
        if direct:
            function(*[cut(v, part) for v in vectors], out=target[part])
            return
        for piece in pieces(part):
            target[piece] = function(*[cut(v, piece) for v in vectors], *settings)

    in_spans(target.size, work)
    return True


def compute(function: Callable[..., Any], arrays: tuple[Any, ...]) -> Any | None:
    """`function(*arrays)` on several threads as a fresh array; None where they cannot be cut."""
    out = np.empty(arrays[0].shape, arrays[0].dtype)
    return out if apply(function, arrays, (), out) else None


STRIP = 16  # columns that a transposed matrix is copied by: what is read of each row then fills a line of the cache


def copy(array: Any) -> Any:
    """A C-contiguous copy."""
    if array.ndim > 1 and abs(array.strides[-1]) > abs(array.strides[-2]) > 0:
        out = np.empty(array.shape, array.dtype)

        def strips(part: slice) -> None:
            for start in range(part.start, part.stop, STRIP):
                columns = slice(start, min(start + STRIP, part.stop))
                out[..., columns] = array[..., columns]

        in_spans(array.shape[-1], strips)
        return out
    found = compute(np.positive, (array,)) if array.dtype.kind in "fciu" else None
    return array.copy() if found is None else found


def reverse(rules: Callable[..., tuple[Any, ...]], xp: Any, g: Any, saved: tuple[Any, ...], inputs: list[Any]) -> list[Any] | None:
    """The adjoints that an elementwise operation's rules give, on several threads; None where they cannot be cut."""
    shape = g.shape
    vectors = [flat(v, shape) if isinstance(v, np.ndarray) else v for v in saved]
    incoming = flat(g, shape)
    if incoming is None or any(v is None and s is not None for v, s in zip(vectors, saved)):
        return None
    outs = [None if k is None else np.empty(shape, g.dtype) for k in inputs]
    targets = [None if o is None else o.reshape(-1) for o in outs]

    def work(part: slice) -> None:
        for piece in pieces(part):
            for target, found in zip(targets, rules(xp, cut(incoming, piece), [cut(v, piece) for v in vectors], inputs)):
                if target is not None:
                    target[piece] = found

    in_spans(g.size, work)
    return outs


ROW = 128  # elements that a sum takes in one go; the sums of such rows are added in double, which keeps rounding small


def total(array: Any) -> Any:
    """The sum of all elements of a C-contiguous array of floats, in double: rows of them by BLAS, in a third of the time that NumPy takes."""
    vector, parts = array.reshape(-1), []

    def work(part: slice) -> None:
        end = part.start + (part.stop - part.start) // ROW * ROW
        rows = np.matmul(vector[part.start:end].reshape(-1, ROW), np.ones(ROW, array.dtype))
        rest = np.add.reduce(vector[end:part.stop], dtype=np.float64) if end < part.stop else 0.0
        parts.append(np.add.reduce(rows, dtype=np.float64) + rest)

    if array.size < VERY_LARGE:
        work(slice(0, array.size))
        return parts[0]
    in_spans(array.size, work)
    return np.add.reduce(np.stack(parts), dtype=np.float64)
