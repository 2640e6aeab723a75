"""Large arrays: elementwise work, copies and sums that are cut into spans for several threads.

A function of several steps goes over its span in pieces, so that what lies between two steps needs little memory.
Whoever cuts has to ask what NumPy asks for one call: whether writing one part changes what another has yet to read
(`read_first`).
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.operands import Array
from .allocator import keep_memory
from .compiled import loops
from .compiled.casts import NAMES as SHORT
from .kinds import is_plain
from .numpy import np
from .threads import get_num_threads, in_spans, in_steps, set_num_threads

__all__ = ["BLOCK", "LARGE", "PIECE", "apply", "compute", "copy", "flat", "get_num_threads", "in_blocks", "in_shares",
           "in_spans", "in_steps", "pieces", "reverse", "set_num_threads", "total"]

LARGE = 1 << 18  # elements from which an operation is worth splitting: below, waking a thread costs more than it saves
# Operations that do little more than move memory, and from how many elements on they are worth it.
PLAIN = {np.add, np.subtract, np.multiply, np.negative, np.positive, np.absolute, np.square, np.maximum, np.minimum}
VERY_LARGE = 3 << 18
# NumPy's own that call the C library, or branch, for each element.
SLOW = {np.logaddexp, np.log1p, np.sign, np.deg2rad, np.rad2deg}

# Elements that work of several steps is given at once, measured with normalisation, attention and gelu: they lie in the
# cache that the cores share. With fewer, threads spend their time handing the interpreter lock over.
BLOCK = 1 << 17
PIECE = BLOCK  # the same for elementwise functions of several steps


SHARED = 1 << 16  # elements from which a compiled loop is worth several threads


def in_shares(count: int, size: int, loop: Callable[[slice], Any]) -> list[Any]:
    """Return what a compiled loop gives for slices that cover range(count), which have `size` elements together."""
    return in_spans(count, loop) if size >= SHARED and count > 1 else [loop(slice(0, count))]


def in_blocks(count: int, size: int, work: Callable[[slice], Any], threads: bool = True, parts: int = 1) -> list[Any]:
    """Return what `work` gives for slices of about BLOCK elements that cover range(count) items of `size`, in order.

    For work that goes over the same items several times: what one step leaves in the cache, the next finds there. (If
    it goes over an item in `parts`, blocks are that much larger.) Its many steps make the threads wait for each other,
    so there has to be more of it than of a single step.
    """
    return in_steps(count, max(BLOCK * parts // max(size, 1), 1), work, threads and count * size >= 2 * LARGE)


def flat(array: Any, shape: tuple[int, ...]) -> Any | None:
    """Return an array as a vector to cut spans from: one element where all are the same, None if it cannot be cut."""
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
    """Return slices of at most PIECE elements that together are `part`."""
    return [slice(start, min(start + PIECE, part.stop)) for start in range(part.start, part.stop, PIECE)]


def part_of(value: Any, part: slice) -> Any:
    return value[part] if isinstance(value, np.ndarray) and value.ndim else value


def read_first(vector: Any, target: Array) -> Any:
    """Return an operand that can be read after parts of `target` were written: a copy, where it shares other parts."""
    if not isinstance(vector, np.ndarray) or not np.may_share_memory(vector, target):
        return vector
    same = vector.nbytes == target.nbytes and vector.__array_interface__["data"] == target.__array_interface__["data"]
    return vector if same else vector.copy()


def apply(function: Callable[..., Any], arrays: tuple[Array, ...], settings: tuple[Any, ...], out: Array) -> bool:
    """Do `out[...] = function(*arrays, *settings)` on several threads; False, with nothing done, where that cannot be.

    Operands may share memory with `out` in any way: all is as if they were read before anything is written.
    """
    if not is_plain(out, *arrays):
        return False
    shape = out.shape
    target = out.reshape(-1)
    vectors = [target if a is out else flat(a, shape) for a in arrays]
    if any(v is None for v in vectors) or not out.flags.c_contiguous:
        return False
    keep_memory()
    direct = isinstance(function, np.ufunc)
    short = out.dtype.char == "E" or out.dtype.char == "e" and function in PLAIN  # NumPy has vectors of few others
    if direct and out.size < VERY_LARGE and function in PLAIN and not short:
        function(*arrays, out=out)
        return True
    vectors = [v if v is target else read_first(v, target) for v in vectors]
    loop = None if direct and function not in SLOW and not short else loops.forward(function, vectors, settings, target)
    if loop is not None:
        in_shares(target.size, target.size, loop)
        return True

    def work(part: slice) -> None:
        if direct:
            function(*[part_of(v, part) for v in vectors], out=target[part])
            return
        for piece in pieces(part):
            target[piece] = function(*[part_of(v, piece) for v in vectors], *settings)

    in_spans(target.size, work)
    return True


def compute(function: Callable[..., Any], arrays: tuple[Array, ...]) -> Array | None:
    """Return `function(*arrays)`, computed on several threads, as a fresh array; None where they cannot be cut."""
    out: Array = np.empty(arrays[0].shape, arrays[0].dtype)
    return out if apply(function, arrays, (), out) else None


def copy(array: Array) -> Array:
    """Return a C-contiguous copy of an array that lies in memory in that order, or nearly; see also copies.py."""
    if not is_plain(array) or not array.flags.c_contiguous:
        return array.copy()
    keep_memory()
    out: Array = np.empty(array.shape, array.dtype)
    source, target = array.reshape(-1), out.reshape(-1)

    def work(part: slice) -> None:
        target[part] = source[part]

    in_spans(array.size, work)
    return out


def reverse(rules: Callable[..., Sequence[Array | None]], xp: Any, g: Array, saved: Sequence[Any],
            inputs: Sequence[Any]) -> list[Array | None] | None:
    """Return the adjoints that an operation's rules give, on several threads; None where they cannot be cut."""
    if not is_plain(g, *saved):
        return None
    shape = g.shape
    vectors = [flat(v, shape) if isinstance(v, np.ndarray) else v for v in saved]
    incoming = flat(g, shape)
    if incoming is None or any(v is None and s is not None for v, s in zip(vectors, saved)):
        return None
    outs = [None if k is None else np.empty(shape, g.dtype) for k in inputs]
    targets = [None if o is None else o.reshape(-1) for o in outs]
    if (loop := loops.backward(rules, xp, incoming, vectors, inputs, targets)) is not None:
        in_shares(g.size, g.size, loop)
        return outs
    if g.dtype.char in SHORT:
        return None

    def work(part: slice) -> None:
        for piece in pieces(part):
            given = [part_of(v, piece) for v in vectors]
            for target, found in zip(targets, rules(xp, part_of(incoming, piece), given, inputs)):
                if target is not None:
                    target[piece] = found

    in_spans(g.size, work)
    return outs


ROW = 128  # elements that a sum takes in one go; the sums of such rows are added in double, which keeps rounding small


def total(array: Array) -> Any:
    """Sum all elements of a C-contiguous array of floats, in double: rows of them by BLAS, on its own threads."""
    vector = array.reshape(-1)
    end = vector.size // ROW * ROW
    found = np.add.reduce(np.matmul(vector[:end].reshape(-1, ROW), np.ones(ROW, array.dtype)), dtype=np.float64)
    return found if end == vector.size else found + np.add.reduce(vector[end:], dtype=np.float64)
