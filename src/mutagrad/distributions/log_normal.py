"""The log-normal distribution."""
from __future__ import annotations

from ..tensors.tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The exponential of a normal number with this mean and standard deviation.

    >>> import mutagrad as mg
    >>> mg.distributions.LogNormal(0., 1.).log_prob(mg.tensor(1.))
    tensor(-0.9189)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale ** 2 / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale ** 2).exp()

    @property
    def variance(self) -> Tensor:
        return (self.scale ** 2).expm1() * (2 * self.loc + self.scale ** 2).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
