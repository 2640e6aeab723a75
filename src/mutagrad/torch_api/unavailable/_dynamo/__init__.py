"""Programs set PyTorch's compiler up here. It is another one: settings are kept, and change nothing."""
from __future__ import annotations

from typing import Any

from ....tensors.tensor import Tensor
from ...compiler import allow_in_graph, assume_constant_result, disable, explain, is_compiling, list_backends, reset
from . import config, eval_frame
from .eval_frame import OptimizedModule

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame",
           "explain", "graph_break", "is_compiling", "list_backends", "mark_dynamic", "mark_static",
           "mark_static_address", "maybe_mark_dynamic", "reset"]


def graph_break(msg: str = "") -> None:
    """Mark where a compiled program would be cut in two."""


def mark_static(t: Tensor, *settings: Any, **more: Any) -> None:
    """Tell a compiler about a tensor; there is none to tell."""


mark_dynamic = maybe_mark_dynamic = mark_static_address = mark_static
