"""Convolution, its transpose, and the columns of windows that both are products with.

A convolution is one matrix product for each sample: weights times columns, where a column holds what lies under the
kernel at one position. The columns are never saved: making them again takes less time than the product.

Where the stride is 1, a kernel element sees the whole image shifted by a fixed distance in memory. So each row of the
columns is copied as one piece, row ends and all; the results at the positions between the rows mean nothing and are
left out at the end. Copying row by row takes three times as long.

The gradient by the input is the transposed convolution, and that of the transposed one a convolution. The gradient by
the weight is a convolution, too, with samples and channels exchanged, and stride and dilation.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...arrays import np, parallel as large
from ...arrays.blas import on_one_thread
from ...arrays.copies import in_order
from ...arrays.kinds import anywhere, window
from ...base.errors import BadValue, DTypeError, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..shape.shape import in_format_of, permute, reshape, squeeze, tensor_argument, unsqueeze
from . import conv_inside, correlate, depthwise
from .pad import pad_values
from .resample import Ints, whole_numbers
from .sliding import EVERY, Sizes, Windows, out_sizes, padded_image, windows, without_border

FUNCTIONS = "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution"

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "fold",
    "unfold"]

def _seen(image: Array, w: Windows) -> Any:
    """(samples, channels, *kernel, *positions), a view."""
    item = image.itemsize
    n, c = image.shape[:2]
    tail, steps = ((w.length,), (1,)) if w.flat else (w.out, w.steps)
    strides = (*image.strides[:2], *(s * item for s in w.shifts), *(s * item for s in steps))
    return window(image, (n, c, *w.kernel, *tail), image.dtype, 0, strides)


def _columns(image: Array, w: Windows) -> Any:
    """(samples, channels, kernel elements, length); of a kernel of one element it is the image itself."""
    seen = _seen(image, w)
    return np.ascontiguousarray(seen).reshape(*seen.shape[:2], prod(w.kernel), w.length)


def _add_columns(image: Array, columns: Array, w: Windows) -> None:
    """The transpose of taking columns: adds each of them to where it was taken from."""
    n, c = image.shape[:2]
    image = image.reshape(n, c, -1) if w.flat else image
    columns = columns.reshape(n, c, len(w.places), *((w.length,) if w.flat else w.out))
    for k, place in enumerate(w.places):
        part = image[EVERY + place]
        np.add(part, columns[:, :, k], out=part)


def _put_phases(image: Array, columns: Array, kernel: Sizes, stride: Sizes, dilation: Sizes) -> None:
    """The same into an empty image, where columns go to every second place: all even ones are added up side by side."""
    m, c, _, *out = columns.shape
    phases = np.zeros((m, c, *stride, *(-(-n // s) for n, s in zip(image.shape[2:], stride))), columns.dtype)
    for k, at in enumerate(product(*(range(0, n * d, d) for n, d in zip(kernel, dilation)))):
        place = *(i % s for i, s in zip(at, stride)), *(slice(i // s, i // s + n) for i, s, n in zip(at, stride, out))
        part = phases[EVERY + place]
        np.add(part, columns[:, :, k], out=part)
    for phase in product(*map(range, stride)):
        target = image[EVERY + tuple(slice(r, None, s) for r, s in zip(phase, stride))]
        target[...] = phases[EVERY + phase][EVERY + tuple(slice(n) for n in target.shape[2:])]


def _cut(rows: Array, w: Windows) -> Any:
    """Rows of positions as images of results; a view, also where they have to be written."""
    if not w.flat:
        return rows.reshape(*rows.shape[:2], *w.out)
    strides = *rows.strides[:2], *(s * rows.itemsize for s in w.steps)
    return window(rows, (*rows.shape[:2], *w.out), rows.dtype, 0, strides)


def _rows(images: Array, w: Windows) -> Any:
    """Images of results as rows of positions, zero between them."""
    n, c = images.shape[:2]
    if w.length == prod(w.out):
        return np.ascontiguousarray(images).reshape(n, c, w.length)
    rows = np.zeros((n, c, w.length), images.dtype)
    large.assign(_cut(rows, w), images)
    return rows


# ------------------------------------------------------------------------------------------------------------- products

_CHUNK = 1 << 20  # elements of columns at a time: more would not stay in the cache until they are used


def _over_samples(n: int, size: int, work: Callable[[slice], Any]) -> list[Any]:
    """What `work` gives for a few samples at a time, of `size` elements each; on several threads if there is enough.

    These are ours: BLAS would share each sample's product among its own, and waking them costs more than it saves.
    """
    step = max(_CHUNK // max(size, 1), 1)
    if n < 2 or n * size < large.LARGE:
        return large.in_steps(n, step, work, False)
    return on_one_thread(lambda free: large.in_steps(n, step, work, free))


def _with_bias(forward: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, bias, *settings: forward(a, b, *settings, bias=bias)


def _added(out: Array, bias: Array | None) -> Any:
    return out if bias is None else np.add(out, bias.reshape(-1, *(1,) * (out.ndim - 2)), out=out)


# ---------------------------------------------------------------------------------------------------------- convolution

def _conv(x: Array, weight: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
          bias: Array | None = None) -> Any:
    size, kernel = x.shape[2:], weight.shape[2:]
    sizes = out_sizes(size, kernel, stride, padding, dilation)
    n, o = x.shape[0], weight.shape[0]
    if not prod(sizes) or not n or not o or not x.size:
        return _added(np.zeros((n, o, *sizes), x.dtype), bias)
    if any(padding) and not large.is_finite(weight):
        return _added(conv_inside.conv(x, weight, stride, padding, dilation, groups, sizes), bias)
    if (found := correlate.conv(x, weight, bias, stride, padding, dilation, groups, sizes)) is not None:
        return found
    w = windows(size, kernel, stride, padding, dilation, sizes)
    out = np.empty((n, o, *w.out), x.dtype)
    image, matrix = padded_image(x, w), np.ascontiguousarray(weight).reshape(groups, o // groups, -1)

    def work(part: slice) -> None:
        m = part.stop - part.start
        columns = _columns(image[part], w).reshape(m, groups, -1, w.length)
        direct = w.length == prod(w.out)
        rows = out[part].reshape(m, o, w.length) if direct else np.empty((m, o, w.length), x.dtype)
        np.matmul(matrix, columns, out=rows.reshape(m, groups, -1, w.length))
        if not direct:
            large.assign(out[part], _cut(rows, w))

    _over_samples(n, x.shape[1] * prod(kernel) * w.length, work)
    return _added(out, bias)


def _conv_transpose(g: Array, weight: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
                    bias: Array | None = None) -> Any:
    kernel = weight.shape[2:]
    n, o = g.shape[:2]
    c = weight.shape[1] * groups
    if not n * c * prod(size) or not g.size:
        return _added(np.zeros((n, c, *size), g.dtype), bias)
    if not large.is_finite(weight):
        return _added(conv_inside.conv_transpose(g, weight, size, stride, padding, dilation, groups), bias)
    if (found := correlate.conv_transpose(g, weight, bias, size, stride, padding, dilation, groups)) is not None:
        return found
    w = windows(size, kernel, stride, padding, dilation, g.shape[2:])
    image = np.zeros((n, c, *w.padded), g.dtype)
    if depthwise.is_depthwise(weight, groups):
        depthwise.spread(_rows(g, w) if w.flat else g, weight, w, image)
        return _added(in_order(without_border(image, w, size)), bias)
    matrix = np.ascontiguousarray(weight).reshape(groups, o // groups, -1).swapaxes(1, 2)

    def work(part: slice) -> None:
        m = part.stop - part.start
        columns = np.matmul(matrix, _rows(g[part], w).reshape(m, groups, -1, w.length))
        if max(stride) > 1:
            _put_phases(image[part], columns.reshape(m, c, -1, *w.out), kernel, stride, dilation)
        else:
            _add_columns(image[part], columns, w)

    _over_samples(n, c * prod(kernel) * w.length, work)
    return _added(in_order(without_border(image, w, size)), bias)


def _conv_weight(g: Array, x: Array, *settings: Any) -> Any:
    """The gradient by the weight: the sum over all windows of g times what lies under it."""
    found = _sum_of_windows(g, x, *settings)
    return conv_inside.conv_weight(g, x, *settings) if anywhere(np.isnan(found)) else found


def _sum_of_windows(g: Array, x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                    groups: int) -> Any:
    """The same with zeros around and between what belongs together."""
    n, o = g.shape[:2]
    c = x.shape[1] // groups
    if not g.size or not x.size:
        return np.zeros((o, c, *kernel), x.dtype)
    if (found := correlate.conv_weight(g, x, kernel, stride, padding, dilation, groups)) is not None:
        return found
    w = windows(x.shape[2:], kernel, stride, padding, dilation, g.shape[2:])
    image = padded_image(x, w)
    if c == 1 and o == groups > 1:
        seen = _seen(image, w) if w.flat else _columns(image, w)
        return depthwise.by_weight(_rows(g, w), seen).reshape(o, c, *kernel)

    def work(part: slice) -> Any:
        m = part.stop - part.start
        columns = _columns(image[part], w).reshape(m, groups, -1, w.length)
        rows = _rows(g[part], w).reshape(m, groups, -1, w.length).swapaxes(2, 3)
        return np.add.reduce(np.matmul(columns, rows), 0)

    total = np.add.reduce(_over_samples(n, x.shape[1] * prod(kernel) * w.length, work), 0)
    return np.ascontiguousarray(total.swapaxes(1, 2)).reshape(o, c, *kernel)


def _conv_weight_recorded(g: Tensor, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                          groups: int) -> Any:
    """The same as a convolution of x with g, in which channels are samples and samples channels."""
    n, c, *size = x.shape
    rest = tuple(range(2, 2 + len(size)))
    by_group = permute(reshape(x, n, groups, c // groups, *size), 2, 1, 0, *(d + 1 for d in rest))
    images = reshape(by_group, c // groups, groups * n, *size)
    out = conv_values(images, permute(g, 1, 0, *rest), dilation, padding, stride, groups)
    return permute(_first(RECORDED, out, kernel), 1, 0, *rest)


def _first(xp: Any, x: Any, size: Sizes) -> Any:
    """As many positions as `size` says; a stride that does not divide the image may find more."""
    for d, n in enumerate(size):
        x = xp.narrow(x, d + 2, 0, n) if x.shape[d + 2] != n else x
    return x


RAW.conv_weight, RECORDED.conv_weight = _conv_weight, _conv_weight_recorded

_SETTINGS = ("stride", "padding", "dilation", "groups")


def _input_rule(xp: Any, g: Any, weight: Any, x_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                groups: int) -> Any:
    return xp.conv_transpose(g, weight, x_shape[2:], stride, padding, dilation, groups)


def _weight_rule(xp: Any, g: Any, x: Any, weight_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                 groups: int) -> Any:
    return xp.conv_weight(g, x, weight_shape[2:], stride, padding, dilation, groups)


def _bias_rule(xp: Any, g: Any) -> Any:
    return xp.sum(g, (0, *range(2, len(g.shape))), False)


def _transposed_input_rule(xp: Any, g: Any, weight: Any, x_shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                           groups: int) -> Any:
    return _first(xp, xp.conv(g, weight, stride, padding, dilation, groups), x_shape[2:])


def _transposed_weight_rule(xp: Any, g: Any, x: Any, weight_shape: Sizes, stride: Sizes, padding: Sizes,
                            dilation: Sizes, groups: int) -> Any:
    return xp.conv_weight(x, g, weight_shape[2:], stride, padding, dilation, groups)


conv_values = primitive("conv", _conv, settings=_SETTINGS, x=_input_rule, weight=_weight_rule)
conv_biased = primitive("conv_bias", _with_bias(_conv), settings=_SETTINGS, x=_input_rule, weight=_weight_rule,
                        bias=_bias_rule)
conv_transpose_values = primitive("conv_transpose", _conv_transpose, settings=("size", *_SETTINGS),
                                  x=_transposed_input_rule, weight=_transposed_weight_rule)
conv_transpose_biased = primitive("conv_transpose_bias", _with_bias(_conv_transpose), settings=("size", *_SETTINGS),
                                  x=_transposed_input_rule, weight=_transposed_weight_rule, bias=_bias_rule)


# ------------------------------------------------------------------------------------------------------------ arguments

class _Settings(NamedTuple):
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int


def _batched(name: str, x: Tensor, n: int) -> Tensor:
    """With a dimension of samples, which PyTorch lets one leave out."""
    shape = x._array.shape
    if len(shape) not in (n + 1, n + 2):
        raise ShapeError(f"{name}: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, "
                         f"but got input of size: {list(shape)}",
                         why=f"(samples,) channels and {n} more", fix="x[None] adds a dimension")
    return x if len(shape) == n + 2 else unsqueeze(x, 0)


def _check_tensors(name: str, x: Tensor, weight: Tensor, bias: Tensor | None, n: int) -> None:
    given = [tensor_argument(v, name) for v in (x, weight, bias)[:2 + (bias is not None)]]
    kinds = {v._array.dtype for v in given}
    if len(kinds) > 1:
        raise DTypeError(f"{name}: input, weight and bias have types {', '.join(v._array.dtype.name for v in given)}",
                         why="convolutions do not promote", fix="weight.to(x.dtype)")
    if weight._array.ndim != n + 2:
        raise ShapeError(f"{name}: expects a weight of {n + 2} dimensions, got shape {weight._array.shape}",
                         fix=f"a kernel of {n} dimensions")
    if 0 in weight._array.shape[2:]:
        raise ShapeError(f"{name}: the kernel has a size of zero (weight of shape {weight._array.shape})",
                         fix="kernel sizes of at least 1")


def _settings(name: str, n: int, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> _Settings:
    found = _Settings(whole_numbers(stride, n, name, "stride"), whole_numbers(padding, n, name, "padding"),
                      whole_numbers(dilation, n, name, "dilation"), whole_numbers(groups, 1, name, "groups")[0])
    if min(found.stride) <= 0:
        raise BadValue(f"{name}: non-positive stride is not supported, got {found.stride}", fix="stride=1")
    if min(found.dilation) <= 0 or found.groups <= 0 or min(found.padding) < 0:
        raise BadValue(f"{name}: dilation {found.dilation} and groups {found.groups} must be positive, "
                       f"padding {found.padding} not negative", fix="stride=1, padding=0, dilation=1, groups=1")
    return found


def _check_channels(name: str, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, transposed: bool) -> None:
    c, (rows, inner) = x._array.shape[1], weight._array.shape[:2]
    shapes = (f"{name}: input of shape {tuple(x._array.shape)} and weight of shape {tuple(weight._array.shape)} "
              f"with groups={groups}")
    if transposed and c != rows or not transposed and c != inner * groups:
        wanted = rows if transposed else inner * groups
        raise ShapeError(f"{shapes}: the weight is for {wanted} channels, the input has {c}",
                         why="channels are the dimension behind the samples",
                         fix=f"an input of {wanted} channels, "
                             f"or a weight of shape {(c, inner) if transposed else (rows, c // groups)} + the kernel's")
    if rows % groups:
        raise ShapeError(f"{shapes}: {rows} cannot be divided into {groups} groups",
                         fix="the first size of the weight a multiple of groups")
    made = inner * groups if transposed else rows
    if bias is not None and bias._array.shape != (made,):
        raise ShapeError(f"{name}: expects a bias of shape ({made},), got {tuple(bias._array.shape)}",
                         why="one number for each channel of the result", fix=f"mutagrad.zeros({made})")


def _same_padding(name: str, x: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes) -> tuple[Any, Sizes]:
    """The input and padding with which the result has the input's sizes; an odd border is longer at the end."""
    if max(stride) > 1:
        raise BadValue(f"{name}: padding='same' needs a stride of 1, not {stride}",
                       why="no padding keeps the sizes otherwise", fix="padding=(k - 1) // 2")
    total = tuple(d * (k - 1) for d, k in zip(dilation, kernel))
    if any(t % 2 for t in total):
        x = pad_values(x, ((0, 0), (0, 0), *((0, t % 2) for t in total)), x._array.dtype.type(0))
    return x, tuple(t // 2 for t in total)


def _convolve(name: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints | str,
              dilation: Ints, groups: int) -> Any:
    _check_tensors(name, input, weight, bias, n)
    x = _batched(name, input, n)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise BadValue(f"{name}: padding={padding!r} is not known",
                           fix="padding='same', padding='valid' or numbers")
        plain = _settings(name, n, stride, 0, dilation, groups)
        _check_channels(name, x, weight, bias, plain.groups, False)
        settings = plain
        if padding == "same":
            x, both_sides = _same_padding(name, x, weight._array.shape[2:], plain.stride, plain.dilation)
            settings = plain._replace(padding=both_sides)
    else:
        settings = _settings(name, n, stride, padding, dilation, groups)
        _check_channels(name, x, weight, bias, settings.groups, False)
    size, kernel = x._array.shape[2:], weight._array.shape[2:]
    out = out_sizes(size, kernel, *settings[:3])
    if min(out) <= 0:
        padded = " x ".join(str(m + 2 * p) for m, p in zip(size, settings.padding))
        reach = " x ".join(str(d * (k - 1) + 1) for k, d in zip(kernel, settings.dilation))
        raise ShapeError(f"{name}: Calculated padded input size per channel: ({padded}). Kernel size: ({reach}). "
                         "Kernel size can't be greater than actual input size",
                         why=f"the result would have sizes {out}", fix="more padding, or a smaller kernel")
    result = conv_values(x, weight, *settings) if bias is None else conv_biased(x, weight, bias, *settings)
    return in_format_of(input, in_format_of(weight, result)) if input._array.ndim == n + 2 else squeeze(result, 0)


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Any:
    """Sequences (samples, channels, length) under a sliding kernel.

    >>> import mutagrad as mg
    >>> mg.nn.functional.conv1d(mg.tensor([[[1., 2., 4., 8.]]]), mg.tensor([[[-1., 1.]]]))
    tensor([[[1., 2., 4.]]])
    """
    return _convolve("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Any:
    """Images (samples, channels, height, width) under a sliding kernel.

    >>> import mutagrad as mg
    >>> mg.nn.functional.conv2d(mg.ones(1, 1, 3, 3), mg.ones(1, 1, 3, 3), padding="same")
    tensor([[[[4., 6., 4.],
              [6., 9., 6.],
              [4., 6., 4.]]]])
    """
    return _convolve("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints | str = 0,
           dilation: Ints = 1, groups: int = 1) -> Any:
    """Volumes (samples, channels, depth, height, width) under a sliding kernel.

    >>> import mutagrad as mg
    >>> mg.conv3d(mg.ones(1, 1, 3, 3, 3), mg.ones(2, 1, 2, 2, 2)).shape
    mutagrad.Size([1, 2, 2, 2, 2])
    """
    return _convolve("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _convolve_transposed(name: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints,
                         padding: Ints, output_padding: Ints, groups: int, dilation: Ints) -> Any:
    _check_tensors(name, input, weight, bias, n)
    x = _batched(name, input, n)
    settings = _settings(name, n, stride, padding, dilation, groups)
    _check_channels(name, x, weight, bias, settings.groups, True)
    extra = whole_numbers(output_padding, n, name, "output_padding")
    if any(e < 0 or e >= max(s, d) for e, s, d in zip(extra, settings.stride, settings.dilation)):
        raise BadValue(f"{name}: output_padding {extra} must be smaller than stride {settings.stride} "
                       f"or dilation {settings.dilation}",
                       why="more of it would be positions that nothing is written to", fix="output_padding=0")
    kernel = weight._array.shape[2:]
    size = tuple((m - 1) * s - 2 * p + d * (k - 1) + e + 1
                 for m, k, s, p, d, e in zip(x._array.shape[2:], kernel, *settings[:3], extra))
    if min(size) <= 0:
        raise ShapeError(f"{name}: an input of {x._array.shape[2:]} with a kernel of {kernel} "
                         f"and padding {settings.padding} would give sizes {size}",
                         why="padding takes away from the result here", fix="less padding")
    if bias is None:
        result = conv_transpose_values(x, weight, size, *settings)
    else:
        result = conv_transpose_biased(x, weight, bias, size, *settings)
    return in_format_of(input, in_format_of(weight, result)) if input._array.ndim == n + 2 else squeeze(result, 0)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Any:
    """Apply the transpose of conv1d: from the sizes of its result to those of its input.

    >>> import mutagrad as mg
    >>> mg.conv_transpose1d(mg.tensor([[[1., 2.]]]), mg.tensor([[[1., 10.]]]))
    tensor([[[ 1., 12., 20.]]])
    """
    return _convolve_transposed("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Any:
    """Apply the transpose of conv2d: from the sizes of its result to those of its input.

    >>> import mutagrad as mg
    >>> mg.conv_transpose2d(mg.ones(1, 1, 2, 2), mg.ones(1, 1, 2, 2), stride=2).shape
    mutagrad.Size([1, 1, 4, 4])
    """
    return _convolve_transposed("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
                     output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1) -> Any:
    """Apply the transpose of conv3d: from the sizes of its result to those of its input.

    >>> import mutagrad as mg
    >>> mg.conv_transpose3d(mg.ones(1, 2, 2, 2, 2), mg.ones(2, 3, 2, 2, 2)).shape
    mutagrad.Size([1, 3, 3, 3, 3])
    """
    return _convolve_transposed("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups,
                                dilation)


# -------------------------------------------------------------------------------------------------------------- columns

def _take_columns(a: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    size = a.shape[2:]
    w = windows(size, kernel, stride, padding, dilation, out_sizes(size, kernel, stride, padding, dilation))
    n, c = a.shape[:2]
    if not a.size:
        return np.zeros((n, c * prod(kernel), prod(w.out)), a.dtype)
    columns = _columns(padded_image(a, w), w)
    return np.ascontiguousarray(_cut(columns.reshape(n, -1, w.length), w)).reshape(n, -1, prod(w.out))


def _sum_columns(a: Array, size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Any:
    w = windows(size, kernel, stride, padding, dilation, out_sizes(size, kernel, stride, padding, dilation))
    n, c = a.shape[0], a.shape[1] // prod(kernel)
    image = np.zeros((n, c, *w.padded), a.dtype)
    if a.size:
        _add_columns(image, _rows(a.reshape(n, -1, *w.out), w), w)
    return np.ascontiguousarray(without_border(image, w, size))


_WINDOW = ("kernel", "stride", "padding", "dilation")
columns_values = primitive(
    "columns", _take_columns, settings=_WINDOW, x=lambda xp, g, x_shape, kernel, stride, padding, dilation:
    xp.sum_columns(g, x_shape[2:], kernel, stride, padding, dilation))
sum_columns_values = primitive(
    "sum_columns", _sum_columns, settings=("size", *_WINDOW), x=lambda xp, g, kernel, stride, padding, dilation:
    xp.columns(g, kernel, stride, padding, dilation))


def _window_settings(name: str, kernel: Ints, dilation: Ints, padding: Ints,
                     stride: Ints) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    size = whole_numbers(kernel, 2, name, "kernel_size")
    found = _settings(name, 2, stride, padding, dilation, 1)
    if min(size) <= 0:
        raise BadValue(f"{name}: kernel_size must be positive, not {size}", fix="kernel_size=3")
    return size, found.stride, found.padding, found.dilation


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Any:
    """All windows of images as columns: (samples, channels · kernel elements, windows).

    >>> import mutagrad as mg
    >>> mg.nn.functional.unfold(mg.zeros(1, 1, 3, 3), kernel_size=2).shape
    mutagrad.Size([1, 4, 4])
    """
    settings = _window_settings("unfold", kernel_size, dilation, padding, stride)
    x = _batched("unfold", tensor_argument(input, "unfold"), 2)
    out = out_sizes(x._array.shape[2:], *settings)
    if min(out) <= 0:
        raise ShapeError(f"unfold: a kernel of {settings[0]} does not fit an input "
                         f"of shape {tuple(input._array.shape)}",
                         why=f"there would be {out} windows, and its components must be at least one",
                         fix="more padding, or a smaller kernel_size")
    if 0 in x._array.shape[1:]:
        raise ShapeError(f"unfold: Expected 3D or 4D input with elements, got shape {tuple(input._array.shape)}",
                         fix="sizes of at least 1, but for the samples")
    result = columns_values(x, *settings)
    return result if input._array.ndim == 4 else squeeze(result, 0)


def fold(input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0,
         stride: Ints = 1) -> Any:
    """Apply the transpose of unfold: add up columns to images of `output_size` where their windows lie.

    >>> import mutagrad as mg
    >>> mg.nn.functional.fold(mg.ones(1, 4, 4), (3, 3), kernel_size=2)[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """
    settings = _window_settings("fold", kernel_size, dilation, padding, stride)
    size = whole_numbers(output_size, 2, "fold", "output_size")
    x = _batched("fold", tensor_argument(input, "fold"), 1)
    out = out_sizes(size, *settings)
    _, rows, length = x._array.shape
    each, wrong = prod(settings[0]), ""
    if rows % each:
        wrong = f"expected the rows to be divisible by the product of kernel_size, {each}"
    elif min(out) <= 0:
        wrong = f"calculated shape of the array of sliding blocks as {out}, and all must be positive"
    elif length != prod(out):
        wrong = f"expected the columns to match the calculated number of sliding blocks, {out[0]} x {out[1]}"
    if wrong:
        raise ShapeError(f"fold: {wrong}; got columns of shape {tuple(input._array.shape)} for images of {size} "
                         f"with a kernel of {settings[0]}", fix="the settings that unfold was given")
    result = sum_columns_values(x, size, *settings)
    return result if input._array.ndim == 3 else squeeze(result, 0)


# ---------------------------------------------------------------------------------------------------- under other names

def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Ints, padding: Ints, dilation: Ints,
                transposed: bool, output_padding: Ints, groups: int) -> Any:
    """Any of the convolutions; how many dimensions it has is that of the weight, less two.

    >>> import mutagrad as mg
    >>> mg.convolution(mg.ones(1, 1, 4), mg.ones(1, 1, 2), None, (1,), (0,), (1,), False, (0,), 1)
    tensor([[[2., 2., 2.]]])
    """
    n = tensor_argument(weight, "convolution")._array.ndim - 2
    if n not in (1, 2, 3):
        raise ShapeError(f"convolution: a weight of shape {weight._array.shape} has kernels of {n} dimensions",
                         fix="1, 2 or 3")
    if transposed:
        function = (conv_transpose1d, conv_transpose2d, conv_transpose3d)[n - 1]
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    return (conv1d, conv2d, conv3d)[n - 1](input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Any:
    """Convolve sequences (steps, batch, channels) with a weight (kernel, channels, channels of the result).

    >>> import mutagrad as mg
    >>> mg.conv_tbc(mg.ones(5, 1, 2), mg.ones(3, 2, 4), mg.zeros(4)).shape
    mutagrad.Size([3, 1, 4])
    """
    for x in (input, weight):
        if tensor_argument(x, "conv_tbc")._array.ndim != 3:
            raise ShapeError(f"conv_tbc: expects 3 dimensions, got shape {x._array.shape}",
                             fix="(steps, batch, channels) and (kernel, channels, channels)")
    return permute(conv1d(permute(input, 1, 2, 0), permute(weight, 2, 1, 0), bias, padding=pad), 2, 0, 1)
