"""Writes: changes of memory begin and end here, recorded if they are part of the differentiable program."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from math import prod
from typing import Any

from ..arrays import np, parallel as large
from ..arrays.kinds import is_plain
from ..arrays.numpy import silent
from ..base.errors import BadArgument, DTypeError, MutagradError, OutOfMemory, OverlapError, ShapeError
from ..base.modes import OTHER_KIND, mode
from ..base.operands import Array, kind_name
from ..base.provenance import OURS, to_user
from .dtypes import of_array
from .evidence import overwritten
from .factory import AnyTensor, make, over, view, whole_memory, window_or_none
from .graph import UNKNOWN_SHAPE, Node, Writer, element_type, next_order, picking, positions, positions_in, window_of
from .op import Op, forward_for, same, variant
from .promote import SCALAR_OPERAND, dtype_error, promote, shape_error
from .storage import (
    Repeated,
    Storage,
    Taken,
    TensorBase,
    aliases_near,
    check_inside,
    check_own,
    has_aliases,
    histories,
    move_aside,
    same_group,
    save,
)
from .window import Index, Shape, Window, covers, dense_strides, extent, overlaps_itself


def new_node(op: Op | Any, inputs: Sequence[Writer | None], windows: Sequence[Window | None] | None = None) -> Node:
    """Return a node for a write by `op`, made at the user's line."""
    frame = sys._getframe(1)  # where.user_frame(), without the call: every step of a loop over elements comes here
    code = frame.f_code
    while code.co_filename in OURS and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
    node = Node(inputs)
    node.op = op
    node.windows = windows
    node.written = None
    node.whole = UNKNOWN_SHAPE
    node.saved = ()
    node.order = next_order()
    node.code = code
    node.at = frame.f_lasti
    node.hooks = None
    return node


def linked(tensors: Sequence[TensorBase]) -> tuple[tuple[Writer | None, ...], tuple[Window | None, ...]]:
    """Return the inputs and windows of a fresh result of `tensors`."""
    return tuple(t._storage.writer for t in tensors), tuple(map(window_or_none, tensors))


def check_writable(target: Any, name: str) -> None:
    """Raise where a write through this window has no defined meaning."""
    if not isinstance(target, TensorBase):
        raise BadArgument(f"{name}: can only write into a tensor, not into {kind_name(target)}")
    check_own(target._storage.root or target._storage, name)
    array = target._array
    if target._offset is not None and array.ndim and overlaps_itself(array.shape, array.strides, array.itemsize):
        error = OverlapError(f"{name}: cannot write through a window of shape {array.shape} that overlaps itself",
                             why="several of its elements are the same memory (expand, unfold or as_strided made it)",
                             fix="x = x.clone() before writing")
        error.is_expanded = any(n > 1 and step == 0 for n, step in zip(array.shape, array.strides))
        raise error


def set_write(node: Node, storage: Storage, window: Window) -> None:
    """Make the node of a fresh result a write to `window` of a storage. If that is all of it, the past is over."""
    before = storage.writer
    known = before is not None and before.whole is not UNKNOWN_SHAPE  # a tuple less to keep
    node.whole = before.whole if known else (storage.buffer.shape, storage.buffer.dtype)
    node.written = window
    if covers(window, node.whole):
        node.append(None)
        overwritten(node, before)
    else:
        node.append(before)


def begin_write(op: Op, target: TensorBase, tensors: Sequence[TensorBase], arrays: Sequence[Array],
                settings: Sequence[Any], index: Index | None = None, shape: Shape | None = None,
                record: bool = True) -> Node | None:
    """Move saved values aside and make the node, before memory changes at the window of `target` (at `index` in it).

    `shape` is what the inputs broadcast to, if it is not the target's. Everything that can fail must have failed
    before: nothing is lost by an error. None where the write is not part of the differentiable program.
    """
    if OTHER_KIND:
        check_inside(target)
    storage = target._storage
    memory = storage.root or storage
    if memory.ledger is not None:
        check_own(memory, op.name)
    node = None
    if record and mode.grad:
        recorded = storage.writer is not None
        for t in tensors:
            if t._storage.writer is not None:
                recorded = True
        if recorded and target._array.dtype.kind in "fcV":
            node = _write_node(op, target, tensors, index, target._array.shape if shape is None else shape)
            if op.saves:
                node.saved = save_all(op, node, tensors, arrays, settings)
    if memory.ledger is not None and memory.ledger.high >= 0:
        move_aside(memory, target)  # what was just saved of the target itself, too
    memory.version += 1
    return node


def _write_node(op: Op, target: TensorBase, tensors: Sequence[TensorBase], index: Index | None, shape: Shape) -> Node:
    window = None if index is None and target._offset is None else window_of(target, index)
    inputs: list[Writer | None] = []
    windows: list[Window | None] = []
    for t in tensors:
        writer = t._storage.writer
        inputs.append(writer)
        if t is target and (index is None or op.adds and not windows):
            windows.append(window)
        else:
            windows.append(None if writer is None or t._offset is None and t._array.shape == shape else window_of(t))
    array = target._array
    many = array.size >= large.MIDDLE and array.dtype.char in "fd"
    chosen = op.threaded if many else variant(op, array.dtype)
    node = new_node(chosen, inputs, tuple(windows))
    if window is not None:
        set_write(node, target._storage, window)
    else:
        overwritten(node, target._storage.writer)
    return node


def end_write(target: AnyTensor, node: Node | None) -> AnyTensor:
    """Make the node the storage's writer, after memory has changed.

    Without one, a leaf is a leaf again, with the value that it has now (an optimizer's update).
    """
    storage = target._storage
    if node is not None:
        storage.writer = node
        save_out(node, target)
    elif storage.leaf is not None:
        storage.writer = storage.leaf
    if storage.root is not None:
        if node is not None or storage.root.leaf is not None or has_aliases(storage.root, storage):
            tell_aliases(target, node)
    elif storage.ledger is not None and storage.ledger.aliases is not None:
        tell_aliases(target, node)
    return target


FOLLOW = Op("copy", None, ("value",), (), {"value": same})
FOLLOW.adds = False


def tell_aliases(target: TensorBase, node: Node | None) -> None:
    """Do what a write to memory that has several histories means for those that it was not recorded in.

    A recorded write is one in every history of its group, too: a copy of the written elements out of the history that
    has them. For any other, and where it was not recorded, the program has opted out: a leaf is a leaf again, and so is
    what a Function has made of its memory.
    """
    memory = target._storage.root or target._storage
    if memory.__class__ is Taken:
        memory.give(memory, target._storage, node)
    _tell(target, node)


def taken_again(taken: Taken, node: Node | None) -> None:
    """Tell who has a part of what was taken that it has been taken again."""
    if taken.ledger is not None and taken.ledger.aliases is not None:
        _tell(over(taken), node)


def _tell(target: TensorBase, node: Node | None) -> None:
    storage, others = target._storage, list(histories(target))[1:]
    memory = storage.root or storage
    for other in others:
        if other.__class__ is Repeated:
            _repeat(other, node if mode.grad and same_group(other, storage) else None, storage)  # type: ignore[arg-type]
        elif isinstance(other, Taken) and other is not memory:
            other.again(other, node)
    others = [other for other in others if other.__class__ not in (Repeated, Taken)]
    if node is not None and mode.grad:
        for other in others:
            if same_group(other, storage):
                first = storage.leaf is not None and other.writer is None  # all of the leaf is part of it from here on
                _follow(other, storage, node, storage.leaf.window if first else node.written)
        _complete(storage.root or storage)
        others = [other for other in others if not same_group(other, storage)]
    for leaf in [other for other in (*others, *([storage] if node is None else [])) if other.leaf is not None]:
        leaf.writer, tensor = leaf.leaf, leaf.leaf.tensor()
        for other in aliases_near(tensor) if tensor is not None else ():
            if other.leaf is None and same_group(other, leaf):
                _follow(other, leaf, leaf.leaf, leaf.leaf.window)


def _repeat(other: Repeated, node: Node | None, storage: Storage) -> None:
    """Bring what repeats the memory of `storage` up to date: with the history of what `node` wrote, or a leaf again."""
    if other.ledger is not None and other.ledger.high >= 0:
        move_aside(other, None)
    other.version += 1
    np.copyto(other.buffer, other.shared)
    if node is None:
        other.writer = other.leaf or other.writer  # what was computed keeps its history
    else:
        _follow_repeated(other, storage, node)
    tell_aliases(over(other), None if node is None else other.writer)


def _follow_repeated(other: Repeated, storage: Storage, node: Node) -> None:
    """Record in the history of `other` that those of its elements which `node` wrote are what they are there."""
    mine, shared, window = storage.buffer, other.shared, node.written
    unit = min(mine.dtype, shared.dtype, element_type(window, mine), key=lambda kind: kind.itemsize)
    if node.whole is UNKNOWN_SHAPE:
        node.whole = mine.shape, mine.dtype
    first = positions(other.place - storage.start, shared.shape, shared.strides, 1).reshape(-1, 1)
    there = (first // unit.itemsize + np.arange(shared.itemsize // unit.itemsize)).reshape(-1)
    touched = np.flatnonzero(np.isin(there, positions_in(window, mine, unit)))
    if touched.size:
        other.writer = _copy_between(other, node, picking(mine, there[touched], unit),
                                     picking(other.buffer, touched, unit))


def _complete(memory: Storage) -> None:
    """Make the leaves that are views of a memory part of its history, once it has one: what is read of it has them."""
    ledger = memory.ledger
    if memory.writer is not None and ledger is not None and ledger.aliases is not None and not ledger.complete:
        ledger.complete = True
        for part in ledger.leaves():
            if same_group(part, memory):
                _follow(memory, part, part.writer, part.leaf.window)


def _follow(other: Storage, storage: Storage, writer: Writer, window: Window | None) -> None:
    """Record in the history of `other` that elements in a window on `storage` are what they are there, by `writer`."""
    mine, theirs = storage.buffer, other.buffer
    # Where one is complex, its parts.
    unit = min(mine.dtype, theirs.dtype, element_type(window, mine), key=lambda kind: kind.itemsize)
    if writer.whole is UNKNOWN_SHAPE:
        writer.whole = mine.shape, mine.dtype
    shift = storage.start - other.start
    if mine.dtype == theirs.dtype and (
            window is None or window.__class__ is tuple and window[3] is None):  # type: ignore[index]
        offset, shape, strides, _ = window or (0, mine.shape, mine.strides, None)  # type: ignore[misc]
        if 0 in shape:
            return
        low, high = extent(offset + shift, shape, strides, mine.itemsize)
        if low >= 0 and high <= theirs.nbytes:
            other.writer = _copy_between(other, writer, window, (offset + shift, shape, strides, None))
            return
    here = positions_in(window, mine, unit)
    there = here + shift // unit.itemsize
    inside = (there >= 0) & (there < theirs.nbytes // unit.itemsize)
    if inside.any():
        other.writer = _copy_between(other, writer, picking(mine, here[inside], unit),
                                     picking(theirs, there[inside], unit))


def _copy_between(other: Storage, writer: Writer, source: Window | None, target: Window) -> Node:
    copy, before = new_node(FOLLOW, (writer,), (source,)), other.writer
    set_write(copy, other, target)
    if (copy.previous is before is not None and before.op is FOLLOW and before.hooks is None
            and _same_window(before.written, target)):
        copy[-1] = before.previous  # what this overwrites: a loop over the elements of a leaf leaves but one of these
    return copy


def _same_window(one: Window | None, other: Window) -> bool:
    return (one.__class__ is other.__class__ is tuple
            and one[3] is None is other[3] and one == other)  # type: ignore[index]


def memory_around(tensor: TensorBase) -> Any:
    """Return all of the memory that a tensor's storage is part of, as a tensor in whose history that part is."""
    storage = tensor._storage
    found = whole_memory(storage.root or storage)
    if mode.grad and storage.writer is not None:
        _follow(found._storage, storage, storage.writer, None)
    return found


def save_out(node: Node, result: TensorBase) -> None:
    """Put the result itself into `node.saved`, where a rule asks for it."""
    if node.op.frees:
        for slot, (kind, _) in enumerate(node.op.saves):
            if kind == "out":
                node.saved = (*node.saved[:slot], save(result, node, slot), *node.saved[slot + 1:])


def compute_into(storage: Storage, node: Node, window: Window | None) -> None:
    """Make the node of a fresh result that nobody has seen the write of that result into `window` of a storage.

    It becomes the newest write: what wrote there since the result was computed comes before it.
    """
    if window is not None:
        set_write(node, storage, window)
    else:
        overwritten(node, storage.writer)
    node.order = next_order()
    storage.writer = node


def save_all(op: Op, node: Node, tensors: Sequence[TensorBase], arrays: Sequence[Array],
             settings: Sequence[Any]) -> tuple[Any, ...]:
    """Return `node.saved`, all but `out`, for what does not go through generated code."""
    saved: list[Any] = []
    for slot, ((kind, i), users) in enumerate(zip(op.saves, op.needed)):
        if kind == "setting":
            saved.append(settings[i])
        elif kind == "shape":
            saved.append(arrays[i].shape)
        elif kind == "out" or not [u for u in users if node[u] is not None]:
            saved.append(None)
        else:
            saved.append(arrays[i] if tensors[i] is SCALAR_OPERAND else save(tensors[i], node, slot))
    return tuple(saved)


# What an operation without derivatives writes is a constant.
_CONSTANT = Op("constant", None, (), (), {})


def into(op: Op, target: Any, arguments: tuple[Any, ...], settings: tuple[Any, ...] = ()) -> Any:
    """Compute an elementwise operation and write the result into `target`: in-place forms and `out=` are both this."""
    check_writable(target, op.name)
    n = len(op.inputs)
    promoted = promote(op, arguments)
    tensors, arrays = promoted[:n], promoted[n:]
    shape = _common_shape(op, arrays)
    if target._array.shape != shape:
        if any(target is t for t in arguments):
            raise _cannot_grow(op.name, target, shape)
        return _into_another_shape(op, target, tensors, arrays, settings, shape)
    array = target._array
    try:
        direct = all(a.dtype is array.dtype for a in arrays) and (op.into or _in_spans(op, arrays, array))
        if not direct:
            result = silent().run(_computed, op, arrays, settings, array.shape)
            check_cast(op.name, result.dtype, array.dtype)
        if op.rules:
            node = begin_write(op, target, tensors, arrays, settings)
        else:
            node = begin_write(_CONSTANT, target, (), (), ())
        if not direct:
            if result.dtype is array.dtype:
                array[...] = result
            else:
                silent().run(array.__setitem__, ..., result)
        elif (array.size < large.PLENTY
                or not silent().run(large.apply, forward_for(op, array.dtype), arrays, settings, array)):
            silent().run(op.forward, *arrays, out=array)  # type: ignore[arg-type]
        return end_write(target, node)
    except TypeError as error:
        raise dtype_error(op, arrays, error) from None
    except MemoryError as error:
        raise error if isinstance(error, MutagradError) else OutOfMemory.found_by(op.name, error) from None


def check_stays(name: str, target: Any, *others: Any) -> None:
    """Raise if operands of a write in place do not fit into its target. (Those that do not broadcast raise later.)"""
    for other in others:
        if isinstance(other, TensorBase):
            shape, steps = target._array.shape, other._array.ndim - target._array.ndim
            if steps > 0 or any(n != 1 and n != m for n, m in zip(other._array.shape[::-1], shape[::-1])):
                raise _cannot_grow(name, target, other._array.shape)


def _cannot_grow(name: str, target: TensorBase, shape: Shape) -> ShapeError:
    return ShapeError(f"{name}: a result of shape {shape} cannot be written into a tensor of shape "
                      f"{target._array.shape}", why="a write in place never changes the shape of its target",
                      fix=f"y = mutagrad.{name.rstrip('_')}(x, ...)")


def _into_another_shape(op: Op, target: TensorBase, tensors: Any, arrays: Any, settings: tuple[Any, ...],
                        shape: Shape) -> Any:
    """The same where `out` has to be resized. Operands may lie in its memory, so everything is computed before."""
    check_resizable(op.name, target, shape)
    try:
        result = silent().run(_computed, op, arrays, settings, shape)
    except TypeError as error:
        raise dtype_error(op, arrays, error) from None
    except MemoryError as error:
        raise error if isinstance(error, MutagradError) else OutOfMemory.found_by(op.name, error) from None
    check_cast(op.name, result.dtype, target._array.dtype)
    resize_out(target, shape)
    node = begin_write(op if op.rules else _CONSTANT, target, tensors if op.rules else (), arrays, settings)
    silent().run(target._array.__setitem__, ..., result)
    return end_write(target, node)


def _computed(op: Op, arrays: tuple[Array, ...], settings: tuple[Any, ...], shape: Shape) -> Any:
    dtype = arrays[-1].dtype
    forward, size = forward_for(op, dtype), prod(shape)
    if (op.rules and size >= large.MIDDLE and large.is_worth(size) and dtype.char in "fd"
            and all(a.dtype is dtype for a in arrays)):
        return large.evaluate(forward, arrays, settings, shape, dtype)
    return forward(*arrays, *settings)  # type: ignore[misc]


def _in_spans(op: Op, arrays: Sequence[Array], target: Array) -> bool:
    """Whether what is not NumPy's own function is computed into a large target span by span, with no whole temporary.

    Of floats alone, for which an operation that has a derivative never raises: the write has begun by then.
    """
    return (target.size >= large.LARGE and bool(op.rules) and target.dtype.char in "fd" and is_plain(target, *arrays)
            and target.flags.c_contiguous and all(large.flat(a, target.shape) is not None for a in arrays))


def check_resizable(name: str, out: TensorBase, shape: Shape) -> None:
    """Raise if an `out` has another shape than what will be written into it, and a gradient of its own shape."""
    if out._array.shape != shape and out._storage.writer is not None:
        raise ShapeError(f"{name}: a result of shape {shape} cannot be written into out of shape {out._array.shape}",
                         why="out requires a gradient, which has its shape, so that it cannot be resized",
                         fix="out=mutagrad.empty(0), or out of the result's shape")


def resize_out(out: TensorBase, shape: Shape) -> None:
    """Give an `out` the shape of what will be written into it, as PyTorch does: with a warning if it has elements.

    It stays in its own memory where that is enough, so that views of it see what is written.
    """
    if out._array.shape == shape:
        return
    size, dtype, offset, memory = prod(shape), out._array.dtype, out._offset or 0, out._storage.buffer
    if out._array.size:
        warnings.warn(f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, "
                      f"which does not match the required output shape {list(shape)}. Give out the right shape, or "
                      "no elements: t.resize_(0)", stacklevel=to_user())
    if out._array.size and offset + size * dtype.itemsize <= memory.nbytes:
        room = view(out, shape, dense_strides(shape, dtype.itemsize), offset)
    else:
        try:
            room = make(np.empty(shape, dtype))
        except MemoryError as error:
            raise OutOfMemory.found_by("out", error) from None
    out._array, out._storage, out._offset = room._array, room._storage, room._offset


def _common_shape(op: Op, arrays: Sequence[Array]) -> Shape:
    try:
        found: Shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError as error:
        raise shape_error(op, tuple(arrays), error) from None
    return found


def check_cast(name: str, source: Any, target: Any) -> None:
    """Raise where a write would lose the kind of a value, and not only precision: PyTorch's rule."""
    if source is not target and of_array(source).category > of_array(target).category:
        raise DTypeError(f"{name}: a result of type {of_array(source).name} can't be cast to the desired output type "
                         f"{of_array(target).name}", why="the fraction would be lost without a word",
                         fix="x = x.float() first, or write value.to(x.dtype)")
