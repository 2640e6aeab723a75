"""Programs import this to export a model when they are asked to. Nothing is exported here."""
from __future__ import annotations

from typing import Any

from .errors import NotSupported

__all__ = ["export", "is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    return False


def export(*arguments: Any, **settings: Any) -> Any:
    """Raises: there is no graph of a whole program that could be written to a file."""
    raise NotSupported("onnx.export: models are not exported", why="programs run as they are, line by line",
                       fix="save(model.state_dict(), path), which PyTorch can read with safetensors, and export it there")
