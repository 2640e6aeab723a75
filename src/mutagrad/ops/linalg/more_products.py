"""Products beyond `@`: with something added, of many factors, of vectors in space."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...arrays import np
from ...arrays.compiled import systems
from ...arrays.compiled.library import rows_of
from ...arrays.kinds import is_plain
from ...base.errors import BadArgument, BadValue, DTypeError, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import BOOL, of_array
from ...core.indexing import copy_into
from ...core.out_arg import write_out
from ...core.promote import operand_dtype
from ...core.storage import TensorBase
from ..math.elementwise import cast, conj, mul
from ..reduce.reductions import sum_dims
from ..shape.shape import broadcast_tensors, expand, permute, reshape, tensor_argument, unsqueeze, whole_dim
from .products import (
    add_product,
    addmm,
    addmm_values,
    check_factors,
    check_scales,
    dot,
    matmul,
    mismatch,
    outer,
    sum_with_product,
    tensordot,
)

FUNCTIONS = "addbmm addmv addr baddbmm chain_matmul cross inner kron vdot"
METHODS = "addbmm addbmm_ addmm_ addmv addmv_ addr addr_ baddbmm baddbmm_ cross inner kron vdot"

# ---------------------------------------------------------------------------------------- a product and something added

addmv_values = sum_with_product("addmv")
baddbmm_values = sum_with_product("baddbmm")


def _whole(x: Any, scale: Any) -> Any:
    """A scale beside integers is cut to one, as PyTorch does here (and refuses to do in addmm)."""
    integral = isinstance(x, TensorBase) and x._array.dtype.kind in "iu"
    return int(scale) if integral and isinstance(scale, float) else scale


def addmv(input: TensorBase, mat: TensorBase, vec: TensorBase, *, beta: float = 1, alpha: float = 1,
          out: TensorBase | None = None) -> Any:
    """Return `beta * x + alpha * (mat @ vec)`.

    >>> import mutagrad as mg
    >>> mg.addmv(mg.ones(2), mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 0.]))
    tensor([2., 4.])
    """
    beta, alpha = _whole(input, beta), _whole(input, alpha)
    return write_out("addmv", add_product(addmv_values, "addmv", input, mat, vec, (2, 1), beta, alpha), out)


def baddbmm(input: TensorBase, batch1: TensorBase, batch2: TensorBase, *, beta: float = 1, alpha: float = 1,
            out: TensorBase | None = None) -> Any:
    """Return `beta * x + alpha * (batch1 @ batch2)` for batches of matrices.

    >>> import mutagrad as mg
    >>> mg.baddbmm(mg.ones(1, 1, 1), mg.ones(3, 1, 2), mg.ones(3, 2, 1)).flatten()
    tensor([3., 3., 3.])
    """
    beta, alpha = _whole(input, beta), _whole(input, alpha)
    return write_out("baddbmm", add_product(baddbmm_values, "baddbmm", input, batch1, batch2, (3, 3), beta, alpha), out)


def addbmm(input: TensorBase, batch1: TensorBase, batch2: TensorBase, *, beta: float = 1, alpha: float = 1,
           out: TensorBase | None = None) -> Any:
    """Return `beta * x + alpha * (batch1 @ batch2).sum(0)`: one product of the matrices laid side by side.

    >>> import mutagrad as mg
    >>> mg.addbmm(mg.zeros(1, 1), mg.ones(3, 1, 2), mg.ones(3, 2, 1))
    tensor([[6.]])
    """
    check_factors("addbmm", input, batch1, batch2)
    a, b = batch1._array.shape, batch2._array.shape
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[2] != b[1]:
        raise mismatch("addbmm", batch1, batch2, "addbmm takes two batches of matrices, of one batch size")
    beta, alpha = _whole(input, beta), _whole(input, alpha)
    left = reshape(permute(batch1, 1, 0, 2), a[1], a[0] * a[2])
    right = reshape(batch2, b[0] * b[1], b[2])
    return write_out("addbmm", add_product(addmm_values, "addbmm", input, left, right, (2, 2), beta, alpha), out)


def addr(input: TensorBase, vec1: TensorBase, vec2: TensorBase, *, beta: float = 1, alpha: float = 1,
         out: TensorBase | None = None) -> Any:
    """Return `beta * x + alpha * outer(vec1, vec2)`.

    >>> import mutagrad as mg
    >>> mg.addr(mg.zeros(2, 2), mg.tensor([1., 2.]), mg.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    tensors = [tensor_argument(v, "addr") for v in (input, vec1, vec2)]
    if vec1._array.ndim != 1 or vec2._array.ndim != 1:
        raise mismatch("addr", vec1, vec2, "addr takes two vectors")
    common = operand_dtype(tensors)
    bias, left, right = (v if v._array.dtype is common.array_type else cast(v, common.array_type) for v in tensors)
    shape = vec1._array.shape + vec2._array.shape
    bias = bias if bias._array.shape == shape else expand(bias, *shape)
    if common.category == BOOL:
        added = outer(left, right) & bool(alpha)
        return write_out("addr", added if not beta else bias | added, out)
    check_scales("addr", left, beta, alpha)
    return write_out("addr", addmm_values(bias, unsqueeze(left, 1), unsqueeze(right, 0), beta, alpha), out)


def _written(name: str, x: TensorBase, result: TensorBase) -> Any:
    """Writes the result into `x`, whose shape it must have."""
    if x._array.shape != result._array.shape:
        raise ShapeError(f"{name}: a result of shape {result._array.shape} cannot be written "
                         f"into a tensor of shape {x._array.shape}",
                         why="a write in place never changes the shape of its target",
                         fix=f"y = mutagrad.{name[:-1]}(x, ...)")
    return copy_into(x, result)


def addmm_(x: TensorBase, mat1: TensorBase, mat2: TensorBase, *, beta: float = 1, alpha: float = 1) -> Any:
    """Write `addmm` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.zeros(1, 1).addmm_(mg.tensor([[1., 2.]]), mg.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    return _written("addmm_", x, addmm(x, mat1, mat2, beta=beta, alpha=alpha))


def addmv_(x: TensorBase, mat: TensorBase, vec: TensorBase, *, beta: float = 1, alpha: float = 1) -> Any:
    """Write `addmv` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.ones(2).addmv_(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 0.]))
    tensor([2., 4.])
    """
    return _written("addmv_", x, addmv(x, mat, vec, beta=beta, alpha=alpha))


def addbmm_(x: TensorBase, batch1: TensorBase, batch2: TensorBase, *, beta: float = 1, alpha: float = 1) -> Any:
    """Write `addbmm` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.zeros(1, 1).addbmm_(mg.ones(3, 1, 2), mg.ones(3, 2, 1))
    tensor([[6.]])
    """
    return _written("addbmm_", x, addbmm(x, batch1, batch2, beta=beta, alpha=alpha))


def baddbmm_(x: TensorBase, batch1: TensorBase, batch2: TensorBase, *, beta: float = 1, alpha: float = 1) -> Any:
    """Write `baddbmm` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.zeros(3, 1, 1).baddbmm_(mg.ones(3, 1, 2), mg.ones(3, 2, 1)).flatten()
    tensor([2., 2., 2.])
    """
    return _written("baddbmm_", x, baddbmm(x, batch1, batch2, beta=beta, alpha=alpha))


def addr_(x: TensorBase, vec1: TensorBase, vec2: TensorBase, *, beta: float = 1, alpha: float = 1) -> Any:
    """Write `addr` of the tensor into it, and return it.

    >>> import mutagrad as mg
    >>> mg.zeros(2, 2).addr_(mg.tensor([1., 2.]), mg.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    found = addr(x, vec1, vec2, beta=beta, alpha=alpha)
    if found._array.dtype is not x._array.dtype:
        raise DTypeError(f"addr_: a result of type {of_array(found._array.dtype).name} "
                         f"cannot be written into {of_array(x._array.dtype).name}",
                         fix="x.addr(vec1, vec2) makes a new tensor")
    return _written("addr_", x, found)


# ------------------------------------------------------------------------------------------------------- inner products

def inner(input: TensorBase, other: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Sum products over the last dimension of both.

    >>> import mutagrad as mg
    >>> mg.inner(mg.tensor([1., 2.]), mg.tensor([[3., 4.], [5., 6.]]))
    tensor([11., 17.])
    """
    check_factors("inner", input, other)
    if not input._array.ndim or not other._array.ndim:
        return write_out("inner", mul(input, other), out)
    if input._array.shape[-1] != other._array.shape[-1]:
        raise mismatch("inner", input, other,
                       f"the last sizes {input._array.shape[-1]} and {other._array.shape[-1]} differ")
    return write_out("inner", tensordot(input, other, dims=([-1], [-1])), out)


def vdot(input: TensorBase, other: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the sum of the products of two vectors, the first conjugated.

    >>> import mutagrad as mg
    >>> mg.vdot(mg.tensor([1j, 2.]), mg.tensor([1j, 1.]))
    tensor(3.+0.j)
    """
    check_factors("vdot", input, other)
    return write_out("vdot", dot(conj(input) if input._array.dtype.kind == "c" else input, other), out)


def vecdot(x: TensorBase, y: TensorBase, *, dim: int = -1, out: TensorBase | None = None) -> Any:
    """Return the inner products of vectors along a dimension, the first conjugated.

    >>> import mutagrad as mg
    >>> mg.linalg.vecdot(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 1.]))
    tensor([3., 7.])
    """
    check_factors("vecdot", x, y)
    wide, other = broadcast_tensors(x, y)
    dim = whole_dim(dim, wide._array.ndim, "vecdot")
    found = mul(conj(wide) if wide._array.dtype.kind == "c" else wide, other)
    return write_out("vecdot", sum_dims(found, (dim,) if found._array.ndim else (), False), out)


# ------------------------------------------------------------------------------------------------------------- in space

def _cross(a: Array, b: Array, dim: int) -> Any:
    if dim == a.ndim - 1 and is_plain(a, b) and a.flags.c_contiguous and b.flags.c_contiguous:
        rows, others = a.reshape(-1, 3), b.reshape(-1, 3)
        if (loop := rows_of(rows, systems.cross)) is not None:
            out = np.empty(rows.shape, a.dtype)
            loop.share(len(rows), out.size, rows, others, out)
            return out.reshape(a.shape)
    return np.cross(a, b, axis=dim)


cross_values = primitive("cross", _cross, settings=("dim",),
                         x=lambda xp, g, y, dim: xp.cross(y, g, dim), y=lambda xp, g, x, dim: xp.cross(g, x, dim))


def linalg_cross(input: TensorBase, other: TensorBase, *, dim: int = -1, out: TensorBase | None = None) -> Any:
    """Return the vectors at right angles to both, along a dimension of size 3.

    >>> import mutagrad as mg
    >>> mg.linalg.cross(mg.tensor([1., 0., 0.]), mg.tensor([0., 1., 0.]))
    tensor([0., 0., 1.])
    """
    x, y = tensor_argument(input, "cross"), tensor_argument(other, "cross")
    a, b = x._array.shape, y._array.shape
    if len(a) != len(b):
        raise ShapeError(f"cross: shapes {a} and {b} have different numbers of dimensions",
                         fix="add a dimension: y[None]")
    dim = whole_dim(dim, len(a), "cross")
    if not a or a[dim] != 3 or b[dim] != 3:
        raise ShapeError(f"cross: dimension {dim} of shapes {a} and {b} must have size 3",
                         fix="dim= of the three coordinates")
    common = operand_dtype([x, y])
    if common.category == BOOL:
        raise DTypeError("cross: not defined for booleans", fix="x.int()")
    x, y = (v if v._array.dtype is common.array_type else cast(v, common.array_type) for v in (x, y))
    return write_out("cross", cross_values(*broadcast_tensors(x, y), dim), out)


def cross(input: TensorBase, other: TensorBase, dim: int | None = None, *, out: TensorBase | None = None) -> Any:
    """Return the vectors at right angles to both, along a dimension of size 3: the first such if none is named.

    >>> import mutagrad as mg
    >>> mg.cross(mg.tensor([1., 0., 0.]), mg.tensor([0., 1., 0.]), dim=0)
    tensor([0., 0., 1.])
    """
    shape = tensor_argument(input, "cross")._array.shape
    if dim is None and 3 not in shape:
        raise ShapeError(f"cross: no dimension of shape {shape} has size 3", fix="vectors of three coordinates")
    return linalg_cross(input, other, dim=shape.index(3) if dim is None else dim, out=out)


def kron(input: TensorBase, other: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Multiply every element of the first with the whole of the second, laid out as blocks.

    >>> import mutagrad as mg
    >>> mg.kron(mg.tensor([1., 2.]), mg.tensor([1., 10.]))
    tensor([ 1., 10.,  2., 20.])
    """
    x, y = tensor_argument(input, "kron"), tensor_argument(other, "kron")
    n = max(x._array.ndim, y._array.ndim)
    a, b = ((1,) * (n - len(shape)) + shape for shape in (x._array.shape, y._array.shape))
    blocks = mul(reshape(x, *(v for k in a for v in (k, 1))), reshape(y, *(v for k in b for v in (1, k))))
    return write_out("kron", reshape(blocks, *(i * j for i, j in zip(a, b))), out)


# --------------------------------------------------------------------------------------------------------- many factors

def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of factors so that the fewest products of numbers are made."""
    n = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(n)}
    best: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], best[i, j] = min(options)
    return best


def _multiply(factors: Sequence[TensorBase], splits: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return factors[i]
    k = splits[i, j]
    return matmul(_multiply(factors, splits, i, k), _multiply(factors, splits, k + 1, j))


def multi_dot(tensors: Sequence[TensorBase], *, out: TensorBase | None = None) -> Any:
    """Multiply several matrices in the order that needs the least work; the first and last may be vectors.

    >>> import mutagrad as mg
    >>> mg.linalg.multi_dot((mg.ones(1, 2), mg.ones(2, 3), mg.ones(3, 1)))
    tensor([[6.]])
    """
    if not isinstance(tensors, (tuple, list)):
        raise BadArgument(f"multi_dot: expects a sequence of tensors, got {type(tensors).__name__}",
                          fix="mutagrad.linalg.multi_dot([x, y])")
    factors = [tensor_argument(x, "multi_dot") for x in tensors]
    if len(factors) < 2:
        raise BadValue(f"multi_dot: expects at least two tensors, got {len(factors)}",
                       fix="mutagrad.linalg.multi_dot([x, y])")
    check_factors("multi_dot", *factors)
    ranks = [x._array.ndim for x in factors]
    if ranks[0] not in (1, 2) or ranks[-1] not in (1, 2) or any(rank != 2 for rank in ranks[1:-1]):
        raise ShapeError("multi_dot: expects matrices, of which the first and last may be vectors; "
                         f"got shapes {[x._array.shape for x in factors]}", fix="x @ y for batches of matrices")
    for left, right in pairwise(factors):
        if left._array.shape[-1] != right._array.shape[0]:
            raise mismatch("multi_dot", left, right,
                           f"sizes {left._array.shape[-1]} and {right._array.shape[0]} differ")
    last = [x._array.shape[1] if x._array.ndim == 2 else 1 for x in factors[1:]]
    sizes = [factors[0]._array.shape[0] if ranks[0] == 2 else 1, factors[0]._array.shape[-1], *last]
    return write_out("multi_dot", _multiply(factors, _splits(sizes), 0, len(factors) - 1), out)


def chain_matmul(*matrices: TensorBase, out: TensorBase | None = None) -> Any:
    """Multiply several matrices in the order that needs the least work.

    >>> import mutagrad as mg
    >>> mg.chain_matmul(mg.ones(1, 2), mg.ones(2, 3), mg.ones(3, 1))
    tensor([[6.]])
    """
    if not matrices:
        raise BadArgument("chain_matmul: expects at least one matrix, got none",
                          fix="mutagrad.linalg.multi_dot([x, y])")
    check_factors("chain_matmul", *matrices)
    if any(x._array.ndim != 2 for x in matrices):
        raise ShapeError(f"chain_matmul: expects matrices, got shapes {[x._array.shape for x in matrices]}",
                         fix="x @ y for batches of matrices")
    return write_out("chain_matmul", matrices[0], out) if len(matrices) == 1 else multi_dot(matrices, out=out)
