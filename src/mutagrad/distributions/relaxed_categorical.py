"""Probabilities that are nearly always close to a single one, through which gradients flow."""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.size import Size
from ..ops.random.draws import rand
from ..ops.reduce.softmax import log_softmax
from ..tensors.tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, numbers_or_tensors
from .like import like
from .relaxed_bernoulli import Softened
from .transforms import ExpTransform
from .utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical: Gumbel numbers around `logits`, over the temperature, normalised.

    >>> import mutagrad as mg
    >>> mg.distributions.ExpRelaxedCategorical(1., mg.tensor([0.25, 0.75])).log_prob(mg.tensor([-1., -0.4587]))
    tensor(-1.4630)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # a submanifold of it, in fact
    has_rsample = True
    _handed_on = ("_temperature", "_categorical")

    def __init__(self, temperature: Tensor | float, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        self._temperature = (temperature,)  # not one for each place of the batch
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def temperature(self) -> Tensor | float:
        return self._temperature[0]

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        logits = self.logits
        drawn = clamp_probs(rand(self._extended_shape(sample_shape), **like(logits)))
        return log_softmax((logits - (-drawn.log()).log()) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n = self.event_shape[0]
        score = log_softmax(self.logits - value * self.temperature, -1).sum(-1)
        return score + math.lgamma(n) + numbers_or_tensors(self.temperature)[0].log() * (n - 1)


class RelaxedOneHotCategorical(Softened):
    """A one-hot row, softened by a temperature: the lower, the harder.

    >>> import mutagrad as mg
    >>> logits = mg.zeros(3, requires_grad=True)
    >>> drawn = mg.distributions.RelaxedOneHotCategorical(0.5, logits=logits).rsample((2,))
    >>> drawn.shape, drawn.requires_grad
    (mutagrad.Size([2, 3]), True)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, temperature: Tensor | float, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)
