"""The size of a Cauchy number."""
from __future__ import annotations

import math
from typing import Any

from ..ops.create import full_like, zeros_like
from ..ops.elementwise import where
from . import constraints
from .cauchy import Cauchy
from .distribution import Distribution

__all__ = ["HalfCauchy"]


class HalfCauchy(Distribution):
    """|x| of a Cauchy x around zero."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Cauchy(0, scale, validate_args=False)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)
        if self._validate_args:
            self._check(self.scale, constraints.positive, "parameter scale")

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return full_like(self.scale, math.inf)

    @property
    def mode(self) -> Any:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape).abs()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
