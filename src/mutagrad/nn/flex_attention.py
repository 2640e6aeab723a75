"""Attention with scores and masks given as functions, which PyTorch compiles: the names are here, and say what to use instead."""
from __future__ import annotations

from typing import Any

from ..errors import NotSupported

__all__ = ["AuxRequest", "BlockMask", "create_block_mask", "create_mask", "flex_attention"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


def _refusal(name: str) -> NotSupported:
    return NotSupported(f"{name}: not supported", why="it needs a compiler", fix="nn.functional.scaled_dot_product_attention with attn_mask")


class _Refused:
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise _refusal(type(self).__name__)


class BlockMask(_Refused):
    """A mask that is known by blocks; there are none."""


class AuxRequest(_Refused):
    """What is asked for besides the result."""


def create_block_mask(*arguments: Any, **settings: Any) -> Any:
    raise _refusal("create_block_mask")


def create_mask(*arguments: Any, **settings: Any) -> Any:
    raise _refusal("create_mask")


def flex_attention(*arguments: Any, **settings: Any) -> Any:
    raise _refusal("flex_attention")
