"""Copies of arrays that may lie in memory in another order, or be of another type: by a compiled loop, or by NumPy."""
from __future__ import annotations

from itertools import product

from ..base.operands import Array
from .allocator import keep_memory
from .blas import transposing
from .compiled.layout import address
from .compiled.moves import move
from .kinds import is_plain, raw
from .numpy import np
from .sizes import LARGE, MIDDLE, PLENTY
from .threads import in_turn

MANY = 1 << 15  # elements from which NumPy's way to transpose, a row of the result at a time, misses the cache
RUN = range(8, 257)  # bytes in one piece, of which NumPy takes longer to set out over each than to copy it
STRIP = 16  # columns that are copied at a time: what is read of each row then fills lines of the cache
TURNED = 1 << 12  # elements of a matrix that are worth a call of BLAS's


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
    if put_runs(out, array) or put_turned(out, array):
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


def _are_alike(target: Array, source: Array) -> bool:
    """Whether they are NumPy's own (where another kind is on, what is made for a copy is of that kind), of one form."""
    return (type(target) is type(source) is raw.ndarray and target.shape == source.shape
            and target.dtype is source.dtype)


def put_runs(target: Array, source: Array) -> bool:
    """Do `target[...] = source` where each short run that lies in one piece in both can be one element to NumPy.

    False, with nothing done, where they have no such runs. They share no memory.
    """
    if not _are_alike(target, source) or not target.ndim:
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


def put_turned(target: Array, source: Array) -> bool:
    """Do `target[...] = source` by OpenBLAS where they are matrices that are each other's transpose, or many of these.

    It takes a quarter of the time. False, with nothing done, elsewhere. They share no memory.
    """
    if not (_are_alike(target, source) and target.flags.aligned and source.flags.aligned) or (
            copy := transposing(target.dtype.char)) is None:
        return False
    item, axes = target.itemsize, _merged(target.shape, target.strides, source.strides)
    if len(axes) < 2 or axes[-1][1] != item or (row := next((a for a in axes[:-1] if a[2] == item), None)) is None:
        return False
    axes.remove(row)
    (columns, wide, _), (rows, _, apart) = row, axes.pop()
    if rows * columns < TURNED or wide % item or apart % item or wide < rows * item or apart < columns * item:
        return False
    begin, end = address(source), address(target)
    for at in product(*(range(n) for n, _, _ in axes)):
        shift = sum(i * step for i, (_, _, step) in zip(at, axes))
        copy(rows, columns, begin + shift, apart // item,
             end + sum(i * step for i, (_, step, _) in zip(at, axes)), wide // item)
    return True


def _merged(shape: tuple[int, ...], target: tuple[int, ...], source: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Sizes and strides of the dimensions that are left when those are one that lie so in both; the last is last."""
    axes: list[tuple[int, int, int]] = []
    for n, out, at in zip(shape, target, source):
        if n != 1 and axes and (axes[-1][1], axes[-1][2]) == (n * out, n * at):
            axes[-1] = axes[-1][0] * n, out, at
        elif n != 1:
            axes.append((n, out, at))
    return axes


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
