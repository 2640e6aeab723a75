"""Making tensors: over fresh storages, and as other windows on old ones.

These return Any to a type checker: what they make is a Tensor, a class that tensors/ defines on top of this room.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..arrays import np
from ..arrays.copies import copy_in_order
from ..arrays.kinds import is_plain, of_kind, window
from ..base.errors import GradientError, may_need_much
from ..base.modes import NOT_RECORDING, OTHER_KIND, mode
from ..base.operands import Array
from .graph import window_of
from .storage import (
    MadeInside,
    Storage,
    TensorBase,
    another_history,
    ndarray,
    new_storage,
    part_history,
    unrecorded_view,
)
from .window import Shape, Window, order_of, overlaps_itself

new_object = object.__new__
AnyTensor = TypeVar("AnyTensor", bound=TensorBase)

# What generated functions see as globals. `Tensor` is set by tensors/tensor.py, the layer above, the rest by codegen.
CODEGEN_GLOBALS: dict[str, Any] = {}


def stamp_storages(on: bool) -> None:
    """While arrays of another kind are on, storages of results tell that they were made inside."""
    CODEGEN_GLOBALS["Storage"] = MadeInside if on else Storage


def results_are(tensor_class: type[TensorBase]) -> None:
    CODEGEN_GLOBALS["Tensor"] = tensor_class


@may_need_much
def in_order(array: Array) -> Array:
    return copy_in_order(array)


def make(array: Array) -> Any:
    """Return a tensor over a fresh storage."""
    if array.__class__ is not ndarray:
        array = np.array(array)
    elif not array.flags.c_contiguous:
        array = in_order(array)
    if OTHER_KIND:
        array = of_kind(array)
    tensor = new_object(CODEGEN_GLOBALS["Tensor"])
    tensor._array = array
    tensor._offset = tensor._grad = None
    tensor._storage = new_storage(array)
    return tensor


def view_of(tensor: TensorBase, array: Array, offset: int) -> Any:
    """Return another window on the storage of `tensor`. Views need no node; one made in no_grad has no history."""
    storage = tensor._storage
    if NOT_RECORDING and storage.writer is not None and not mode.now.recorded:
        storage = unrecorded_view(storage)
    result = new_object(CODEGEN_GLOBALS["Tensor"])
    result._array = array
    result._storage = storage
    result._offset = offset
    result._grad = None
    return result


def order_in_memory(tensor: TensorBase) -> Shape | None:
    """Return its dimensions from the outermost in memory on; None where that is C order, or not for us to choose."""
    array = tensor._array
    return None if array.flags.c_contiguous or not is_plain(array) else order_of(array.shape, array)


def laid_out_alike(function: Callable[[TensorBase], Any], tensor: TensorBase) -> Any:
    """Return `function(tensor)`, a copy of the same shape, as a view that lies in memory in the order of the tensor."""
    order = order_in_memory(tensor)
    if order is None:
        return function(tensor)
    found = function(view_of(tensor, tensor._array.transpose(order), tensor._offset or 0))
    return back_in_order(found, order)


def back_in_order(tensor: TensorBase, order: Shape) -> Any:
    """Return a view whose dimension `order[i]` is dimension i of a whole tensor."""
    return view_of(tensor, tensor._array.transpose([order.index(d) for d in range(len(order))]), 0)


def view(tensor: TensorBase, shape: Shape, strides: Shape, offset: int, dtype: Any = None) -> Any:
    """Return the same by geometry: shape, byte strides and byte offset; and element type, if it is another."""
    return view_of(tensor, window(tensor._storage.buffer, shape, dtype or tensor._array.dtype, offset, strides), offset)


def detached(tensor: TensorBase) -> Any:
    """Return the same memory, version and protection, with a history of its own."""
    result = object.__new__(CODEGEN_GLOBALS["Tensor"])
    result._array, result._offset, result._grad = tensor._array, tensor._offset, None
    result._storage = another_history(tensor)
    return result


def whole_memory(memory: Storage) -> Any:
    """Return all of a memory, with a history of its own."""
    result = object.__new__(CODEGEN_GLOBALS["Tensor"])
    result._array, result._offset, result._grad = memory.buffer, None, None
    result._storage = new_storage(memory.buffer, memory)
    return result


def over(storage: Storage) -> Any:
    """Return all of a storage, with its history."""
    result = object.__new__(CODEGEN_GLOBALS["Tensor"])
    result._array, result._offset, result._grad, result._storage = storage.buffer, None, None, storage
    return result


def linked_alias(tensor: TensorBase) -> Any:
    """Return the same memory with a history of its own, in which recorded writes to the memory appear all the same."""
    result = object.__new__(CODEGEN_GLOBALS["Tensor"])
    result._array, result._grad = tensor._array, None
    result._storage, result._offset = part_history(tensor, linked=True)
    return result


def become(tensor: AnyTensor, view: Callable[[Any], TensorBase]) -> AnyTensor:
    """Make a tensor another window on its storage, as forms like `t_` do in place. Its gradient changes with it."""
    other, leaf = view(tensor), tensor._storage.leaf
    if leaf is None or leaf.tensor() is not tensor:
        tensor._array, tensor._offset = other._array, other._offset
        return tensor
    array = other._array
    if array.size != tensor._array.size or overlaps_itself(array.shape, array.strides, array.itemsize):
        raise GradientError(f"a leaf of shape {tensor._array.shape} cannot become a window of shape {array.shape} "
                            "in place", why="its gradient is that of all its elements, each once",
                            fix="y = x.detach().clone(), then change y")
    grad = None if tensor._grad is None else view(tensor._grad)
    tensor._array, tensor._offset, tensor._grad = array, other._offset, grad
    leaf.see(tensor)
    return tensor


def window_as(tensor: TensorBase, shape: Shape) -> Window | None:
    """Return the window of an input that may have been broadcast to `shape`: its shape then says what to sum to."""
    return None if tensor._offset is None and tensor._array.shape == shape else window_of(tensor)


def window_or_none(tensor: TensorBase) -> Window | None:
    return None if tensor._offset is None else window_of(tensor)
