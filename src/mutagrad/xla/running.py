"""The runs of a program: what it is given, where its results go, and what it leaves in Python.

This is all that a call costs besides XLA's work, so what is done for each memory, result or gradient is done by
functions that are written in C, as far as there are any.
"""
from __future__ import annotations

from collections import deque
from itertools import chain, repeat
from operator import attrgetter
from sys import getrefcount
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from ..arrays.xla.memory import HOST, Place
from ..base.locks import new_lock
from ..base.pytree import tree_unflatten
from ..core.factory import make, view
from ..core.storage import Storage, memory_of, move_aside, new_storage
from ..core.sweep import OUTPUT
from ..core.write import new_node
from ..tensors.tensor import Tensor
from .around import Holder, Table, address, fresh, gradients_before, on_memory, settle
from .guards import Retrace
from .split import RESULT, Halves, compiled_rule

ndarray = numpy.ndarray
_running = new_lock()  # what two threads give to XLA to be changed in place must not be the same
_cell, _held, _own_cell = attrgetter("buffer.cell"), attrgetter("held"), attrgetter("_array.cell")


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
    changing: list[int]  # those that are not the same in each run
    captured: set[int]  # those that are
    both: list[tuple[int, Any]]
    offsets: list[tuple[int, Any, Any]]
    pinned: list[tuple[int, Storage, int]]
    written: list[int]
    donated: list[int]
    kept: list[int]
    tables: list[Table]
    outputs: list[tuple[Any, Place, Any]]  # that are made: the tensor whose gradient it is and replaces, place, twin
    owners: list[Any]  # those tensors
    twins: list[Any]  # and the twins of their gradients
    ends: list[Any]  # how results are spread
    returned: list[Window]
    grads: list[tuple[Any, Window | None]]
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
    flags: list[tuple[Any, bool]]  # tensors from outside that require gradients now, or no longer
    halves: Halves | None
    jitted: Any  # the function that JAX has compiled
    given: Any
    runs = 0
    compile_seconds = 0.0

    def __call__(self, leaves: list[Any]) -> Any:
        tensors = [leaves[i] for i in self.arguments]
        roots = [memory.storage or memory.root(tensors) for memory in self.memories]
        self.check_apart(tensors, roots)
        if not self.runs:
            self.compile_ahead(roots, tensors)
        with _running:
            return self.give_back(roots, tensors, *self.step(roots, tensors))

    def compile_ahead(self, roots: list[Storage], tensors: list[Any]) -> None:
        """Have XLA compile it, which takes long, before other threads' programs have to wait for its run."""
        begun = perf_counter()
        for table in self.tables:
            table.next(first=True)
        donated, kept = ([self.memories[k].value(roots[k], tensors) for k in which]
                         for which in (self.donated, self.kept))
        spare = [jnp.zeros(twin.shape, twin.dtype, device=end)
                 for (owner, _, twin), end in zip(self.outputs, self.ends) if owner is not None]
        given = (donated, kept, *self.numbers(), spare, [table.held for table in self.tables])
        self.given = jax.tree_util.tree_map(_shape, given)
        self.jitted.lower(*given).compile()
        for table in self.tables:
            table.rows = []  # the run itself begins anew
        self.compile_seconds = perf_counter() - begun

    def numbers(self) -> tuple[list[Any], list[Any]]:
        return [table.values for table in self.tables], [a for table in self.tables for a in table.arrays]

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

    def step(self, roots: list[Storage], tensors: list[Any]) -> tuple[list[Any], list[Any]]:
        """One run, with what it counts: the tensors that it makes, and what a backward will need."""
        commits = [table.next(first=not self.runs) for table in self.tables]
        for k in self.written:
            root = roots[k]
            if root.ledger is not None and root.ledger.records:
                move_aside(root, None)
            root.version += 1
        begun = perf_counter() if not self.runs else 0.0
        try:
            found = self.run(roots, tensors)
        except BaseException:
            for table in self.tables:
                table.rows = []
            raise
        if not self.runs:
            self.compile_seconds += perf_counter() - begun
        self.runs += 1
        for commit in commits:
            commit()
        return found

    def run(self, roots: list[Storage], tensors: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run it, and put new values where old ones were. No interrupt comes between, or memory would be lost."""
        memories, tables = self.memories, self.tables
        targets: list[Any] = [Holder() if type(roots[k].buffer) is ndarray else _cell(roots[k]) for k in self.written]
        donated = list(map(_held, map(_cell, [roots[k] for k in self.donated])))
        if donated and max(map(getrefcount, donated)) > 3:  # somebody else has one of them as well
            donated = [jnp.array(v, copy=True) for v in donated]
        kept = [memories[k].value(roots[k], tensors) for k in self.kept]
        made = self.made()
        spare = [t._array.cell.held for t, (owner, _, _) in zip(made, self.outputs) if owner is not None]
        residuals = [] if self.halves is None else [Holder() for _ in self.halves.residuals]
        given = (donated, kept, *self.numbers(), spare, [table.held for table in tables])
        everywhere = (*targets, *map(_own_cell, made), *residuals, *tables)
        deque(map(setattr, everywhere, repeat("held"), chain.from_iterable(map(self.jitted, *zip(given)))), 0)
        for k, target in zip(self.written, targets):
            if type(target) is Holder:
                value = memories[k].value(roots[k], tensors)
                value[...] = numpy.asarray(target.held).reshape(value.shape)
            else:
                target.short = None
        return made, residuals

    def made(self) -> list[Any]:
        """Tensors for the results. A gradient that replaces one which nobody else has uses its memory."""
        again = gradients_before(self.owners, self.twins)
        if again is None:
            return [fresh(place, twin, None if owner is None else jnp.zeros(twin.shape, twin.dtype, device=end))
                    for (owner, place, twin), end in zip(self.outputs, self.ends)]
        for grad in again:
            grad._storage.version += 1
        waiting = iter(again)
        return [fresh(place, twin) if owner is None else next(waiting) for owner, place, twin in self.outputs]

    def give_back(self, roots: list[Storage], tensors: list[Any], made: list[Any], residuals: list[Any]) -> Any:
        """Return what the step returns, and set gradients."""
        for k, (_, place, _) in enumerate(self.outputs):
            if place is HOST:
                made[k] = make(numpy.array(made[k]._array.cell.held))  # type: ignore[arg-type]
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
            self.link(tensors, made, [holder.held for holder in residuals])
        for owner, window in self.grads:
            owner = tensors[owner] if type(owner) is int else owner
            owner._grad = None if window is None else made[window.memory - count] if window.whole else tensor(window)
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
