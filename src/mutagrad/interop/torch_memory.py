"""Memory of PyTorch's as tensors of ours, and of ours as PyTorch's: shared, on the CPU."""
from __future__ import annotations

from typing import Any

import torch

from ..arrays import np
from ..arrays.bfloat16 import bfloat16_type
from ..base.errors import DTypeError, NotSupported
from ..core import dtypes
from ..core.storage import export
from ..ops.create.create import from_numpy
from ..tensors.tensor import Tensor

_BYTES = torch.uint16  # as which NumPy sees the elements of a bfloat16 tensor


def ours(tensor: Any) -> tuple[Tensor, bool]:
    """Return a tensor of ours without history, and whether it is over the same memory."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        what = f"on {tensor.device}" if tensor.device.type != "cpu" else f"of the layout {tensor.layout}"
        raise NotSupported(f"interop.torch: an argument is {what}", why="memory is shared on the CPU, of dense tensors",
                           fix="x.cpu()" if tensor.device.type != "cpu" else "x.to_dense()")
    plain = tensor.detach().resolve_conj().resolve_neg()
    if any(step == 0 and n > 1 for n, step in zip(plain.shape, plain.stride())):
        plain = plain.contiguous()  # what repeats elements can be no leaf
    return from_numpy(_array(plain)), plain.data_ptr() == tensor.data_ptr() and plain.stride() == tensor.stride()


def _array(tensor: Any) -> Any:
    if tensor.dtype is torch.bfloat16:
        return tensor.view(_BYTES).numpy().view(bfloat16_type())
    try:
        return tensor.numpy()
    except TypeError as error:
        raise DTypeError(f"interop.torch: an argument is of type {tensor.dtype}, which no tensor of ours can hold",
                         why=str(error).partition("\n")[0], fix="x.float()") from None


def theirs(tensor: Tensor) -> Any:
    """Return a tensor of PyTorch's over the memory of ours."""
    array = export(tensor)
    if any(step < 0 for step in array.strides):
        array = np.array(array)  # PyTorch has no steps backwards
    if tensor.dtype is dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def type_of(dtype: Any) -> Any:
    """Return PyTorch's element type of the same name as ours."""
    return getattr(torch, dtype.name)
