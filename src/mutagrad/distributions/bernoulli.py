"""The Bernoulli distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..autograd import no_grad
from ..base.modes import keeps_modes
from ..core.size import Size
from ..nn.functional import binary_cross_entropy_with_logits, logsigmoid
from ..ops.create.create import arange, full_like
from ..ops.math.elementwise import where
from ..ops.random.sampling import bernoulli
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import numbers_or_tensors
from .exp_family import ExponentialFamily
from .like import like
from .logits import BinaryLogits

__all__ = ["Bernoulli"]


class Bernoulli(BinaryLogits, ExponentialFamily):
    """
    >>> import mutagrad as mg
    >>> mg.distributions.Bernoulli(mg.tensor([0.25, 1.0])).mean
    tensor([0.2500, 1.0000])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    _mean_carrier_measure = 0.0
    has_enumerate_support = True

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 validate_args: bool | None = None) -> None:
        name = self._set_odds(probs, logits)
        given, = numbers_or_tensors(self.__dict__[name])
        self.__dict__[name] = given
        super().__init__(given.shape, validate_args=validate_args)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -logsigmoid(-x)

    @property
    def param_shape(self) -> Size:
        return self._batch_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return where(self.probs == 0.5, full_like(self.probs, float("nan")), (self.probs >= 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(*self._extended_shape(sample_shape)).contiguous())

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value.to(logits.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(2, **like(self._param)).reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
