"""`nn.modules.container`, PyTorch's path to the containers."""
# ruff: noqa: F403
from __future__ import annotations

from .. import container as _container
from ..container import *

__all__: list[str] = []
__all__ += _container.__all__
