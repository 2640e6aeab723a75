"""`nn.modules.transformer`, PyTorch's path to the transformers."""
from __future__ import annotations

from ..transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
    _get_activation_fn,
    _get_clones,
)

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "_get_activation_fn", "_get_clones"]
