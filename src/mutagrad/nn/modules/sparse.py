"""`nn.modules.sparse`, PyTorch's path to the tables of vectors."""
from __future__ import annotations

from ..embeddings import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
