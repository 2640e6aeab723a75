"""Layers that bring means to zero and deviations to one."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..arrays.kinds import is_replayed, is_spread
from ..base.errors import BadValue, NotSupported
from ..core.dtypes import dtype, int64
from ..distributed import get_world_size, is_initialized
from ..ops.create.create import ones, tensor, zeros, zeros_like
from ..tensors.tensor import Tensor
from . import functional as F, init
from .common import check_count, check_divides, described, make_parameter
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
    "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm"]


# ---------------------------------------------------------------------------------------------- with running statistics

class _ChannelNorm(Module):
    """A scale and a shift for each channel, and the mean and variance that training has seen."""

    _version = 2
    ranks: ClassVar[tuple[int, ...]]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any
    weight: Parameter | None
    bias: Parameter | None

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool,
                 device: DeviceLike | None, dtype: dtype | None, bias: bool) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = check_count(self, "num_features", num_features), eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        shape = (self.num_features,)
        self.register_parameter("weight", make_parameter(shape, device, dtype) if affine else None)
        self.register_parameter("bias", make_parameter(shape, device, dtype) if affine and bias else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", zeros(shape, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("running_var", ones(shape, device=device, dtype=dtype) if tracks else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if tracks else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what training has seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            raise BadValue(f"expected {' or '.join(f'{n}D' for n in self.ranks)} input (got {input.ndim}D input)",
                           why=f"{type(self).__name__} was given shape {tuple(input.shape)}",
                           fix=f"{self._kind()}{max(input.ndim - 2, 1)}d, or x.unsqueeze(0)")

    def _kind(self) -> str:
        return type(self).__name__[:-2]

    def extra_repr(self) -> str:
        return (f"{self.num_features}, " + described(self, "eps", "momentum", "affine")
                + f", bias={self.bias is not None}, " + described(self, "track_running_stats"))

    def _complete_state(self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
        """Before version 2 batches were not counted."""
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            counted = self.num_batches_tracked
            state_dict[key] = tensor(0, dtype=int64) if counted is None or counted.is_meta else counted.clone()


class _BatchNorm(_ChannelNorm):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: DeviceLike | None = None, dtype: dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        counts = self.training and self.track_running_stats and self.num_batches_tracked is not None
        momentum = self.momentum
        if momentum is None and counts and is_replayed():
            return self._averaging(input)
        if momentum is None:  # the plain mean of all batches
            momentum = 1 / (int(self.num_batches_tracked) + 1) if counts else 0.0
        of_batch = self.training or self.running_mean is None and self.running_var is None
        follows = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if follows else (None, None)
        out = F.batch_norm(input, mean, var, self.weight, self.bias, of_batch, momentum, self.eps)
        if counts:
            self.num_batches_tracked.add_(1)
        return out

    def _averaging(self, input: Tensor) -> Tensor:
        """With running values that are the mean of all batches, where how many there were is not known in Python."""
        mean, var = zeros_like(self.running_mean), zeros_like(self.running_var)
        out = F.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
        self.num_batches_tracked.add_(1)
        for running, value in ((self.running_mean, mean), (self.running_var, var)):
            running.add_((value - running) / self.num_batches_tracked)
        return out


class BatchNorm1d(_BatchNorm):
    """Each feature, or each channel of sequences, brought to mean 0 and variance 1 over the batch.

    >>> import mutagrad as mg
    >>> norm = mg.nn.BatchNorm1d(2)
    >>> norm(mg.tensor([[1., 10.], [3., 30.]])).round(decimals=2).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> norm.running_mean
    tensor([0.2000, 2.0000])
    """

    ranks = 2, 3


class BatchNorm2d(_BatchNorm):
    """Each channel of images brought to mean 0 and variance 1 over the batch.

    >>> import mutagrad as mg
    >>> mg.nn.BatchNorm2d(2)(mg.randn(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Each channel of volumes brought to mean 0 and variance 1 over the batch.

    >>> import mutagrad as mg
    >>> mg.nn.BatchNorm3d(2)(mg.randn(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8, 8])
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over a group of one process; over a mesh of devices, every one is that of the whole batch.

    >>> import mutagrad as mg
    >>> mg.nn.SyncBatchNorm(2)(mg.randn(3, 2)).shape
    mutagrad.Size([3, 2])
    """

    ranks = 2, 3, 4, 5

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, process_group: Any = None, device: DeviceLike | None = None,
                 dtype: dtype | None = None, *, bias: bool = True) -> None:
        if process_group is not None:
            raise NotSupported("SyncBatchNorm: there is one process only, and no groups of them",
                               fix="process_group=None")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        if self.training and is_initialized() and get_world_size() > 1 and not is_spread(input._array):
            raise NotSupported(f"SyncBatchNorm: there are {get_world_size()} processes",
                               why="statistics are not exchanged between them in eager mode",
                               fix="distribute_module(model, mesh) over a mesh of all processes")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return the model with a SyncBatchNorm for every batch norm, with the same parameters and statistics.

        >>> import mutagrad as mg
        >>> mg.nn.SyncBatchNorm.convert_sync_batchnorm(mg.nn.Sequential(mg.nn.BatchNorm1d(2)))
        Sequential(
          (0): SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        )
        """
        made: Any = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats,
                       process_group)
            made._parameters, made._buffers = dict(module._parameters), dict(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made  # type: ignore[no-any-return]


class _InstanceNorm(_ChannelNorm):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: DeviceLike | None = None, dtype: dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.ndim != self._get_no_batch_dim()
        self._check_channels(input, 1 if batched else 0)
        out = F.instance_norm(input if batched else input.unsqueeze(0), self.running_mean, self.running_var,
                              self.weight, self.bias, self.training or not self.track_running_stats,
                              self.momentum or 0.0, self.eps)
        return out if batched else out.squeeze(0)

    def _get_no_batch_dim(self) -> int:
        """How many dimensions an input without a batch has."""
        return min(self.ranks)

    def _check_channels(self, input: Tensor, dim: int) -> None:
        if input.shape[dim] == self.num_features:
            return
        text = (f"{type(self).__name__}: expected input's size at dim={dim} to match num_features "
                f"({self.num_features}), got shape {tuple(input.shape)}")
        if self.affine:
            raise BadValue(text, why="there is a scale for each channel",
                           fix=f"{type(self).__name__}({input.shape[dim]})")
        warnings.warn(text + ", which is not used because affine=False", stacklevel=3)


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sequence brought to mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.nn.InstanceNorm1d(2)(mg.randn(1, 2, 8)).shape
    mutagrad.Size([1, 2, 8])
    """

    ranks = 2, 3


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each image brought to mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.nn.InstanceNorm2d(2)(mg.randn(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8])
    """

    ranks = 3, 4


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each volume brought to mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.nn.InstanceNorm3d(2)(mg.randn(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8, 8])
    """

    ranks = 4, 5


# --------------------------------------------------------------------------------------------------------- of each item

class _Affine(Module):
    """Scales and shifts what it has normalized."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_parameters(self, shape: tuple[int, ...], affine: bool, bias: bool, device: DeviceLike | None,
                         dtype: dtype | None) -> None:
        self.register_parameter("weight", make_parameter(shape, device, dtype) if affine else None)
        self.register_parameter("bias", make_parameter(shape, device, dtype) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class GroupNorm(_Affine):
    """Groups of channels of each item brought to mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.nn.GroupNorm(2, 4)(mg.randn(3, 4)).shape
    mutagrad.Size([3, 4])
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: DeviceLike | None = None, dtype: dtype | None = None, *, bias: bool = True) -> None:
        super().__init__()
        self.num_groups = check_count(self, "num_groups", num_groups, 1)
        self.num_channels = check_count(self, "num_channels", num_channels)
        check_divides(self, "num_groups", "num_channels")
        self.eps, self.affine = eps, affine
        self._make_parameters((self.num_channels,), affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        settings = described(self, "eps", "affine")
        return f"{self.num_groups}, {self.num_channels}, {settings}, bias={self.bias is not None}"


def _shape(module: Module, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(check_count(module, "normalized_shape", n) for n in sizes)


class LayerNorm(_Affine):
    """The last dimensions of each item brought to mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> mg.nn.LayerNorm(2)(mg.tensor([[1., 3.], [10., 30.]])).round(decimals=2).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape = _shape(self, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._make_parameters(self.normalized_shape, elementwise_affine, bias, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        settings = described(self, "eps", "elementwise_affine")
        return f"{self.normalized_shape}, {settings}, bias={self.bias is not None}"


class RMSNorm(Module):
    """The last dimensions of each item divided by their root mean square.

    >>> import mutagrad as mg
    >>> mg.nn.RMSNorm(2)(mg.tensor([[3., 4.]])).detach()
    tensor([[0.8485, 1.1314]])
    """

    weight: Parameter | None

    def __init__(self, normalized_shape: int | Sequence[int], eps: float | None = None,
                 elementwise_affine: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape = _shape(self, normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        weight = make_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the factors to one.

        >>> import mutagrad as mg
        >>> layer = mg.nn.RMSNorm(2)
        >>> layer.reset_parameters()
        >>> layer.weight.detach()
        tensor([1., 1.])
        """
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, " + described(self, "eps", "elementwise_affine")


class LocalResponseNorm(Module):
    """Each element divided by a power of its neighbours' mean square, over channels.

    >>> import mutagrad as mg
    >>> mg.nn.LocalResponseNorm(2)(mg.ones(1, 4, 3)).shape
    mutagrad.Size([1, 4, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = check_count(self, "size", size, 1), alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, " + described(self, "alpha", "beta", "k")
