"""Batch normalization taken into the weights of the layer before it, for models that are no longer trained."""
from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

from ...base.errors import BadSetting
from ...ops.create.create import ones_like, zeros_like
from ...tensors.tensor import Tensor
from ..module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

M = TypeVar("M", bound=Module)


def _fused(weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: Tensor | None,
           shift: Tensor | None, dim: int) -> tuple[Parameter, Parameter]:
    """Weight and bias that give at once what layer and normalization give in turn; `dim` numbers the outputs."""
    bias = zeros_like(mean) if bias is None else bias
    factor = (ones_like(mean) if scale is None else scale) * (var + eps).rsqrt()
    shape = [-1 if d == dim else 1 for d in range(weight.ndim)]
    moved = (bias - mean) * factor + (zeros_like(mean) if shift is None else shift)
    scaled = (weight * factor.reshape(shape)).to(weight.dtype)
    return Parameter(scaled, weight.requires_grad), Parameter(moved.to(bias.dtype), bias.requires_grad)


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a convolution with those of a batch normalization in them.

    >>> import mutagrad as mg
    >>> mean, variance, scale, shift = mg.zeros(1), mg.ones(1), mg.tensor([2.]), mg.zeros(1)
    >>> fused = mg.nn.utils.fuse_conv_bn_weights(mg.ones(1, 1, 1), mg.ones(1), mean, variance, 0., scale, shift)
    >>> [p.item() for p in fused]
    [2.0, 2.0]
    """
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor | None, bn_b: Tensor | None) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a linear layer with those of a batch normalization in them.

    >>> import mutagrad as mg
    >>> mean, variance, scale, shift = mg.zeros(1), mg.ones(1), mg.tensor([2.]), mg.zeros(1)
    >>> fused = mg.nn.utils.fuse_linear_bn_weights(mg.ones(1, 1), mg.ones(1), mean, variance, 0., scale, shift)
    >>> [p.item() for p in fused]
    [2.0, 2.0]
    """
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _with_norm_inside(layer: M, norm: Module, dim: int) -> M:
    if layer.training or norm.training or norm.running_mean is None or norm.running_var is None:
        raise BadSetting("fuse: the layer and the normalization must be in evaluation mode, with running statistics",
                         why="in training, every batch is normalized by its own", fix="model.eval()")
    made: Any = deepcopy(layer)
    made.weight, made.bias = _fused(made.weight, made.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight,
                                    norm.bias, dim)
    return made  # type: ignore[no-any-return]


def fuse_conv_bn_eval(conv: M, bn: Module, transpose: bool = False) -> M:
    """Return a convolution that does what it and the batch normalization after it do in evaluation.

    >>> import mutagrad as mg
    >>> conv, norm = mg.nn.Conv1d(2, 3, 1).eval(), mg.nn.BatchNorm1d(3).eval()
    >>> mg.nn.utils.fuse_conv_bn_eval(conv, norm)(mg.zeros(1, 2, 4)).shape
    mutagrad.Size([1, 3, 4])
    """
    return _with_norm_inside(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: M, bn: Module) -> M:
    """Return a linear layer that does what it and the batch normalization after it do in evaluation.

    >>> import mutagrad as mg
    >>> layer, norm = mg.nn.Linear(2, 3).eval(), mg.nn.BatchNorm1d(3).eval()
    >>> mg.nn.utils.fuse_linear_bn_eval(layer, norm)(mg.zeros(1, 2)).shape
    mutagrad.Size([1, 3])
    """
    outputs, features = linear.out_features, bn.num_features
    if features not in (1, outputs):
        raise BadSetting(f"fuse: {outputs} outputs cannot be normalized as {features} features",
                         fix="linear.out_features == bn.num_features")
    return _with_norm_inside(linear, bn, 0)
