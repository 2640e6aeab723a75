"""Operations on all tensors of a list, as optimizers are written with them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import BadData
from ...core.dtypes import dtype as DType
from ...core.number import check_lost
from ...core.storage import TensorBase as Tensor
from ..linalg.norms import vector_norm
from . import elementwise
from .elementwise import Value

FUNCTIONS = """
    _foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv
    _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan
    _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min
    _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_
    _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp
    _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_
    _foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_
    _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum
    _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_
    _foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round
    _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign
    _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_
    _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc
    _foreach_trunc_ _foreach_zero_
"""


def _spread(value: Any, count: int, name: str) -> Sequence[Any]:
    """One value for each tensor: a list has them, anything else is the same for all."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise BadData(f"{name}: lists must have the same length, got {count} tensors and {len(value)} values")
    return value


def _foreach(name: str, operation: Callable[..., Any]) -> Any:
    def over_all(self: Any, *others: Any, **settings: Any) -> tuple[Any, ...]:
        count = len(next((v for v in (self, *others) if isinstance(v, (list, tuple))), ()))
        return tuple(operation(*row, **settings) for row in zip(*(_spread(v, count, name) for v in (self, *others))))

    over_all.__name__ = over_all.__qualname__ = name
    over_all.__doc__ = f"`{name.removeprefix('_foreach_')}` of each tensor, with one value for all or a list of values."
    return over_all


def _foreach_in_place(name: str, method: str) -> Any:
    over_all = _foreach(name, lambda x, *others, **settings: getattr(x, method)(*others, **settings))

    def write_all(self: Any, *others: Any, **settings: Any) -> None:
        over_all(self, *others, **settings)

    write_all.__name__ = write_all.__qualname__ = name
    write_all.__doc__ = over_all.__doc__
    return write_all


def _pair(name: str, method: str | None = None) -> tuple[Any, Any]:
    """The operation that is a method of tensors, and its form in place."""
    method = method or name
    return (_foreach(f"_foreach_{name}", lambda x, *others, **settings: getattr(x, method)(*others, **settings)),
            _foreach_in_place(f"_foreach_{name}_", f"{method}_"))


def _with_values(name: str) -> Any:
    """The same for addcmul and addcdiv, whose factors may be a tensor that holds one for each."""
    def spread_values(foreach: Callable[..., Any]) -> Any:
        def call(self: Sequence[Tensor], tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
            check_lost(value)
            return foreach(self, tensor1, tensor2, value._array.tolist() if isinstance(value, Tensor) else value)
        return call

    def into(x: Tensor, a: Value, b: Value, value: Any) -> Any:
        return getattr(x, f"{name}_")(a, b, value=value)

    return (spread_values(_foreach(f"_foreach_{name}", lambda x, a, b, value: getattr(x, name)(a, b, value=value))),
            spread_values(_foreach(f"_foreach_{name}_", into)))


_foreach_abs, _foreach_abs_ = _pair("abs")
_foreach_acos, _foreach_acos_ = _pair("acos")
_foreach_asin, _foreach_asin_ = _pair("asin")
_foreach_atan, _foreach_atan_ = _pair("atan")
_foreach_ceil, _foreach_ceil_ = _pair("ceil")
_foreach_cos, _foreach_cos_ = _pair("cos")
_foreach_cosh, _foreach_cosh_ = _pair("cosh")
_foreach_erf, _foreach_erf_ = _pair("erf")
_foreach_erfc, _foreach_erfc_ = _pair("erfc")
_foreach_exp, _foreach_exp_ = _pair("exp")
_foreach_expm1, _foreach_expm1_ = _pair("expm1")
_foreach_floor, _foreach_floor_ = _pair("floor")
_foreach_frac, _foreach_frac_ = _pair("frac")
_foreach_lgamma, _foreach_lgamma_ = _pair("lgamma")
_foreach_log, _foreach_log_ = _pair("log")
_foreach_log10, _foreach_log10_ = _pair("log10")
_foreach_log1p, _foreach_log1p_ = _pair("log1p")
_foreach_log2, _foreach_log2_ = _pair("log2")
_foreach_neg, _foreach_neg_ = _pair("neg")
_foreach_reciprocal, _foreach_reciprocal_ = _pair("reciprocal")
_foreach_round, _foreach_round_ = _pair("round")
_foreach_rsqrt, _foreach_rsqrt_ = _pair("rsqrt")
_foreach_sigmoid, _foreach_sigmoid_ = _pair("sigmoid")
_foreach_sign, _foreach_sign_ = _pair("sign")
_foreach_sin, _foreach_sin_ = _pair("sin")
_foreach_sinh, _foreach_sinh_ = _pair("sinh")
_foreach_sqrt, _foreach_sqrt_ = _pair("sqrt")
_foreach_tan, _foreach_tan_ = _pair("tan")
_foreach_tanh, _foreach_tanh_ = _pair("tanh")
_foreach_trunc, _foreach_trunc_ = _pair("trunc")

_foreach_add, _foreach_add_ = _pair("add")
_foreach_sub, _foreach_sub_ = _pair("sub")
_foreach_mul, _foreach_mul_ = _pair("mul")
_foreach_div, _foreach_div_ = _pair("div")
# 2 ** x for each has no method.
_foreach_pow, _foreach_pow_ = _foreach("_foreach_pow", elementwise.pow), _foreach_in_place("_foreach_pow_", "pow_")
_foreach_lerp, _foreach_lerp_ = _pair("lerp")
_foreach_maximum, _foreach_maximum_ = _pair("maximum", "clamp_min")
_foreach_minimum, _foreach_minimum_ = _pair("minimum", "clamp_max")
_foreach_clamp_min, _foreach_clamp_min_ = _pair("clamp_min")
_foreach_clamp_max, _foreach_clamp_max_ = _pair("clamp_max")
_foreach_addcmul, _foreach_addcmul_ = _with_values("addcmul")
_foreach_addcdiv, _foreach_addcdiv_ = _with_values("addcdiv")
_foreach_max = _foreach("_foreach_max", lambda x: x.max())
_foreach_clone = _foreach("_foreach_clone", lambda x: x.clone())


def _foreach_norm(self: Sequence[Tensor], ord: float | str = 2, dtype: DType | None = None) -> tuple[Any, ...]:
    """Return the norm of each tensor, over all its elements."""
    return tuple(vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> None:
    """Write the values of each tensor of one list into that of another."""
    for x, y in zip(self, _spread(src, len(self), "_foreach_copy_")):
        x.copy_(y)


def _foreach_zero_(self: Sequence[Tensor]) -> None:
    """Write zeros into each tensor."""
    for x in self:
        x.zero_()
