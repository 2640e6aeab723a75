"""`nn.modules.instancenorm`, PyTorch's path to instance normalization."""
from __future__ import annotations

from ..normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "_InstanceNorm"]
