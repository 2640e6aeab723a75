"""The F distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..core.dtypes import finfo
from ..ops.math.elementwise import where
from ..ops.math.special import lgamma
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors
from .gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of the mean squares of `df1` and of `df2` standard normal numbers.

    >>> import mutagrad as mg
    >>> mg.distributions.FisherSnedecor(3., 4.).log_prob(mg.tensor(1.))
    tensor(-1.0684)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = numbers_or_tensors(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @cached_property
    @enable_grad()
    def _gamma1(self) -> Gamma:
        return Gamma(self.df1 * 0.5, self.df1)

    @cached_property
    @enable_grad()
    def _gamma2(self) -> Gamma:
        return Gamma(self.df2 * 0.5, self.df2)

    @property
    def mean(self) -> Tensor:
        finite = self.df2 > 2
        return where(finite, self.df2 / (where(finite, self.df2, 3.0) - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.df2 > 4
        df2 = where(finite, self.df2, 5.0)
        return where(finite, 2 * df2 ** 2 * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2) ** 2 * (df2 - 4)), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        tiny = finfo(self.df1.dtype).tiny
        above, below = self._gamma1.rsample(sample_shape), self._gamma2.rsample(sample_shape)
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        return (lgamma(a + b) - lgamma(a) - lgamma(b) + a * ratio.log() + (a - 1) * value.log()
                - (a + b) * (ratio * value).log1p())
