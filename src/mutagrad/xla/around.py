"""What stands around the runs of a program: memory and tensors for its results, and the numbers that it is given."""
from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import takewhile
from sys import getrefcount
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy

from ..arrays.kinds import window as window_on
from ..arrays.xla.memory import HOST, Cell, NotTraced, Place, XArray, place_of
from ..arrays.xla.shardings import put
from ..base.modes import mode
from ..core.graph import Freed, Node
from ..core.storage import MadeInside, Storage, TensorBase, new_storage
from ..core.write import FOLLOW
from ..tensors.tensor import Tensor
from .guards import Retrace
from .packing import Packed
from .session import BUFFER, Session, Site, fixed, flat


class Row(NamedTuple):
    """The numbers of a run to come; what they are given by, and what is counted after it."""

    numbers: Any
    before: Any
    after: Any


class Table:
    """Numbers of Python's for some runs ahead, on the device, and which row is next: the program counts it itself.

    Most numbers change in a way that is known before, as those of Adam do. So nothing is sent to the device as long as
    they are what they were expected to be; and nothing is computed, where what they depend on is.
    """

    ROWS = 64

    def __init__(self, site: Site, where: Any) -> None:
        self.site = site
        self.where = where  # the sharding of what all devices of a mesh have; None where there is none
        self.rows: list[Row] = []  # of the runs that are left, the next one last
        self.same = False  # they are the same in all runs
        self.arrays: list[Any] = []
        self.held: Any  # the number of the next row
        self.put(numpy.zeros((1, 0)))

    def put(self, values: Any) -> None:
        both = values, numpy.zeros((), numpy.int32)
        self.values, self.held = [jnp.asarray(v) if self.where is None else put(v, self.where) for v in both]

    def next(self, first: bool) -> Callable[[], None]:
        """Have the numbers of this run ready; return what counts it."""
        site, rows, course = self.site, self.rows, self.site.course
        if rows and course is not None and rows[-1].before is not None and rows[-1].before == course.state():
            row = rows[-1] if self.same else rows.pop()
            return partial(course.count, row.after)
        found, commit = site.first if first else site.function()
        if site.arrays:
            self.arrays = [v for v in flat(found) if isinstance(v, numpy.ndarray)]
        elif not self.goes_on(found):
            self.begin(found)
        return commit

    def goes_on(self, found: Any) -> bool:
        """Whether the numbers of a run are those that were expected."""
        if not self.rows or self.rows[-1].numbers != found:
            return False
        if not self.same:
            self.rows.pop()
        return True

    def begin(self, found: Any) -> None:
        """The numbers of this run are others: have these, and those that will follow."""
        fixed_before, course = self.site.fixed, self.site.course
        if (now := fixed(flat(found))) != fixed_before:
            raise Retrace("what decides what an optimizer computes has changed: "
                          f"{[v for v in fixed_before if v != ()]} to {[v for v in now if v != ()]}")
        rows = [Row(found, None, None)]
        if course is not None:
            rows += [Row(*row) for row in course.ahead(self.ROWS)[1:]]
        rows = list(takewhile(lambda row: fixed(flat(row.numbers)) == fixed_before, rows))  # then another program
        self.same = len(rows) > 1 and all(row == rows[1] and row.numbers == found for row in rows[1:])
        self.rows = rows[1:2] if self.same else rows[:0:-1]
        table = [[v for v in flat(row.numbers) if type(v) is float] for row in rows]
        self.put(numpy.array(table + table[-1:] * (self.ROWS - len(table))))


def gradients_before(owners: list[Any], twins: list[Any]) -> list[Any] | None:
    """The gradients of these tensors, if the runs of a program have made them and nobody else has any; else None."""
    found, nobody_else = [], sole()
    for owner, twin in zip(owners, twins):
        grad = owner._grad
        if grad is None or type(grad._array) is not XArray or grad._array.twin is not twin \
                or references(owner) != nobody_else:
            return None
        found.append(grad)
    for grad in found:
        grad._storage.version += 1
    return found


def references(owner: Any) -> tuple[int, ...]:
    """How many refer to the gradient of a tensor, to its storage, array and cell, and to what that holds."""
    grad = owner._grad
    storage, array = grad._storage, grad._array
    cell = array.cell
    return (getrefcount(grad), getrefcount(storage), getrefcount(array), getrefcount(cell),
            2 if type(cell) is Packed else getrefcount(cell.held))


@cache
def sole() -> tuple[int, ...]:
    """How many that is where nobody else has it."""
    place, twin = place_of(jax.devices()[0], ("xla", 0)), numpy.empty(1)
    owner = fresh(place, twin)
    owner._grad = fresh(place, twin, put(twin, None))
    grad = owner._grad  # as who asks has it
    assert grad is not None
    return references(owner)


def ends_of(writer: Any) -> set[int]:
    """The leaves and sources that a history comes from, by identity."""
    found, seen, waiting = set(), set(), [writer]
    while waiting:
        node = waiting.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            if node.op is None:
                found.add(id(node))
            waiting += node.inputs
    return found


def check_histories(now: Session) -> None:
    """Raise where a step leaves a history on memory from outside: there is nobody who could sweep it."""
    for storage, writer, *_ in now.storages.values():
        now_by = storage.writer
        if isinstance(now_by, Node) and now_by is not writer and now_by.op is not FOLLOW and is_open_history(now_by):
            raise NotTraced("compile: the step writes to a tensor from outside what has a history",
                            why="the history of what a step writes ends with the step",
                            fix="with mutagrad.no_grad(): x.copy_(new), or x.copy_(new.detach())")


def is_open(tensor: TensorBase) -> bool:
    """Whether a tensor has a history, of which no part has been swept and freed."""
    return tensor._storage.writer is not None and mode.grad and is_open_history(tensor._storage.writer)


def is_open_history(writer: Any) -> bool:
    waiting, seen = [writer], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            if type(node.saved) is Freed:
                return False
            waiting += node
    return True


def address(array: Any) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


def root_array(root: Storage) -> Any:
    """The array of NumPy's that has the geometry of a memory."""
    buffer = BUFFER.__get__(root)
    return buffer.twin if type(buffer) is XArray else buffer


def fresh(place: Place, twin: Any, value: Any = None) -> Any:
    """A tensor over memory of its own, with a value that nobody else has; or that it gets by a run."""
    return on_memory(new_storage(XArray(Cell(value, twin, place), twin)))


def on_memory(storage: Storage) -> Any:
    """A tensor that is all of a memory."""
    tensor = object.__new__(Tensor)
    tensor._array, tensor._storage, tensor._offset, tensor._grad = storage.buffer, storage, None, None
    return tensor


def settle(tensor: Any, memory: Any) -> None:
    """Give a tensor that was made while the step was traced, and that somebody keeps, its memory."""
    array, storage = tensor._array, tensor._storage
    if array.cell.born is None:  # a view of memory that was there
        tensor._array = array.twin if array.cell.place is HOST else array
        return
    whole = memory._array.reshape(array.cell.twin.shape)
    offset = address(array.twin) - address(array.cell.twin) if array.twin.size else 0
    for one in {id(s): s for s in (storage, storage.root) if s is not None}.values():
        one.buffer, one.writer = whole, one.leaf
        if type(one) is MadeInside:
            one.level = None
    tensor._array = window_on(whole, array.shape, array.dtype, offset, array.strides)
