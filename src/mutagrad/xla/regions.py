"""Parts of a step that are traced by themselves, the body of a loop or a branch: one node each in the step's history.

A region is a function of Python's without arguments that reads and writes memory around it. Tracing it once tells which
memory that is. Then it is a function of values, for JAX to repeat or to choose; and its reverse is one as well: the
region is run again, recorded, and our own sweep brings the adjoints of what it wrote to what it read.
"""
from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from ..arrays.kinds import use
from ..arrays.xla.memory import Cell, NotTraced, Trace, tracing, wrap
from ..base.errors import NotSupported
from ..base.modes import call_with, mode
from ..base.pytree import tree_flatten, tree_unflatten
from ..core.backward import run_sweep
from ..core.factory import make, window_or_none
from ..core.op import RAW
from ..core.storage import Storage, TensorBase
from ..core.sweep import OUTPUT
from ..core.write import new_node
from ..ops.shape.shape import variadic
from .session import Source


class Snapshot(NamedTuple):
    """A storage from around a region, as it was before."""

    storage: Storage
    writer: Any
    leaf: Any
    version: int
    ledger: Any


class Touched:
    """The storages from around that a region has looked at, with their memory."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.storages: dict[int, Snapshot] = {}
        self.cells: dict[int, Cell] = {}

    def note(self, storage: Storage, cell: Cell) -> None:
        if id(storage) in self.storages or _is_within(cell.born, self.trace):
            return
        for one in (storage, storage.root):
            if one is not None and id(one) not in self.storages:
                self.storages[id(one)] = Snapshot(one, one.writer, one.leaf, one.version, one.ledger)
                self.cells[id(one)] = cell

    def put_back(self) -> None:
        for storage, writer, leaf, version, ledger in self.storages.values():
            storage.writer, storage.leaf, storage.version, storage.ledger = writer, leaf, version, ledger


def _is_within(born: Trace | None, trace: Trace) -> bool:
    """Whether a cell was made inside a trace, or inside one that it is around."""
    while born is not None:
        if born is trace:
            return True
        born = tracing(born.outer)
    return False


History = tuple[Storage, Cell]


class End(Source):
    """Where a sweep of a region ends. If it stands for a leaf, that is no tensor's here."""

    def tensor(self) -> None:
        return None


class Region:
    """See the top of this file. `written` and `fixed` are the cells that it writes, and that it only reads."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any] = (), rounds: int = 0) -> None:
        outer = tracing()
        assert outer is not None
        self.function, self.outer, self.recording, self.rounds = function, outer, mode.grad, rounds
        self.counts = {k: d.count for k, d in outer.session.draws.items()}
        found: dict[str, Any] = {}

        def probe(*values: Any) -> Any:
            trace = found["trace"] = self.begin(values)
            returned = call_with({"kind": trace, "recorded": self.recording}, function, *values)
            results, found["spec"] = tree_flatten(returned)
            if any(isinstance(r, TensorBase) and not _is_within(_cell(r).born, trace) for r in results):
                raise NotTraced("cond: a branch returns a tensor that is not its own",
                                why="what is returned is one tensor, whichever branch runs", fix="return x.clone()")
            found["results"] = [_described(r) for r in results]
            return 0

        jax.make_jaxpr(probe)(*arguments)
        trace: Trace = found["trace"]
        self.touched: Touched = trace.touched
        self.touched.put_back()
        check_kept(trace)
        self.spec, self.results = found["spec"], found["results"]
        self.written = list(trace.values)
        self.fixed = [c for c in trace.read if c not in trace.values]

    def begin(self, values: Sequence[Any], given: dict[Cell, Any] | None = None) -> Trace:
        """A trace of its own, in which random numbers are those that it has drawn before."""
        for k, d in self.outer.session.draws.items():
            d.count = self.counts.get(k, 0)
        trace = Trace(self.outer, self.outer.session, self.outer.place)
        trace.touched, trace.turn, trace.rounds = Touched(trace), values[0] if values else None, self.rounds
        trace.read.update(given or {})
        use(trace)
        return trace

    def histories(self, written: set[Cell]) -> dict[int, History]:
        """The storages that have a history, or may get one by a write."""
        found = {}
        for k, snapshot in self.touched.storages.items():
            cell = self.touched.cells[k]
            if snapshot.storage.buffer.dtype.kind in "fcV" and (snapshot.writer is not None or cell in written):
                found[k] = snapshot.storage, cell
        return found

    def forward(self, given: dict[Cell, Any], arguments: Sequence[Any], written: Sequence[Cell]) -> list[Any]:
        """The new values of cells, then of the results, out of those that cells have before."""
        trace = self.begin(arguments, given)

        def inside() -> list[Any]:
            results = tree_flatten(self.function(*arguments))[0]
            arrays = [r._array for r in results if isinstance(r, TensorBase)]
            return [trace.value_of(c) for c in written] + [a.values() for a in arrays]

        try:
            return call_with({"kind": trace, "recorded": self.recording}, inside)  # type: ignore[no-any-return]
        finally:
            trace.touched.put_back()

    def backward(self, given: dict[Cell, Any], arguments: Sequence[Any], histories: Sequence[History],
                 adjoints: Sequence[Any], reached: dict[int, set[int]]) -> list[Any]:
        """The adjoints of histories before the region, out of those after it, and then of the results.

        `reached` notes for each history that it has recorded writes to, and for each result, from which histories
        these come.
        """
        trace = self.begin(arguments, given)
        sources = [End(s) for s, _ in histories]
        found: dict[Any, list[Any]] = {source: [] for source in sources}

        def inside() -> list[Any]:
            for (storage, _), source in zip(histories, sources):
                storage.writer = source
                storage.leaf = None if storage.leaf is None else source
            results = [r for r in tree_flatten(self.function(*arguments))[0] if isinstance(r, TensorBase)]
            seeds: list[Any] = []
            for k, ((storage, cell), source, g) in enumerate(zip(histories, sources, adjoints)):
                if storage.writer is source:
                    found[source].append(wrap(g, cell.place))
                else:
                    reached[k] = reached.get(k, set()) | _sources(storage.writer, sources)
                    seeds.append((storage.writer, None, wrap(g, cell.place)))
            for k, (r, g) in enumerate(zip(results, adjoints[len(histories):]), len(histories)):
                if r._storage.writer is not None:
                    reached[k] = reached.get(k, set()) | _sources(r._storage.writer, sources)
                    seeds.append((r._storage.writer, window_or_none(r), wrap(g, trace.place)))
            if seeds:
                run_sweep(seeds, False, False, deposit, {}, False)
            return [source.total(found[source]) for source in sources]

        def deposit(leaf: Any, holder: list[Any], windowed: bool) -> None:
            if type(leaf) is not End:
                raise NotTraced("compile: the gradient of a loop or branch goes on where it cannot be followed",
                                why="it uses a tensor that was computed before, through a history of its own",
                                fix="x.clone() before it")
            found[leaf].append(holder.pop())

        before = Touched(trace)
        for storage, cell in histories:
            before.note(storage, cell)
        try:
            return call_with({"kind": trace, "recorded": True}, inside)  # type: ignore[no-any-return]
        finally:
            trace.touched.put_back()
            before.put_back()


def _sources(writer: Any, sources: Sequence[Source]) -> set[int]:
    """From which of the sources a history comes."""
    numbers = {id(source): k for k, source in enumerate(sources)}
    found: set[int] = set()
    waiting, seen = [writer], set()
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            found |= {numbers[id(node)]} if id(node) in numbers else set()
            waiting += node.inputs
    return found


def differentiable(reached: dict[int, set[int]], histories: Sequence[History]) -> set[int]:
    """Return which histories and results depend on something that has a gradient, in however many rounds."""
    live = {k for k, (storage, _) in enumerate(histories) if storage.writer is not None}
    while more := {k for k, comes_from in reached.items() if k not in live and comes_from & live}:
        live |= more
    return live & reached.keys()


def check_kept(trace: Trace) -> None:
    """Raise where what a region makes is kept: it is another one in each round."""
    if any(r() is not None for r in trace.made):
        gc.collect()
        kept = [cell for r in trace.made if (cell := r()) is not None]
        if kept:
            raise NotTraced("compile: what a loop or branch makes is kept outside of it: a tensor of shape "
                            f"{kept[0].twin.shape}",
                            why="in each round it is another one, and a name that is bound inside is not bound outside",
                            fix="write into a tensor that was there before: x.copy_(new), x += new, xs[i] = new")


def _cell(tensor: Any) -> Cell:
    return tensor._array.cell  # type: ignore[no-any-return]


def _described(result: Any) -> Any:
    if not isinstance(result, TensorBase):
        return result
    return jax.ShapeDtypeStruct(result._array.shape, result._array.dtype)


class Reverse:
    """The reverse of a region as a function of values, traced once: what it needs, and which histories it changes."""

    def __init__(self, region: Region, cells: Sequence[Cell], histories: Sequence[History],
                 arguments: Sequence[Any]) -> None:
        self.reached: dict[int, set[int]] = {}
        tensors = [r for r in region.results if isinstance(r, jax.ShapeDtypeStruct)]
        shapes = [jax.ShapeDtypeStruct(s.buffer.shape, s.buffer.dtype) for s, _ in histories] + tensors

        def backward(values: Any, arguments: Any, adjoints: Any) -> list[Any]:
            return region.backward(dict(zip(cells, values)), arguments, histories, adjoints, self.reached)

        values = [jax.ShapeDtypeStruct(c.twin.shape, c.twin.dtype) for c in cells]
        self.closed = jax.make_jaxpr(backward)(values, list(arguments), shapes)
        _, used = dce_jaxpr(self.closed.jaxpr, [True] * len(self.closed.jaxpr.outvars))
        self.used = used[:len(cells)]  # which values it needs

    def __call__(self, values: Sequence[Any], arguments: Sequence[Any], adjoints: Sequence[Any]) -> list[Any]:
        found = jax.core.eval_jaxpr(self.closed.jaxpr, self.closed.consts, *values, *arguments, *adjoints)
        return list(found)


def finish(name: str, regions: Sequence[Region], written: Sequence[Cell], values: Sequence[Any],
           histories: Sequence[History], changed: set[int], reverse: Callable[[list[Any]], list[Any]] | None) -> Any:
    """Put new values into memory and return the results; with a reverse, by one node of the step's history."""
    region = regions[0]
    for cell, value in zip(written, values):
        cell.value = value
    for one in regions:
        for k, snapshot in one.touched.storages.items():
            if one.touched.cells[k] in set(written):
                snapshot.storage.version += 1
    results = [make(wrap(value, region.outer.place)) for value in values[len(written):]]
    if reverse is not None:
        shapes = [(s.buffer.shape, s.buffer.dtype) for s, _ in histories]
        shapes += [(r._array.shape, r._array.dtype) for r in results]

        def rule(xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
            if xp is not RAW:
                raise NotSupported(f"compile: a {name} has no second derivative inside a compiled step",
                                   fix="a loop or an `if` of Python's inside the step")
            each = [jnp.zeros(*shape) if g.get(k) is None else g[k].values().reshape(shape[0])
                    for k, shape in enumerate(shapes)]
            return [None if link is None else wrap(one, cell.place)
                    for one, link, (_, cell) in zip(reverse(each), links, histories)]

        node = new_node(variadic(name, None, rule, False), [s.writer for s, _ in histories])
        for k, target in enumerate([*(s for s, _ in histories), *(r._storage for r in results)]):
            if k in changed and shapes[k][1].kind in "fcV":
                out = new_node(OUTPUT, (node,))
                out.saved, out.whole = k, shapes[k]
                target.writer = out
    tensors = iter(results)
    return tree_unflatten([next(tensors) if isinstance(r, jax.ShapeDtypeStruct) else r for r in region.results],
                          region.spec)
