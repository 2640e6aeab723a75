"""Which values a parameter or a sample may have.

>>> from mutagrad.distributions import constraints
>>> import mutagrad as mg
>>> constraints.interval(0, 1).check(mg.tensor([0.5, 2.0]))
tensor([ True, False])
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import BadValue, NotSupported
from ..core.dtypes import finfo
from ..ops.linalg.matrices import tril
from ..ops.linalg.spectral import eigvalsh
from ..ops.reduce.reductions import all as all_of
from ..ops.shape.shape import cat as joined, stack as stacked
from ..tensors.tensor import Tensor

__all__ = ["Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
           "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
           "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
           "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite",
           "positive_integer", "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack",
           "symmetric", "unit_interval"]


class Constraint:
    """A condition that `check` tells for each element, or for each vector or matrix where `event_dim` says so.

    >>> import mutagrad as mg
    >>> isinstance(mg.distributions.constraints.positive, mg.distributions.constraints.Constraint)
    True
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Return where the condition holds.

        >>> import mutagrad as mg
        >>> mg.distributions.constraints.positive.check(mg.tensor([-1., 1.]))
        tensor([False,  True])
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__.lstrip('_')}({settings})"


# --------------------------------------------------------------------------------------------- said by other parameters

class _Dependent(Constraint):
    """What a value may be depends on other parameters: an instance of the distribution knows.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.is_dependent(mg.distributions.constraints.dependent)
    True
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _told(self, what: Any) -> Any:
        if what is NotImplemented:
            raise NotSupported(f"{type(self).__name__}: is_discrete and event_dim are known to an instance only",
                               fix="Uniform(0.0, 1.0).support")
        return what

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self._told(self._is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._told(self._event_dim)

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> Any:
        """The same with one or the other told."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise BadValue("Cannot determine validity of dependent constraint",
                       why="it depends on the distribution's parameters")

    def __repr__(self) -> str:
        return "Dependent()"


class dependent_property(property, _Dependent):
    """A property of a distribution that is a constraint: dependent for a class, the one that holds for an instance.

    >>> import mutagrad as mg
    >>> type(mg.distributions.Uniform.__dict__["support"]).__name__
    'dependent_property'
    """

    def __init__(self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = NotImplemented,
                 event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        """Used as a decorator with settings."""
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


_DependentProperty = dependent_property


def is_dependent(constraint: Any) -> bool:
    """Return whether only an instance of the distribution can tell.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.is_dependent(mg.distributions.Uniform.support)
    True
    """
    return isinstance(constraint, _Dependent)


# -------------------------------------------------------------------------------------------------------------- numbers

class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _GreaterThan(Constraint):
    """Above a bound.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.greater_than(0).check(mg.tensor([-1., 0., 1.]))
    tensor([False, False,  True])
    """

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """A bound or above.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.greater_than_eq(0).check(mg.tensor([-1., 0., 1.]))
    tensor([False,  True,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(Constraint):
    """Below a bound.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.less_than(0).check(mg.tensor([-1., 0., 1.]))
    tensor([ True, False, False])
    """

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(Constraint):
    """From one bound to another, both included.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.interval(0, 1).check(mg.tensor([-1., 0., 1.]))
    tensor([False,  True,  True])
    """

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """From one bound, included, to another, which is not.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.half_open_interval(0, 1).check(mg.tensor([-1., 0., 1.]))
    tensor([False,  True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers from one bound to another, both included.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.integer_interval(0, 1).check(mg.tensor([-1., 0., 1.]))
    tensor([False,  True,  True])
    """

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(Constraint):
    is_discrete = True

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


# ---------------------------------------------------------------------------------------------------- vectors, matrices

class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Counts in each row that sum to `upper_bound`.

    >>> import mutagrad as mg
    >>> mg.distributions.constraints.multinomial(3).check(mg.tensor([[1., 2.], [2., 2.]]))
    tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) == self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (tril(value) == value).flatten(-2).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        unit = ((value * value).sum(-1).sqrt() - 1).abs() <= finfo(value.dtype).eps * value.shape[-1] * 10
        return unit.all(-1) & super().check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1]).bool()


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not bool(square.all()):
            return square
        return square & ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.mT.abs()).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & self._definite(eigvalsh(value.detach())).all(-1) if bool(symmetric.any()) else symmetric

    def _definite(self, eigenvalues: Tensor) -> Tensor:
        return eigenvalues >= -finfo(eigenvalues.dtype).eps * eigenvalues.abs().amax(-1, True)


class _PositiveDefinite(_PositiveSemidefinite):
    def _definite(self, eigenvalues: Tensor) -> Tensor:
        return eigenvalues > 0


# ------------------------------------------------------------------------------------------------------- made of others

class _IndependentConstraint(Constraint):
    """The same for all elements of the last dimensions at once.

    >>> import mutagrad as mg
    >>> from mutagrad.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).check(mg.tensor([[1., 2.], [-1., 1.]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found, dims = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if found.ndim < dims:
            raise BadValue(f"independent: Expected value.dim() >= {self.event_dim} but got {value.ndim}",
                           why="a value has the dimensions of its event")
        return all_of(found, tuple(range(-dims, 0))) if dims else found

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What all components of a mixture can give: `base_constraint` is theirs, with a batch dimension more.

    >>> import mutagrad as mg
    >>> from mutagrad.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(mg.tensor([-1., 1.]))
    tensor([False,  True])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint})"


class _Cat(Constraint):
    """One constraint for each part of a dimension, `lengths` long.

    >>> import mutagrad as mg
    >>> from mutagrad.distributions import constraints
    >>> both = constraints.cat([constraints.positive, constraints.real])
    >>> both.check(mg.tensor([-1., -1.]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim, self.lengths = list(cseq), dim, [1] * len(cseq) if lengths is None else list(lengths)

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return joined([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Cat):
    """One constraint for each place along a dimension.

    >>> import mutagrad as mg
    >>> from mutagrad.distributions import constraints
    >>> both = constraints.stack([constraints.positive, constraints.real])
    >>> both.check(mg.tensor([-1., -1.]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + (self.dim + dim < 0)

    def check(self, value: Tensor) -> Tensor:
        return stacked([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim), strict=True)], self.dim)


dependent, real, boolean = _Dependent(), _Real(), _Boolean()
greater_than, greater_than_eq, less_than, interval = _GreaterThan, _GreaterThanEq, _LessThan, _Interval
half_open_interval, integer_interval, multinomial = _HalfOpenInterval, _IntegerInterval, _Multinomial
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
independent, cat, stack = _IndependentConstraint, _Cat, _Stack
real_vector, simplex, one_hot = independent(real, 1), _Simplex(), _OneHot()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
