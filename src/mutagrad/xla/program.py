"""One traced step as a program of XLA's: what it is given, what it gives back, and what happens around it in Python.

Tracing calls the step once, with tensors whose values are JAX's tracers. What of it reaches outside is known then:

    inputs     memory that it read, of arguments, captured tensors and gradients, and numbers of Python's (`each_run`)
    outputs    memory that it wrote, gradients that it set, and what it returned
    guards     what has to be as it was for the program to be right; where it is not, the step is traced anew

Memory on a device that is written is donated: XLA computes the new value in its place. NumPy's memory is copied in and
out. Where a result has a history that has not been swept yet, as that of a module's forward, the program has two parts:
a forward, and a backward that a sweep outside calls.
"""
from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, BeyondPart, Cell, NotTraced, XArray, wrap
from ..arrays.xla.shardings import constrained
from ..base.modes import call_with
from ..base.pytree import tree_flatten
from ..core.arithmetic import ON_ARRAYS
from ..core.backward import run_sweep
from ..core.size import Size
from ..core.storage import TensorBase
from ..tensors.tensor import Tensor
from .around import Table, address, check_histories, ends_of, is_open, root_array
from .doubts import Outcomes
from .guards import Guards
from .items import PLAIN
from .running import Dress, Memory, Running, Window
from .session import SLOTS, Session, Source, watch
from .split import Halves, saving


class Program(Running):
    """See the top of this file."""

    def __init__(self, step: Callable[[], Any], leaves: list[Any]) -> None:
        begun = perf_counter()
        self.arguments = [i for i, v in enumerate(leaves) if isinstance(v, TensorBase)]
        whole: set[int] = set()
        while True:
            now = Session(whole)
            try:
                self.traced(now, step, leaves)
                break
            except BeyondPart as error:
                whole |= {k for k, (_, cell) in now.memories.items() if cell is error.cell}
        self.seconds = perf_counter() - begun

    # --------------------------------------------------------------------------------------------------------- tracing

    def traced(self, now: Session, step: Callable[[], Any], leaves: list[Any]) -> None:
        """Trace the step once."""
        self.guards = Guards()

        def body() -> Any:
            for i in self.arguments:
                now.give(leaves[i])
            return self.results(now, self.guards.watching(step), leaves)

        try:
            watch(now.trace, True)
            closed = jax.make_jaxpr(lambda: call_with({"kind": now.trace}, body))()
        finally:
            watch(now.trace, False)
            now.put_back()
        self.guards.finish(now, leaves)
        self.bind(now, leaves)
        self.inputs(now, closed)

    def results(self, now: Session, result: Any, leaves: list[Any]) -> Any:
        """What the program gives: values of memory that was written, and of memory made inside that is needed after."""
        found, self.spec = tree_flatten(result, is_leaf=lambda v: type(v) is Size)  # else it came back as a tuple
        del result
        self.plain = [() if isinstance(v, TensorBase) else (v,) for v in found]
        returned = [v for v in found if isinstance(v, TensorBase)]
        numbers = {id(leaves[i]): n for n, i in enumerate(self.arguments)}
        arrays = [v._array for v in returned]  # as they are seen inside
        inner = [None if v._grad is None else v._grad._array for v in returned]
        # Results that are tensors from outside: which argument, or which tensor; None for new ones.
        self.same = [numbers.get(id(v), v) if id(v) in now.tensors else None for v in returned]
        found_grads = self.differentiate(now, returned)
        check_histories(now)
        own = [v._storage.root is None or v._storage.writer is not None for v in returned]
        leaf = [v._storage.leaf is not None and v._storage.leaf.tensor() is v for v in returned]
        kinds = [(type(v), {k: a for k, a in v.__dict__.items() if type(a) in PLAIN}) for v in returned]
        del found, returned
        grads = now.put_back()
        self.flags = [(numbers.get(id(tensor), tensor), on) for tensor, on in now.flags]
        cells = [cell for _, cell in now.memories.values()]
        bases = [root_array(root) for root, _ in now.memories.values()]
        self.written = [k for k, cell in enumerate(cells) if cell in now.trace.values]
        made: list[Cell] = []

        def window(array: Any) -> Window:
            cell, twin = array.cell, array.twin
            if cell.born is None:
                k = next(k for k, other in enumerate(cells) if other is cell)
                base = bases[k]
            else:
                if cell not in made:
                    made.append(cell)
                k, base = len(cells) + made.index(cell), cell.twin
            offset = address(twin) - address(base) if twin.size else 0
            alike = (twin.shape, twin.dtype, twin.strides) == (base.shape, base.dtype, base.strides)
            return Window(k, twin.shape, twin.dtype, offset, twin.strides, k >= len(cells) and alike and offset == 0)

        self.returned = [window(a)._replace(detached=not mine, leaf=is_leaf)
                         for a, mine, is_leaf in zip(arrays, own, leaf)]
        self.dressed = [(n, Dress(kind, attributes, is_leaf)) for n, ((kind, attributes), same, is_leaf, made_as)
                        in enumerate(zip(kinds, self.same, leaf, self.returned)) if same is None
                        and (kind is not Tensor or attributes or is_leaf and not made_as.whole)]
        for n, _ in self.dressed:
            self.returned[n] = self.returned[n]._replace(leaf=False)
        self.grads = [(numbers.get(id(seen.tensor), seen.tensor), None if g is None else window(g._array))
                      for seen, g in grads]
        self.inner = [(n, window(a)) for n, a in enumerate(inner) if a is not None and self.same[n] is None]
        values = [now.trace.values[cells[k]] for k in self.written]
        owners = [seen.array for seen, _ in grads]
        del arrays, inner, grads
        # Tensors that somebody keeps who is no part of the step, and on which memory they are.
        self.survivors = [(t, window(SLOTS["_array"].__get__(t)).memory - len(cells)) for t in kept_of(now)]
        self.outcomes = None
        if (doubted := now.doubts.cell) is not None:
            doubted.place = now.place or HOST
            self.outcomes = Outcomes(now.doubts)
            made.append(doubted)
        replaced = self.replaced(now, made, len(cells))
        self.outputs = [(replaced.get(k), cell.place, numpy.empty(cell.twin.shape, cell.twin.dtype))
                        for k, cell in enumerate(made)]
        again = [(owner, twin) for owner, _, twin in self.outputs if owner is not None]
        self.owners, self.twins = [owner for owner, _ in again], [twin for _, twin in again]
        self.grads_besides = [(owner, w) for owner, w in self.grads
                              if w is None or replaced.get(w.memory - len(cells)) is not owner]
        self.alone = self.plain == [()] and self.same == [None] and self.spec.type is None \
            and not self.dressed and not self.inner
        return self.spread(cells, values, made, owners) + found_grads

    def replaced(self, now: Session, made: list[Cell], count: int) -> dict[int, Any]:
        """Gradients that a run makes in the place of those before, whose memory it may use; of `count` memories."""
        counted = [w.memory for w in (*self.returned, *(w for _, w in (*self.grads, *self.inner) if w is not None))]
        kept = {k for _, k in self.survivors}
        return {w.memory - count: owner for owner, w in self.grads
                if w is not None and w.whole and counted.count(w.memory) == 1
                and w.memory - count not in kept and made[w.memory - count].place is not HOST
                and not isinstance(owner, int) and id(owner) not in now.grads}

    def spread(self, cells: list[Cell], values: list[Any], made: list[Cell], owners: list[Any]) -> list[Any]:
        """Values of memory that was written, and of memory made inside, as they are to be spread over a mesh.

        What is written stays as it was, a gradient is like its tensor, and NumPy's memory is a copy of all. How other
        results are spread is left to XLA.
        """
        results = [cell.value for cell in made]
        mesh = self.mesh = next((c.place for c in (*cells, *made) if c.place.over_mesh), None)
        self.ends = [cell.place.device for cell in made]
        if mesh is None:
            return values + results
        kept = [cells[k].held.sharding if cells[k].place.over_mesh else mesh.device for k in self.written]
        ends: list[Any] = [mesh.device if cell.place is HOST else None for cell in made]
        for owner, (_, window) in zip(owners, self.grads):
            if window is not None and window.whole and type(owner) is XArray and owner.twin is owner.cell.twin:
                ends[window.memory - len(cells)] = owner.cell.held.sharding
        self.ends = [end or mesh.device for end in ends]
        return [v if s is None else constrained(v, s) for v, s in zip(values + results, kept + ends)]

    def differentiate(self, now: Session, returned: list[Any]) -> list[Any]:
        """Find results that still have a history, and return the adjoints of what it leads to, by those of the results.

        Those are placeholders, which become arguments of a program of its own.
        """
        open_ = {id(r._storage): r for r, same in zip(returned, self.same)
                 if same is None and r._array.cell.born is not None and r._storage.leaf is None and is_open(r)}
        self.open_results = [k for k, r in enumerate(returned) if self.same[k] is None and id(r._storage) in open_]
        shapes = [(r._storage.buffer.shape, r._storage.buffer.dtype) for r in open_.values()]
        with jax.ensure_compile_time_eval():
            self.adjoints = [jnp.zeros(*shape) for shape in shapes]
        found: dict[int, list[Any]] = {}
        ends: dict[int, Any] = {}

        def deposit(end: Any, holder: list[Any], windowed: bool) -> None:
            g = holder.pop()
            if type(end) is not Source:
                if (storage := leaves.get(id(end))) is None:
                    now.check_own(end)
                    return  # a leaf that the step has made, and that nobody can ask
                if windowed:
                    part, g = g, ON_ARRAYS.zeros(end.whole, g)
                    ON_ARRAYS.add_window(g, end.window, part)
                end = sources.setdefault(id(end), Source(storage))
            found.setdefault(id(end), []).append(g)
            ends[id(end)] = end

        leaves = now.leaves()
        sources: dict[int, Source] = {}
        hooked = [s.leaf for s in now.storages.values() if s.leaf is not None and s.leaf.hooks is not None]
        hooks = [leaf.hooks for leaf in hooked]
        seeds = [(r._storage.writer, None, wrap(g, r._array.level)) for r, g in zip(open_.values(), self.adjoints)]
        self.reach = [ends_of(r._storage.writer) for r in open_.values()]
        saved = [saving(r._storage.writer) for r in open_.values()]
        self.frees = [bool(nodes) for nodes in saved]
        self.together = all(not nodes.isdisjoint(saved[0]) for nodes in saved)  # a sweep of one frees what others need
        try:
            for leaf in hooked:  # the sweep outside calls them
                leaf.hooks = None
            if seeds:
                run_sweep(seeds, False, True, deposit, {}, False)
        finally:
            for leaf, kept in zip(hooked, hooks):
                leaf.hooks = kept
        numbers = {id(storage): n for n, storage in now.argument_storages()}
        back = {id(source): key for key, source in sources.items()}
        self.sources = [numbers.get(id(end.storage), end.storage) for end in ends.values()]
        self.reach = [{k for k, key in enumerate(ends) if back.get(key, key) in reached} for reached in self.reach]
        return [end.total(found[key]) for key, end in ends.items()]

    def bind(self, now: Session, leaves: list[Any]) -> None:
        """Note where each memory is found in the runs to come."""
        by_root: dict[int, tuple[int | None, Any]] = {}
        self.both: list[tuple[int, Any]] = []  # arguments that are gradients, too
        places = {id(leaves[i]): n for n, i in enumerate(self.arguments)}
        for n, storage in now.argument_storages():
            by_root.setdefault(id(storage.root or storage), (n, None))
        for owner in now.grads.values():
            grad = now.tensors[id(owner)].grad
            if grad is not None:
                storage = SLOTS["_storage"].__get__(grad)
                if (known := by_root.get(id(storage.root or storage))) is not None and known[0] is not None:
                    self.both.append((known[0], owner))
                by_root.setdefault(id(storage.root or storage), (None, places.get(id(owner), owner)))
        # Arguments whose memory the step also reaches in another way have to have the same memory in each run.
        given = {id(leaves[i]) for i in self.arguments}
        others = now.given & {id(seen.storage.root or seen.storage) for seen in now.tensors.values()
                              if id(seen.tensor) not in given}
        named = {id(item.value) for item in self.guards.items.values()}
        others |= {id(s.root or s) for i, (_, s) in zip(self.arguments, now.argument_storages())
                   if id(leaves[i]) in named}
        self.pinned = [(n, s.root or s, s.start + (leaves[i]._offset or 0))
                       for i, (n, s) in zip(self.arguments, now.argument_storages()) if id(s.root or s) in others]
        # Those whose whole memory is given have to lie where they lay in it, and it has to be as large.
        self.offsets = [(n, leaves[i]._offset, s.buffer.shape)
                        for i, (n, s) in zip(self.arguments, now.argument_storages())
                        if leaves[i]._offset is not None and not now.memories[id(s.root or s)][1].partial]
        counted = {id(t._storage) for site in now.sites if site.course is not None for t in site.course.counts}
        if any(id(root) in counted and cell in now.trace.values for root, cell in now.memories.values()):
            raise NotTraced("compile: an optimizer makes a step in a loop or branch, and another besides",
                            why="one is counted by Python, the other in the program", fix="two optimizers")
        self.memories = []
        for root, cell in now.memories.values():
            argument, owned = (None, None) if id(root) in others else by_root.get(id(root), (None, None))
            kept = root if argument is None and owned is None else None
            part = (cell.twin.shape, cell.twin.dtype) if cell.partial else None
            self.memories.append(Memory(kept, argument, owned, cell.place, part, cell.twin.nbytes))
        self.always = [memory.storage for memory in self.memories]
        self.captured = {storage for storage in self.always if storage is not None}
        self.changing = [k for k, memory in enumerate(self.memories) if memory.storage is None]

    def inputs(self, now: Session, closed: Any) -> None:
        """Find out what the constants of the traced program are: memory, and numbers of each run."""
        numbers = {id(cell): k for k, (_, cell) in enumerate(now.memories.values())}
        by_value: dict[int, Any] = {id(value): ("memory", numbers[id(cell)])
                                    for cell, value in now.trace.read.items() if id(cell) in numbers}
        for i, site in enumerate(now.sites):
            by_value[id(site.value)] = "numbers", i
            by_value |= {id(a): ("array", (i, j)) for j, a in enumerate(site.arrays)}
        by_value |= {id(a): ("adjoint", i) for i, a in enumerate(self.adjoints)}
        found = [by_value.get(id(c)) for c in closed.consts]
        # Beside what is on a device: the count that a run gives back is there, and is to be as it was given.
        place = self.mesh or next((memory.place for memory in self.memories if memory.place is not HOST), None)
        self.tables = [Table(site, None if place is None else place.device) for site in now.sites]
        read = [k for kind, k in filter(None, found) if kind == "memory"]
        written = set() if self.sources else {k for k in self.written if self.memories[k].place is not HOST}
        self.donated, self.kept = [k for k in read if k in written], [k for k in read if k not in written]
        # XLA reads NumPy's memory where it lies, and goes on when a call is over, unless that waits for a result.
        places = [*(self.memories[k].place for k in self.written), *(place for _, place, _ in self.outputs)]
        waits = self.mesh is None and HOST in places
        self.copied = [n for n, k in enumerate(self.kept) if not waits and self.memories[k].place is HOST]
        groups: list[list[Any]] = [
            [("memory", k) for k in self.donated], [("memory", k) for k in self.kept],
            [("numbers", i) for i in range(len(now.sites))],
            [("array", (i, j)) for i, site in enumerate(now.sites) for j in range(len(site.arrays))],
            [("adjoint", i) for i in range(len(self.adjoints))]]
        at = {what: (g, i) for g, group in enumerate(groups) for i, what in enumerate(group)}
        order = [(5, c) if f is None else at[f] for c, f in zip(closed.consts, found)]
        jaxpr = closed.jaxpr  # without its constants: memory of the first run, which is not to live on with the program
        self.equations = len(jaxpr.eqns)

        def constants(*given: Any) -> list[Any]:
            return [i if g == 5 else given[g][i] for g, i in order]

        late = {what[1]: v for what, v in zip(found, jaxpr.constvars) if what and what[0] == "adjoint"}
        halves = self.halves = Halves(jaxpr, late, len(self.sources)) if self.sources else None

        def run(donated: Any, kept: Any, numbers: Any, arrays: Any, spare: Any, indices: Any) -> Any:
            rows = [table[index] for table, index in zip(numbers, indices)]
            consts = constants(donated, kept, rows, arrays, self.adjoints)
            found = jax.core.eval_jaxpr(jaxpr, consts) if halves is None else halves.forward(consts)
            return [*found, *(index + 1 for index in indices)]

        self.jitted = jax.jit(run, donate_argnums=(0, 4, 5), keep_unused=bool(self.owners))


def kept_of(now: Session) -> list[Any]:
    """The tensors that a step has made and that somebody still has."""
    if any(made() is not None for made in now.inside.values()):
        gc.collect()  # or they only refer to each other
    return [tensor for made in now.inside.values() if (tensor := made()) is not None]
