"""`nn.modules.rnn`, PyTorch's path to the recurrent layers."""
# ruff: noqa: F403
from __future__ import annotations

from .. import rnn as _rnn
from ..rnn import *

__all__: list[str] = []
__all__ += _rnn.__all__
