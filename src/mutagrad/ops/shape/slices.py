"""How tensors enter a `vmap` and leave it: between arrays with the slices in a dimension and those that hide it."""
from __future__ import annotations

from ...arrays.batched import entered, left, shared
from ...core.codegen import primitive

# Each is the other's rule. What all slices share has the sum of their adjoints, and that the same one for all of them.
enter_slices = primitive("enter_slices", entered, settings=("dim", "level"),
                         x=lambda xp, g, dim, level: xp.leave_slices(g, dim, level))
leave_slices = primitive("leave_slices", left, settings=("dim", "level"),
                         x=lambda xp, g, dim, level: xp.enter_slices(g, dim, level))
total_of_slices = primitive("total_of_slices", lambda a, level: level.total(a), settings=("level",),
                            x=lambda xp, g, level: xp.same_for_slices(g, level))
same_for_slices = primitive("same_for_slices", shared, settings=("level",),
                            x=lambda xp, g, level: xp.total_of_slices(g, level))
