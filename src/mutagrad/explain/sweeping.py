"""Backward sweeps, node by node: what trace and profile listen to.

While nobody listens, the engine is the one that always runs. While somebody does it is `Sweep`, which gives the same
results with a call for each node, and tells.
"""
from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from ..arrays import np
from ..arrays.kinds import anywhere
from ..base.locks import new_lock
from ..base.modes import call_with
from ..base.provenance import Where
from ..core import backward
from ..core.graph import Adjoint, Leaf, Node, Writer
from ..core.sweep import Sweep, SweepAcross
from .values import Facts, facts_of


class SweepListener:
    """Told of the sweeps of all threads; `wants_facts` says whether the adjoints are to be looked at."""

    wants_facts = False

    def sweep_began(self, where: Where, roots: list[Writer], wanted: list[Writer]) -> None:
        """Notice that a sweep begins, asked for at this line, from these writers; for these alone, if there are any."""

    def sweep_ended(self) -> None:
        """Notice that it is over, or has raised."""

    def modes_inside(self, node: Writer, g: Adjoint) -> dict[str, Any]:
        """Return the modes in which a node is reversed, where that runs code of the program; so of hooks."""
        return {}

    def stayed_zero(self, node: Writer) -> None:
        """Notice that a rule gave something undefined to what has no influence, and that it was left out."""

    def visited(self, node: Writer, facts: Facts | None, began: int, ended: int) -> None:
        """Look at a node that was reversed, or a leaf that was reached; `facts` are those of its adjoint."""


_listeners: tuple[SweepListener, ...] = ()
_engines: tuple[type[Sweep], type[Sweep]] | None = None  # those that run while nobody listens
_lock = new_lock()


def listen(listener: SweepListener) -> None:
    """Tell a listener of every sweep that begins from now on."""
    global _listeners, _engines
    with _lock:
        if not _listeners:
            _engines = backward.SWEEP, backward.SWEEP_ACROSS
            backward.SWEEP, backward.SWEEP_ACROSS = WatchedSweep, WatchedSweepAcross
        _listeners = (*_listeners, listener)


def stop_listening(listener: SweepListener) -> None:
    """Tell it no more; the last to leave puts the engine back."""
    global _listeners, _engines
    with _lock:
        _listeners = tuple(other for other in _listeners if other is not listener)
        if not _listeners and _engines is not None:
            (backward.SWEEP, backward.SWEEP_ACROSS), _engines = _engines, None


class WatchedSweep(Sweep):
    """A sweep that tells its listeners."""

    __slots__ = ("facts", "listeners", "wants_facts")
    facts: Facts | None

    def run(self, seeds: Any) -> None:
        self.listeners = _listeners
        self.wants_facts = any(listener.wants_facts for listener in _listeners)
        for listener in self.listeners:
            listener.sweep_began(self.freed.where, [writer for writer, _, _ in seeds], list(self.captures))
        try:
            super().run(seeds)
        finally:
            for listener in self.listeners:
                listener.sweep_ended()

    def visit(self, node: Any, holder: list[Any]) -> None:
        self.facts, began = None, perf_counter_ns()
        try:
            super().visit(node, holder)
        finally:
            ended = perf_counter_ns()
            for listener in self.listeners:
                listener.visited(node, self.facts, began, ended)

    def reverse(self, node: Node, g: Adjoint, inputs: Any) -> Any:
        self.look(g)
        changes = self.changes_inside(node, g)
        return call_with(changes, super().reverse, node, g, inputs) if changes else super().reverse(node, g, inputs)

    def changes_inside(self, node: Writer, g: Adjoint) -> dict[str, Any]:
        return {name: change for listener in self.listeners for name, change in listener.modes_inside(node, g).items()}

    def stay_zero(self, node: Node, g: Adjoint, saved: Any, inputs: Any, grads: Any) -> Any:
        found = super().stay_zero(node, g, saved, inputs, grads)
        if found is not grads and any(a is not b and _differ(a, b) for a, b in zip(found, grads)):
            for listener in self.listeners:
                listener.stayed_zero(node)
        return found

    def take_leaf(self, leaf: Leaf, holder: list[Any]) -> bool:
        windowed = super().take_leaf(leaf, holder)
        self.look(holder[0])
        return windowed

    def run_hooks(self, node: Writer, holder: list[Any]) -> Any:
        if node in self.captures:
            self.look(holder[0])
        changes = self.changes_inside(node, holder[0]) if node.hooks else {}
        return call_with(changes, super().run_hooks, node, holder) if changes else super().run_hooks(node, holder)

    def look(self, g: Any) -> None:
        """Note the facts now: what comes after may change the adjoint in place, and must find no other owner of it."""
        if self.wants_facts:
            self.facts = facts_of(g)


def _differ(one: Any, other: Any) -> bool:
    """Whether an adjoint was undefined where it is zero now."""
    one, other = (getattr(a, "_array", a) for a in (one, other))
    return bool(anywhere((one == 0) & ~np.isfinite(other)))


class WatchedSweepAcross(WatchedSweep, SweepAcross):
    """The same where arrays of other kinds may come up."""

    __slots__ = ()
