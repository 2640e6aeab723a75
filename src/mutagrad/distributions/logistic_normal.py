"""The logistic normal distribution."""
from __future__ import annotations

from ..tensors.tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probabilities made of normal numbers, of which there is one less.

    >>> import mutagrad as mg
    >>> mg.distributions.LogisticNormal(mg.zeros(1), mg.ones(1)).log_prob(mg.tensor([0.25, 0.75]))
    tensor(0.1516)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base if base.batch_shape else base.expand((1,)), StickBreakingTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        return self.base_dist.base_dist.scale
