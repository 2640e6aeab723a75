"""What programs ask of a tensor inside `vmap`: whether it stands for many slices at once, and for which."""
from __future__ import annotations

from typing import Any

from ...arrays.batched import Batched
from ...base.errors import BadValue
from ...core.factory import make
from ...func.batching import _add_batch_dim as _add_batch_dim, _remove_batch_dim as _remove_batch_dim
from ...tensors.tensor import Tensor


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether it stands for the slices of a `vmap`."""
    return type(tensor._array) is Batched and tensor._array.values()[1]


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether it is a stand-in that `func.grad` has made: under that, tensors are tensors like any other."""
    return False


def maybe_get_bdim(tensor: Any) -> int:
    """Return where the slices lie in `get_unwrapped`: first, or -1 of a tensor that stands for none."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Return all slices as one tensor, without history."""
    if not is_batchedtensor(tensor):
        raise BadValue("get_unwrapped: No wrappers present!", why="the tensor does not stand for slices of a vmap",
                       fix="ask is_batchedtensor(x) first")
    return make(tensor._array.values()[0].copy())  # type: ignore[no-any-return]
