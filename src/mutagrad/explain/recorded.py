"""What a result was recorded from: its writes, oldest first, its leaves, and who read what."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.graph import UNKNOWN_SHAPE, Leaf, Node, Writer
from ..core.window import Shape, Whole, Window, shape_of
from ..tensors.tensor import Tensor


class Read(NamedTuple):
    """One write reads what another has left, through a window; or keeps it (`kept`), where it writes a part only."""

    source: int
    window: Window | None
    kept: bool


class Recorded:
    """All writers that some results depend on, by number: writes in the order of time, then leaves."""

    def __init__(self, outputs: Mapping[str, Tensor]) -> None:
        self.outputs = outputs
        found = _reachable([t._storage.writer for t in outputs.values()])
        self.writes: list[Node] = sorted((w for w in found if isinstance(w, Node)), key=lambda w: -w.order)
        self.leaves: list[Leaf] = sorted((w for w in found if isinstance(w, Leaf)), key=lambda w: -w.order)
        every: list[Writer] = [*self.writes, *self.leaves]
        self.number: dict[Writer, int] = {writer: k for k, writer in enumerate(every)}
        self.wholes = _wholes(self)

    def reads(self, number: int) -> Iterator[Read]:
        """Yield what a write has read, in the order of its inputs."""
        node = self.writes[number]
        windows: Sequence[Any] = node.windows or ()
        for i, writer in enumerate(node):
            if writer is not None:
                kept = node.written is not None and i == len(node) - 1
                yield Read(self.number[writer], windows[i] if i < len(windows) else None, kept)

    def source_of(self, tensor: Tensor) -> int:
        return self.number[tensor._storage.writer]


def op_name(node: Node) -> str:
    """Return the operation's name; of a custom Function, its class."""
    return str(node.op.name)


def _reachable(roots: list[Writer]) -> set[Writer]:
    found, waiting = set(roots), list(roots)
    while waiting:
        for writer in waiting.pop().inputs:
            if writer is not None and writer not in found:
                found.add(writer)
                waiting.append(writer)
    return found


# ------------------------------------------------------------------------------------------------------------- shapes
# A node does not note the shape of its result: that would cost every operation. Who has looked at a part of it knows
# it, so do values that were saved, and for many operations it follows from the shapes that they have read.

_FROM_INPUTS = {
    "linear": lambda x, w: x[:-1] + w[:1],
    "linear_bias": lambda x, w, b: x[:-1] + w[:1],
    "matmul": lambda x, y: _broadcast([x[:-2], y[:-2]]) + x[-2:-1] + (y[-1:] if len(y) > 1 else ()),
}


def _wholes(graph: Recorded) -> dict[int, Whole]:
    """Return shape and type of what each writer has written to, as far as they are known."""
    found: dict[int, Whole] = {graph.number[w]: w.whole for w in graph.leaves}
    for tensor in graph.outputs.values():
        buffer = tensor._storage.buffer
        found[graph.source_of(tensor)] = buffer.shape, buffer.dtype
    for k, node in enumerate(graph.writes):
        if node.whole is not UNKNOWN_SHAPE and node.whole[1] is not None:
            found[k] = node.whole
        for number, whole in _told_by(graph, k, node):
            found.setdefault(number, whole)
    for k, node in reversed(list(enumerate(graph.writes))):
        if k in found and _keeps_shape(node):
            found.setdefault(graph.number[node[0]], found[k])
    for k, node in enumerate(graph.writes):
        inferred = None if k in found else _inferred(graph, node, found)
        if inferred is not None:
            found[k] = inferred
    return found


def _told_by(graph: Recorded, k: int, node: Node) -> Iterator[tuple[int, Whole]]:
    """Yield what a node's saved values say about its own result, and about whole results that it has read."""
    shapes = getattr(node.op, "shapes", None)
    if shapes and len(shapes) == 1 and shapes[0] is not None:
        yield k, shapes[0]
    if not isinstance(node.saved, tuple):
        return
    for (kind, i), value in zip(getattr(node.op, "saves", ()), node.saved):
        if kind == "out" and hasattr(value, "dtype") and node.written is None:
            yield k, (value.shape, value.dtype)
        read = node[i] if kind in ("input", "shape") and i < len(node) else None
        if read is not None and (node.windows is None or node.windows[i] is None):
            if kind == "input" and hasattr(value, "dtype"):
                yield graph.number[read], (value.shape, value.dtype)
            elif kind == "shape" and isinstance(value, tuple):
                yield graph.number[read], (value, None)


def _keeps_shape(node: Node) -> bool:
    """Whether the result has the shape of all that was read: an elementwise operation on one whole tensor."""
    one = len(node) == 1 and node.windows is None and node.written is None
    return one and bool(getattr(node.op, "promotes", "")) and len(node.op.inputs) == 1


def _inferred(graph: Recorded, node: Node, found: dict[int, Whole]) -> Whole | None:
    """Return what follows from the shapes that a node has read, if they are all known."""
    inputs = getattr(node.op, "inputs", ())
    shapes = [_shape_read(graph, node, i, found) for i in range(len(inputs))]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes) or node.written is not None:
        return None
    rule: Any = _FROM_INPUTS.get(op_name(node))
    shape = rule(*known) if rule else _broadcast(known) if node.op.promotes else None
    dtypes = [found[graph.number[w]][1] for w in node if w is not None and graph.number[w] in found]
    return None if shape is None else (shape, next((dtype for dtype in dtypes if dtype is not None), None))


def _shape_read(graph: Recorded, node: Node, i: int, found: dict[int, Whole]) -> Shape | None:
    window = node.windows[i] if node.windows is not None and node[i] is not None else None
    if window is not None and not (isinstance(window, tuple) and 0 in window[2]):
        return shape_of(window)
    if node[i] is not None and window is None:
        return found[graph.number[node[i]]][0] if graph.number[node[i]] in found else None
    # A constant, or something expanded: of that the window has one of each that are the same.
    saved = dict(zip(node.op.saves, node.saved)) if isinstance(node.saved, tuple) else {}
    return getattr(saved.get(("input", i)), "shape", None)


def _broadcast(shapes: list[Shape]) -> Shape:
    longest = max(map(len, shapes))
    padded = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded))
