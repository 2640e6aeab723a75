"""Geometry without data: what part of a storage is meant, in bytes.

The same window laid over a storage's adjoint is the adjoint of the tensor, which is why views need no node and no rule.
"""
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Union

from ..base.operands import Array

Shape = tuple[int, ...]

# Which elements of an array are picked: for each dimension an array of positions, or all of them.
Index = tuple[Union[Array, slice], ...]

# Of a storage, its shape and element type: what an adjoint for all of it is made by.
Whole = tuple[Shape, Any]

# One element: its offset. Anything else: offset, shape, strides, and an index of what is picked inside, if not all.
# Numbers and plain tuples: see graph.Node.
Window = Union[int, tuple[int, Shape, Shape, Any]]


class As(NamedTuple):
    """Stands in the place of the index where elements of the window are of another type than those of the storage.

    The real parts of complex numbers are such a window. Its bytes in the storage's adjoint are its adjoint, as
    everybody's are: the gradient by a complex number is that by its real part and i times that by its imaginary part.
    """

    dtype: Any
    index: Any


class Rows(tuple[Array]):
    """An index of rows of a matrix, of which a leaf gets a gradient that holds no others; none for `left_out`."""

    left_out: int | None = None


@lru_cache(maxsize=4096)
def dense_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the strides of a C-contiguous array."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_dense(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Return whether an array is C-contiguous, whatever the strides of dimensions of size one say."""
    step = itemsize
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1:
            if stride != step:
                return size == 0 or 0 in shape
            step *= size
    return True


def covers(window: Window, whole: Whole) -> bool:
    """Return whether the window is the whole storage, in order, perhaps under another shape."""
    if window.__class__ is int:
        return prod(whole[0]) == 1
    _, shape, strides, index = window  # type: ignore[misc]
    return index is None and prod(shape) == prod(whole[0]) and is_dense(shape, strides, whole[1].itemsize)


def memory_order(window: Any, itemsize: int) -> list[int] | None:
    """Return the dimensions of a window from the outermost in memory on, if so it is dense; else None."""
    _, shape, strides, _ = window
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    dense = is_dense(tuple(shape[d] for d in order), tuple(strides[d] for d in order), itemsize)
    return order if dense else None


def index_of(window: Window | None) -> Any:
    """The index in a window: a tuple of arrays and full slices, or None."""
    index = window[3] if window.__class__ is tuple else None  # type: ignore[index]
    return index.index if index.__class__ is As else index


def order_of(shape: Shape, *operands: Array) -> Shape | None:
    """Return the dimensions of an elementwise result from the outermost in memory on; None where that is C order.

    It is the order in which its operands lie in memory; where they disagree the first one decides, as in PyTorch.
    (NumPy's functions give C order there.)
    """
    return _order_of(shape, *[(a.shape, a.strides) for a in operands])


@lru_cache(4096)
def _order_of(shape: Shape, *operands: tuple[Shape, Shape]) -> Shape | None:
    if 0 in shape:
        return None
    dims = list(reversed(range(len(shape))))  # from the innermost on
    aligned = [(0,) * (len(shape) - len(steps)) + tuple([0 if n == 1 else abs(t) for n, t in zip(sizes, steps)])
               for sizes, steps in operands]
    for place in range(1, len(dims)):
        for at in reversed(range(place)):
            further = [steps[dims[at]] > steps[dims[place]] for steps in aligned
                       if steps[dims[at]] and steps[dims[place]] and steps[dims[at]] != steps[dims[place]]]
            if further and not further[0]:
                break
            if further:
                dims[at], dims[place] = dims[place], dims[at]
                place = at
    order = tuple(reversed(dims))
    return None if order == tuple(range(len(shape))) else order


@lru_cache(4096)
def descends(strides: Shape) -> bool:
    """Return whether dimensions with these strides lie in memory in C order, as those of slices do."""
    steps = [abs(t) for t in strides if t]
    return steps == sorted(steps, reverse=True)


def are_apart(windows: Sequence[Any], itemsize: int) -> bool:
    """Return whether no two windows have an element in common, as far as their bounds show.

    Rows have bytes of their own, and columns have them in every row of the same pitch.
    """
    if any(w.__class__ is int or w[3] is not None for w in windows):
        return False
    if _follow(extent(w[0], w[1], w[2], itemsize) for w in windows):
        return True
    strides = windows[0][2]
    if not strides or any(w[2] != strides for w in windows):
        return False
    d = max(range(len(strides)), key=lambda d: abs(strides[d]))
    pitch, places = abs(strides[d]), []
    for offset, shape, _, _ in windows:
        low, high = extent(offset, shape[:d] + shape[d + 1:], strides[:d] + strides[d + 1:], itemsize)
        if not pitch or low % pitch + high - low > pitch:
            return False
        places.append((low % pitch, low % pitch + high - low))
    return _follow(places)


def _follow(spans: Iterable[tuple[int, int]]) -> bool:
    return all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def shape_of(window: Window) -> Shape | None:
    """Return the shape of what lies in the window; None where an index picks from it."""
    if window.__class__ is int:
        return ()
    _, shape, _, index = window  # type: ignore[misc]
    return shape if index is None or index.__class__ is As and index.index is None else None


def extent(offset: int, shape: Shape, strides: Shape, itemsize: int) -> tuple[int, int]:
    """Return the first byte that the window touches and the first that it no longer does."""
    if 0 in shape:
        return offset, offset
    low = high = offset
    for size, stride in zip(shape, strides):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + itemsize


def overlaps_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Return whether two positions of the window can be the same memory (`expand`, some `as_strided` and `unfold`)."""
    if len(shape) < 2:
        return bool(shape) and -itemsize < strides[0] < itemsize and shape[0] > 1
    return meets_itself(shape, strides, itemsize)


@lru_cache(4096)  # loops ask of the same few windows over and over
def meets_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """The same, remembered. (Not for vectors: each may have another size.)"""
    if 0 in shape:
        return False
    reach = itemsize
    for stride, size in sorted((abs(t), n) for n, t in zip(shape, strides) if n > 1):
        if stride < reach:
            return True
        reach = stride * (size - 1) + reach
    return False


@lru_cache(4096)
def layout(shape: Shape, strides: Shape, itemsize: int) -> tuple[Shape, Shape] | None:
    """Return shape and strides, the same tuples for all windows that have these; None for one that overlaps itself.

    Nodes keep them, and the cycle collector visits every tuple that is kept.
    """
    return None if meets_itself(shape, strides, itemsize) else (shape, strides)


def broadcast_axes(shape: Shape, target: Shape) -> tuple[tuple[int, ...], bool]:
    """Return which axes of `shape` to sum (keeping them) to get to `target`, and whether leading axes then go."""
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(target) if n == 1 and shape[i + lead] != 1)
    return axes, lead > 0


def infer_size(shape: Sequence[int], size: int) -> Shape | None:
    """Fill in the one -1 of a reshape; None where the sizes cannot agree."""
    wanted = tuple(int(n) for n in shape)
    if wanted.count(-1) == 1 and min(wanted) >= -1:
        known = prod(n for n in wanted if n != -1)
        if known == 0 or size % known:
            return None
        return tuple(size // known if n == -1 else n for n in wanted)
    return wanted if min(wanted, default=0) >= 0 and prod(wanted) == size else None
