"""Dropout: elements or channels set to zero at random."""
from __future__ import annotations

import math
from typing import Any

from ...arrays import np
from ...base.errors import BadValue, ShapeError, may_need_much
from ...core.factory import make
from ...core.number import number
from ...core.op import RECORDED
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import add_values, mul
from ..random.generator import Generator, source
from ..random.order import in_memory
from ..shape.shape import tensor_argument
from .activation import SELU, floating

FUNCTIONS = """
    alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout
    feature_dropout_ native_dropout native_dropout_backward
"""

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


# -------------------------------------------------------------------------------------------------------------- dropout

def _probability(p: float, name: str) -> float:
    p = number(p)
    if not 0 <= p <= 1:
        raise BadValue(f"{name}: dropout probability has to be between 0 and 1, got {p}", fix=f"{name}(x, p=0.5)")
    return p


@may_need_much
def _kept(x: Tensor, shape: tuple[int, ...], p: float, dtype: Any, generator: Generator | None) -> Any:
    """1 where an element is kept, 0 where it is dropped, which it is with probability p."""
    if shape == x._array.shape:
        return in_memory(x._array, lambda shape, _: source(generator).chosen(shape, 1 - p)).astype(dtype)
    return source(generator).chosen(shape, 1 - p).astype(dtype)


def _drop(name: str, x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...],
          generator: Generator | None) -> Any:
    """x times a mask of this shape; what is kept is scaled so that the mean stays."""
    if not training or not p or not x._array.size:
        return x
    array = floating(x, name, "fc")._array
    mask = np.zeros(shape, array.dtype) if p == 1 else _kept(x, shape, p, array.dtype, generator)
    if p < 1:
        mask *= 1 / (1 - p)
    return mul(x, make(mask), out=x if inplace else None)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,
            *, generator: Generator | None = None) -> Any:
    """Set elements to zero at random, each with probability p, and divide the rest by 1 - p; return x if not training.

    >>> import mutagrad as mg
    >>> mg.nn.functional.dropout(mg.ones(3), p=1.0)
    tensor([0., 0., 0.])
    """
    p = _probability(p, "dropout")
    return _drop("dropout", tensor_argument(input, "dropout"), p, training, inplace, input._array.shape, generator)


def dropout_(input: Tensor, p: float, train: bool) -> Any:
    """dropout, written into its input.

    >>> import mutagrad as mg
    >>> mg.dropout_(mg.ones(4), 0.5, False)
    tensor([1., 1., 1., 1.])
    """
    return dropout(input, p, train, inplace=True)


def _channels(shape: tuple[int, ...], batched: bool) -> tuple[int, ...]:
    """The shape with one element for each channel of each sample."""
    kept = 2 if batched else 1
    return shape[:kept] + (1,) * (len(shape) - kept)


def _drop_channels(name: str, x: Tensor, p: float, training: bool, inplace: bool, dims: tuple[int, ...], batched: Any,
                   generator: Generator | None) -> Any:
    p = _probability(p, name)
    shape = tensor_argument(x, name)._array.shape
    if len(shape) not in dims:
        raise ShapeError(f"{name}: expects {' or '.join(map(str, dims))} dimensions, got shape {shape}",
                         why="there must be channels, and perhaps samples before them", fix="dropout(x, p)")
    return _drop(name, x, p, training, inplace, _channels(shape, batched(len(shape))), generator)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,
              *, generator: Generator | None = None) -> Any:
    """Set whole channels of (N, C, L) or (C, L) to zero at random.

    >>> import mutagrad as mg
    >>> mg.nn.functional.dropout1d(mg.ones(1, 1, 4), training=False).shape
    mutagrad.Size([1, 1, 4])
    """
    return _drop_channels("dropout1d", input, p, training, inplace, (2, 3), lambda n: n == 3, generator)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,
              *, generator: Generator | None = None) -> Any:
    """Set whole channels of (N, C, H, W) to zero at random; three dimensions are (N, C, L), as in PyTorch.

    >>> import mutagrad as mg
    >>> mg.nn.functional.dropout2d(mg.ones(1, 1, 4, 4), training=False).shape
    mutagrad.Size([1, 1, 4, 4])
    """
    return _drop_channels("dropout2d", input, p, training, inplace, (2, 3, 4, 5), lambda n: True, generator)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False,
              *, generator: Generator | None = None) -> Any:
    """Set whole channels of (N, C, D, H, W) or (C, D, H, W) to zero at random.

    >>> import mutagrad as mg
    >>> mg.nn.functional.dropout3d(mg.ones(1, 1, 4, 4, 4), training=False).shape
    mutagrad.Size([1, 1, 4, 4, 4])
    """
    return _drop_channels("dropout3d", input, p, training, inplace, (1, 2, 3, 4, 5), lambda n: n == 5, generator)


def feature_dropout(input: Tensor, p: float, train: bool) -> Any:
    """Set whole channels (of dimension 1) to zero at random.

    >>> import mutagrad as mg
    >>> mg.feature_dropout(mg.ones(1, 4, 2), 0.5, True).shape
    mutagrad.Size([1, 4, 2])
    """
    return _drop_channels("feature_dropout", input, p, train, False, tuple(range(2, 65)), lambda n: True, None)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Any:
    """feature_dropout, written into its input.

    >>> import mutagrad as mg
    >>> mg.feature_dropout_(mg.ones(1, 2, 2), 0.5, False)
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    return _drop_channels("feature_dropout_", input, p, train, True, tuple(range(2, 65)), lambda n: True, None)


_SATURATED = SELU[0] * SELU[1]  # what selu goes to for very negative numbers, with its sign changed


def _drop_alpha(name: str, x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...],
                generator: Generator | None) -> Any:
    """Dropped elements become selu's lowest value; scale and shift then keep mean 0 and variance 1."""
    if not training or not p or not x._array.size:
        return x
    floating(x, name)
    if p == 1:
        return mul(x, make(np.zeros((), x._array.dtype)), out=x if inplace else None)
    kept = _kept(x, shape, p, x._array.dtype, generator)
    scale = 1 / math.sqrt((_SATURATED * _SATURATED * p + 1) * (1 - p))
    kind = kept.dtype.type
    shift = (kept - kind(1)) * kind(_SATURATED * scale) + kind(_SATURATED * scale * p)
    scaled = mul(x, make(kept * kind(scale)), out=x if inplace else None)
    return add_values(scaled, make(shift), out=x if inplace else None)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False,
                  *, generator: Generator | None = None) -> Any:
    """dropout for selu: mean and variance stay.

    >>> import mutagrad as mg
    >>> mg.alpha_dropout(mg.ones(4), 0.5, False)
    tensor([1., 1., 1., 1.])
    """
    p = _probability(p, "alpha_dropout")
    x = tensor_argument(input, "alpha_dropout")
    return _drop_alpha("alpha_dropout", x, p, training, inplace, x._array.shape, generator)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Any:
    """alpha_dropout, written into its input.

    >>> import mutagrad as mg
    >>> mg.alpha_dropout_(mg.ones(4), 0.5, False)
    tensor([1., 1., 1., 1.])
    """
    return alpha_dropout(input, p, train, inplace=True)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False,
                          *, generator: Generator | None = None) -> Any:
    """alpha_dropout of whole channels (of dimension 1).

    >>> import mutagrad as mg
    >>> mg.feature_alpha_dropout(mg.ones(1, 2, 2), 0.5, False)
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    p = _probability(p, "feature_alpha_dropout")
    shape = tensor_argument(input, "feature_alpha_dropout")._array.shape
    if training and p and len(shape) < 2:
        raise ShapeError(f"feature_alpha_dropout: expects at least 2 dimensions, got shape {shape}",
                         fix="alpha_dropout(x, p, training=True)")
    return _drop_alpha("feature_alpha_dropout", input, p, training, inplace, _channels(shape, True), generator)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Any:
    """feature_alpha_dropout, written into its input.

    >>> import mutagrad as mg
    >>> mg.feature_alpha_dropout_(mg.ones(1, 2, 2), 0.5, False)
    tensor([[[1., 1.],
             [1., 1.]]])
    """
    return feature_alpha_dropout(input, p, train, inplace=True)


def native_dropout(input: Tensor, p: float, train: bool | None,
                   *, generator: Generator | None = None) -> tuple[Any, Any]:
    """dropout, and the mask of what was kept.

    >>> import mutagrad as mg
    >>> mg.native_dropout(mg.ones(3), 0., True)
    (tensor([1., 1., 1.]), tensor([True, True, True]))
    """
    p = _probability(p, "native_dropout")
    array = floating(input, "native_dropout", "fc")._array
    if train is False or not array.size:
        return RECORDED.clone(input), make(np.ones(array.shape, bool))
    kept = _kept(input, array.shape, p, bool, generator)
    return mul(input, make(kept * array.dtype.type(0 if p == 1 else 1 / (1 - p)))), make(kept)


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Any:
    """Return the adjoint of native_dropout's input: the incoming one where the mask is set, times `scale`.

    >>> import mutagrad as mg
    >>> mg.native_dropout_backward(mg.ones(2), mg.tensor([True, False]), 2.)
    tensor([2., 0.])
    """
    scaled = tensor_argument(mask, "native_dropout_backward") * number(scale)
    return tensor_argument(grad_output, "native_dropout_backward") * scaled
