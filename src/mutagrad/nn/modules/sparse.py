"""`nn.modules.sparse`, PyTorch's path to the tables of vectors."""
# ruff: noqa: F403
from __future__ import annotations

from .. import embeddings as _embeddings
from ..embeddings import *

__all__: list[str] = []
__all__ += _embeddings.__all__
