"""`nn.modules.batchnorm`, PyTorch's path to batch normalization."""
from __future__ import annotations

from ..normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, _BatchNorm

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "_BatchNorm"]
