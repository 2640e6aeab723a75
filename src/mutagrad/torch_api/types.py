"""Names for annotations, under PyTorch's."""
from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias, Union

from ..base.device import device
from ..core.dtypes import dtype
from ..core.size import Size
from ..tensors.tensor import Tensor

__all__ = ["BoolLikeType", "Device", "FileLike", "FloatLikeType", "IntLikeType", "Number", "Storage"]

_bool, _int, _float, _complex = builtins.bool, builtins.int, builtins.float, builtins.complex
_dtype, _device = dtype, device
_size: TypeAlias = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors: TypeAlias = Union[Tensor, Sequence[Tensor]]
Number: TypeAlias = Union[int, float, bool]
_Number = (int, float, bool)
Device: TypeAlias = Union[device, str, int, None]
FileLike: TypeAlias = Union[str, os.PathLike[str], Any]
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
Storage: TypeAlias = Any
