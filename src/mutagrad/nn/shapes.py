"""Layers that rearrange, resize or surround, and two distances."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.errors import BadArgument, BadValue
from ..tensors.tensor import Tensor
from . import functional as F
from .common import check_count, described, each_dim
from .module import Module

if TYPE_CHECKING:
    from .common_types import _ratio_any_t, _size_any_t

__all__ = [
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "CosineSimilarity", "Flatten", "Fold", "PairwiseDistance", "PixelShuffle", "PixelUnshuffle",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d",
    "ZeroPad2d", "ZeroPad3d"]


class Flatten(Module):
    """Several dimensions as one: by default all but the first.

    >>> import mutagrad as mg
    >>> mg.nn.Flatten()(mg.ones(2, 3, 4)).shape
    mutagrad.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return described(self, "start_dim", "end_dim")


class Unflatten(Module):
    """One dimension as several.

    >>> import mutagrad as mg
    >>> mg.nn.Unflatten(1, (2, 3))(mg.zeros(4, 6)).shape
    mutagrad.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if isinstance(dim, str):
            raise BadArgument("Unflatten: dimensions have no names here", fix="Unflatten(1, (2, 5))")
        if not isinstance(unflattened_size, (tuple, list)):
            raise BadArgument("Unflatten: unflattened_size must be a tuple or list, but found type "
                              f"{type(unflattened_size).__name__}", fix="Unflatten(1, (2, 5))")
        for i, n in enumerate(unflattened_size):
            if not hasattr(n, "__index__"):
                raise BadArgument("Unflatten: unflattened_size must be tuple of ints, but found element of type "
                                  f"{type(n).__name__} at pos {i}", fix="Unflatten(1, (2, 5))")
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return described(self, "dim", "unflattened_size")


# ---------------------------------------------------------------------------------------------------------------- sizes

class Upsample(Module):
    """Images, sequences or volumes in another size.

    >>> import mutagrad as mg
    >>> mg.nn.Upsample(scale_factor=2)(mg.zeros(1, 1, 2, 2)).shape
    mutagrad.Size([1, 1, 4, 4])
    """

    def __init__(self, size: _size_any_t | None = None, scale_factor: _ratio_any_t | None = None,
                 mode: str = "nearest", align_corners: bool | None = None,
                 recompute_scale_factor: bool | None = None) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners,
                             self.recompute_scale_factor)

    def extra_repr(self) -> str:
        return described(self, "size" if self.scale_factor is None else "scale_factor") + f", mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images in another size, by repeating pixels.

    >>> import mutagrad as mg
    >>> mg.nn.UpsamplingNearest2d(scale_factor=2)(mg.tensor([[[[1., 2.]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: _size_any_t | None = None, scale_factor: _ratio_any_t | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images in another size, with straight lines between pixels and the corners in their places.

    >>> import mutagrad as mg
    >>> mg.nn.UpsamplingBilinear2d(scale_factor=2)(mg.zeros(1, 1, 2, 2)).shape
    mutagrad.Size([1, 1, 4, 4])
    """

    def __init__(self, size: _size_any_t | None = None, scale_factor: _ratio_any_t | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels turned into pixels: an image larger by a factor each way.

    >>> import mutagrad as mg
    >>> mg.nn.PixelShuffle(2)(mg.zeros(1, 4, 2, 2)).shape
    mutagrad.Size([1, 1, 4, 4])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return described(self, "upscale_factor")


class PixelUnshuffle(Module):
    """Pixels turned into channels: an image smaller by a factor each way.

    >>> import mutagrad as mg
    >>> mg.nn.PixelUnshuffle(2)(mg.zeros(1, 1, 4, 4)).shape
    mutagrad.Size([1, 4, 2, 2])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return described(self, "downscale_factor")


class ChannelShuffle(Module):
    """The channels of several groups dealt out in turn.

    >>> import mutagrad as mg
    >>> mg.nn.ChannelShuffle(2)(mg.arange(4.).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = check_count(self, "groups", groups, 1)

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return described(self, "groups")


class Unfold(Module):
    """The windows of an image as columns.

    >>> import mutagrad as mg
    >>> mg.nn.Unfold(kernel_size=2)(mg.zeros(1, 1, 3, 3)).shape
    mutagrad.Size([1, 4, 4])
    """

    def __init__(self, kernel_size: _size_any_t, dilation: _size_any_t = 1, padding: _size_any_t = 0,
                 stride: _size_any_t = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "dilation", "padding", "stride")


class Fold(Module):
    """Columns added up into an image where they came from.

    >>> import mutagrad as mg
    >>> mg.nn.Fold((3, 3), kernel_size=2)(mg.ones(1, 4, 4))[0, 0]
    tensor([[1., 2., 1.],
            [2., 4., 2.],
            [1., 2., 1.]])
    """

    def __init__(self, output_size: _size_any_t, kernel_size: _size_any_t, dilation: _size_any_t = 1,
                 padding: _size_any_t = 0, stride: _size_any_t = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return described(self, "output_size", "kernel_size", "dilation", "padding", "stride")


# -------------------------------------------------------------------------------------------------------------- borders

class _Pad(Module):
    """`padding` is one number, or before and after for each dimension, the last dimension first."""

    dims: ClassVar[int]
    mode: ClassVar[str]

    def __init_subclass__(cls, dims: int = 0, mode: str = "") -> None:
        cls.dims = dims or getattr(cls, "dims", 0)
        cls.mode = mode or getattr(cls, "mode", "")

    def __init__(self, padding: _size_any_t) -> None:
        super().__init__()
        numbers: Any = each_dim(self, "padding", padding, 2 * self.dims, -(1 << 62))
        self.padding = numbers

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad, mode="constant"):
    def __init__(self, padding: _size_any_t, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return described(self, "padding", "value")


class ConstantPad1d(_ConstantPad, dims=1):
    """`value` before and after sequences.

    >>> import mutagrad as mg
    >>> mg.nn.ConstantPad1d(1, 5.)(mg.tensor([[1., 2., 3.]]))
    tensor([[5., 1., 2., 3., 5.]])
    """


class ConstantPad2d(_ConstantPad, dims=2):
    """`value` around images.

    >>> import mutagrad as mg
    >>> mg.nn.ConstantPad2d(1, 5.)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10])
    """


class ConstantPad3d(_ConstantPad, dims=3):
    """`value` around volumes.

    >>> import mutagrad as mg
    >>> mg.nn.ConstantPad3d(1, 5.)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10, 10])
    """


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: _size_any_t) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ZeroPad1d(_ZeroPad, dims=1):
    """Zeros before and after sequences.

    >>> import mutagrad as mg
    >>> mg.nn.ZeroPad1d(1)(mg.tensor([[1., 2., 3.]]))
    tensor([[0., 1., 2., 3., 0.]])
    """


class ZeroPad2d(_ZeroPad, dims=2):
    """Zeros around images.

    >>> import mutagrad as mg
    >>> mg.nn.ZeroPad2d(1)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10])
    """


class ZeroPad3d(_ZeroPad, dims=3):
    """Zeros around volumes.

    >>> import mutagrad as mg
    >>> mg.nn.ZeroPad3d(1)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10, 10])
    """


class ReflectionPad1d(_Pad, dims=1, mode="reflect"):
    """Sequences mirrored at their ends.

    >>> import mutagrad as mg
    >>> mg.nn.ReflectionPad1d(1)(mg.tensor([[1., 2., 3.]]))
    tensor([[2., 1., 2., 3., 2.]])
    """


class ReflectionPad2d(_Pad, dims=2, mode="reflect"):
    """Images mirrored at their borders.

    >>> import mutagrad as mg
    >>> mg.nn.ReflectionPad2d(1)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10])
    """


class ReflectionPad3d(_Pad, dims=3, mode="reflect"):
    """Volumes mirrored at their borders.

    >>> import mutagrad as mg
    >>> mg.nn.ReflectionPad3d(1)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10, 10])
    """


class ReplicationPad1d(_Pad, dims=1, mode="replicate"):
    """The first and last elements of sequences repeated.

    >>> import mutagrad as mg
    >>> mg.nn.ReplicationPad1d(1)(mg.tensor([[1., 2., 3.]]))
    tensor([[1., 1., 2., 3., 3.]])
    """


class ReplicationPad2d(_Pad, dims=2, mode="replicate"):
    """The border of images repeated.

    >>> import mutagrad as mg
    >>> mg.nn.ReplicationPad2d(1)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10])
    """


class ReplicationPad3d(_Pad, dims=3, mode="replicate"):
    """The border of volumes repeated.

    >>> import mutagrad as mg
    >>> mg.nn.ReplicationPad3d(1)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10, 10])
    """


class _CircularPad(_Pad, mode="circular"):
    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise BadValue(f"{type(self).__name__}: expected {self.dims + 1}D or {self.dims + 2}D input "
                           f"(got {input.ndim}D input)", why=f"the shape is {tuple(input.shape)}",
                           fix="channels first: x.unsqueeze(0)")
        return super().forward(input)


class CircularPad1d(_CircularPad, dims=1):
    """Sequences that go on with their other end.

    >>> import mutagrad as mg
    >>> mg.nn.CircularPad1d(1)(mg.tensor([[1., 2., 3.]]))
    tensor([[3., 1., 2., 3., 1.]])
    """


class CircularPad2d(_CircularPad, dims=2):
    """Images that go on with their other side.

    >>> import mutagrad as mg
    >>> mg.nn.CircularPad2d(1)(mg.zeros(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10])
    """


class CircularPad3d(_CircularPad, dims=3):
    """Volumes that go on with their other side.

    >>> import mutagrad as mg
    >>> mg.nn.CircularPad3d(1)(mg.zeros(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 10, 10, 10])
    """


# ------------------------------------------------------------------------------------------------------------ distances

class CosineSimilarity(Module):
    """The cosine of the angle between vectors along a dimension.

    >>> import mutagrad as mg
    >>> mg.nn.CosineSimilarity()(mg.tensor([[1., 0.]]), mg.tensor([[0., 1.]]))
    tensor([0.])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the differences between vectors.

    >>> import mutagrad as mg
    >>> mg.nn.PairwiseDistance()(mg.tensor([[0., 0.]]), mg.tensor([[3., 4.]]))
    tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
