"""Distributions of one form that are moved to a place and stretched."""
from __future__ import annotations

from ..tensors.tensor import Tensor
from . import constraints
from .distribution import Distribution, numbers_or_tensors

__all__ = ["LocationScale"]


class LocationScale(Distribution):
    """loc + scale * x, for an x whose distribution has no parameters."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None) -> None:
        self.loc, self.scale = numbers_or_tensors(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)
