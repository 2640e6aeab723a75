"""Logs for TensorBoard, written by a package that is there for that."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..errors import MissingExtra

__all__ = ["SummaryWriter"]


def SummaryWriter(*arguments: Any, **settings: Any) -> Any:
    """The SummaryWriter of the package tensorboardX, which has the same methods and needs no PyTorch."""
    try:
        package = import_module("tensorboardX")
    except ImportError:
        raise MissingExtra("utils.tensorboard.SummaryWriter: needs the package tensorboardX, which is not installed",
                           why="mutagrad does not write TensorBoard's files itself", fix="pip install tensorboardX tensorboard") from None
    return package.SummaryWriter(*arguments, **settings)
