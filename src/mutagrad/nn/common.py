"""What the layers share: checking their sizes, making their parameters, and describing themselves."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument, BadValue
from ..core.dtypes import dtype
from ..ops.create.create import empty
from ..ops.nn.resample import whole_numbers
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from .common_types import DeviceLike


def described(module: Module, *names: str) -> str:
    """Return attributes as they stand in a repr: `kernel_size=3, stride=1`."""
    return ", ".join(f"{name}={getattr(module, name)}" for name in names)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return what a layer that makes others passes on to them.

    That is `device`, `dtype` and `memory_format`, given by themselves or in a dict "factory_kwargs".

    >>> import mutagrad as mg
    >>> mg.nn.factory_kwargs({"dtype": mg.float64})
    {'dtype': mutagrad.float64}
    """
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    for name, value in given.items():
        if name not in ("device", "dtype", "memory_format") or name in found:
            wrong = "given twice" if name in found else "not one of them"
            raise BadArgument(f"factory_kwargs: {name!r} is {wrong}", fix='{"device": "cpu", "dtype": None}')
        found[name] = value
    return found


def make_parameter(shape: tuple[int, ...], device: DeviceLike | None = None,
                   dtype: dtype | None = None) -> Parameter:
    """Return a parameter that is still to be filled."""
    return Parameter(empty(shape, device=device, dtype=dtype))  # type: ignore[no-any-return]


def check_count(module: Module, name: str, value: int, least: int = 0) -> int:
    """Return a size that was given to a layer as an integer, or raise."""
    layer = type(module).__name__
    try:
        count = operator.index(value)
    except TypeError:
        raise BadArgument(f"{layer}: {name} must be an integer, not {value!r}", fix=f"{name}={max(least, 1)}") from None
    if count < least:
        raise BadValue(f"{layer}: {name} must be at least {least}, got {count}", why="it is a number of elements",
                       fix=f"{name}={max(least, 1)}")
    return int(count)


def check_divides(module: Module, part: str, whole: str) -> None:
    """Raise unless one attribute is a multiple of another."""
    parts, size = getattr(module, part), getattr(module, whole)
    if size % parts:
        raise BadValue(f"{type(module).__name__}: {whole}={size} is not divisible by {part}={parts}",
                       why="all groups have the same size", fix=f"{whole}={size - size % parts + parts}")


def each_dim(module: Module, name: str, value: int | Sequence[int], n: int, least: int) -> tuple[int, ...]:
    """Return a setting for each of n dimensions, none of them below `least`."""
    layer = type(module).__name__
    numbers = whole_numbers(value, n, layer, name)
    if min(numbers) < least:
        raise BadValue(f"{layer}: {name} must be at least {least} in every dimension, got {value!r}",
                       fix=f"{name}={max(least, 1)}")
    return numbers
