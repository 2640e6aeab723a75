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

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any
from weakref import ref

from ..arrays import np
from ..arrays.kinds import IN_USE, host, is_frozen, real_kind, share_memory
from ..base.counters import counters
from ..base.errors import OverlapError
from ..base.locks import new_lock
from ..base.modes import NOT_RECORDING, OTHER_KIND, mode
from ..base.operands import Array, Operand
from .window import Shape, extent

SMALL = 32  # elements up to which a saved value is copied at once
MIDDLE = 4096  # and where saved values of its memory have been overwritten: finding out later costs more

ndarray = np.ndarray


class Storage:
    """A piece of memory: its buffer (always C-contiguous), version, latest writer, and ledger of saved values.

    `detach()` gives a second history over the same memory: a Storage whose `root` is the first one, which keeps the
    version and the ledger for both. `leaf` is where `x.grad` is reported, however often x has been written since.
    `inference` is there only if it is True: that spares all others a store.
    """

    __slots__ = ("buffer", "writer", "version", "ledger", "root", "leaf", "inference")
    buffer: Array
    writer: Any
    version: int
    ledger: Ledger | None
    root: Storage | None
    leaf: Any
    inference: bool  # made in inference mode
    start = 0
    group: Storage | None = None
    origin: tuple[ref[Any], int, Storage] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its buffer, once for all the tensors that share it."""
        return _restored, (self.buffer,)


class MadeInside(Storage):
    """One for a result of NumPy's arrays, made while another kind was on: it is not from outside of `level`."""

    __slots__ = ("level",)

    def __init__(self) -> None:
        self.level = real_kind()


class Part(Storage):
    """A history over part of the memory of its root, from byte `start` on: its adjoint is no larger than that part.

    Histories of one `group`, which is named by one of its storages (None: by itself), are linked: what is written to
    one with a record is part of the others. See write.tell_aliases.
    """

    __slots__ = ("start", "group", "origin", "__weakref__")
    # Of a view made in no_grad: writer, version and group of what it is a view of.
    origin: tuple[ref[Any], int, Storage] | None


class Repeated(Part):
    """The memory of a leaf whose elements share some: a copy in which each has its own, and so a gradient of its own.

    `shared` is the window on the memory that it repeats, at byte `place` there. Writes to that are followed, see
    write.tell_aliases; it is not written itself, because several of its elements stand for one.
    """

    __slots__ = ("shared", "place")
    shared: Array
    place: int


class Taken(Storage):
    """The elements of a window at a place that is known only when a program runs: a copy, and to who has it a view.

    It follows what is written to the memory that it was taken of, and what is written to it is written there: `again`
    and `give` do that, see write.tell_aliases. `is_at` says whether all of it is what a tensor has at a key.
    """

    __slots__ = ("again", "give", "is_at", "__weakref__")
    again: Callable[[Taken, Any], None]
    give: Callable[[Taken, Storage, Any], None]
    is_at: Callable[[TensorBase, Any], bool]


class TensorBase(Operand):
    """A window on a storage: no maths here. `_offset` is None where the window is the whole storage, else bytes.

    `_seen`, which most do not have, is for `grad_fn`: the array that was given another shape, where that was part of a
    storage already; its own, where it is one of several results in one storage.
    """

    __slots__ = ("_array", "_storage", "_offset", "_grad", "_seen", "__weakref__", "__dict__")
    _array: Array
    _storage: Storage
    _offset: int | None
    _grad: TensorBase | None
    _seen: Array


def new_storage(buffer: Array, root: Storage | None = None, start: int = 0) -> Storage:
    storage = Storage() if not start else _part(start, None)
    storage.buffer = buffer
    storage.root = root
    storage.writer = storage.leaf = storage.ledger = None
    storage.version = 0
    if NOT_RECORDING and (now := mode.now).inference and not now.recorded:
        storage.inference = True
    return storage


def made_in_inference(tensor: TensorBase) -> bool:
    """Return whether the memory of a tensor was made in inference mode; a view of older memory was not."""
    return getattr(memory_of(tensor), "inference", False)


def _part(start: int, group: Storage | None) -> Part:
    part = Part()
    part.start, part.group, part.origin = start, group, None
    return part


def another_history(tensor: TensorBase) -> Storage:
    """Return a storage over the same buffer with a history of its own: what a detached tensor is a window on."""
    storage = tensor._storage
    return new_storage(storage.buffer, storage.root or storage, storage.start)


def unrecorded_view(storage: Storage) -> Storage:
    """Return a storage for views made in no_grad: without history, but it knows what it would have had."""
    part = _part(storage.start, None)
    part.buffer, part.root = storage.buffer, storage.root or storage
    part.writer = part.leaf = part.ledger = None
    part.version, part.origin = 0, (ref(storage.writer), part.root.version, storage.group or storage)
    return part


def part_history(tensor: TensorBase, linked: bool) -> tuple[Part, int | None]:
    """Return a history of its own for a window, an alias of its memory from now on; and the window's offset there.

    It covers that window alone where that has no gaps, else all of the storage: an adjoint must have its strides.
    """
    storage, memory, array = tensor._storage, memory_of(tensor), tensor._array
    dense = tensor._offset is not None and array.flags.c_contiguous
    group = storage.group or storage if storage.origin is None else storage.origin[2]
    part = _part(storage.start + (tensor._offset or 0) if dense else storage.start, group if linked else None)
    part.buffer, part.root = array if dense else storage.buffer, memory
    part.writer = part.leaf = part.ledger = None
    part.version = 0
    enter_alias(memory, part, tensor)
    return part, None if dense else tensor._offset


def repeated_history(tensor: TensorBase) -> Repeated:
    """Return a history, and memory, in which each element of a window that overlaps itself is one of its own."""
    storage, memory = tensor._storage, memory_of(tensor)
    part = Repeated()
    part.start, part.origin, part.root, part.version = 0, None, None, 0
    part.group = storage.group or storage if storage.origin is None else storage.origin[2]
    part.buffer, part.shared, part.place = np.array(tensor._array, order="C"), tensor._array, memory_offset(tensor)
    part.writer = part.leaf = part.ledger = None
    ledger_of(part).aliases = Places()
    enter_alias(memory, part, tensor)
    return part


def enter_alias(memory: Storage, part: Part | Taken, tensor: TensorBase) -> None:
    """Have a history told of writes to the window of a tensor on a memory."""
    ledger = ledger_of(memory)
    with ledger.lock:
        if ledger.aliases is None:
            ledger.aliases = Places()
        ledger.aliases.add((ref(part), tensor._array, span_of(tensor)))


def check_own(memory: Storage, name: str) -> None:
    """Raise where memory repeats elements of another, so that a write to it has no meaning."""
    if memory.__class__ is Repeated:
        error = OverlapError(f"{name}: cannot write to a leaf several of whose elements are the same memory",
                             why=f"of shape {memory.buffer.shape}, it was expanded before it became a leaf",
                             fix="x = x.clone() before x.requires_grad_()")
        error.is_expanded = True
        raise error


def _restored(buffer: Array) -> Storage:
    """Unpickling gives an array a type object of its own, and types are compared by identity."""
    return new_storage(buffer.view(np.dtype(buffer.dtype.type)))


def memory_of(tensor: TensorBase) -> Storage:
    """Return the storage that keeps version and ledger: shared by a tensor and everything detached from it."""
    return tensor._storage.root or tensor._storage


def memory_offset(tensor: TensorBase) -> int:
    """Return at which byte of that memory the tensor begins."""
    return tensor._storage.start + (tensor._offset or 0)


# The bytes of a memory that a window touches: the first and the end; and, where they lie in a pattern that repeats
# every `pitch` bytes, as a column's do, the first and the end within that. Pitch 0: no pattern, and the first and the
# end again.
Span = tuple[int, int, int, int, int]


def span_of(tensor: TensorBase) -> Span:
    array, start = tensor._array, tensor._storage.start
    if tensor._offset is None:
        return start, start + array.nbytes, 0, start, start + array.nbytes
    if array.flags.c_contiguous:
        low, high = start + tensor._offset, start + tensor._offset + array.nbytes
        return low, high, 0, low, high
    before, reach, patterns = _patterns(array.shape, array.strides, array.itemsize)
    low = start + tensor._offset - before
    high = low + reach
    best, found = reach / (tensor._storage.root or tensor._storage).buffer.nbytes, (low, high, 0, low, high)
    for pitch, width in patterns:
        first = low % pitch
        if first + width <= pitch and width / pitch < best:
            best, found = width / pitch, (low, high, pitch, first, first + width)
    return found


@lru_cache(4096)  # loops ask of the same few windows over and over
def _patterns(shape: Shape, strides: Shape, itemsize: int) -> tuple[int, int, list[tuple[int, int]]]:
    """How far a window reaches before its first element and in all; and of each pattern, the pitch and its width."""
    low, high = extent(0, shape, strides, itemsize)
    without_gaps = high - low <= prod(shape) * itemsize
    pitches = set() if without_gaps else {*map(abs, strides)} - {0}
    return -low, high - low, [(pitch, width_in(shape, strides, itemsize, pitch)) for pitch in pitches]


def window_extent(tensor: TensorBase) -> tuple[int, int]:
    """Return the first byte of its memory that a tensor touches, and the first that it no longer does."""
    return span_of(tensor)[:2]


def width_in(shape: Shape, strides: Shape, itemsize: int, pitch: int) -> int:
    """Return how far a window reaches within a pattern, from its first byte on; beyond `pitch` it wraps around."""
    return itemsize + sum([(n - 1) * abs(t) for n, t in zip(shape, strides) if t % pitch])


# Of a node, the slot of its saved values; of a storage, its array; and the bytes that it is about.
Record = tuple["ref[Any]", Any, Span]
FEW = 8  # records that are looked at as they came, without filing them
NONE_FILED: dict[Any, Any] = {}  # what stands in `Places` while all records wait; it is never written


class Places:
    """Records by the bytes that they are about.

    Spans are grouped by their pitch. In a group, one of n bytes is filed under its level, the number of binary digits
    of n, and the cell of 2**level bytes in which it begins; it ends in that cell or the next. So a write looks into a
    few cells of each level, however many records there are: those of rows by where they lie, those of columns by where
    they lie within a row.

    A record waits until somebody looks: most memories of which a value is saved are never written again. All are within
    the bytes from `low` to `high`, which is negative while there are none.
    """

    __slots__ = ("waiting", "records", "levels", "count", "low", "high", "crowded")

    def __init__(self) -> None:
        self.crowded = 64
        self.clear()

    def clear(self) -> None:
        self.waiting: list[Record] = []
        self.records: dict[tuple[int, int, int], list[Record]] = NONE_FILED
        self.levels: dict[int, set[int]] = NONE_FILED  # by pitch
        self.count, self.low, self.high = 0, 1 << 62, -1

    def add(self, record: Record) -> None:
        low, high, *_ = record[2]
        self.waiting.append(record)
        self.count += 1
        if low < self.low:
            self.low = low
        if high > self.high:
            self.high = high
        if self.count > self.crowded:  # doubling: dead records cost amortised O(1)
            alive = [r for r in self.all() if _alive(r) is not None]
            self.clear()
            self.crowded = 64 + 2 * len(alive)
            for record in alive:
                self.add(record)

    def file(self) -> None:
        """File what waits. (An interrupt leaves records that are filed twice, which does no harm.)"""
        if self.records is NONE_FILED:
            self.records, self.levels = {}, {}
        for record in self.waiting:
            _, _, pitch, first, end = record[2]
            level = (end - first).bit_length()
            self.records.setdefault((pitch, level, first >> level), []).append(record)
            self.levels.setdefault(pitch, set()).add(level)
        self.waiting = []

    def near(self, low: int, high: int, array: Array | None) -> list[tuple[int, int, int]]:
        """Return the cells in which records lie that may overlap the array at these bytes (None: all of them)."""
        if self.waiting:
            self.file()
        found: list[tuple[int, int, int]] = []
        for pitch, levels in self.levels.items():
            first, end = low, high
            if pitch:
                first = low % pitch
                if array is not None:
                    end = first + width_in(array.shape, array.strides, array.itemsize, pitch)
                if array is None or end > pitch:
                    first, end = 0, pitch
            for level in levels:
                before, last = (first >> level) - 1, (end - 1) >> level
                if last - before > len(self.records):
                    found += [cell for cell in self.records if cell[:2] == (pitch, level)]
                else:
                    found += [(pitch, level, at) for at in range(before, last + 1)
                              if (pitch, level, at) in self.records]
        return found

    def all(self) -> list[Record]:
        return [record for cell in self.records.values() for record in cell] + self.waiting

    def records_near(self, low: int, high: int, array: Array | None) -> list[Record]:
        return [record for cell in self.near(low, high, array) for record in self.records[cell]]


# A thread may write while another saves, or a sweep frees what was saved. Making a lock for every memory would cost as
# much as the rest of its ledger, so they share these: that of a memory is number `id(memory) >> 4 & 63`.
_LOCKS = [new_lock() for _ in range(64)]


class Ledger(Places):
    """Who must be told of a write to a memory: nodes that saved values, other histories, writers that we cannot see."""

    __slots__ = ("exports", "aliases", "complete", "held", "lock", "restless")
    held: int  # set where a program has said that it needs fewer bytes of the memory for now

    def __init__(self, lock: Any) -> None:
        self.lock = lock
        self.exports: Sequence[ref[Any]] | None = ()  # None: memory of NumPy's, which may write to it at any time
        self.aliases: Places | None = None
        self.complete = False  # the leaves among the aliases are part of the memory's own history
        self.restless = False  # a value that was saved has been overwritten: others will be
        # As Places does, at half the cost: every result that is saved has one.
        self.crowded, self.waiting, self.records, self.levels = 64, [], NONE_FILED, NONE_FILED
        self.count, self.low, self.high = 0, 1 << 62, -1

    def exported(self) -> bool:
        """Whether NumPy or another library may write to this memory without our knowing."""
        if self.exports:
            self.exports = tuple([e for e in self.exports if e() is not None])
        return self.exports is None or bool(self.exports)

    def leaves(self) -> list[Part]:
        """Return the aliases that are leaves, each element once."""
        with self.lock:
            records = [] if self.aliases is None else self.aliases.all()
        found = [record[0]() for record in records]
        return [part for part in found if part is not None and part.leaf is not None and part.__class__ is Part]


def has_aliases(memory: Storage, storage: Storage) -> bool:
    """Whether other histories may have to be told of a write to a storage over this memory."""
    ledger = memory.ledger
    return (ledger is not None and ledger.aliases is not None
            and (ledger.aliases.count > 1 or storage.leaf is None or storage is memory))


def aliases_near(tensor: TensorBase) -> list[Part]:
    """Return the other histories over memory that a write to the window of this tensor has changed."""
    memory = memory_of(tensor)
    ledger = memory.ledger
    if ledger is None or ledger.aliases is None or not has_aliases(memory, tensor._storage):
        return []
    aliases, array, storage, (low, high) = ledger.aliases, tensor._array, tensor._storage, window_extent(tensor)
    with ledger.lock:
        records = aliases.records_near(low, high, array)
    counters.examined += len(records)
    found = [(record[0](), record[1]) for record in records if record[2][0] < high and low < record[2][1]]
    return [part for part, other in found if part is not None and part is not storage and share_memory(other, array)]


def same_group(one: Storage, other: Storage) -> bool:
    """Whether what is written to one history with a record is part of the other."""
    return (one.group or one) is (other.group or other)


def histories(tensor: TensorBase) -> list[Storage]:
    """Return all storages whose history a write to the window of this tensor may change."""
    storage = tensor._storage
    return [storage, *aliases_near(tensor), *([storage.root] if storage.root is not None else [])]


def ledger_of(memory: Storage) -> Ledger:
    with (lock := _LOCKS[id(memory) >> 4 & 63]):
        if memory.ledger is None:
            memory.ledger = Ledger(lock)
        return memory.ledger


def _alive(record: Record) -> Any | None:
    """What a record is about; None once that is gone, or the node has been freed."""
    found = record[0]()
    return found if found is not None and (isinstance(found, Storage) or type(found.saved) is tuple) else None


def save(tensor: TensorBase, node: Any, slot: int) -> Array:
    """Return a value for `node.saved[slot]`: a copy where that is cheaper or safer, else a protected reference."""
    array = tensor._array
    if array.size <= SMALL:
        return array.copy() if array.ndim else array[()]
    if IN_USE and is_frozen(array):  # whose copies cost nothing
        return array.copy()
    memory = tensor._storage.root or tensor._storage
    counters.referenced += array.nbytes
    with (lock := _LOCKS[id(memory) >> 4 & 63]):
        ledger = memory.ledger
        if ledger is None:
            ledger = memory.ledger = Ledger(lock)
        elif ledger.exports != () and ledger.exported() or ledger.restless and array.size <= MIDDLE:
            counters.protected += array.nbytes
            return array.copy()
        ledger.add((ref(node), slot, span_of(tensor)))
    return array


def keep(leaf: Any, storage: Storage, array: Array) -> Array:
    """Copy the small array that is all of a leaf, once for all who save it before it is written.

    (NumPy's writes are not seen.)
    """
    copy = array.copy()
    if storage.root is None and storage.ledger is None and not (IN_USE and is_frozen(array)):
        leaf.kept = array, storage.version, copy
    return copy


def is_foreign(memory: Storage) -> bool:
    """Whether memory came from NumPy for good: another storage may be over the same."""
    return memory.ledger is not None and memory.ledger.exports is None


def aliased(a: TensorBase, b: TensorBase) -> bool:
    """Whether two tensors may share memory, as windows of one storage or by way of NumPy."""
    x, y = a._storage.root or a._storage, b._storage.root or b._storage
    return x is y or ((x.ledger is not None and is_foreign(x) or y.ledger is not None and is_foreign(y))
                      and bool(np.may_share_memory(a._array, b._array)))


def move_aside(memory: Storage, tensor: TensorBase | None) -> None:
    """Copy the saved values that a write to the window of `tensor` (None: all of the memory) is about to destroy.

    A sweep on another thread may be reading one: it looks at `node.saved` again afterwards, and sees that it was
    exchanged.
    """
    ledger = memory.ledger
    assert ledger is not None
    low, high = window_extent(tensor) if tensor is not None else (0, 1 << 62)
    if high <= ledger.low or low >= ledger.high:
        return
    array = None if tensor is None else tensor._array
    with ledger.lock:
        _move_records(ledger, low, high, array)


def _move_records(ledger: Ledger, low: int, high: int, array: Array | None) -> None:
    if ledger.records is NONE_FILED and len(ledger.waiting) <= FEW:
        ledger.waiting = _left(ledger, ledger.waiting, low, high, array)
    else:
        for cell in ledger.near(low, high, array):
            if left := _left(ledger, ledger.records[cell], low, high, array):
                ledger.records[cell] = left
            else:
                del ledger.records[cell]
    if not (ledger.waiting or ledger.records):
        ledger.clear()


def _left(ledger: Ledger, records: list[Record], low: int, high: int, array: Array | None) -> list[Record]:
    """Move what these records are about aside, where the array would overwrite it; return those that are left."""
    counters.examined += len(records)
    left = [r for r in records if not _moved(ledger, r, low, high, array)]
    ledger.count -= len(records) - len(left)
    return left


def _moved(ledger: Ledger, record: Record, low: int, high: int, array: Array | None) -> bool:
    """Whether a record is done with: its node is gone or freed, or now has a copy of what the array would overwrite."""
    reference, slot, (first, end, *_) = record
    node = reference()
    while node is not None:
        saved = node.saved
        if type(saved) is not tuple:
            return True
        if (slot >= len(saved) or end <= low or first >= high
                or array is not None and not share_memory(saved[slot], array)):
            return False
        copy = saved[slot].copy()
        if node.saved is saved:  # else another thread has freed or exchanged it meanwhile
            node.saved = (*saved[:slot], copy, *saved[slot + 1:])
            counters.protected += copy.nbytes
            ledger.restless = True
            return True
    return True


def before_write(tensor: TensorBase) -> None:
    """Move saved values aside and count the version, before memory changes without a node."""
    if OTHER_KIND:
        check_inside(tensor)
    memory = tensor._storage.root or tensor._storage
    if memory.ledger is not None:
        check_own(memory, "write")
        if memory.ledger.high >= 0:
            move_aside(memory, tensor)
    memory.version += 1


def check_inside(tensor: TensorBase) -> None:
    """Tells the level of arrays that is on before memory from outside of it changes. It may refuse that."""
    level, memory = real_kind(), tensor._storage.root or tensor._storage
    made_inside = memory if type(memory) is MadeInside else tensor._array
    if level is not None and getattr(made_inside, "level", None) is not level:
        level.before_write_outside()


class Handed:
    """The owner, in NumPy's eyes, of memory that is handed out.

    Every array and view made of it keeps it alive, so a weak reference tells whether anybody outside can still write.
    (Were an array the owner, NumPy's views would refer to that array's own base and outlive it.)
    """

    __slots__ = ("array", "__weakref__")

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def __array_interface__(self) -> Any:
        return self.array.__array_interface__


def export(tensor: TensorBase) -> Array:
    """Return an array over the same memory for other libraries to read and write."""
    memory, array = memory_of(tensor), tensor._array
    array = host(array, "NumPy is given its memory")
    if array.size == 0 or array is not tensor._array:
        return array
    ledger, handed = ledger_of(memory), Handed(array)
    with ledger.lock:  # nothing is saved by reference from here on
        if ledger.exports is not None:
            ledger.exports = *ledger.exports, ref(handed)
        move_aside(memory, None)
    lent: Array = np.asarray(handed)
    if lent.dtype != array.dtype:  # NumPy's interface has no name for bfloat16
        lent = lent.view(array.dtype)
    if memory.__class__ is Repeated:
        lent.flags.writeable = False
    return lent


def export_for_good(tensor: TensorBase) -> None:
    """Mark memory whose writes cannot be seen: it came from NumPy, or is saved memory under another storage."""
    memory = memory_of(tensor)
    ledger = ledger_of(memory)
    with ledger.lock:
        ledger.exports = None
        move_aside(memory, None)
