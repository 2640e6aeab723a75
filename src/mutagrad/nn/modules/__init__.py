"""PyTorch's paths to the layers, for programs that name them so: `nn.modules.conv.Conv2d`."""
from __future__ import annotations

from . import activation, batchnorm, container, conv, dropout, instancenorm, linear, loss, module, normalization, pooling, rnn, sparse, transformer
from .module import Module

__all__ = [
    "Module", "activation", "batchnorm", "container", "conv", "dropout", "instancenorm", "linear", "loss", "module", "normalization", "pooling",
    "rnn", "sparse", "transformer"]
