"""Methods of tensors that only sparse ones have an answer to; of a dense one they say so."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.docstrings import with_example
from ..base.errors import NotSupported
from ..tensors.tensor import Tensor
from .tensor import SparseTensor

METHODS = """
    coalesce is_coalesced _coalesced_ indices values _indices _values crow_indices col_indices ccol_indices row_indices
    sparse_dim dense_dim _nnz _dimI _dimV"""

_COO = "sparse coordinate"
_MAKERS = {_COO: "to_sparse", "sparse": "to_sparse", "sparse row compressed": "to_sparse_csr",
           "sparse column compressed": "to_sparse_csc"}


def _parts(name: str, kind: str, words: str, shown: str = "") -> Callable[[Tensor], Any]:
    """The method of this name; `shown` is what it gives for [[0., 3.], [4., 0.]], made sparse."""
    def method(self: Tensor) -> Any:
        found = getattr(type(self), name, None) if isinstance(self, SparseTensor) else None
        if found is None or found is method or getattr(found, "__wrapped__", None) is method:
            layout = str(self.layout).rpartition(".")[2].capitalize()
            raise NotSupported(f"{name} expected {kind} tensor layout but got {layout}", fix="x.to_sparse()")
        return found(self)

    method.__name__ = method.__qualname__ = name
    maker = _MAKERS[kind]
    method.__doc__ = words if not shown else with_example(
        words, f">>> x = mg.tensor([[0., 3.], [4., 0.]]).{maker}()", f">>> x.{name}()", shown)
    return method


coalesce = _parts("coalesce", _COO, "Return the same with places in order, each once.",
                  "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n"
                  "       values=tensor([3., 4.]),\n       size=(2, 2), nnz=2, layout=mutagrad.sparse_coo)")
is_coalesced = _parts("is_coalesced", _COO, "Whether the places are known to be in order, each once.", "True")
indices = _parts("indices", _COO, "Return the places of a sparse tensor, a column for each value.",
                 "tensor([[0, 1],\n        [1, 0]])")
_indices = _parts("_indices", _COO, "Return the places, coalesced or not.")
values = _parts("values", "sparse", "Return the values of a sparse tensor.", "tensor([3., 4.])")
_values = _parts("_values", "sparse", "Return the values, coalesced or not.")
crow_indices = _parts("crow_indices", "sparse row compressed", "Return where each row begins.", "tensor([0, 1, 2])")
col_indices = _parts("col_indices", "sparse row compressed", "Return the column of each value.", "tensor([1, 0])")
ccol_indices = _parts("ccol_indices", "sparse column compressed", "Return where each column begins.",
                      "tensor([0, 1, 2])")
row_indices = _parts("row_indices", "sparse column compressed", "Return the row of each value.", "tensor([1, 0])")
_nnz = _parts("_nnz", "sparse", "Return how many values there are.")


def sparse_dim(self: Tensor) -> int:
    """Return how many dimensions have indices: none of a dense tensor.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3).sparse_dim(), mg.zeros(2, 3).to_sparse().sparse_dim()
    (0, 2)
    """
    return type(self).sparse_dim(self) if isinstance(self, SparseTensor) else 0


def dense_dim(self: Tensor) -> int:
    """Return how many dimensions its values have: all of a dense tensor.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 3).dense_dim()
    2
    """
    return type(self).dense_dim(self) if isinstance(self, SparseTensor) else self.dim()


def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Say that the places of a sparse tensor are in order, each once; nobody checks."""
    is_coalesced(self)  # which raises for all but those in coordinates
    return type(self)._coalesced_(self, coalesced)


_dimI, _dimV = sparse_dim, dense_dim
