"""The categorical distribution."""
from __future__ import annotations

from collections.abc import Sequence

from ..autograd import no_grad
from ..base.modes import keeps_modes
from ..core.dtypes import finfo, int64
from ..core.size import Size
from ..ops.create.create import arange, full
from ..ops.random.sampling import multinomial
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .like import like
from .logits import Logits

__all__ = ["Categorical"]


class Categorical(Logits, Distribution):
    """Positions in a row, each as likely as its probability.

    >>> import mutagrad as mg
    >>> d = mg.distributions.Categorical(probs=mg.tensor([1., 1., 2.]))
    >>> d.log_prob(mg.tensor([0, 2])).exp()
    tensor([0.2500, 0.5000])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _handed_on = ("_num_events",)

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        given = self._set_odds(probs, logits)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Size:
        return (self.probs if "probs" in self.__dict__ else self.logits).shape

    @property
    def mean(self) -> Tensor:
        return full(tuple(self._batch_shape), float("nan"), **like(self.probs))

    variance = mean

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @keeps_modes
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        count = 1
        for n in sample_shape:
            count *= n
        with no_grad():
            drawn = multinomial(self.probs.reshape(-1, self._num_events), count, True)
        return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        places, logits = broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        given = self.probs if "probs" in self.__dict__ else self.logits
        values = arange(self._num_events, device=given.device).reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values
