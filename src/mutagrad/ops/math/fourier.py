"""Fourier transforms: of complex numbers, of real ones to half a spectrum, and back; and of pieces of a signal.

A transform is a symmetric matrix, so its adjoint, which a rule needs, is the inverse transform, but for a factor.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...arrays.allocator import keep_memory
from ...arrays.compiled import spectra
from ...arrays.compiled.library import find
from ...arrays.kinds import anywhere, is_plain
from ...arrays.parallel import get_num_threads
from ...arrays.scipy import scipy_fft
from ...arrays.slices import MANY, in_slices
from ...base.device import device as Device
from ...base.errors import BadIndex, BadValue, DTypeError, NotSupported, ShapeError, bad_choice
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, as_dtype, dtype as DType, get_default_dtype, of_array
from ...core.factory import make
from ...core.indexing import getitem
from ...core.number import whole_number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.size import sizes
from ...core.storage import TensorBase as Tensor
from ..create.create import finish
from ..shape.moving import roll
from ..shape.shape import (
    cat,
    clone,
    expand,
    narrow,
    stack,
    tensor_argument,
    transpose,
    unfold,
    unsqueeze,
    whole_dims,
)
from .elementwise import cast, conj, mul

FUNCTIONS = "istft stft"
METHODS = "istft stft"

# How much a transform divides by, seen from the other direction: the transpose of an inverse divides as it did.
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _resized(a: Array, shape: tuple[int, ...]) -> Any:
    """Cut, or filled up with zeros, at the end of each dimension."""
    if a.shape == shape:
        return a.copy()
    found = np.zeros(shape, a.dtype)
    common = tuple(slice(min(m, n)) for m, n in zip(a.shape, shape))
    found[common] = a[common]
    return found


def _weights(a: Array, dim: int, n: int) -> Any:
    """How often each entry of half a spectrum of n occurs in the whole one."""
    weights = np.ones(a.shape[dim], a.real.dtype)
    weights[1:n - a.shape[dim] + 1] = 2
    return weights.reshape(-1, *(1,) * (a.ndim - dim - 1))


def _of_input(xp: Any, g: Any, real: bool) -> Any:
    """The adjoint of an input, which is real where the input is."""
    return xp.real_part(g) if real else g


def _frames(a: Array, size: int, step: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(a, size, -1)[..., ::step, :].copy()


def _overlap_added(a: Array, step: int) -> Any:
    """The sum of frames that begin `step` apart."""
    *lead, count, size = a.shape
    total = np.zeros((*lead, (count - 1) * step + size), a.dtype)
    for i in range(count):
        total[..., i * step:i * step + size] += a[..., i, :]
    return total


RAW.real_part, RECORDED.real_part = lambda a: a.real, lambda x: cast(x, x._array.real.dtype)
RAW.doubled = lambda a, dim, n: a * _weights(a, dim, n)
RECORDED.doubled = lambda x, dim, n: x * make(_weights(x._array, dim, n))
RAW.halved = lambda a, dim, n: a * (1 / _weights(a, dim, n))
RECORDED.halved = lambda x, dim, n: x * make(1 / _weights(x._array, dim, n))
RAW.frames, RECORDED.frames = _frames, lambda x, size, step: clone(unfold(x, -1, size, step))

fft_resize = primitive("fft_resize", _resized, settings=("shape",), x=lambda xp, g, x_shape: xp.fft_resize(g, x_shape))


def _transform(name: str, a: Array, points: list[int] | None, dims: tuple[int, ...], norm: str) -> Any:
    """One of np.fft's; by SciPy, on its own threads and several rows at once, where there is enough to do."""
    if a.size < MANY or not is_plain(a) or a.dtype.char not in "fdFD":
        return getattr(np.fft, name)(a, points, dims, norm)
    if (library := scipy_fft()) is None:
        return in_slices(lambda part: getattr(np.fft, name)(part, points, dims, norm), a, dims)
    keep_memory()
    if name == "fftn" and dims == (a.ndim - 1,) and (found := _of_real(library, a, norm)) is not None:
        return found
    return getattr(library, name)(a, points, dims, norm, workers=get_num_threads())


def _of_real(library: Any, a: Array, norm: str) -> Any:
    """The spectrum of rows of real numbers out of its first half, by a compiled loop; None where that cannot be."""
    if a.dtype.char not in "fd" or (loop := find(spectra.whole, a.dtype)) is None:
        return None
    n = a.shape[-1]
    half = np.ascontiguousarray(library.rfft(a.reshape(-1, n), norm=norm, workers=get_num_threads())).view(a.dtype)
    out = np.empty((len(half), 2 * n), a.dtype)
    loop.share(len(half), out.size, half, out)
    return out.view(np.complex64 if a.dtype.char == "f" else np.complex128).reshape(a.shape)


fft_complex = primitive(
    "fft_complex",
    lambda a, dims, norm, inverse, real: _transform("ifftn" if inverse else "fftn", a, None, dims, norm),
    settings=("dims", "norm", "inverse", "real"),  # `real`: whether the input is
    x=lambda xp, g, dims, norm, inverse, real:
        _of_input(xp, xp.fft_complex(g, dims, _OPPOSITE[norm], not inverse, False), real))

fft_half = primitive(
    "fft_half", lambda a, dims, norm: _transform("rfftn", a, None, dims, norm), settings=("dims", "norm"),
    x=lambda xp, g, x_shape, dims, norm:
        xp.fft_real(xp.halved(g, dims[-1], x_shape[dims[-1]]), x_shape[dims[-1]], dims, _OPPOSITE[norm]))
for function in (fft_complex, fft_half):  # rules have the conjugates in them: they are inverse transforms
    function.op.conjugate = function.op

fft_real = primitive(
    "fft_real",
    lambda a, points, dims, norm: _transform("irfftn", a, [*(a.shape[d] for d in dims[:-1]), points], dims, norm),
    settings=("points", "dims", "norm"),
    x=lambda xp, g, points, dims, norm: xp.doubled(xp.fft_half(g, dims, _OPPOSITE[norm]), dims[-1], points))

overlap_add = primitive("overlap_add", _overlap_added, settings=("step",),
                        x=lambda xp, g, x_shape, step: xp.frames(g, x_shape[-1], step))

# ------------------------------------------------------------------------------------------------------------ arguments


def _prepared(name: str, x: Tensor, norm: str | None) -> tuple[Any, str]:
    """The input as a float or complex tensor, and the norm by name."""
    tensor_argument(x, f"fft.{name}")
    if norm not in (None, *_OPPOSITE):
        raise bad_choice(norm, str, f"{name}: Invalid normalization mode: {norm!r}",
                         fix='norm="backward", "forward" or "ortho"')
    kind = of_array(x._array.dtype)
    if kind.category < FLOAT:
        return cast(x, get_default_dtype().array_type), norm or "backward"
    if kind.itemsize < 4:
        raise DTypeError(f"{name}: there is no transform of {kind.name}", fix="x.float()")
    return x, norm or "backward"


def _plan(name: str, x: Tensor, s: Any, dim: Any) -> tuple[list[int | None], tuple[int, ...]]:
    """The sizes asked for (None for the input's own) and the dimensions to transform."""
    ndim = x._array.ndim
    s, dim = ((v,) if isinstance(v, int) else v for v in (s, dim))
    asked = None if s is None else [None if n == -1 else n for n in sizes((s,), name)]
    if dim is None:
        dims = tuple(range(ndim)) if asked is None else tuple(range(ndim - len(asked), ndim))
        if asked is not None and len(asked) > ndim:
            raise ShapeError(f"{name}: {len(asked)} sizes for a tensor of {ndim} dimensions",
                             fix=f"s of at most {ndim} sizes")
    else:
        if not ndim and len(dim):
            raise BadIndex(f"{name}: a 0-d tensor has no dimension {dim[0]}", fix="x.reshape(1)")
        dims = whole_dims(tuple(dim), ndim, name) if len(dim) else ()
    if asked is not None and len(asked) != len(dims):
        raise ShapeError(f"{name}: {len(asked)} sizes for {len(dims)} dimensions",
                         why="there must be one for each", fix="s and dim of one length")
    for n, d in zip(asked or [None] * len(dims), dims):
        points = x._array.shape[d] if n is None else n
        if points < 1:
            raise BadValue(f"{name}: Invalid number of data points ({points}) along dimension {d}",
                           why="there must be at least one", fix="a size of 1 or more")
    return asked or [None] * len(dims), dims


def _fitted(x: Tensor, asked: Sequence[int | None], dims: tuple[int, ...]) -> Tensor:
    shape = list(x._array.shape)
    for n, d in zip(asked, dims):
        shape[d] = shape[d] if n is None else n
    return x if tuple(shape) == x._array.shape else fft_resize(x, tuple(shape))


def _one(n: int | None) -> Any:
    return None if n is None else (n,)


def _as_complex(x: Tensor) -> Any:
    return cast(x, of_array(x._array.dtype).to_complex().array_type)


def _ended(result: Tensor, out: Tensor | None) -> Any:
    return write_out("fft", result, out)


def _needs_dims(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise ShapeError(f"{name}: must transform at least one dimension", fix="dim=(-1,)")


def _to_complex(name: str, x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None,
                out: Tensor | None, inverse: bool) -> Any:
    x, norm = _prepared(name, x, norm)
    asked, dims = _plan(name, x, s, dim)
    x = _fitted(x, asked, dims)
    return _ended(fft_complex(x, dims, norm, inverse, x._array.dtype.kind == "f") if dims else _as_complex(x), out)


def _to_half(name: str, x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None,
             out: Tensor | None, conjugate: bool) -> Any:
    """Half a spectrum of real numbers; `conjugate` gives that of the inverse transform."""
    x, norm = _prepared(name, x, norm)
    if x._array.dtype.kind == "c":
        raise DTypeError(f"{name}: expects a real input tensor, got {x._array.dtype.name}",
                         fix=f"mutagrad.fft.{name.replace('ih', 'i').replace('r', '')}(x)")
    asked, dims = _plan(name, x, s, dim)
    _needs_dims(name, dims)
    found = fft_half(_fitted(x, asked, dims), dims, _OPPOSITE[norm] if conjugate else norm)
    return _ended(conj(found) if conjugate else found, out)


def _to_real(name: str, x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, norm: str | None,
             out: Tensor | None, conjugate: bool) -> Any:
    """Real numbers from half their spectrum; `conjugate` takes it for one of the inverse transform."""
    x, norm = _prepared(name, x, norm)
    asked, dims = _plan(name, x, s, dim)
    _needs_dims(name, dims)
    n = 2 * (x._array.shape[dims[-1]] - 1) if asked[-1] is None else asked[-1]
    if n < 1:
        raise BadValue(f"{name}: a result of {n} points",
                       why="half a spectrum of one entry does not say of how many points it is", fix=f"{name}(x, 1)")
    fitted = _fitted(x, [*asked[:-1], n // 2 + 1], dims)
    x = _as_complex(fitted) if x._array.dtype.kind == "f" else fitted
    return _ended(fft_real(conj(x) if conjugate else x, n, dims, _OPPOSITE[norm] if conjugate else norm), out)


# --------------------------------------------------------------------------------------------------------- mutagrad.fft

def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
        *, out: Tensor | None = None) -> Any:
    """The discrete Fourier transform along a dimension, cut or filled up with zeros to n points.

    >>> import mutagrad as mg
    >>> mg.fft.fft(mg.tensor([1., 0., 0., 0.])).abs()
    tensor([1., 1., 1., 1.])
    """
    return _to_complex("fft", input, _one(n), (dim,), norm, out, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Tensor | None = None) -> Any:
    """The inverse of `fft`.

    >>> import mutagrad as mg
    >>> mg.fft.ifft(mg.tensor([4., 0., 0., 0.]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])
    """
    return _to_complex("ifft", input, _one(n), (dim,), norm, out, True)


def fft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
         *, out: Tensor | None = None) -> Any:
    """The transform along two dimensions.

    >>> import mutagrad as mg
    >>> mg.fft.fft2(mg.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _to_complex("fft2", input, s, dim, norm, out, False)


def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """The inverse of `fft2`.

    >>> import mutagrad as mg
    >>> mg.fft.ifft2(mg.fft.fft2(mg.ones(2, 2)))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return _to_complex("ifft2", input, s, dim, norm, out, True)


def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
         *, out: Tensor | None = None) -> Any:
    """The transform along all dimensions, or those named.

    >>> import mutagrad as mg
    >>> mg.fft.fftn(mg.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _to_complex("fftn", input, s, dim, norm, out, False)


def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """The inverse of `fftn`.

    >>> import mutagrad as mg
    >>> mg.fft.ifftn(mg.fft.fftn(mg.ones(2, 2)))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return _to_complex("ifftn", input, s, dim, norm, out, True)


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Tensor | None = None) -> Any:
    """The first half of the spectrum of real numbers; the rest are conjugates of it.

    >>> import mutagrad as mg
    >>> mg.fft.irfft(mg.fft.rfft(mg.arange(4.)))
    tensor([0., 1., 2., 3.])
    """
    return _to_half("rfft", input, _one(n), (dim,), norm, out, False)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """The n real numbers (an even number if left out) whose half spectrum this is.

    >>> import mutagrad as mg
    >>> mg.fft.irfft(mg.fft.rfft(mg.tensor([1., 2., 3.])), n=3)
    tensor([1., 2., 3.])
    """
    return _to_real("irfft", input, _one(n), (dim,), norm, out, False)


def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """`rfft` along two dimensions; the last of them is halved.

    >>> import mutagrad as mg
    >>> mg.fft.rfft2(mg.ones(2, 4)).shape
    mutagrad.Size([2, 3])
    """
    return _to_half("rfft2", input, s, dim, norm, out, False)


def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
           *, out: Tensor | None = None) -> Any:
    """The inverse of `rfft2`.

    >>> import mutagrad as mg
    >>> mg.fft.irfft2(mg.fft.rfft2(mg.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _to_real("irfft2", input, s, dim, norm, out, False)


def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """`rfft` along all dimensions, or those named; the last of them is halved.

    >>> import mutagrad as mg
    >>> mg.fft.rfftn(mg.ones(2, 4)).shape
    mutagrad.Size([2, 3])
    """
    return _to_half("rfftn", input, s, dim, norm, out, False)


def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
           *, out: Tensor | None = None) -> Any:
    """The inverse of `rfftn`.

    >>> import mutagrad as mg
    >>> mg.fft.irfftn(mg.fft.rfftn(mg.ones(2, 2)))
    tensor([[1., 1.],
            [1., 1.]])
    """
    return _to_real("irfftn", input, s, dim, norm, out, False)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
         *, out: Tensor | None = None) -> Any:
    """The real spectrum of a signal that is the conjugate of its mirror image, given its first half.

    >>> import mutagrad as mg
    >>> mg.fft.hfft(mg.tensor([1., 2., 1.]))
    tensor([ 6.,  0., -2.,  0.])
    """
    return _to_real("hfft", input, _one(n), (dim,), norm, out, True)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """The inverse of `hfft`.

    >>> import mutagrad as mg
    >>> mg.fft.ihfft(mg.tensor([4., 0., 0., 0.]))
    tensor([1.-0.j, 1.-0.j, 1.-0.j])
    """
    return _to_half("ihfft", input, _one(n), (dim,), norm, out, True)


def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """`hfft` along two dimensions.

    >>> import mutagrad as mg
    >>> mg.fft.hfft2(mg.ones(2, 2)).shape
    mutagrad.Size([2, 2])
    """
    return _to_real("hfft2", input, s, dim, norm, out, True)


def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None,
           *, out: Tensor | None = None) -> Any:
    """The inverse of `hfft2`.

    >>> import mutagrad as mg
    >>> mg.fft.ihfft2(mg.ones(2, 2)).shape
    mutagrad.Size([2, 2])
    """
    return _to_half("ihfft2", input, s, dim, norm, out, True)


def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
          *, out: Tensor | None = None) -> Any:
    """`hfft` along all dimensions, or those named.

    >>> import mutagrad as mg
    >>> mg.fft.hfftn(mg.ones(2, 2)).shape
    mutagrad.Size([2, 2])
    """
    return _to_real("hfftn", input, s, dim, norm, out, True)


def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None,
           *, out: Tensor | None = None) -> Any:
    """The inverse of `hfftn`.

    >>> import mutagrad as mg
    >>> mg.fft.ihfftn(mg.ones(2, 2)).shape
    mutagrad.Size([2, 2])
    """
    return _to_half("ihfftn", input, s, dim, norm, out, True)


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Any:
    """A spectrum with the frequency zero moved to the middle.

    >>> import mutagrad as mg
    >>> mg.fft.fftshift(mg.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    dims = whole_dims(dim, tensor_argument(input, "fft.fftshift")._array.ndim, "fftshift")
    return roll(input, tuple(input._array.shape[d] // 2 for d in dims), dims) if dims else clone(input)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`.

    >>> import mutagrad as mg
    >>> mg.fft.ifftshift(mg.fft.fftshift(mg.arange(4)))
    tensor([0, 1, 2, 3])
    """
    dims = whole_dims(dim, tensor_argument(input, "fft.ifftshift")._array.ndim, "ifftshift")
    return roll(input, tuple(-(input._array.shape[d] // 2) for d in dims), dims) if dims else clone(input)


def _frequencies(array: Array, out: Tensor | None, dtype: DType | None, device: Device | str | None,
                 requires_grad: bool) -> Any:
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return _ended(finish(array.astype(to.array_type), requires_grad, device), out)


def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: DType | None = None,
            device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """The frequency of each entry of a spectrum of n points that are d apart.

    >>> import mutagrad as mg
    >>> mg.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    n = whole_number(n, "fftfreq", "n")
    return _frequencies(np.fft.fftfreq(n, d) if n else np.empty(0), out, dtype, device, requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: DType | None = None,
             device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """The frequencies of half a spectrum.

    >>> import mutagrad as mg
    >>> mg.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(np.fft.rfftfreq(whole_number(n, "rfftfreq", "n"), d), out, dtype, device, requires_grad)


# --------------------------------------------------------------------------------------------------- pieces of a signal

# What lies beyond the ends of a signal, in NumPy's words.
_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _padded(x: Tensor, before: int, after: int) -> Tensor:
    """Zeros on both sides of the last dimension."""
    sides = [make(np.zeros((*x._array.shape[:-1], k), x._array.dtype)) for k in (before, after)]
    return cat([sides[0], x, sides[1]], -1) if before or after else x


def _extended(x: Tensor, width: int, pad_mode: str) -> Any:
    """The signal continued on both sides."""
    if pad_mode == "constant":
        return _padded(x, width, width)
    if pad_mode not in _PAD_MODES:
        raise NotSupported(f"stft: pad_mode={pad_mode!r} is unknown",
                           fix='pad_mode="reflect", "replicate", "circular" or "constant"')
    n = x._array.shape[-1]
    if pad_mode != "replicate" and width >= n + (pad_mode == "circular"):
        raise ShapeError(f"stft: a signal of {n} points cannot be continued by {width} points on each side",
                         fix='pad_mode="constant", or center=False')
    places = np.pad(np.arange(n), width, mode=_PAD_MODES[pad_mode])  # type: ignore[call-overload]
    return getitem(x, (..., make(places)))


def _window(name: str, window: Tensor | None, win_length: int | None, n_fft: int, like: Tensor) -> Tensor:
    """The window, or ones, in the middle of n_fft points."""
    length = n_fft if win_length is None else whole_number(win_length, name, "win_length")
    if not 0 < length <= n_fft:
        raise BadValue(f"{name}: win_length must be from 1 to n_fft={n_fft}, got {length}", fix=f"win_length={n_fft}")
    if window is None:
        window = make(np.ones(length, like._array.real.dtype))
    elif tensor_argument(window, name)._array.shape != (length,):
        raise ShapeError(f"{name}: a window of shape {window._array.shape} for win_length={length}",
                         fix=f"a window of shape ({length},)")
    before = (n_fft - length) // 2
    return _padded(window, before, n_fft - length - before)


def _hop(name: str, hop_length: int | None, n_fft: int) -> int:
    hop: int = n_fft // 4 if hop_length is None else whole_number(hop_length, name, "hop_length")
    if hop <= 0:
        raise BadValue(f"{name}: hop_length must be positive, got {hop}", fix=f"hop_length={max(n_fft // 4, 1)}")
    return hop


def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None, align_to_window: bool | None = None) -> Any:
    """Return the spectra of pieces of n_fft points, hop_length apart: frequencies by pieces.

    >>> import mutagrad as mg
    >>> mg.stft(mg.ones(8), 4, window=mg.ones(4), return_complex=True).shape
    mutagrad.Size([3, 9])
    """
    tensor_argument(input, "stft")
    if align_to_window is not None:
        raise NotSupported("stft: align_to_window is not supported",
                           fix="leave it out; input[..., k:] moves the first piece")
    if input._array.ndim not in (1, 2) or input._array.dtype.kind not in "fc":
        raise ShapeError("stft: expects floating point signals of 1 or 2 dimensions, "
                         f"got {input._array.dtype.name} of shape {input._array.shape}",
                         fix="x.reshape(-1, x.shape[-1])")
    is_complex = input._array.dtype.kind == "c" or isinstance(window, type(input)) and window._array.dtype.kind == "c"
    if return_complex is None and not is_complex:
        raise BadValue("stft: return_complex must be given for real signals", fix="return_complex=True")
    n_fft = whole_number(n_fft, "stft", "n_fft")
    hop = _hop("stft", hop_length, n_fft)
    weights = _window("stft", window, win_length, n_fft, input)
    signal = _extended(input, n_fft // 2, pad_mode) if center else input
    if not 0 < n_fft <= signal._array.shape[-1]:
        raise BadValue(f"stft: pieces of n_fft={n_fft} points of a signal of {signal._array.shape[-1]}",
                       fix="a smaller n_fft")
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise BadValue("stft: onesided=True, but the spectrum of complex numbers has no mirror image",
                       fix="onesided=False")
    pieces = mul(unfold(signal, -1, n_fft, hop), weights)
    norm = "ortho" if normalized else "backward"
    dims = (pieces._array.ndim - 1,)
    spectra = fft_half(pieces, dims, norm) if half else fft_complex(pieces, dims, norm, False, not is_complex)
    found = transpose(spectra, -2, -1)
    if return_complex or return_complex is None:
        return found
    return stack([RECORDED.real_part(found), RECORDED.real_part(found * -1j)], -1)


def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Any:
    """Return the signal whose `stft` comes nearest: overlapping pieces, divided by what their windows sum to.

    >>> import mutagrad as mg
    >>> x, window = mg.arange(16.), mg.ones(4)
    >>> s = mg.stft(x, 4, window=window, return_complex=True)
    >>> mg.allclose(mg.istft(s, 4, window=window), x, atol=1e-5)
    True
    """
    shape = tensor_argument(input, "istft")._array.shape
    if input._array.dtype.kind != "c" or len(shape) not in (2, 3) or 0 in shape:
        raise ShapeError("istft: expects complex spectra of 2 or 3 dimensions, "
                         f"got {input._array.dtype.name} of shape {shape}", fix="mutagrad.view_as_complex(x)")
    n_fft = whole_number(n_fft, "istft", "n_fft")
    hop = _hop("istft", hop_length, n_fft)
    half = n_fft != shape[-2] if onesided is None else onesided
    if shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise ShapeError(f"istft: {shape[-2]} frequencies, where n_fft={n_fft} has {n_fft // 2 + 1 if half else n_fft}",
                         fix=f"n_fft={2 * (shape[-2] - 1)}")
    if return_complex and half:
        raise BadValue("istft: half a spectrum gives real numbers", fix="return_complex=False")
    weights = _window("istft", window, win_length, n_fft, input)
    if weights._array.dtype.kind == "c" and not return_complex:
        raise BadValue("istft: a complex window gives complex numbers", fix="return_complex=True")
    spectra = transpose(input, -2, -1)
    norm, dims = "ortho" if normalized else "backward", (len(shape) - 1,)
    if return_complex:
        pieces = fft_complex(spectra, dims, norm, True, False)
    else:
        pieces = fft_real(narrow(spectra, -1, 0, n_fft // 2 + 1), n_fft, dims, norm)
    total = overlap_add(mul(pieces, weights), hop)
    share = overlap_add(expand(unsqueeze(mul(weights, weights), 0), shape[-1], n_fft), hop)
    return _trimmed(total, share, n_fft // 2 if center else 0, length)


def _trimmed(total: Tensor, share: Tensor, margin: int, length: int | None) -> Tensor:
    """Both without their margins, divided, and filled up with zeros to `length`."""
    whole = total._array.shape[-1]
    end = whole - margin if length is None else min(margin + length, whole)
    share = narrow(share, -1, margin, max(end - margin, 0))
    if not share._array.size or anywhere(np.abs(share._array) <= 1e-11):
        raise ShapeError("istft: the windows do not cover every point of the signal",
                         why="what they sum to is zero somewhere",
                         fix="a smaller hop_length, another window, or center=True")
    found = narrow(total, -1, margin, end - margin) / share
    return found if length is None else _padded(found, 0, length - (end - margin))
