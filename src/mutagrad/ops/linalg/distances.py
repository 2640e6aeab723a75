"""Distances between rows, and rows cut to a length."""
from __future__ import annotations

from types import NoneType
from typing import Any

from ...arrays import np, parallel as large
from ...arrays.compiled import systems
from ...arrays.compiled.library import rows_of
from ...arrays.products import multiply
from ...arrays.sums import GROUP
from ...base.errors import BadArgument, BadValue, DTypeError, ShapeError
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.indexing import copy_
from ...core.number import number
from ...core.out_arg import write_out
from ...core.promote import operand_dtype
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import cast, where
from ..reduce.reductions import floating, norm
from ..shape.shape import expand, whole_dim

FUNCTIONS = "cdist renorm"
METHODS = "renorm renorm_"

_SIDE = 64  # rows from which NumPy goes over all of them for one coordinate after the other


def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Any:
    """Scale slices along a dimension that have a p-norm above `maxnorm` down to it.

    >>> import mutagrad as mg
    >>> mg.renorm(mg.tensor([[3., 4.], [0., 1.]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    ndim = floating(input, None, "renorm")._array.ndim
    p, maxnorm = number(p), number(maxnorm)
    for what, value in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(value, (bool, complex, NoneType)):
            raise BadArgument(f"renorm: {what} must be a number, not {type(value).__name__}", fix=f"{what}=2")
    if not p > 0 or not maxnorm >= 0:
        raise BadValue(f"renorm: p={p} must be positive, and maxnorm={maxnorm} not negative", fix="x.renorm(2, 0, 1.0)")
    if ndim < 2:
        raise ShapeError(f"renorm: expects at least 2 dimensions, got shape {input._array.shape}", fix="x.unsqueeze(1)")
    dim = whole_dim(dim, ndim, "renorm")
    length = norm(input, p, tuple(d for d in range(ndim) if d != dim), True)
    return write_out("renorm", input * where(length > maxnorm, maxnorm / (length + 1e-7), 1.0), out)


def renorm_(x: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    """Do `renorm` in place.

    >>> import mutagrad as mg
    >>> mg.tensor([[3., 4.], [0., 1.]]).renorm_(2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.0000, 1.0000]])
    """
    return copy_(x, renorm(x, p, dim, maxnorm))


def _euclidean(a: Array, b: Array, fast: bool) -> Any:
    if not fast:
        apart = a[..., :, None, :] - b[..., None, :, :]
        return np.sqrt(np.add.reduce(apart * apart, -1))
    squares = multiply(a, (b * -2).swapaxes(-1, -2))
    squares += np.add.reduce(a * a, -1)[..., :, None]
    squares += np.add.reduce(b * b, -1)[..., None, :]
    return np.sqrt(np.maximum(squares, 0, out=squares), out=squares)


def _by_loop(a: Array, b: Array, p: float) -> Any:
    """Distances by a compiled loop; None where there is none."""
    if b.ndim != 2 or b.dtype is not a.dtype or not b.flags.c_contiguous or (
            loop := rows_of(a, systems.distances)) is None:
        return None
    out = np.empty((len(a), len(b)), a.dtype)
    loop.share(len(a), a.shape[1] * out.size, a, b, p, out)
    return out


def _by_coordinates(a: Array, b: Array, p: float) -> Any:
    """Distances along one coordinate after the other, of some rows to all others: all differences would be many."""
    columns = np.ascontiguousarray(b.T)
    out = np.empty((len(a), len(b)), a.dtype)

    def work(part: slice) -> None:
        rows, total = a[part], out[part]
        total[...] = 0
        apart, power = np.empty_like(total), np.array(p, a.dtype)
        exact: Any = 0.0
        for k, column in enumerate(columns):
            np.abs(np.subtract(rows[:, k, None], column, out=apart), out=apart)
            if p == float("inf"):
                np.maximum(total, apart, out=total)
                continue
            if p == 0:
                np.not_equal(apart, 0, out=apart)
            elif p != 1:
                (np.square(apart, out=apart) if p == 2 else np.power(apart, power, out=apart))
            np.add(total, apart, out=total)
            if k % GROUP == GROUP - 1:  # more would show in the last bits
                exact = exact + total.astype(np.float64)
                total[...] = 0
        np.add(total, exact, out=total, casting="same_kind")
        if p not in (0, 1, float("inf")):
            (np.sqrt(total, out=total) if p == 2 else np.power(total, 1 / power, out=total))

    large.in_turn(len(a), len(b) * 2, work)
    return out


def _distances(a: Array, b: Array, p: float, fast: bool) -> Any:
    if (p != 2 or not fast) and (found := _by_loop(a, b, p)) is not None:
        return found
    if ((p != 2 or not fast) and a.ndim == b.ndim == 2 and a.dtype is b.dtype and a.dtype.char in "fd"
            and len(b) >= _SIDE and type(a) is type(b) is np.ndarray):
        return _by_coordinates(a, b, p)
    if p == 2:
        return _euclidean(a, b, fast)
    apart = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        return np.add.reduce(apart != 0, -1, a.dtype)
    if p == float("inf"):
        return np.maximum.reduce(apart, -1, initial=0)
    return np.add.reduce(apart, -1) if p == 1 else np.power(np.add.reduce(np.power(apart, p), -1), 1 / p)


def _distance_rule(xp: Any, g: Any, x: Any, y: Any, out: Any, p: float, fast: bool) -> Any:
    """The adjoint of x; y's is the same with the distances transposed. The slope of a distance of zero is zero."""
    if p == 0:
        return xp.zeros_like(x)
    last = (len(g.shape) - 1,)
    if p == 2:
        w = xp.where(out == 0, 0.0, g / xp.where(out == 0, 1.0, out))
        if fast:
            return x * xp.sum(w, last, True) - xp.matmul(w, y)
        return xp.sum(xp.unsqueeze(w, -1) * (xp.unsqueeze(x, -2) - xp.unsqueeze(y, -3)), last, False)
    apart = xp.unsqueeze(x, -2) - xp.unsqueeze(y, -3)
    wide, size = xp.unsqueeze(out, -1), xp.abs(apart)
    slope = xp.sgn(apart)
    if p == float("inf"):
        slope = slope * (size == wide)
    elif p != 1:
        near = size == 0
        ratio = xp.where(near, 1.0, size) / xp.where(wide == 0, 1.0, wide)
        slope = xp.where(near, 0.0, slope * xp.power(ratio, p - 1))
    return xp.sum(xp.unsqueeze(g, -1) * slope, last, False)


def _turned(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.transpose(x, n - 2, n - 1)


cdist_values = primitive(
    "cdist", _distances, settings=("p", "fast"),
    x=lambda xp, g, x, y, out, p, fast: _distance_rule(xp, g, x, y, out, p, fast),
    y=lambda xp, g, x, y, out, p, fast: _distance_rule(xp, _turned(xp, g), y, x, _turned(xp, out), p, fast))

_COMPUTE_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": True,
                  "donot_use_mm_for_euclid_dist": False}
_FEW_ROWS = 25  # up to so many, differences are as fast as a product of matrices, and more exact


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Any:
    """Return the p-norm distance of each row of x1 to each row of x2; leading dimensions are batches.

    >>> import mutagrad as mg
    >>> mg.cdist(mg.zeros(1, 2), mg.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    a, b = (floating(x, None, "cdist")._array for x in (x1, x2))
    if "V" in (a.dtype.kind, b.dtype.kind):
        raise DTypeError("cdist: not defined for bfloat16",
                         why="which differences are the largest is lost when they are rounded", fix="x.float()")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"cdist: shapes {a.shape} and {b.shape} are not rows of one length",
                         why="both need 2 dimensions, the last of one size", fix="x.unsqueeze(0) for a single row")
    p = number(p)
    if isinstance(p, (bool, complex, NoneType)) or not p >= 0:
        raise BadValue(f"cdist: p={p!r} must be a number that is not negative", fix="p=2")
    wanted = compute_mode or "use_mm_for_euclid_dist_if_necessary"
    fast = _COMPUTE_MODES.get(wanted, "") if isinstance(wanted, str) else ""
    if fast == "":
        raise BadValue(f"cdist: compute_mode={compute_mode!r} is none of {', '.join(_COMPUTE_MODES)}",
                       fix="leave it out")
    if fast is None:
        fast = a.shape[-2] > _FEW_ROWS or b.shape[-2] > _FEW_ROWS
    common = operand_dtype([x1, x2]).array_type
    x1, x2 = (x if x._array.dtype is common else cast(x, common) for x in (x1, x2))
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ShapeError(f"cdist: the batches of shapes {a.shape} and {b.shape} do not broadcast",
                         fix="x.unsqueeze(1)") from None
    x1, x2 = (x if x._array.shape[:-2] == batch else expand(x, *batch, *x._array.shape[-2:]) for x in (x1, x2))
    return cdist_values(x1, x2, float(p), bool(fast))
