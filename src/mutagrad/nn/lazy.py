"""Layers that learn the number of their inputs from the first one."""
from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.errors import BadValue
from ..base.modes import call_with
from ..core.dtypes import dtype, int64
from ..ops.create.create import tensor
from ..tensors.tensor import Tensor
from .common import check_count
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy

if TYPE_CHECKING:
    from .common_types import DeviceLike, _size_any_t

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear"]


class LazyModuleMixin(Module):
    """A module whose first call gives its parameters their shapes; from then on it is of the class `cls_to_become`."""

    cls_to_become: ClassVar[type[Module] | None] = None

    def has_uninitialized_params(self) -> bool:
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives the parameters their shapes: defined by each kind of layer.

        >>> import mutagrad as mg
        >>> layer = mg.nn.LazyLinear(3)
        >>> layer.initialize_parameters(mg.zeros(1, 2))
        >>> layer.weight.shape
        mutagrad.Size([3, 2])
        """
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        call_with({"kind": None}, self.initialize_parameters, *inputs, **settings)  # for all slices, inside vmap
        if self.has_uninitialized_params():
            raise BadValue(f"{self._get_name()}: initialize_parameters left parameters without a shape",
                           fix="parameter.materialize(shape) for each")
        if self.cls_to_become is None:
            return super().__call__(*inputs, **settings)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*inputs, **settings)


class _LazyLayer(LazyModuleMixin):
    """The layer that a class is derived from last, without the number of its inputs."""

    def __init_subclass__(cls) -> None:
        layers = (base for base in cls.__mro__ if issubclass(base, Module) and not issubclass(base, LazyModuleMixin))
        cls.cls_to_become = next(layers, None)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self._is_sized():
            super().reset_parameters()  # type: ignore[misc]

    def _is_sized(self) -> bool:
        raise NotImplementedError

    def _without_shapes(self, bias: bool, device: DeviceLike | None, dtype: dtype | None) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def _materialize(self, **shapes: tuple[int, ...]) -> None:
        for name, shape in shapes.items():
            if is_lazy(getattr(self, name)):
                getattr(self, name).materialize(shape)


# --------------------------------------------------------------------------------------------------------------- linear

class LazyLinear(_LazyLayer, Linear):
    """A Linear layer that takes in_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyLinear(2)
    >>> layer(mg.ones(5, 3)).shape, layer
    (mutagrad.Size([5, 2]), Linear(in_features=3, out_features=2, bias=True))
    """

    def __init__(self, out_features: int, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__(0, 0, False)
        self.out_features = check_count(self, "out_features", out_features)
        self._without_shapes(bias, device, dtype)

    def _is_sized(self) -> bool:
        return bool(self.in_features)

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            self.in_features = self.weight.shape[1]
            return
        self.in_features = input.shape[-1]
        self._materialize(weight=(self.out_features, self.in_features), bias=(self.out_features,))
        self.reset_parameters()


# --------------------------------------------------------------------------------------------------------- convolutions

def _channels(module: Module, input: Tensor, dims: int) -> int:
    if input.ndim not in (dims + 1, dims + 2):
        raise BadValue(f"{type(module).__name__}: expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input, "
                       f"got shape {tuple(input.shape)}", fix="channels first: x.unsqueeze(0)")
    return int(input.shape[-dims - 1])


class _LazyConvBase(_LazyLayer):
    """Without channels until the first input comes."""

    def _unsized(self, out_channels: int, bias: bool, device: DeviceLike | None, dtype: dtype | None) -> None:
        self.out_channels = check_count(self, "out_channels", out_channels)
        self._without_shapes(bias, device, dtype)

    def _is_sized(self) -> bool:
        return bool(self.in_channels)

    def initialize_parameters(self: Any, input: Tensor, *more: Any, **settings: Any) -> None:
        if not self.has_uninitialized_params():
            self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups
            return
        channels = _channels(self, input, self.dims)
        if channels % self.groups or self.out_channels % self.groups:
            raise BadValue(f"{type(self).__name__}: {channels} and {self.out_channels} channels are not divisible by "
                           f"groups={self.groups}", fix="groups=1")
        self.in_channels = channels
        self._materialize(weight=self._weight_shape(), bias=(self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvBase):
    def __init__(self, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1,
                 padding: _size_any_t | str = 0, dilation: _size_any_t = 1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._unsized(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A Conv1d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConv1d(4, kernel_size=3)
    >>> layer(mg.zeros(1, 2, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 6]), 2)
    """


class LazyConv2d(_LazyConv, Conv2d):
    """A Conv2d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConv2d(4, kernel_size=3)
    >>> layer(mg.zeros(1, 2, 8, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 6, 6]), 2)
    """


class LazyConv3d(_LazyConv, Conv3d):
    """A Conv3d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConv3d(4, kernel_size=3)
    >>> layer(mg.zeros(1, 2, 8, 8, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 6, 6, 6]), 2)
    """


class _LazyConvTranspose(_LazyConvBase):
    def __init__(self, out_channels: int, kernel_size: _size_any_t, stride: _size_any_t = 1, padding: _size_any_t = 0,
                 output_padding: _size_any_t = 0, groups: int = 1, bias: bool = True, dilation: _size_any_t = 1,
                 padding_mode: str = "zeros", device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self._unsized(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A ConvTranspose1d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConvTranspose1d(4, kernel_size=2)
    >>> layer(mg.zeros(1, 2, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 9]), 2)
    """


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A ConvTranspose2d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConvTranspose2d(4, kernel_size=2)
    >>> layer(mg.zeros(1, 2, 8, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 9, 9]), 2)
    """


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A ConvTranspose3d that takes in_channels from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyConvTranspose3d(4, kernel_size=2)
    >>> layer(mg.zeros(1, 2, 8, 8, 8)).shape, layer.in_channels
    (mutagrad.Size([1, 4, 9, 9, 9]), 2)
    """


# -------------------------------------------------------------------------------------------------------- normalization

class _LazyNorm(_LazyLayer):
    """Without channels until the first input comes."""

    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: DeviceLike | None = None, dtype: dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self._without_shapes(bias, device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def _is_sized(self) -> bool:
        return bool(self.num_features)

    def initialize_parameters(self: Any, input: Tensor) -> None:
        self._check_input_dim(input)
        held = [v for v in (self.weight, self.running_mean) if v is not None]
        if self.has_uninitialized_params() or not held:
            self.num_features = self._features(input)
            self._materialize(**dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,)))
            self.reset_parameters()
        else:
            self.num_features = held[0].shape[0]

    def _features(self, input: Tensor) -> int:
        return int(input.shape[1])


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A BatchNorm1d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyBatchNorm1d()
    >>> layer(mg.randn(1, 2, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8]), 2)
    """


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A BatchNorm2d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyBatchNorm2d()
    >>> layer(mg.randn(1, 2, 8, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8, 8]), 2)
    """


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A BatchNorm3d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyBatchNorm3d()
    >>> layer(mg.randn(1, 2, 8, 8, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8, 8, 8]), 2)
    """


class _LazyInstanceNorm(_LazyNorm):
    def _features(self: Any, input: Tensor) -> int:
        return int(input.shape[1 if input.ndim == max(self.ranks) else 0])


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """An InstanceNorm1d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyInstanceNorm1d()
    >>> layer(mg.randn(1, 2, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8]), 2)
    """


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """An InstanceNorm2d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyInstanceNorm2d()
    >>> layer(mg.randn(1, 2, 8, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8, 8]), 2)
    """


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """An InstanceNorm3d that takes num_features from its first input.

    >>> import mutagrad as mg
    >>> layer = mg.nn.LazyInstanceNorm3d()
    >>> layer(mg.randn(1, 2, 8, 8, 8)).shape, layer.num_features
    (mutagrad.Size([1, 2, 8, 8, 8]), 2)
    """
