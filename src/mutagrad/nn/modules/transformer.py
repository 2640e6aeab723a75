"""`nn.modules.transformer`, PyTorch's path to the transformers."""
# ruff: noqa: F403
from __future__ import annotations

from .. import transformer as _transformer
from ..transformer import *
from ..transformer import _get_activation_fn, _get_clones

__all__ = ["_get_activation_fn", "_get_clones"]
__all__ += _transformer.__all__
