"""Weighted sums of features."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.errors import BadValue
from ..core.dtypes import dtype
from ..ops.nn.linear import bilinear, linear
from ..tensors.tensor import Tensor
from . import init
from .common import check_count, make_parameter
from .module import Module

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input, whatever it was made with.

    >>> import mutagrad as mg
    >>> mg.nn.Identity()(mg.tensor([1., 2.]))
    tensor([1., 2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Multiplies the last dimension by a matrix and adds a bias.

    >>> import mutagrad as mg
    >>> layer = mg.nn.Linear(3, 2)
    >>> layer, layer(mg.ones(5, 3)).shape
    (Linear(in_features=3, out_features=2, bias=True), mutagrad.Size([5, 2]))
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        self.in_features = check_count(self, "in_features", in_features)
        self.out_features = check_count(self, "out_features", out_features)
        self.weight = make_parameter((self.out_features, self.in_features), device, dtype)
        self.register_parameter("bias", make_parameter((self.out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values: all within 1 / sqrt(in_features).

        >>> import mutagrad as mg
        >>> _ = mg.manual_seed(0)
        >>> layer = mg.nn.Linear(2, 1)
        >>> before = layer.weight.detach().clone()
        >>> layer.reset_parameters()
        >>> mg.equal(before, layer.weight)
        False
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """A form of two inputs that is linear in each of them.

    >>> import mutagrad as mg
    >>> mg.nn.Bilinear(2, 3, 4)(mg.ones(5, 2), mg.ones(5, 3)).shape
    mutagrad.Size([5, 4])
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.in1_features = check_count(self, "in1_features", in1_features)
        if not self.in1_features:
            raise BadValue("Bilinear: in1_features must be > 0, got 0", fix="in1_features=1")
        self.in2_features = check_count(self, "in2_features", in2_features)
        self.out_features = check_count(self, "out_features", out_features)
        self.weight = make_parameter((self.out_features, self.in1_features, self.in2_features), device, dtype)
        self.register_parameter("bias", make_parameter((self.out_features,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights anew: uniform, within one over the root of the inputs.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Bilinear(4, 3, 2)
        >>> layer.reset_parameters()
        >>> layer.weight.abs().max().item() <= 4 ** -0.5
        True
        """
        bound = 1 / math.sqrt(self.in1_features)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")
