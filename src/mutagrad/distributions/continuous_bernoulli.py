"""The continuous Bernoulli distribution."""
from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..core.size import Size
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.math.elementwise import sigmoid, where
from ..ops.random.draws import rand
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exp_family import ExponentialFamily
from .like import like
from .logits import BinaryLogits
from .utils import clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryLogits, ExponentialFamily):
    """Numbers from zero to one with a density in proportion to probs ** x * (1 - probs) ** (1 - x).

    Near one half the closed forms divide zero by zero; between `lims` the first terms of their series are taken.

    >>> import mutagrad as mg
    >>> mg.distributions.ContinuousBernoulli(0.3).log_prob(mg.tensor(0.5))
    tensor(-0.0297)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0.0
    has_rsample = True
    _handed_on = ("_lims",)

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        self._lims = lims
        name = self._set_odds(probs, logits)
        given, = numbers_or_tensors(self.__dict__[name])
        self.__dict__[name] = given
        super().__init__(given.shape, validate_args=validate_args)
        if name == "probs":
            self.__dict__["probs"] = clamp_probs(given)

    @cached_property
    @enable_grad()
    def probs(self) -> Tensor:
        return clamp_probs(sigmoid(self.logits))

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        far = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        logits = where(far, x, self._lims[0] - 0.5)
        return where(far, logits.expm1().abs().log() - logits.abs().log(), x / 2 + x ** 2 / 24 - x ** 4 / 2880)

    @property
    def param_shape(self) -> Size:
        return self._batch_shape

    def _outside_unstable_region(self) -> Tensor:
        """Where the closed forms are good."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """The probabilities, with one for which they are good in place of the others."""
        return where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of what the density is multiplied by."""
        far, probs = self._outside_unstable_region(), self._cut_probs()
        low = probs <= 0.5
        distance = where(low, (-2 * where(low, probs, 0.0)).log1p(), (2 * where(low, 1.0, probs) - 1).log())
        exact = ((-probs).log1p() - probs.log()).abs().log() - distance
        x = (self.probs - 0.5) ** 2
        return where(far, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self) -> Tensor:
        far, probs = self._outside_unstable_region(), self._cut_probs()
        x = self.probs - 0.5
        exact = probs / (2 * probs - 1) + 1 / ((-probs).log1p() - probs.log())
        return where(far, exact, 0.5 + (1 / 3 + 16 / 45 * x ** 2) * x)

    @property
    def variance(self) -> Tensor:
        far, probs = self._outside_unstable_region(), self._cut_probs()
        x = (self.probs - 0.5) ** 2
        exact = probs * (probs - 1) / (1 - 2 * probs) ** 2 + 1 / ((-probs).log1p() - probs.log()) ** 2
        return where(far, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), **like(self.probs)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        far, probs = self._outside_unstable_region(), self._cut_probs()
        exact = (probs ** value * (1 - probs) ** (1 - value) + probs - 1) / (2 * probs - 1)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, where(far, exact, value)))

    def icdf(self, value: Tensor) -> Tensor:
        far, probs = self._outside_unstable_region(), self._cut_probs()
        exact = ((-probs + value * (2 * probs - 1)).log1p() - (-probs).log1p()) / (probs.log() - (-probs).log1p())
        return where(far, exact, value)

    def entropy(self) -> Tensor:
        zero, one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (zero - one) - self._cont_bern_log_norm() - zero
