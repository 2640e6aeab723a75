"""The Kumaraswamy distribution."""
from __future__ import annotations

import math

from ..ops.create.create import full_like, zeros_like
from ..ops.math.elementwise import where
from ..ops.math.special import digamma, lgamma
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .gumbel import EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Numbers from zero to one, much as of a Beta, with a cdf in closed form.

    >>> import mutagrad as mg
    >>> mg.distributions.Kumaraswamy(2., 3.).log_prob(mg.tensor(0.5))
    tensor(0.5232)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Tensor | float, concentration0: Tensor | float,
                 validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = numbers_or_tensors(concentration1, concentration0)
        base = Uniform(zeros_like(self.concentration0), full_like(self.concentration0, 1.0), validate_args=False)
        super().__init__(base, [PowerTransform(self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                                PowerTransform(self.concentration1.reciprocal())], validate_args)

    def _moment(self, k: int) -> Tensor:
        a, b = 1 + k / self.concentration1, self.concentration0
        return b * (lgamma(a) + lgamma(b) - lgamma(a + b)).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & (a * b > 1)
        return where(inside, ((a - 1) / where(inside, a * b - 1, 1.0)) ** a.reciprocal(), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean ** 2

    def entropy(self) -> Tensor:
        one, zero = self.concentration1, self.concentration0
        return (1 - zero.reciprocal()) + (1 - one.reciprocal()) * (digamma(zero + 1) + EULER) - one.log() - zero.log()
