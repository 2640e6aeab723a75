"""Dimensions of a batch taken as part of the event."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..base.errors import BadValue, NotSupported
from ..tensors.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .distribution import Distribution

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Independent"]

AnyDistribution = TypeVar("AnyDistribution", bound=Distribution)


class Independent(Distribution, Generic[AnyDistribution]):
    """
    >>> import mutagrad as mg
    >>> d = mg.distributions
    >>> d.Independent(d.Normal(mg.zeros(2, 3), 1.0), 1).log_prob(mg.zeros(2, 3)).shape
    mutagrad.Size([2])
    """

    arg_constraints: Mapping[str, Constraint] = {}
    base_dist: Distribution
    _handed_on = ("reinterpreted_batch_ndims",)

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int,
                 validate_args: bool | None = None) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise BadValue(f"Independent: {reinterpreted_batch_ndims} dimensions of a batch that has {len(batch)}",
                           fix="reinterpreted_batch_ndims=1")
        kept = len(batch) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(batch[:kept], (*batch[kept:], *base_distribution.event_shape), validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        inner = self.event_shape[:self.reinterpreted_batch_ndims]
        return self._with_own_expanded(batch_shape, _instance, base_dist=self.base_dist.expand((*batch_shape, *inner)))

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @constraints.dependent_property
    def support(self) -> Constraint:
        return constraints.independent(self.base_dist.support, self.reinterpreted_batch_ndims)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_enumerate_support and not self.reinterpreted_batch_ndims

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotSupported("Independent.enumerate_support: not for dimensions that were taken from the batch",
                               why="they have all combinations of values", fix="base_dist.enumerate_support()")
        return self.base_dist.enumerate_support(expand)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"


def sum_rightmost(value: Tensor, dims: int) -> Tensor:
    return value.sum(tuple(range(-dims, 0))) if dims else value
