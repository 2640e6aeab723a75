"""Sparse matrices under PyTorch's names: what sparse/matrix.py holds."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dtypes import dtype, float32, float64, int32, int64
from ..ops.shape.shape import whole_dims
from ..tensors.tensor import Tensor
from .matrix import SparseTensor, sparse_coo_tensor, sparse_mm as mm, spmm

__all__ = ["DoubleTensor", "FloatTensor", "IntTensor", "LongTensor", "SparseTensor", "addmm", "mm", "sparse_coo_tensor",
           "spmm", "sum"]


class _Typed(type):
    """PyTorch's oldest constructors: `sparse.FloatTensor(indices, values, size)`."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SparseTensor) and instance.dtype is cls.dtype

    def __call__(cls, *given: Any) -> Any:
        if len(given) in (2, 3) and not isinstance(given[0], int):
            return sparse_coo_tensor(*given, dtype=None if given[1].dtype == cls.dtype else cls.dtype)
        shape = tuple(given[0]) if len(given) == 1 and not isinstance(given[0], int) else given
        return sparse_coo_tensor([[] for _ in shape], [], shape, dtype=cls.dtype)


class FloatTensor(metaclass=_Typed):
    """Sparse tensors of float32."""

    dtype = float32


class DoubleTensor(metaclass=_Typed):
    """Sparse tensors of float64."""

    dtype = float64


class LongTensor(metaclass=_Typed):
    """Sparse tensors of int64."""

    dtype = int64


class IntTensor(metaclass=_Typed):
    """Sparse tensors of int32."""

    dtype = int32


def addmm(mat: Tensor, mat1: SparseTensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Return beta * mat + alpha * (mat1 @ mat2), where mat1 is sparse."""
    return beta * mat + alpha * mm(mat1, mat2)


def sum(input: SparseTensor, dim: int | Sequence[int] | None = None,
        dtype: dtype | None = None) -> SparseTensor | Tensor:
    """Return the sum of all elements, or over some dimensions: sparse again, unless no sparse dimension is left."""
    if dim is None:
        return input._values().sum(dtype=dtype)
    gone = set(whole_dims(dim, input.dim(), "sparse.sum"))
    first = input.sparse_dim()
    values = input._values() if dtype is None else input._values().to(dtype)
    inner = [d - first + 1 for d in gone if d >= first]
    values = values.sum(inner) if inner else values
    rows = [d for d in range(first) if d not in gone]
    left = [n for d, n in enumerate(input.shape) if d not in gone]
    return SparseTensor(input._indices()[rows], values, left).coalesce() if rows else values.sum(0)
