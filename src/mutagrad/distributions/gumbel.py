"""The Gumbel distribution."""
from __future__ import annotations

import math

from ..core.dtypes import finfo
from ..ops.create.create import full_like, ones_like
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform

__all__ = ["Gumbel"]

EULER = 0.57721566490153286060


class Gumbel(TransformedDistribution):
    """The largest of many: loc - scale * log(-log u) for a uniform u.

    >>> import mutagrad as mg
    >>> mg.distributions.Gumbel(0., 1.).log_prob(mg.tensor(0.))
    tensor(-1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = numbers_or_tensors(loc, scale)
        limits = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, limits.tiny), full_like(self.loc, 1 - limits.eps), validate_args)
        transforms = [ExpTransform().inv, AffineTransform(loc=0, scale=-ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(loc=self.loc, scale=-self.scale)]
        super().__init__(base, transforms, validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev ** 2

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (self.loc - value) / self.scale
        return away - away.exp() - self.scale.log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
