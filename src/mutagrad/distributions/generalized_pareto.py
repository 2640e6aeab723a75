"""The generalized Pareto distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..ops.create.create import full_like
from ..ops.math.elementwise import where
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, numbers_or_tensors
from .like import like

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """How far beyond `loc` the largest of many numbers go: the more often far, the larger the `concentration`.

    >>> import mutagrad as mg
    >>> mg.distributions.GeneralizedPareto(0., 1., 0.5).log_prob(mg.tensor(1.))
    tensor(-1.2164)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, concentration: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = numbers_or_tensors(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        bounded = self.concentration < 0
        end = self.loc - self.scale / where(bounded, self.concentration, -1.0)
        return constraints.interval(self.loc, where(bounded, end, math.inf))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _without_zeros(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and so the distribution exponential; the concentration with one there."""
        zero = self.concentration.abs() < 1e-12
        return zero, where(zero, 1.0, self.concentration)

    @property
    def mean(self) -> Tensor:
        c = self.concentration
        return where(c < 1, self.loc + self.scale / (1 - where(c < 1, c, 0.0)), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = where(finite, self.concentration, 0.0)
        return where(finite, self.scale ** 2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), **like(self.loc)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = self._z(value)
        zero, c = self._without_zeros()
        return where(zero, -away, -(1 / c + 1) * (c * away).log1p()) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of being larger.

        >>> import mutagrad as mg
        >>> mg.distributions.GeneralizedPareto(0., 1., 0.5).log_survival_function(mg.tensor(2.))
        tensor(-1.3863)
        """
        self._validate_sample(value)
        away = self._z(value)
        zero, c = self._without_zeros()
        return where(zero, -away, -(c * away).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of `cdf`.

        >>> import mutagrad as mg
        >>> mg.distributions.GeneralizedPareto(0., 1., 0.5).log_cdf(mg.tensor(2.))
        tensor(-0.2877)
        """
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._without_zeros()
        rest = (-value).log1p()
        return self.loc + self.scale * where(zero, -rest, (-c * rest).expm1() / c)

    def entropy(self) -> Tensor:
        return full_like(self.loc, 1.0) + self.scale.log() + self.concentration
