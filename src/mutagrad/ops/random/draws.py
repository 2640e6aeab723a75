"""New tensors of random numbers."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...arrays.allocator import allocator, keep_memory
from ...base.device import device as Device
from ...base.errors import BadArgument, BadValue, DTypeError
from ...base.layout import preserve_format
from ...core.dtypes import (
    BOOL,
    FLOAT,
    dtype as DType,
    finfo,
    iinfo,
    int64,
    of_array,
)
from ...core.factory import back_in_order, make
from ...core.number import number
from ...core.size import sizes
from ...core.storage import TensorBase as Tensor
from ..create.create import ElementType, allocate, finish, shape_of, size_of, type_like, wanted_type
from .generator import Generator, source
from .order import in_memory, is_in_order, memory_order


def _float_type(dtype: ElementType | None, settings: dict[str, Any], name: str) -> DType:
    to = wanted_type(dtype, settings)
    if to.category < FLOAT:
        raise DTypeError(f"{name}: needs a floating point type, not {to.name}", fix="mutagrad.randint(low, high, size)")
    return to


def _complex(parts: Any, kind: Any) -> Any:
    """Complex numbers whose parts were drawn one after the other."""
    return (parts[..., 0] + 1j * parts[..., 1]).astype(kind)


def _keep_memory(shape: tuple[int, ...], to: DType) -> None:
    if math.prod(shape) * to.itemsize >= allocator.least:
        keep_memory()


def uniform_values(generator: Generator | None, shape: tuple[int, ...], to: DType, low: float = 0.0,
                   high: float = 1.0) -> Any:
    """Return an array of uniform numbers; of complex ones both parts are."""
    _keep_memory(shape, to)
    if to.is_complex:
        return _complex(source(generator).uniform((*shape, 2), to.to_real().array_type, low, high), to.array_type)
    return source(generator).uniform(shape, to.array_type, low, high)


def normal_values(generator: Generator | None, shape: tuple[int, ...], to: DType, mean: float = 0.0, std: float = 1.0,
                  in_order: bool = True) -> Any:
    """Return an array of normal numbers. Complex ones share the variance between their parts; both have the mean."""
    _keep_memory(shape, to)
    if to.is_complex:
        parts = source(generator).normal((*shape, 2), to.to_real().array_type, mean, std / math.sqrt(2), in_order)
        return _complex(parts, to.array_type)
    return source(generator).normal(shape, to.array_type, mean, std, in_order)


def rand(*size: int | Sequence[int], generator: Generator | None = None, dtype: ElementType | None = None,
         device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Draw numbers uniform in [0, 1).

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """
    to = _float_type(dtype, settings, "rand")
    shape = shape_of(size_of(size, settings), "rand")
    array = allocate(lambda shape, _: uniform_values(generator, shape, to), shape, to, "rand")
    return finish(array, requires_grad, device, "rand", **settings)


def randn(*size: int | Sequence[int], generator: Generator | None = None, dtype: ElementType | None = None,
          device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Draw normal numbers with mean 0 and variance 1.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    to = _float_type(dtype, settings, "randn")
    shape = shape_of(size_of(size, settings), "randn")
    array = allocate(lambda shape, _: normal_values(generator, shape, to), shape, to, "randn")
    return finish(array, requires_grad, device, "randn", **settings)


def randint(low: Any = None, high: Any = None, size: Sequence[int] | None = None, *, generator: Generator | None = None,
            dtype: ElementType | None = None, device: Device | str | None = None, requires_grad: bool = False,
            **settings: Any) -> Any:
    """Draw integers from low (0 if left out) up to, not including, high: `randint(10, (2, 3))`.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.randint(10, (3,))
    tensor([4, 9, 3])
    """
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    if size is None:
        raise BadArgument("randint: needs a size", fix="mutagrad.randint(0, 10, (2, 3))")
    low, high = sizes((low or 0, high), "randint")
    if low >= high:
        raise BadValue(f"randint: needs low < high, got low={low} and high={high}",
                       fix="mutagrad.randint(0, 10, (2, 3))")
    to = _holding("randint", low, high - 1, dtype, settings)
    array = allocate(lambda shape, kind: source(generator).integers(shape, low, high - low).astype(kind, copy=False),
                     shape_of((size,), "randint"), to, "randint")
    return finish(array, requires_grad, device, "randint", **settings)


def _holding(name: str, least: int, most: int, dtype: ElementType | None, settings: dict[str, Any]) -> DType:
    """The type asked for, int64 if none, which must hold these whole numbers exactly."""
    to = int64 if dtype is None and settings.get("out") is None else wanted_type(dtype, settings)
    if to.is_complex:
        raise DTypeError(f"{name}: complex numbers are not whole", fix="dtype=mutagrad.int64")
    bound = int(2 / finfo(to).eps) if to.category >= FLOAT else 1
    if to.category >= FLOAT:
        low, high = -bound, bound
    else:
        low, high = (0, 1) if to.category == BOOL else (iinfo(to).min, iinfo(to).max)
    if not low <= least <= most <= high and least <= most:
        raise BadValue(f"{name}: numbers from {least} to {most} do not fit into {to.name}",
                       why=f"it holds those from {low} to {high}", fix="dtype=mutagrad.int64")
    return to


def randperm(n: int, *, generator: Generator | None = None, dtype: ElementType | None = None,
             device: Device | str | None = None, requires_grad: bool = False, **settings: Any) -> Any:
    """Return the numbers from 0 to n - 1 in random order.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.randperm(4)
    tensor([0, 1, 3, 2])
    """
    shape = shape_of((n,), "randperm")
    to = _holding("randperm", 0, n - 1, dtype, settings)
    array = allocate(lambda shape, kind: source(generator).permutation(*shape).astype(kind), shape, to, "randperm")
    return finish(array, requires_grad, device, "randperm", **settings)


def _like(name: str, input: Tensor, dtype: ElementType | None, device: Device | str | None, requires_grad: bool,
          settings: dict[str, Any], draw: Callable[[tuple[int, ...], DType, bool], Any]) -> Any:
    """What is drawn for the elements of a tensor, in the order in which they lie in memory: the result keeps that."""
    to, place, shape = type_like(input, dtype, name), input.device if device is None else device, input._array.shape
    order = memory_order(input._array) if settings.get("memory_format", preserve_format) is preserve_format else None
    drawn = shape if order is None else tuple(shape[d] for d in order)
    array = allocate(lambda shape, kind: draw(shape, to, order is None), drawn, to, name)
    if order is None:
        return finish(array, requires_grad, place, name, **settings)
    made = back_in_order(finish(array, False, place, name, **settings), order)
    return made.requires_grad_() if requires_grad else made


def rand_like(input: Tensor, *, dtype: ElementType | None = None, device: Device | str | None = None,
              requires_grad: bool = False, generator: Generator | None = None, **settings: Any) -> Any:
    """Draw numbers uniform in [0, 1), in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.rand_like(mg.zeros(3))
    tensor([0.4963, 0.7682, 0.0885])
    """
    _float_type(type_like(input, dtype, "rand_like"), {}, "rand")
    return _like("rand_like", input, dtype, device, requires_grad, settings,
                 lambda shape, to, _: uniform_values(generator, shape, to))


def randn_like(input: Tensor, *, dtype: ElementType | None = None, device: Device | str | None = None,
               requires_grad: bool = False, generator: Generator | None = None, **settings: Any) -> Any:
    """Draw normal numbers, in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.randn_like(mg.zeros(3))
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    _float_type(type_like(input, dtype, "randn_like"), {}, "randn")
    return _like("randn_like", input, dtype, device, requires_grad, settings,
                 lambda shape, to, in_order: normal_values(generator, shape, to, in_order=in_order))


def randint_like(input: Tensor, low: int = 0, high: int | None = None, *, dtype: ElementType | None = None,
                 device: Device | str | None = None, requires_grad: bool = False, generator: Generator | None = None,
                 **settings: Any) -> Any:
    """Draw integers from low (0 if left out) up to, not including, high, in the shape and type of another tensor.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.randint_like(mg.zeros(3), 10)
    tensor([4., 9., 3.])
    """
    low, high = (0, low) if high is None else (low, high)
    low, high = sizes((low, high), "randint_like")
    if low >= high:
        raise BadValue(f"randint_like: needs low < high, got low={low} and high={high}",
                       fix="mutagrad.randint_like(x, 0, 10)")
    _holding("randint_like", low, high - 1, type_like(input, dtype, "randint_like"), {})
    return _like("randint_like", input, dtype, device, requires_grad, settings,
                 lambda shape, to, _: source(generator).integers(shape, low, high - low).astype(to.array_type))


def _drawable(x: Tensor, name: str) -> DType:
    """The type of what is drawn into: it must hold fractions."""
    to = of_array(x._array.dtype)
    if to.category < FLOAT:
        raise DTypeError(f"{name}: needs a floating point tensor, not {to.name}",
                         fix="x.random_(from, to) draws whole numbers")
    return to


def uniform_(x: Tensor, *bounds: float, generator: Generator | None = None, **named: float) -> Any:
    """Overwrite with numbers uniform between two bounds, `from` (0 if left out) and `to` (1 if left out).

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(2).uniform_(-1, 1)
    tensor([-0.0075,  0.5364])
    """
    given = dict(zip(("from", "to"), bounds)) | named
    if len(given) != len(bounds) + len(named) or set(given) - {"from", "to"}:
        raise BadArgument(f"uniform_: takes from and to, got {bounds} and {named}", fix="x.uniform_(0, 1)")
    low, high = number(given.get("from", 0.0)), number(given.get("to", 1.0))
    kind = _drawable(x, "uniform_")
    limits = finfo(kind)
    if not limits.min <= low <= high <= limits.max:
        raise BadValue(f"uniform_: no numbers between {low} and {high} in {kind.name}",
                       why=f"from must not exceed to, and it holds {limits.min} to {limits.max}",
                       fix="x.uniform_(0, 1)")
    return x.copy_(make(in_memory(x._array, lambda shape, _: uniform_values(generator, shape, kind, low, high))))


def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Any:
    """Overwrite with normal numbers.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.empty(3).normal_(mean=1., std=2.)
    tensor([ 4.0820,  0.4131, -3.3576])
    """
    mean, std = number(mean), number(std)
    if std < 0:
        raise BadValue(f"normal_: the standard deviation must not be negative, got {std}",
                       fix=f"x.normal_({mean}, {-std})")
    to = _drawable(x, "normal_")
    in_order = is_in_order(x._array)
    return x.copy_(make(in_memory(x._array, lambda shape, _: normal_values(generator, shape, to, mean, std, in_order))))
