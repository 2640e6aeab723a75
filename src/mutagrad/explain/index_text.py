"""Writes a window on a storage as the index that a person would type: `[0, 1:]`."""
from __future__ import annotations

from math import prod
from typing import Any

from ..arrays import np
from ..core.window import Shape, Whole, Window, covers, dense_strides, index_of


def index_text(window: Window | None, whole: Whole) -> str:
    """Return the part of a storage that a window is; nothing if it is all of it or cannot be said.

    >>> from mutagrad.arrays import np
    >>> index_text((4, (2,), (4,), None), ((3,), np.dtype("float32")))
    '[1:]'
    """
    shape, dtype = whole
    if window is None or dtype is None:
        return ""
    if not isinstance(window, tuple):
        return _bracketed([str(i) for i in _position(window, shape, dtype.itemsize)])
    offset, inner, strides, picked = window
    if picked is not None:
        index = index_of(window)
        return f"[{_picked(index, inner)} of {prod(shape)}]" if index is not None else "[part of each number]"
    if covers(window, whole):
        return ""
    slices = _slices(_position(offset, shape, dtype.itemsize), inner, strides, shape, dtype.itemsize)
    return _bracketed(slices) if slices is not None else f"[{prod(inner)} of {prod(shape)}]"


def _position(offset: int, shape: Shape, itemsize: int) -> list[int]:
    """Return the index of the element at a byte."""
    return [offset // step % size for step, size in zip(dense_strides(shape, itemsize), shape)]


def _picked(index: tuple[Any, ...], inner: Shape) -> int:
    """Return how many elements an index picks from a window."""
    arrays = [np.asarray(part) for part in index if not isinstance(part, slice)]
    rest = [size for size, part in zip(inner, index) if isinstance(part, slice)]
    return prod(np.broadcast_shapes(*(a.shape for a in arrays))) * prod(rest) * prod(inner[len(index):])


def _slices(start: list[int], inner: Shape, strides: Shape, shape: Shape, itemsize: int) -> list[str] | None:
    """Return what is taken of each dimension of the storage; None if it is no slicing of it."""
    waiting = sorted(((t, n) for n, t in zip(inner, strides) if n != 1), key=lambda dim: abs(dim[0]))
    found = []
    for first, size, pitch in zip(start, shape, dense_strides(shape, itemsize)):
        step, count = (waiting[-1][0] / pitch, waiting[-1][1]) if waiting else (0.5, 1)
        if step == int(step) and 0 <= first + int(step) * (count - 1) < size:
            waiting.pop()
            found.append(_slice(first, count, int(step), size))
        else:
            found.append(str(first))
    return None if waiting else found


def _slice(first: int, count: int, step: int, size: int) -> str:
    if step < 0:
        return f"{first}:{first + step * count if first + step * count >= 0 else ''}:{step}"
    end = first + (count - 1) * step + 1
    text = f"{first or ''}:{end if end < size else ''}"
    return text if step == 1 else f"{text}:{step}"


def _bracketed(parts: list[str]) -> str:
    while len(parts) > 1 and parts[-1] == ":":
        parts = parts[:-1]
    return f"[{', '.join(parts)}]" if parts and parts != [":"] else ""
