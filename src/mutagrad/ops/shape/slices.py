"""How tensors enter a `vmap` and leave it: between arrays with the slices in a dimension and those that hide it."""
from __future__ import annotations

from typing import Any

from ...arrays.batched import Batched, Slices, fresh
from ...arrays.kinds import raw
from ...base.operands import Array
from ...core.codegen import primitive


def _enter(a: Array, dim: int, level: Slices) -> Any:
    return fresh(level, raw.moveaxis(a, dim, 0).copy(), True)


def _leave(a: Any, dim: int, level: Slices) -> Array:
    values, split = a.values() if type(a) is Batched and a.level is level else (a, False)
    values = values if split else raw.broadcast_to(values, (level.size, *values.shape))
    return raw.moveaxis(values, 0, dim).copy()  # type: ignore[no-any-return]


# Each is the other's rule. What all slices share has the sum of their adjoints, and that the same one for all of them.
enter_slices = primitive("enter_slices", _enter, settings=("dim", "level"),
                         x=lambda xp, g, dim, level: xp.leave_slices(g, dim, level))
leave_slices = primitive("leave_slices", _leave, settings=("dim", "level"),
                         x=lambda xp, g, dim, level: xp.enter_slices(g, dim, level))
total_of_slices = primitive("total_of_slices", lambda a, level: level.total(a), settings=("level",),
                            x=lambda xp, g, level: xp.same_for_slices(g, level))
same_for_slices = primitive("same_for_slices", lambda a, level: fresh(level, a.copy(), False), settings=("level",),
                            x=lambda xp, g, level: xp.total_of_slices(g, level))
