"""Memory: storages, tensors as windows on them, and the protection of values that a derivative still needs.

A rule's inputs are saved by reference. A later write that would destroy a saved value first moves it aside, so nobody
ever sees a changed one:

>>> import mutagrad as mg
>>> x, y = mg.full((100,), 3., requires_grad=True), mg.full((100,), 2.)
>>> z = (x * y).sum()      # saves y by reference
>>> y.zero_()[:3]          # moves the saved y aside, then writes
tensor([0., 0., 0.])
>>> z.backward(); x.grad[:3]
tensor([2., 2., 2.])

What it costs: values of up to SMALL elements are copied when they are saved (dearer to track than to copy). Larger ones
are records, held weakly by the storage and filed by place. A write outside the hull of all of them is free; one that
overlaps a record copies that record's own bytes, once. So all copying together is at most the bytes of what the saving
operations read or wrote.
"""
from __future__ import annotations

from typing import Any
from weakref import ref

from .backends import np
from .stats import counters
from .window import extent

SMALL = 32

ndarray = np.ndarray


class Storage:
    """A piece of memory: its buffer (always C-contiguous), version, latest writer, and ledger of saved values.

    `detach()` gives a second history over the same memory: a Storage whose `root` is the first one, which keeps the version
    and the ledger for both. `leaf` is where `x.grad` is reported, however often x has been written since.
    """

    __slots__ = ("buffer", "writer", "version", "ledger", "root", "leaf")
    buffer: Any
    writer: Any
    version: int
    ledger: Ledger | None
    root: Storage | None
    leaf: Any

    def __reduce__(self) -> Any:
        """Pickled as its buffer, once for all the tensors that share it."""
        return _restored, (self.buffer,)


class TensorBase:
    """A window on a storage: no maths here. `_offset` is None where the window is the whole storage, else bytes."""

    __slots__ = ("_array", "_storage", "_offset", "_grad", "__weakref__", "__dict__")
    _array: Any
    _storage: Storage
    _offset: int | None
    _grad: TensorBase | None


def new_storage(buffer: Any, root: Storage | None = None) -> Storage:
    storage = Storage()
    storage.buffer, storage.root = buffer, root
    storage.writer = storage.leaf = storage.ledger = None
    storage.version = 0
    return storage


def _restored(buffer: Any) -> Storage:
    """Unpickling gives an array a type object of its own, and types are compared by identity."""
    return new_storage(buffer.view(np.dtype(buffer.dtype.type)))


def memory_of(tensor: TensorBase) -> Storage:
    """The storage that keeps version and ledger: shared by a tensor and everything detached from it."""
    return tensor._storage.root or tensor._storage


def window_extent(tensor: TensorBase) -> tuple[int, int]:
    array = tensor._array
    if tensor._offset is None:
        return 0, array.nbytes
    return extent(tensor._offset, array.shape, array.strides, array.itemsize)


Record = tuple["ref[Any]", int, int, int]  # the node, the slot of its saved values, and the first and end byte of what it needs


class Ledger:
    """Who still needs values of a storage: records by place, their hull, and foreign writers.

    A record of n bytes is filed under its level, the number of binary digits of n, and the cell of 2**level bytes in which it
    begins; it ends in that cell or the next. So a write looks into a few cells of each level, however many records there are.
    """

    __slots__ = ("records", "levels", "count", "low", "high", "crowded", "exports")

    def __init__(self) -> None:
        self.crowded = 64
        self.exports: list[ref[Any]] | None = []  # None: memory that came from NumPy, which may write to it at any time
        self.clear()

    def clear(self) -> None:
        self.records: dict[tuple[int, int], list[Record]] = {}
        self.levels: set[int] = set()
        self.count, self.low, self.high = 0, 1 << 62, -1

    def exported(self) -> bool:
        """Whether NumPy or another library may write to this memory without our knowing."""
        if self.exports:
            self.exports = [e for e in self.exports if e() is not None]
        return self.exports is None or bool(self.exports)

    def add(self, node: Any, slot: int, low: int, high: int) -> None:
        self.file((ref(node), slot, low, high))
        if self.count > self.crowded:  # doubling: dead records cost amortised O(1)
            alive = [r for records in self.records.values() for r in records if _alive(r) is not None]
            self.clear()
            for record in alive:
                self.file(record)
            self.crowded = 64 + 2 * self.count

    def file(self, record: Record) -> None:
        _, _, low, high = record
        level = (high - low).bit_length()
        self.records.setdefault((level, low >> level), []).append(record)
        self.levels.add(level)
        self.count += 1
        self.low, self.high = min(self.low, low), max(self.high, high)

    def near(self, low: int, high: int) -> list[tuple[int, int]]:
        """The cells in which records lie that may overlap these bytes."""
        found: list[tuple[int, int]] = []
        for level in self.levels:
            first, last = (low >> level) - 1, (high - 1) >> level
            if last - first > len(self.records):
                return list(self.records)
            found += [(level, cell) for cell in range(first, last + 1) if (level, cell) in self.records]
        return found


def _alive(record: Record) -> Any | None:
    """The node that a record is about; None once it is gone or has been freed."""
    node = record[0]()
    return node if node is not None and type(node.saved) is tuple else None


def save(tensor: TensorBase, node: Any, slot: int) -> Any:
    """The value of `tensor` for `node.saved[slot]`: by copy where that is cheaper or safer, else by protected reference."""
    array = tensor._array
    if array.size <= SMALL:
        return array.copy() if array.ndim else array[()]
    memory = tensor._storage.root or tensor._storage
    ledger = memory.ledger
    if ledger is None:
        ledger = memory.ledger = Ledger()
    elif ledger.exports != [] and ledger.exported():
        counters.protected += array.nbytes
        return array.copy()
    ledger.add(node, slot, *window_extent(tensor))
    return array


def keep(leaf: Any, storage: Storage, array: Any) -> Any:
    """A copy of the small array that is all of a leaf, made once for all who save it before it is written. (NumPy's writes are not seen.)"""
    copy = array.copy()
    if storage.root is None and storage.ledger is None:
        leaf.kept = array, storage.version, copy
    return copy


def share_memory(a: Any, b: Any) -> bool:
    """Exact, but gives up (answering yes) on windows for which exactness would be a search."""
    try:
        return bool(np.shares_memory(a, b, max_work=10_000))
    except np.exceptions.TooHardError:
        return True


def is_foreign(memory: Storage) -> bool:
    """Whether memory came from NumPy for good: another storage may be over the same."""
    return memory.ledger is not None and memory.ledger.exports is None


def aliased(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors may share memory, as windows of one storage or by way of NumPy."""
    x, y = a._storage.root or a._storage, b._storage.root or b._storage
    return x is y or (x.ledger is not None and is_foreign(x) or y.ledger is not None and is_foreign(y)) and bool(np.may_share_memory(a._array, b._array))


def move_aside(memory: Storage, tensor: TensorBase | None) -> None:
    """Before a write to the window of `tensor` (None: all of the memory): copies the saved values that it would destroy."""
    ledger = memory.ledger
    assert ledger is not None
    low, high = window_extent(tensor) if tensor is not None else (0, 1 << 62)
    if high <= ledger.low or low >= ledger.high:
        return
    for cell in ledger.near(low, high):
        records = ledger.records.pop(cell)
        ledger.count -= len(records)
        for record in records:
            node = _alive(record)
            if node is None:
                continue
            _, slot, first, end = record
            value = node.saved[slot]
            if end <= low or first >= high or (tensor is not None and not share_memory(value, tensor._array)):
                ledger.file(record)
            else:
                node.saved = (*node.saved[:slot], value.copy(), *node.saved[slot + 1:])
                counters.protected += value.nbytes


def before_write(tensor: TensorBase) -> None:
    """Before memory changes without a node: moves saved values aside, and counts the version."""
    memory = tensor._storage.root or tensor._storage
    if memory.ledger is not None and memory.ledger.records:
        move_aside(memory, tensor)
    memory.version += 1


class Handed:
    """The owner, in NumPy's eyes, of memory that is handed out.

    Every array and view made of it keeps it alive, so a weak reference tells whether anybody outside can still write.
    (Were an array the owner, NumPy's views would refer to that array's own base and outlive it.)
    """

    __slots__ = ("array", "__weakref__")

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


def export(tensor: TensorBase) -> Any:
    """An array over the same memory for other libraries to read and write."""
    memory, array = memory_of(tensor), tensor._array
    if array.size == 0:
        return array
    if memory.ledger is None:
        memory.ledger = Ledger()
    if memory.ledger.records:
        move_aside(memory, None)
    handed = Handed(array)
    if memory.ledger.exports is not None:
        memory.ledger.exports.append(ref(handed))
    return np.asarray(handed)


def export_for_good(tensor: TensorBase) -> None:
    """Marks memory whose writes cannot be seen: it came from NumPy, or is saved memory under another storage."""
    memory = memory_of(tensor)
    if memory.ledger is None:
        memory.ledger = Ledger()
    if memory.ledger.records:
        move_aside(memory, None)
    memory.ledger.exports = None
