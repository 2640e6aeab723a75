"""The uniform distribution on an interval."""
from __future__ import annotations

from collections.abc import Sequence

from ..arrays.kinds import anywhere
from ..base.errors import BadValue
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, numbers_or_tensors
from .like import like

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Numbers from `low`, included, to `high`, excluded.

    >>> import mutagrad as mg
    >>> mg.distributions.Uniform(0., 2.).log_prob(mg.tensor(1.))
    tensor(-0.6931)
    """

    arg_constraints = {"low": constraints.dependent(is_discrete=False, event_dim=0),
                       "high": constraints.dependent(is_discrete=False, event_dim=0)}
    has_rsample = True

    def __init__(self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None) -> None:
        self.low, self.high = numbers_or_tensors(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        if self._validate_args and anywhere(~(self.low < self.high)._array):
            raise BadValue("Uniform: low must be less than high", fix="Uniform(0.0, 1.0)")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * float("nan")

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.low + rand(self._extended_shape(sample_shape), **like(self.low)) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
