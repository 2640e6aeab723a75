"""A sweep whose steps are recorded: the arithmetic of `create_graph=True`.

Adjoints are tensors here, so taking, clearing and accumulating are reads and in-place writes like a user's, and the engine
differentiates them like any other program.
"""
from __future__ import annotations

from sys import getrefcount
from typing import Any

from ..arrays import np
from .factory import make, view
from .graph import Node, Writer
from .indexing import put, read
from .op import RECORDED, Op, same
from .promote import NOTHING
from .storage import Storage, export_for_good
from .sweep import SOLE, Arithmetic
from .window import As, Shape, Whole, Window, broadcast_axes
from .write import new_node

SEEN_THROUGH = Op("saved", None, ("x",), (), {"x": same})


class Recorded(Arithmetic):
    """What a sweep does to adjoints, on tensors."""

    xp = RECORDED

    small = None

    def restore(self, node: Node) -> Any:  # type: ignore[override]
        """The saved values as tensors with the history that they had."""
        saves = node.op.saves
        if not saves:  # an operation on a list: its inputs come first, if it saves them
            if not node.op.frees:
                return node.saved
            saves = [("input", i) for i in range(len(node.saved) - 1)] + [("setting", 0)]
        return [v if kind in ("setting", "shape") or v is None else with_history(v, *source_of(node, kind, i))
                for (kind, i), v in zip(saves, node.saved)]

    def reshape(self, g: Any, shape: Shape) -> Any:
        return RECORDED.reshape(g, shape)

    def sum_to(self, g: Any, shape: Shape) -> Any:
        axes, squeeze = broadcast_axes(g._array.shape, shape)
        g = RECORDED.sum(g, axes, True)
        return RECORDED.reshape(g, shape) if squeeze else g

    def zeros(self, whole: Whole) -> Any:
        return make(np.zeros(*whole))

    def own(self, holder: list[Any], dtype: Any) -> Any:
        g = holder.pop()
        if dtype is not None and g._array.dtype != dtype:
            return RECORDED.cast(g, dtype)
        if getrefcount(g) <= SOLE and g._offset is None and getrefcount(g._storage) <= SOLE_STORAGE and not _lent(g._storage):
            return g
        return RECORDED.clone(g)

    def view(self, buffer: Any, window: Window) -> Any:
        if window.__class__ is int:
            return view(buffer, (), (), window)  # type: ignore[arg-type]
        offset, shape, strides, index = window  # type: ignore[misc]
        return view(buffer, shape, strides, offset, index.dtype if index.__class__ is As else None)

    def take(self, buffer: Any, window: Window, clear: bool) -> Any:
        part, index = self.view(buffer, window), _picked(window)
        g = RECORDED.clone(part) if index is None else read(part, index)
        if clear:
            put(part, index, 0, "take")
        return g

    def add_window(self, buffer: Any, window: Window, g: Any) -> None:
        put(self.view(buffer, window), _picked(window), g, "accumulate", accumulate=True)

    def add(self, holder: list[Any], g: Any) -> Any:
        return RECORDED.add(holder.pop(), g)


def _picked(window: Window) -> Any:
    index = None if window.__class__ is int else window[3]  # type: ignore[index]
    return index.index if index.__class__ is As else index


def _lent(storage: Storage) -> bool:
    """Whether its memory is also another storage's, or NumPy's."""
    return storage.root is not None or storage.ledger is not None and storage.ledger.exported()


SOLE_STORAGE = getrefcount(NOTHING._storage)  # of a tensor that has no views


def source_of(node: Node, kind: str, i: int) -> tuple[Writer | None, Window | None]:
    """The writer of a saved value, and the window through which it was read; of `out`, that through which it was written."""
    if kind == "input":
        return node[i], None if node.windows is None else node.windows[i]
    return node, node.written


def snapshot(node: Node, slot: int) -> Any:
    """A copy of a saved value. What is saved by reference is somebody's memory, which who asks for the value may write to."""
    while True:
        saved = node.saved
        value = saved[slot]
        if value is None or hasattr(value, "unpack"):
            return value if value is None else value.unpack()
        copy = np.array(value)
        if node.saved is saved:  # else a write on another thread has moved it aside meanwhile, and may have been under way
            return copy


def with_history(value: Any, writer: Writer | None, window: Window | None, shared: bool = True) -> Any:
    """A saved value as a tensor that has the history it had.

    Its memory may be another storage's (`shared`), whose ledger does not know this tensor: what is saved of it is saved by copy.
    """
    tensor = make(value)
    if shared and tensor._array is value:
        export_for_good(tensor)
    if writer is not None:
        tensor._storage.writer = writer if window is None else new_node(SEEN_THROUGH, (writer,), (window,))
    return tensor
