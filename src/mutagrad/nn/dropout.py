"""Random zeros in training; outside it, nothing."""
from __future__ import annotations

from ..base.errors import BadValue
from ..tensors.tensor import Tensor
from . import functional as F
from .common import described
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise BadValue(f"{type(self).__name__}: dropout probability has to be between 0 and 1, got {p}",
                           fix=f"{type(self).__name__}(0.5)")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return described(self, "p", "inplace")


class Dropout(_DropoutNd):
    """Each element is zero with probability p; the others grow so that the mean stays.

    >>> import mutagrad as mg
    >>> mg.nn.Dropout(0.5).eval()(mg.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Each channel of a sequence is zero as a whole.

    >>> import mutagrad as mg
    >>> mg.nn.Dropout1d(0.5).eval()(mg.ones(1, 2, 8)).shape
    mutagrad.Size([1, 2, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Each channel of an image is zero as a whole.

    >>> import mutagrad as mg
    >>> mg.nn.Dropout2d(0.5).eval()(mg.ones(1, 2, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Each channel of a volume is zero as a whole.

    >>> import mutagrad as mg
    >>> mg.nn.Dropout3d(0.5).eval()(mg.ones(1, 2, 8, 8, 8)).shape
    mutagrad.Size([1, 2, 8, 8, 8])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance behind SELU.

    >>> import mutagrad as mg
    >>> mg.nn.AlphaDropout(0.5).eval()(mg.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    >>> import mutagrad as mg
    >>> mg.nn.FeatureAlphaDropout(0.5).eval()(mg.ones(1, 2, 2)).shape
    mutagrad.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
