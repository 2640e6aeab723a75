"""Tuples with names: what operations with several results return.

>>> import mutagrad as mg
>>> mg.tensor([[1., 4.], [3., 2.]]).max(1)
mutagrad.return_types.max(
values=tensor([4., 3.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from .package_name import called

if TYPE_CHECKING:
    from typing_extensions import Self


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

    def __new__(cls, *results: Any) -> Self:
        given = results[0] if len(results) == 1 else results
        if len(given) != cls.n_fields:
            raise TypeError(f"{called(f'return_types.{cls.__name__}')} takes {cls.n_fields} results, got {len(given)}")
        return tuple.__new__(cls, given)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...  # a result by its name

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"{called(f'return_types.{type(self).__name__}')}(\n{lines})"


_FIELDS = {
    "aminmax": "min max",
    "cummax": "values indices",
    "cummin": "values indices",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "kthvalue": "values indices",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "max": "values indices",
    "median": "values indices",
    "min": "values indices",
    "mode": "values indices",
    "nanmedian": "values indices",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "sort": "values indices",
    "svd": "U S V",
    "topk": "values indices",
    "triangular_solve": "solution cloned_coefficient",
}

for _name, _results in _FIELDS.items():
    _properties = {field: property(itemgetter(place)) for place, field in enumerate(_results.split())}
    globals()[_name] = type(_name, (Results,), _properties)

if TYPE_CHECKING:
    def __getattr__(name: str) -> type[Results]: ...
