"""Windows: weights that fade a piece of a signal in and out before it is transformed.

Those of `mutagrad.signal.windows` are symmetric where nothing else is said, `hann_window` and its like periodic: a
period of M points is a symmetric window of M + 1 points without its last.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import isqrt, pi, sqrt
from typing import Any

from ...arrays import np
from ...arrays.numpy import silenced
from ...arrays.sums import MANY
from ...base.device import device as Device
from ...base.errors import BadArgument, BadValue, DTypeError, may_need_much
from ...base.layout import check_layout, layout as Layout, strided
from ...base.operands import Array
from ...core.dtypes import as_dtype, dtype as DType, float32, float64, get_default_dtype
from ...core.number import number
from .create import finish

FUNCTIONS = "bartlett_window blackman_window hamming_window hann_window kaiser_window"


def _made(values: Array, dtype: DType | None, layout: Layout | None, device: Device | str | None, requires_grad: bool,
          pin_memory: bool = False) -> Any:
    check_layout("window", layout, pin_memory)
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    return finish(values.astype(to.array_type), requires_grad, device)


def _points(name: str, M: int, dtype: DType | None, layout: Layout | None = None) -> int:
    """The number of points, checked."""
    if layout is not None and layout is not strided:
        raise BadValue(f"{name}: a window cannot be of layout {layout}", fix="layout=mutagrad.strided, or leave it out")
    if isinstance(M, bool) or not hasattr(M, "__index__"):
        raise BadArgument(f"{name}: the number of points must be an integer, not {type(M).__name__}", fix=f"{name}(10)")
    if M < 0:
        raise BadValue(f"{name}: the number of points must not be negative, got {M}", fix=f"{name}({-M})")
    if dtype is not None and as_dtype(dtype) not in (float32, float64):
        raise BadValue(f"{name}: a window is of float32 or float64, not {as_dtype(dtype).name}",
                       fix="dtype=mutagrad.float32")
    return int(M)


def _steps(M: int, sym: bool) -> int:
    """How many steps lead once across the window."""
    return max(M - 1 if sym else M, 1)


def _positive(name: str, what: str, value: float) -> float:
    value = number(value)
    if value <= 0:
        raise BadValue(f"{name}: {what} must be positive, got {value}", fix=f"{what}=1.0")
    return value


def _cos(step: float, count: int) -> Any:
    """The cosines of so many multiples of a step: of many the sums of those of a few, as of hours and minutes."""
    if count < MANY:
        return np.cos(step * np.arange(count))
    minutes = isqrt(count)
    hour, minute = step * minutes * np.arange(-(-count // minutes)), step * np.arange(minutes)
    found = np.multiply.outer(np.cos(hour), np.cos(minute)) - np.multiply.outer(np.sin(hour), np.sin(minute))
    return found.reshape(-1)[:count]


def _cosines(M: int, coefficients: Iterable[float], sym: bool) -> Any:
    """a0 - a1 cos(t) + a2 cos(2t) - ..., for t once round."""
    if M == 1:
        return np.ones(1)
    steps = _steps(M, sym)
    count = steps // 2 + 1
    first, *others = map(number, coefficients)
    found = sum(((-1) ** i * a * _cos(i * 2 * pi / steps, count) for i, a in enumerate(others, 1)),
                np.full(count, float(first)))
    return np.concatenate([found, found[steps - count::-1]])[:M]  # the way back is the way there


def _triangle(M: int, sym: bool) -> Any:
    return np.ones(1) if M == 1 else 1 - np.abs(2 / _steps(M, sym) * np.arange(M) - 1)


@silenced
def _decay(M: int, middle: float, tau: float) -> Any:
    return np.exp(-np.abs(np.arange(M) - middle) / tau)


@silenced
def _bell(M: int, middle: float, std: float) -> Any:
    t = (np.arange(M) - middle) / (std * sqrt(2))
    return np.exp(-t * t)


@silenced
def _kaiser(M: int, beta: float, sym: bool) -> Any:
    t = np.ones(1) * 0 if M == 1 else 2 / _steps(M, sym) * np.arange(M) - 1
    return np.i0(beta * np.sqrt(np.maximum(1 - t * t, 0))) / np.i0(beta)


# ------------------------------------------------------------------------------------------------------- signal.windows

def bartlett(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
             device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """A triangle.

    >>> import mutagrad as mg
    >>> mg.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _made(_triangle(_points("bartlett", M, dtype, layout), sym), dtype, layout, device, requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
             device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """Three cosines.

    >>> import mutagrad as mg
    >>> mg.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    points = _points("blackman", M, dtype, layout)
    return _made(_cosines(points, (0.42, 0.5, 0.08), sym), dtype, layout, device, requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
           device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """Half a wave.

    >>> import mutagrad as mg
    >>> mg.signal.windows.cosine(5)
    tensor([0.3090, 0.8090, 1.0000, 0.8090, 0.3090])
    """
    M = _points("cosine", M, dtype, layout)
    angles = pi / (M + (not sym and M > 1) or 1) * (np.arange(M) + 0.5)
    return _made(np.sin(angles), dtype, layout, device, requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: DType | None = None,
                layout: Layout | None = None, device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """Decay to both sides of the centre, by a factor of e every `tau` points.

    >>> import mutagrad as mg
    >>> mg.signal.windows.exponential(5)
    tensor([0.1353, 0.3679, 1.0000, 0.3679, 0.1353])
    """
    M = _points("exponential", M, dtype, layout)
    tau, center = _positive("exponential", "tau", tau), number(center)
    if sym and center is not None:
        raise BadValue("exponential: a symmetric window has its centre in the middle",
                       fix="sym=False, or leave center out")
    middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
    return _made(_decay(M, middle, tau), dtype, layout, device, requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
             device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """A bell curve.

    >>> import mutagrad as mg
    >>> mg.signal.windows.gaussian(5)
    tensor([0.1353, 0.6065, 1.0000, 0.6065, 0.1353])
    """
    M = _points("gaussian", M, dtype, layout)
    std = _positive("gaussian", "std", std)
    return _made(_bell(M, (M if not sym and M > 1 else M - 1) / 2, std), dtype, layout, device, requires_grad)


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: DType | None = None,
                   layout: Layout | None = None, device: Device | str | None = None,
                   requires_grad: bool = False) -> Any:
    """As many cosines as there are coefficients, with alternating signs.

    >>> import mutagrad as mg
    >>> mg.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    M = _points("general_cosine", M, dtype, layout)
    if not isinstance(a, Iterable):
        raise BadArgument(f"general_cosine: the coefficients must be a list, not {type(a).__name__}",
                          fix="a=[0.5, 0.5]")
    coefficients = list(a)
    if not coefficients:
        raise BadValue("general_cosine: there must be at least one coefficient", fix="a=[0.5, 0.5]")
    return _made(_cosines(M, coefficients, sym), dtype, layout, device, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None,
                    layout: Layout | None = None, device: Device | str | None = None,
                    requires_grad: bool = False) -> Any:
    """One cosine on a pedestal.

    >>> import mutagrad as mg
    >>> mg.signal.windows.general_hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    window = _cosines(_points("general_hamming", M, dtype, layout), (alpha, 1 - number(alpha)), sym)
    return _made(window, dtype, layout, device, requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
            device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """One cosine on a pedestal of 0.08.

    >>> import mutagrad as mg
    >>> mg.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    points = _points("hamming", M, dtype, layout)
    return _made(_cosines(points, (0.54, 0.46), sym), dtype, layout, device, requires_grad)


def hann(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
         device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """One cosine, zero at the ends.

    >>> import mutagrad as mg
    >>> mg.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _made(_cosines(_points("hann", M, dtype, layout), (0.5, 0.5), sym), dtype, layout, device, requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
           device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """Nearly all of its spectrum in the middle; the more the larger `beta`.

    >>> import mutagrad as mg
    >>> mg.signal.windows.kaiser(5)[1:4]
    tensor([0.2157, 1.0000, 0.2157])
    """
    M = _points("kaiser", M, dtype, layout)
    if beta < 0:
        raise BadValue(f"kaiser: beta must not be negative, got {beta}", fix="beta=12.0")
    return _made(_kaiser(M, beta, sym), dtype, layout, device, requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: DType | None = None, layout: Layout | None = None,
            device: Device | str | None = None, requires_grad: bool = False) -> Any:
    """Four cosines.

    >>> import mutagrad as mg
    >>> mg.signal.windows.nuttall(5)[1:4]
    tensor([0.2270, 1.0000, 0.2270])
    """
    points = _points("nuttall", M, dtype, layout)
    factors = 0.3635819, 0.4891775, 0.1365995, 0.0106411
    return _made(_cosines(points, factors, sym), dtype, layout, device, requires_grad)


# ------------------------------------------------------------------------------------------------------------- mutagrad

def _length(name: str, window_length: int, dtype: DType | None) -> int:
    if dtype is not None and not (as_dtype(dtype).is_floating_point or as_dtype(dtype).is_complex):
        raise DTypeError(f"{name}: a window needs a floating point type, not {as_dtype(dtype).name}",
                         fix="dtype=mutagrad.float32")
    return _points(name, window_length, None)


@may_need_much
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None,
                    layout: Layout | None = None, device: Device | str | None = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Any:
    """A triangle.

    >>> import mutagrad as mg
    >>> mg.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    M = _length("bartlett_window", window_length, dtype)
    return _made(_triangle(M, not periodic), dtype, layout, device, requires_grad, pin_memory)


@may_need_much
def blackman_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None,
                    layout: Layout | None = None, device: Device | str | None = None, pin_memory: bool = False,
                    requires_grad: bool = False) -> Any:
    """Three cosines.

    >>> import mutagrad as mg
    >>> mg.blackman_window(4)[1:]
    tensor([0.3400, 1.0000, 0.3400])
    """
    M = _length("blackman_window", window_length, dtype)
    return _made(_cosines(M, (0.42, 0.5, 0.08), not periodic), dtype, layout, device, requires_grad, pin_memory)


@may_need_much
def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46,
                   *, dtype: DType | None = None, layout: Layout | None = None, device: Device | str | None = None,
                   pin_memory: bool = False, requires_grad: bool = False) -> Any:
    """alpha - beta cos(t), for t once round.

    >>> import mutagrad as mg
    >>> mg.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    M = _length("hamming_window", window_length, dtype)
    return _made(_cosines(M, (alpha, beta), not periodic), dtype, layout, device, requires_grad, pin_memory)


@may_need_much
def hann_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None, layout: Layout | None = None,
                device: Device | str | None = None, pin_memory: bool = False, requires_grad: bool = False) -> Any:
    """One cosine, zero at the ends.

    >>> import mutagrad as mg
    >>> mg.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    M = _length("hann_window", window_length, dtype)
    return _made(_cosines(M, (0.5, 0.5), not periodic), dtype, layout, device, requires_grad, pin_memory)


@may_need_much
def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None,
                  layout: Layout | None = None, device: Device | str | None = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Any:
    """Nearly all of its spectrum in the middle; the more the larger `beta`.

    >>> import mutagrad as mg
    >>> mg.kaiser_window(4).shape
    mutagrad.Size([4])
    """
    M = _length("kaiser_window", window_length, dtype)
    return _made(_kaiser(M, beta, not periodic), dtype, layout, device, requires_grad, pin_memory)
