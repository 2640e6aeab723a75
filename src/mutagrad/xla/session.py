"""What a step that is being traced sees of the tensors around it.

Nothing is declared: a tensor from outside is noticed when the step first looks at its memory. While a step is traced,
the slots of tensors and storages in which arrays and gradients stand are watched: memory of NumPy's is seen as an array
of XLA's, and what tensors and storages were before is noted, so that it can be put back when the trace is over.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from weakref import ref

import jax
import jax.numpy as jnp
import numpy

from ..arrays.kinds import any_open, use
from ..arrays.xla.memory import HOST, Cell, NotTraced, Place, Trace, XArray, from_outside, new, tracing, wrap
from ..arrays.xla.shardings import put
from ..base.errors import GradientError
from ..base.locks import new_lock
from ..base.modes import call_with
from ..core.factory import stamp_storages
from ..core.graph import next_order
from ..core.storage import MadeInside, Storage, TensorBase, is_foreign
from .devices import two_devices
from .doubts import Doubts
from .random import Draws

ndarray = numpy.ndarray
SLOTS: dict[str, Any] = {name: TensorBase.__dict__[name] for name in ("_array", "_storage", "_offset", "_grad")}
BUFFER: Any = Storage.__dict__["buffer"]


class Seen(NamedTuple):
    """A tensor from outside as it was before."""

    tensor: TensorBase
    array: Any
    storage: Storage
    offset: int | None
    grad: TensorBase | None


class SeenStorage(NamedTuple):
    """A storage from outside as it was before."""

    storage: Storage
    writer: Any
    leaf: Any
    version: int
    ledger: Any


class Site(NamedTuple):
    """Numbers that Python computes in each run: by which function, what does not change, and where in the trace."""

    function: Callable[[], tuple[Any, Callable[[], None]]]
    fixed: list[Any]  # with an empty tuple for what changes
    value: Any  # the array of JAX's that stands for all floats
    arrays: list[Any]  # those that stand for arrays
    first: tuple[Any, Callable[[], None]]  # what the function gave while the step was traced
    course: Any  # of numbers that are known before: see Course in optim/replayed.py; None for others


class Source:
    """Stands in a trace for what wrote a memory from outside, unless that is a leaf: the end of a sweep inside."""

    op = hooks = window = after = None
    inputs: tuple[Any, ...] = ()

    def __init__(self, storage: Storage) -> None:
        self.order = next_order()
        buffer = BUFFER.__get__(storage)
        self.whole = buffer.shape, buffer.dtype
        self.kept = None, -1, None
        self.storage = storage

    def tensor(self) -> None:
        """Asked by what brings gradients to leaves."""
        raise GradientError("compile: a backward() inside the step goes on outside of it",
                            why=f"a tensor of shape {self.whole[0]} that the step uses was computed before",
                            fix="compute it inside the step, or pass x.detach()")

    def total(self, found: list[Any]) -> Any:
        """The sum of the adjoints that have arrived, as JAX's array."""
        if not found:
            return jnp.zeros(*self.whole)
        total = found[0]
        for g in found[1:]:
            total = total + g
        values = total.values() if type(total) is XArray else jnp.asarray(total)
        return values.reshape(self.whole[0]).astype(self.whole[1])


class Session:
    """One tracing of a step. `memories` are those from outside that it has touched, by their storages."""

    def __init__(self, whole: set[int]) -> None:
        self.trace = Trace(None, self)
        self.tensors: dict[int, Seen] = {}
        self.storages: dict[int, SeenStorage] = {}
        self.memories: dict[int, tuple[Storage, Cell]] = {}
        self.arrays: dict[int, tuple[Any, Any, XArray]] = {}
        self.grads: dict[int, TensorBase] = {}  # tensors whose gradient was looked at before it was set
        self.graded: set[int] = set()  # tensors whose gradient was set
        self.given: set[int] = set()  # memory that arguments are part of
        self.whole = whole  # memory of which all is needed
        self.arguments: list[Storage] = []
        self.place: Place | None = None  # where tensors from outside are
        self.inside: dict[int, ref[TensorBase]] = {}  # tensors made by the step
        self.flags: list[tuple[TensorBase, bool]] = []  # tensors from outside of which `requires_grad` was changed
        self.sites: list[Site] = []
        self.draws: dict[int, Draws] = {}
        self.doubts = Doubts(self)
        use(self.trace)

    # ------------------------------------------------------------------------------------------------ what is touched

    def see(self, tensor: TensorBase) -> None:
        if id(tensor) not in self.tensors:
            found = [slot.__get__(tensor) for slot in SLOTS.values()]
            self.tensors[id(tensor)] = Seen(tensor, *found)
            storage = found[1]
            self.see_storage(storage)
            if storage.root is not None:
                self.see_storage(storage.root)

    def see_storage(self, storage: Storage) -> None:
        if id(storage) not in self.storages:
            self.storages[id(storage)] = SeenStorage(storage, storage.writer, storage.leaf, storage.version,
                                                     storage.ledger)
            self.memory(storage.root or storage)
            if storage.writer is not None and storage.writer is not storage.leaf:
                storage.writer = Source(storage)

    def memory(self, root: Storage, part: Any = None) -> Cell:
        """Return the cell of a memory from outside, of which only a part may be needed."""
        found = self.memories.get(id(root))
        if found is None:
            buffer = BUFFER.__get__(root)
            if type(buffer) is XArray:
                cell = buffer.cell
                self.check_place(cell.place)
            else:
                if is_foreign(root):
                    self.check_apart(buffer)
                cell = from_outside(buffer if part is None else part, part is not None)
            found = self.memories[id(root)] = root, cell
        return found[1]

    def check_place(self, place: Place) -> None:
        """Raise where tensors are on different devices. NumPy's memory is copied to any, and to all of a mesh."""
        if self.place is None:
            self.place = place
        elif place is not self.place and place.device != self.place.device:
            raise two_devices("compile", [place, self.place])

    def check_apart(self, buffer: Any) -> None:
        for other, cell in self.memories.values():
            if cell.place is HOST and is_foreign(other) and numpy.may_share_memory(buffer, BUFFER.__get__(other)):
                raise NotTraced("compile: two tensors are made of the same memory of NumPy's",
                                why="the step cannot know which elements they share",
                                fix="y = x.view(...) of one tensor, or x.clone()")

    def give(self, tensor: TensorBase) -> None:
        """An argument: of memory of NumPy's, only the part that it is."""
        array, storage, offset = (SLOTS[n].__get__(tensor) for n in ("_array", "_storage", "_offset"))
        root = storage.root or storage
        if type(array) is ndarray and id(root) not in self.memories and id(root) not in self.whole and array.size:
            buffer = BUFFER.__get__(root)
            if offset is not None and array.dtype == buffer.dtype:
                low, high = numpy.lib.array_utils.byte_bounds(array)
                first = buffer.__array_interface__["data"][0]
                at = slice((low - first) // array.itemsize, (high - first) // array.itemsize)
                part = buffer.reshape(-1)[at]
                self.memory(root, part if part.size < buffer.size else None)
        self.see(tensor)
        self.given.add(id(root))
        self.arguments.append(storage)

    def argument_storages(self) -> list[tuple[int, Storage]]:
        return list(enumerate(self.arguments))

    def array_of(self, tensor: TensorBase, array: Any) -> Any:
        """What stands in a tensor's slot, as it is seen inside."""
        found = self.seen_array(tensor, array)
        trace = tracing()
        while trace is not None and type(found) is XArray:
            if trace.touched is not None:
                trace.touched.note(SLOTS["_storage"].__get__(tensor), found.cell)
            trace = tracing(trace.outer)
        return found

    def seen_array(self, tensor: TensorBase, array: Any) -> Any:
        if type(array) is not ndarray:
            if type(array) is XArray and array.cell.born is None and self.is_outside(tensor):
                self.see(tensor)
            return array
        known = self.arrays.get(id(tensor))
        if known is not None and known[1] is array:
            return known[2]
        storage = SLOTS["_storage"].__get__(tensor)
        root = storage.root or storage
        if is_inside(root, self):
            buffer = self.buffer_of(root, BUFFER.__get__(root))
            found = buffer if array.shape == buffer.shape else XArray(buffer.cell, array)
            SLOTS["_array"].__set__(tensor, found)
            return found
        self.see(tensor)
        found = XArray(self.memory(root), array)
        self.arrays[id(tensor)] = tensor, array, found
        return found

    def buffer_of(self, storage: Storage, buffer: Any) -> Any:
        if type(buffer) is not ndarray:
            if type(buffer) is XArray and buffer.cell.born is None:
                self.see_storage(storage)
            return buffer
        root = storage.root or storage
        if is_inside(root, self):  # computed of numbers only
            found = new(buffer, HOST)  # type: ignore[arg-type]
            BUFFER.__set__(storage, found)
            return found
        known = self.arrays.get(id(storage))
        if known is None:
            self.see_storage(storage)
            known = self.arrays[id(storage)] = storage, buffer, XArray(self.memory(root), buffer)
        return known[2]

    def is_outside(self, tensor: TensorBase) -> bool:
        made = self.inside.get(id(tensor))
        return made is None or made() is not tensor

    def grad_of(self, tensor: TensorBase, grad: Any) -> Any:
        if self.is_outside(tensor):
            self.see(tensor)
            if id(tensor) not in self.graded:
                self.grads.setdefault(id(tensor), tensor)
        return grad

    def before_grad(self, tensor: TensorBase) -> None:
        if self.is_outside(tensor):
            self.see(tensor)
            self.graded.add(id(tensor))

    def before_array(self, tensor: TensorBase) -> None:
        try:
            SLOTS["_array"].__get__(tensor)
        except AttributeError:
            self.inside[id(tensor)] = ref(tensor)
        else:
            if self.is_outside(tensor):
                self.see(tensor)

    # ---------------------------------------------------------------------------------------------- numbers of each run

    def each_run(self, function: Callable[[], tuple[Any, Callable[[], None]]],
                 course: Any = None) -> Any:
        """Return the numbers that a function gives: inside, inputs that it is asked for in each run.

        What is no float or array (None, a choice) is part of the program, which is traced anew when it changes.
        """
        numbers, _ = first = call_with({"kind": None}, function)
        leaves = flat(numbers)
        floats = [v for v in leaves if type(v) is float]
        with jax.ensure_compile_time_eval():
            value = put(numpy.array(floats, numpy.float64), None)
            arrays = [put(v, None) for v in leaves if isinstance(v, ndarray)]
        self.sites.append(Site(function, fixed(leaves), value, arrays, first, course))
        each, others = iter(range(len(floats))), iter(arrays)

        def inside(v: Any) -> Any:
            if type(v) is tuple:
                return tuple([inside(part) for part in v])
            return wrap(value[next(each)] if type(v) is float else next(others), HOST) if changes(v) else v

        return inside(numbers)

    def drawing(self, owner: Any) -> Draws:
        if id(owner) not in self.draws:
            self.draws[id(owner)] = Draws(owner, self)
        return self.draws[id(owner)]

    # ------------------------------------------------------------------------------------------------------- the end

    def leaf_before(self, seen: Seen) -> Any:
        return self.storages[id(seen.storage)].leaf

    def is_flag(self, seen: Seen, storage: Storage) -> bool:
        """Whether a tensor has another storage only because `requires_grad` was changed."""
        before = self.storages[id(seen.storage)]
        return before.writer is before.leaf and storage.writer is storage.leaf \
            and (storage.root or storage) is (seen.storage.root or seen.storage)

    def check_own(self, leaf: Any) -> None:
        """Raise where a leaf that the step has made is a tensor from outside."""
        if (tensor := leaf.tensor()) is not None and self.is_outside(tensor):
            raise NotTraced("compile: requires_grad_() inside the step, and a result that has a history from there",
                            why=f"the tensor of shape {tuple(tensor.shape)} has another history after the call",
                            fix="x.requires_grad_() before the step, or return y.detach()")

    def leaves(self) -> dict[int, Storage]:
        """The storages from outside whose leaves a sweep may come to, also those that the step has made leaves."""
        found = {id(s.leaf): s.storage for s in self.storages.values() if s.leaf is not None}
        for seen in self.tensors.values():
            leaf = SLOTS["_storage"].__get__(seen.tensor).leaf
            lasting = self.leaf_before(seen) is not None or seen.storage.root is None or seen.storage in self.arguments
            if is_leaf_of(leaf, seen.tensor) and lasting:
                found.setdefault(id(leaf), seen.storage)
        return found

    def put_back(self) -> list[tuple[Seen, Any]]:
        """Make everything outside what it was, but for values; return the tensors that have another gradient now."""
        grads, moved = [], False
        for seen in self.tensors.values():
            now = [slot.__get__(seen.tensor) for slot in SLOTS.values()]
            if now[3] is not seen.grad or id(seen.tensor) in self.graded and id(seen.tensor) not in self.grads:
                grads.append((seen, now[3]))  # also one that was set to what it was: in later runs it may be another
            for slot, before in zip(SLOTS.values(), seen[1:]):
                slot.__set__(seen.tensor, before)
            moved = moved or now[0] is not seen.array or now[1] is not seen.storage and not self.is_flag(seen, now[1])
            if (on := is_leaf_of(now[1].leaf, seen.tensor)) is not is_leaf_of(self.leaf_before(seen), seen.tensor):
                self.flags.append((seen.tensor, on))
        for storage, writer, leaf, version, ledger in self.storages.values():
            storage.writer, storage.leaf, storage.version, storage.ledger = writer, leaf, version, ledger
        if moved:
            raise NotTraced("compile: the step gives a tensor from outside another memory (x.data = ..., set_)",
                            why="a compiled step writes into memory that is there",
                            fix="x.data.copy_(y), or x.copy_(y) inside no_grad")
        return grads


def is_leaf_of(leaf: Any, tensor: TensorBase) -> bool:
    return leaf is not None and leaf.tensor() is tensor


def changes(value: Any) -> bool:
    return type(value) is float or isinstance(value, ndarray)


def flat(numbers: Any) -> list[Any]:
    """Nested tuples as one list, in which the length of each comes before its parts."""
    found: list[Any] = []
    for part in numbers:
        if type(part) is tuple:
            found.append(len(part))
            found += flat(part)
        else:
            found.append(part)
    return found


def fixed(leaves: list[Any]) -> list[Any]:
    """Of such a list, what decides what a program computes."""
    return [() if type(v) is float or isinstance(v, ndarray) else v for v in leaves]


def is_inside(root: Storage, session: Session) -> bool:
    """Whether memory of NumPy's was made by the step."""
    trace = tracing(root.level) if type(root) is MadeInside else None
    return trace is not None and trace.session is session


# ---------------------------------------------------------------------------------------------------- the watched slots

def session() -> Session | None:
    trace = tracing()
    return None if trace is None else trace.session


class _Array:
    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        array, now = SLOTS["_array"].__get__(tensor), session()
        return array if now is None else now.array_of(tensor, array)

    def __set__(self, tensor: Any, array: Any) -> None:
        if (now := session()) is not None:
            now.before_array(tensor)
        SLOTS["_array"].__set__(tensor, array)


class _Grad:
    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        grad, now = SLOTS["_grad"].__get__(tensor), session()
        return grad if now is None else now.grad_of(tensor, grad)

    def __set__(self, tensor: Any, grad: Any) -> None:
        if (now := session()) is not None:
            now.before_grad(tensor)
        SLOTS["_grad"].__set__(tensor, grad)


class _Buffer:
    def __get__(self, storage: Any, owner: Any = None) -> Any:
        if storage is None:
            return self
        buffer, now = BUFFER.__get__(storage), session()
        return buffer if now is None else now.buffer_of(storage, buffer)

    def __set__(self, storage: Any, buffer: Any) -> None:
        BUFFER.__set__(storage, buffer)


_traces: dict[int, Trace] = {}  # those that go on, on whatever thread
_lock = new_lock()


def watch(trace: Trace, on: bool) -> None:
    """Watch the slots of tensors and storages, as long as any step is being traced. Twice is as good as once."""
    with _lock:
        trace.open = on
        if on:
            _traces[id(trace)] = trace
        else:
            _traces.pop(id(trace), None)
        array, grad, buffer = (_Array(), _Grad(), _Buffer()) if _traces else (SLOTS["_array"], SLOTS["_grad"], BUFFER)
        TensorBase._array, TensorBase._grad = array, grad  # type: ignore[assignment]
        Storage.buffer = buffer  # type: ignore[assignment,misc]
        stamp_storages(any_open())
