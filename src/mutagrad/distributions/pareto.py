"""The Pareto distribution."""
from __future__ import annotations

from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import numbers_or_tensors
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Numbers of at least `scale`, of which those beyond x are as many as x to the power of -`alpha`.

    >>> import mutagrad as mg
    >>> mg.distributions.Pareto(1., 2.).log_prob(mg.tensor(2.))
    tensor(-1.3863)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = numbers_or_tensors(scale, alpha)
        base = Exponential(self.alpha, validate_args=False)
        super().__init__(base, [ExpTransform(), AffineTransform(loc=0, scale=self.scale)], validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Constraint:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        alpha = self.alpha.clamp(min=1)
        return alpha * self.scale / (alpha - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        alpha = self.alpha.clamp(min=2)
        return self.scale ** 2 * alpha / ((alpha - 1) ** 2 * (alpha - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
