"""The size of a Cauchy number."""
from __future__ import annotations

import math

from ..ops.create.create import full_like
from ..tensors.tensor import Tensor
from .cauchy import Cauchy
from .half import Half

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| of a Cauchy x around zero.

    >>> import mutagrad as mg
    >>> mg.distributions.HalfCauchy(1.).log_prob(mg.tensor(1.))
    tensor(-1.1447)
    """

    _whole = Cauchy

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
