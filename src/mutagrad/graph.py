"""The record of a program: every recorded operation is a write, and every write is a node.

A result is a write that covers a fresh storage; `y[0] = 5` is a write to part of an old one. The storage remembers its
latest writer, and a write to a part points to the writer before it. Nodes never refer to storages or
tensors, so there is no reference cycle and the graph dies with its tensors.
"""
from __future__ import annotations

import threading
from itertools import count
from types import CodeType
from typing import Any, Union
from weakref import ref

from .backends import np
from .storage import TensorBase
from .where import Where, describe
from .window import As, Shape, Window, overlaps_itself


class Mode(threading.local):
    """Of one thread: whether operations are recorded, whether a zero adjoint stays zero, whether nan in a sweep is an error."""

    grad = True
    strong_zeros = True
    anomaly = False


mode = Mode()

# Orders count downwards, so the smallest on a heap is the newest write.
next_order = count(0, -1).__next__


class Node(list[Any]):
    """One write: what was computed, from which writers' values, seen through which windows.

    A node is the list of its inputs: the writers of the storages that were read, None where no derivative is wanted. Where it
    wrote only part of its storage, the writer before it stands after them. `windows` says which part of each storage is
    meant, and, last, which part was written; None stands for a whole one, and for all of them where all are whole. `saved`
    is in the order of `op.saves`; a Freed stands there once a sweep has released it. `code` and `at` say where.

    A list, and windows that are plain tuples of numbers, because the cycle collector visits every object that could be part
    of a cycle again and again while a long program is recorded: this way a write is one such object, not three or four.
    """

    __slots__ = ("op", "windows", "saved", "order", "code", "at", "hooks", "__weakref__")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    op: Any
    windows: tuple[Window | None, ...] | None
    saved: Any
    order: int
    code: CodeType
    at: int
    hooks: list[Any] | None

    @property
    def inputs(self) -> list[Any]:
        return self

    @property
    def where(self) -> Where:
        return self.code, self.at

    def name(self) -> str:
        return _class_name(self.op.name)

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """As PyTorch's: the writers that this one reads, with the number of the output."""
        return tuple((writer, 0) for writer in self)

    @property
    def metadata(self) -> dict[str, Any]:
        return {"where": describe(self.where)}

    def __repr__(self) -> str:
        return f"<{self.name()} at {describe(self.where)}>"


class Leaf:
    """Where a sweep ends: a tensor that asked for its gradient, held weakly."""

    __slots__ = ("tensor", "window", "order", "hooks", "after", "__weakref__")
    op = None
    inputs: tuple[Writer | None, ...] = ()
    tensor: ref[TensorBase]
    window: Window | None
    order: int
    hooks: list[Any] | None
    after: list[Any] | None

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor, self.order = ref(tensor), next_order()
        self.hooks = self.after = None
        self.window = None if tensor._offset is None else window_of(tensor)

    @property
    def variable(self) -> TensorBase | None:
        return self.tensor()

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return ()

    def name(self) -> str:
        return "mutagrad::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


Writer = Union[Node, Leaf]


class Freed:
    """Stands in `node.saved` after a sweep released it; knows which `backward()` that was."""

    __slots__ = ("where",)

    def __init__(self, where: Where) -> None:
        self.where = where


def window_of(tensor: TensorBase, index: Any = None) -> Window:
    """What part of its storage a tensor is, and of that, what `index` picks."""
    array, buffer = tensor._array, tensor._storage.buffer
    if array.dtype is not buffer.dtype and array.dtype != buffer.dtype:
        return _window_as(tensor, array, buffer, index)
    if index is None and not array.ndim:
        return tensor._offset or 0, (), (), buffer.shape, buffer.dtype, None
    shape, strides = array.shape, array.strides
    if overlaps_itself(shape, strides, array.itemsize):
        return _untangled(tensor._offset or 0, shape, strides, buffer, index)
    return tensor._offset or 0, shape, strides, buffer.shape, buffer.dtype, index


def _window_as(tensor: TensorBase, array: Any, buffer: Any, index: Any) -> Window:
    """The same where elements are of another type than the storage's: found on the storage seen as of theirs."""
    shape, strides = array.shape, array.strides
    window: Window = tensor._offset or 0, shape, strides, (), None, index
    if overlaps_itself(shape, strides, array.itemsize):
        window = _untangled(tensor._offset or 0, shape, strides, buffer.reshape(-1).view(array.dtype), index)
    return (*window[:3], buffer.shape, buffer.dtype, As(array.dtype, window[5]))


def _untangled(offset: int, shape: Shape, strides: Shape, buffer: Any, index: Any) -> Window:
    """Of a window that overlaps itself, the part that does not: what arrives for the rest is summed into it.

    Where `expand` repeated a dimension the window has size one, and accumulating into it unbroadcasts. Other overlaps
    (`unfold`, `as_strided`) become an index of positions in the storage, in which duplicates add up.
    """
    item = buffer.itemsize
    unexpanded = tuple(1 if t == 0 else n for n, t in zip(shape, strides))
    if index is None and not overlaps_itself(unexpanded, strides, item):
        return offset, unexpanded, strides, buffer.shape, buffer.dtype, None
    places = np.full(shape, offset // item)
    for d, (n, t) in enumerate(zip(shape, strides)):
        places += (np.arange(n) * (t // item)).reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return 0, (buffer.size,), (item,), buffer.shape, buffer.dtype, (places if index is None else places[index],)


def _class_name(op_name: str) -> str:
    return "".join(part.capitalize() for part in op_name.split("_")) + "Backward0"
