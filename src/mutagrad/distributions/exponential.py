"""The exponential distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..ops.create.create import empty, zeros_like
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exp_family import ExponentialFamily
from .like import like

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """Waiting times for something that happens at this rate.

    >>> import mutagrad as mg
    >>> mg.distributions.Exponential(2.).log_prob(mg.tensor(1.))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    _mean_carrier_measure = 0.0
    has_rsample = True

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = numbers_or_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate ** -2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return empty(self._extended_shape(sample_shape), **like(self.rate)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()
