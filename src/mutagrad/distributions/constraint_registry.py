"""How any numbers become such that satisfy a constraint, so that they can be optimized or sampled without one.

>>> import mutagrad as mg
>>> from mutagrad.distributions import biject_to, constraints
>>> biject_to(constraints.positive)(mg.zeros(2))
tensor([1., 1.])
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import BadArgument, NotSupported
from . import constraints
from .constraints import Constraint
from .transforms import (
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SigmoidTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
    Transform,
    identity_transform,
)

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """Constraints and their transforms: called with a constraint, it gives one from all numbers to it.

    >>> import mutagrad as mg
    >>> mg.distributions.biject_to(mg.distributions.constraints.positive)(mg.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Enter the function that makes the transform for a class of constraints; or return a decorator for it."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, Constraint):
            raise BadArgument("register: Expected constraint to be either a Constraint subclass or instance, "
                              f"but got {constraint!r}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        factory = self._registry.get(type(constraint))
        if factory is None:
            name = type(constraint).__name__
            raise NotSupported(f"Cannot transform {name} constraints", why="none has been registered",
                               fix=f"register({name})")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _register(*kinds: Any) -> Callable[[Factory], Factory]:
    """In both."""
    def register(factory: Factory) -> Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_register(constraints.real)
def _real(constraint: Any) -> Transform:
    return identity_transform


@_register(constraints.greater_than, constraints.greater_than_eq)
def _above(constraint: Any) -> Transform:
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.lower_bound, 1)])


@_register(constraints.less_than)
def _below(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


@_register(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


biject_to.register(constraints.simplex, lambda constraint: StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: LowerCholeskyTransform())
for _definite in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_definite, lambda constraint: PositiveDefiniteTransform())
_register(constraints.corr_cholesky)(lambda constraint: CorrCholeskyTransform())


def _of_parts(registry: ConstraintRegistry) -> None:
    registry.register(constraints.independent,
                      lambda c: IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims))
    registry.register(constraints.cat, lambda c: CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths))
    registry.register(constraints.stack, lambda c: StackTransform([registry(part) for part in c.cseq], c.dim))


_of_parts(biject_to)
_of_parts(transform_to)
