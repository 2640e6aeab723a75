"""The gamma distribution."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arrays import np
from ..arrays.numpy import silenced
from ..arrays.scipy import special
from ..autograd.function import Function, once_differentiable
from ..base.operands import Array
from ..core.dtypes import finfo
from ..core.factory import make
from ..ops.create.create import as_tensor
from ..ops.math.special import digamma, igamma, lgamma, xlogy
from ..ops.random.generator import source
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exp_family import ExponentialFamily

__all__ = ["Chi2", "Gamma", "standard_gamma"]

_digamma = special("digamma", "Gamma.rsample")


class _StandardGamma(Function):
    """Draws of rate one, and how each moves with its concentration while its cdf stays the same."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        array = concentration._array
        drawn = source(None).gamma(array)
        result = make(np.asarray(np.maximum(drawn, array.dtype.type(finfo(concentration.dtype).tiny))))
        ctx.save_for_backward(concentration, result)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        concentration, drawn = ctx.saved_tensors
        return g * make(gamma_gradient(concentration._array, drawn._array))


@silenced
def gamma_gradient(concentration: Array, drawn: Array) -> Array:
    """Return -(d cdf / d concentration) / density, by the power series of the incomplete gamma function."""
    a, x = concentration.astype(np.float64), drawn.astype(np.float64)
    logarithm, psi = np.log(x), _digamma(a + 1)
    term = x / a
    total = np.zeros_like(x)
    n = 0
    while True:
        step = term * (logarithm - psi)
        total = total + step
        n += 1
        if not (np.abs(step) > 1e-17 * np.abs(total)).any() and (a + n > x).all() or n > 100_000:
            return (-total).astype(drawn.dtype)
        psi = psi + 1 / (a + n)
        term = term * (x / (a + n))


def standard_gamma(concentration: Tensor) -> Tensor:
    """Draw a number of rate one for each element."""
    return _StandardGamma.apply(concentration)


_standard_gamma = standard_gamma  # by which libraries of distributions import it


class Gamma(ExponentialFamily):
    """
    >>> import mutagrad as mg
    >>> mg.distributions.Gamma(2.0, 0.5).mean
    tensor(4.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    _mean_carrier_measure = 0.0
    has_rsample = True

    def __init__(self, concentration: Tensor | float, rate: Tensor | float, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = numbers_or_tensors(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return lgamma(x + 1) - (x + 1) * (-y).log()

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return standard_gamma(self.concentration.expand(*shape)) / self.rate.expand(*shape)

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype)
        self._validate_sample(value)
        return (xlogy(self.concentration, self.rate) + xlogy(self.concentration - 1, value)
                - self.rate * value - lgamma(self.concentration))

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (self.concentration - self.rate.log() + lgamma(self.concentration)
                + (1.0 - self.concentration) * digamma(self.concentration))


class Chi2(Gamma):
    """The sum of `df` squared standard normal numbers.

    >>> import mutagrad as mg
    >>> mg.distributions.Chi2(3.).log_prob(mg.tensor(2.))
    tensor(-1.5724)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2
