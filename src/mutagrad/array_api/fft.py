"""The standard's Fourier transforms: the extension `fft`."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.device import check_device, device
from ..core.dtypes import dtype
from ..ops.math import fourier as ops
from ..ops.shape.shape import tensor_argument
from ..tensors.tensor import Tensor
from .elementwise import named

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft", "rfftfreq", "rfftn"]


def along_axis(name: str, operation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a transform along one axis."""
    def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return operation(tensor_argument(x, name), n, axis, norm)

    return named(function, name, f"The standard's `{name}`: a transform along one axis.")


def along_axes(name: str, operation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a transform along several axes."""
    def function(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
                 norm: str = "backward") -> Tensor:
        return operation(tensor_argument(x, name), s, axes, norm)

    return named(function, name, f"The standard's `{name}`: a transform along several axes.")


fft, ifft = along_axis("fft", ops.fft), along_axis("ifft", ops.ifft)
rfft, irfft = along_axis("rfft", ops.rfft), along_axis("irfft", ops.irfft)
hfft, ihfft = along_axis("hfft", ops.hfft), along_axis("ihfft", ops.ihfft)
fftn, ifftn = along_axes("fftn", ops.fftn), along_axes("ifftn", ops.ifftn)
rfftn, irfftn = along_axes("rfftn", ops.rfftn), along_axes("irfftn", ops.irfftn)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return the frequencies of `fft`'s results, for n samples at a distance of d."""
    check_device(device)
    return ops.fftfreq(n, d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """Return the frequencies of `rfft`'s results, for n samples at a distance of d."""
    check_device(device)
    return ops.rfftfreq(n, d, dtype=dtype)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency zero to the middle."""
    return ops.fftshift(tensor_argument(x, "fftshift"), axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Move the frequency zero back to the front."""
    return ops.ifftshift(tensor_argument(x, "ifftshift"), axes)
