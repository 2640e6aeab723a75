"""Saved values as tensors: who wrote them, a copy for whoever asks, and with the history that they had."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from .factory import make
from .graph import Node, Writer
from .op import Op, same
from .storage import export_for_good
from .window import Window
from .write import new_node

SEEN_THROUGH = Op("saved", None, ("x",), (), {"x": same})


def source_of(node: Node, kind: str, i: int) -> tuple[Writer | None, Window | None]:
    """Return the writer of a saved value, and the window through which it was read or, if it is `out`, written."""
    if kind == "input":
        return node[i], None if node.windows is None else node.windows[i]
    return node, node.written


def snapshot(node: Node, slot: int) -> Any:
    """Return a copy of a saved value: what is saved by reference is somebody's memory, and the copy may be written."""
    while True:
        saved = node.saved
        value = saved[slot]
        if value is None or hasattr(value, "unpack"):
            return value if value is None else value.unpack()
        copy = np.array(value)
        if node.saved is saved:  # else a write on another thread has moved it aside meanwhile, and it may be half new
            return copy


def with_history(value: Array, writer: Writer | None, window: Window | None, shared: bool = True) -> Any:
    """Return a saved value as a tensor that has the history it had.

    Its memory may be another storage's (`shared`), whose ledger does not know this tensor: what is saved of it is saved
    by copy.
    """
    tensor = make(value)
    if shared and tensor._array is value:
        export_for_good(tensor)
    if writer is not None:
        tensor._storage.writer = writer if window is None else new_node(SEEN_THROUGH, (writer,), (window,))
    return tensor
