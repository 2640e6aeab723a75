"""Student's distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..ops.create.create import full_like
from ..ops.math.elementwise import where
from ..ops.math.special import digamma, lgamma
from ..ops.random.draws import randn
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors
from .gamma import Chi2
from .like import like

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal number over the square root of an independent mean of `df` squares.

    >>> import mutagrad as mg
    >>> mg.distributions.StudentT(3.).log_prob(mg.tensor(1.))
    tensor(-1.5763)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df: Tensor | float, loc: Tensor | float = 0.0, scale: Tensor | float = 1.0,
                 validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = numbers_or_tensors(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @cached_property
    @enable_grad()
    def _chi2(self) -> Chi2:
        return Chi2(self.df)

    @property
    def mean(self) -> Tensor:
        return where(self.df <= 1, full_like(self.loc, math.nan), self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        heavy = where(self.df <= 1, full_like(self.df, math.nan), full_like(self.df, math.inf))
        return where(self.df > 2, self.scale ** 2 * self.df / where(self.df > 2, self.df - 2, 1.0), heavy)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        normal = randn(shape, **like(self.df))
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * (squares / self.df).rsqrt())

    def _log_scale(self) -> Tensor:
        return (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
                + lgamma(0.5 * self.df) - lgamma(0.5 * (self.df + 1.0)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1.0) * (away ** 2.0 / self.df).log1p() - self._log_scale()

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        return half * (digamma(half) - digamma(0.5 * self.df)) + self._log_scale()
