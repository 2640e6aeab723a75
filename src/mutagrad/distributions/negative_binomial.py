"""The negative binomial distribution."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad, no_grad
from ..base.modes import keeps_modes
from ..core.size import Size
from ..nn.functional import logsigmoid
from ..ops.math.special import lgamma, xlogy
from ..ops.random.sampling import poisson
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors
from .gamma import Gamma
from .logits import BinaryLogits

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryLogits, Distribution):
    """How many successes there are before `total_count` failures.

    >>> import mutagrad as mg
    >>> mg.distributions.NegativeBinomial(3., 0.5).log_prob(mg.tensor(2.))
    tensor(-1.6740)
    """

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Tensor | float, probs: Tensor | float | None = None,
                 logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        name = self._set_odds(probs, logits)
        self.total_count, self.__dict__[name] = numbers_or_tensors(total_count, self.__dict__[name])
        self.total_count = self.total_count.type_as(self.__dict__[name])
        super().__init__(self.total_count.shape, validate_args=validate_args)

    @property
    def param_shape(self) -> Size:
        return self._batch_shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @cached_property
    @enable_grad()
    def _gamma(self) -> Gamma:
        """Of what the rates are drawn."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        chances = self.total_count * logsigmoid(-self.logits) + xlogy(value, self.logits.sigmoid())
        ways = lgamma(self.total_count + value) - lgamma(1.0 + value) - lgamma(self.total_count)
        return chances + ways.masked_fill(self.total_count + value == 0.0, 0.0)
