"""Other sizes: interpolation along each dimension, and reading images at any coordinates."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import floor, isfinite, prod
from typing import Any

from ...arrays import np
from ...arrays.compiled import images
from ...arrays.compiled.compiler import choice
from ...arrays.kinds import is_plain, remembered
from ...arrays.numpy import silently
from ...arrays.parallel import is_finite
from ...base.docstrings import with_example
from ...base.errors import BadArgument, BadValue, DTypeError, NotSupported, ShapeError, may_need_much
from ...base.modes import RECORDED as RECORDING, call_with
from ...base.operands import Array
from ...base.provenance import to_user
from ...core.backward import grad
from ...core.codegen import primitive
from ...core.factory import make
from ...core.number import number
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..linalg.products import matmul
from ..math.elementwise import clamp_values
from ..shape.shape import (
    goes_along_channels,
    in_format_of,
    movedim,
    reshape,
    select,
    stack,
    tensor_argument,
    transpose,
    unsqueeze,
)
from . import planes, sampling
from .corners import read_corners, write_corners
from .sampling import turns
from .taps import Taps, along

FUNCTIONS = "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d"

__all__ = ["affine_grid", "grid_sample", "interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]

Ints = int | Sequence[int]  # one number for all dimensions, or one for each


def whole_numbers(value: Any, n: int, name: str, what: str) -> tuple[int, ...]:
    """A setting for each of n dimensions, from one number for all or a sequence of them."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if any(isinstance(v, bool) or not hasattr(v, "__index__") for v in given):
        raise BadArgument(f"{name}: {what} must be an integer or {n} of them, not {value!r}", fix=f"{what}={(1,) * n}")
    if len(given) not in (1, n):
        raise BadValue(f"{name}: {what} must be one number or {n} of them, got {len(given)}: {value!r}",
                       fix=f"{what}={(given * n)[:n] or 1}")
    return tuple(int(v.__index__()) for v in (given * n if len(given) == 1 else given))



# ---------------------------------------------------------------------------------------------- one dimension at a time

def _picked(a: Array, maps: tuple[tuple[int, Taps], ...]) -> Any | None:
    """Copies along the last three dimensions in one loop; None if there is none for them."""
    if not choice.on or any(taps.weights is not None for _, taps in maps):
        return None
    at = {dim: taps.positions.reshape(-1) for dim, taps in maps}
    shape = tuple(len(at[d]) if d in at else n for d, n in enumerate(a.shape))
    places = [at[d] if d in at else np.arange(n) for d, n in enumerate(a.shape)][-3:]
    return planes.fill(images.pick, a, shape, *[np.zeros(1, np.intp)] * (3 - len(places)), *places)


def _resample(a: Array, maps: tuple[tuple[int, Taps], ...]) -> Array:
    if not maps:
        return a.copy()
    if (found := _picked(a, maps)) is not None:
        return found
    for dim, taps in maps:
        a = along(a, dim, taps)
    return a


resample = primitive(
    "resample", _resample, settings=("maps",),
    x=lambda xp, g, maps: xp.resample(g, tuple((dim, taps.transposed) for dim, taps in reversed(maps))))


def resample_behind_channels(x: Tensor, maps: tuple[tuple[int, Taps], ...]) -> Any:
    """The same for dimensions behind the channels, which stay last in memory if they are."""
    if not goes_along_channels(x):
        return in_format_of(x, resample(x, maps))
    return movedim(resample(movedim(x, 1, -1), tuple([(dim - 1, taps) for dim, taps in maps])), -1, 1)


# -------------------------------------------------------------------------------------------------------- interpolation

def _sources(n: int, out: int, scale: float | None, align: bool) -> Any:
    """Where in the old dimension the middle of each new position lies."""
    if align:
        return np.arange(out) * ((n - 1) / (out - 1) if out > 1 else 0.0)
    return (np.arange(out) + 0.5) * _step(n, out, scale) - 0.5


def _step(n: int, out: int, scale: float | None) -> float:
    return 1 / scale if scale is not None and scale > 0 else n / out


def _nearest(n: int, out: int, scale: float | None, shift: float) -> Taps:
    """In single precision, as PyTorch does: in double, some positions would round the other way."""
    step = np.float32(_step(n, out, scale)) if out != n or scale not in (None, 1) else np.float32(1)
    at = np.floor((np.arange(out, dtype=np.float32) + np.float32(shift)) * step).astype(np.int64)
    return Taps(n, at.clip(0, n - 1)[:, None], None)


def _linear(n: int, out: int, scale: float | None, align: bool) -> Taps:
    at = _sources(n, out, scale, align).clip(0, None)
    left = np.floor(at).astype(np.int64).clip(0, n - 1)
    part = (at - left).clip(0, 1)
    return Taps(n, np.stack([left, (left + 1).clip(0, n - 1)], 1), np.stack([1 - part, part], 1))


def _cubic_weights(t: Any, a: float) -> list[Any]:
    """Of the four neighbours of a point that lies t after the second."""
    def near(d: Any) -> Any:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


CUBIC = -0.75  # PyTorch's choice among the cubics that interpolate


def _cubic(n: int, out: int, scale: float | None, align: bool) -> Taps:
    at = _sources(n, out, scale, align)
    left = np.floor(at)
    positions = (left[:, None].astype(np.int64) + np.arange(-1, 3)).clip(0, n - 1)
    return Taps(n, positions, np.stack(_cubic_weights(at - left, CUBIC), 1))


def _triangle(d: Array) -> Any:
    return (1 - np.abs(d)).clip(0, None)


def _keys(d: Array) -> Any:
    """The cubic of image libraries, which PyTorch takes where it filters."""
    d = np.abs(d)
    return np.where(d < 1, (1.5 * d - 2.5) * d * d + 1, np.where(d < 2, ((-0.5 * d + 2.5) * d - 4) * d + 2, 0.0))


def _lanczos(d: Array) -> Any:
    """A sinc under the middle lobe of another, three times as wide."""
    return np.where(np.abs(d) < 3, np.sinc(d) * np.sinc(d / 3), 0.0)


_KERNELS: dict[str, tuple[Callable[[Array], Any], float]] = {
    "bilinear": (_triangle, 1.0), "bicubic": (_keys, 2.0), "lanczos": (_lanczos, 3.0)}


def _filtered(n: int, out: int, scale: float | None, align: bool, kernel: Callable[[Array], Array],
              reach: float) -> Taps:
    """Every old position under a kernel that is as wide as the step: `antialias`."""
    step = ((n - 1) / (out - 1) if out > 1 else 0.0) if align else _step(n, out, scale)
    width = max(step, 1.0)
    centre = step * (np.arange(out) + 0.5)
    first = (centre - reach * width + 0.5).astype(np.int64).clip(0, None)
    end = (centre + reach * width + 0.5).astype(np.int64).clip(None, n)
    positions = first[:, None] + np.arange(max(int((end - first).max()), 1))
    weights = np.where(positions < end[:, None], kernel((positions - centre[:, None] + 0.5) / width), 0.0)
    return Taps(n, positions.clip(0, n - 1), weights / weights.sum(1, keepdims=True), (end - first).clip(0, None))


@remembered(256)
def mean_taps(n: int, out: int) -> Taps:
    """`out` windows of nearly equal size, each averaged."""
    first = np.arange(out) * n // out
    end = -(-(np.arange(1, out + 1) * n) // out)
    positions = first[:, None] + np.arange(int((end - first).max()))
    inside = positions < end[:, None]
    return Taps(n, np.where(inside, positions, first[:, None]), inside / (end - first)[:, None], end - first)


@remembered(256)
def _map(mode: str, n: int, out: int, scale: float | None, align: bool, antialias: bool) -> Taps:
    if mode in ("nearest", "nearest-exact"):
        return _nearest(n, out, scale, 0.5 if mode == "nearest-exact" else 0.0)
    if mode == "area":
        return mean_taps(n, out)
    if antialias:
        return _filtered(n, out, scale, align, *_KERNELS[mode])
    return (_cubic if mode == "bicubic" else _linear)(n, out, scale, align)


_DIMENSIONS = {"linear": 1, "bilinear": 2, "bicubic": 2, "lanczos": 2, "trilinear": 3}


def _new_sizes(shape: tuple[int, ...], size: Any, scale_factor: Any,
               recompute: bool) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    n = len(shape)
    if (size is None) == (scale_factor is None):
        raise BadValue(f"interpolate: {'either' if size is None else 'only one of'} size or scale_factor must be given",
                       fix="size=(8, 8)")
    if size is not None:
        if isinstance(size, (tuple, list)) and len(size) != n:
            raise BadValue(f"interpolate: {len(size)} sizes for {n} dimensions behind batch and channels",
                           why=f"they are {shape}", fix=f"size={shape}")
        if recompute:
            raise BadValue("interpolate: recompute_scale_factor has no meaning with a size", fix="scale_factor=2")
        return whole_numbers(size, n, "interpolate", "size"), (None,) * n
    given = tuple(map(number, scale_factor)) if isinstance(scale_factor, (tuple, list)) else (number(scale_factor),) * n
    if not all(isinstance(s, (int, float)) and isfinite(s) for s in given):
        raise BadArgument(f"interpolate: scale_factor must be a number or {n} of them, not {scale_factor!r}",
                          fix="scale_factor=2.0")
    scales = tuple(float(s) for s in given)
    if len(scales) != n:
        raise BadValue(f"interpolate: {len(scales)} scale factors for {n} dimensions behind batch and channels",
                       fix=f"scale_factor={(2.0,) * n}")
    sizes = tuple(floor(m * s) for m, s in zip(shape, scales))
    return sizes, (None,) * n if recompute else scales


_OF_BYTES = ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos")  # modes for images of uint8


def _check_interpolation(x: Tensor, mode: str, align: bool | None, antialias: bool, n: int) -> None:
    if mode not in ("nearest", "nearest-exact", "area", *_DIMENSIONS):
        raise NotSupported(f"interpolate: mode={mode!r} is not known",
                           fix="mode='nearest', 'linear', 'bilinear', 'bicubic', 'lanczos', 'trilinear' or 'area'")
    if n not in (1, 2, 3) or _DIMENSIONS.get(mode, n) != n:
        raise NotSupported(f"interpolate: mode={mode!r} does not take {n + 2} dimensions (shape {x._array.shape})",
                           why="the first two are batch and channels",
                           fix="mode='bilinear' for images of shape (n, c, h, w)")
    if align is not None and mode not in _DIMENSIONS:
        raise BadValue(f"interpolate: align_corners has no meaning with mode={mode!r}", fix="leave it out")
    if antialias and mode not in _KERNELS:
        raise BadValue(f"interpolate: antialias has no meaning with mode={mode!r}", fix="mode='bilinear' or 'bicubic'")
    if mode == "lanczos" and (align or not antialias):
        raise BadValue(f"interpolate: mode='lanczos' takes antialias=True and align_corners=False, not "
                       f"{bool(antialias)} and {align}", why="it is a filter", fix="antialias=True")
    if x._array.dtype.kind not in "fV" and not (x._array.dtype == np.uint8 and mode in _OF_BYTES):
        raise DTypeError(f"interpolate: expects a floating point tensor, got {x._array.dtype.name}", fix="x.float()")


@may_need_much
def interpolate(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None,
                mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Any:
    """Return images (or sequences, or volumes) of another size.

    >>> import mutagrad as mg
    >>> mg.nn.functional.interpolate(mg.tensor([[[0., 2.]]]), scale_factor=2, mode="linear")
    tensor([[[0.0000, 0.5000, 1.5000, 2.0000]]])
    """
    x = tensor_argument(input, "interpolate")
    shape = x._array.shape
    _check_interpolation(x, mode, align_corners, antialias, len(shape) - 2)
    sizes, scales = _new_sizes(shape[2:], size, scale_factor, bool(recompute_scale_factor))
    if min(*sizes, *shape[1:]) <= 0:
        raise BadValue(f"interpolate: sizes must be positive, but {shape[2:]} would become {sizes}",
                       why=f"the shape is {shape}", fix="a larger size")
    maps = tuple((d + 2, _map(mode, n, m, s, bool(align_corners), antialias))
                 for d, (n, m, s) in enumerate(zip(shape[2:], sizes, scales)))
    if x._array.dtype != np.uint8 or mode.startswith("nearest"):
        return resample_behind_channels(x, maps)
    between = resample(make(x._array.astype(np.float32)), maps)._array
    return in_format_of(x, make(np.rint(between).clip(0, 255).astype(np.uint8)))


def upsample(input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None,
             mode: str = "nearest", align_corners: bool | None = None) -> Any:
    """Do the same as interpolate, under its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Ints | None = None,
                     scale_factor: float | Sequence[float] | None = None) -> Any:
    """Interpolation by the nearest position."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Ints | None = None,
                      scale_factor: float | Sequence[float] | None = None) -> Any:
    """Linear interpolation along two dimensions, with the corners aligned."""
    return interpolate(input, size, scale_factor, "bilinear", True)


# ------------------------------------------------------------------------------------------------------- at coordinates

_MODES, _BORDERS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _constant(array: Array, like: Tensor) -> Any:
    return make(np.asarray(array, like._array.dtype))


def _pixels(coordinate: Tensor, n: int, align: bool) -> Tensor:
    """From -1 ... 1 to positions along a dimension of size n."""
    return (coordinate + 1) * ((n - 1) / 2) if align else ((coordinate + 1) * n - 1) * 0.5


def _mirrored(at: Tensor, n: int, align: bool) -> Any:
    """Positions outside reflected at the borders as often as it takes; slopes change sign with each."""
    low, span = (0.0, n - 1.0) if align else (-0.5, float(n))
    if span <= 0:
        return at * 0
    sign, start = silently(turns, at._array - low, span)
    return (at - low) * _constant(sign, at) + _constant(start + low, at)


def _bounded(at: Tensor, n: int, border: str, align: bool) -> Any:
    if border == "zeros":
        return at
    if border == "reflection":
        at = _mirrored(at, n, align)
    inside = (at._array > 0) & (at._array < n - 1)  # at the very border PyTorch's slope is zero
    outside = np.where(inside, 0, at._array.clip(0, n - 1))
    return clamp_values(at, 0, n - 1) * _constant(inside, at) + _constant(outside, at)


def _neighbours(at: Tensor, n: int, mode: str, border: str, align: bool) -> list[tuple[Any, Any, Any]]:
    """Along one dimension, for every neighbour: its position, whether it exists, and its weight (None for all)."""
    if mode == "bicubic":
        left = np.floor(at._array)
        weights = _cubic_weights(at - _constant(left, at), CUBIC)
        places = [_bounded(make(left + k), n, border, align)._array for k in range(-1, 3)]
    else:
        at = _bounded(at, n, border, align)
        if mode == "nearest":
            places, weights = [np.rint(at._array)], [None]
        else:
            left = np.floor(at._array)
            part = at - _constant(left, at)
            places, weights = [left, left + 1], [1 - part, part]
    # Twice, because in single precision the last of many positions is rounded up.
    return [(np.nan_to_num(p).clip(0, n - 1).astype(np.int64).clip(0, n - 1), (p >= 0) & (p <= n - 1), w)
            for p, w in zip(places, weights)]


def _check_grid(input: Tensor, grid: Tensor, mode: str, border: str) -> None:
    x, at = tensor_argument(input, "grid_sample")._array, tensor_argument(grid, "grid_sample")._array
    for what, given, known in (("mode", mode, _MODES), ("padding_mode", border, _BORDERS)):
        if given not in known:
            raise BadValue(f"grid_sample: expected {what} to be one of {known}, but got: {given!r}",
                           fix=f"{what}={known[0]!r}")
    if x.dtype is not at.dtype:
        raise DTypeError(f"grid_sample: input is {x.dtype.name} and grid {at.dtype.name}",
                         why="they must have one type", fix="grid.to(input.dtype)")
    if x.ndim not in (4, 5) or at.ndim != x.ndim or at.shape[-1] != x.ndim - 2 or x.shape[0] != at.shape[0]:
        last = (f"grid to have size {x.ndim - 2} in last dimension" if at.shape[-1:] != (x.ndim - 2,)
                else "grid and input to have same batch size")
        raise ShapeError(f"grid_sample: expected {last}, got input of shape {x.shape} and grid of shape {at.shape}",
                         why="expected (n, c, h, w) with (n, h', w', 2), or (n, c, d, h, w) with (n, d', h', w', 3)",
                         fix="check the order of dimensions")
    if 0 in x.shape[1:]:
        raise ShapeError(f"grid_sample: expected input to have non-empty spatial dimensions, got shape {x.shape}",
                         fix="an input without sizes of zero")
    if mode == "bicubic" and x.ndim == 5:
        raise ShapeError("grid_sample: bicubic interpolation only supports 4D input",
                         why=f"the input has shape {x.shape}", fix="mode='bilinear'")


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Any:
    """Read images at the coordinates in `grid`, from -1 to 1 (the last dimension holds x, y and, for volumes, z).

    >>> import mutagrad as mg
    >>> x = mg.arange(4.).reshape(1, 1, 2, 2)
    >>> mg.nn.functional.grid_sample(x, mg.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[1.5000]]]])
    """
    _check_grid(input, grid, mode, padding_mode)
    if align_corners is None:
        _warn_of_corners("grid_sample")
    if mode != "bicubic" and input._array.dtype.char in "fd" and grid._array.size and (
            is_plain(input._array, grid._array)):
        return _sampled(input, grid, mode, padding_mode, bool(align_corners))
    return _by_corners(input, grid, mode, padding_mode, bool(align_corners))


def _by_corners(input: Tensor, grid: Tensor, method: str, border: str, align: bool) -> Any:
    n, c, *sizes = input._array.shape
    weights, places = _weighted(grid, sizes, method, border, align)
    return reshape(read_corners(reshape(input, n, c, prod(sizes)), weights, places), n, c, *grid._array.shape[1:-1])


def _weighted(grid: Tensor, sizes: Sequence[int], method: str, border: str, align: bool) -> tuple[Any, Any]:
    """The weights of all neighbours of every point, and their places in the flat image: (n, points, neighbours)."""
    points = reshape(grid, len(grid._array), prod(grid._array.shape[1:-1]), len(sizes))
    pixels = [_pixels(select(points, 2, len(sizes) - 1 - d), size, align) for d, size in enumerate(sizes)]
    dims = [_neighbours(at, size, method, border, align) for at, size in zip(pixels, sizes)]
    return _corners(dims, sizes, grid)


def _corners(dims: Sequence[Sequence[tuple[Any, Any, Any]]], sizes: Sequence[int], flat: Tensor) -> tuple[Any, Any]:
    """Places of neighbours that do not exist are -1."""
    places: Any = None
    exist: Any = None
    weights: Any = None
    for neighbours, size in zip(dims, sizes):
        p, there, w = zip(*neighbours)
        along, inside = np.stack(p, -1), np.stack(there, -1)
        lead = along.shape[:2]
        share = _constant(inside, flat) if w[0] is None else stack(w, -1) * _constant(inside, flat)
        if places is None:
            places, exist, weights = along, inside, share
        else:
            places = (places[..., None] * size + along[:, :, None]).reshape(*lead, places.shape[2] * along.shape[2])
            exist = (exist[..., None] & inside[:, :, None]).reshape(places.shape)
            weights = reshape(unsqueeze(weights, 3) * unsqueeze(share, 2), *lead, places.shape[2])
    return weights, np.where(exist, places, -1)


# All of that at once, for finite numbers: by a compiled loop, or by NumPy.

def _points(grid: Array) -> Any:
    return planes.usable(grid).reshape(len(grid), -1, 2)


def _sample(a: Array, grid: Array, method: str, border: str, align: bool) -> Any:
    if not (is_plain(a, grid) and is_finite(a)):
        return _by_corners(make(a), make(grid), method, border, align)._array
    if a.ndim > 4 or (loop := planes.loop_for(images.sample, a)) is None:
        if not is_finite(grid):
            return _by_corners(make(a), make(grid), method, border, align)._array
        return call_with({"kind": None}, sampling.sample, a, grid, method == "nearest", border, align)
    out = np.empty((*a.shape[:2], *grid.shape[1:3]), a.dtype)
    given = a, _points(grid), method == "nearest", _BORDERS.index(border), align, out.reshape(*a.shape[:2], -1)
    loop.share(grid.size // 2, 4 * out.size, *given)
    return out


def _sample_images(g: Array, grid: Array, shape: tuple[int, ...], method: str, border: str, align: bool) -> Any:
    """The gradient by the images."""
    if not (is_plain(g, grid) and is_finite(g) and is_finite(grid)):
        return _recorded_images(make(g), make(grid), shape, method, border, align)._array
    out = np.zeros(shape, g.dtype)
    if out.ndim > 4 or (loop := planes.loop_for(images.sample_back, out)) is None:
        return call_with({"kind": None}, sampling.sample_images, g, grid, shape, method == "nearest", border, align)
    given = (planes.usable(g).reshape(*shape[:2], -1), out, _points(grid), method == "nearest",
             _BORDERS.index(border), align, False, np.zeros((0, 0, 0), g.dtype))
    loop.share(len(out), 8 * g.size, *given)
    return out


def _sample_grid(g: Array, a: Array, grid: Array, method: str, border: str, align: bool) -> Any:
    """The gradient by the grid."""
    finite = is_plain(g, a, grid) and is_finite(g) and is_finite(a)
    loop = planes.loop_for(images.sample_back, a) if finite and a.ndim == 4 else None
    if loop is None and finite and is_finite(grid) and method != "nearest":
        return call_with({"kind": None}, sampling.sample_grid, g, a, grid, border, align)
    if loop is None:
        there = make(grid).requires_grad_()
        return call_with(RECORDING, _recorded_grid, make(g), make(a), there, method, border, align)._array
    out = np.zeros(grid.shape, g.dtype)
    given = (planes.usable(g).reshape(*a.shape[:2], -1), a, _points(grid), method == "nearest",
             _BORDERS.index(border), align, True, _points(out))
    loop.share(len(a), 8 * g.size, *given)
    return out


def _recorded_images(g: Tensor, grid: Tensor, shape: tuple[int, ...], method: str, border: str, align: bool) -> Any:
    n, c, *sizes = shape
    weights, places = _weighted(grid, sizes, method, border, align)
    return reshape(write_corners(reshape(g, n, c, prod(g._array.shape[2:])), weights, places, prod(sizes)), *shape)


def _recorded_grid(g: Tensor, x: Tensor, grid: Tensor, method: str, border: str, align: bool) -> Any:
    if method == "nearest":  # which pixel is read changes in steps
        return make(np.zeros(grid._array.shape, grid._array.dtype))
    return grad(_by_corners(x, grid, method, border, align), grid, g, create_graph=True, materialize_grads=True)[0]


RAW.sample_images, RECORDED.sample_images = _sample_images, _recorded_images
RAW.sample_grid, RECORDED.sample_grid = _sample_grid, _recorded_grid
_sampled = primitive(
    "grid_sample", _sample, settings=("method", "border", "align"),
    x=lambda xp, g, grid, x_shape, method, border, align: xp.sample_images(g, grid, x_shape, method, border, align),
    grid=lambda xp, g, x, grid, method, border, align: xp.sample_grid(g, x, grid, method, border, align))


def _sampler(name: str, dimensions: tuple[int, ...]) -> Any:
    def sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
        if tensor_argument(input, name)._array.ndim not in dimensions:
            raise ShapeError(f"{name}: expects an input of {dimensions[0]} dimensions, got shape {input._array.shape}",
                             fix="nn.functional.grid_sample")
        return grid_sample(input, grid, _MODES[interpolation_mode], _BORDERS[padding_mode], align_corners)

    sampler.__name__ = sampler.__qualname__ = name
    ones = "1, " * (dimensions[0] - 1)
    sampler.__doc__ = with_example(
        "As nn.functional.grid_sample, with the modes by their numbers.",
        f">>> x, middle = mg.ones({ones}2), mg.zeros({ones}{dimensions[0] - 2})",
        f">>> mg.{name}(x, middle, 0, 0, False).item()", "1.0")
    return sampler


grid_sampler = _sampler("grid_sampler", (4, 5))
grid_sampler_2d, grid_sampler_3d = _sampler("grid_sampler_2d", (4,)), _sampler("grid_sampler_3d", (5,))


def _warn_of_corners(name: str) -> None:
    """Warn, as PyTorch does, where the default counts: it was another before 1.3."""
    warnings.warn(f"Default grid_sample and affine_grid behavior is align_corners=False, which {name} takes here: -1 "
                  "and 1 are the edges of the outermost pixels. align_corners=False says that it is meant, "
                  "align_corners=True makes them their middles", UserWarning, stacklevel=to_user())


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Any:
    """Return the grid for grid_sample of an affine map: theta is (n, 2, 3) for images, (n, 3, 4) for volumes.

    >>> import mutagrad as mg
    >>> theta = mg.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> mg.nn.functional.affine_grid(theta, (1, 1, 2, 2), align_corners=False).shape
    mutagrad.Size([1, 2, 2, 2])
    """
    if align_corners is None:
        _warn_of_corners("affine_grid")
    t = tensor_argument(theta, "affine_grid")._array
    sizes = whole_numbers(tuple(size), len(size), "affine_grid", "size")[2:]
    if t.dtype.kind not in "fV":
        raise BadValue(f"affine_grid: Expected theta to have floating point type, got {t.dtype.name}",
                       fix="theta.float()")
    n = len(sizes)
    if n not in (2, 3):
        raise NotSupported(f"affine_grid: affine_grid only supports 4D and 5D sizes, got {tuple(size)}",
                           fix="(n, c, h, w) or (n, c, d, h, w)")
    if t.ndim != 3 or t.shape[1:] != (n, n + 1):
        raise BadValue(f"affine_grid: Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} "
                       f"for size {tuple(size)}, got shape {t.shape}", fix="theta[:, :2]")
    if t.shape[0] != size[0] or min(size) <= 0:
        raise BadValue(f"affine_grid: theta has {t.shape[0]} maps for size {tuple(size)}",
                       why="sizes must be positive, the first the number of maps", fix=f"size=({t.shape[0]}, ...)")
    lines = [np.linspace(-1, 1, m) * (1 if align_corners else (m - 1) / m) if m > 1 else np.zeros(1) for m in sizes]
    axes = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*(axis.reshape(-1) for axis in reversed(axes)), np.ones(prod(sizes))], 1).astype(t.dtype)
    return reshape(matmul(make(base), transpose(theta, 1, 2)), t.shape[0], *sizes, len(sizes))


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Any:
    """As nn.functional.affine_grid.

    >>> import mutagrad as mg
    >>> mg.affine_grid_generator(mg.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 2, 2), False).shape
    mutagrad.Size([1, 2, 2, 2])
    """
    return affine_grid(theta, size, align_corners)
