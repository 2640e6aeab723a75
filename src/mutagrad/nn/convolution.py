"""Convolutions, and their transposes."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.errors import BadValue
from ..core.dtypes import dtype
from ..tensors.tensor import Tensor
from . import functional as F, init
from .common import check_count, check_divides, described, each_dim, make_parameter
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from .common_types import DeviceLike, _size_any_t

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = "zeros", "reflect", "replicate", "circular"


class _ConvNd(Module):
    """What all have: a kernel for each pair of an input and an output channel of the same group."""

    dims: ClassVar[int]
    transposed: ClassVar[bool] = False
    in_channels: int
    bias: Parameter | None

    def _set_up(self, in_channels: int, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t,
                dilation: _size_any_t, groups: int, padding_mode: str) -> None:
        self.in_channels = check_count(self, "in_channels", in_channels)
        self.out_channels = check_count(self, "out_channels", out_channels)
        self.kernel_size = each_dim(self, "kernel_size", kernel_size, self.dims, 1)
        self.stride = each_dim(self, "stride", stride, self.dims, -(1 << 62))
        self.dilation = each_dim(self, "dilation", dilation, self.dims, 1)
        if groups <= 0:
            raise BadValue(f"{type(self).__name__}: groups must be a positive integer, got {groups}", fix="groups=1")
        self.groups = check_count(self, "groups", groups)
        check_divides(self, "groups", "in_channels")
        check_divides(self, "groups", "out_channels")
        if padding_mode not in _PADDING_MODES:
            raise BadValue(f"{type(self).__name__}: padding_mode must be one of {_PADDING_MODES}, got {padding_mode!r}",
                           fix="padding_mode='zeros'")
        self.padding_mode = padding_mode

    def _make_parameters(self, bias: bool, device: DeviceLike | None, dtype: dtype | None) -> None:
        self.weight = make_parameter(self._weight_shape(), device, dtype)
        self.register_parameter("bias", make_parameter((self.out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        channels = self.out_channels, self.in_channels
        first, second = channels[::-1] if self.transposed else channels
        return first, second // self.groups, *self.kernel_size

    def reset_parameters(self) -> None:
        """Draws new values: all within 1 / sqrt(number of inputs of an output)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, " + described(self, "kernel_size", "stride")
        ones, zeros = (1,) * self.dims, (0,) * self.dims
        for name, usual in (("padding", zeros), ("dilation", ones), ("output_padding", zeros), ("groups", 1)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        text += ", bias=False" * (self.bias is None)
        return text + f", padding_mode={self.padding_mode}" * (self.padding_mode != "zeros")


# ------------------------------------------------------------------------------------------------------------- forwards

class _ConvForward(_ConvNd):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1,
                 padding: _size_any_t | str = 0, dilation: _size_any_t = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups, padding_mode)
        self.padding = self._checked_padding(padding)
        self.output_padding = (0,) * self.dims
        self._make_parameters(bias, device, dtype)

    def _checked_padding(self, padding: _size_any_t | str) -> str | tuple[int, ...]:
        if not isinstance(padding, str):
            return each_dim(self, "padding", padding, self.dims, 0)
        name = type(self).__name__
        if padding not in ("same", "valid"):
            raise BadValue(f"{name}: Invalid padding string {padding!r}, should be one of 'same' and 'valid'",
                           fix="padding='same'")
        if padding == "same" and self.stride != (1,) * self.dims:
            raise BadValue(f"{name}: padding='same' needs stride 1, got {self.stride}",
                           why="the result has fewer positions otherwise", fix="stride=1")
        return padding

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """Before and after, last dimension first, as `pad` takes it."""
        if self.padding == "valid":
            return [0] * 2 * self.dims
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [n for total in reversed(totals) for n in (total // 2, total - total // 2)]
        return [n for n in reversed(self.padding) for _ in range(2)]  # type: ignore[misc]

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return type(self).function(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ConvForward):
    """A convolution over sequences of channels.

    >>> import mutagrad as mg
    >>> mg.nn.Conv1d(2, 4, kernel_size=3)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 4, 6])
    """

    dims, function = 1, F.conv1d


class Conv2d(_ConvForward):
    """A convolution over images.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Conv2d(3, 8, kernel_size=3, padding=1)
    >>> layer
    Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    >>> layer(mg.ones(2, 3, 10, 10)).shape
    mutagrad.Size([2, 8, 10, 10])
    """

    dims, function = 2, F.conv2d


class Conv3d(_ConvForward):
    """A convolution over volumes.

    >>> import mutagrad as mg
    >>> mg.nn.Conv3d(2, 4, kernel_size=3)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 4, 6, 6, 6])
    """

    dims, function = 3, F.conv3d


# ----------------------------------------------------------------------------------------------------------- transposed

class _ConvTranspose(_ConvNd):
    function: ClassVar[Callable[..., Any]]
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1,
                 padding: _size_any_t = 0, output_padding: _size_any_t = 0, groups: int = 1, bias: bool = True,
                 dilation: _size_any_t = 1, padding_mode: str = "zeros", device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        self._set_up(in_channels, out_channels, kernel_size, stride, dilation, groups, padding_mode)
        if padding_mode != "zeros":
            raise BadValue(f"{type(self).__name__}: only padding_mode='zeros' is supported, got {padding_mode!r}",
                           fix="padding_mode='zeros'")
        self.padding = each_dim(self, "padding", padding, self.dims, 0)
        self.output_padding = each_dim(self, "output_padding", output_padding, self.dims, 0)
        self._make_parameters(bias, device, dtype)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        missing = self.output_padding if output_size is None else self._missing(input, output_size)
        return type(self).function(input, self.weight, self.bias, self.stride, self.padding, missing, self.groups,
                                   self.dilation)

    def _missing(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return what must be added for a result of this size: with a stride, several sizes lead to one."""
        wanted = tuple(output_size)
        if len(wanted) not in (self.dims, input.ndim):
            raise BadValue(f"{type(self).__name__}: output_size={wanted} must have {self.dims} or {input.ndim} "
                           "elements", fix=f"output_size={(9,) * self.dims}")
        wanted = wanted[-self.dims:]
        sizes = zip(input.shape[-self.dims:], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in sizes]
        if not all(low <= size < low + s for low, size, s in zip(least, wanted, self.stride)):
            most = [low + s - 1 for low, s in zip(least, self.stride)]
            raise BadValue(f"{type(self).__name__}: output_size={wanted} is out of reach for an input of shape "
                           f"{tuple(input.shape)}", why=f"possible are {least} to {most}",
                           fix=f"output_size={tuple(least)}")
        return tuple(size - low for size, low in zip(wanted, least))


class ConvTranspose1d(_ConvTranspose):
    """The transpose of a convolution over sequences: from few positions to many.

    >>> import mutagrad as mg
    >>> mg.nn.ConvTranspose1d(2, 4, kernel_size=2, stride=2)(mg.zeros(1, 2, 8)).shape
    mutagrad.Size([1, 4, 16])
    """

    dims, function = 1, F.conv_transpose1d


class ConvTranspose2d(_ConvTranspose):
    """The transpose of a convolution over images: from few positions to many.

    >>> import mutagrad as mg
    >>> mg.nn.ConvTranspose2d(2, 4, kernel_size=2, stride=2)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 4, 16, 16])
    """

    dims, function = 2, F.conv_transpose2d


class ConvTranspose3d(_ConvTranspose):
    """The transpose of a convolution over volumes: from few positions to many.

    >>> import mutagrad as mg
    >>> mg.nn.ConvTranspose3d(2, 4, kernel_size=2, stride=2)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 4, 16, 16, 16])
    """

    dims, function = 3, F.conv_transpose3d
