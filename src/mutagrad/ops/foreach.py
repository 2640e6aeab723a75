"""Operations on all tensors of a list, as optimizers are written with them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import BadArgument
from ..storage import TensorBase
from . import elementwise
from .norms import vector_norm


def _spread(value: Any, count: int, name: str) -> Sequence[Any]:
    """One value for each tensor: a list has them, anything else is the same for all."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise BadArgument(f"{name}: lists must have the same length, got {count} tensors and {len(value)} values")
    return value


def _foreach(name: str, operation: Callable[..., Any]) -> Any:
    def over_all(self: Any, *others: Any, **settings: Any) -> tuple[Any, ...]:
        count = len(next((v for v in (self, *others) if isinstance(v, (list, tuple))), ()))
        return tuple(operation(*row, **settings) for row in zip(*(_spread(v, count, name) for v in (self, *others))))

    over_all.__name__ = over_all.__qualname__ = name
    over_all.__doc__ = f"`{name.removeprefix('_foreach_')}` of each tensor, with one value for all or a list of values."
    return over_all


def _foreach_in_place(name: str, operation: Callable[..., Any]) -> Any:
    over_all = _foreach(name, lambda x, *others, **settings: x.copy_(operation(x, *others, **settings)))

    def write_all(self: Any, *others: Any, **settings: Any) -> None:
        over_all(self, *others, **settings)

    write_all.__name__ = write_all.__qualname__ = name
    write_all.__doc__ = over_all.__doc__
    return write_all


def _pair(name: str, operation: Callable[..., Any]) -> tuple[Any, Any]:
    return _foreach(f"_foreach_{name}", operation), _foreach_in_place(f"_foreach_{name}_", operation)


def _with_values(operation: Callable[..., Any]) -> Any:
    """The same for addcmul and addcdiv, whose factors may be a tensor that holds one for each."""
    def spread_values(foreach: Any) -> Any:
        def call(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
            return foreach(self, tensor1, tensor2, value._array.tolist() if isinstance(value, TensorBase) else value)
        return call

    name = f"_foreach_{operation.__name__}"
    return tuple(map(spread_values, _pair(name.removeprefix("_foreach_"), lambda x, a, b, value: operation(x, a, b, value=value))))


_foreach_abs, _foreach_abs_ = _pair("abs", elementwise.abs)
_foreach_ceil, _foreach_ceil_ = _pair("ceil", elementwise.ceil)
_foreach_exp, _foreach_exp_ = _pair("exp", elementwise.exp)
_foreach_floor, _foreach_floor_ = _pair("floor", elementwise.floor)
_foreach_log, _foreach_log_ = _pair("log", elementwise.log)
_foreach_neg, _foreach_neg_ = _pair("neg", elementwise.neg)
_foreach_reciprocal, _foreach_reciprocal_ = _pair("reciprocal", elementwise.reciprocal)
_foreach_round, _foreach_round_ = _pair("round", elementwise.round)
_foreach_rsqrt, _foreach_rsqrt_ = _pair("rsqrt", elementwise.rsqrt)
_foreach_sigmoid, _foreach_sigmoid_ = _pair("sigmoid", elementwise.sigmoid)
_foreach_sign, _foreach_sign_ = _pair("sign", elementwise.sign)
_foreach_sqrt, _foreach_sqrt_ = _pair("sqrt", elementwise.sqrt)
_foreach_tanh, _foreach_tanh_ = _pair("tanh", elementwise.tanh)

_foreach_add, _foreach_add_ = _pair("add", elementwise.add)
_foreach_sub, _foreach_sub_ = _pair("sub", elementwise.sub)
_foreach_mul, _foreach_mul_ = _pair("mul", elementwise.mul)
_foreach_div, _foreach_div_ = _pair("div", elementwise.div)
_foreach_pow, _foreach_pow_ = _pair("pow", elementwise.pow)
_foreach_lerp, _foreach_lerp_ = _pair("lerp", elementwise.lerp)
_foreach_maximum, _foreach_maximum_ = _pair("maximum", lambda x, y: x.clamp(min=y))
_foreach_minimum, _foreach_minimum_ = _pair("minimum", lambda x, y: x.clamp(max=y))
_foreach_clamp_min, _foreach_clamp_min_ = _pair("clamp_min", lambda x, y: x.clamp(min=y))
_foreach_clamp_max, _foreach_clamp_max_ = _pair("clamp_max", lambda x, y: x.clamp(max=y))
_foreach_addcmul, _foreach_addcmul_ = _with_values(elementwise.addcmul)
_foreach_addcdiv, _foreach_addcdiv_ = _with_values(elementwise.addcdiv)


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    """The norm of each tensor, over all its elements."""
    return tuple(vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> None:
    """Writes the values of each tensor of one list into that of another."""
    for x, y in zip(self, _spread(src, len(self), "_foreach_copy_")):
        x.copy_(y)


def _foreach_zero_(self: Any) -> None:
    """Writes zeros into each tensor."""
    for x in self:
        x.zero_()
