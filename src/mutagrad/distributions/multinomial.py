"""The multinomial distribution."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ..autograd import enable_grad
from ..base.errors import NotSupported
from ..ops.create.create import ones_like, tensor, zeros
from ..ops.math.elementwise import where
from ..ops.math.special import lgamma
from ..ops.shape.shape import broadcast_tensors
from ..tensors.tensor import Tensor
from . import constraints
from .binomial import Binomial
from .constraints import Constraint
from .like import like
from .multinomial_base import Counts

__all__ = ["Multinomial"]


class Multinomial(Counts):
    """How often each position comes up in `total_count` draws.

    >>> import mutagrad as mg
    >>> mg.distributions.Multinomial(3, mg.tensor([0.5, 0.5])).log_prob(mg.tensor([1., 2.]))
    tensor(-0.9808)
    """

    def __init__(self, total_count: int = 1, probs: Tensor | None = None, logits: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotSupported("Multinomial: inhomogeneous total_count is not supported: it must be one whole number "
                               "for all", fix="total_count=10")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Constraint:
        return constraints.multinomial(self.total_count)

    @cached_property
    @enable_grad()
    def _binomial(self) -> Binomial:
        """How often each position comes up, seen by itself."""
        return Binomial(self.total_count, probs=self.probs, validate_args=False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        places = drawn.movedim(0, -1)
        counts = zeros(self._extended_shape(sample_shape), **like(self.probs))
        return counts.scatter_add_(-1, places, ones_like(places).to(self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        logits = where((value == 0) & (logits == -float("inf")), 0.0, logits)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = tensor(float(self.total_count), **like(self.probs))
        binomial = self._binomial
        counts = binomial.enumerate_support(expand=False)[1:]
        repeats = (binomial.log_prob(counts).exp() * lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lgamma(n + 1) + repeats
