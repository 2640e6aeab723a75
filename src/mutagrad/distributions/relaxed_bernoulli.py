"""Numbers between zero and one that are nearly always close to one of them, through which gradients flow."""
from __future__ import annotations

from collections.abc import Sequence

from ..core.size import Size
from ..nn.functional import softplus
from ..ops.random.draws import rand
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors
from .like import like
from .logits import BinaryLogits
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryLogits, Distribution):
    """The logits of RelaxedBernoulli: logistic numbers around `logits`, divided by the temperature.

    >>> import mutagrad as mg
    >>> mg.distributions.LogitRelaxedBernoulli(1., 0.5).log_prob(mg.tensor(0.))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _handed_on = ("_temperature",)

    def __init__(self, temperature: Tensor | float, probs: Tensor | float | None = None,
                 logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        self._temperature = (temperature,)  # not one for each place of the batch
        name = self._set_odds(probs, logits)
        given, = numbers_or_tensors(self.__dict__[name])
        self.__dict__[name] = given
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def temperature(self) -> Tensor | float:
        return self._temperature[0]

    @property
    def param_shape(self) -> Size:
        return self._batch_shape

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logits = self.logits
        drawn = clamp_probs(rand(self._extended_shape(sample_shape), **like(logits)))
        return (drawn.log() - (-drawn).log1p() + logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        away = self.logits - value * self.temperature
        return numbers_or_tensors(self.temperature)[0].log() + away - 2 * softplus(away)


class Softened(TransformedDistribution):
    """A choice, softened by a temperature; its parameters are those of what is transformed."""

    @property
    def temperature(self) -> Tensor | float:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs


class RelaxedBernoulli(Softened):
    """A Bernoulli number, softened by a temperature: the lower, the harder.

    >>> import mutagrad as mg
    >>> mg.distributions.RelaxedBernoulli(1., 0.5).log_prob(mg.tensor(0.5))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Tensor | float, probs: Tensor | float | None = None,
                 logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)
