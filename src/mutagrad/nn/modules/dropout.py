"""`nn.modules.dropout`, PyTorch's path to dropout."""
# ruff: noqa: F403
from __future__ import annotations

from .. import dropout as _dropout
from ..dropout import *
from ..dropout import _DropoutNd

__all__ = ["_DropoutNd"]
__all__ += _dropout.__all__
