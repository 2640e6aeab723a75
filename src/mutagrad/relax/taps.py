"""From a fractional position to the places around it and their weights."""
from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Union

from ..arrays.kinds import anywhere
from ..base.errors import BadArgument, BadIndex, DTypeError, ShapeError, bad_choice
from ..core.dtypes import bool_, float64
from ..ops.create.create import arange, as_tensor
from ..ops.shape.joining import broadcast_shapes
from ..tensors.tensor import Tensor

Position = Union[Tensor, float]
Positions = Union[Position, tuple[Position, ...]]  # one for each of the first dimensions, as in x[i, j]
Outside = Literal["error", "clamp", "zero", "wrap"]
Mode = Literal["linear", "cubic"]

# Coefficients of the weights of the places around, the highest power first. The cubic ones are Keys' cubic convolution
# (1981) with a = -1/2: Catmull-Rom's spline.
POLYNOMIALS = {
    "linear": ((-1.0, 1.0), (1.0, 0.0)),
    "cubic": ((-0.5, 1.5, -1.5, 0.5), (1.0, -2.5, 2.0, -0.5), (-0.5, 0.0, 0.5, 0.0), (0.0, 1.0, 0.0, 0.0)),
}


class Taps(NamedTuple):
    """Which elements positions mean: picked, they have dimensions of the positions, of places around, and the rest."""

    picks: tuple[Tensor, ...]
    weight: Tensor  # of shape + (places), ones for what is not indexed
    shape: tuple[int, ...]  # of the positions
    dims: tuple[int, ...]  # of the result, over which places are summed


def find_taps(x: Tensor, positions: Positions, mode: Mode, outside: Outside, name: str) -> Taps:
    """Return the elements around positions, and their weights."""
    _check_choices(mode, outside, name)
    parts = _as_tensors(x, positions, name)
    shape = _common_shape(parts, name)
    fractional = [d for d, p in enumerate(parts) if p.is_floating_point()]
    index: list[Tensor] = []
    weight = x.new_ones(())
    for d, part in enumerate(parts):
        part = part.expand(*shape)
        places = [1] * len(fractional)
        if d in fractional:
            part, weights = _around(part, x.shape[d], d, mode, outside, name)
            places[fractional.index(d)] = weights.shape[-1]
            weight = weight * weights.to(x.dtype).reshape(*shape, *places)
        index.append(part.reshape(*shape, *places))
    weight = weight.reshape(*weight.shape, *(1,) * (x.ndim - len(parts)))
    return Taps(tuple(index), weight, shape, tuple(range(len(shape), len(shape) + len(fractional))))


def _check_choices(mode: Any, outside: Any, name: str) -> None:
    if not isinstance(mode, str) or mode not in POLYNOMIALS:
        raise bad_choice(mode, str, f"{name}: mode must be 'linear' or 'cubic', not {mode!r}")
    if not isinstance(outside, str) or outside not in ("error", "clamp", "zero", "wrap"):
        raise bad_choice(outside, str, f"{name}: outside must be 'error', 'clamp', 'zero' or 'wrap', not {outside!r}")


def _as_tensors(x: Tensor, positions: Positions, name: str) -> list[Tensor]:
    """The positions, one tensor for each dimension that they are in."""
    parts = positions if isinstance(positions, tuple) else (positions,)
    if not 0 < len(parts) <= x.ndim:
        raise ShapeError(f"{name}: {len(parts)} positions for a tensor of shape {tuple(x.shape)}",
                         why="there may be one for each of its dimensions, and there must be one",
                         fix="coordinates.unbind(-1), where they are along the last dimension of one tensor")
    found = [_as_position(p, x, name) for p in parts]
    if not any(p.is_floating_point() for p in found):
        raise DTypeError(f"{name}: the positions are integers",
                         why="a derivative with respect to an integer does not exist",
                         fix="relax.argmax instead of argmax makes positions that have one; x[index] reads at integers")
    return found


def _as_position(part: Any, x: Tensor, name: str) -> Tensor:
    if isinstance(part, Integral) and not isinstance(part, bool):
        return as_tensor(int(part), device=x.device)
    if isinstance(part, Real) and not isinstance(part, bool):
        return as_tensor(float(part), dtype=float64, device=x.device)
    if not isinstance(part, Tensor):
        raise BadArgument(f"{name}: a position must be a tensor or a number, not {type(part).__name__}",
                          fix="a tensor for the first dimension, or a tuple of them; x.movedim(dim, 0) for others")
    if part.is_complex() or part.dtype == bool_:
        raise DTypeError(f"{name}: a position cannot be {part.dtype}", fix="positions.float()")
    return part if part.is_floating_point() else part.long()


def _common_shape(parts: list[Tensor], name: str) -> tuple[int, ...]:
    try:
        return tuple(broadcast_shapes(*(p.shape for p in parts)))
    except RuntimeError:
        raise ShapeError(f"{name}: positions of shapes {[tuple(p.shape) for p in parts]} do not broadcast",
                         fix="rows[:, None] and columns make every pair") from None


def _around(position: Tensor, size: int, dim: int, mode: Mode, outside: Outside,
            name: str) -> tuple[Tensor, Tensor]:
    """The places around positions along one dimension, and their weights, in a last dimension."""
    _check_range(position, size, dim, outside, name)
    place, first = _bounded(position, size, outside)
    weights = _weights(place - first, mode)
    taps = weights.shape[-1]
    index = first.long()[..., None] + arange(1 - taps // 2, 1 + taps // 2, device=position.device)
    if outside == "wrap":
        return index.remainder(size), weights
    if outside == "zero":
        weights = weights.where((index >= 0) & (index < size), 0.0)
    return index.clamp(0, size - 1), weights


def _check_range(position: Tensor, size: int, dim: int, outside: Outside, name: str) -> None:
    if not size:
        raise BadIndex(f"{name}: dimension {dim} has no elements")
    if anywhere(~position.isfinite()._array):
        raise BadIndex(f"{name}: a position along dimension {dim} is nan or infinite", why="it is nowhere",
                       fix="find where it became so: autograd.set_detect_anomaly(True)")
    if outside == "error" and anywhere(((position < 0) | (position > size - 1))._array):
        low, high = position.detach().amin().item(), position.detach().amax().item()
        raise BadIndex(f"{name}: positions from {low:g} to {high:g} leave dimension {dim} of size {size}",
                       why=f"positions are from 0 to {size - 1}; negative ones do not count from the end",
                       fix="outside='clamp', 'zero' or 'wrap'")


def _bounded(position: Tensor, size: int, outside: Outside) -> tuple[Tensor, Tensor]:
    """Positions within bounds, and the integers below them. The last element is the upper end of its interval."""
    if outside == "wrap":
        place = position.remainder(size)
        return place, place.detach().floor()
    if outside == "zero":
        place = position.clamp(-3, size + 2)  # farther out all weights are zero, and integers end
        return place, place.detach().floor()
    place = position.clamp(0, size - 1)
    return place, place.detach().floor().clamp(max=max(size - 2, 0))


def _weights(part: Tensor, mode: Mode) -> Tensor:
    """The polynomials of a mode at the part of the way to the next place."""
    part, (highest, *others) = part[..., None], POLYNOMIALS[mode]
    found = part.new_tensor(highest)
    for coefficients in others:
        found = found * part + part.new_tensor(coefficients)
    return found
