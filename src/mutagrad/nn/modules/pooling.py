"""`nn.modules.pooling`, PyTorch's path to pooling."""
# ruff: noqa: F403
from __future__ import annotations

from .. import pooling as _pooling
from ..pooling import *

__all__: list[str] = []
__all__ += _pooling.__all__
