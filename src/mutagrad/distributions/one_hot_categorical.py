"""The categorical distribution over rows with a single one."""
from __future__ import annotations

from collections.abc import Sequence

from ..nn.functional import one_hot
from ..ops.create.create import eye
from ..tensors.tensor import Tensor
from . import constraints
from .like import like
from .multinomial_base import Counts

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Counts):
    """Rows of zeros and a one, whose position is categorical.

    >>> import mutagrad as mg
    >>> mg.distributions.OneHotCategorical(mg.tensor([0.25, 0.75])).log_prob(mg.tensor([0., 1.]))
    tensor(-0.2877)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        super().__init__(probs, logits, validate_args)

    @property
    def mode(self) -> Tensor:
        return one_hot(self.probs.argmax(-1), self.event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return one_hot(self._categorical.sample(sample_shape), self.event_shape[0]).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = eye(n, **like(self.probs)).reshape(n, *(1,) * len(self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with draws whose gradient is that of the probabilities: biased, and useful all the same.

    >>> import mutagrad as mg
    >>> x = mg.distributions.OneHotCategoricalStraightThrough(mg.tensor([0.25, 0.75])).rsample()
    >>> x.sum().item()
    1.0
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
