"""What stands around the runs of a program: memory and tensors for its results, and the numbers that it is given."""
from __future__ import annotations

from functools import cache
from sys import getrefcount
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from ..arrays.kinds import window as window_on
from ..arrays.xla.memory import HOST, Cell, NotTraced, Place, XArray, place_of
from ..arrays.xla.shardings import put
from ..base.modes import mode
from ..core.factory import make
from ..core.graph import Freed, Node
from ..core.storage import MadeInside, Storage, TensorBase, new_storage
from ..core.write import FOLLOW
from ..tensors.tensor import Tensor
from .guards import Retrace
from .session import BUFFER, Session, fixed, flat


class Table:
    """Numbers of Python's for some runs ahead, on the device, and which row is next: the program counts it itself.

    Most numbers change in a way that is known before, as those of Adam do. So nothing is sent to the device as long as
    they are what they were expected to be.
    """

    ROWS = 64

    def __init__(self, where: Any) -> None:
        self.where = where  # the sharding of what all devices of a mesh have; None where there is none
        self.rows: list[Any] = []  # of the runs that are left, the next one last
        self.same = False  # they are the same in all runs
        self.put(numpy.zeros((1, 0)))

    def put(self, values: Any) -> None:
        both = values, numpy.zeros((), numpy.int32)
        self.values, self.held = [jnp.asarray(v) if self.where is None else put(v, self.where) for v in both]

    @property
    def index(self) -> Any:
        return self.held

    def goes_on(self, found: Any) -> bool:
        """Whether the numbers of a run are those that were expected."""
        if not self.rows or self.rows[-1] != found:
            return False
        if not self.same:
            self.rows.pop()
        return True

    def begin(self, site: Any, found: Any) -> None:
        first = flat(found)
        if (now := fixed(first)) != site.fixed:
            raise Retrace("what decides what an optimizer computes has changed: "
                          f"{[v for v in site.fixed if v != ()]} to {[v for v in now if v != ()]}")
        ahead = [] if site.ahead is None else site.ahead(self.ROWS)[1:]
        self.same = all(row == found for row in ahead)
        table, rows = [first], [found]
        for row in () if self.same else ahead:
            leaves = flat(row)
            if fixed(leaves) != site.fixed:
                break  # it will be another program then
            table.append(leaves)
            rows.append(row)
        table += table[-1:] * (self.ROWS - len(table))
        self.rows = rows if self.same else rows[:0:-1]
        self.put(numpy.array([[v for v in leaves if type(v) is float] for leaves in table]))


class Holder:
    """Holds one value."""

    __slots__ = ("held",)


def references(holder: list[Any]) -> tuple[Any, tuple[int, ...]]:
    """Return the one tensor in `holder`, and how many refer to it and to each part of its memory."""
    tensor = holder.pop()
    array, storage = tensor._array, tensor._storage
    cell = array.cell
    held = cell.held
    return tensor, tuple(map(getrefcount, (tensor, storage, array, cell, held)))


@cache
def sole() -> tuple[int, ...]:
    """How many that is where nobody else has it."""
    twin = numpy.empty(1)
    return references([fresh(jnp.zeros(1), place_of(jax.devices()[0], ("xla", 0)), twin)])[1]


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


def fresh(value: Any, place: Place, twin: Any) -> Any:
    """A tensor over memory of its own, with a value that nobody else has."""
    if place is HOST:
        return make(numpy.array(value))  # type: ignore[arg-type]
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
