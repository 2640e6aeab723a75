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
from collections import deque
from collections.abc import Callable
from itertools import chain, repeat
from operator import le
from sys import getrefcount
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, BeyondPart, Cell, Place, XArray, wrap
from ..arrays.xla.shardings import constrained
from ..base.locks import new_lock
from ..base.modes import call_with
from ..base.pytree import tree_flatten, tree_unflatten
from ..core.arithmetic import ON_ARRAYS
from ..core.backward import run_sweep
from ..core.factory import view
from ..core.storage import Storage, TensorBase, memory_of, move_aside, new_storage
from ..core.sweep import OUTPUT
from ..core.write import new_node
from ..tensors.tensor import Tensor
from .around import (
    Holder,
    Table,
    address,
    check_histories,
    ends_of,
    fresh,
    is_open,
    on_memory,
    references,
    root_array,
    settle,
    sole,
)
from .guards import Guards, Retrace
from .items import PLAIN
from .session import SLOTS, Session, Source, flat, watch
from .split import RESULT, Halves, compiled_rule, saving

ndarray = numpy.ndarray


_running = new_lock()  # what two threads give to XLA to be changed in place must not be the same


class Window(NamedTuple):
    """A tensor that is given back: on which memory, of which shape and type, and where; `whole`: all that was made."""

    memory: int
    shape: tuple[int, ...]
    dtype: Any
    offset: int
    strides: tuple[int, ...]
    whole: bool
    detached: bool = False  # of memory from outside, without its history
    leaf: bool = False  # one that the step has made


class Dress(NamedTuple):
    """What a result is besides its values: its class, its attributes if they are plain, and whether it is a leaf."""

    kind: type
    attributes: dict[str, Any]
    leaf: bool

    def on(self, tensor: Any) -> Any:
        found = tensor if self.kind is Tensor else tensor.as_subclass(self.kind)
        found.__dict__.update(self.attributes)
        return found.requires_grad_() if self.leaf else found


class Memory(NamedTuple):
    """Where a memory is found in each run: always the same one, or with an argument, or as a gradient.

    `part` is the shape and type of that part of NumPy's memory that an argument is.
    """

    storage: Storage | None
    argument: int | None
    grad_of: Any
    place: Place
    part: tuple[Any, Any] | None
    nbytes: int

    def root(self, tensors: list[Any]) -> Storage:
        if self.storage is not None:
            return self.storage
        owner = tensors[self.grad_of] if type(self.grad_of) is int else self.grad_of
        storage: Storage = (tensors[self.argument] if self.argument is not None else owner._grad)._storage
        return storage.root or storage

    def value(self, root: Storage, tensors: list[Any]) -> Any:
        buffer = root.buffer
        if type(buffer) is not ndarray:
            return buffer.cell.held  # type: ignore[attr-defined]
        if self.part is None:
            return buffer
        low = numpy.lib.array_utils.byte_bounds(tensors[self.argument]._array)[0]  # type: ignore[index]
        return ndarray(*self.part, buffer, low - address(buffer))


class Program:
    """See the top of this file."""

    def __init__(self, step: Callable[[], Any], leaves: list[Any]) -> None:
        begun = perf_counter()
        self.arguments = [i for i, v in enumerate(leaves) if isinstance(v, TensorBase)]
        self.runs, self.compile_seconds = 0, 0.0
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
        found, self.spec = tree_flatten(result)
        del result
        self.plain = [() if isinstance(v, TensorBase) else (v,) for v in found]
        returned = [v for v in found if isinstance(v, TensorBase)]
        numbers = {id(leaves[i]): n for n, i in enumerate(self.arguments)}
        arrays = [v._array for v in returned]  # as they are seen inside
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
        values = [now.trace.values[cells[k]] for k in self.written]
        owners = [seen.array for seen, _ in grads]
        del arrays, grads
        gc.collect()
        # Tensors that somebody keeps who is no part of the step, and on which memory they are.
        alive = [(t, SLOTS["_array"].__get__(t)) for r in now.inside.values() if (t := r()) is not None]
        self.survivors = [(t, window(a).memory - len(cells)) for t, a in alive]
        self.places = [cell.place for cell in made]
        self.twins = [numpy.empty(cell.twin.shape, cell.twin.dtype) for cell in made]
        self.spare = self.replaced(now, len(cells))
        self.alone = self.plain == [()] and self.same == [None] and self.spec.type is None and not self.dressed
        return self.spread(cells, values, made, owners) + found_grads

    def replaced(self, now: Session, count: int) -> list[tuple[Any, int]]:
        """Gradients that a run makes in the place of those before, whose memory it may use; of `count` memories."""
        counted = [w.memory for w in (*self.returned, *(w for _, w in self.grads if w is not None))]
        kept = {k for _, k in self.survivors}
        return [(owner, w.memory - count) for owner, w in self.grads
                if w is not None and w.whole and counted.count(w.memory) == 1
                and w.memory - count not in kept and self.places[w.memory - count] is not HOST
                and not isinstance(owner, int) and id(owner) not in now.grads]

    def spread(self, cells: list[Cell], values: list[Any], made: list[Cell], owners: list[Any]) -> list[Any]:
        """Values of memory that was written, and of memory made inside, as they are to be spread over a mesh.

        What is written stays as it was, a gradient is like its tensor, and NumPy's memory is a copy of all. How other
        results are spread is left to XLA.
        """
        results = [cell.value for cell in made]
        mesh = self.mesh = next((c.place for c in (*cells, *made) if c.place.over_mesh), None)
        self.ends: list[Any] = [place.device for place in self.places]
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
        self.memories = []
        for root, cell in now.memories.values():
            argument, owned = (None, None) if id(root) in others else by_root.get(id(root), (None, None))
            kept = root if argument is None and owned is None else None
            part = (cell.twin.shape, cell.twin.dtype) if cell.partial else None
            self.memories.append(Memory(kept, argument, owned, cell.place, part, cell.twin.nbytes))
        self.captured = {id(memory.storage) for memory in self.memories if memory.storage is not None}
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
        self.sites = now.sites
        # Beside what is on a device: the count that a run gives back is there, and is to be as it was given.
        place = self.mesh or next((memory.place for memory in self.memories if memory.place is not HOST), None)
        self.tables = [Table(None if place is None else place.device) for _ in now.sites]
        self.reused: dict[int, Any] = {}  # by number of the result: gradients of the run before
        read = [k for kind, k in filter(None, found) if kind == "memory"]
        written = set() if self.sources else {k for k in self.written if self.memories[k].place is not HOST}
        self.donated, self.kept = [k for k in read if k in written], [k for k in read if k not in written]
        groups = ([("memory", k) for k in self.donated], [("memory", k) for k in self.kept],
                  [("numbers", i) for i in range(len(now.sites))],
                  [("array", (i, j)) for i, site in enumerate(now.sites) for j in range(len(site.arrays))],
                  [("adjoint", i) for i in range(len(self.adjoints))])
        at = {what: (g, i) for g, group in enumerate(groups) for i, what in enumerate(group)}
        order = [(5, c) if f is None else at[f] for c, f in zip(closed.consts, found)]
        self.equations = len(closed.jaxpr.eqns)

        def constants(*given: Any) -> list[Any]:
            return [i if g == 5 else given[g][i] for g, i in order]

        late = {what[1]: v for what, v in zip(found, closed.jaxpr.constvars) if what and what[0] == "adjoint"}
        halves = self.halves = Halves(closed.jaxpr, late, len(self.sources)) if self.sources else None

        def run(donated: Any, kept: Any, numbers: Any, arrays: Any, spare: Any, indices: Any) -> Any:
            rows = [table[index] for table, index in zip(numbers, indices)]
            consts = constants(donated, kept, rows, arrays, self.adjoints)
            found = jax.core.eval_jaxpr(closed.jaxpr, consts) if halves is None else halves.forward(consts)
            return [*found, *(index + 1 for index in indices)]

        self.jitted = jax.jit(run, donate_argnums=(0, 4, 5), keep_unused=bool(self.spare))

    # --------------------------------------------------------------------------------------------------------- running

    def __call__(self, leaves: list[Any]) -> Any:
        tensors = [leaves[i] for i in self.arguments]
        roots = [memory.storage or memory.root(tensors) for memory in self.memories]
        self.check_apart(tensors, roots)
        if not self.runs:
            self.compile_ahead(roots, tensors)
        with _running:
            return self.give_back(roots, tensors, self.step(roots, tensors))

    def compile_ahead(self, roots: list[Storage], tensors: list[Any]) -> None:
        """Have XLA compile it, which takes long, before other threads' programs have to wait for its run."""
        begun = perf_counter()
        numbers, arrays, _ = self.numbers()
        donated, kept = ([self.memories[k].value(roots[k], tensors) for k in which]
                         for which in (self.donated, self.kept))
        spare = [jnp.zeros(self.twins[k].shape, self.twins[k].dtype, device=self.ends[k]) for _, k in self.spare]
        self.jitted.lower(donated, kept, [v for v, _ in numbers], arrays, spare, [i for _, i in numbers]).compile()
        self.compile_seconds = perf_counter() - begun

    def step(self, roots: list[Storage], tensors: list[Any]) -> list[Any]:
        """One run, with what it counts."""
        numbers, arrays, commits = self.numbers()
        for k in self.written:
            root = roots[k]
            if root.ledger is not None and root.ledger.records:
                move_aside(root, None)
            root.version += 1
        begun = perf_counter() if not self.runs else 0.0
        try:
            out = self.run(roots, tensors, numbers, arrays)
        except BaseException:
            self.reused = {}
            for table in self.tables:
                table.rows = []
            raise
        if not self.runs:
            self.compile_seconds += perf_counter() - begun
        self.runs += 1
        for commit in commits:
            commit()
        return out

    def check_apart(self, tensors: list[Any], roots: list[Storage]) -> None:
        """Raise where arguments share memory with what the step has captured, and did not when it was traced."""
        given = [id(roots[k]) for k in self.changing]
        if not self.captured.isdisjoint(given) or len(set(given)) < len(given):
            raise Retrace("an argument shares memory with a tensor that the step uses besides")
        for n, owner in self.both:
            if owner._grad is None or memory_of(owner._grad) is not memory_of(tensors[n]):
                raise Retrace("an argument is no longer a gradient that the step uses besides")
        for n, offset, shape in self.offsets:
            if tensors[n]._offset != offset or tensors[n]._storage.buffer.shape != shape:
                raise Retrace("an argument is another part of its memory")
        for n, root, offset in self.pinned:
            storage = tensors[n]._storage
            if (storage.root or storage) is not root or storage.start + (tensors[n]._offset or 0) != offset:
                raise Retrace("an argument no longer shares memory with a tensor that the step uses besides")

    def run(self, roots: list[Storage], tensors: list[Any], numbers: Any, arrays: Any) -> list[Any]:
        """Run it, and put new values where old ones were. No interrupt comes between, or memory would be lost."""
        cells = [None if type(buffer := roots[k].buffer) is ndarray else buffer.cell for k in self.written]
        count = len(self.places) + (0 if self.halves is None else len(self.halves.residuals))
        holders: list[Any] = [cell or Holder() for cell in cells]
        holders += [Holder() for _ in range(count)]
        values, indices = [table for table, _ in numbers], [index for _, index in numbers]
        memories = self.memories
        donated = [memories[k].value(roots[k], tensors) for k in self.donated]
        if donated and max(map(getrefcount, donated)) > 3:  # somebody else has one of them as well
            donated = [jnp.array(v, copy=True) for v in donated]
        kept = [memories[k].value(roots[k], tensors) for k in self.kept]
        spare = []
        for owner, k in self.spare:
            grad, value = self.again(owner, k)
            spare.append(value)
            if grad is not None:
                holders[len(cells) + k] = grad._array.cell
                self.reused[k] = grad
        if not self.runs:
            self.given = jax.tree_util.tree_map(_shape, (donated, kept, values, arrays, spare, indices))
        deque(map(setattr, (*holders, *self.tables), repeat("held"), chain.from_iterable(
            map(self.jitted, (donated,), (kept,), (values,), (arrays,), (spare,), (indices,)))), 0)
        if None in cells:
            for k, holder, cell in zip(self.written, holders, cells):
                if cell is None:
                    value = memories[k].value(roots[k], tensors)
                    value[...] = numpy.asarray(holder.held).reshape(value.shape)
        return [holder.held for holder in holders[len(cells):]]

    def again(self, owner: Any, k: int) -> tuple[Any, Any]:
        """The gradient of the run before, if nobody else has it: this one replaces it, and may use its memory.

        Else None; and a value for its memory.
        """
        holder, twin = [owner._grad], self.twins[k]
        if holder[0] is not None and getattr(holder[0]._array, "twin", None) is twin:
            owner._grad = None
            grad, counts = references(holder)
            if all(map(le, counts, sole())):
                grad._storage.version += 1
                return grad, grad._array.cell.held
            owner._grad = grad
        return None, jnp.zeros(twin.shape, twin.dtype, device=self.ends[k])

    def numbers(self) -> tuple[list[Any], list[Any], list[Callable[[], None]]]:
        """The numbers of this run, as rows of tables that are on the device already; and what counts it."""
        arrays: list[Any] = []
        commits = []
        for site, table in zip(self.sites, self.tables):
            found, commit = site.function() if self.runs else site.first
            commits.append(commit)
            if site.arrays:
                arrays += [v for v in flat(found) if isinstance(v, ndarray)]
            elif not table.goes_on(found):
                table.begin(site, found)
        return [(table.values, table.index) for table in self.tables], arrays, commits

    def give_back(self, roots: list[Storage], tensors: list[Any], out: list[Any]) -> Any:
        """Return what the step returns, and set gradients."""
        reused, self.reused = self.reused, {}
        made = [reused[k] if k in reused else fresh(value, place, twin)
                for k, (value, place, twin) in enumerate(zip(out, self.places, self.twins))]
        if self.survivors:
            for survivor, k in self.survivors:
                settle(survivor, None if k < 0 else made[k])
            self.survivors = []
        count = len(roots)

        def tensor(window: Window) -> Any:
            if window.whole:
                return made[window.memory - count].requires_grad_() if window.leaf else made[window.memory - count]
            if window.memory < count:
                root = roots[window.memory]
                base = on_memory(new_storage(root.buffer, root) if window.detached else root)
            else:
                base = made[window.memory - count]
            return view(base, window.shape, window.strides, window.offset, window.dtype)

        for owner, on in self.flags:
            (tensors[owner] if isinstance(owner, int) else owner).requires_grad_(on)
        if self.sources:
            self.link(tensors, made, out[len(self.places):])
        for owner, window in self.grads:
            owner = tensors[owner] if isinstance(owner, int) else owner
            owner._grad = None if window is None else tensor(window)
        if self.alone:
            return tensor(self.returned[0])
        found = [tensor(w) if same is None else tensors[same] if isinstance(same, int) else same
                 for w, same in zip(self.returned, self.same)]
        for n, dress in self.dressed:
            found[n] = dress.on(found[n])
        results = iter(found)
        return tree_unflatten([v[0] if v else next(results) for v in self.plain], self.spec)

    def link(self, tensors: list[Any], made: list[Any], residuals: list[Any]) -> None:
        """Make the call one node of the history around it."""
        storages = [tensors[s]._storage if isinstance(s, int) else s for s in self.sources]
        windows = [self.returned[k] for k in self.open_results]
        memories = list(dict.fromkeys(w.memory for w in windows))
        rule = compiled_rule(self.halves, residuals, memories, self.adjoints, self.reach, storages, self.together)
        node = new_node(rule, [s.writer for s in storages])
        by_memory: dict[int, Any] = {}
        for window in windows:
            result = made[window.memory - len(self.memories)]
            if window.memory not in by_memory:
                out = by_memory[window.memory] = new_node(OUTPUT, (node,))
                out.saved, out.whole = window.memory, (result._array.shape, result._array.dtype)
                if self.frees[len(by_memory) - 1] and not self.together:
                    out = new_node(RESULT, (out,))
                    out.whole = result._array.shape, result._array.dtype
                result._storage.writer = out


def _shape(value: Any) -> Any:
    return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=getattr(value, "sharding", None))
