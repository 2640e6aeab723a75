"""Nonlinearities: functions of each element, and a few along a dimension."""
from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar

from ..base.errors import BadSetting, BadValue
from ..core.dtypes import dtype
from ..ops.create.create import full
from ..tensors.tensor import Tensor
from . import functional as F
from .common import check_count, described
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softmax", "Softmax2d",
    "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]


class _Activation(Module):
    """A function without parameters; `shown` names what its repr tells."""

    shown: ClassVar[tuple[str, ...]] = ()
    inplace = False

    def extra_repr(self) -> str:
        texts = [described(self, *self.shown)] if self.shown else []
        return ", ".join(texts + ["inplace=True"] * bool(self.inplace))


class _InPlace(_Activation):
    """A function whose only setting is whether it overwrites its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# ----------------------------------------------------------------------------------------------------- of the relu kind

class ReLU(_InPlace):
    """Zero for what is negative, the rest as it is.

    >>> import mutagrad as mg
    >>> mg.nn.ReLU()(mg.tensor([-2., 0.5, 3.]))
    tensor([0.0000, 0.5000, 3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, self.inplace)


class Hardtanh(_Activation):
    """Cut off below min_val and above max_val.

    >>> import mutagrad as mg
    >>> mg.nn.Hardtanh()(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    shown: ClassVar[tuple[str, ...]] = ("min_val", "max_val")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False,
                 min_value: float | None = None, max_value: float | None = None) -> None:
        super().__init__()
        self.min_val = self._former("min_val", min_val, min_value)
        self.max_val = self._former("max_val", max_val, max_value)
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise BadSetting(f"Hardtanh: max_val={self.max_val} must be larger than min_val={self.min_val}",
                             fix="Hardtanh(-1, 1)")

    @staticmethod
    def _former(name: str, value: float, former: float | None) -> float:
        if former is None:
            return value
        warnings.warn(f"Hardtanh: {name}ue is deprecated: its name is now {name}", FutureWarning, stacklevel=3)
        return former

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """Cut off below 0 and above 6.

    >>> import mutagrad as mg
    >>> mg.nn.ReLU6()(mg.tensor([-2., 0.5, 3.]))
    tensor([0.0000, 0.5000, 3.0000])
    """

    shown = ()

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class LeakyReLU(_Activation):
    """What is negative is multiplied by a small slope.

    >>> import mutagrad as mg
    >>> mg.nn.LeakyReLU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.0200,  0.5000,  3.0000])
    """

    shown = ("negative_slope",)

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class PReLU(Module):
    """What is negative is multiplied by a slope that is trained, one for all or one a channel.

    >>> import mutagrad as mg
    >>> mg.nn.PReLU()(mg.tensor([-2., 0.5, 3.])).detach()
    tensor([-0.5000,  0.5000,  3.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        self.num_parameters, self.init = check_count(self, "num_parameters", num_parameters, 1), init
        self.weight = Parameter(full((self.num_parameters,), float(init), device=device, dtype=dtype))

    def reset_parameters(self) -> None:
        """Sets the slopes to what they were first.

        >>> import mutagrad as mg
        >>> layer = mg.nn.PReLU()
        >>> layer.reset_parameters()
        >>> layer.weight.detach()
        tensor([0.2500])
        """
        self.weight.data.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class RReLU(_Activation):
    """What is negative is multiplied by a slope drawn between lower and upper; outside training, by the middle one.

    >>> import mutagrad as mg
    >>> mg.nn.RReLU().eval()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.4583,  0.5000,  3.0000])
    """

    shown = "lower", "upper"

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Threshold(_Activation):
    """`value` for everything that is not above `threshold`.

    >>> import mutagrad as mg
    >>> mg.nn.Threshold(1., 0.)(mg.tensor([-2., 0.5, 3.]))
    tensor([0., 0., 3.])
    """

    shown = "threshold", "value"

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)


# ---------------------------------------------------------------------------------------------------------- smooth ones

class _Exponential(_Activation):
    """The relu kind with an exponential below zero."""

    shown = ("alpha",)

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace


class ELU(_Exponential):
    """alpha * (exp(x) - 1) for what is negative.

    >>> import mutagrad as mg
    >>> mg.nn.ELU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)


class CELU(_Exponential):
    """alpha * (exp(x / alpha) - 1) for what is negative.

    >>> import mutagrad as mg
    >>> mg.nn.CELU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.8647,  0.5000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InPlace):
    """The exponential kind with the two constants that keep mean and variance.

    >>> import mutagrad as mg
    >>> mg.nn.SELU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.5202,  0.5254,  3.1521])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GELU(Module):
    """x times the probability that a normal number is below x; approximate='tanh' is quicker.

    >>> import mutagrad as mg
    >>> mg.nn.GELU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.0455,  0.3457,  2.9960])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(_InPlace):
    """x * sigmoid(x), also known as swish.

    >>> import mutagrad as mg
    >>> mg.nn.SiLU()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.2384,  0.3112,  2.8577])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """x * tanh(softplus(x)).

    >>> import mutagrad as mg
    >>> mg.nn.Mish()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.2525,  0.3752,  2.9865])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.

    >>> import mutagrad as mg
    >>> mg.nn.Softplus()(mg.tensor([-2., 0.5, 3.]))
    tensor([0.1269, 0.9741, 3.0486])
    """

    shown = "beta", "threshold"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    >>> import mutagrad as mg
    >>> mg.nn.Sigmoid()(mg.tensor([-2., 0.5, 3.]))
    tensor([0.1192, 0.6225, 0.9526])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.sigmoid(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid.

    >>> import mutagrad as mg
    >>> mg.nn.LogSigmoid()(mg.tensor([-2., 0.5, 3.]))
    tensor([-2.1269, -0.4741, -0.0486])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    >>> import mutagrad as mg
    >>> mg.nn.Tanh()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.9640,  0.4621,  0.9951])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


class Softsign(Module):
    """x / (1 + |x|).

    >>> import mutagrad as mg
    >>> mg.nn.Softsign()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.6667,  0.3333,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    >>> import mutagrad as mg
    >>> mg.nn.Tanhshrink()(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.0360,  0.0379,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


# ------------------------------------------------------------------------------------------------------------ in pieces

class Hardsigmoid(_InPlace):
    """Straight lines in place of the sigmoid.

    >>> import mutagrad as mg
    >>> mg.nn.Hardsigmoid()(mg.tensor([-2., 0.5, 3.]))
    tensor([0.1667, 0.5833, 1.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class Hardswish(_InPlace):
    """x times straight lines in place of the sigmoid.

    >>> import mutagrad as mg
    >>> mg.nn.Hardswish()(mg.tensor([-2., 0.5, 3.]))
    tensor([-0.3333,  0.2917,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        return ""


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        return str(self.lambd)


class Hardshrink(_Shrink):
    """Zero between -lambd and lambd, the rest as it is.

    >>> import mutagrad as mg
    >>> mg.nn.Hardshrink()(mg.tensor([-2., 0.5, 3.]))
    tensor([-2.,  0.,  3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """Zero between -lambd and lambd, the rest moved towards zero by lambd.

    >>> import mutagrad as mg
    >>> mg.nn.Softshrink()(mg.tensor([-2., 0.5, 3.]))
    tensor([-1.5000,  0.0000,  2.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


# ---------------------------------------------------------------------------------------------------- along a dimension

class GLU(_Activation):
    """The first half of a dimension times the sigmoid of the second.

    >>> import mutagrad as mg
    >>> mg.nn.GLU()(mg.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """

    shown = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class _AlongDim(_Activation):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongDim):
    """Positive numbers that sum to one along a dimension.

    >>> import mutagrad as mg
    >>> mg.nn.Softmax(dim=0)(mg.tensor([0., 1.]))
    tensor([0.2689, 0.7311])
    """

    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(_AlongDim):
    """The softmax of the negated input.

    >>> import mutagrad as mg
    >>> mg.nn.Softmin(dim=0)(mg.tensor([0., 1.]))
    tensor([0.7311, 0.2689])
    """

    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of the softmax along a dimension.

    >>> import mutagrad as mg
    >>> mg.nn.LogSoftmax(dim=0)(mg.tensor([0., 1.]))
    tensor([-1.3133, -0.3133])
    """

    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """The softmax over the channels of each position of an image.

    >>> import mutagrad as mg
    >>> mg.nn.Softmax2d()(mg.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise BadValue("Softmax2d: expects an image or several, of 3 or 4 dimensions, got shape "
                           f"{tuple(input.shape)}", fix="Softmax(dim)")
        return F.softmax(input, -3)
