"""The inverse gamma distribution."""
from __future__ import annotations

import math

from ..ops.math.elementwise import where
from ..ops.math.special import digamma, lgamma
from ..tensors.tensor import Tensor
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """One over a gamma number.

    >>> import mutagrad as mg
    >>> mg.distributions.InverseGamma(2., 1.).log_prob(mg.tensor(0.5))
    tensor(0.0794)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Gamma(concentration, rate, validate_args), PowerTransform(-1.0), validate_args)

    @property
    def concentration(self) -> Tensor:
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        finite = self.concentration > 1
        return where(finite, self.rate / (where(finite, self.concentration, 2.0) - 1), math.inf)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration > 2
        c = where(finite, self.concentration, 3.0)
        return where(finite, self.rate ** 2 / ((c - 1) ** 2 * (c - 2)), math.inf)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + lgamma(c) - (1 + c) * digamma(c)
