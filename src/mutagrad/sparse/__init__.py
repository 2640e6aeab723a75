"""Sparse tensors under PyTorch's names. tensor.py says what one is."""
from __future__ import annotations

from . import convert, gradients, methods
from .checkpoints import by_values as by_values
from .construct import check_sparse_tensor_invariants, empty_of, sparse_coo_tensor
from .coordinates import of_rows as of_rows
from .diagonals import spdiags
from .gradients import as_sparse_gradcheck
from .products import addmm, mm, sampled_addmm, spmm
from .reductions import log_softmax, softmax, sum
from .tensor import SparseTensor
from .typed import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = ["BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
           "LongTensor", "ShortTensor", "SparseTensor", "addmm", "as_sparse_gradcheck",
           "check_sparse_tensor_invariants", "convert", "empty_of", "gradients", "log_softmax", "methods", "mm",
           "sampled_addmm", "softmax", "sparse_coo_tensor", "spdiags", "spmm", "sum"]
