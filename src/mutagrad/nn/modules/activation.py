"""`nn.modules.activation`, PyTorch's path to the nonlinearities."""
# ruff: noqa: F403
from __future__ import annotations

from .. import activations as _activations
from ..activations import *
from ..transformer import MultiheadAttention

__all__ = ["MultiheadAttention"]
__all__ += _activations.__all__
