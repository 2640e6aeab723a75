"""Passes over arrays that normalise them, and the derivatives of these, on plain arrays of NumPy's.

Where there is a compiled loop it goes over each row, or channel, while that lies in the cache; NumPy does so in blocks.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from ...arrays import np, parallel as large
from ...arrays.compiled import library, rows as compiled
from ...arrays.compiled.compiler import choice
from ...arrays.compiled.written import cuts
from ...arrays.copies import in_order
from ...arrays.sums import channel_sums, row_sums
from ...base.operands import Array

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

def _folded(plan: Plan) -> tuple[tuple[int, int, int], tuple[int, ...], tuple[int, ...]]:
    """Of a plan over groups of channels: shapes of an item as (samples, groups, elements), by weights, and of those."""
    samples, groups, channels, inner = plan.shape
    wide = (samples, groups * channels, inner) if inner > 1 else (samples, groups * channels)
    return (samples, groups, channels * inner), wide, (groups * channels, 1) if inner > 1 else (groups * channels,)


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
    rows, wide, affine = _folded(plan)
    groups = rows[1]
    source, target, final = x.reshape(rows), out.reshape(rows), out.reshape(wide)
    mean, scale = moments.reshape(2, *rows[:2], 1)
    w, b = (v.reshape(affine) if v.ndim else None for v in (weight, bias))

    def work(part: slice) -> None:
        block = target[part]
        if plan.centred:
            mean[part, :, 0] = row_sums(source[part]) / rows[2]
            np.subtract(source[part], mean[part], out=block)
            squares = row_sums(block, block)
        else:
            squares = row_sums(source[part], source[part])
        scale[part, :, 0] = 1 / np.sqrt(squares / x.dtype.type(rows[2]) + x.dtype.type(plan.eps))
        if w is not None and len(wide) > 2:  # the same for all elements of a channel: one factor with the scale
            factor = scale[part] * w.reshape(groups, -1)
            np.multiply(final[part], factor.reshape(-1, *w.shape), out=final[part])
        else:
            np.multiply(block if plan.centred else source[part], scale[part], out=block)
            if w is not None:
                np.multiply(final[part], w, out=final[part])
        if b is not None:
            np.add(final[part], b, out=final[part])

    large.in_turn(rows[0], rows[1] * rows[2], work, fixed=True)
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
    rows, wide, affine = _folded(plan)
    mean, scale = moments.reshape(2, *rows[:2], 1)
    target, source, incoming = None if gx is None else gx.reshape(rows), x.reshape(rows), g.reshape(wide)
    w = weight.reshape(affine) if weight is not None and weight.ndim else None

    def work(part: slice) -> tuple[Any, Any]:
        normal = source[part] - mean[part] if plan.centred else source[part].astype(g.dtype)
        normal *= scale[part]
        piece = incoming[part]
        sums = (channel_sums(piece, normal.reshape(piece.shape)) if wanted[1] else None,
                channel_sums(piece) if wanted[2] else None)
        if target is None:
            return sums
        block = target[part]
        if w is None:
            block[...] = piece.reshape(block.shape)
        else:
            np.multiply(piece, w, out=block.reshape(piece.shape))
        along = (row_sums(block, normal)[..., None] / rows[2]).astype(g.dtype, copy=False)
        level = (row_sums(block)[..., None] / rows[2]).astype(g.dtype, copy=False) if plan.centred else None
        normal *= along
        block -= normal
        if level is not None:
            block -= level
        block *= scale[part]
        return sums

    sums = large.in_turn(rows[0], rows[1] * rows[2], work, fixed=True)
    return gx, *(_added([s[k] for s in sums], g, wide[1]) if wanted[k + 1] else None for k in (0, 1))


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


def _added(parts: list[Any], g: Array, count: int) -> Any:
    if len(parts) == 1:
        return parts[0].astype(g.dtype, copy=False)
    return np.add.reduce(np.stack(parts), 0).astype(g.dtype) if parts else np.zeros(count, g.dtype)


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
    source, target = x.reshape(plan.shape), out.reshape(plan.shape)
    mean, scale = moments
    functions, shape, count, setting = _over_channels(plan, x.size)
    if functions and (loop := _loop(functions[0], x, weight, bias, mean, scale)) is not None:
        given = (x.reshape(shape), *setting, _vector(weight, x), _vector(bias, x), plan.given, plan.eps,
                 mean.reshape(-1), scale.reshape(-1), out.reshape(shape))
        loop.share(count, x.size, *given)
        return out
    w, b = (v.reshape(-1, 1) if v.ndim else None for v in (weight, bias))

    def work(part: slice) -> None:
        piece, block = source[:, part], target[:, part]
        if not plan.given:
            mean[0, part, 0] = channel_sums(piece) / plan.members
        np.subtract(piece, mean[:, part], out=block)
        if not plan.given:
            scale[0, part, 0] = 1 / np.sqrt(channel_sums(block, block) / plan.members + plan.eps)
        np.multiply(block, scale[0, part] if w is None else scale[0, part] * w[part], out=block)
        if b is not None:
            np.add(block, b[part], out=block)

    _by_channel(plan, work)
    return out


def reverse_channels(g: Array, x: Array, weight: Array | None, plan: Plan, moments: Any,
                      wanted: Sequence[bool]) -> Sequence[Any]:
    mean, scale = moments
    channels = plan.shape[1]
    g, x = in_order(g), in_order(x)
    gx = np.empty(g.shape, g.dtype) if wanted[0] else None
    along, level = np.zeros(channels, g.dtype), np.zeros(channels, g.dtype)
    target = None if gx is None else gx.reshape(plan.shape)
    source, incoming = x.reshape(plan.shape), g.reshape(plan.shape)
    functions, shape, count, setting = _over_channels(plan, x.size)
    if functions and (loop := _loop(functions[1], x, g, mean, scale, *_present(weight))) is not None:
        inputs = (g.reshape(shape), x.reshape(shape), *setting, _vector(weight, g), plan.given, mean.reshape(-1),
                  scale.reshape(-1), wanted[0], (g if gx is None else gx).reshape(shape), along, level)
        loop.share(count, x.size, *inputs)
        return gx, along if wanted[1] else None, level if wanted[2] else None
    slope = scale[0] if weight is None or not weight.ndim else scale[0] * weight.reshape(-1, 1)

    def work(part: slice) -> None:
        piece = incoming[:, part]
        normal = source[:, part] - mean[:, part]
        normal *= scale[:, part]
        along[part] = channel_sums(piece, normal)
        level[part] = channel_sums(piece)
        if target is None:
            return
        block = target[:, part]
        if plan.given:
            np.multiply(piece, slope[part], out=block)
            return
        normal *= (along[part] / g.dtype.type(plan.members))[:, None]
        np.subtract(piece, normal, out=block)
        block -= (level[part] / g.dtype.type(plan.members))[:, None]
        block *= slope[part]

    _by_channel(plan, work)
    return gx, along if wanted[1] else None, level if wanted[2] else None


def _by_channel(plan: Plan, work: Callable[[slice], None]) -> None:
    """A block has several channels where their elements lie side by side."""
    samples, channels, inner = plan.shape
    together = max(1, min(64 // max(inner, 1), channels))
    blocks = -(-channels // together)

    def block(part: slice) -> None:
        work(slice(part.start * together, min(part.stop * together, channels)))

    large.in_turn(blocks, samples * together * inner, block, fixed=True)
