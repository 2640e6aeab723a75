"""Passes over arrays that normalise them, and the derivatives of these, on plain arrays of NumPy's.

Where there is a compiled loop it goes over each row, or channel, while that lies in the cache; NumPy does so in blocks.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.compiled import library, rows as compiled
from ...arrays.compiled.compiler import choice
from ...arrays.compiled.written import cuts
from ...arrays.copies import in_order
from ...base.operands import Array
from . import normal_blocks as blocks

_SIDE = 16  # channels that lie side by side are shared out among threads by so many
_LONG = 8  # elements of a channel that lie side by side, from which a loop goes over them one after the other


class Plan(NamedTuple):
    """Which elements are normalised together.

    The input is seen in `shape`, mean and deviation are taken over the dimensions `over`, and weight and bias are seen
    in the shape `affine`. Without `centred` the mean stays; with `given` both come from elsewhere and are constants.
    """

    shape: tuple[int, ...]
    over: tuple[int, ...]
    affine: tuple[int, ...]
    eps: float
    centred: bool = True
    given: bool = False

    @property
    def members(self) -> int:
        """How many elements are normalised together."""
        return prod(self.shape[d] for d in self.over)

    @property
    def repeated(self) -> tuple[int, ...]:
        """The dimensions in which weight and bias are the same."""
        return tuple(d for d, n in enumerate(self.affine) if n == 1)


# ---------------------------------------------------------------------------------------------------- rows of one array

def normalise_groups(x: Array, weight: Array, bias: Array, plan: Plan, moments: Any) -> Any:
    x = in_order(x)
    out = np.empty(x.shape, x.dtype)
    if (loop := _loop(compiled.normalise, x, weight, bias)) is not None:
        samples, groups, channels, inner = plan.shape
        shape = samples * groups, channels * inner
        mean, scale = moments.reshape(2, -1)
        given = (_shaped(x, shape), _vector(weight, x), _vector(bias, x), inner, plan.centred, plan.eps,
                 mean, scale, _shaped(out, shape))
        loop.share(shape[0], x.size, *given)
        return out
    mean, scale = moments.reshape(2, *plan.shape[:2])
    blocks.normalise_groups(x, out, weight, bias, plan.shape, plan.centred, plan.eps, mean, scale)
    return out


def reverse_groups(g: Array, x: Array, weight: Array | None, plan: Plan, moments: Any,
                    wanted: Sequence[bool]) -> Sequence[Any]:
    g, x = in_order(g), in_order(x)
    gx = np.empty(g.shape, g.dtype) if wanted[0] else None
    if (loop := _loop(compiled.normalise_back, x, g, *_present(weight))) is not None:
        samples, groups, channels, inner = plan.shape
        shape = samples * groups, channels * inner
        parts = cuts(shape[0], x.size)
        count = parts.size - 1
        sums = [np.zeros((count, groups * channels if asked else 0), g.dtype) for asked in wanted[1:3]]
        loop.share(count, x.size, parts, _shaped(g, shape), _shaped(x, shape), _vector(weight, g), inner,
                   plan.centred, *moments.reshape(2, -1), wanted[0], _shaped(g if gx is None else gx, shape), *sums)
        return gx, *[(s[0] if count == 1 else np.add.reduce(s, 0)) if asked else None
                     for s, asked in zip(sums, wanted[1:3])]
    mean, scale = moments.reshape(2, *plan.shape[:2])
    return gx, *blocks.reverse_groups(g, x, weight, gx, plan.shape, plan.centred, mean, scale, wanted)


def _loop(function: Callable[..., Any], *arrays: Array) -> Any:
    """The compiled loop for these arrays, if they are work for one."""
    kind = arrays[0].dtype
    if not choice.on or not arrays[0].size:
        return None
    for a in arrays:
        if type(a) is not np.ndarray or a.ndim and not (a.dtype is kind and a.flags.c_contiguous):
            return None
    return library.find_for(function, arrays[0])


def _shaped(array: Array, shape: tuple[int, ...]) -> Array:
    return array if array.shape == shape else array.reshape(shape)


def _present(weight: Array | None) -> tuple[Array, ...]:
    """A weight, if there is one: what is saved of one that stands for none is NumPy's number."""
    return (weight,) if weight is not None and weight.ndim else ()


def _vector(values: Array | None, like: Array) -> Array:
    """A weight, which may not be there."""
    if values is None or not values.ndim:
        return np.zeros(0, like.dtype)
    return values if values.ndim == 1 else values.reshape(-1)


# ------------------------------------------------------------------------------------------------ channels of all items

def _over_channels(plan: Plan, size: int) -> tuple[Sequence[Callable[..., Any]], tuple[int, ...], int, list[int]]:
    """Loops for this plan, forward and back; in which shape they take arrays, how many units that is, and a setting."""
    samples, channels, inner = plan.shape
    if inner == 1:
        columns = max(-(-channels // (len(cuts(channels, size)) - 1) // _SIDE), 1) * _SIDE
        units = -(-channels // columns)
        return (compiled.normalise_columns, compiled.normalise_columns_back), (samples, channels), units, [columns]
    if inner < _LONG and size >= library.WORTH:
        return (), (), 0, []
    return (compiled.normalise_channels, compiled.normalise_channels_back), plan.shape, channels, []


def normalise_channels(x: Array, weight: Array, bias: Array, plan: Plan, moments: Any) -> Any:
    x = in_order(x)
    out = np.empty(x.shape, x.dtype)
    mean, scale = moments
    functions, shape, count, setting = _over_channels(plan, x.size)
    if functions and (loop := _loop(functions[0], x, weight, bias, mean, scale)) is not None:
        given = (x.reshape(shape), *setting, _vector(weight, x), _vector(bias, x), plan.given, plan.eps,
                 mean.reshape(-1), scale.reshape(-1), out.reshape(shape))
        loop.share(count, x.size, *given)
        return out
    mean, scale = mean.reshape(-1), scale.reshape(-1)
    blocks.normalise_channels(x, out, weight, bias, plan.shape, plan.given, plan.eps, mean, scale)
    return out


def reverse_channels(g: Array, x: Array, weight: Array | None, plan: Plan, moments: Any,
                      wanted: Sequence[bool]) -> Sequence[Any]:
    mean, scale = moments
    channels = plan.shape[1]
    g, x = in_order(g), in_order(x)
    gx = np.empty(g.shape, g.dtype) if wanted[0] else None
    along, level = np.zeros(channels, g.dtype), np.zeros(channels, g.dtype)
    functions, shape, count, setting = _over_channels(plan, x.size)
    if functions and (loop := _loop(functions[1], x, g, mean, scale, *_present(weight))) is not None:
        inputs = (g.reshape(shape), x.reshape(shape), *setting, _vector(weight, g), plan.given, mean.reshape(-1),
                  scale.reshape(-1), wanted[0], (g if gx is None else gx).reshape(shape), along, level)
        loop.share(count, x.size, *inputs)
        return gx, along if wanted[1] else None, level if wanted[2] else None
    mean, scale = mean.reshape(-1), scale.reshape(-1)
    along, level = blocks.reverse_channels(g, x, weight, gx, plan.shape, plan.given, mean, scale)
    return gx, along if wanted[1] else None, level if wanted[2] else None
