"""Programs import this to export a model when they are asked to. Nothing is exported here."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ...base.errors import NotSupported

__all__ = ["export", "is_in_onnx_export"]

F = TypeVar("F")


def is_in_onnx_export() -> bool:
    return False


def parse_args(*descriptors: str) -> Callable[[F], F]:
    """Return a decorator that changes nothing, of functions that an export would call."""
    return lambda function: function


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Take what an export would call for an operation; libraries give it when they are imported. None is exported."""


unregister_custom_op_symbolic = register_custom_op_symbolic


symbolic_opset11 = symbolic_helper = sys.modules[__name__]


def export(*arguments: Any, **settings: Any) -> NoReturn:
    """Raise: there is no graph of a whole program that could be written to a file."""
    raise NotSupported("onnx.export: models are not exported", why="programs run as they are, line by line",
                       fix="save(model.state_dict(), path), which PyTorch can read with safetensors, "
                       "and export it there")
