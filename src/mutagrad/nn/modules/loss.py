"""`nn.modules.loss`, PyTorch's path to the losses."""
# ruff: noqa: F403
from __future__ import annotations

from .. import losses as _losses
from ..losses import *
from ..losses import _Loss, _WeightedLoss

__all__ = ["_Loss", "_WeightedLoss"]
__all__ += _losses.__all__
