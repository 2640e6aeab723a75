"""Values that have to be in range, and that are known only when a program runs: indices, classes.

XLA raises nothing: it takes the nearest element for one that is not there, and does not write to it. So a program says
which of the checks in it was the first to fail, and of which value; that is raised after the run. A device is not
waited for: there it is raised by a later call, or when a value is next read.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, OUTCOMES, Cell, Place, look_at_ended, tracing
from ..base.modes import call_with
from ..base.provenance import here

UNTOLD = -(1 << 62)  # stands for a value that is not known


class Doubts:
    """What a step has to check in each run. `cell` holds the number of the first check that failed, and a value."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.cell: Cell | None = None
        self.checks: dict[Any, Callable[[Any, Any], Exception]] = {}  # by place in the program, in order

    def add(self, array: Any, least: int, most: int, error: Callable[[Any, Any], Exception]) -> None:
        value, rounds = array.values(), rounds_of(array)
        if rounds is not None:
            if not least <= 0 <= rounds - 1 <= most:
                raise error(0 if least > 0 else rounds - 1, None)
            return
        if self.cell is None:
            zeros = numpy.zeros(2, numpy.int64)
            self.cell = call_with({"kind": self.session.trace}, Cell, None, zeros, HOST, zeros)
        where = here()
        self.checks.setdefault((where, least, most), error)
        number = list(self.checks).index((where, least, most)) + 1
        before = self.cell.value
        failed, which = failing(value, least, most, self.session.place)
        found = jnp.stack([jnp.full((), number, numpy.int64), which])
        self.cell.value = jnp.where((before[0] == 0) & failed, found, before)


def failing(value: Any, least: int, most: int, place: Place | None) -> tuple[Any, Any]:
    """Whether an element is out of range, and one that is.

    Over a mesh they are only counted, in float32: so XLA exchanges that together with the gradients.
    """
    if place is not None and place.over_mesh:
        count = ((value < least) | (value > most)).astype(numpy.float32).sum()
        return count > 0, jnp.full((), UNTOLD, numpy.int64)
    low, high = value.min().astype(numpy.int64), value.max().astype(numpy.int64)
    return (low < least) | (high > most), jnp.where(low < least, low, high)


def rounds_of(array: Any) -> int | None:
    """Of how many rounds of a loop an array is the number; None for any other, and in a branch inside of the loop."""
    trace = tracing()
    while trace is not None and trace.turn is not None:
        if array.cell.held is trace.turn:
            return trace.rounds
        trace = tracing(trace.outer)
    return None


class Outcomes:
    """The outcomes of a program's runs, which the last of its results tells."""

    def __init__(self, doubts: Doubts) -> None:
        self.checks = list(doubts.checks.items())

    def look(self, outcome: Any, on_device: bool) -> None:
        """Raise the error of a run, or of one before that has ended."""
        if on_device:
            look_at_ended()
            OUTCOMES.append((outcome, self.check))
        else:
            self.check(outcome)

    def check(self, outcome: Any) -> None:
        number, value = numpy.asarray(outcome).tolist()
        if number:
            (where, *_), error = self.checks[number - 1]
            raise error("?" if value == UNTOLD else value, where)
