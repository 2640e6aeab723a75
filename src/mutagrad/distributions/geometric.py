"""The geometric distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..arrays.kinds import anywhere
from ..autograd import no_grad
from ..base.errors import BadValue
from ..base.modes import keeps_modes
from ..core.dtypes import finfo
from ..nn.functional import binary_cross_entropy_with_logits
from ..ops.create.create import zeros_like
from ..ops.math.elementwise import where
from ..ops.random.draws import rand
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors
from .logits import BinaryLogits

__all__ = ["Geometric"]


class Geometric(BinaryLogits, Distribution):
    """How many trials fail before the first success.

    >>> import mutagrad as mg
    >>> mg.distributions.Geometric(0.25).log_prob(mg.tensor(2.))
    tensor(-1.9617)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Tensor | float | None = None, logits: Tensor | float | None = None,
                 validate_args: bool | None = None) -> None:
        name = self._set_odds(probs, logits)
        given, = numbers_or_tensors(self.__dict__[name])
        self.__dict__[name] = given
        super().__init__(given.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and anywhere(~(given > 0)._array):
            raise BadValue("Geometric: probs must be positive", why="otherwise there is never a success")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            shape, dtype = self._extended_shape(sample_shape), self.probs.dtype
            drawn = rand(shape, dtype=dtype, device=self.probs.device).clamp(min=finfo(dtype).tiny)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value, probs = broadcast_tensors(value, self.probs)
        failing = where((probs == 1) & (value == 0), zeros_like(probs), probs)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
