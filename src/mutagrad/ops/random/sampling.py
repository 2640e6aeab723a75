"""Random numbers of the common distributions.

A draw is a constant: what is drawn does not change by a little when a probability does. Where PyTorch gives the
derivative zero, so does this; an in-place draw overwrites, and what stood there before has no influence any more.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...arrays import np
from ...arrays.bfloat16 import rounded, widened
from ...arrays.kinds import anywhere, extremes
from ...arrays.numpy import silently
from ...arrays.places import insert
from ...arrays.running import accumulate
from ...base.device import device as Device
from ...base.errors import BadArgument, BadValue, DTypeError, ShapeError, may_need_much
from ...base.layout import layout as Layout
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import (
    FLOAT,
    INTEGER,
    as_dtype,
    dtype as DType,
    finfo,
    float64,
    get_default_dtype,
    iinfo,
    int64,
    of_array,
)
from ...core.evidence import cut
from ...core.factory import make
from ...core.number import number
from ...core.op import zero
from ...core.out_arg import write_out
from ...core.size import sizes
from ...core.storage import TensorBase as Tensor
from ...core.write import check_writable
from ..create.create import finish
from ..shape.shape import broadcast_to, permute, tensor_argument
from .draws import normal_values
from .generator import Generator, source
from .order import in_memory, memory_order

FUNCTIONS = "bernoulli binomial multinomial normal poisson"
METHODS = "bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial random_"

# --------------------------------------------------------------------------------------------------- drawn from tensors

bernoulli_values = primitive("bernoulli", lambda p, generator: source(generator).happened(p).astype(p.dtype),
                             settings=("generator",), x=zero)
poisson_values = primitive("poisson", lambda rate, generator: source(generator).poisson(rate), settings=("generator",),
                           x=zero)
binomial_values = primitive("binomial", lambda count, p, generator: source(generator).binomial(count, p),
                            settings=("generator",), x=None, y=None)
normal_of = primitive("normal", lambda mean, std, generator, fixed: _normal(mean, std, generator, fixed),
                      settings=("generator", "fixed"), x=zero, y=zero)


def _normal(mean: Array, std: Array, generator: Generator | None, fixed: float | None) -> Any:
    """Rounded after each step, as in PyTorch. A standard deviation that is a number takes part in the draw."""
    kind = mean.dtype
    drawn = normal_values(generator, mean.shape, of_array(kind), 0.0, 1.0 if fixed is None else fixed)
    if fixed is None:
        drawn = rounded(widened(drawn) * widened(std), kind)
    return rounded(widened(drawn) + widened(mean), kind).astype(kind, copy=False)


def _float_tensor(x: Tensor, name: str, complex_too: bool = False) -> Tensor:
    tensor_argument(x, name)
    found = of_array(x._array.dtype)
    if found.category < FLOAT or found.is_complex and not complex_too:
        raise DTypeError(f"{name}: needs a tensor of a floating point type, not {found.name}",
                         fix=f"x.float(), then {name}")
    return x


def _out(result: Tensor, out: Tensor | None) -> Any:
    return write_out("out", result, out)


def _probability(p: Any, name: str) -> Any:
    p = number(p)
    if not 0 <= p <= 1:
        raise BadValue(f"{name}: a probability must be between 0 and 1, got {p}", fix=f"x.{name}(0.5)")
    return p


def _probabilities(p: Any, name: str) -> Any:
    array = _float_tensor(p, name)._array
    if anywhere(~((array >= 0) & (array <= 1))):
        raise BadValue(f"{name}: probabilities must be between 0 and 1, "
                       f"got {float(extremes(array)[0])} to {float(extremes(array)[1])}",
                       why="each element is the chance of a one", fix="mutagrad.bernoulli(x.sigmoid())")
    return p


@may_need_much
def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None,
              out: Tensor | None = None) -> Any:
    """Return ones with the probabilities that `input` holds, or all with probability `p`, and zeros.

    >>> import mutagrad as mg
    >>> mg.bernoulli(mg.tensor([0., 1., 1.]))
    tensor([0., 1., 1.])
    """
    if p is None:
        return _out(bernoulli_values(_probabilities(input, "bernoulli"), generator), out)
    if isinstance(p, Tensor):
        raise BadArgument("bernoulli: p must be a number",
                          fix="mutagrad.bernoulli(p), or x.bernoulli_(p) with a tensor")
    tensor_argument(input, "bernoulli")
    return _out(make(_bernoulli_number(input, p, generator, "bernoulli")), out)


def _bernoulli_number(x: Tensor, p: float, generator: Generator | None, name: str) -> Any:
    p = _probability(p, name)
    return source(generator).chosen(x._array.shape, p).astype(x._array.dtype)


def bernoulli_(x: Tensor, p: Tensor | float = 0.5, *, generator: Generator | None = None) -> Any:
    """Overwrite with ones of probability `p`, a number or a tensor, and zeros.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(4).bernoulli_(0.5)
    tensor([0., 0., 1., 0.])
    """
    check_writable(x, "bernoulli_")
    if not isinstance(p, Tensor):
        chance = _probability(p, "bernoulli_")
        return _fill(x, lambda shape: source(generator).chosen(shape, chance))
    chances, order = _probabilities(broadcast_to(p, x._array.shape), "bernoulli_"), memory_order(x._array)
    if order is None:
        return x.copy_(bernoulli_values(chances, generator))
    drawn = bernoulli_values(permute(chances, order), generator)
    return x.copy_(permute(drawn, sorted(range(len(order)), key=order.__getitem__)))


def poisson(input: Tensor, generator: Generator | None = None) -> Any:
    """Poisson numbers, each with the rate that `input` holds.

    >>> import mutagrad as mg
    >>> mg.poisson(mg.full((3,), 4.)).shape
    mutagrad.Size([3])
    """
    array = _float_tensor(input, "poisson")._array
    if anywhere(~(array >= 0)):
        raise BadValue("poisson: a rate is negative or nan",
                       why="a rate is an expected count", fix="mutagrad.poisson(x.abs())")
    return poisson_values(input, generator)


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Any:
    """How many of `count` trials succeed, each with probability `prob`.

    >>> import mutagrad as mg
    >>> mg.binomial(mg.full((3,), 10.), mg.tensor([0., 0.5, 1.])).shape
    mutagrad.Size([3])
    """
    for value, name in ((count, "count"), (prob, "prob")):
        tensor_argument(value, "binomial")
        if not of_array(value._array.dtype).is_floating_point:
            raise BadValue(f"binomial: {name} must be of a floating point type, "
                           f"not {of_array(value._array.dtype).name}", fix=f"{name}.float()")
    if count._array.dtype != prob._array.dtype:
        raise DTypeError(f"binomial: count is {count.dtype.name} and prob {prob.dtype.name}",
                         why="the two do not promote", fix="prob.to(count.dtype)")
    shape = _common_shape("binomial", count, prob)
    return binomial_values(broadcast_to(count, shape), broadcast_to(prob, shape), generator)


def _common_shape(name: str, x: Tensor, y: Tensor) -> tuple[int, ...]:
    try:
        found: tuple[int, ...] = np.broadcast_shapes(x._array.shape, y._array.shape)
    except ValueError:
        raise ShapeError(f"{name}: shapes {x._array.shape} and {y._array.shape} do not broadcast",
                         why="counted from the right, sizes must be equal or one of them 1",
                         fix="reshape one of them") from None
    return found


@may_need_much
def normal(mean: Tensor | float, std: Tensor | float = 1.0, size: Sequence[int] | None = None,
           *, generator: Generator | None = None, out: Tensor | None = None, dtype: DType | None = None,
           device: Device | str | None = None, requires_grad: bool = False, layout: Layout | None = None,
           pin_memory: bool = False) -> Any:
    """Draw normal numbers with this mean and standard deviation: tensors or numbers, two numbers with a size.

    >>> import mutagrad as mg
    >>> mg.normal(mg.zeros(2, 3), 0.1).shape, mg.normal(5.0, 2.0, (4,)).shape
    (mutagrad.Size([2, 3]), mutagrad.Size([4]))
    """
    if size is None and (isinstance(mean, Tensor) or isinstance(std, Tensor)):
        return _out(_normal_of_tensors(mean, std, generator), out)
    center, spread = number(mean), number(std)
    if size is None:
        raise BadArgument("normal: two numbers need a size", fix=f"mutagrad.normal({mean}, {std}, (3,))")
    _check_std(spread, "normal")
    to = as_dtype(dtype) if dtype is not None else get_default_dtype()
    if to.category < FLOAT:
        raise DTypeError(f"normal: needs a floating point type, not {to.name}", fix="dtype=mutagrad.float32")
    drawn = normal_values(generator, sizes((size,)), to, center, spread)
    return _out(finish(drawn, requires_grad, device, "normal"), out)


def _check_std(std: Any, name: str) -> None:
    if not std >= 0:
        raise BadValue(f"{name}: the standard deviation must not be negative, got {std}", fix=f"{name}(mean, {-std})")


def _normal_of_tensors(mean: Any, std: Any, generator: Generator | None) -> Any:
    """The type is the mean's, or the standard deviation's where the mean is a number."""
    if isinstance(std, Tensor):
        if of_array(std._array.dtype).is_complex:
            raise BadValue("normal: the standard deviation must be real", fix="std.abs()")
        if anywhere(~(std._array >= 0)):
            raise BadValue("normal: a standard deviation is negative or nan", fix="mutagrad.normal(mean, std.abs())")
    else:
        _check_std(std, "normal")
    wanted = _float_tensor(mean if isinstance(mean, Tensor) else std, "normal", complex_too=True)._array.dtype
    fixed = None if isinstance(std, Tensor) else number(std)
    mean, std = (v if isinstance(v, Tensor) else make(np.array(v, wanted)) for v in (mean, std))
    shape = _common_shape("normal", mean, std)
    return normal_of(broadcast_to(mean, shape), broadcast_to(std, shape), generator, fixed)


@may_need_much
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None,
                out: Tensor | None = None) -> Any:
    """Return positions drawn with the weights in each row, with or without replacement.

    >>> import mutagrad as mg
    >>> mg.multinomial(mg.tensor([0., 0., 3.]), 2, replacement=True)
    tensor([2, 2])
    """
    weights = _float_tensor(input, "multinomial")._array
    cut("multinomial", input)
    _check_weights(weights, num_samples, replacement)
    if out is not None and out._array.dtype != np.dtype("int64"):
        raise DTypeError(f"multinomial: positions are int64, and out is {out.dtype.name}",
                         fix="out=mutagrad.empty(n, dtype=mutagrad.int64)")
    rows = weights.reshape(-1, weights.shape[-1])
    if replacement and num_samples > 1:
        found = _with_replacement(rows, num_samples, generator)
    else:
        found = _without_replacement(rows, num_samples, generator)
    return _out(make(found.reshape(*weights.shape[:-1], num_samples)), out)


def _check_weights(weights: Array, count: int, replacement: bool) -> None:
    if weights.ndim not in (1, 2):
        raise ShapeError(f"multinomial: the weights must be a row or a matrix of rows, not of shape {weights.shape}",
                         fix="x.reshape(-1, n)")
    if count <= 0:
        raise BadValue(f"multinomial: cannot draw {count} positions", fix="num_samples=1")
    if not replacement and count > weights.shape[-1]:
        raise BadValue(f"multinomial: cannot draw {count} of {weights.shape[-1]} without replacement",
                       fix="replacement=True")
    weights = weights.astype(np.float64)
    if anywhere(~(np.isfinite(weights) & (weights >= 0))):
        raise BadValue("multinomial: a weight is negative, infinite or nan",
                       fix="mutagrad.multinomial(logits.softmax(-1), n)")
    if anywhere(~(weights.sum(-1) > 0)):
        raise BadValue("multinomial: the weights of a row sum to zero",
                       why="then no position has any chance", fix="x.clamp(min=1e-6)")


def _with_replacement(weights: Array, count: int, generator: Generator | None) -> Any:
    """Where a uniform number falls among the running sums, which are computed in the type of the weights."""
    sums = accumulate(np.add, widened(weights), 1)
    sums = (sums / sums[:, -1:]).astype(np.float64)
    sums[:, -1] = 1
    points = source(generator).uniform((len(weights), count), np.float64, 0, 1)
    if (found := insert(sums, points, right=False)) is not None:
        return found
    rows = [np.searchsorted(row, point, side="left") for row, point in zip(sums, points)]
    return np.array(rows, np.int64).reshape(len(weights), count)


def _without_replacement(weights: Array, count: int, generator: Generator | None) -> Any:
    """Each position waits for a time with its weight as the rate; the first to come are drawn."""
    times = source(generator).exponential(weights.shape, weights.dtype, 1.0)
    speeds = silently(np.divide, weights, times)
    speeds = np.where(weights > 0, speeds, -1).astype(speeds.dtype)  # 0 / 0 would be nan
    if count == 1:
        return np.argmax(speeds, -1, keepdims=True).astype(np.int64)
    return np.argsort(-speeds, -1, kind="stable")[:, :count].astype(np.int64)


# ------------------------------------------------------------------------------------------------------------- in place

def _target(x: Tensor, name: str) -> Any:
    """What a draw of a continuous distribution can be written into."""
    check_writable(x, name)
    return _float_tensor(x, name)


def _fill(x: Tensor, draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """Overwrite with what is drawn, element by element as they lie in memory."""
    drawn = in_memory(x._array, lambda shape, _: draw(shape))
    return x.copy_(make(silently(np.asarray(drawn).astype, x._array.dtype)))


def _positive(value: Any, name: str, what: str) -> Any:
    value = number(value)
    if not value > 0:
        raise BadValue(f"{name}: {what} must be positive, got {value}", fix=f"x.{name}()")
    return value


def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Overwrite with exponential numbers of rate `lambd`; none of them is zero.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(3).exponential_().shape
    mutagrad.Size([3])
    """
    lambd = _positive(lambd, "exponential_", "the rate")
    _target(x, "exponential_")
    kind = x._array.dtype
    if math.isinf(lambd):
        return _fill(x, lambda shape: source(generator).exponential(shape, kind, lambd))
    return _fill(x, lambda shape: _above_zero(source(generator).exponential(shape, kind, lambd), x.dtype))


def _above_zero(drawn: Array, to: DType) -> Any:
    """What is too small for its type is the smallest normal number of it: zero has no logarithm."""
    return np.where(drawn == 0, np.asarray(finfo(to).tiny, drawn.dtype), drawn)


def cauchy_(x: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Overwrite with Cauchy numbers.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(3).cauchy_().shape
    mutagrad.Size([3])
    """
    median, sigma = number(median), _positive(sigma, "cauchy_", "sigma")
    _target(x, "cauchy_")
    return _fill(x, lambda shape: source(generator).cauchy(shape, x._array.dtype, median, sigma))


def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Any:
    """Overwrite with numbers whose logarithm is normal with this mean and standard deviation.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> (mg.empty(3).log_normal_() > 0).all()
    tensor(True)
    """
    mean, std = number(mean), _positive(std, "log_normal_", "the standard deviation")
    _target(x, "log_normal_")
    return _fill(x, lambda shape: source(generator).log_normal(shape, x._array.dtype, mean, std))


def geometric_(x: Tensor, p: float, *, generator: Generator | None = None) -> Any:
    """Overwrite with the number of trials up to the first success, each of probability `p`.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(3).geometric_(0.5).shape
    mutagrad.Size([3])
    """
    p = number(p)
    if not 0 < p < 1:
        raise BadValue(f"geometric_: the probability must be between 0 and 1, both left out, got {p}",
                       fix="x.geometric_(0.5)")
    check_writable(x, "geometric_")
    if not (of_array(x._array.dtype).is_floating_point or of_array(x._array.dtype).category == INTEGER):
        raise DTypeError(f"geometric_: needs integers or floats, not {of_array(x._array.dtype).name}",
                         fix="x.long().geometric_(p)")
    return _fill(x, lambda shape: source(generator).geometric(shape, p))


def _largest(x: Tensor) -> int:
    """The largest integer that `random_` draws when no end is given: for floats, so far they hold all of them."""
    to = of_array(x._array.dtype)
    if to.is_complex:
        raise DTypeError("random_: not defined for complex numbers",
                         fix="mutagrad.complex(x.random_(10), y.random_(10))")
    if to.is_floating_point:
        return int(2 / finfo(to).eps)
    return int(iinfo(to).max) if to.category == INTEGER else 1


def _inside(to: DType, first: int, last: int) -> tuple[int, int]:
    """The range of whole numbers without those that a floating point type would round to others outside of it."""
    def as_held(n: int) -> int:
        wide = np.int64(n).astype(np.float64 if to is float64 else np.float32)
        return int(float(wide.astype(to.array_type)))

    digits = round(-math.log2(finfo(to).eps)) + 1
    if (held := as_held(first + 1)) < first:
        first = held + (1 << (abs(first + 1).bit_length() - digits))
    if last < (held := as_held(last)) < 2**63:
        last = held - (1 << (abs(last).bit_length() - digits)) - 1
    return first, last


def random_(x: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Any:
    """Overwrite with whole numbers: `random_(to)`, `random_(from, to)`, or up to what the type holds exactly.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(4).random_(0, 10)
    tensor([4., 9., 3., 0.])
    """
    check_writable(x, "random_")
    if set(named) - {"from", "to"} or len(bounds) + len(named) > 2:
        raise BadArgument(f"random_: takes from and to, got {bounds} and {named}", fix="x.random_(0, 10)")
    largest = _largest(x)
    if not bounds and not named:
        long = of_array(x._array.dtype) in (int64, float64)
        return _fill(x, lambda shape: source(generator).remainders(shape, largest + 1, long))
    bounds = (0, *bounds) if len(bounds) == 1 and not named else bounds
    given = dict(zip(("from", "to"), bounds)) | named
    first, end = number(given.get("from", 0)), number(given.get("to"))
    last = largest if end is None else end - 1
    if first <= last and of_array(x._array.dtype).is_floating_point:
        _check_range(x, first, last)
        first, last = _inside(of_array(x._array.dtype), first, last)
    if first > last:
        raise BadValue(f"random_ expects 'from' to be less than 'to', but got from={first} >= to={end}",
                       fix="x.random_(0, 10)")
    _check_range(x, first, last)
    return _fill(x, lambda shape: source(generator).integers(shape, first, last - first + 1))


def _check_range(x: Tensor, first: int, last: int) -> None:
    to = of_array(x._array.dtype)
    if to.is_floating_point:
        low, high = max(finfo(to).min, -2**63), min(finfo(to).max, 2**63 - 1)
    else:
        low, high = (iinfo(to).min, iinfo(to).max) if to.category == INTEGER else (0, 1)
    if first < low or last > high:
        raise BadValue(f"random_: {first} to {last} is more than {to.name} holds",
                       why=f"it holds {low} to {high}", fix="x.long().random_(from, to)")
