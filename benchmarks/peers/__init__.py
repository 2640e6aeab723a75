"""Some of the programs of `programs.py` as users of other libraries would write them, a module for each library.

A module's `ROWS` has, under the name of a row, a program that makes the same numbers and returns the same gradient. It
computes every gradient that the row computes, also where it returns only one. What a library compiles is compiled before
`make` returns or by the first run, and neither is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

Run = Callable[[], Any]
SPEED_SQUARED, SPRING, FLOATS = 0.25, 0.02, 60
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam's


@dataclass(frozen=True)
class Program:
    make: Callable[[Any], Run]


def rows(*makers: Callable[[Any], Run], pond: Callable[..., Run]) -> dict[str, Program]:
    """The table of a library: a row for each function, by its name, and the three ponds."""
    ponds = {"pond_80": (32, 80), "pond_1000": (32, 1000), "pond_large": (512, 200)}
    table = {make.__name__: Program(make) for make in makers}
    return table | {name: Program(partial(pond, size=size, times=times)) for name, (size, times) in ponds.items()}
