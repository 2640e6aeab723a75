"""Copies of arrays that may lie in memory in another order, or be of another type: by a compiled loop, or by NumPy."""
from __future__ import annotations

from ..base.operands import Array
from .allocator import keep_memory
from .compiled.moves import move
from .kinds import is_plain, raw
from .numpy import np
from .sizes import LARGE, MIDDLE, PLENTY
from .threads import in_turn

MANY = 1 << 15  # elements from which NumPy's way to transpose, a row of the result at a time, misses the cache
RUN = range(8, 257)  # bytes in one piece, of which NumPy takes longer to set out over each than to copy it
STRIP = 32  # columns that are copied at a time: what is read of each row then fills lines of the cache


def copy_in_order(array: Array) -> Array:
    """Return a C-contiguous copy: by a loop; else a transposed matrix in strips, a large array on several threads."""
    if not is_plain(array) or array.size < MIDDLE:
        return array.copy()
    if array.size >= PLENTY or not array.flags.c_contiguous:
        keep_memory()
        made: Array = raw.empty(array.shape, array.dtype)
        if move(made, array):
            return made
    out: Array = raw.empty(array.shape, array.dtype)
    if put_runs(out, array):
        return out
    if array.size < MANY:
        return array.copy()
    if array.ndim > 1 and abs(array.strides[-1]) > abs(array.strides[-2]) > 0:
        def strips(part: slice) -> None:
            for start in range(part.start, part.stop, STRIP):
                columns = slice(start, min(start + STRIP, part.stop))
                out[..., columns] = array[..., columns]

        if array.size < LARGE:  # each strip is so short that threads would wait for each other
            strips(slice(0, array.shape[-1]))
        else:
            in_turn(array.shape[-1], array.size // array.shape[-1], strips, True)
        return out
    return array.copy() if array.size < LARGE else _copy_in_spans(array)


def put_runs(target: Array, source: Array) -> bool:
    """Do `target[...] = source` where each short run that lies in one piece in both can be one element to NumPy.

    False, with nothing done, where they have no such runs. They share no memory.
    """
    if target.shape != source.shape or target.dtype is not source.dtype or not target.ndim:
        return False
    first, run = target.ndim, target.itemsize
    while first and target.strides[first - 1] == source.strides[first - 1] == run and target.shape[first - 1] > 1:
        first -= 1
        run *= target.shape[first]
    if first in (0, target.ndim) or run not in RUN:
        return False
    kind, shape = np.dtype((np.void, run)), target.shape[:first]
    target.reshape(*shape, -1).view(kind)[..., 0] = source.reshape(*shape, -1).view(kind)[..., 0]
    return True


def _copy_in_spans(array: Array) -> Array:
    keep_memory()
    out: Array = raw.empty(array.shape, array.dtype)
    source, target = (array.reshape(-1), out.reshape(-1)) if array.flags.c_contiguous else (array, out)

    def work(part: slice) -> None:
        target[part] = source[part]

    in_turn(len(target), target.size // len(target), work, True)
    return out


def in_order(array: Array) -> Array:
    """Return the array itself if a compiled loop takes it as it is (C-contiguous, and not read-only), else a copy."""
    return array if array.flags.carray else copy_in_order(array)


def small_window(array: Array) -> Array:
    """Return an array that NumPy reads at once: of a small one with gaps a copy, in the order in which it lies.

    NumPy's functions take longer to set out over rows than it takes to copy them.
    """
    gaps = (type(array) is np.ndarray and array.size < MIDDLE and not array.flags.c_contiguous
            and 0 not in array.strides)  # which is asked of a symbol, too, where a formula becomes a loop
    return array.copy("K") if gaps else array
