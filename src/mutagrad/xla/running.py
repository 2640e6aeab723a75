"""The runs of a program: what it is given, where its results go, and what it leaves in Python.

This and the guards are all that a call costs besides XLA's work. Between two runs the interpreter has left the
processor's caches, so each line that is not there counts twice.
"""
from __future__ import annotations

from collections import deque
from itertools import chain, repeat
from sys import getrefcount
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax.sharding import SingleDeviceSharding

from ..arrays.xla.memory import HOST, Cell, Place, XArray, writing
from ..arrays.xla.shardings import is_spread, put
from ..base.pytree import tree_unflatten
from ..core.factory import make, view
from ..core.storage import Storage, memory_of, move_aside, new_storage
from ..core.sweep import OUTPUT
from ..core.write import new_node
from ..tensors.tensor import Tensor
from .around import Table, address, gradients_before, on_memory, settle
from .doubts import Outcomes
from .guards import Retrace
from .packing import Holder, Packed, Packing
from .split import RESULT, Halves, compiled_rule

ndarray = numpy.ndarray


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


class Running:
    """What a program is while it runs; `Program` finds all this out by tracing."""

    arguments: list[int]  # which of what the step is called with are tensors
    memories: list[Memory]
    always: list[Any]  # those that are the same in each run; None for others
    changing: list[int]  # which these are
    captured: set[Storage]
    both: list[tuple[int, Any]]
    offsets: list[tuple[int, Any, Any]]
    pinned: list[tuple[int, Storage, int]]
    written: list[int]
    donated: list[int]
    kept: list[int]
    copied: list[int]  # which of these are NumPy's memory, and may change while the program still reads it
    tables: list[Table]
    outputs: list[tuple[Any, Place, Any]]  # that are made: the tensor whose gradient it is and replaces, place, twin
    owners: list[Any]  # those tensors
    twins: list[Any]  # and the twins of their gradients
    ends: list[Any]  # how results are spread
    returned: list[Window]
    grads: list[tuple[Any, Window | None]]
    grads_besides: list[tuple[Any, Window | None]]  # those that use no memory of the ones before
    same: list[Any]
    plain: list[Any]
    spec: Any
    alone: bool  # one new tensor is all that is returned
    survivors: list[tuple[Any, int]]
    sources: list[Any]
    open_results: list[int]
    adjoints: list[Any]
    reach: list[set[int]]
    frees: list[bool]  # whether the history of an open result keeps values
    together: bool
    dressed: list[tuple[int, Dress]]
    inner: list[tuple[int, Window]]  # gradients that results have got inside
    flags: list[tuple[Any, bool]]  # tensors from outside that require gradients now, or no longer
    halves: Halves | None
    jitted: Any  # the function that JAX has compiled
    given: Any
    packing: Packing | None = None  # where it pays
    outcomes: Outcomes | None  # of checks
    runs = 0
    compile_seconds = 0.0

    def __call__(self, leaves: list[Any]) -> Any:
        tensors = [leaves[i] for i in self.arguments]
        roots = self.roots_of(tensors)
        if not self.runs:
            self.compile_ahead(roots, tensors)
        elif self.packing is not None:
            self.packing.compile_ahead()
        with writing:
            return self.run(roots, tensors)

    def roots_of(self, tensors: list[Any]) -> list[Storage]:
        """The memories of this run. Raises where arguments share some that they did not share when it was traced."""
        roots = self.always.copy()
        for k in self.changing:
            roots[k] = self.memories[k].root(tensors)
        given = {roots[k] for k in self.changing}
        if len(given) < len(self.changing) or not self.captured.isdisjoint(given):
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
        return roots

    def compile_ahead(self, roots: list[Storage], tensors: list[Any]) -> None:
        """Have XLA compile it, which takes long, before other threads' programs have to wait for its run."""
        begun = perf_counter()
        for table in self.tables:
            table.next(first=True)
        donated, kept = ([self.memories[k].value(roots[k], tensors) for k in which]
                         for which in (self.donated, self.kept))
        spare = [jax.ShapeDtypeStruct(twin.shape, twin.dtype,
                                      sharding=end if is_spread(end) else SingleDeviceSharding(end))
                 for (owner, _, twin), end in zip(self.outputs, self.ends) if owner is not None]
        given = (donated, kept, *self.numbers(), spare, [table.held for table in self.tables])
        self.given = jax.tree_util.tree_map(_shape, given)
        self.jitted.lower(*given).compile()
        packing = None if self.sources else Packing(self)
        if packing is not None and packing.pays([self.memories[k].place for k in self.donated]):
            self.packing = packing
        for table in self.tables:
            table.rows = []  # the run itself begins anew
        self.compile_seconds = perf_counter() - begun

    def numbers(self) -> tuple[list[Any], list[Any]]:
        return [table.values for table in self.tables], [a for table in self.tables for a in table.arrays]

    def run(self, roots: list[Storage], tensors: list[Any]) -> Any:
        """One run, with what it counts. What can wait until XLA has begun is done after that."""
        commits = [table.next(first=not self.runs) for table in self.tables]
        self.about_to_write(roots)
        grads = gradients_before(self.owners, self.twins)
        packing = self.packing
        arena = None if packing is None else packing.now(grads)
        cells = self.cells(grads)
        residuals = [] if self.halves is None else [Holder() for _ in self.halves.residuals]
        taken: list[Cell] = []
        values: list[Any] = []
        begun = perf_counter() if not self.runs else 0.0
        try:
            if packing is None or arena is None:
                targets, on_host = self.targets(roots, self.written)
                jitted, given = self.jitted, self.given_now(roots, tensors, taken, values, self.donated, grads)
                everywhere = *targets, *cells, *residuals, *self.tables
            else:
                targets, on_host = self.targets(roots, packing.targets)
                jitted = packing.jitted
                given = [v.held for v in arena.arrays], *self.given_now(roots, tensors, taken, values, packing.donated)
                everywhere = *arena.arrays, *targets, *(cells[n] for n in packing.results), *self.tables
            # no interrupt comes between what XLA gives and where it is put, or memory would be lost
            deque(map(setattr, everywhere, repeat("held"), chain.from_iterable(map(jitted, *zip(given)))), 0)
        except BaseException:
            for cell, value in zip(taken, values):
                if cell.held is None:
                    cell.held = value
            for table in self.tables:
                table.rows = []
            raise
        if not self.runs:
            self.compile_seconds += perf_counter() - begun
        self.runs += 1
        for commit in commits:
            commit()
        for k, holder in on_host:
            value = self.memories[k].value(roots[k], tensors)
            value[...] = numpy.asarray(holder.held).reshape(value.shape)
        outcome = None if self.outcomes is None else cells.pop()
        made = self.made(cells, grads)
        if outcome is not None:
            self.outcomes.look(outcome.held, outcome.place is not HOST)  # type: ignore[union-attr]
        return self.give_back(roots, tensors, made, residuals, self.grads if grads is None else self.grads_besides)

    def about_to_write(self, roots: list[Storage]) -> None:
        """Put aside what derivatives still need of the memories that are written."""
        for k in self.written:
            root = roots[k]
            if root.ledger is not None and root.ledger.high >= 0:
                move_aside(root, None)
            root.version += 1

    def targets(self, roots: list[Storage], written: list[int]) -> tuple[list[Any], list[tuple[int, Holder]]]:
        """Where new values of memory go; and which of these are copied to NumPy's."""
        targets: list[Any] = []
        on_host = []
        for k in written:
            buffer: Any = roots[k].buffer
            if type(buffer) is ndarray:
                targets.append(Holder())
                on_host.append((k, targets[-1]))
            else:
                targets.append(cell := buffer.cell)
                cell.short = None
                if type(cell) is Packed:  # of another program, and not read by this one
                    cell.opened()
        return targets, on_host

    def given_now(self, roots: list[Storage], tensors: list[Any], taken: list[Cell], values: list[Any],
                  written: list[int], grads: Any = ()) -> tuple[Any, ...]:
        """What XLA is given. What it changes in place is taken out of its cells: who reads one of these from here on
        waits for the new value, and who has read one before has a value that XLA must not change."""
        kept = [self.memories[k].value(roots[k], tensors) for k in self.kept]
        for n in self.copied:
            kept[n] = kept[n].copy()
        taken += [roots[k].buffer.cell for k in written]  # type: ignore[attr-defined]
        if grads:
            taken += [grad._array.cell for grad in grads]
        values += [cell.held for cell in taken]
        deque(map(setattr, taken, repeat("held"), repeat(None)), 0)
        if values and max(map(getrefcount, values)) > 2:
            values[:] = [jnp.array(v, copy=True) for v in values]
        count = len(written)
        spare = values[count:] if grads is not None else [
            put(numpy.zeros(twin.shape, twin.dtype), end)
            for (owner, _, twin), end in zip(self.outputs, self.ends) if owner is not None]
        return values[:count], kept, *self.numbers(), spare, [table.held for table in self.tables]

    def cells(self, grads: list[Any] | None) -> list[Cell]:
        """The memory of the results. A gradient that replaces one which nobody else has uses that one's."""
        if grads is None:
            return [Cell(None, twin, place) for _, place, twin in self.outputs]
        waiting = iter(grads)
        return [Cell(None, twin, place) if owner is None else next(waiting)._array.cell
                for owner, place, twin in self.outputs]

    def made(self, cells: list[Cell], grads: list[Any] | None) -> list[Any]:
        """Tensors for the results: those before, where it is their memory."""
        waiting = iter(grads or ())
        return [next(waiting) if grads is not None and owner is not None
                else make(numpy.array(cell.held)) if place is HOST  # type: ignore[arg-type]
                else on_memory(new_storage(XArray(cell, twin)))
                for cell, (owner, place, twin) in zip(cells, self.outputs)]

    def give_back(self, roots: list[Storage], tensors: list[Any], made: list[Any], residuals: list[Any],
                  grads: list[tuple[Any, Window | None]]) -> Any:
        """Return what the step returns, and set gradients."""
        if self.survivors:
            for survivor, k in self.survivors:
                settle(survivor, None if k < 0 else made[k])
            self.survivors = []
        for owner, on in self.flags:
            (tensors[owner] if isinstance(owner, int) else owner).requires_grad_(on)
        if self.sources:
            self.link(tensors, made, [holder.held for holder in residuals])
        for owner, window in grads:
            owner = tensors[owner] if type(owner) is int else owner
            owner._grad = None if window is None else self.tensor(window, roots, made)
        if self.alone:
            return self.tensor(self.returned[0], roots, made)
        found = [self.tensor(w, roots, made) if same is None else tensors[same] if isinstance(same, int) else same
                 for w, same in zip(self.returned, self.same)]
        for n, dress in self.dressed:
            found[n] = dress.on(found[n])
        for n, window in self.inner:
            found[n]._grad = self.tensor(window, roots, made)
        results = iter(found)
        return tree_unflatten([v[0] if v else next(results) for v in self.plain], self.spec)

    def tensor(self, window: Window, roots: list[Storage], made: list[Any]) -> Any:
        count = len(roots)
        if window.whole:
            return made[window.memory - count].requires_grad_() if window.leaf else made[window.memory - count]
        if window.memory < count:
            root = roots[window.memory]
            base = on_memory(new_storage(root.buffer, root) if window.detached else root)
        else:
            base = made[window.memory - count]
        return view(base, window.shape, window.strides, window.offset, window.dtype)

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
