"""`nn.modules.linear`, PyTorch's path to the linear layers."""
# ruff: noqa: F403
from __future__ import annotations

from .. import linear as _linear
from ..lazy import LazyLinear
from ..linear import *

__all__ = ["LazyLinear"]
__all__ += _linear.__all__
