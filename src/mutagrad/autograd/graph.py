"""The recorded operations, and where their saved values are kept."""
from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..errors import NotSupported
from ..graph import Node

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]


class save_on_cpu(nullcontext[None]):
    """A block in which saved values are kept on the CPU, as all are."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__()


class saved_tensors_hooks:
    """Functions that would put saved values elsewhere and bring them back."""

    def __init__(self, pack_hook: Any, unpack_hook: Any) -> None:
        raise NotSupported("saved_tensors_hooks: not supported", why="values are saved by reference, and moved aside when they are overwritten",
                           fix="utils.checkpoint.checkpoint computes values again instead of saving them")
