"""PyTorch's paths to the layers, for programs that name them so: `nn.modules.conv.Conv2d`."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..module import Module
from . import (
    activation,
    batchnorm,
    container,
    conv,
    dropout,
    instancenorm,
    linear,
    loss,
    normalization,
    pooling,
    rnn,
    sparse,
    transformer,
    utils,
)

__all__ = [
    "Module", "activation", "adaptive", "batchnorm", "container", "conv", "dropout", "instancenorm", "lazy", "linear",
    "loss", "module", "normalization", "pooling", "rnn", "sparse", "transformer", "utils"]

# Paths that are modules of ours under another name, and the very same ones (aliases of _lazy.py): programs assign to
# the tables of hooks that `nn.modules.module` has.
_SAME = frozenset(["adaptive", "channelshuffle", "distance", "flatten", "fold", "lazy", "module", "padding",
                   "pixelshuffle", "upsampling"])
LAYERS: dict[str, Any] = {}  # filled in by nn/__init__.py, which stands above


def __getattr__(name: str) -> Any:
    """A path from the table, or a layer: `nn.modules.Linear`."""
    if name in _SAME:
        return import_module(f"{__name__}.{name}")
    if name in LAYERS:
        return LAYERS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
