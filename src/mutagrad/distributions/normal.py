"""The normal distribution."""
from __future__ import annotations

import math
from typing import Any

from ..ops.create import randn
from ..ops.elementwise import erf
from ..ops.special import erfinv
from . import constraints
from .distribution import Distribution, numbers_or_tensors

__all__ = ["Normal"]


class Normal(Distribution):
    """
    >>> import mutagrad as mg
    >>> d = mg.distributions.Normal(0.0, 2.0)
    >>> d.log_prob(mg.tensor([0., 2.])), d.entropy()
    (tensor([-1.6121, -2.1121]), tensor(2.1121))
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = numbers_or_tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale ** 2

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.loc + randn(self._extended_shape(sample_shape), dtype=self.loc.dtype) * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 0.5 * (1 + erf((value - self.loc) / self.scale / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()
