"""Numbers rounded to the few that an integer type could hold, as training for quantized inference sees them."""
from __future__ import annotations

from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere
from ...arrays.numpy import silenced
from ...base.errors import BadValue, DTypeError, NotSupported, ShapeError
from ...base.operands import Array
from ...core.factory import make
from ...core.storage import TensorBase as Tensor
from ..shape.shape import tensor_argument
from .elementwise import where

FUNCTIONS = "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine"


@silenced
def _nearest_steps(array: Array, scale: Array, zero: Array, lowest: int, highest: int) -> tuple[Any, Any]:
    """Which elements lie between the lowest and the highest step, and the values of their steps."""
    steps = np.rint(array * (1 / np.asarray(scale, array.dtype))) + zero
    inside = (steps >= lowest) & (steps <= highest)
    return inside, ((np.clip(steps, lowest, highest) - zero) * scale).astype(array.dtype)


def _quantized(name: str, x: Tensor, scale: Array, zero: Array, lowest: int, highest: int) -> Any:
    """Each element as the nearest step between the lowest and the highest; the derivative is 1 there, 0 beyond."""
    array = x._array
    if array.dtype.kind != "f":
        raise DTypeError(f"{name}: needs floating point numbers, not {array.dtype.name}", fix="input.float()")
    if lowest > highest:
        raise BadValue(f"{name}: `quant_min` should be less than or equal to `quant_max`, got {lowest} and {highest}",
                       fix=f"{name}(x, scale, zero_point, -128, 127)")
    if anywhere((zero < lowest) | (zero > highest)):
        raise BadValue(f"{name}: `zero_point` must be between `quant_min` and `quant_max`, {lowest} and {highest}",
                       fix="zero_point=0")
    inside, values = _nearest_steps(array, scale, zero, lowest, highest)
    kept = where(make(inside), x, 0.0)
    return kept - kept.detach() + make(values)  # exactly the values, with the derivative of what was kept


def _setting(given: Any, name: str) -> Any:
    """The array of a scale or zero point, which has no derivative."""
    if not isinstance(given, Tensor):
        return np.asarray(given)
    if given._storage.writer is not None:
        raise NotSupported(f"{name}: no derivative with respect to the scale or the zero point",
                           why="PyTorch has none either",
                           fix="scale.detach(), or mutagrad.round(x / scale) written out "
                               "with what its derivative is to be")
    return given._array


def fake_quantize_per_tensor_affine(input: Tensor, scale: Tensor | float, zero_point: Tensor | int, quant_min: int,
                                    quant_max: int) -> Any:
    """Round each element to a multiple of the scale, of which there are as many as from quant_min to quant_max.

    >>> import mutagrad as mg
    >>> mg.fake_quantize_per_tensor_affine(mg.tensor([0.12, 0.99, -3.]), 0.25, 0, -8, 7)
    tensor([ 0.,  1., -2.])
    """
    name = "fake_quantize_per_tensor_affine"
    x, step, zero = tensor_argument(input, name), _setting(scale, name), _setting(zero_point, name)
    if step.size != 1 or zero.size != 1:
        raise ShapeError(f"{name}: one scale and one zero point, got shapes {step.shape} and {zero.shape}",
                         fix="fake_quantize_per_channel_affine")
    return _quantized(name, x, step.reshape(()), zero.reshape(()), quant_min, quant_max)


def fake_quantize_per_channel_affine(input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int,
                                     quant_max: int) -> Any:
    """fake_quantize_per_tensor_affine with a scale and a zero point for each index of one dimension.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[0.12, 0.48], [1.2, 3.9]])
    >>> mg.fake_quantize_per_channel_affine(x, mg.tensor([0.1, 1.]), mg.zeros(2, dtype=mg.int32), 0, 0, 255)
    tensor([[0.1000, 0.5000],
            [1.0000, 4.0000]])
    """
    name = "fake_quantize_per_channel_affine"
    x, scale, zero = tensor_argument(input, name), _setting(scale, name), _setting(zero_point, name)
    shape = x._array.shape
    if not 0 <= axis < max(len(shape), 1):
        raise BadValue(f"{name}: `axis` must be between 0 and the number of dimensions of the input, {len(shape)}, "
                       f"got {axis}", fix="axis=0")
    if scale.shape != zero.shape or scale.shape != shape[axis:axis + 1]:
        raise ShapeError(f"{name}: scale and zero-point need to have the same dimensions, "
                         f"one element for each of dimension {axis}, "
                         f"got shapes {scale.shape} and {zero.shape} for an input of shape {shape}",
                         fix=f"mutagrad.ones(input.shape[{axis}])")
    along = [1] * len(shape)
    along[axis] = -1
    return _quantized(name, x, scale.reshape(along), zero.reshape(along), quant_min, quant_max)
