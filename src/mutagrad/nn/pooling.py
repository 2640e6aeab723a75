"""Windows that slide over the last dimensions, and one number for each."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import BadValue
from ..tensors.tensor import Tensor
from . import functional as F
from .common import described, each_dim
from .module import Module

if TYPE_CHECKING:
    from .common_types import _ratio_any_t, _size_any_t

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d"]


# -------------------------------------------------------------------------------------------------------------- largest

class _MaxPool(Module):
    """The largest element of each window."""

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0,
                 dilation: _size_any_t = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def _settings(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPool):
    """The largest element of each window of a sequence.

    >>> import mutagrad as mg
    >>> mg.nn.MaxPool1d(2)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 2, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool1d(input, *self._settings())


class MaxPool2d(_MaxPool):
    """The largest element of each window of an image.

    >>> import mutagrad as mg
    >>> mg.nn.MaxPool2d(2)(mg.arange(16.).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool2d(input, *self._settings())


class MaxPool3d(_MaxPool):
    """The largest element of each window of a volume.

    >>> import mutagrad as mg
    >>> mg.nn.MaxPool3d(2)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Any:
        return F.max_pool3d(input, *self._settings())


class _MaxUnpool(Module):
    """The elements that max pooling kept, back in their places, and zeros elsewhere."""

    dims: int

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0) -> None:
        super().__init__()
        self.kernel_size = each_dim(self, "kernel_size", kernel_size, self.dims, 1)
        self.stride = each_dim(self, "stride", kernel_size if stride is None else stride, self.dims, 1)
        self.padding = each_dim(self, "padding", padding, self.dims, 0)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpool):
    """Undoes MaxPool1d, with the indices that it returned.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.MaxPool1d(2, return_indices=True)(mg.ones(1, 2, 8))
    >>> mg.nn.MaxUnpool1d(2)(values, indices).shape
    mutagrad.Size([1, 2, 8])
    """

    dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Undoes MaxPool2d, with the indices that it returned.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.MaxPool2d(2, return_indices=True)(mg.ones(1, 2, 8, 8))
    >>> mg.nn.MaxUnpool2d(2)(values, indices).shape
    mutagrad.Size([1, 2, 8, 8])
    """

    dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Undoes MaxPool3d, with the indices that it returned.

    >>> import mutagrad as mg
    >>> values, indices = mg.nn.MaxPool3d(2, return_indices=True)(mg.ones(1, 2, 8, 8, 8))
    >>> mg.nn.MaxUnpool3d(2)(values, indices).shape
    mutagrad.Size([1, 2, 8, 8, 8])
    """

    dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """The largest elements of windows that lie at random places, so that any ratio of sizes is possible."""

    dims: int

    def __init__(self, kernel_size: _size_any_t, output_size: _size_any_t | None = None,
                 output_ratio: _ratio_any_t | None = None, return_indices: bool = False,
                 _random_samples: Tensor | None = None) -> None:
        super().__init__()
        name = type(self).__name__
        if (output_size is None) == (output_ratio is None):
            raise BadValue(f"{name}: needs one of output_size and output_ratio",
                           fix=f"{name}({kernel_size!r}, output_ratio=0.5)")
        self.kernel_size = each_dim(self, "kernel_size", kernel_size, self.dims, 1)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each_dim(self, "output_size", output_size, self.dims, 1)
        given = output_ratio is None or isinstance(output_ratio, (tuple, list))
        ratios: Any = output_ratio if given else (output_ratio,) * self.dims
        if ratios is not None and (len(ratios) != self.dims or not all(0 < r < 1 for r in ratios)):
            raise BadValue(f"{name}: output_ratio must be between 0 and 1, got {output_ratio!r}",
                           fix="output_ratio=0.5")
        self.output_ratio = None if ratios is None else tuple(ratios)

    def _settings(self) -> tuple[Any, ...]:
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows at random places in an image.

    >>> import mutagrad as mg
    >>> mg.nn.FractionalMaxPool2d(2, output_size=5)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 5, 5])
    """

    dims = 2

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool2d(input, *self._settings())


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows at random places in a volume.

    >>> import mutagrad as mg
    >>> mg.nn.FractionalMaxPool3d(2, output_size=5)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 5, 5, 5])
    """

    dims = 3

    def forward(self, input: Tensor) -> Any:
        return F.fractional_max_pool3d(input, *self._settings())


# ------------------------------------------------------------------------------------------------------ means and norms

class AvgPool1d(Module):
    """The mean of each window of a sequence.

    >>> import mutagrad as mg
    >>> mg.nn.AvgPool1d(2)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 2, 4])
    """

    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = each_dim(self, "kernel_size", kernel_size, 1, 1)
        self.stride = each_dim(self, "stride", kernel_size if stride is None else stride, 1, 1)
        self.padding = each_dim(self, "padding", padding, 1, 0)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


class _AvgPool(Module):
    def __init__(self, kernel_size: _size_any_t, stride: _size_any_t | None = None, padding: _size_any_t = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def _settings(self) -> tuple[Any, ...]:
        return (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                self.divisor_override)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


class AvgPool2d(_AvgPool):
    """The mean of each window of an image.

    >>> import mutagrad as mg
    >>> mg.nn.AvgPool2d(2)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(input, *self._settings())


class AvgPool3d(_AvgPool):
    """The mean of each window of a volume.

    >>> import mutagrad as mg
    >>> mg.nn.AvgPool3d(2)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(input, *self._settings())


class _LPPool(Module):
    def __init__(self, norm_type: float, kernel_size: _size_any_t, stride: _size_any_t | None = None,
                 ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def extra_repr(self) -> str:
        return described(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPool):
    """The norm of each window of a sequence.

    >>> import mutagrad as mg
    >>> mg.nn.LPPool1d(2, 2)(mg.ones(1, 2, 8)).shape
    mutagrad.Size([1, 2, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """The norm of each window of an image.

    >>> import mutagrad as mg
    >>> mg.nn.LPPool2d(2, 2)(mg.ones(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPool):
    """The norm of each window of a volume.

    >>> import mutagrad as mg
    >>> mg.nn.LPPool3d(2, 2)(mg.ones(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


# -------------------------------------------------------------------------------------------- by the size of the result

class _AdaptivePool(Module):
    def __init__(self, output_size: int | Sequence[int | None]) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return described(self, "output_size")


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means of as many windows as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveAvgPool1d(3)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means of as many windows of an image as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveAvgPool2d(3)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means of as many windows of a volume as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveAvgPool3d(3)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 3, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)


class _AdaptiveMaxPool(_AdaptivePool):
    def __init__(self, output_size: int | Sequence[int | None], return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of as many windows as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveMaxPool1d(3)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 2, 3])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of as many windows of an image as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveMaxPool2d(3)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of as many windows of a volume as the result has elements.

    >>> import mutagrad as mg
    >>> mg.nn.AdaptiveMaxPool3d(3)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 3, 3, 3])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)
