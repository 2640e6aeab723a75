"""Functions of corresponding elements: of the values, where zero stays zero; of the values at places that meet, else.

What would make something of all the zeros (`exp`, `x + 1`) is refused, as it would need a value for every element.
"""
from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from ..arrays import np
from ..base.errors import BadArgument, NotSupported, ShapeError
from ..base.operands import Array
from ..core import dtypes
from ..ops.math import complex as complexes, elementwise as dense, special
from ..ops.select.selecting import index_select
from ..ops.shape.shape import cat
from ..tensors.tensor import Tensor
from .compressed import Compressed
from .convert import in_layout_of, to_dense
from .coordinates import Coordinates, _distinct, coordinates
from .table import answers, refused
from .tensor import SparseTensor, index_of

# --------------------------------------------------------------------------------------------------- of one tensor

# Functions f with f(0) = 0, or False. Of an uncoalesced tensor the sums come first, but for linear ones.
_LINEAR = {
    "neg": dense.neg, "negative": dense.neg, "positive": dense.positive, "conj": dense.conj,
    "conj_physical": dense.conj_physical, "deg2rad": dense.deg2rad, "rad2deg": dense.rad2deg, "real": complexes.real,
    "imag": complexes.imag, "__pos__": dense.positive, "__neg__": dense.neg}
_ZERO_STAYS = {
    "abs": dense.abs, "absolute": dense.abs, "__abs__": dense.abs, "angle": complexes.angle, "asin": dense.asin,
    "arcsin": dense.asin, "asinh": dense.asinh, "arcsinh": dense.asinh, "atan": dense.atan, "arctan": dense.atan,
    "atanh": dense.atanh, "arctanh": dense.atanh, "ceil": dense.ceil, "erf": dense.erf, "erfinv": special.erfinv,
    "expm1": dense.expm1, "fix": dense.trunc, "floor": dense.floor, "frac": dense.frac, "isinf": dense.isinf,
    "isnan": dense.isnan, "isneginf": special.isneginf, "isposinf": special.isposinf, "log1p": dense.log1p,
    "nan_to_num": special.nan_to_num, "relu": dense.relu, "round": dense.round, "sgn": dense.sgn, "sign": dense.sign,
    "signbit": dense.signbit, "sin": dense.sin, "sinh": dense.sinh, "sqrt": dense.sqrt, "square": dense.square,
    "tan": dense.tan, "tanh": dense.tanh, "trunc": dense.trunc}


def _of_values(name: str, function: Callable[..., Any], linear: bool) -> Callable[..., Any]:
    def call(input: Any, *settings: Any, out: Any = None, inplace: bool = False, **named: Any) -> Any:
        if out is not None:
            return _written(out, call(input, *settings, **named))
        entries = input if linear else input._entries()
        result = entries._with(function(entries._numbers, *settings, **named))
        return _written(input, result) if inplace else result

    call.__name__ = name
    return call


for _name, _function in (*_LINEAR.items(), *_ZERO_STAYS.items()):
    answers(_name)(_of_values(_name, _function, _name in _LINEAR))


def _written(target: Any, result: Any) -> Any:
    """Make a tensor what an operation has given: by a write to its values where the places stay the same."""
    if not isinstance(target, SparseTensor) or not isinstance(result, SparseTensor) \
            or type(target) is not type(result):
        raise refused("out=", "its layout is not that of the result", "give none, and use what is returned")
    if target.shape == result.shape and _same_places(target, result):
        target._numbers.copy_(result._numbers)
    else:
        if result.dtype is not target.dtype:
            result = result.to(target.dtype)
        target._become(result)
    return target


def _same_places(x: Any, y: Any) -> bool:
    if isinstance(x, Coordinates):
        return x._places is y._places and x._coalesced == y._coalesced
    return x._starts is y._starts and x._others is y._others and x.layout is y.layout


# ----------------------------------------------------------------------------------------------------- of two tensors

def _is_number(x: Any) -> bool:
    if isinstance(x, Tensor):
        return not isinstance(x, SparseTensor) and not x.dim()
    return isinstance(x, (Number, np.generic))


def _check_shapes(name: str, x: Tensor, y: Tensor) -> None:
    if tuple(x.shape) != tuple(y.shape):
        raise ShapeError(f"{name}: expected 'self' and 'other' to have same size, but they have {tuple(x.shape)} "
                         f"and {tuple(y.shape)}", why="sparse tensors do not broadcast", fix="x.to_dense()")


@answers("add", "__add__", "__radd__")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Add two sparse tensors: the entries of both. A dense one and a sparse one make a dense one."""
    if out is not None:
        return _written(out, add(input, other, alpha=alpha))
    if _is_number(input) or _is_number(other):
        raise refused("add", "a number added to zero is not zero")
    _check_shapes("add", input, other)
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        return _dense_sum(input, other, alpha)
    if isinstance(input, Compressed) and input.layout is other.layout and _same_places(input, other):
        return input._with(dense.add(input._numbers, other._numbers, alpha=alpha))
    x, y = coordinates(input), coordinates(other)
    if x.sparse_dim() != y.sparse_dim():
        raise ShapeError(f"add: tensors of {x.sparse_dim()} and {y.sparse_dim()} sparse dimensions",
                         fix="x.to_dense().to_sparse(sparse_dim)")
    scaled = y._numbers if alpha == 1 else dense.mul(y._numbers, alpha)
    both = Coordinates.of(index_of(np.concatenate([x._places._array, y._places._array], 1)),
                          cat([x._numbers, scaled]), x.shape)
    both = both.coalesce() if x._coalesced and y._coalesced else both
    return in_layout_of(both, input if isinstance(input, Compressed) else other if isinstance(other, Compressed)
                        and not isinstance(input, Coordinates) else x)


def _dense_sum(x: Any, y: Any, alpha: Any) -> Any:
    """Add a dense and a sparse tensor: only the places that are there are touched."""
    if isinstance(x, SparseTensor):
        if isinstance(x, Coordinates):
            raise NotSupported("add(sparse, dense) is not supported. Use add(dense, sparse) instead.",
                               why="the result is dense", fix="y + x, or x.to_dense() + y")
        return dense.add(to_dense(x), y, alpha=alpha)
    places, numbers = y._places_of_values()
    kind = dtypes.result_dtype([x.dtype, y.dtype], [], [])
    scaled = dense.mul(numbers, alpha).to(kind)
    if not len(places):
        return x + scaled.sum(0)
    return x.to(kind).index_put(tuple(map(index_of, places)), scaled, accumulate=True)


@answers("sub", "subtract", "__sub__")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Any:
    """Subtract as `add` adds."""
    return add(input, other, alpha=-alpha, out=out)


@answers("rsub", "__rsub__")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return add(other, input, alpha=-alpha)


@answers("mul", "multiply", "__mul__", "__rmul__")
def mul(input: Any, other: Any, *, out: Any = None) -> Any:
    """Multiply by a number, by a dense tensor at the places that are there, or by a sparse one where both have some."""
    if out is not None:
        return _written(out, mul(input, other))
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if _is_number(other):
        return input._with(dense.mul(input._numbers, other))
    if not isinstance(other, SparseTensor):
        return _times_dense(input, other)
    if isinstance(input, Compressed) and type(other) is Compressed and _same_places(input, other):
        return input._with(dense.mul(input._numbers, other._numbers))
    _check_shapes("mul", input, other)
    return in_layout_of(_where_both(coordinates(input), coordinates(other)), input)


def _where_both(x: Coordinates, y: Coordinates) -> Coordinates:
    if x.sparse_dim() != y.sparse_dim():
        raise ShapeError(f"mul: tensors of {x.sparse_dim()} and {y.sparse_dim()} sparse dimensions",
                         fix="x.to_dense().to_sparse(sparse_dim)")
    x, y = x.coalesce(), y.coalesce()
    count = x._nnz()
    places, _, which = _distinct(np.concatenate([x._places._array, y._places._array], 1), x.shape)
    of_x, of_y = np.full(places.shape[1], -1), np.full(places.shape[1], -1)
    of_x[which[:count]], of_y[which[count:]] = np.arange(count), np.arange(len(which) - count)
    both = (of_x >= 0) & (of_y >= 0)
    product = dense.mul(index_select(x._numbers, 0, index_of(of_x[both])),
                        index_select(y._numbers, 0, index_of(of_y[both])))
    return Coordinates.of(index_of(places[:, both]), product, x.shape, True)


def _times_dense(x: Any, y: Tensor) -> Any:
    if not isinstance(y, Tensor):
        raise BadArgument(f"mul: {type(y).__name__} is neither a tensor nor a number")
    return x._with(dense.mul(x._numbers, _at_places(x, y, "mul").reshape(x._numbers.shape)))


def _at_places(x: Any, y: Tensor, name: str) -> Tensor:
    """Return the elements of a dense tensor at the places of a sparse one, to which it broadcasts."""
    places, _ = x._places_of_values()
    try:
        spread = y.expand(tuple(x.shape))
    except RuntimeError:
        raise ShapeError(f"{name}: a dense tensor of shape {tuple(y.shape)} does not broadcast to the sparse one's, "
                         f"{tuple(x.shape)}", fix="x.to_dense()") from None
    if not len(places):
        return spread.reshape(1, *x.shape).expand(places.shape[1], *x.shape)
    return spread[tuple(map(index_of, places))]  # type: ignore[no-any-return]


@answers("div", "divide", "true_divide", "__truediv__")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """Divide by a number."""
    if out is not None:
        return _written(out, div(input, other, rounding_mode=rounding_mode))
    if not isinstance(input, SparseTensor) or not _is_number(other):
        raise NotSupported("div: Sparse division requires a scalar or zero-dim dense tensor divisor",
                           why="zero divided by zero is undefined", fix="x * (1 / y), with y dense")
    entries = input if rounding_mode is None else input._entries()
    return entries._with(dense.div(entries._numbers, other, rounding_mode=rounding_mode))


@answers("floor_divide", "__floordiv__")
def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Divide by a number, rounded down."""
    return div(input, other, rounding_mode="floor", out=out)


@answers("pow", "__pow__")
def pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """Raise the values to a power."""
    if out is not None:
        return _written(out, pow(input, exponent))
    if not isinstance(input, SparseTensor) or not _is_number(exponent):
        raise refused("pow", "an exponent is a number, and the base the sparse tensor")
    if exponent == 0:
        raise NotSupported("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense",
                           fix="mutagrad.ones(x.shape)")
    entries = input._entries()
    return entries._with(dense.pow(entries._numbers, exponent))


# ------------------------------------------------------------------------------------------------------------ in place

def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(input: Any, *given: Any, **settings: Any) -> Any:
        result = function(input, *given, **settings)
        if isinstance(input, SparseTensor):
            return _written(input, result)
        if isinstance(result, SparseTensor):
            result = to_dense(result)
        return input.copy_(result)  # a dense tensor, to which a sparse one was added

    return call


for _name in (*_LINEAR, *_ZERO_STAYS):
    if not _name.startswith("__") and _name not in ("conj", "real", "imag"):
        answers(f"{_name}_")(_in_place(_of_values(_name, (_LINEAR | _ZERO_STAYS)[_name], _name in _LINEAR)))
for _names, _function in {("add_", "__iadd__"): add, ("sub_", "subtract_", "__isub__"): sub,
                          ("mul_", "multiply_", "__imul__"): mul, ("pow_", "__ipow__"): pow,
                          ("div_", "divide_", "true_divide_", "__itruediv__"): div,
                          ("floor_divide_", "__ifloordiv__"): floor_divide}.items():
    answers(*_names)(_in_place(_function))


@answers("copy_")
def _copy(input: Any, other: Any, non_blocking: bool = False) -> Any:
    """Take over another sparse tensor, places and values."""
    if not isinstance(input, SparseTensor) or type(input) is not type(other):
        raise NotSupported("copy_: copy_() between dense and sparse Tensors is not implemented",
                           fix="x.copy_(y.to_dense()), or x.copy_(y.to_sparse())")
    _check_shapes("copy_", input, other)
    return _written(input, other if _same_places(input, other) else other.clone().to(input.dtype))


# ------------------------------------------------------------------------------------------------------- as a whole

@answers("equal")
def _equal(input: Any, other: Any) -> bool:
    """Whether two sparse tensors have the same elements."""
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        raise refused("equal", "one of the two is dense", "mutagrad.equal(x.to_dense(), y)")
    return input.shape == other.shape and bool(_differences(input, other, lambda a, b: a == b))


@answers("allclose")
def _allclose(input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two sparse tensors have nearly the same elements."""
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor):
        raise refused("allclose", "one of the two is dense", "mutagrad.allclose(x.to_dense(), y)")
    _check_shapes("allclose", input, other)
    return bool(_differences(input, other, lambda a, b: np.isclose(a, b, rtol, atol, equal_nan)))


def _differences(x: Any, y: Any, compare: Callable[[Array, Array], Array]) -> Any:
    """Compare the elements that are in either of two tensors."""
    one, two = coordinates(x.detach()), coordinates(y.detach())
    if one.sparse_dim() != two.sparse_dim():
        return compare(to_dense(one)._array, to_dense(two)._array).all()
    places, _, which = _distinct(np.concatenate([one._places._array, two._places._array], 1), one.shape)
    kind = dtypes.result_dtype([one.dtype, two.dtype], [], [])
    values = []
    for part, numbers in ((which[:one._nnz()], one._numbers), (which[one._nnz():], two._numbers)):
        values.append(np.zeros((places.shape[1], *numbers.shape[1:]), kind.array_type))
        np.add.at(values[-1], part, numbers.to(kind)._array)
    return compare(*values).all()
