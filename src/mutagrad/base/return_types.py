"""Tuples with names: what operations with several results return.

>>> import mutagrad as mg
>>> mg.tensor([[1., 4.], [3., 2.]]).max(1)
mutagrad.return_types.max(
values=tensor([4., 3.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from operator import itemgetter
from typing import Any

from .package_name import called


def _fields(count: int) -> tuple[Any, ...]:
    return tuple(property(itemgetter(place)) for place in range(count))


class Results(tuple[Any, ...]):
    """Results that have names; a class is made of its results, or of one sequence of them as in PyTorch."""

    __slots__ = ()
    _fields: tuple[str, ...]
    n_fields: int
    n_sequence_fields: int
    n_unnamed_fields = 0

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(name for name, value in vars(cls).items() if isinstance(value, property))
        cls.n_fields = cls.n_sequence_fields = len(cls._fields)

    def __new__(cls, *results: Any) -> Any:
        given = results[0] if len(results) == 1 else results
        if len(given) != cls.n_fields:
            raise TypeError(f"{called(f'return_types.{cls.__name__}')} takes {cls.n_fields} results, got {len(given)}")
        return tuple.__new__(cls, given)

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"{called(f'return_types.{type(self).__name__}')}(\n{lines})"


class aminmax(Results):
    min, max = _fields(2)


class cummax(Results):
    values, indices = _fields(2)


class cummin(Results):
    values, indices = _fields(2)


class frexp(Results):
    mantissa, exponent = _fields(2)


class geqrf(Results):
    a, tau = _fields(2)


class histogram(Results):
    hist, bin_edges = _fields(2)


class histogramdd(Results):
    hist, bin_edges = _fields(2)


class kthvalue(Results):
    values, indices = _fields(2)


class linalg_cholesky_ex(Results):
    L, info = _fields(2)


class linalg_eig(Results):
    eigenvalues, eigenvectors = _fields(2)


class linalg_eigh(Results):
    eigenvalues, eigenvectors = _fields(2)


class linalg_inv_ex(Results):
    inverse, info = _fields(2)


class linalg_ldl_factor(Results):
    LD, pivots = _fields(2)


class linalg_ldl_factor_ex(Results):
    LD, pivots, info = _fields(3)


class linalg_lstsq(Results):
    solution, residuals, rank, singular_values = _fields(4)


class linalg_lu(Results):
    P, L, U = _fields(3)


class linalg_lu_factor(Results):
    LU, pivots = _fields(2)


class linalg_lu_factor_ex(Results):
    LU, pivots, info = _fields(3)


class linalg_qr(Results):
    Q, R = _fields(2)


class linalg_slogdet(Results):
    sign, logabsdet = _fields(2)


class linalg_solve_ex(Results):
    result, info = _fields(2)


class linalg_svd(Results):
    U, S, Vh = _fields(3)


class lu_unpack(Results):
    P, L, U = _fields(3)


class max(Results):
    values, indices = _fields(2)


class median(Results):
    values, indices = _fields(2)


class min(Results):
    values, indices = _fields(2)


class mode(Results):
    values, indices = _fields(2)


class nanmedian(Results):
    values, indices = _fields(2)


class qr(Results):
    Q, R = _fields(2)


class slogdet(Results):
    sign, logabsdet = _fields(2)


class sort(Results):
    values, indices = _fields(2)


class svd(Results):
    U, S, V = _fields(3)


class topk(Results):
    values, indices = _fields(2)


class triangular_solve(Results):
    solution, cloned_coefficient = _fields(2)
