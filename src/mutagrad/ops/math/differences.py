"""Differences of neighbours along a dimension, areas under them, slopes between them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np, running
from ...base.errors import BadArgument, BadIndex, BadValue, DTypeError, ShapeError
from ...core.codegen import primitive
from ...core.dtypes import get_default_dtype
from ...core.factory import make
from ...core.number import number, whole_number
from ...core.op import RAW, RECORDED
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..reduce.reductions import cumsum, sum as total
from ..shape.shape import cat, clone, expand, narrow, reshape, select, tensor_argument, whole_dim, whole_dims
from .elementwise import logical_xor

FUNCTIONS = "diff trapezoid trapz cumulative_trapezoid gradient"
METHODS = "diff"


diff_dim = primitive("diff", lambda a, dim: running.differences(a, dim), settings=("dim",),
                     x=lambda xp, g, dim: xp.diff_back(g, dim))
RAW.diff_back = running.differences_back


def _diff_back(g: Tensor, dim: int) -> Any:
    last = g._array.shape[dim] - 1
    inner = narrow(g, dim, 0, last) - narrow(g, dim, 1, last)
    return cat([-narrow(g, dim, 0, 1), inner, narrow(g, dim, last, 1)], dim)  # type: ignore[operator]


RECORDED.diff_back = _diff_back


def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None,
         *, axis: int | None = None, out: Tensor | None = None) -> Any:
    """Return differences of neighbours along a dimension, n times over.

    >>> import mutagrad as mg
    >>> mg.diff(mg.tensor([1., 4., 9.]))
    tensor([3., 5.])
    """
    ndim = tensor_argument(input, "diff")._array.ndim
    if not ndim:
        raise ShapeError("diff: expects a tensor with at least one dimension", fix="x.reshape(1)")
    dim = whole_dim(dim if axis is None else axis, ndim, "diff")
    n = whole_number(n, "diff", "n")
    if n < 0:
        raise BadValue(f"diff: n={n} must not be negative", fix="n=1")
    ends = [_same_rank(x, ndim) for x in (prepend, input, append) if x is not None]
    x = clone(input) if not n else cat(ends, dim) if len(ends) > 1 else input
    for _ in range(n):
        x = _neighbours(x, dim)
    return write_out("diff", x, out)


def _same_rank(part: Tensor, ndim: int) -> Tensor:
    if tensor_argument(part, "diff")._array.ndim != ndim:
        raise ShapeError(f"diff: prepend and append must have {ndim} dimensions, as the input, not {part._array.ndim}",
                         fix="prepend.unsqueeze(0)")
    return part


def _neighbours(x: Tensor, dim: int) -> Any:
    size = x._array.shape[dim]
    if not size:
        return x
    if size > 1 and x._array.dtype.kind != "b":
        return diff_dim(x, dim)
    right, left = narrow(x, dim, 1, size - 1), narrow(x, dim, 0, size - 1)
    return logical_xor(right, left) if x._array.dtype.kind == "b" else right - left


# ----------------------------------------------------------------------------------------------------- areas, slopes

def _areas(name: str, y: Tensor, x: Tensor | None, dx: float | None, dim: int) -> tuple[Any, int]:
    """Twice the area between neighbours."""
    ndim = tensor_argument(y, name)._array.ndim
    if x is not None and dx is not None:
        raise BadArgument(f"{name}: x and dx cannot both be given", fix=f"mutagrad.{name}(y, x)")
    if not ndim:
        raise BadIndex(f"{name}: a 0-d tensor has no dimension to integrate along", fix="y.reshape(1)")
    dim = whole_dim(dim, ndim, name)
    size = y._array.shape[dim]
    if size and y._array.dtype.kind == "b":
        raise DTypeError(f"{name}: booleans have no areas", fix=f"mutagrad.{name}(y.float())")
    if not size:
        return y, dim
    pairs = narrow(y, dim, 1, size - 1) + narrow(y, dim, 0, size - 1)
    if x is None:
        return pairs * (1 if dx is None else dx), dim
    along = 0 if tensor_argument(x, name)._array.ndim == 1 else dim - ndim
    if not x._array.ndim or x._array.shape[along] != size:
        raise BadValue(f"{name}: x of shape {x._array.shape} has not a place for each "
                       f"of the {size} values along dimension {dim}", fix="x of the shape of y")
    steps = _neighbours(x, whole_dim(along, x._array.ndim, name))
    return pairs * (reshape(steps, -1, *(1,) * (ndim - 1 - dim)) if x._array.ndim == 1 else steps), dim


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """Return the area under straight lines between points: with places x, or steps of dx.

    >>> import mutagrad as mg
    >>> mg.trapezoid(mg.tensor([1., 2., 3.]))
    tensor(4.)
    """
    if x is None and isinstance(y, Tensor) and (shape := y._array.shape) and y._array.dtype.kind != "b":
        dim = whole_dim(dim, len(shape), "trapezoid")
        if shape[dim] > 1:
            inner, ends = narrow(y, dim, 1, shape[dim] - 2), select(y, dim, 0) + select(y, dim, -1)
            return (total(inner, dim) * 2 + ends) * (1 if dx is None else dx) / 2
    areas, dim = _areas("trapezoid", y, x, dx, dim)
    return total(areas, dim) / 2


def trapz(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """Do the same as `trapezoid`, under its older name.

    >>> import mutagrad as mg
    >>> mg.trapz(mg.tensor([1., 2., 3.]))
    tensor(4.)
    """
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float | None = None, dim: int = -1) -> Any:
    """Return the areas under straight lines between points, up to each.

    >>> import mutagrad as mg
    >>> mg.cumulative_trapezoid(mg.tensor([1., 2., 3.]))
    tensor([1.5000, 4.0000])
    """
    areas, dim = _areas("cumulative_trapezoid", y, x, dx, dim)
    return cumsum(areas, dim) / 2


def gradient(input: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None,
             edge_order: int = 1) -> tuple[Any, ...]:
    """Return slopes along dimensions by differences of neighbours: a tensor for each dimension.

    >>> import mutagrad as mg
    >>> mg.gradient(mg.tensor([1., 4., 9., 16.]))
    (tensor([3., 4., 6., 7.]),)
    """
    ndim = tensor_argument(input, "gradient")._array.ndim
    dims = whole_dims(dim, ndim, "gradient")
    edge_order = whole_number(edge_order, "gradient", "edge_order")
    if edge_order not in (1, 2):
        raise BadValue(f"gradient: edge_order={edge_order!r} is neither 1 nor 2", fix="edge_order=1")
    places = _spacings(spacing, dims)
    for d in dims:
        if input._array.shape[d] <= edge_order:
            raise BadValue(f"gradient: dimension {d} of size {input._array.shape[d]} is too short",
                           why=f"it takes at least {edge_order + 1} values", fix="fewer dimensions: dim=...")
    return tuple(_slope(input, d, step, edge_order) for d, step in zip(dims, places))


def _spacings(spacing: Any, dims: tuple[int, ...]) -> list[Any]:
    """For each dimension the distance between neighbours, or the tensor of places."""
    spacing = 1 if spacing is None else number(spacing) if not isinstance(spacing, (tuple, list)) else spacing
    if isinstance(spacing, (int, float, complex)) and not isinstance(spacing, bool):
        return [spacing] * len(dims)
    numbers = int, float, complex
    if not isinstance(spacing, (tuple, list)) or not all(isinstance(v, (*numbers, Tensor)) for v in spacing):
        raise BadArgument("gradient: spacing must be a number, or numbers or tensors of places for each dimension, "
                          f"not {type(spacing).__name__}", fix="spacing=0.5, or spacing=(x, y)")
    if len(spacing) != len(dims):
        raise BadValue(f"gradient: {len(spacing)} spacings for {len(dims)} dimensions",
                       fix="one for each, or a number for all")
    return [s if isinstance(s, Tensor) and s._array.ndim else number(s) for s in spacing]


def _slope(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Any:
    n, rest = x._array.shape[dim], x._array.ndim - 1 - dim
    if isinstance(spacing, Tensor):
        if spacing._array.shape != (n,):
            raise BadValue(f"gradient: {spacing._array.shape} places for dimension {dim} of size {n}",
                           fix=f"a vector of {n} places")
        steps = reshape(_neighbours(spacing, 0), -1, *(1,) * rest)
    else:
        dtype = x._array.dtype if x._array.dtype.kind in "fcV" else get_default_dtype().array_type
        steps = expand(make(np.array(spacing, dtype)), n - 1, *(1,) * rest)

    def values(start: int, length: int) -> Any:
        return narrow(x, dim, start, length)

    def step(i: int) -> Any:
        return narrow(steps, 0, i % (n - 1), 1)

    before, after = narrow(steps, 0, 0, n - 2), narrow(steps, 0, 1, n - 2)
    inner = (values(2, n - 2) * (before / (after * (before + after)))
             + values(1, n - 2) * ((after - before) / (before * after))
             - values(0, n - 2) * (after / (before * (before + after))))
    if edge_order == 1:
        first, last = (values(1, 1) - values(0, 1)) / step(0), (values(n - 1, 1) - values(n - 2, 1)) / step(-1)
    else:
        first = _edge(step(0), step(1), values(0, 1), values(1, 1), values(2, 1))
        last = -_edge(step(-1), step(-2), values(n - 1, 1), values(n - 2, 1), values(n - 3, 1))
    return cat([first, inner, last], dim)


def _edge(near: Any, far: Any, a: Tensor, b: Tensor, c: Tensor) -> Any:
    """The slope at a of the parabola through a, b and c."""
    return (b * ((near + far) / (near * far)) - a * ((2 * near + far) / (near * (near + far)))
            - c * (near / (far * (near + far))))
