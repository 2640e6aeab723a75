"""What every function here asks of its arguments before it computes anything."""
from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from ..arrays.kinds import anywhere
from ..base.errors import BadArgument, BadData, BadValue, DTypeError, ShapeError
from ..core.dtypes import finfo
from ..ops.create.create import as_tensor
from ..ops.shape.arguments import tensor_argument, whole_dim, whole_dims
from ..tensors.tensor import Tensor


def floating(input: Tensor, name: str, fix: str = "x.float()") -> Tensor:
    """Return the tensor, which must be of real floating point numbers: others have no derivative."""
    if not tensor_argument(input, name).is_floating_point():
        raise DTypeError(f"{name}: expects a floating point tensor, got {input.dtype}",
                         why="only real floating point numbers have the derivative that this is for", fix=fix)
    return input


def finite(input: Tensor, name: str) -> Tensor:
    """Return the tensor, which must be floating, without inf or nan: these have no distance from each other."""
    if anywhere(~floating(input, name).isfinite()._array):
        raise BadData(f"{name}: the input holds inf or nan",
                      why="it compares all elements with each other by their differences",
                      fix="x.masked_fill(mask, -1e9) leaves elements out; x.nan_to_num() makes all of them finite")
    return input


def positive(temperature: Tensor | float, input: Tensor, name: str) -> Any:
    """Return the temperature, which must be a positive number that the input's type can hold."""
    if isinstance(temperature, Tensor):
        return _positive_tensor(temperature, name)
    if isinstance(temperature, bool) or not isinstance(temperature, Real):
        raise BadArgument(f"{name}: the temperature must be a number or a tensor of no dimensions, not "
                          f"{type(temperature).__name__}", fix="temperature=0.1")
    limits = finfo(input.dtype)
    if not limits.tiny <= temperature <= limits.max:
        raise BadValue(f"{name}: the temperature must be positive and finite, got {temperature}",
                       why=f"it divides numbers of {input.dtype}, of which {limits.tiny:.2g} is the least",
                       fix="temperature=0.01, or the exact operation, which is the limit")
    return float(temperature)


def _positive_tensor(temperature: Tensor, name: str) -> Tensor:
    if floating(temperature, name).ndim:
        raise ShapeError(f"{name}: a tensor of shape {tuple(temperature.shape)} is no temperature",
                         why="there is one for the whole input",
                         fix="vmap over rows, each with a temperature of its own")
    if anywhere(~(temperature > 0)._array) or anywhere(temperature.isinf()._array):
        raise BadValue(f"{name}: the temperature must be positive and finite, got {temperature.detach()}",
                       fix="learn its logarithm: temperature=log_temperature.exp()")
    return temperature


def operand(value: Tensor | float, like: Tensor, name: str) -> Tensor:
    """Return a number as a tensor of the type and device of another; a tensor as it is."""
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, Real):
        raise BadArgument(f"{name}: expects a tensor or a number, got {type(value).__name__}",
                          fix="mutagrad.as_tensor(y)")
    return as_tensor(float(value), dtype=like.dtype, device=like.device)


def filled_dim(input: Tensor, dim: int, name: str) -> int:
    """Return a dimension counted from the front, which must have elements to choose from."""
    place = whole_dim(dim, input.ndim, name)
    if input.ndim and not input.shape[place]:
        raise ShapeError(f"{name}: dimension {dim} of shape {tuple(input.shape)} has no elements",
                         why="there is nothing to choose from")
    return place


def filled_dims(input: Tensor, dim: int | Sequence[int] | None, name: str) -> tuple[int, ...]:
    """Return a dimension, several, or all for None, counted from the front; all must have elements."""
    return tuple(filled_dim(input, d, name) for d in whole_dims(dim, input.ndim, name))
