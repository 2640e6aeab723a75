"""Making tensors: over fresh storages, and as other windows on old ones."""
from __future__ import annotations

from typing import Any

from .backends import np
from .graph import mode, window_of
from .storage import TensorBase, ndarray, new_storage
from .window import Window

# What generated functions see as globals. `Tensor` is set by _tensor.py, the layer above, and the rest by call.py.
SCOPE: dict[str, Any] = {}


def results_are(tensor_class: type[TensorBase]) -> None:
    SCOPE["Tensor"] = tensor_class


def make(array: Any) -> Any:
    """A tensor over a fresh storage."""
    if array.__class__ is not ndarray:
        array = np.array(array)
    elif not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    tensor = object.__new__(SCOPE["Tensor"])
    tensor._array, tensor._offset, tensor._grad = array, None, None
    tensor._storage = new_storage(array)
    return tensor


def view_of(tensor: TensorBase, array: Any, offset: int) -> Any:
    """A tensor that is another window on the storage of `tensor`. Views need no node; one made in no_grad has no history."""
    storage = tensor._storage
    if storage.writer is not None and not mode.grad:
        storage = new_storage(storage.buffer, storage.root or storage)
    result = object.__new__(SCOPE["Tensor"])
    result._array, result._storage, result._offset, result._grad = array, storage, offset, None
    return result


def view(tensor: TensorBase, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, dtype: Any = None) -> Any:
    """The same by geometry: shape, byte strides and byte offset; and element type, if it is another."""
    return view_of(tensor, ndarray(shape, dtype or tensor._array.dtype, tensor._storage.buffer, offset, strides), offset)


def detached(tensor: TensorBase) -> Any:
    """The same memory, version and protection, with a history of its own."""
    result = object.__new__(SCOPE["Tensor"])
    storage = tensor._storage
    result._array, result._offset, result._grad = tensor._array, tensor._offset, None
    result._storage = new_storage(storage.buffer, storage.root or storage)
    return result


def window_as(tensor: TensorBase, shape: tuple[int, ...]) -> Window | None:
    """The window of an input that may have been broadcast to `shape`: its own shape then says what to sum to."""
    return None if tensor._offset is None and tensor._array.shape == shape else window_of(tensor)


def window_or_none(tensor: TensorBase) -> Window | None:
    return None if tensor._offset is None else window_of(tensor)
