"""Types of arguments, under the names that PyTorch has for them: so many sizes, or one for all dimensions."""
from __future__ import annotations

from ..base.device import device
from ..tensors.tensor import Tensor

DeviceLike = device | str
_size_1_t = int | tuple[int]
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]
_size_any_t = int | tuple[int, ...]
_ratio_2_t = float | tuple[float, float]
_ratio_3_t = float | tuple[float, float, float]
_ratio_any_t = float | tuple[float, ...]
_tensor_list_t = Tensor | list[Tensor]
