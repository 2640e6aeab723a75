"""Pooling: the largest, the average or the norm of what lies in each window."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import NoneType
from typing import Any

from ...arrays import np
from ...arrays.kinds import anywhere, check_range, is_plain, pick, remembered
from ...base.errors import BadArgument, BadIndex, BadValue, DTypeError, ShapeError, may_need_much
from ...base.modes import mode
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.number import number
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import abs as abs_, neg, pow_values
from ..random.draws import rand
from ..reduce.reductions import mean_dims
from ..select.selecting import gather, scatter
from ..shape.shape import goes_along_channels, in_format_of, movedim, reshape, squeeze, tensor_argument, unsqueeze
from . import planes
from .largest import largest_alone, largest_between, largest_between_alone
from .resample import Ints, mean_taps, resample, resample_behind_channels, whole_numbers
from .sliding import EVERY, Sizes, Windows, padded_image, windows, without_border

FUNCTIONS = "adaptive_avg_pool1d avg_pool1d max_pool1d max_pool1d_with_indices max_pool2d max_pool3d"

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d"]


# ------------------------------------------------------------------------------------------------------------ arguments

def _pooled_size(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    out = (n + 2 * p - d * (k - 1) - 1 + (s - 1) * ceil_mode) // s + 1
    return out - 1 if ceil_mode and (out - 1) * s >= n + p else out  # the last window must begin inside


def _batched(name: str, x: Tensor, n: int) -> Tensor:
    shape = tensor_argument(x, name)._array.shape
    if (len(shape) not in (n + 1, n + 2) or 0 in shape[len(shape) - n:]
            or (0 in shape[1:] or len(shape) == n + 1 and not shape[0])):
        raise BadValue(f"{name}: expects an input of {n + 1} or {n + 2} dimensions without sizes of zero, "
                       f"got shape {shape}",
                       why=f"(samples,) channels and {n} more; only the number of samples may be zero",
                       fix="x[None] adds a dimension")
    return x if len(shape) == n + 2 else unsqueeze(x, 0)


def _unbatched(result: Tensor, x: Tensor, n: int) -> Tensor:
    return result if x._array.ndim == n + 2 else squeeze(result, 0)


def _settings(name: str, n: int, kernel: Ints, stride: Ints | None, padding: Ints,
              dilation: Ints) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    size = whole_numbers(kernel, n, name, "kernel_size")
    step = size if stride is None or stride == () or stride == [] else whole_numbers(stride, n, name, "stride")
    border, apart = whole_numbers(padding, n, name, "padding"), whole_numbers(dilation, n, name, "dilation")
    if min(*size, *step, *apart) <= 0:
        raise BadValue(f"{name}: kernel_size {size}, stride {step} and dilation {apart} must be greater than zero",
                       fix="kernel_size=2")
    if any(p < 0 or p > ((k - 1) * d + 1) // 2 for p, k, d in zip(border, size, apart)):
        raise BadValue(f"{name}: padding {border} must be from 0 to half of the kernel's {size}",
                       why="a window could lie in the border only", fix="padding=0")
    return size, step, border, apart


def _windows(name: str, x: Tensor, settings: tuple[Sizes, Sizes, Sizes, Sizes], ceil_mode: bool) -> Windows:
    kernel, stride, padding, dilation = settings
    size = x._array.shape[2:]
    out = tuple(_pooled_size(*v, bool(ceil_mode)) for v in zip(size, kernel, stride, padding, dilation))
    if min(out) <= 0:
        raise ShapeError(f"{name}: a window of {kernel} with dilation {dilation} does not fit an input of {size} "
                         f"with padding {padding}",
                         why=f"the result would have sizes {out}", fix="a smaller kernel_size")
    return windows(size, kernel, stride, padding, dilation, out, False)


# -------------------------------------------------------------------------------------------------- channels at the end

def _as_volumes(x: Tensor, settings: tuple[Sizes, Sizes, Sizes, Sizes], w: Windows) -> tuple[Tensor, Any, Windows]:
    """Images with the channels last as volumes of one channel, whose windows are one deep: loops go as memory lies."""
    kernel, stride, padding, dilation = settings
    settings = (*kernel, 1), (*stride, 1), (*padding, 0), (*dilation, 1)
    x = unsqueeze(movedim(x, 1, -1), 1)
    return x, settings, windows(x._array.shape[2:], *settings, (*w.out, x._array.shape[-1]), False)


def _as_images(result: Tensor) -> Any:
    return movedim(squeeze(result, 1), -1, 1)


# ---------------------------------------------------------------------------------------------------------- the largest

@remembered(64)
def window_origins(size: Sizes, settings: tuple[Sizes, Sizes, Sizes, Sizes], out: Sizes) -> tuple[Any, Any]:
    """In the flat image: where each window begins, and how far from there each kernel element lies."""
    starts, distances = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for n, k, s, p, d, o in zip(size, *settings, out):
        starts = (starts[:, None] * n + np.arange(o) * s - p).reshape(-1)
        distances = (distances[:, None] * n + np.arange(k) * d).reshape(-1)
    return starts, distances


def _image_positions(where: Array, size: Sizes, settings: tuple[Sizes, Sizes, Sizes, Sizes]) -> Any:
    """Positions in the flat image of what was picked under the kernel elements `where`."""
    starts, distances = window_origins(size, settings, where.shape[2:])
    return pick(distances, (where,)) + starts.reshape(where.shape[2:])


def _flat_positions(where: Array, size: Sizes, settings: tuple[Sizes, Sizes, Sizes, Sizes]) -> Any:
    """The same in the whole array, as a vector."""
    found = _image_positions(where, size, settings)
    images = np.arange(prod(where.shape[:2])) * prod(size)
    return (found.reshape(len(images), prod(where.shape[2:])) + images[:, None]).reshape(-1)


def _unpick(a: Array, size: Sizes, at: Array, apart: bool) -> Any:
    """Each element where it was picked from. Windows that lie apart need no adding."""
    shape = (*a.shape[:2], *size)
    if not apart:
        return np.bincount(at, a.reshape(-1), prod(shape)).astype(a.dtype).reshape(shape)
    out = np.zeros(shape, a.dtype)
    out.reshape(-1)[at] = a.reshape(-1)
    return out


def _max_pool_values(a: Array, where: Array, settings: tuple[Sizes, Sizes, Sizes, Sizes], size: Sizes | None,
                     found: Array | None) -> Any:
    """Picks, or with a `size` puts back into images of it: its own transpose. `found` is the result, if known."""
    if found is not None:
        return found
    if size is None:
        return a.reshape(-1)[_flat_positions(where, a.shape[2:], settings)].reshape(where.shape)
    put_back = planes.put_back(a, where, size, window_origins(size, settings, where.shape[2:]))
    if put_back is not None:
        return put_back
    apart = all(s > d * (k - 1) for k, s, d in zip(settings[0], settings[1], settings[3]))
    return _unpick(a, size, _flat_positions(where, size, settings), apart)


max_pool_values = primitive(
    "max_pool", _max_pool_values, settings=("where", "settings", "size", "found"),
    x=lambda xp, g, x_shape, where, settings, size:
        xp.max_pool(g, where, settings, x_shape[2:] if size is None else None, None))


@may_need_much
def _max_pool(name: str, n: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints,
              ceil_mode: bool, indices: bool) -> Any:
    settings = _settings(name, n, kernel_size, stride, padding, dilation)
    x = _batched(name, input, n)
    if x._array.dtype.kind not in "fiV" and x._array.dtype != np.uint8:
        raise DTypeError(f"{name}: {x._array.dtype.name} numbers have no largest", fix="x.float()")
    w = _windows(name, x, settings, ceil_mode)
    deep = n == 2 and goes_along_channels(input)
    if deep:
        x, settings, w = _as_volumes(x, settings, w)

    def finished(result: Tensor) -> Any:
        return _as_images(result) if deep else in_format_of(input, _unbatched(result, input, n))

    if not indices and (x._storage.writer is None or not mode.grad) and is_plain(x._array):
        return finished(make(largest_alone(x._array, w)))
    found, where = RAW.largest_in_windows(x._array, w)
    values = finished(max_pool_values(x, where, settings, None, found))
    if not indices:
        return values
    at = _image_positions(where, x._array.shape[2:], settings)
    return values, finished(make(at // where.shape[-1] if deep else at))


def max_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest of each window along the last dimension.

    >>> import mutagrad as mg
    >>> mg.max_pool1d(mg.tensor([[1., 3., 2., 4.]]), 2)
    tensor([[3., 4.]])
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest of each window over the last two dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.max_pool2d(mg.arange(16.).reshape(1, 4, 4), 2)
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, dilation: Ints = 1,
               ceil_mode: bool = False, return_indices: bool = False) -> Any:
    """Return the largest of each window over the last three dimensions.

    >>> import mutagrad as mg
    >>> mg.max_pool3d(mg.zeros(1, 4, 4, 4), 2).shape
    mutagrad.Size([1, 2, 2, 2])
    """
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                            dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = True) -> Any:
    """max_pool1d, and where each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.max_pool1d_with_indices(mg.tensor([[1., 3., 2., 4.]]), 2)
    >>> values, indices
    (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                            dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = True) -> Any:
    """max_pool2d, and where in its flat image each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.max_pool2d_with_indices(mg.zeros(1, 1, 4, 4), 2)
    >>> indices.shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                            dilation: Ints = 1, ceil_mode: bool = False, return_indices: bool = True) -> Any:
    """max_pool3d, and where in its flat volume each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.max_pool3d_with_indices(mg.zeros(1, 1, 4, 4, 4), 2)
    >>> indices.shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


# ----------------------------------------------------------------------------------------- the largest of other windows

@may_need_much
def _largest_of(x: Tensor, positions: Sequence[Array], n: int, input: Tensor, indices: bool) -> Any:
    """Windows by what they hold along each dimension: arrays of shape (..., windows, positions), with repetitions."""
    samples, channels, *size = x._array.shape
    flat = np.zeros((1,) * (2 + 2 * n), np.int64)
    for d, at in enumerate(positions):
        lead, (count, inner) = at.shape[:-2] or (1, 1), at.shape[-2:]
        shape = [*lead, *(1,) * (2 * n)]
        shape[2 + d], shape[2 + n + d] = count, inner
        flat = flat * size[d] + at.reshape(shape)
    out = flat.shape[2:2 + n]
    inner = prod(flat.shape[2 + n:])
    flat = np.broadcast_to(flat, (samples, channels, *flat.shape[2:])).reshape(samples, channels, prod(out), inner)
    rows, at = x._array.reshape(samples, channels, prod(size)), flat.reshape(samples, channels, prod(flat.shape[2:]))
    seen = np.take_along_axis(rows, at, 2).reshape(flat.shape)
    where = np.take_along_axis(flat, seen.argmax(-1)[..., None], -1)
    if seen.dtype.kind in "fV" and anywhere(missing := np.isnan(seen)):  # the last nan is the largest
        last = np.where(missing, flat, -1).max(-1, keepdims=True)
        where = np.where(last < 0, where, last)
    return _gathered(x, where.reshape(samples, channels, *out), n, input, indices)


def _gathered(x: Tensor, where: Array, n: int, input: Tensor, indices: bool) -> Any:
    """What lies at these places of each flat image, and the places if they are asked for."""
    lead, out = where.shape[:2], where.shape[2:]
    at = make(where.reshape(*lead, prod(out)))
    values = reshape(gather(reshape(x, *lead, prod(x._array.shape[2:])), 2, at), *lead, *out)
    if not indices:
        return _unbatched(values, input, n)
    return _unbatched(values, input, n), _unbatched(reshape(at, *lead, *out), input, n)


def _adaptive_size(name: str, x: Tensor, output_size: Any, n: int) -> Sizes:
    """The sizes asked for; None keeps one."""
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * n
    given = given * n if len(given) == 1 else given
    if len(given) != n:
        raise BadValue(f"{name}: output_size must hold {n} numbers, got {output_size!r}", fix=f"output_size={(1,) * n}")
    kept = tuple(m if v is None else v for v, m in zip(given, x._array.shape[-n:]))
    sizes = whole_numbers(kept, n, name, "output_size")
    if min(sizes) < 0:
        raise BadValue(f"{name}: output_size {sizes} must not be negative", fix=f"output_size={(1,) * n}")
    return sizes


def _adaptive_max_pool(name: str, n: int, input: Tensor, output_size: int | Sequence[int | None], indices: bool) -> Any:
    x = _batched(name, input, n)
    sizes = _adaptive_size(name, x, output_size, n)
    if 0 in sizes:
        raise ShapeError(f"{name}: output_size {sizes} has a size of zero", fix=f"output_size={(1,) * n}")
    spans = tuple(m // out for m, out in zip(x._array.shape[2:], sizes))
    if prod(spans) <= 256 and all(m % out == 0 for m, out in zip(x._array.shape[2:], sizes)):  # windows side by side
        return _max_pool(name, n, input, spans, spans, 0, 1, False, indices)
    positions = [mean_taps(m, out).positions for m, out in zip(x._array.shape[2:], sizes)]
    if not indices and (x._storage.writer is None or not mode.grad) and is_plain(x._array):
        return in_format_of(input, _unbatched(make(largest_between_alone(x._array, positions)), input, n))
    where = largest_between(x._array, positions)
    if where is None:
        found = _largest_of(x, positions, n, input, indices)
    else:
        found = _gathered(x, where, n, input, indices)
    return tuple(in_format_of(input, part) for part in found) if indices else in_format_of(input, found)


def adaptive_max_pool1d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """Return the largest of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.adaptive_max_pool1d(mg.zeros(1, 1, 4), 2).shape
    mutagrad.Size([1, 1, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """Return the largest of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.adaptive_max_pool2d(mg.zeros(1, 1, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, return_indices)


def adaptive_max_pool3d(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
    """Return the largest of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.adaptive_max_pool3d(mg.zeros(1, 1, 4, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool3d", 3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: int | Sequence[int | None],
                                     return_indices: bool = True) -> Any:
    """adaptive_max_pool1d, and where each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.adaptive_max_pool1d_with_indices(mg.zeros(1, 1, 4), 2)
    >>> indices.shape
    mutagrad.Size([1, 1, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool1d", 1, input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: int | Sequence[int | None],
                                     return_indices: bool = True) -> Any:
    """adaptive_max_pool2d, and where in its flat image each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.adaptive_max_pool2d_with_indices(mg.zeros(1, 1, 4, 4), 2)
    >>> indices.shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool2d", 2, input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: int | Sequence[int | None],
                                     return_indices: bool = True) -> Any:
    """adaptive_max_pool3d, and where in its flat volume each of its results was.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.adaptive_max_pool3d_with_indices(mg.zeros(1, 1, 4, 4, 4), 2)
    >>> indices.shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _adaptive_max_pool("adaptive_max_pool3d", 3, input, output_size, True)


def _fractional_sizes(name: str, x: Tensor, n: int, output_size: Ints | None, output_ratio: Any) -> Sizes:
    if (output_size is None) == (output_ratio is None):
        raise BadValue(f"{name}: {'either' if output_size is None else 'only one of'} output_size "
                       "or output_ratio must be given", fix="output_size=2")
    if output_size is not None:
        return whole_numbers(output_size, n, name, "output_size")
    ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * n
    if len(ratios) != n or not all(0 < r < 1 for r in ratios):
        raise BadValue(f"{name}: output_ratio must hold {n} numbers between 0 and 1, got {output_ratio!r}",
                       fix=f"output_ratio={(0.5,) * n}")
    return tuple(int(m * r) for m, r in zip(x._array.shape[2:], ratios))


def _starts(samples: Array, size: int, out: int, kernel: int) -> Any:
    """Where `out` windows begin: steps of two neighbouring lengths, in an order that the samples in 0 ... 1 choose."""
    step = (size - kernel) / max(out - 1, 1)
    samples = samples[..., None]
    first = (np.trunc((np.arange(out) + samples) * step) - np.trunc(samples * step)).astype(np.int64)
    first[..., -1] = size - kernel
    return first


def _fractional_max_pool(name: str, n: int, input: Tensor, kernel_size: Ints, output_size: Ints | None,
                         output_ratio: float | Sequence[float] | None, indices: bool, samples: Tensor | None) -> Any:
    x = _batched(name, input, n)
    kernel = whole_numbers(kernel_size, n, name, "kernel_size")
    out = _fractional_sizes(name, x, n, output_size, output_ratio)
    size = x._array.shape[2:]
    if min(*kernel, *out) <= 0 or any(o + k - 1 > m for o, k, m in zip(out, kernel, size)):
        raise ShapeError(f"{name}: {out} windows of {kernel} do not fit an input of {size}",
                         why="output_size + kernel_size - 1 may not exceed it",
                         fix="a smaller output_size or kernel_size")
    if samples is None:
        samples = rand(*x._array.shape[:2], n, dtype=of_array(x._array.dtype))
    drawn = tensor_argument(samples, name)._array.astype(np.float64)
    if drawn.shape != (*x._array.shape[:2], n):
        raise ShapeError(f"{name}: expects random samples of shape {(*x._array.shape[:2], n)}, got {drawn.shape}",
                         fix="leave _random_samples out")
    drawn = drawn[..., ::-1] if n == 2 else drawn  # of images, PyTorch takes the first for the width
    positions = [_starts(drawn[..., d], m, o, k)[..., None] + np.arange(k)
                 for d, (m, o, k) in enumerate(zip(size, out, kernel))]
    return _largest_of(x, positions, n, input, indices)


def fractional_max_pool2d(input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
                          output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
                          _random_samples: Tensor | None = None) -> Any:
    """Return the largest of windows that begin at random distances.

    >>> import mutagrad as mg
    >>> mg.nn.functional.fractional_max_pool2d(mg.zeros(1, 1, 4, 4), 2, output_size=3).shape
    mutagrad.Size([1, 1, 3, 3])
    """
    return _fractional_max_pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                                return_indices, _random_samples)


def fractional_max_pool3d(input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
                          output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
                          _random_samples: Tensor | None = None) -> Any:
    """Return the largest of windows that begin at random distances.

    >>> import mutagrad as mg
    >>> mg.nn.functional.fractional_max_pool3d(mg.zeros(1, 1, 4, 4, 4), 2, output_size=3).shape
    mutagrad.Size([1, 1, 3, 3, 3])
    """
    return _fractional_max_pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                                return_indices, _random_samples)


def fractional_max_pool2d_with_indices(input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
                                       output_ratio: float | Sequence[float] | None = None, return_indices: bool = True,
                                       _random_samples: Tensor | None = None) -> Any:
    """fractional_max_pool2d, and where in its flat image each of its results was.

    >>> import mutagrad as mg
    >>> values, i = mg.nn.functional.fractional_max_pool2d_with_indices(mg.zeros(1, 1, 4, 4), 2, output_size=3)
    >>> i.shape
    mutagrad.Size([1, 1, 3, 3])
    """
    return _fractional_max_pool("fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio,
                                True, _random_samples)


def fractional_max_pool3d_with_indices(input: Tensor, kernel_size: Ints, output_size: Ints | None = None,
                                       output_ratio: float | Sequence[float] | None = None, return_indices: bool = True,
                                       _random_samples: Tensor | None = None) -> Any:
    """fractional_max_pool3d, and where in its flat volume each of its results was.

    >>> import mutagrad as mg
    >>> values, i = mg.nn.functional.fractional_max_pool3d_with_indices(mg.zeros(1, 1, 4, 4, 4), 2, output_size=3)
    >>> i.shape
    mutagrad.Size([1, 1, 3, 3, 3])
    """
    return _fractional_max_pool("fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio,
                                True, _random_samples)


# ----------------------------------------------------------------------------------------------------------------- back

def _unpooled_size(name: str, x: Tensor, n: int, settings: tuple[Sizes, Sizes, Sizes, Sizes],
                   output_size: Sequence[int] | None) -> Sizes:
    kernel, stride, padding, _ = settings
    plain = tuple((m - 1) * s + k - 2 * p for m, k, s, p in zip(x._array.shape[2:], kernel, stride, padding))
    if output_size is None:
        return plain
    given = tuple(output_size)[-n:]
    if (len(tuple(output_size)) not in (n, n + 1, n + 2)
            or any(not a - s < v < a + s for v, a, s in zip(given, plain, stride))):
        raise BadValue(f"{name}: output_size {tuple(output_size)} is not possible",
                       why=f"it must be near {plain}, by less than the stride {stride}", fix=f"output_size={plain}")
    return whole_numbers(given, n, name, "output_size")


def _max_unpool(name: str, n: int, input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None,
                padding: Ints, output_size: Sequence[int] | None) -> Tensor:
    settings = _settings(name, n, kernel_size, stride, padding, 1)
    x, at = _batched(name, input, n), tensor_argument(indices, name)._array
    size = _unpooled_size(name, x, n, settings, output_size)
    if at.dtype != np.int64:
        raise DTypeError(f"{name}: indices must be int64, not {at.dtype.name}", fix="indices.long()")
    if at.shape != input._array.shape:
        raise ShapeError(f"{name}: input of shape {tuple(input._array.shape)} with indices of shape {at.shape}",
                         why="there must be one for each element", fix="the indices that max_pool returned")
    if min(size) <= 0:
        raise ShapeError(f"{name}: the result would have sizes {size}", fix="less padding")
    check_range(at, 0, prod(size) - 1, lambda wrong, where: BadIndex(
        f"{name}: index {wrong} is outside an image of {size}", fix="output_size=...", where=where))
    lead = x._array.shape[:2]
    rows = prod(x._array.shape[2:])
    empty = make(np.zeros((*lead, prod(size)), x._array.dtype))
    filled = scatter(empty, 2, reshape(make(at), *lead, rows), reshape(x, *lead, rows))
    return _unbatched(reshape(filled, *lead, *size), input, n)


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Sequence[int] | None = None) -> Any:
    """Return the results of max_pool1d at the places that they were taken from, and zeros elsewhere.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.max_pool1d(mg.ones(1, 1, 4), 2, return_indices=True)
    >>> mg.nn.functional.max_unpool1d(values, indices, 2).sum()
    tensor(2.)
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Sequence[int] | None = None) -> Any:
    """Return the results of max_pool2d at the places that they were taken from, and zeros elsewhere.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.max_pool2d(mg.ones(1, 1, 4, 4), 2, return_indices=True)
    >>> mg.nn.functional.max_unpool2d(values, indices, 2).sum()
    tensor(4.)
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0,
                 output_size: Sequence[int] | None = None) -> Any:
    """Return the results of max_pool3d at the places that they were taken from, and zeros elsewhere.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.functional.max_pool3d(mg.ones(1, 1, 4, 4, 4), 2, return_indices=True)
    >>> mg.nn.functional.max_unpool3d(values, indices, 2).sum()
    tensor(8.)
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


# ------------------------------------------------------------------------------------------------------------- averages

def _average(a: Array, w: Windows, divisor: Any) -> Any:
    if (found := planes.averages(a, w, divisor)) is not None:
        return found
    image = padded_image(a, w)
    first, *rest = (image[EVERY + place] for place in w.places)
    total = first.copy()
    for part in rest:
        total += part
    return planes.over(total, divisor)


def _spread(a: Array, size: Sizes, w: Windows, divisor: Any) -> Any:
    """The transpose: to every position of a window its share."""
    if (found := planes.shares(a, size, w, divisor)) is not None:
        return found
    image, share = np.zeros((*a.shape[:2], *w.padded), a.dtype), planes.over(a, divisor)
    for place in w.places:
        part = image[EVERY + place]
        np.add(part, share, out=part)
    return np.ascontiguousarray(without_border(image, w, size))


def _avg_pool_values(a: Array, w: Windows, divisor: Any, size: Sizes | None) -> Any:
    """Averages, or with a `size` shares for images of it: one operation, which is its own transpose."""
    return _average(a, w, divisor) if size is None else _spread(a, size, w, divisor)


avg_pool_values = primitive(
    "avg_pool", _avg_pool_values, settings=("w", "divisor", "size"),
    x=lambda xp, g, x_shape, w, divisor, size: xp.avg_pool(g, w, divisor, x_shape[2:] if size is None else None))


def _avg_pool(name: str, n: int, input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, ceil_mode: bool,
              include_pad: bool, override: int | None = None) -> Tensor:
    settings = _settings(name, n, kernel_size, stride, padding, 1)
    if override == 0:
        raise BadValue(f"{name}: divisor must be not zero", fix="divisor_override=None")
    x = _batched(name, input, n)
    if x._array.dtype.kind not in "fiV":
        raise DTypeError(f"{name}: cannot average {x._array.dtype.name} numbers", fix="x.float()")
    w = _windows(name, x, settings, ceil_mode)
    deep = n == 2 and goes_along_channels(input)
    if deep:
        x, settings, w = _as_volumes(x, settings, w)
    size, each = x._array.shape[2:], bool(include_pad)
    divisor = planes.counts(size, settings, w.out, each) if override is None else int(override)
    found = avg_pool_values(x, w, divisor, None)
    if deep:
        return _as_images(found)
    found = _unbatched(found, input, n)
    return in_format_of(input, found) if n < 3 else found  # of volumes PyTorch does not keep it


def avg_pool1d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Any:
    """Return the average of each window along the last dimension.

    >>> import mutagrad as mg
    >>> mg.nn.functional.avg_pool1d(mg.tensor([[1., 3., 5., 7.]]), 2)
    tensor([[2., 6.]])
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Any:
    """Return the average of each window over the last two dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.avg_pool2d(mg.zeros(1, 1, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _avg_pool("avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def avg_pool3d(input: Tensor, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Any:
    """Return the average of each window over the last three dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.avg_pool3d(mg.zeros(1, 1, 4, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _avg_pool("avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override)


def _adaptive_avg_pool(name: str, n: int, input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
    x = _batched(name, input, n)
    sizes = _adaptive_size(name, x, output_size, n)
    if x._array.dtype.kind not in "fV":
        raise DTypeError(f"{name}: cannot average {x._array.dtype.name} numbers", fix="x.float()")
    if 0 in sizes:
        return _unbatched(make(np.zeros((*x._array.shape[:2], *sizes), x._array.dtype)), input, n)
    if set(sizes) == {1}:
        found = mean_dims(x, tuple(range(2, n + 2)), True)
    else:
        maps = tuple((d + 2, mean_taps(m, out)) for d, (m, out) in enumerate(zip(x._array.shape[2:], sizes)))
        if n < 3 and goes_along_channels(input):
            return resample_behind_channels(x, maps)
        found = resample(x, maps)
    found = _unbatched(found, input, n)
    return in_format_of(input, found) if n < 3 else found


def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None]) -> Any:
    """Return the averages of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.adaptive_avg_pool1d(mg.tensor([[1., 2., 3., 4.]]), 2)
    tensor([[1.5000, 3.5000]])
    """
    return _adaptive_avg_pool("adaptive_avg_pool1d", 1, input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None]) -> Any:
    """Return the averages of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.adaptive_avg_pool2d(mg.zeros(1, 1, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _adaptive_avg_pool("adaptive_avg_pool2d", 2, input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None]) -> Any:
    """Return the averages of so many windows of nearly equal size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.adaptive_avg_pool3d(mg.zeros(1, 1, 4, 4, 4), 2).shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _adaptive_avg_pool("adaptive_avg_pool3d", 3, input, output_size)


# ---------------------------------------------------------------------------------------------------------------- norms

def _lp_pool(name: str, n: int, input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None,
             ceil_mode: bool) -> Any:
    norm_type = norm_type if isinstance(norm_type, Tensor) else number(norm_type)  # differentiable, as PyTorch's
    if isinstance(norm_type, (complex, NoneType)):
        raise BadArgument(f"{name}: norm_type must be a number, not {type(norm_type).__name__}", fix="norm_type=2")
    x = tensor_argument(input, name)
    if norm_type in (float("inf"), float("-inf")):
        sign = neg if norm_type < 0 else (lambda v: v)
        return sign(_max_pool(name, n, sign(abs_(x)), kernel_size, stride, 0, 1, ceil_mode, False))
    kernel = whole_numbers(kernel_size, n, name, "kernel_size")
    total = _avg_pool(name, n, pow_values(x, norm_type), kernel, stride, 0, ceil_mode, True) * prod(kernel)
    safe = RECORDED.where(total == 0, 1.0, total)  # at zero the root has no slope to follow
    return RECORDED.where(total == 0, 0.0, pow_values(safe, 1.0 / norm_type))


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Any:
    """The p-norm of each window along the last dimension (of signed powers: an odd p does not take magnitudes).

    >>> import mutagrad as mg
    >>> mg.nn.functional.lp_pool1d(mg.ones(1, 1, 4), 2, 2).shape
    mutagrad.Size([1, 1, 2])
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Any:
    """Return the p-norm of each window over the last two dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.lp_pool2d(mg.ones(1, 1, 4, 4), 2, 2).shape
    mutagrad.Size([1, 1, 2, 2])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None,
              ceil_mode: bool = False) -> Any:
    """Return the p-norm of each window over the last three dimensions.

    >>> import mutagrad as mg
    >>> mg.nn.functional.lp_pool3d(mg.ones(1, 1, 4, 4, 4), 2, 2).shape
    mutagrad.Size([1, 1, 2, 2, 2])
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)
