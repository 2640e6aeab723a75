"""The Cauchy distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..ops.create.create import empty, full_like
from ..tensors.tensor import Tensor
from .like import like
from .location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """The ratio of two normal numbers: so wide that it has no mean.

    >>> import mutagrad as mg
    >>> mg.distributions.Cauchy(0., 1.).log_prob(mg.tensor(1.))
    tensor(-1.8379)
    """

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + empty(self._extended_shape(sample_shape), **like(self.loc)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
