"""The Poisson distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..autograd import no_grad
from ..base.modes import keeps_modes
from ..ops.math.special import lgamma, xlogy
from ..ops.random.sampling import poisson
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exp_family import ExponentialFamily

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """How often something happens that is expected `rate` times.

    >>> import mutagrad as mg
    >>> mg.distributions.Poisson(4.).log_prob(mg.tensor(3.))
    tensor(-1.6329)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.rate, = numbers_or_tensors(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()

    @property
    def mean(self) -> Tensor:
        return self.rate

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(*self._extended_shape(sample_shape)).contiguous())

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return xlogy(value, self.rate) - self.rate - lgamma(value + 1)
