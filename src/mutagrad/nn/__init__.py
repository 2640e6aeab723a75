"""Building blocks of networks, under PyTorch's names. Each file lists its own layers in `__all__`."""
# ruff: noqa: F403
from __future__ import annotations

from importlib import import_module
from typing import Any

from . import (
    _reduction as _reduction,
    activations,
    adaptive,
    attention,
    container,
    convolution,
    dropout,
    embeddings,
    functional,
    init,
    lazy,
    linear,
    losses,
    modules,
    normalization,
    parallel,
    parameter,
    pooling,
    rnn,
    shapes,
    transformer,
    utils,
)
from .activations import *
from .adaptive import *
from .common import factory_kwargs
from .container import *
from .convolution import *
from .dropout import *
from .embeddings import *
from .lazy import *
from .linear import *
from .losses import *
from .module import Module
from .normalization import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .pooling import *
from .rnn import *
from .shapes import *
from .transformer import *

__all__ = [
    "Buffer", "DataParallel", "Module", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention",
    "factory_kwargs", "functional", "init", "modules", "parallel", "parameter", "utils"]
__all__ += activations.__all__
__all__ += adaptive.__all__
__all__ += container.__all__
__all__ += convolution.__all__
__all__ += dropout.__all__
__all__ += embeddings.__all__
__all__ += lazy.__all__
__all__ += linear.__all__
__all__ += losses.__all__
__all__ += normalization.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += shapes.__all__
__all__ += transformer.__all__

modules.LAYERS.update((name, globals()[name]) for name in __all__)
LATER = ("common_types", "grad")  # few programs need these


def __getattr__(name: str) -> Any:
    if name in LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
