"""The Gumbel distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.dtypes import finfo
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from .like import like
from .location_scale import LocationScale

__all__ = ["Gumbel"]

EULER = 0.57721566490153286060


class Gumbel(LocationScale):
    """The largest of many.

    >>> import mutagrad as mg
    >>> mg.distributions.Gumbel(0., 1.).log_prob(mg.tensor(0.))
    tensor(-1.)
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        limits = finfo(self.loc.dtype)
        drawn = rand(self._extended_shape(sample_shape), **like(self.loc))
        drawn = drawn.clamp(min=limits.tiny, max=1 - limits.eps)
        return self.loc - self.scale * (-drawn.log()).log()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (self.loc - value) / self.scale
        return away - away.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
