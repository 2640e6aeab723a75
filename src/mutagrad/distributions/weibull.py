"""The Weibull distribution."""
from __future__ import annotations

from ..ops.create.create import ones_like
from ..ops.math.special import lgamma
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exponential import Exponential
from .gumbel import EULER
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """How long something lasts that fails the sooner, or the later, the older it is.

    >>> import mutagrad as mg
    >>> mg.distributions.Weibull(1., 2.).log_prob(mg.tensor(1.))
    tensor(-0.3069)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Tensor | float, concentration: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = numbers_or_tensors(scale, concentration)
        base = Exponential(ones_like(self.scale), validate_args=False)
        transforms = [PowerTransform(self.concentration.reciprocal()), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        return self.concentration.reciprocal()

    def _moment(self, k: int) -> Tensor:
        return lgamma(1 + k * self.concentration_reciprocal).exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2 * (self._moment(2) - self._moment(1) ** 2)

    def entropy(self) -> Tensor:
        return EULER * (1 - self.concentration.reciprocal()) + (self.scale / self.concentration).log() + 1
