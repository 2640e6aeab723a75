"""Values that events have saved for their backward, and the writes that have overwritten them since.

The engine moves such a value aside before it is overwritten, so that gradients are right; PyTorch raises in its place.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any
from weakref import ref

from ..arrays import np
from ..core.graph import Node, positions_in
from ..core.storage import TensorBase
from .calls import Part, part_of
from .recording import Lane, Saved, Saver

MOST = 256  # savers that a storage remembers
EXACT = 1 << 14  # elements up to which two windows are compared element by element


def note_saved(node: Node, event: int, given: list[Any], results: list[TensorBase],
               lane_of: Callable[[TensorBase], Lane]) -> tuple[Saved, ...]:
    """Return what a node has saved; the storages in which that lies remember who saved it."""
    found: list[Saved] = []
    for name, kind, i, value in _saved_values(node):
        owner = _owner(node, kind, i, value, given, results)
        lane = None if owner is None else lane_of(owner)
        if owner is not None and lane is not None:
            _remember(lane, Saver(event, ref(node), part_of(owner)))
        copied = owner is None or value is not owner._array
        if owner is not None or value.size > 1:  # else it is a number of the program's
            found.append(Saved(lane, name, int(value.nbytes), copied))
    return tuple(found)


def _saved_values(node: Node) -> Iterator[tuple[str, str, int, Any]]:
    """Yield what of its inputs and its result a node has saved: the name, "input" or "out", which one, the value."""
    if isinstance(node.saved, tuple):
        for (kind, i), value in zip(getattr(node.op, "saves", ()), node.saved):
            if kind in ("input", "out") and hasattr(value, "nbytes"):
                yield f"operand {i + 1}" if kind == "input" else "result", kind, i, value


def _owner(node: Node, kind: str, i: int, value: Any, given: list[Any], results: list[TensorBase]) -> Any:
    """Return the tensor that a saved value is; small ones are saved as copies, which are known by who wrote them."""
    tensors = [(tensor, writer) for tensor, _, _, writer in given]
    for tensor in (*(tensor for tensor, _ in tensors), *results):
        if tensor._array is value:
            return tensor
    if kind == "out":
        return next((tensor for tensor in results if tensor._storage.writer is node), None)
    alike = [(tensor, writer) for tensor, writer in tensors if tensor._array.shape == value.shape]
    return next((tensor for tensor, writer in alike if writer is node[i]), None)


def _remember(lane: Lane, saver: Saver) -> None:
    lane.savers = (*lane.savers, saver)
    if len(lane.savers) > MOST:
        lane.savers = tuple(other for other in lane.savers if _holds(other))[-MOST // 2:]


def _holds(saver: Saver) -> bool:
    """Whether a backward may still need the value."""
    node = saver.node()
    return node is not None and isinstance(node.saved, tuple)


def overwritten(lane: Lane, part: Part, event: int) -> tuple[int, ...]:
    """Return the earlier events whose saved values lie in what is written now, each once for all writes."""
    hit = [saver for saver in lane.savers if saver.event != event and _overlap(saver.part, part) and _holds(saver)]
    if hit:
        lane.savers = tuple(saver for saver in lane.savers if saver not in hit)
    return tuple(dict.fromkeys(saver.event for saver in hit))


def _overlap(one: Part, other: Part) -> bool:
    """Whether two parts of a memory have bytes in common: by their hulls, and exactly where one has gaps."""
    if one.high <= other.low or other.high <= one.low:
        return False
    few = max(one.high - one.low, other.high - other.low) <= EXACT * one.dtype.itemsize
    if not few or one.dtype != other.dtype or not (_has_gaps(one) or _has_gaps(other)):
        return True
    return bool(np.intersect1d(_elements(one), _elements(other)).size)


def _has_gaps(part: Part) -> bool:
    window: Any = part.window
    return window.__class__ is tuple and (window[3] is not None
                                          or prod(window[1]) * part.dtype.itemsize < part.high - part.low)


def _elements(part: Part) -> Any:
    """Return the elements of a memory that a part is."""
    return positions_in(part.window, np.empty(0, part.dtype), part.dtype) + part.start // part.dtype.itemsize
