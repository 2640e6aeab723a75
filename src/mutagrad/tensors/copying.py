"""Deep copies and pickles of tensors, in which those that share memory go on sharing it."""
from __future__ import annotations

from typing import Any, SupportsIndex

from ..arrays import np
from ..arrays.kinds import window
from ..base.errors import GradientError
from ..core.factory import CODEGEN_GLOBALS
from ..core.storage import Storage, TensorBase, memory_of, memory_offset, new_storage


def deep_copy(tensor: TensorBase, memo: dict[int, Any]) -> Any:
    """Copy a tensor; those that share memory share it in the copy, too."""
    if id(tensor) in memo:
        return memo[id(tensor)]
    if not tensor.is_leaf:
        raise GradientError("deepcopy: this tensor was computed, and a copy of it would have no history",
                            fix="x.detach().clone()")
    root = memory_of(tensor)
    if id(root) not in memo:
        memo[id(root)] = new_storage(root.buffer.copy())
    array = tensor._array
    copied = rebuild(type(tensor), memo[id(root)], array.shape, array.strides, _place(tensor),
                     tensor.requires_grad, array.dtype)
    copied._grad = None if tensor._grad is None else tensor._grad.__deepcopy__(memo)
    if tensor.__dict__:
        copied.__dict__.update(tensor.__dict__)
    memo[id(tensor)] = copied
    return copied


def _place(tensor: TensorBase) -> int | None:
    """Return at which byte of its memory a tensor begins; None where it is all of that."""
    whole = tensor._offset is None and tensor._array.shape == memory_of(tensor).buffer.shape
    return None if whole else memory_offset(tensor)


def reduced(tensor: TensorBase, protocol: SupportsIndex) -> tuple[Any, ...]:
    """Return what a pickle holds: a tensor that was computed comes back without its history, as a leaf."""
    window = tensor._array.shape, tensor._array.strides, _place(tensor)
    ours = type(tensor) is CODEGEN_GLOBALS["Tensor"]  # whose path is another where this is torch
    kind = None if ours else type(tensor)
    return rebuild, (kind, memory_of(tensor), *window, tensor.requires_grad, tensor._array.dtype), attributes_of(tensor)


def attributes_of(tensor: TensorBase) -> Any:
    """Return what a pickle keeps beside the elements: attributes given by the program, or what its class says."""
    own = getattr(type(tensor), "__getstate__", None)
    if own is getattr(object, "__getstate__", None):
        return tensor.__dict__ or None
    return own(tensor)  # type: ignore[misc]


def rebuild(cls: type[Any] | None, storage: Storage, size: tuple[int, ...] | None,
            strides: tuple[int, ...] | None, offset: int | None, requires_grad: bool, dtype: Any) -> Any:
    """Return a tensor of this class (None: Tensor) as a window on a storage; all of it where `offset` is None."""
    made = object.__new__(cls or CODEGEN_GLOBALS["Tensor"])
    made._storage = storage if offset is None and storage.writer is None else new_storage(storage.buffer, storage)
    buffer = storage.buffer
    made._array = buffer
    if offset is not None:
        made._array = window(buffer, size, np.dtype(dtype.type), offset, strides)  # type: ignore[arg-type]
    made._offset, made._grad = offset, None
    return made.requires_grad_(requires_grad)
