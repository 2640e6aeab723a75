"""The record of a program: every recorded operation is a write, and every write is a node.

A result is a write that covers a fresh storage; `y[0] = 5` is a write to part of an old one. The storage remembers its
latest writer, and a write to a part points to the writer before it. Nodes never refer to storages or
tensors, so there is no reference cycle and the graph dies with its tensors.
"""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cache
from itertools import count, zip_longest
from types import CodeType
from typing import Any, Union
from weakref import WeakValueDictionary, ref

from ..arrays import np
from ..base.errors import NotSupported
from ..base.operands import Array, Operand
from ..base.provenance import Where, describe
from .storage import TensorBase
from .view_names import SHARING, Names, view_names
from .window import As, Index, Shape, Whole, Window, layout, overlaps_itself

# Orders count downwards, so the smallest on a heap is the newest write.
next_order = count(0, -1).__next__

# What a sweep carries back: an array, or a tensor where the sweep is recorded.
Adjoint = Operand


class Node(list[Any]):
    """One write: what was computed, from which writers' values, seen through which windows.

    A node is the list of its inputs: the writers of the storages that were read, None where no derivative is wanted.
    `windows` says which part of each of those storages was read; None stands for a whole one, and for all of them where
    all are whole. Where only part of its own storage was `written`, the writer before it stands after the inputs.
    `whole` is the shape and type of its storage, if anybody has looked at a part of that. `saved` is in the order of
    `op.saves`; a Freed stands there once a sweep has released it. `code` and `at` say where.

    A list, and windows that are numbers or plain tuples of them, because the cycle collector visits every object that
    could be part of a cycle again and again while a long program is recorded: so a write is one such object, not five.
    """

    __slots__ = ("op", "windows", "written", "whole", "saved", "order", "code", "at", "hooks", "__weakref__")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__
    op: Any
    windows: Sequence[Window | None] | None
    written: Window | None
    whole: Whole
    saved: Any
    order: int
    code: CodeType
    at: int
    hooks: Hooks | None

    @property
    def inputs(self) -> list[Writer | None]:
        return self

    @property
    def previous(self) -> Writer | None:
        """The writer before this one, where only part of the storage was written; None if there is none, or all was."""
        return self[-1] if self.written is not None else None

    @property
    def where(self) -> Where:
        return self.code, self.at

    def name(self) -> str:
        return _class_name(self.op.name)

    @property
    def next_functions(self) -> tuple[tuple[Writer | ViewOf | None, int], ...]:
        """As PyTorch's: the writers that this one reads, with the number of the output; views of them in between."""
        return tuple(edge(seen_through(writer, window)) for writer, window in zip_longest(self, self.windows or ()))

    @property
    def metadata(self) -> dict[str, str]:
        return {"where": describe(self.where)}

    def __repr__(self) -> str:
        return f"<{self.name()} at {describe(self.where)}>"

    def __dir__(self) -> list[str]:
        """Without what this node has not saved: who prints a graph reads all that begins with _saved."""
        return [name for name in super().__dir__() if not name.startswith("_saved") or hasattr(self, name)]


class Hooks(dict[Any, tuple[Any, ...]]):
    """The hooks of a node or leaf, by the key of the handle that removes them: each a function and what it is told."""

    def enter(self, entry: tuple[Any, ...], key: Hashable | None = None) -> Hashable:
        """Add a hook under its key, or under a new one; return the key."""
        key = next_key() if key is None else key
        self[key] = entry
        return key

    def in_order(self) -> list[tuple[Any, ...]]:
        """By rank, then as they were entered. A list of its own: a hook may remove itself."""
        return sorted(self.values(), key=lambda entry: getattr(entry[0], "rank", 0))


next_key = count().__next__
NOT_KEPT = None, -1, None


class Leaf:
    """Where a sweep ends: a tensor that asked for its gradient, held weakly.

    Small values are copied when they are saved, and a leaf is saved again and again: `kept` is the last copy, of which
    array and at which version it was made.
    """

    __slots__ = ("tensor", "window", "shape", "whole", "order", "hooks", "after", "kept", "__weakref__")
    op = None
    inputs: tuple[Writer | None, ...] = ()
    tensor: ref[TensorBase]
    window: Window | None
    shape: Shape
    whole: Whole
    order: int
    hooks: Hooks | None
    after: Hooks | None
    kept: tuple[Array | None, int, Array | None]

    def __init__(self, tensor: TensorBase) -> None:
        self.tensor, self.order = ref(tensor), next_order()
        self.hooks = self.after = None
        self.kept = NOT_KEPT
        self.whole = tensor._storage.buffer.shape, tensor._storage.buffer.dtype
        self.see(tensor)

    def see(self, tensor: TensorBase) -> None:
        """Note which window on its storage the tensor is, and its shape."""
        self.window, self.shape = None if tensor._offset is None else window_of(tensor), tensor._array.shape

    @property
    def variable(self) -> TensorBase | None:
        return self.tensor()

    @property
    def next_functions(self) -> tuple[tuple[Writer | None, int], ...]:
        return ()

    def name(self) -> str:
        return "mutagrad::autograd::AccumulateGrad"

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


Leaf.__name__ = Leaf.__qualname__ = "AccumulateGrad"  # its name in PyTorch: walkers ask for type(node).__name__
Writer = Union[Node, Leaf]


class Output:
    """The operation of a node that stands for one of several results; its input is the node that made them all."""

    name = "output"
    frees = False
    adds = False


OUTPUT = Output()


class ViewOf:
    """Stands in the graph, as a program sees it, for a view that was read. Views have no node of their own.

    It is made when somebody asks, is the same object as long as somebody has it, and is named by its geometry. Of
    several views one after the other, it is the last of those that `names` lists. `place` is the window where that is
    known, which it is not of those in between, nor where elements share memory.
    """

    __slots__ = ("writer", "window", "names", "place", "__weakref__")
    writer: Writer
    window: Window
    names: Names
    place: Window | None

    @property
    def inputs(self) -> tuple[Writer]:
        return (self.writer,)

    @property
    def next_functions(self) -> tuple[tuple[Writer | ViewOf | None, int], ...]:
        return (edge(view_as(self.writer, self.window, self.names[:-1])),)

    @property
    def metadata(self) -> dict[str, str]:
        return {}

    def name(self) -> str:
        return self.names[-1]

    def __repr__(self) -> str:
        return f"<{self.name()}>"


# Those that somebody has: who walks a graph remembers where it has been.
_VIEWS: WeakValueDictionary[tuple[Writer, Window, Names], ViewOf] = WeakValueDictionary()


def view_as(writer: Writer, window: Window, names: Names, place: Window | None = None) -> Writer | ViewOf:
    """Return what stands for views of what a writer wrote; itself, where there are none."""
    if not names:
        return writer
    key = writer, window, names
    if (found := _VIEWS.get(key)) is None:
        found = _VIEWS[key] = _class_named(names[-1], ViewOf)()
        found.writer, found.window, found.names = key
        found.place = None if names[-1] in SHARING else place
    return found


def place_of(view: ViewOf, what: str) -> Window:
    """Return the window that a view in the graph is, or raise where that is not known."""
    if view.place is None:
        raise NotSupported(f"{what}: {view.name()} stands for a view, which has no node of its own, "
                           "and of which only the name is known",
                           why="other views follow it, or its elements share memory",
                           fix="keep the view itself: v = x[0], then v.register_hook(hook), or grad(loss, v)")
    return view.place


def seen_through(writer: Writer | None, window: Window | None) -> Writer | ViewOf | None:
    """Return a writer, or what stands for the view of what it wrote where the window is not all of that."""
    if writer is None or window is None or writer.whole is UNKNOWN_SHAPE:
        return writer
    window = without_index(window)
    return view_as(writer, window, view_names(window, writer.whole), window)


def without_index(window: Window) -> Window:
    """Return a window without what picks elements in it: that is part of the operation which reads through it."""
    if not isinstance(window, tuple):
        return window
    *place, index = window
    return (*place, As(index.dtype, None) if index.__class__ is As else None)  # type: ignore[return-value]


def edge(writer: Writer | ViewOf | None) -> tuple[Writer | ViewOf | None, int]:
    """Return a place in the graph as PyTorch shows it: the operation, of a type of its name, and result number."""
    if isinstance(writer, Node) and writer.op is OUTPUT and writer[0] is not None:
        return writer[0], writer.saved
    if writer.__class__ is Node:  # walkers ask for type(node).__name__
        writer.__class__ = _class_named(writer.name(), Node)  # type: ignore[union-attr]
    return writer, 0


@cache
def _class_named(name: str, base: type) -> Any:
    return type(name, (base,), {"__slots__": (), "__module__": base.__module__})


# `whole` of a node of whose storage nobody has looked at a part yet.
UNKNOWN_SHAPE: Whole = ((), None)


class Freed:
    """Stands in `node.saved` after a sweep released it; knows which `backward()` that was."""

    __slots__ = ("where",)

    def __init__(self, where: Where) -> None:
        self.where = where


def window_of(tensor: TensorBase, index: Index | None = None) -> Window:
    """Return what part of its storage a tensor is, of that what `index` picks. The writer learns what the whole is."""
    array, storage = tensor._array, tensor._storage
    buffer, writer = storage.buffer, storage.writer
    if writer is not None and writer.whole is UNKNOWN_SHAPE:
        writer.whole = buffer.shape, buffer.dtype
    if array.dtype is not buffer.dtype and array.dtype != buffer.dtype:
        return _window_as(tensor, array, buffer, index)
    if index is None and not array.ndim:
        return tensor._offset or 0
    shape, strides = array.shape, array.strides
    if len(shape) == 1:
        if overlaps_itself(shape, strides, array.itemsize):
            return _untangled(tensor._offset or 0, shape, strides, buffer, index)
    elif (known := layout(shape, strides, array.itemsize)) is None:
        return _untangled(tensor._offset or 0, shape, strides, buffer, index)
    else:
        shape, strides = known
    return tensor._offset or 0, shape, strides, index


def _window_as(tensor: TensorBase, array: Array, buffer: Array, index: Index | None) -> Window:
    """The same where elements are of another type than the storage's: found on the storage seen as of theirs."""
    shape, strides = array.shape, array.strides
    offset = tensor._offset or 0
    if overlaps_itself(shape, strides, array.itemsize):
        offset, shape, strides, index = _untangled(offset, shape, strides, buffer.reshape(-1).view(array.dtype), index)
    return offset, shape, strides, As(array.dtype, index)


def _untangled(offset: int, shape: Shape, strides: Shape, buffer: Array,
               index: Index | None) -> tuple[int, Shape, Shape, Index | None]:
    """Of a window that overlaps itself, the part that does not: what arrives for the rest is summed into it.

    Where `expand` repeated a dimension the window has size one, and accumulating into it unbroadcasts. A stride of such
    a dimension moves nothing: it keeps how often it was repeated, and is no multiple of an element's size, as all
    others are, so that only the same repetition is the same window. Other overlaps (`unfold`, `as_strided`) become an
    index of positions in the storage, in which duplicates add up.
    """
    item = buffer.itemsize
    unexpanded = tuple(1 if t == 0 else n for n, t in zip(shape, strides))
    if index is None and not overlaps_itself(unexpanded, strides, item):
        return offset, unexpanded, tuple(n * item + 1 if t == 0 else t for n, t in zip(shape, strides)), None
    places = positions(offset, shape, strides, item)
    return 0, (buffer.size,), (item,), (places if index is None else places[index],)


def positions(offset: int, shape: Shape, strides: Shape, item: int) -> Array:
    """Which elements of a storage a window is, counted from its first."""
    places: Array = np.full(shape, offset // item)
    for d, (n, t) in enumerate(zip(shape, strides)):
        places += (np.arange(n) * (t // item)).reshape((-1,) + (1,) * (len(shape) - 1 - d))
    return places


def element_type(window: Window | None, buffer: Array) -> Any:
    """Return NumPy's type of the elements in a window on a storage."""
    index = window[3] if window.__class__ is tuple else None  # type: ignore[index]
    return index.dtype if index.__class__ is As else buffer.dtype


def positions_in(window: Window | None, buffer: Array, unit: Any) -> Any:
    """Return which elements of a storage, counted in elements of type `unit`, lie in a window; in order, each once."""
    size, item = element_type(window, buffer).itemsize, unit.itemsize
    if window is None:
        return np.arange(buffer.nbytes // item)
    if window.__class__ is int:
        first: Any = np.array([window])
    else:
        offset, shape, strides, index = window  # type: ignore[misc]
        index = index.index if index.__class__ is As else index
        first = positions(offset, shape, strides, 1)
        first = first.reshape(-1) if index is None else first[index].reshape(-1)
    return np.unique(first[:, None] // item + np.arange(size // item))


def picking(buffer: Array, places: Array, unit: Any) -> Window:
    """Return the window of what is at these places of a storage, so counted."""
    index = (places,)
    return 0, (buffer.nbytes // unit.itemsize,), (unit.itemsize,), index if buffer.dtype == unit else As(unit, index)


# What PyTorch calls the derivatives of operations that have other names here.
_KNOWN_AS = {
    "batch_norm": "NativeBatchNorm", "cast_float": "ToCopy", "conv": "Convolution", "cross": "LinalgCross",
    "cross_entropy": "NllLoss", "det": "LinalgDet", "inv": "LinalgInvEx", "layer_norm": "NativeLayerNorm",
    "linear": "Mm", "linear_bias": "Addmm", "log1p": "Log1P", "matmul": "Mm", "norm2": "LinalgVectorNorm",
    "pad": "ConstantPadNd", "square": "Pow"}


def _class_name(op_name: str) -> str:
    return (_KNOWN_AS.get(op_name) or "".join(part.capitalize() for part in op_name.split("_"))) + "Backward0"
