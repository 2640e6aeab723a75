"""`nn.modules.linear`, PyTorch's path to the linear layers."""
from __future__ import annotations

from ..lazy import LazyLinear
from ..linear import Bilinear, Identity, Linear

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]
