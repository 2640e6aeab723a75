"""Which values a parameter or a sample may have."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dtypes import finfo
from ..ops.decompose import eigvalsh
from ..ops.matrices import tril
from ..ops.reduce import all as all_of

__all__ = ["Constraint", "boolean", "corr_cholesky", "dependent", "greater_than", "greater_than_eq", "half_open_interval", "independent",
           "integer_interval", "interval", "less_than", "lower_cholesky", "multinomial", "nonnegative", "nonnegative_integer", "one_hot",
           "positive", "positive_definite", "positive_integer", "real", "real_vector", "simplex", "unit_interval"]


class Constraint:
    """A condition that `check` tells for each element, or for each vector or matrix where `event_dim` says so."""

    def __init__(self, text: str, check: Callable[[Any], Any], is_discrete: bool = False, event_dim: int = 0) -> None:
        self.text, self.check, self.is_discrete, self.event_dim = text, check, is_discrete, event_dim

    def __repr__(self) -> str:
        return self.text


def greater_than(lower_bound: Any) -> Constraint:
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda x: lower_bound < x)


def greater_than_eq(lower_bound: Any) -> Constraint:
    return Constraint(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: lower_bound <= x)


def less_than(upper_bound: Any) -> Constraint:
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})", lambda x: (lower_bound <= x) & (x <= upper_bound))


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})", lambda x: (lower_bound <= x) & (x < upper_bound))


def _is_whole(x: Any) -> Any:
    return x % 1 == 0


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    return Constraint(f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
                      lambda x: _is_whole(x) & (lower_bound <= x) & (x <= upper_bound), is_discrete=True)


def multinomial(upper_bound: Any) -> Constraint:
    """Counts in each row that sum to `upper_bound`."""
    return Constraint(f"Multinomial(upper_bound={upper_bound})", lambda x: (x >= 0).all(-1) & (x.sum(-1) == upper_bound), is_discrete=True, event_dim=1)


def independent(base_constraint: Constraint, reinterpreted_batch_ndims: int) -> Constraint:
    """The same for all elements of the last dimensions at once."""
    def check(x: Any) -> Any:
        return all_of(base_constraint.check(x), tuple(range(-reinterpreted_batch_ndims, 0))) if reinterpreted_batch_ndims else base_constraint.check(x)

    return Constraint(f"IndependentConstraint({base_constraint}, {reinterpreted_batch_ndims})", check, base_constraint.is_discrete,
                      base_constraint.event_dim + reinterpreted_batch_ndims)


def _is_simplex(x: Any) -> Any:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6)


def _is_lower_cholesky(x: Any) -> Any:
    return (tril(x) == x).flatten(-2).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def _is_corr_cholesky(x: Any) -> Any:
    unit = ((x * x).sum(-1).sqrt() - 1).abs() <= finfo(x.dtype).eps * x.shape[-1] * 10
    return unit.all(-1) & _is_lower_cholesky(x)


def _is_positive_definite(x: Any) -> Any:
    symmetric = ((x - x.mT).abs() <= 1e-6 + 1e-5 * x.mT.abs()).flatten(-2).all(-1)
    return symmetric & (eigvalsh(x.detach()) > 0).all(-1) if bool(symmetric.all()) else symmetric


dependent = Constraint("Dependent()", lambda x: x == x)  # said by other parameters: the distribution itself looks at it
real = Constraint("Real()", lambda x: x == x)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1), is_discrete=True)
positive, nonnegative, unit_interval = greater_than(0.0), greater_than_eq(0.0), interval(0.0, 1.0)
nonnegative_integer = Constraint("IntegerGreaterThan(lower_bound=0)", lambda x: _is_whole(x) & (x >= 0), is_discrete=True)
positive_integer = Constraint("IntegerGreaterThan(lower_bound=1)", lambda x: _is_whole(x) & (x >= 1), is_discrete=True)
simplex = Constraint("Simplex()", _is_simplex, event_dim=1)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), is_discrete=True, event_dim=1)
real_vector = independent(real, 1)
corr_cholesky = Constraint("CorrCholesky()", _is_corr_cholesky, event_dim=2)
lower_cholesky = Constraint("LowerCholesky()", _is_lower_cholesky, event_dim=2)
positive_definite = Constraint("PositiveDefinite()", _is_positive_definite, event_dim=2)
