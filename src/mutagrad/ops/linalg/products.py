"""Products of matrices and vectors."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any

from ...arrays import np, sums
from ...arrays.bfloat16 import SHORT, rounded, widened
from ...arrays.blas import on_one_thread
from ...arrays.kinds import is_plain, share_memory
from ...arrays.numpy import silenced
from ...arrays.products import SMALL, contract, multiply
from ...base.errors import BadArgument, BadData, BadValue, DTypeError, OutOfMemory, ShapeError
from ...base.modes import mode
from ...base.operands import Array, kind_name
from ...core.codegen import primitive
from ...core.dtypes import BOOL, FLOAT, of_array
from ...core.factory import make
from ...core.number import number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.promote import as_operand, call_reflected
from ...core.storage import TensorBase, save
from ...core.write import linked, new_node
from ..reduce.reductions import sum as total, sum_dims
from ..shape.shape import diagonal, expand, permute, reshape, tensor_argument, unsqueeze, variadic, whole_dims


def _swap(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.transpose(x, n - 2, n - 1)


def _sum_to(xp: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Sums over dimensions that were broadcast."""
    lead = len(g.shape) - len(shape)
    dims = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1 and g.shape[i + lead] != 1)
    return xp.reshape(xp.sum(g, dims, True), shape) if dims else g


def _left(xp: Any, g: Any, y: Any, shape: tuple[int, ...]) -> Any:
    if len(y.shape) == 1:
        return xp.unsqueeze(g, len(g.shape)) * y
    if len(shape) == 1:
        if len(y.shape) == 2:
            return xp.matmul(y, g)
        return _sum_to(xp, xp.sum(xp.unsqueeze(g, len(g.shape) - 1) * y, (len(y.shape) - 1,), False), shape)
    return _sum_to(xp, xp.matmul(g, _swap(xp, y)), shape)


def _right(xp: Any, g: Any, x: Any, shape: tuple[int, ...]) -> Any:
    if len(x.shape) == 1:
        rows = xp.unsqueeze(x, 1) * xp.unsqueeze(g, len(g.shape) - 1) if len(shape) > 1 else x * g
        return _sum_to(xp, rows, shape)
    if len(shape) == 1:
        n, k = prod(g.shape), x.shape[-1]
        return xp.matmul(xp.reshape(g, (n,)), xp.reshape(x, (n, k)))
    return _sum_to(xp, xp.matmul(_swap(xp, x), g), shape)


def _integer_product(a: Array, b: Array) -> Any:
    """`a @ b` of integers by BLAS, in double, where no sum can be too large for that; NumPy goes one by one."""
    if min(a.size, b.size) < 256 or min(a.ndim, b.ndim) < 2 or not is_plain(a, b):
        return np.matmul(a, b)
    sizes = [max(-int(v.min()), int(v.max())) for v in (a, b)]
    if sizes[0] * sizes[1] * a.shape[-1] >= 2**53:
        return np.matmul(a, b)
    return multiply(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(a.dtype, copy=False)


def product(a: Array, b: Array) -> Any:
    """Return `a @ b`."""
    if a.dtype.kind in "iu" and a.dtype is b.dtype:
        return _integer_product(a, b)
    if a.ndim == b.ndim == 1 and len(a) > 4 * _RUN:
        return _long_dot(a, b)
    if a.shape[-1] < _LONG or a.ndim != 2 or b.ndim != 2 or 1 in (len(a), b.shape[1]) or a.size * b.shape[1] > _SMALL:
        return multiply(a, b)
    return _long_product(a, b)


_RUN = 1 << 15  # numbers of a vector that OpenBLAS may add one after the other; with fewer it uses one thread only


def _long_dot(a: Array, b: Array) -> Any:
    """Multiply two long vectors as a sum of parts. On some processors OpenBLAS has few partial sums of its own."""
    whole = len(a) // _RUN * _RUN
    parts = [np.matmul(x, y) for x, y in zip(a[:whole].reshape(-1, _RUN), b[:whole].reshape(-1, _RUN))]
    return sums.add(np.stack([*parts, np.matmul(a[whole:], b[whole:])]), (0,))


_LONG = 1024  # products to be added that are worth adding in groups
_SMALL = 1 << 22  # products up to which this is as fast, and OpenBLAS adds all of an element's one after the other


def _long_product(a: Array, b: Array) -> Any:
    """`a @ b` of long rows and columns, such as the gradient of few weights over a large batch: the sum of parts."""
    groups = a.shape[1] // sums.GROUP
    each = a.shape[1] // groups
    whole = groups * each
    parts = np.matmul(a[:, :whole].reshape(len(a), groups, each).swapaxes(0, 1), b[:whole].reshape(groups, each, -1))
    if whole < a.shape[1]:
        parts[0] += np.matmul(a[:, whole:], b[whole:])
    return sums.add(parts, (0,))


def _add_product(name: str, bias: Array, a: Array, b: Array, beta: Any, alpha: Any) -> Any:
    """beta * bias + alpha * (a @ b) in the type of a; with beta 0 the bias does not count, be it nan."""
    found = product(a, b)
    if alpha != 1:
        found = (found * alpha).astype(a.dtype, copy=False)
    try:
        if beta == 0:
            np.broadcast_to(bias, found.shape)
        else:
            scaled = bias if beta == 1 else (bias * beta).astype(a.dtype, copy=False)
            found = np.add(found, scaled, found) if is_plain(scaled) else found + np.broadcast_to(scaled, found.shape)
    except ValueError:
        raise ShapeError(f"{name}: what is added has shape {bias.shape}, the product {found.shape}",
                         why="the first must broadcast to the second",
                         fix="reshape it until its sizes are equal or 1") from None
    return found


def sum_with_product(name: str) -> Any:
    """Declare `beta * bias + alpha * (x @ y)` as one operation, in which the bias broadcasts."""
    return primitive(name, lambda bias, a, b, beta, alpha: _add_product(name, bias, a, b, beta, alpha),
                     settings=("beta", "alpha"), numbers=("beta", "alpha"),
                     bias=lambda xp, g, bias_shape, beta: _sum_to(xp, g if beta == 1 else g * beta, bias_shape),
                     x=lambda xp, g, y, x_shape, alpha: _left(xp, g if alpha == 1 else g * alpha, y, x_shape),
                     y=lambda xp, g, x, y_shape, alpha: _right(xp, g if alpha == 1 else g * alpha, x, y_shape))


matmul_values = primitive("matmul", product, x=lambda xp, g, y, x_shape: _left(xp, g, y, x_shape),
                          y=lambda xp, g, x, y_shape: _right(xp, g, x, y_shape))
addmm_values = sum_with_product("addmm")


def check_factors(name: str, *factors: TensorBase) -> None:
    """Raise for what is no tensor, and for types that differ or have no products."""
    for v in factors:
        if not isinstance(v, TensorBase):
            raise BadArgument(f"{name}: expects tensors, got {kind_name(v)}",
                              fix=f"mutagrad.{name}(x, mutagrad.tensor(y))")
    first = of_array(factors[0]._array.dtype)
    for v in factors[1:]:
        if v._array.dtype is not factors[0]._array.dtype:
            raise DTypeError(f"{name}: the operands have types {first.name} and {of_array(v._array.dtype).name}",
                             why="products do not promote", fix=f"y.to({first})")
    if first.category == BOOL:
        raise DTypeError(f"{name}: not defined for booleans", why="PyTorch has no sums of products of them",
                         fix="x.int() @ y.int()")


def _plain_factors(x: object, y: object) -> bool:
    """Whether `check_factors` has nothing to say: one look instead of several, on the commonest path."""
    return (isinstance(x, TensorBase) and isinstance(y, TensorBase) and x._array.dtype is y._array.dtype
            and x._array.dtype.kind in "fc")


def mismatch(name: str, x: TensorBase, y: TensorBase, why: str) -> ShapeError:
    a, b = x._array.shape, y._array.shape
    fix = "x @ y.T" if len(b) == 2 and a and a[-1] == b[-1] else "check which operand should be transposed: x.T, y.T"
    shapes = f"mat1 and mat2 shapes cannot be multiplied ({'x'.join(map(str, a))} and {'x'.join(map(str, b))})"
    return ShapeError(f"{name}: {shapes}", why=why, fix=fix)


def matmul(input: TensorBase, other: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Multiply vectors, matrices, or batches of matrices, whose batch dimensions broadcast: `x @ y`.

    >>> import mutagrad as mg
    >>> mg.eye(2) @ mg.tensor([1., 2.])
    tensor([1., 2.])
    """
    if not _plain_factors(input, other):
        input, other = (as_operand(v, "matmul") if isinstance(v, np.ndarray) else v for v in (input, other))
        try:
            check_factors("matmul", input, other)
        except BadArgument as error:
            return call_reflected(matmul_values.op, (input, other), error)
    a, b = input._array, other._array
    if not a.ndim or not b.ndim:
        raise mismatch("matmul", input, other, "0-d tensors have no product of this kind; use *")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise mismatch("matmul", input, other, f"the inner sizes {a.shape[-1]} and {inner} differ")
    result = matmul_values(input, other)
    return result if out is None else write_out("matmul", result, out)


def _ranked(name: str, dims_x: int, dims_y: int, x: TensorBase, y: TensorBase) -> Any:
    check_factors(name, x, y)
    if x._array.ndim != dims_x or y._array.ndim != dims_y:
        raise mismatch(name, x, y, f"{name} takes {dims_x} and {dims_y} dimensions")
    if name == "bmm" and x._array.shape[0] != y._array.shape[0]:
        raise mismatch(name, x, y, "bmm does not broadcast: the batch sizes must be equal")
    return matmul(x, y)


def mm(input: TensorBase, mat2: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the product of two matrices.

    >>> import mutagrad as mg
    >>> mg.mm(mg.tensor([[1., 2.]]), mg.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    return write_out("mm", _ranked("mm", 2, 2, input, mat2), out)


def bmm(input: TensorBase, mat2: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the products of two batches of matrices.

    >>> import mutagrad as mg
    >>> mg.bmm(mg.ones(2, 1, 3), mg.ones(2, 3, 1)).flatten()
    tensor([3., 3.])
    """
    return write_out("bmm", _ranked("bmm", 3, 3, input, mat2), out)


def mv(input: TensorBase, vec: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the product of a matrix and a vector.

    >>> import mutagrad as mg
    >>> mg.mv(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1., 1.]))
    tensor([3., 7.])
    """
    return write_out("mv", _ranked("mv", 2, 1, input, vec), out)


def dot(input: TensorBase, tensor: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the sum of the products of two vectors.

    >>> import mutagrad as mg
    >>> mg.dot(mg.tensor([1., 2.]), mg.tensor([3., 4.]))
    tensor(11.)
    """
    return write_out("dot", _ranked("dot", 1, 1, input, tensor), out)


def outer(input: TensorBase, vec2: TensorBase, *, out: TensorBase | None = None) -> Any:
    """Return the matrix of all products of two vectors.

    >>> import mutagrad as mg
    >>> mg.ger(mg.tensor([1., 2.]), mg.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    input, vec2 = tensor_argument(input, "outer"), tensor_argument(vec2, "outer")
    if input._array.ndim != 1 or vec2._array.ndim != 1:
        raise mismatch("outer", input, vec2, "outer takes two vectors")
    return write_out("outer", unsqueeze(input, 1) * vec2, out)


def check_scales(name: str, x: TensorBase, *scales: Any) -> None:
    """Raise where a scale would make fractions of integers."""
    if of_array(x._array.dtype).category < FLOAT and any(isinstance(scale, float) for scale in scales):
        raise DTypeError(f"{name}: alpha and beta must be integers for tensors of {of_array(x._array.dtype).name}",
                         why="they do not change the type of the result", fix="x.float() first")


def add_product(operation: Callable[..., TensorBase], name: str, x: TensorBase, left: TensorBase, right: TensorBase,
                dims: tuple[int, int], beta: float, alpha: float) -> Any:
    """Do `operation`, one of `sum_with_product`, once its arguments are seen to fit."""
    if not _plain_factors(left, right) or not _plain_factors(x, left):
        check_factors(name, x, left, right)
        check_scales(name, x, number(beta), number(alpha))
    a, b = left._array.shape, right._array.shape
    if (len(a), len(b)) != dims:
        raise mismatch(name, left, right, f"{name} takes factors of {dims[0]} and {dims[1]} dimensions")
    if a[-1] != b[-2 if len(b) > 1 else 0] or len(b) == 3 and a[0] != b[0]:
        raise mismatch(name, left, right, "the inner sizes, and those of the batches, must be equal")
    return operation(x, left, right, beta, alpha)


def addmm(input: TensorBase, mat1: TensorBase, mat2: TensorBase, *, beta: float = 1, alpha: float = 1,
          out: TensorBase | None = None) -> Any:
    """Return `beta * x + alpha * (mat1 @ mat2)`.

    >>> import mutagrad as mg
    >>> mg.addmm(mg.ones(2), mg.eye(2), mg.tensor([[1., 2.], [3., 4.]]))
    tensor([[2., 3.],
            [4., 5.]])
    """
    return write_out("addmm", add_product(addmm_values, "addmm", input, mat1, mat2, (2, 2), beta, alpha), out)


# --------------------------------------------------------------------------------------------------------------- einsum

def _einsum_reverse(xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
    *operands, (terms, result) = saved
    grads: list[Any] = []
    for i, k in enumerate(links[: len(terms)]):  # after them, in a write to a part, stands the writer before
        if k is None:
            grads.append(None)
            continue
        others = [j for j in range(len(terms)) if j != i]
        other_terms, factors = [terms[j] for j in others], [operands[j] for j in others]
        grads.append(xp.conjugate_einsum((result, *other_terms), terms[i], (g, *factors)))
    return grads


_ROOM = 1 << 24  # elements that may lie between two products: in one go NumPy adds all of them one after the other


@silenced
def _einsum_arrays(terms: tuple[str, ...], result: str, arrays: tuple[Array, ...]) -> Any:
    equation, plan = f"{','.join(terms)}->{result}", ("greedy", max(_ROOM, *(a.size for a in arrays)))
    try:
        if any(a.dtype.char in SHORT for a in arrays):
            found = _einsum_arrays(terms, result, tuple(map(widened, arrays)))
            return rounded(found, arrays[0].dtype) if len({a.dtype for a in arrays}) == 1 else found
        found = contract(terms, result, arrays)
        if found is not None:
            return found
        sizes = {c: n for term, a in zip(terms, arrays) for c, n in zip(term, a.shape)}
        if is_plain(*arrays) and prod(sizes.values()) < SMALL:
            return on_one_thread(lambda _: np.einsum(equation, *arrays, optimize=plan))
        return np.einsum(equation, *arrays, optimize=plan)
    except MemoryError as error:
        raise OutOfMemory.found_by("einsum", error) from None


_einsum = variadic("einsum", None, _einsum_reverse, True)


# By equation and shapes: the terms and the result, where operands are multiplied as they are.
_read_before: dict[tuple[Any, ...], tuple[tuple[str, ...], str]] = {}
_MANY = 1024


def _einsum_recorded(terms: tuple[str, ...], result: str, tensors: tuple[TensorBase, ...]) -> Any:
    """Every letter of a term stands in the result or in another term, so each adjoint is an einsum again."""
    found = _einsum_arrays(terms, result, tuple(x._array for x in tensors))
    whole = isinstance(found, np.ndarray) and found.flags.c_contiguous and (
        found.flags.owndata or not any(share_memory(found, x._array) for x in tensors))
    out = make(found if whole else np.array(found, order="C"))
    if mode.grad and any(x._storage.writer is not None for x in tensors):
        node = new_node(_einsum, *linked(tensors))
        node.saved = (*(save(x, node, i) for i, x in enumerate(tensors)), (terms, result))
        out._storage.writer = node
    return out


RAW.conjugate_einsum = lambda terms, result, arrays: _einsum_arrays(
    terms, result, (arrays[0], *(a.conj() for a in arrays[1:])))
RECORDED.conjugate_einsum = lambda terms, result, xs: _einsum_recorded(
    terms, result, (xs[0], *(x if x._array.dtype.kind != "c" else RECORDED.conj(x) for x in xs[1:])))


def _misfit(result: str, absent: set[str]) -> str:
    if absent:
        return f"{min(absent)} does not appear in any operand"
    return f"{max(result, key=result.count)} appears more than once"


def _parse(equation: str, tensors: tuple[TensorBase, ...]) -> tuple[list[str], str]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        which = "fewer" if len(terms) > len(tensors) else "more"
        raise BadValue(f"einsum(): {which} operands were provided than {equation!r} names: {len(tensors)}",
                       fix="one term for each, between commas")
    spare = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    width = max((x._array.ndim - len(s.replace("...", "")) for s, x in zip(terms, tensors) if "..." in s), default=0)
    dots = "".join(spare[:width])
    full = []
    for s, x in zip(terms, tensors):
        missing = x._array.ndim - len(s.replace("...", ""))
        s = s.replace("...", dots[width - missing:] if missing > 0 else "") if "..." in s else s
        if len(s) != x._array.ndim:
            raise ShapeError(f"einsum(): the number of subscripts in the equation ({len(s)} in {s!r}) "
                             f"does not match shape {x._array.shape}",
                             fix="a letter for each dimension, or ... for those that need none")
        full.append(s)
    if not arrow:
        letters = "".join(full)
        right = dots + "".join(sorted(c for c in set(letters) - set(dots) if letters.count(c) == 1))
    return full, right.replace("...", dots)


def _lettered(arguments: tuple[Any, ...]) -> tuple[str, tuple[TensorBase, ...]]:
    """The equation and the tensors of operands that are each followed by a list of numbers, one for each dimension."""
    def letters(numbers: Sequence[Any]) -> str:
        if any(n is not ... and not 0 <= n < len(ascii_letters) for n in numbers):
            raise BadValue(f"einsum: a dimension's number in {list(numbers)} is not from 0 to {len(ascii_letters) - 1}",
                           fix="einsum(x, [0, 1], y, [1, 2], [0, 2])")
        return "".join("..." if n is ... else (ascii_uppercase + ascii_lowercase)[n] for n in numbers)

    pairs = len(arguments) // 2
    equation = ",".join(letters(numbers) for numbers in arguments[1:2 * pairs:2])
    return equation if len(arguments) == 2 * pairs else f"{equation}->{letters(arguments[-1])}", arguments[:2 * pairs:2]


def einsum(equation: Any, *operands: Any) -> Any:
    """Sum products named by letters; or, `einsum(x, [0, 1], y, [1])`, by numbers.

    >>> import mutagrad as mg
    >>> mg.einsum("ij,j->i", mg.eye(2), mg.tensor([3., 4.]))
    tensor([3., 4.])
    """
    tensors = tuple(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    if isinstance(equation, TensorBase):
        equation, tensors = _lettered((equation, *operands))
    if not isinstance(equation, str):
        raise BadArgument(f"einsum: the equation must be a string, not {type(equation).__name__}",
                          fix='mutagrad.einsum("ij,jk->ik", x, y)')
    tensors = tuple([tensor_argument(x, "einsum") for x in tensors])
    key = equation, *[x._array.shape for x in tensors]
    if (known := _read_before.get(key)) is not None:
        return _einsum_recorded(*known, tensors)
    terms, result = _parse(equation, tensors)
    sizes: dict[str, int] = {}
    for s, x in zip(terms, tensors):
        for c, n in zip(s, x._array.shape):
            if sizes.setdefault(c, n) != n and 1 not in (n, sizes[c]):
                raise ShapeError(f"einsum(): subscript {c} of {equation!r} has size {n}, "
                                 f"which does not broadcast with previously seen size {sizes[c]}",
                                 fix="another letter for one of them, if they are different dimensions")
            sizes[c] = n if sizes[c] == 1 else sizes[c]
    ready = [_plain(s, x, sizes) for s, x in zip(terms, tensors)]
    others = ["".join(o for j, (o, _) in enumerate(ready) if j != i) for i in range(len(ready))]
    ready = [_sum_lonely(s, x, result + letters) for (s, x), letters in zip(ready, others)]
    absent = set(result) - set("".join(s for s, _ in ready))
    if absent or len(set(result)) != len(result):
        raise BadValue(f"einsum(): output subscript {_misfit(result, absent)} of {equation!r}",
                       fix="each letter after -> once")
    if len(ready) == 1:
        s, x = ready[0]
        return permute(x, *(s.index(c) for c in result)) if s != result else x
    found = tuple(s for s, _ in ready)
    if all(x is given for (_, x), given in zip(ready, tensors)):
        if len(_read_before) >= _MANY:
            _read_before.clear()
        _read_before[key] = found, result
    return _einsum_recorded(found, result, tuple(x for _, x in ready))


def _plain(s: str, x: TensorBase, sizes: dict[str, int]) -> tuple[str, TensorBase]:
    """The operand with each letter once (diagonals taken) and at its full size."""
    for c in dict.fromkeys(s):
        while s.count(c) > 1:
            i = s.index(c)
            j = s.index(c, i + 1)
            x = diagonal(x, 0, i, j)
            s = s[:i] + s[i + 1:j] + s[j + 1:] + c
    if any(n != sizes[c] for c, n in zip(s, x._array.shape)):
        x = expand(x, *(sizes[c] for c in s))
    return s, x


def _sum_lonely(s: str, x: TensorBase, elsewhere: str) -> tuple[str, TensorBase]:
    """The operand without letters that stand nowhere else, which are summed right away."""
    lonely = tuple(i for i, c in enumerate(s) if c not in elsewhere)
    return ("".join(c for c in s if c in elsewhere), total(x, lonely)) if lonely else (s, x)


def _paired(name: str, dims: Any, n: int, m: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dimensions of either operand that are summed over, from the forms in which `dims` can be given."""
    if isinstance(dims, TensorBase):
        dims = dims._array.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(n, m):
            raise BadValue(f"{name}: cannot sum over {dims} dimensions of operands that have {n} and {m}", fix="dims=1")
        return tuple(range(n - dims, n)), tuple(range(dims))
    if not isinstance(dims, (tuple, list)) or len(dims) != 2:
        raise BadData(f"{name}: dims must be a number or two lists of dimensions, got {dims!r}",
                      fix="dims=([0, 1], [1, 0])")
    left, right = (whole_dims(side, size, name) if side else () for side, size in zip(dims, (n, m)))
    if len(left) != len(right):
        raise ShapeError(f"{name}: {len(left)} dimensions of the first operand "
                         f"cannot be paired with {len(right)} of the second",
                         fix="lists of one length: dims=([0, 1], [1, 0])")
    return left, right


def tensordot(a: TensorBase, b: TensorBase, dims: Any = 2, out: TensorBase | None = None) -> Any:
    """Sum products over pairs of dimensions.

    >>> import mutagrad as mg
    >>> mg.tensordot(mg.ones(2, 3), mg.ones(3, 4), dims=1).shape
    mutagrad.Size([2, 4])
    """
    check_factors("tensordot", a, b)
    n, m = a._array.ndim, b._array.ndim
    left, right = _paired("tensordot", dims, n, m)
    x, y = _matched(a, b, left, right)
    free_x, free_y = [d for d in range(n) if d not in left], [d for d in range(m) if d not in right]
    outer_x, outer_y = tuple(x._array.shape[d] for d in free_x), tuple(y._array.shape[d] for d in free_y)
    inner = prod(x._array.shape[d] for d in left)
    rows = reshape(permute(x, *free_x, *left), prod(outer_x), inner)
    columns = reshape(permute(y, *right, *free_y), inner, prod(outer_y))
    return write_out("tensordot", reshape(matmul(rows, columns), outer_x + outer_y), out)


def _matched(x: TensorBase, y: TensorBase, left: tuple[int, ...],
             right: tuple[int, ...]) -> tuple[TensorBase, TensorBase]:
    """Paired dimensions of one size: against a size of 1 the other is summed first, as if the 1 had been repeated."""
    for i, j in zip(left, right):
        m, n = x._array.shape[i], y._array.shape[j]
        if m != n and 1 not in (m, n):
            raise ShapeError(f"tensordot: dimension {i} of size {m} and dimension {j} of size {n} cannot be paired",
                             why=f"the shapes are {x._array.shape} and {y._array.shape}",
                             fix="dims=([dimensions of x], [dimensions of y])")
        x = sum_dims(x, (i,), True) if n == 1 != m else x
        y = sum_dims(y, (j,), True) if m == 1 != n else y
    return x, y
