"""Borders: padding with constants, mirrored, repeated or wrapped around; and channels shuffled into space and back."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.compiled import images
from ...arrays.kinds import remembered
from ...arrays.numpy import silently
from ...base.errors import BadArgument, BadValue, NotSupported, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.number import number
from ...core.storage import TensorBase as Tensor
from ..shape.shape import clone, goes_along_channels, in_format_of, movedim, permute, reshape, tensor_argument
from . import planes
from .resample import resample_behind_channels, whole_numbers
from .taps import Taps

FUNCTIONS = "channel_shuffle constant_pad_nd native_channel_shuffle pixel_shuffle pixel_unshuffle"

__all__ = ["channel_shuffle", "native_channel_shuffle", "pad", "pixel_shuffle", "pixel_unshuffle"]


# ------------------------------------------------------------------------------------------------------------- constant

def _constant(a: Array, pads: tuple[tuple[int, int], ...], value: Any) -> Any:
    shape = tuple(n + before + after for n, (before, after) in zip(a.shape, pads))
    before = [0, 0, 0, *(before for before, _ in pads)][-3:]
    if not any(map(any, pads[:-3])) and (found := planes.fill(images.surround, a, shape, *before, value)) is not None:
        return found
    out: Any = np.empty(shape, a.dtype)
    kept = tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(a.shape, pads))
    inner = tuple(slice(max(before, 0), n - max(after, 0)) for n, (before, after) in zip(out.shape, pads))
    if 2 * prod(s.stop - s.start for s in inner) < out.size:
        out[...] = value
    else:  # what is around it alone: the slabs before and after along each dimension
        for d, s in enumerate(inner):
            out[inner[:d] + (slice(0, s.start),)] = value
            out[inner[:d] + (slice(s.stop, None),)] = value
    large.assign(out[inner], a[kept])
    return out


def _negated(pads: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return tuple((-before, -after) for before, after in pads)


pad_values = primitive("pad", _constant, settings=("pads", "value"), x=lambda xp, g, pads: xp.pad(g, _negated(pads), 0))


def _pairs(name: str, x: Tensor, pads: Any) -> tuple[tuple[int, int], ...]:
    """PyTorch's flat list, last dimension first, as (before, after) of every dimension."""
    if not isinstance(pads, (tuple, list)):
        raise BadArgument(f"{name}: pad must be a sequence of integers, not {type(pads).__name__}",
                          fix="pad=(left, right)")
    given = whole_numbers(pads, len(pads), name, "pad") if len(pads) else ()
    ndim: int = x._array.ndim
    if len(given) % 2 or len(given) > 2 * ndim:
        raise BadValue(f"{name}: pad={tuple(given)} does not fit shape {tuple(x._array.shape)}",
                       why=f"it must hold two numbers for each of at most {ndim} dimensions, the last dimension first",
                       fix="pad=(left, right)")
    pairs = tuple((given[2 * i], given[2 * i + 1]) for i in reversed(range(len(given) // 2)))
    return ((0, 0),) * (ndim - len(pairs)) + pairs


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: Any = 0) -> Any:
    """`value` put around the last dimensions; negative pads cut off.

    >>> import mutagrad as mg
    >>> mg.constant_pad_nd(mg.tensor([1., 2.]), (1, 2), 5.)
    tensor([5., 1., 2., 5., 5.])
    """
    x = tensor_argument(input, "constant_pad_nd")
    pairs = _pairs("constant_pad_nd", x, pad)
    for d, (n, (before, after)) in enumerate(zip(x._array.shape, pairs)):
        if n + before + after < 0 or before < -n or after < -n:
            raise ShapeError(f"pad: {(before, after)} leaves nothing of dimension {d} of size {n}",
                             why=f"the shape is {x._array.shape}", fix="smaller negative pads")
    value = silently(x._array.dtype.type, number(value))
    if not goes_along_channels(x):
        return in_format_of(x, pad_values(x, pairs, value))
    return movedim(pad_values(movedim(x, 1, -1), (pairs[0], *pairs[2:], pairs[1]), value), -1, 1)


# -------------------------------------------------------------------------------------- by what the tensor itself holds

@remembered(256)
def _border(mode: str, n: int, before: int, after: int) -> Taps:
    """Which of n positions stands at each position of the padded dimension."""
    at = np.arange(-before, n + after)
    if mode == "replicate":
        at = at.clip(0, n - 1)
    elif mode == "circular":  # what negative pads cut off is gone before the rest is wrapped around
        low, high = max(-before, 0), n - max(-after, 0)
        at = (at - low) % max(high - low, 1) + low
    else:
        at = np.abs(at)
        at = np.where(at >= n, 2 * (n - 1) - at, at)
    return Taps(n, at[:, None], None)


def _check_border(mode: str, x: Tensor, pairs: tuple[tuple[int, int], ...], dims: int) -> None:
    shape = x._array.shape
    if dims not in (1, 2, 3) or len(shape) not in (dims + 1, dims + 2):
        raise NotSupported(f"pad: mode={mode!r} pads the last 1 to 3 dimensions behind channels; "
                           f"got shape {shape} and {dims} dimensions to pad", fix="x[None], or mode='constant'")
    if 0 in shape[1:] and (0 in shape[-dims:] or len(shape) == dims + 1 or 0 in shape[1:-dims]):
        raise ShapeError(f"pad: mode={mode!r} expects {dims + 1}D or {dims + 2}D input with elements to repeat, "
                         f"got shape {shape}", fix="mode='constant'")
    limit = {"reflect": 1, "circular": 0}.get(mode)
    for d in range(len(shape) - dims, len(shape)):
        n, (before, after) = shape[d], pairs[d]
        if limit is not None and max(before, after) > n - limit:
            raise ShapeError(f"pad: {(before, after)} is too much for mode={mode!r} and dimension {d} of size {n}",
                             why=f"each side can have at most {n - limit}", fix="mode='replicate', or pad twice")
        if n + before + after <= 0 and mode != "circular" or n + before + after < 0:
            raise ShapeError(f"pad: {(before, after)} leaves nothing of dimension {d} of size {n}",
                             fix="smaller negative pads")


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | Tensor | None = None) -> Any:
    """Add a border around the last dimensions: of a constant, mirrored, of the outermost values, or wrapped around.

    >>> import mutagrad as mg
    >>> mg.nn.functional.pad(mg.tensor([[1., 2., 3.]]), (1, 2))
    tensor([[0., 1., 2., 3., 0., 0.]])
    """
    x = tensor_argument(input, "pad")
    if mode == "constant":
        return constant_pad_nd(x, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotSupported(f"pad: mode={mode!r} is not known",
                           fix="mode='constant', 'reflect', 'replicate' or 'circular'")
    if value:
        raise BadValue(f"pad: value={value!r} has no meaning with mode={mode!r}", fix="mode='constant'")
    pairs = _pairs("pad", x, pad)
    _check_border(mode, x, pairs, len(pad) // 2)
    first = len(pairs) - len(pad) // 2
    borders = ((d, n, *pair) for d, (n, pair) in enumerate(zip(x._array.shape, pairs)) if d >= first)
    taps = tuple((d, _border(mode, n, before, after)) for d, n, before, after in borders if before or after)
    return resample_behind_channels(x, taps)


# ------------------------------------------------------------------------------------------------------ channels, space

def _factor(name: str, x: Tensor, factor: Any, what: str) -> int:
    tensor_argument(x, name)
    if x._array.ndim < 3:
        raise ShapeError(f"{name}: expects at least 3 dimensions (channels, height, width), got shape {x._array.shape}",
                         fix="x[None]")
    n, = whole_numbers(factor, 1, name, what)
    if n <= 0:
        raise BadValue(f"{name}: {what} must be positive, not {n}", fix=f"{what}=2")
    return n


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Any:
    """Turn channels into pixels: (c·r², h, w) becomes (c, h·r, w·r).

    >>> import mutagrad as mg
    >>> mg.pixel_shuffle(mg.zeros(1, 4, 2, 2), 2).shape
    mutagrad.Size([1, 1, 4, 4])
    """
    r = _factor("pixel_shuffle", input, upscale_factor, "upscale_factor")
    *lead, c, h, w = input._array.shape
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle: {c} channels cannot be divided by {r}² (shape {input._array.shape})",
                         fix=f"{r * r * max(c // (r * r), 1)} channels")
    n = len(lead)
    split = reshape(input, *lead, c // (r * r), r, r, h, w)
    return reshape(permute(split, *range(n), n, n + 3, n + 1, n + 4, n + 2), *lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Any:
    """Turn pixels into channels: the reverse of pixel_shuffle.

    >>> import mutagrad as mg
    >>> mg.pixel_unshuffle(mg.zeros(1, 1, 4, 4), 2).shape
    mutagrad.Size([1, 4, 2, 2])
    """
    r = _factor("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    *lead, c, h, w = input._array.shape
    if h % r or w % r:
        raise ShapeError(f"pixel_unshuffle: height {h} and width {w} cannot be divided by {r}",
                         why=f"the shape is {input._array.shape}", fix="nn.functional.pad first")
    n = len(lead)
    split = reshape(input, *lead, c, h // r, r, w // r, r)
    return reshape(permute(split, *range(n), n, n + 2, n + 4, n + 1, n + 3), *lead, c * r * r, h // r, w // r)


def channel_shuffle(input: Tensor, groups: int) -> Any:
    """Interleave channels of different groups.

    >>> import mutagrad as mg
    >>> mg.channel_shuffle(mg.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    tensor_argument(input, "channel_shuffle")
    shape = input._array.shape
    if len(shape) < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, got shape {shape}", fix="x[None]")
    groups, = whole_numbers(groups, 1, "channel_shuffle", "groups")
    if groups <= 0 or shape[1] % groups:
        raise BadValue(f"channel_shuffle: Number of channels must be divisible by groups, got {shape[1]} and {groups}",
                       fix="a divisor of the number of channels")
    split = reshape(input, shape[0], groups, shape[1] // groups, prod(shape[2:]))
    mixed = permute(split, 0, 2, 1, 3)
    return reshape(clone(mixed) if groups > 1 else mixed, *shape)


native_channel_shuffle = channel_shuffle  # one kernel among several in PyTorch
