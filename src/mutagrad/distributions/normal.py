"""The normal distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..ops.math.elementwise import erf
from ..ops.math.special import erfinv
from ..ops.random.draws import randn
from ..tensors.tensor import Tensor
from .exp_family import ExponentialFamily
from .like import like
from .location_scale import LocationScale

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """
    >>> import mutagrad as mg
    >>> d = mg.distributions.Normal(0.0, 2.0)
    >>> d.log_prob(mg.tensor([0., 2.])), d.entropy()
    (tensor([-1.6121, -2.1121]), tensor(2.1121))
    """

    _mean_carrier_measure = 0.0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.variance, -0.5 / self.variance

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -x ** 2 / (4 * y) + 0.5 * (-math.pi / y).log()

    @property
    def mean(self) -> Tensor:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + randn(self._extended_shape(sample_shape), **like(self.loc)) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 0.5 * (1 + erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
