"""The distribution of a function of random numbers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import no_grad
from . import constraints
from .distribution import Distribution
from .independent import sum_rightmost
from .transforms import Transform

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """
    >>> import mutagrad as mg
    >>> d = mg.distributions
    >>> squashed = d.TransformedDistribution(d.Normal(0.0, 1.0), [d.TanhTransform()])
    >>> squashed.log_prob(mg.tensor(0.5))
    tensor(-0.7821)
    """

    def __init__(self, base_distribution: Distribution, transforms: Transform | Sequence[Transform], validate_args: bool | None = None) -> None:
        self.base_dist = base_distribution
        self.transforms = [transforms] if isinstance(transforms, Transform) else list(transforms)
        super().__init__(base_distribution.batch_shape, base_distribution.event_shape, validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        return constraints.independent(self.transforms[-1].codomain, len(self.event_shape))

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._through(self.base_dist.rsample(sample_shape))

    def _through(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        event, stretched, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform._inv_call(y)
            stretched = stretched + sum_rightmost(transform.log_abs_det_jacobian(x, y), event - transform.event_dim)
            y = x
        return self.base_dist.log_prob(y) - stretched

    def cdf(self, value: Any) -> Any:
        """Where all transforms rise."""
        for transform in reversed(self.transforms):
            value = transform._inv_call(value)
        return self.base_dist.cdf(value)

    def __repr__(self) -> str:
        return "TransformedDistribution()"
