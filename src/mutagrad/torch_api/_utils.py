"""Small things under PyTorch's path that other libraries are written with."""
from __future__ import annotations

import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..base.errors import BadValue, NotSupported
from ..files.safe_unpickler import tensor_over
from ..nn.parameter import Parameter
from ..ops.shape.shape import cat
from ..tensors.tensor import Tensor
from ..tensors.typed_storage import TypedStorage
from .unavailable import accelerator

__all__ = ["ExceptionWrapper"]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Any:
    """Return all elements of several tensors in one row."""
    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return views of a row, with the shapes of these tensors."""
    return tuple(part.view(t.shape) for part, t in zip(flat.split([t.numel() for t in tensors]), tensors))


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Return a tensor over a storage, by its window, counted in elements."""
    return tensor_over(storage._memory, storage.dtype, storage_offset, tuple(size), tuple(stride), False)


def _rebuild_tensor_v2(storage: TypedStorage, storage_offset: int, size: Sequence[int], stride: Sequence[int],
                       requires_grad: bool, backward_hooks: Any, metadata: Any = None) -> Tensor:
    """Return the same, as a leaf if gradients are wanted for it."""
    if backward_hooks or metadata:
        raise NotSupported("_rebuild_tensor_v2: hooks and marks of a tensor are not supported",
                           fix="register them on the tensor")
    return _rebuild_tensor(storage, storage_offset, size, stride).requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Return a parameter made of a tensor."""
    if backward_hooks:
        raise NotSupported("_rebuild_parameter: hooks of a tensor are not supported", fix="register them on the tensor")
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any,
                                  state: dict[str, Any]) -> Parameter:
    """Return the same, with the attributes that a program has given it."""
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    vars(made).update(state)
    return made


class ExceptionWrapper:
    """An exception of another thread or process, with its trace as text, to be raised here."""

    def __init__(self, exc_info: tuple[Any, ...], where: str = "in background") -> None:
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self) -> None:
        """Raise an exception of the same class, where that can be made of a text, or else a RuntimeError."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:  # a class may want anything
            raise RuntimeError(message) from None
        raise error


def _get_available_device_type() -> str | None:
    """Return the kind of accelerator that there is."""
    return current.type if (current := accelerator.current_accelerator()) is not None else None


def _get_device_module(device_type: str) -> Any:
    """Return the module of a kind of device: `torch.cpu`, for example."""
    if device_type not in ("cpu", "cuda", "mps", "xpu"):
        raise BadValue(f"_get_device_module: there is no device {device_type!r}", fix='"cpu"')
    return import_module(f"mutagrad.{device_type}")
