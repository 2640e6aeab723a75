"""PyTorch's paths to the layers, for programs that name them so: `nn.modules.conv.Conv2d`."""
from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .. import adaptive, lazy, module, shapes
from ..module import Module
from . import activation, batchnorm, container, conv, dropout, instancenorm, linear, loss, normalization, pooling, rnn, sparse, transformer, utils

__all__ = [
    "Module", "activation", "adaptive", "batchnorm", "container", "conv", "dropout", "instancenorm", "lazy", "linear", "loss", "module",
    "normalization", "pooling", "rnn", "sparse", "transformer", "utils"]

# Paths that are modules of ours under another name, and the very same ones: programs assign to the tables of hooks that
# `nn.modules.module` has.
_SAME = {"adaptive": adaptive, "lazy": lazy, "module": module} | dict.fromkeys(
    ("channelshuffle", "distance", "flatten", "fold", "padding", "pixelshuffle", "upsampling"), shapes)
sys.modules.update({f"{__name__}.{name}": found for name, found in _SAME.items()})


def __getattr__(name: str) -> Any:
    """A path from the table, or a layer: `nn.modules.Linear`."""
    if name in _SAME:
        return _SAME[name]
    layers = import_module("mutagrad.nn")
    if name in layers.__all__:
        return getattr(layers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
