"""The multinomial distribution."""
from __future__ import annotations

from typing import Any

from ..errors import NotSupported
from ..ops.create import ones_like, tensor, zeros
from ..ops.elementwise import where
from ..ops.shape import broadcast_tensors
from ..ops.special import lgamma
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each position comes up in `total_count` draws."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotSupported("Multinomial: total_count must be one whole number for all", fix="total_count=10")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        self._binomial = Binomial(total_count, probs=self._categorical.probs, validate_args=validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        made = Multinomial(self.total_count, logits=self.logits.expand(*batch_shape, *self.event_shape), validate_args=False)
        made._validate_args = self._validate_args
        return made

    def sample(self, sample_shape: Any = ()) -> Any:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        places = drawn.movedim(0, -1)
        counts = zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype)
        return counts.scatter_add_(-1, places, ones_like(places).to(self.probs.dtype))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_tensors(self.logits, value)
        logits = where((value == 0) & (logits == -float("inf")), 0.0, logits)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = tensor(float(self.total_count), dtype=self.probs.dtype)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        repeats = (self._binomial.log_prob(counts).exp() * lgamma(counts + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lgamma(n + 1) + repeats
