"""Counters of what autograd did, so that cost can be tested by counting instead of by the clock.

>>> import mutagrad as mg
>>> x = mg.ones(1000, requires_grad=True)
>>> before = mg.stats()
>>> (x * 2).sum().backward()
>>> (mg.stats() - before).nodes
3
"""
from __future__ import annotations

from typing import NamedTuple


class Stats(NamedTuple):
    """Totals since the program began; subtract two for the cost of what lay between."""

    nodes: int
    """Nodes that backward sweeps visited, leaves included."""
    protected: int
    """Bytes copied so that a write, or another library, does not change a saved value of more than 32 elements."""
    allocated: int
    """Bytes of adjoint buffers that sweeps allocated to accumulate windows in."""
    touched: int
    """Bytes of adjoint read, cleared or added to through windows."""
    examined: int
    """Records of saved values, and of other histories of a memory, that writes looked at."""

    def __sub__(self, other: Stats) -> Stats:
        return Stats(*(a - b for a, b in zip(self, other)))


class Counters:
    __slots__ = (*Stats._fields, "referenced")
    nodes: int
    protected: int
    allocated: int
    touched: int
    examined: int
    referenced: int  # bytes of values saved by reference lately: whether what a sweep frees may be kept for a while


counters = Counters()
counters.nodes = counters.protected = counters.allocated = counters.touched = counters.examined = 0
counters.referenced = 0


def stats() -> Stats:
    """Return the counters as they stand: `mutagrad.stats() - before`.

    >>> import mutagrad as mg
    >>> before = mg.stats()
    >>> x = mg.ones(3, requires_grad=True)
    >>> (x * 2).sum().backward()
    >>> (mg.stats() - before).nodes
    3
    """
    return Stats(*(getattr(counters, name) for name in Stats._fields))
