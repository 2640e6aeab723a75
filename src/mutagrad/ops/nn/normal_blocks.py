"""Normalisation and its derivatives by NumPy alone: in blocks, with as few passes over each as can be.

Sums are BLAS's, and what is the same for many elements is worked out for one of them. Who calls has looked at the plan.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.blas import SPREAD, on_one_thread
from ...arrays.sums import channel_sums, column_sums, row_sums
from ...base.operands import Array

WIDE = 1024  # elements of a row from which NumPy does not copy what is repeated in each


def _in_blocks(count: int, each: int, work: Callable[[slice], Any]) -> list[Any]:
    """What `work` gives for blocks of so many items; its products with vectors are too small for BLAS's threads."""
    if count * each < SPREAD:
        return [work(slice(0, count))]
    return on_one_thread(lambda _: large.in_turn(count, each, work, fixed=True))


# --------------------------------------------------------------------------------------------------- groups of channels

def normalise_groups(x: Array, out: Array, weight: Any, bias: Any, shape: Sequence[int], centred: bool, eps: float,
                     mean: Array, scale: Array) -> None:
    """Normalise x, of this shape as (samples, groups, channels, elements); mean and scale are (samples, groups)."""
    samples, groups, channels, inner = shape
    n, kind = channels * inner, x.dtype.type
    source, target = (v.reshape(samples, groups, n) for v in (x, out))
    final = out.reshape(samples, groups, channels, inner) if inner > 1 else target
    affine = (groups, channels, 1) if inner > 1 else (groups, channels)
    w, b = (v.reshape(affine) if v.ndim else None for v in (weight, bias))
    mean, scale = mean[..., None], scale[..., None]

    def work(part: slice) -> None:
        block = target[part]
        centre = block if centred else source[part]
        if centred:
            mean[part, :, 0] = row_sums(source[part]) / n
            np.subtract(source[part], mean[part], out=block)
        scale[part, :, 0] = 1 / np.sqrt(row_sums(centre, centre) / kind(n) + kind(eps))
        if w is not None and inner > 1:  # the same for all elements of a channel: one factor with the scale
            np.multiply(centre.reshape(final[part].shape), scale[part, :, :, None] * w, out=final[part])
        else:
            np.multiply(centre, scale[part], out=block)
            if w is not None:
                np.multiply(block, w, out=block)
        if b is not None:
            np.add(final[part], b, out=final[part])

    _in_blocks(samples, groups * n, work)


def reverse_groups(g: Array, x: Array, weight: Any, gx: Any, shape: Sequence[int], centred: bool, mean: Array,
                   scale: Array, wanted: Sequence[bool]) -> list[Any]:
    """Write the derivative by the input into gx, unless that is None; return those by weight and bias, if wanted.

    Of channels with several elements only sums are needed for all but the first: g times the centred input, and g.
    """
    samples, groups, channels, inner = shape
    n, kind = channels * inner, g.dtype
    source, incoming = x.reshape(samples, groups, n), g.reshape(samples, groups, n)
    target = None if gx is None else gx.reshape(samples, groups, n)
    w = weight.reshape(groups, channels) if weight is not None and weight.ndim else None

    def in_channels(values: Array) -> Any:
        values = values.reshape(len(values), groups, channels, inner)
        return row_sums(values) if inner > 1 else values[..., 0]

    def work(part: slice) -> tuple[Any, Any]:
        q, steep = incoming[part], scale[part]
        block = np.empty(q.shape, kind) if target is None else target[part]
        if centred:
            np.subtract(source[part], mean[part, :, None], out=block)
        centre = block if centred else source[part]
        scratch = np.multiply(centre, q)
        along: Any = in_channels(scratch)
        level: Any = in_channels(q) if centred or wanted[2] else None
        sums = (_over_samples(along, steep) if wanted[1] else None, _over_samples(level) if wanted[2] else None)
        if target is not None:
            slope = (row_sums(along, w) * steep * steep / n).astype(kind, copy=False)
            np.multiply(centre, slope[..., None], out=block)
            _weigh(q, w, inner, scratch)
            scratch -= block
            if centred:
                scratch -= (row_sums(level, w) / n).astype(kind, copy=False)[..., None]
            np.multiply(scratch, steep[..., None], out=block)
        return sums

    parts = _in_blocks(samples, groups * n, work)
    return [_added([p[k] for p in parts], g, groups * channels) if wanted[k + 1] else None for k in (0, 1)]


def _weigh(q: Array, w: Any, inner: int, out: Array) -> None:
    """q times the weights of its groups and channels."""
    if w is None:
        out[...] = q
    elif inner > 1:
        wide = (*q.shape[:2], w.shape[1], inner)
        np.multiply(q.reshape(wide), w[..., None], out=out.reshape(wide))
    else:
        np.multiply(q, w, out=out)


def _over_samples(values: Array, factors: Array | None = None) -> Any:
    """Sum over samples what stands for each group and channel, perhaps times a factor for each group."""
    if factors is not None and values.shape[1] > 1:
        values, factors = values * factors[..., None], None
    return column_sums(values.reshape(len(values), prod(values.shape[1:])), None if factors is None else factors[:, 0])


def _added(parts: list[Any], g: Array, count: int) -> Any:
    if len(parts) == 1:
        return parts[0].astype(g.dtype, copy=False)
    return np.add.reduce(np.stack(parts), 0).astype(g.dtype) if parts else np.zeros(count, g.dtype)


# ------------------------------------------------------------------------------------------------ channels of all items

def normalise_channels(x: Array, out: Array, weight: Any, bias: Any, shape: Sequence[int], given: bool, eps: float,
                       mean: Array, scale: Array) -> None:
    """Normalise x, of this shape as (samples, channels, elements); mean and scale are vectors."""
    samples, _, inner = shape
    w, b = (v.reshape(-1) if v.ndim else None for v in (weight, bias))
    if given:
        slope = scale if w is None else scale * w
        shift = -mean * slope if b is None else b - mean * slope
        return _steps(x, out, shape, [(np.multiply, slope), (np.add, shift)])
    if inner == 1:
        mean[:] = _column_totals(shape, lambda q: q, x) / samples
        _steps(x, out, shape, [(np.subtract, mean)])
        squares = _column_totals(shape, np.square, out)
        scale[:] = 1 / np.sqrt(squares / samples + eps)
        steps = [(np.multiply, scale if w is None else scale * w), *([] if b is None else [(np.add, b)])]
        return _steps(out, out, shape, steps)
    source, target = x.reshape(shape), out.reshape(shape)
    n = samples * inner
    mean, scale = mean[:, None], scale[:, None]

    def work(part: slice) -> None:
        piece, block = source[:, part], target[:, part]
        mean[part, 0] = channel_sums(piece) / n
        np.subtract(piece, mean[part], out=block)
        scale[part, 0] = 1 / np.sqrt(channel_sums(block, block) / n + eps)
        np.multiply(block, scale[part] if w is None else scale[part] * w[part, None], out=block)
        if b is not None:
            np.add(block, b[part, None], out=block)

    _by_channel(shape, work)


def reverse_channels(g: Array, x: Array, weight: Any, gx: Any, shape: Sequence[int], given: bool, mean: Array,
                     scale: Array) -> tuple[Any, Any]:
    """Write the derivative by the input into gx, unless that is None; return those by weight and bias."""
    samples, channels, inner = shape
    n, kind = samples * inner, g.dtype
    slope = scale if weight is None or not weight.ndim else scale * weight.reshape(-1)
    along, level = np.zeros(channels, kind), np.zeros(channels, kind)
    if inner == 1:
        middle = mean.astype(kind)
        along[:] = _column_totals(shape, lambda q, a, m: (a - m) * q, g, x, middle)
        level[:] = _column_totals(shape, lambda q: q, g)
        if gx is not None:
            steps = [(np.multiply, slope)]
            if not given:
                _steps(x, gx, shape, [(np.subtract, middle), (np.multiply, -along * scale * scale / kind.type(n)),
                                      (np.add, g), (np.subtract, level / kind.type(n))])
            _steps(g if given else gx, gx, shape, steps)
        return along * scale, level
    source, incoming = x.reshape(shape), g.reshape(shape)
    target = None if gx is None else gx.reshape(shape)

    def work(part: slice) -> None:
        piece = incoming[:, part]
        centre = source[:, part] - mean[part, None]
        along[part] = channel_sums(piece, centre)
        level[part] = channel_sums(piece)
        if target is None:
            return
        block = target[:, part]
        if not given:
            centre *= (along[part] * scale[part] * scale[part] / kind.type(n))[:, None]
            piece = np.subtract(piece, centre, out=block)
            piece -= (level[part] / kind.type(n))[:, None]
        np.multiply(piece, slope[part, None], out=block)

    _by_channel(shape, work)
    return along * scale, level


def _steps(source: Array, target: Array, shape: Sequence[int], steps: Sequence[tuple[Any, Array]]) -> None:
    """Do to all elements what each step says, with what it has for their channel, or for each of them."""
    samples, channels, inner = shape
    together = 1 if inner > 1 else _together(samples, channels)
    whole = (samples // together, together * channels, *((inner,) if inner > 1 else ()))
    given, out = source.reshape(whole), target.reshape(whole)
    operands = [v.reshape(whole) if v.size == given.size and v.ndim > 1 else
                np.tile(v, together).astype(target.dtype, copy=False) if inner == 1 else
                v.astype(target.dtype, copy=False)[:, None] for _, v in steps]

    def work(part: slice) -> None:
        at = given[part]
        for (step, _), operand in zip(steps, operands):
            at = step(at, operand[part] if operand.shape == whole else operand, out=out[part])

    large.in_turn(whole[0], channels * together * inner, work)


def _column_totals(shape: Sequence[int], function: Callable[..., Array], *arrays: Array) -> Any:
    """Sum over samples what a function gives of arrays whose channels lie side by side, in double."""
    samples, channels, _ = shape
    together = _together(samples, channels)
    seen = [a.reshape(samples // together, together * channels) if a.ndim > 1 else np.tile(a, together) for a in arrays]

    def work(part: slice) -> Any:
        return column_sums(function(*[a[part] if a.ndim > 1 else a for a in seen]))

    parts = _in_blocks(samples // together, together * channels, work)
    return np.add.reduce(np.stack(parts).reshape(-1, channels), 0)


def _together(samples: int, channels: int) -> int:
    """How many samples are seen as one row, so that it is long."""
    together = 1
    while 0 < together * channels < WIDE and samples % (2 * together) == 0:
        together *= 2
    return together


def _by_channel(shape: Sequence[int], work: Callable[[slice], None]) -> None:
    """A block has several channels where their elements lie side by side."""
    samples, channels, inner = shape
    together = max(1, min(64 // max(inner, 1), channels))
    blocks = -(-channels // together)

    def block(part: slice) -> None:
        work(slice(part.start * together, min(part.stop * together, channels)))

    _in_blocks(blocks, samples * together * inner, block)
