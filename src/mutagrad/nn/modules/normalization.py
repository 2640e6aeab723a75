"""`nn.modules.normalization`, PyTorch's path to the normalization of each item."""
from __future__ import annotations

from ..normalization import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]
