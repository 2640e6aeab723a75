"""The binomial distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..autograd import no_grad
from ..base.errors import NotSupported
from ..base.modes import keeps_modes
from ..core.size import Size
from ..ops.create.create import arange
from ..ops.math.special import lgamma
from ..ops.random.sampling import binomial
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution, numbers_or_tensors
from .like import like
from .logits import BinaryLogits

__all__ = ["Binomial"]


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0) with the derivative 1/2 at zero, which is right for what it is used in."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryLogits, Distribution):
    """How many of `total_count` trials succeed.

    >>> import mutagrad as mg
    >>> mg.distributions.Binomial(10, 0.5).log_prob(mg.tensor(5.))
    tensor(-1.4020)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval,
                       "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: Tensor | int = 1, probs: Tensor | float | None = None,
                 logits: Tensor | float | None = None, validate_args: bool | None = None) -> None:
        name = self._set_odds(probs, logits)
        given, counts = numbers_or_tensors(self.__dict__[name], total_count)
        self.__dict__[name], self.total_count = given, counts.to(given.dtype)
        super().__init__(given.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def param_shape(self) -> Size:
        return self._batch_shape

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(*shape), self.probs.expand(*shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        chosen = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        return value * logits + chosen - n * _positive_part(logits) - n * (-logits.abs()).exp().log1p()

    def entropy(self) -> Tensor:
        found = self.log_prob(self.enumerate_support(False))
        return -(found.exp() * found).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        most = int(self.total_count.max().item())
        if not bool((self.total_count == most).all()):
            raise NotSupported("Binomial: values can be listed only where total_count is the same everywhere",
                               fix="one distribution for each count")
        values = arange(1 + most, **like(self.total_count)).reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
