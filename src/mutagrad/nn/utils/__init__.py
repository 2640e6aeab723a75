"""What is done to the parameters of modules as a whole, and to sequences before they go in."""
from __future__ import annotations

from importlib import import_module
from typing import Any

from ..module import Module
from . import rnn
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval",
    "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "vector_to_parameters",
    "weight_norm"]

LATER = ("parametrizations", "parametrize", "prune", "stateless")  # few programs need these, and they load much


def skip_init(module_cls: type[Module], *arguments: Any, **settings: Any) -> Module:
    """Makes a module; PyTorch leaves its parameters without values, here they have their usual ones.

    >>> import mutagrad as mg
    >>> mg.nn.utils.skip_init(mg.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    return module_cls(*arguments, **settings)


def __getattr__(name: str) -> Any:
    if name in LATER:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
