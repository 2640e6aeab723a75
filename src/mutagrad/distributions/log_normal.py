"""The distribution of what has a normal logarithm."""
from __future__ import annotations

from typing import Any

from . import constraints
from .distribution import Distribution
from .normal import Normal

__all__ = ["LogNormal"]


class LogNormal(Distribution):
    """The exponential of a normal number with this mean and standard deviation."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Normal(loc, scale, validate_args)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    @property
    def loc(self) -> Any:
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.loc + self.scale ** 2 / 2).exp()

    @property
    def mode(self) -> Any:
        return (self.loc - self.scale ** 2).exp()

    @property
    def variance(self) -> Any:
        return (self.scale ** 2).expm1() * (2 * self.loc + self.scale ** 2).exp()

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape).exp()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.base_dist.log_prob(value.log()) - value.log()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return self.base_dist.cdf(value.log())

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf(value).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc

    def __repr__(self) -> str:
        return "Log" + repr(self.base_dist)
