"""Regions of a program: what they read from outside, and where a sweep over one that was computed again ends.

A region is what was recorded since some moment: nodes newer than that. What they read that is older lies outside.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..arrays import np
from ..base.operands import Array
from ..core.factory import make, view, window_or_none
from ..core.graph import UNKNOWN_SHAPE, Node, next_order, window_of
from ..core.op import Op, same
from ..core.storage import TensorBase, export_for_good
from ..core.window import As, Window, dense_strides, is_dense, overlaps_itself, shape_of
from ..core.write import new_node, set_write


def recorded_since(tensors: Iterable[TensorBase], since: int) -> tuple[list[Any], list[Any]]:
    """Return the nodes newer than `since` in the history of `tensors`, oldest first; and the older ones they read."""
    stack = [t._storage.writer for t in tensors]
    seen: set[Any] = set()
    inner, outer = [], []
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.order > since:  # orders count downwards
            outer.append(node)
        else:
            inner.append(node)
            stack.extend(node.inputs)
    return sorted(inner, key=lambda node: -node.order), outer


def wrote_outside(nodes: Iterable[Any], since: int) -> bool:
    """Return whether any of these nodes is a write to a part of something older than `since`."""
    return any(isinstance(node, Node) and node.previous is not None and node.previous.order > since
               for node in nodes)


class Read(NamedTuple):
    """A read from outside: which input of which node; the writer of what it read, and the window."""

    node: Any
    k: int
    writer: Any
    window: Any


def reads_outside(nodes: Iterable[Any], since: int) -> list[Read]:
    """Return what these nodes read that is older than `since`."""
    found = []
    for node in nodes:
        windows = getattr(node, "windows", None) or ()
        for k, writer in enumerate(node.inputs):
            if writer is not None and writer.order > since:
                found.append(Read(node, k, writer, windows[k] if k < len(windows) else None))
    return found


def key_of(writer: Any, window: Window | None) -> Any:
    """Return what stands for a writer and a window in a dict: of an index of arrays, their elements."""
    if window.__class__ is not tuple or window[3] is None:
        return writer, window
    *place, index = window
    kind, index = (index.dtype.str, index.index) if index.__class__ is As else ("", index)
    return writer, *place, kind, tuple((i.shape, i.dtype.str, i.tobytes()) if isinstance(i, np.ndarray) else repr(i)
                                       for i in (index if index.__class__ is tuple else (index,)))


# ------------------------------------------------------------------------------------------------------------ arguments

class Argument(NamedTuple):
    """How a tensor that a region is given lies in its storage: it must lie alike when the region is computed again.

    What is contiguous and what is a view decides how operations compute, and with how many nodes.
    """

    writer: Any
    window: Window | None
    offset: int | None
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def of(cls, tensor: TensorBase) -> Argument:
        a = tensor._array
        return cls(tensor._storage.writer, window_or_none(tensor), tensor._offset, a.shape, a.strides, a.itemsize)

    @property
    def dense(self) -> bool:
        return is_dense(self.shape, self.strides, self.itemsize)

    @property
    def overlaps(self) -> bool:
        """Whether elements share memory; where `expand` made it so, they may."""
        sizes = tuple(n if t else 1 for n, t in zip(self.shape, self.strides))
        return overlaps_itself(sizes, self.strides, self.itemsize)

    def laid_out(self, value: Array) -> TensorBase:
        """Return the value in memory of its own, as a window if it was one: in that order, without what lay between."""
        if self.offset is None or self.overlaps:
            tensor = make(value)
            if tensor._array is value:
                export_for_good(tensor)  # its memory may be another storage's, whose ledger does not know this tensor
            return tensor
        strides = self._compact()
        reach = [(n - 1) * t for n, t in zip(self.shape, strides) if n]
        first = self.itemsize - sum(t for t in reach if t < 0)  # an element is left over: it is no whole storage
        room = make(np.zeros((first + sum(t for t in reach if t > 0)) // self.itemsize + 1, value.dtype))
        tensor = view(room, self.shape, strides, first)
        tensor._array[...] = value
        return tensor

    def _compact(self) -> tuple[int, ...]:
        """Strides in the same order, with a gap where there was one."""
        strides = [0] * len(self.shape)
        before = None
        for d in sorted(range(len(self.shape)), key=lambda d: abs(self.strides[d])):
            size, old = self.shape[d], abs(self.strides[d])
            if size == 1 or not old:
                continue
            if before is None:
                step = self.itemsize * (1 if old == self.itemsize else 2)
            else:
                joined = old == abs(self.strides[before]) * self.shape[before]
                step = abs(strides[before]) * self.shape[before] + (0 if joined else self.itemsize)
            strides[d], before = step if self.strides[d] > 0 else -step, d
        return tuple(strides)


# ---------------------------------------------------------------------------------------------------------------- fence

class Fence:
    """Where a sweep over a region that is computed again ends: at the writers of what it reads whole, else at posts.

    A post is a node that stands for a window of an older storage, and has an adjoint of the window's size. Were the
    writer itself the end, it would get one of its whole storage, in each of many small regions that read a part.
    """

    _seen = Op("checkpointed", None, ("x",), (), {"x": same})

    def __init__(self) -> None:
        self.since, self._given = next_order(), 1
        self.ends: dict[Any, Any] = {}  # the key of the read that each end stands for
        self.posts: dict[Any, Node] = {}
        self.arguments: dict[Any, tuple[Argument, Any]] = {}  # by the writer of an argument's new storage

    def _order(self) -> float:
        """A moment after all that lies outside and all that were given out, before all that is computed again."""
        self._given += 1
        return self.since + 1 / self._given

    def _post(self, writer: Any, window: Window | None, whole: Any) -> Node:
        node = new_node(self._seen, (writer,), (window,))
        node.order, node.whole = self._order(), whole  # type: ignore[assignment]
        self.ends[node] = key_of(writer, window)
        return node

    def argument(self, value: Array, was: Argument) -> TensorBase:
        """Return the value of an argument as a tensor that leads to what the argument was."""
        tensor = was.laid_out(value)
        if was.writer is None:
            return tensor
        storage = tensor._storage
        if tensor._offset is None:
            node = self._post(was.writer, was.window, (value.shape, value.dtype))
        else:
            window = window_of(tensor)
            post = self._post(was.writer, was.window, UNKNOWN_SHAPE)
            node = new_node(self._seen, (post,), (None,))
            node.order = self._order()  # type: ignore[assignment]
            set_write(node, storage, window)
        storage.writer = node
        self.arguments[node] = was, key_of(was.writer, was.window)
        return tensor

    def source(self, read: Read) -> tuple[Any, Any]:
        """Return the key of what was read outside, be it by way of an argument, and its writer."""
        was, key = self.arguments.get(read.writer, (None, None))
        return (key_of(read.writer, read.window), read.writer) if was is None else (key, was.writer)

    def close(self, reads: list[Read]) -> None:
        """Put an end to each of these reads; arguments have theirs."""
        for node, k, writer, window in reads:
            if writer in self.arguments:
                continue
            key = key_of(writer, window)
            if window is None:
                self.ends[writer] = key
                continue
            whole, inside = UNKNOWN_SHAPE, None  # what an index has picked is all that the post is
            if (shape := shape_of(window)) is not None:
                index = None if window.__class__ is int else window[3]
                whole = shape, index.dtype if index.__class__ is As else writer.whole[1]
                inside = (0, shape, dense_strides(shape, whole[1].itemsize), None) if shape else 0  # what to sum to
            if key not in self.posts:
                self.posts[key] = self._post(writer, window, whole)
            node[k], node.windows = self.posts[key], (*node.windows[:k], inside, *node.windows[k + 1:])
