"""Gradients of computed tensors whose elements share memory, such as `x.expand(3, 4)`: one for each element.

A read of such a window is recorded as one of the memory that it is, in which what arrives for its elements is summed.
Where gradients of its own are asked for it gets a node, which passes them on to the memory, and a sweep brings to that
node what was read through the very window. A tensor that asks for hooks is an alias of the memory from then on, as an
expanded leaf is, and its views are views of the alias. What was read of it in part before that could as well have been
read of the memory, and is an error.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import ref

from ..arrays import np
from ..arrays.kinds import is_plain
from ..base.errors import GradientError
from ..base.provenance import describe
from .graph import Adjoint, Node, Writer, element_type, next_order, positions_in, window_of
from .op import Op, same
from .storage import TensorBase, repeated_history
from .sweep import Sweep
from .window import As, Window, dense_strides, overlaps_itself
from .write import new_node

SPREAD = Op("expand", None, ("value",), (), {"value": same})
SPREAD.adds = False

# The nodes of tensors that have asked for hooks, and when that was.
ASKED: list[tuple[ref[Node], int]] = []
EVER = float("-inf")  # asked for after all that has been recorded


def check_separate(tensor: TensorBase, what: str) -> None:
    """Raise where elements of a tensor are the same memory, and so have no gradients of their own."""
    if shares_memory(tensor):
        raise GradientError(f"{what}: a tensor of shape {tensor._array.shape} whose elements share memory "
                            "has no gradient of its own",
                            why="expand, unfold or as_strided made several of its elements the same",
                            fix="x = x.clone() first")


def shares_memory(tensor: TensorBase) -> bool:
    """Whether several elements of a tensor are the same memory."""
    array = tensor._array
    return overlaps_itself(array.shape, array.strides, array.itemsize)


def node_of(tensor: TensorBase, what: str, known: Iterable[Node] = ()) -> Node:
    """Return the node for a window whose elements share memory: one of those known, or a new one."""
    if not is_plain(tensor._array):
        check_separate(tensor, what)
    window, writer = window_of(tensor), tensor._storage.writer
    known = [*known, *(node for node, _ in asked())]
    mine = [node for node in known if node[0] is writer and node.op is SPREAD]
    for node in mine:
        if _alike(node.windows[0], window):  # type: ignore[index]
            return node
    node = new_node(SPREAD, (writer,), (window,))
    node.whole = tensor._array.shape, tensor._array.dtype
    node.order = writer.order - 1 / (len(mine) + 2)  # after the write that it sees, and before all that has read it
    return node


def separate(tensor: TensorBase, what: str) -> Node:
    """Give a computed tensor whose elements share memory one in which each has its own, and return its node."""
    node = node_of(tensor, what)
    tensor._storage = storage = repeated_history(tensor)
    tensor._array, tensor._offset, storage.writer = storage.buffer, None, node
    ASKED.append((ref(node), next_order()))
    return node


def asked() -> list[tuple[Node, int]]:
    """Return the nodes that are still in use, and when they were asked for."""
    found = [(node, since) for reference, since in ASKED if (node := reference()) is not None]
    if len(found) < len(ASKED):
        ASKED[:] = [(ref(node), since) for node, since in found]
    return found


def _alike(one: Window | None, other: Window | None) -> bool:
    if one.__class__ is not tuple or other.__class__ is not tuple or one[:3] != other[:3]:  # type: ignore[index]
        return False
    i, j = one[3], other[3]  # type: ignore[index]
    if i is None or j is None or i.__class__ is As or j.__class__ is As:
        return i is j
    return len(i) == len(j) and all(map(np.array_equal, i, j))


def check_told_apart(seeds: Sequence[tuple[Writer, Window | None, Any]], spread: Sequence[tuple[Node, float]],
                     what: str) -> None:
    """Raise where a node was made before its like was asked for, and reads some of the same elements in another way."""
    for node, since in spread:
        if since == EVER and any(writer is node[0] and _meet(window, node) for writer, window, _ in seeds):
            raise _not_told_apart(what, node, "this")
    oldest, own = max((node[0].order for node, _ in spread), default=EVER), {node for node, _ in spread}
    stack: list[Any] = [writer for writer, _, _ in seeds]
    seen: set[Any] = {None, *own}
    while stack:
        reader = stack.pop()
        if reader in seen or reader.order >= oldest:
            continue
        seen.add(reader)
        stack.extend(reader.inputs)
        for node, since in spread:
            if reader.order > since and any(_meet(window, node) for window in _reads(reader, node[0])):
                raise _not_told_apart(what, node, f"{reader.op.name} at {describe(reader.where)}")


def _not_told_apart(what: str, node: Node, reader: str) -> GradientError:
    return GradientError(f"{what}: the gradient of a tensor of shape {node.whole[0]} whose elements share memory "
                         "cannot be told from that of the memory",
                         why=f"{reader} has read part of it, or of the memory",
                         fix="x = x.clone() first; or retain_grad() or register_hook() before it is used")


def _reads(reader: Any, writer: Writer) -> list[Window | None]:
    """The windows through which a node has read what a writer wrote."""
    if reader.op is None or reader.op is SPREAD:
        return []
    count = len(reader) - (reader.written is not None)
    windows = reader.windows or [None] * count
    return [window for before, window in zip(reader[:count], windows) if before is writer]


def _meet(window: Window | None, node: Node) -> bool:
    """Whether what was read through a window is not the one of a node, but elements of it."""
    own = node.windows[0]  # type: ignore[index]
    if _alike(window, own):
        return False
    shape, dtype = node[0].whole
    buffer = np.broadcast_to(np.zeros((), dtype), shape)
    unit = min(element_type(window, buffer), element_type(own, buffer), key=lambda kind: kind.itemsize)
    return bool(np.isin(positions_in(window, buffer, unit), positions_in(own, buffer, unit)).any())


class Spreading(Sweep):
    """Brings what was read through the windows of some nodes, `spread`, to these nodes."""

    __slots__ = ()
    spread: Sequence[Node]

    def accumulate(self, node: Writer, window: Window | None, g: Adjoint) -> None:
        for own in self.spread if window is not None else ():
            read = own.windows[0]  # type: ignore[index]
            if own[0] is node and window is not read and _alike(window, read):  # what it passes on itself, passes
                if self.reachable is not None and node in self.reachable:
                    self.reachable.add(own)
                shape, dtype = own.whole
                return super().accumulate(own, (0, shape, dense_strides(shape, dtype.itemsize), None), g)
        super().accumulate(node, window, g)


_ENGINES: dict[type[Sweep], Any] = {}


def spreading(engine: type[Sweep], spread: Sequence[Node], *arguments: Any) -> Sweep:
    """Return a sweep that does so besides."""
    if engine not in _ENGINES:
        _ENGINES[engine] = type("Spreading", (Spreading, engine), {"__slots__": ("spread",)})
    sweep = _ENGINES[engine](*arguments)
    sweep.spread = spread
    return sweep  # type: ignore[no-any-return]
