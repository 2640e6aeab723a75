"""The size of a normal number."""
from __future__ import annotations

import math

from ..tensors.tensor import Tensor
from .half import Half
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| of a normal x around zero.

    >>> import mutagrad as mg
    >>> mg.distributions.HalfNormal(1.).log_prob(mg.tensor(1.))
    tensor(-0.7258)
    """

    _whole = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2 * (1 - 2 / math.pi)
