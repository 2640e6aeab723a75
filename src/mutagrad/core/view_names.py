"""What PyTorch would call the views that lead from a storage to a window on it, found from the geometry of both.

Nothing is recorded when a view is taken, so where two programs come to the same window the simpler one is told: `x.T`
and `x.transpose(0, 1)` are both a transpose. Names are in the order in which the views would be taken.
"""
from __future__ import annotations

from math import prod

from .window import As, Shape, Whole, Window, dense_strides, is_dense

Names = tuple[str, ...]
SHARING = {"ExpandBackward0", "UnfoldBackward0"}  # of their results, elements share memory


def view_names(window: Window, whole: Whole) -> Names:
    """Return the names of the views; none where the window is the whole storage in its own shape.

    What an index picks out of the window is not a view, but the operation that reads so.
    """
    offset, shape, strides, index = window if isinstance(window, tuple) else (window, (), (), None)
    sizes, dtype = whole
    if index.__class__ is As:
        return ("ViewAsRealBackward0" if dtype.kind == "c" else "ViewAsComplexBackward0",)
    if (shape, strides) == (sizes, dense_strides(sizes, dtype.itemsize)):
        return ()
    # What expand has repeated, of which graph._untangled says how it is known.
    repeated = tuple([1 if t % dtype.itemsize else n for n, t in zip(shape, strides)])
    axes = _axes(offset, repeated, strides, whole)
    found = _reshaped(repeated, strides, whole) if axes is None else _picked(repeated, strides, axes, whole)
    if (new := sum(t % dtype.itemsize != 0 for t in strides)) == 0:
        return found
    while found[-1:] == ("UnsqueezeBackward0",) and new:  # expand makes dimensions, too
        found, new = found[:-1], new - 1
    return (*found, "ExpandBackward0")


def _axes(offset: int, shape: Shape, strides: Shape, whole: Whole) -> list[int] | None:
    """Return the storage's dimension that each one of the window runs along, or None. Not of those of size one."""
    sizes, item = whole[0], whole[1].itemsize
    steps, found = dense_strides(sizes, item), list[int]()
    for n, t in zip(shape, strides):
        if n == 1:
            continue
        d = next((d for d, step in enumerate(steps) if sizes[d] > 1 and step <= abs(t)), None)
        if d is None or d in found or t % steps[d]:
            return None
        first = offset // steps[d] % sizes[d]
        if not 0 <= first + t // steps[d] * (n - 1) < sizes[d]:
            return None
        found.append(d)
    return found


def _reshaped(shape: Shape, strides: Shape, whole: Whole) -> Names:
    """Names for a window whose dimensions are not those of the storage."""
    if prod(shape) == prod(whole[0]):
        return ("ViewBackward0",) + ("PermuteBackward0",) * (not is_dense(shape, strides, whole[1].itemsize))
    if not is_dense(shape, strides, whole[1].itemsize):
        return ("AsStridedBackward0",)
    return ("ViewBackward0", "SliceBackward0") if len(shape) == 1 else ("SliceBackward0", "ViewBackward0")


def _picked(shape: Shape, strides: Shape, axes: list[int], whole: Whole) -> Names:
    """Names for a window along dimensions of the storage: what was picked, their order, and dimensions of size one."""
    sizes, item = whole[0], whole[1].itemsize
    steps = dense_strides(sizes, item)
    ones = shape.count(1) - sizes.count(1)
    gone = sum(n > 1 for n in sizes) - len(axes)
    narrowed = min(max(ones, 0), gone)
    along = [(n, t) for n, t in zip(shape, strides) if n != 1]
    sliced = narrowed + sum(n < sizes[d] or t != steps[d] for (n, t), d in zip(along, axes))
    moved = sum(a != b for a, b in zip(axes, sorted(axes)))
    order = ("TransposeBackward0" if moved == 2 else "PermuteBackward0",) if moved else ()
    ones = ones - narrowed
    return (("SelectBackward0",) * (gone - narrowed) + ("SliceBackward0",) * sliced + order
            + ("UnsqueezeBackward0",) * ones + ("SqueezeBackward0",) * (ones < 0))
