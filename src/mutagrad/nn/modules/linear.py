"""`nn.modules.linear`, PyTorch's path to the linear layers."""
from __future__ import annotations

from ..linear import Bilinear, Identity, Linear

__all__ = ["Bilinear", "Identity", "Linear"]
