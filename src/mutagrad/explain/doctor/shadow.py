"""PyTorch's own bookkeeping, kept beside a program that runs on mutagrad: versions, views, and who saved what.

PyTorch refuses a program by what it knows of tensors, not by what values they have. A *counter* counts the writes to a
memory; a tensor, its views and what `detach()` gives share one, what `.data` gives has its own. A *node* keeps values
for backward, each with the count at which it was saved; backward raises where the count has gone on since. A *view*
points to its base, and is made anew from it after a write. `Shadow` is this record for one tensor.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from ...arrays import np
from ...arrays.batched import Batched
from ...arrays.kinds import is_plain
from ...base.provenance import Where


@dataclass(eq=False)
class Write:
    """One write: by which function, at which line, into which elements of the memory."""

    name: str
    where: Where
    array: Any
    version: int = 0
    kind: str = "data_write"  # the finding, where PyTorch does not count it
    inside: frozenset[Where] = frozenset()  # the calls of the program that were under way


class Counter:
    """Counts the writes to a memory, as those tensors see them that share it."""

    __slots__ = ("version", "writes")

    def __init__(self) -> None:
        self.version = 0
        self.writes: deque[Write] = deque(maxlen=10_000)

    def add(self, write: Write, by: int = 1) -> None:
        self.version += by
        write.version = self.version
        self.writes.append(write)

    def first_after(self, version: int) -> Write | None:
        """Return the write that ended a version, if it is remembered."""
        return next((write for write in self.writes if write.version > version), None)


class Memory:
    """Memory that tensors share: which values in it are saved, and whether NumPy can write to it."""

    __slots__ = ("__weakref__", "exported_at", "saves", "version")

    def __init__(self, version: int) -> None:
        self.version = version  # of mutagrad's own, when it was last looked at
        self.exported_at: Where | None = None
        self.saves: WeakSet[Save] = WeakSet()

    def export(self, where: Where) -> None:
        """Note that NumPy can write to it from here on: what is saved of it is compared with a copy later."""
        self.exported_at = self.exported_at or where
        for save in list(self.saves):
            save.keep_copy()


@dataclass(eq=False)
class Save:
    """A value that a node keeps for backward: where it lies, and at which count of writes it was saved."""

    shadow: Shadow
    array: Any
    slot: str
    where: Where
    function: str
    version: int
    used: bool = True  # its value, by backward
    unseen: Write | None = None  # a write that did not count: through `.data`
    kind: str = "overwritten_saved_value"  # the finding, where it was written; others are not looked at by backward
    how: str = ""  # it is kept, where that is not as usual
    block: Any = None  # of hooks, which tell whether they keep it as it is only once they were called
    copy: Any = None

    def write(self) -> Write | None:
        """Return the counted write since it was saved that backward raises for, or is wrong by."""
        if self.shadow.counter.version == self.version or self.block is not None and self.block.keeps == "copy":
            return None
        if self.kind == "overwritten_saved_value":
            return self.shadow.counter.first_after(self.version)
        later = (write for write in self.shadow.counter.writes if write.version > self.version)
        return next((write for write in later if overlap(self.array, write.array) != []), None)

    def keep_copy(self) -> None:
        if self.copy is None:
            self.copy = np.array(self.array)

    def changed_by_numpy(self) -> bool:
        if self.copy is None:
            return False
        return not np.array_equal(self.copy, self.array, equal_nan=self.array.dtype.kind in "fc")


@dataclass(eq=False)
class Node:
    """What PyTorch records of a call: whose results it read, and what it keeps."""

    name: str
    where: Where
    inputs: Sequence[Node | Shadow]
    saves: list[Save] = field(default_factory=list)
    always_raises: bool = False
    repeats: dict[str, Any] = field(default_factory=dict)  # if it writes an element more than once: how
    missing: bool = False  # PyTorch has no derivative of it
    boolean: bool = False  # its derivative computes with booleans, which raises
    keeps: bool = False  # something, if only of its own: it cannot be gone through twice
    freed_at: Where | None = None
    only_theirs: bool = False  # PyTorch has a history here; mutagrad, which knows that the derivative is zero, has none

    def __post_init__(self) -> None:
        self.only_theirs = self.missing or any(isinstance(n, Node) and n.only_theirs for n in self.inputs)


class Frame:
    """One run of a checkpointed function: the arguments that are kept of it, and how many values it has saved."""

    def __init__(self, given: list[Save], first: Frame | None = None) -> None:
        self.given, self.first, self.count = given, first, 0

    def is_over(self, more: int) -> bool:
        """Whether a second run has ended, once it has saved so many more."""
        return self.first is not None and self.count + more >= self.first.count > 0


class Shadow:
    """What PyTorch would know of one tensor."""

    __slots__ = ("__weakref__", "at_version", "base", "counter", "inference", "level", "made", "memory", "node",
                 "own_grad", "slices", "where")

    def __init__(self, memory: Memory, counter: Counter, requires_grad: bool, where: Where) -> None:
        self.memory, self.counter, self.own_grad, self.where = memory, counter, requires_grad, where
        self.node: Node | None = None
        self.base: Shadow | None = None
        self.inference = False  # made in inference mode
        self.made = ""  # of a view that PyTorch does not let be written: "several", "no_grad"
        self.at_version = 0
        self.level: Any = None  # the call of a function for its derivatives in which it was made
        self.slices: frozenset[Any] = frozenset()  # the calls of vmap whose slices differ in it

    @property
    def requires_grad(self) -> bool:
        return self.own_grad or self.node is not None or self.base is not None and self.base.requires_grad

    @property
    def is_leaf(self) -> bool:
        return self.node is None and not (self.base is not None and self.base.node is not None)

    @property
    def is_stale(self) -> bool:
        """Whether the memory of a view was written since PyTorch last looked how it comes from its base."""
        return self.base is not None and self.base.requires_grad and self.at_version != self.counter.version

    def view(self, made: str, where: Where) -> Shadow:
        """Return the shadow of a new view of this tensor."""
        found = Shadow(self.memory, self.counter, False, self.where if self.made and not made else where)
        found.base = self if self.base is None or self.own_grad else self.base
        found.made = made or self.made
        found.at_version, found.level, found.slices = self.counter.version, self.level, self.slices
        return found

    def edge(self) -> Node | Shadow | None:
        """Return where backward goes on from this tensor: the node that made it, or itself if it is a leaf."""
        if not self.requires_grad:
            return None
        if self.base is not None and (self.node is None and not self.own_grad or self.is_stale):
            before = self.base.edge()
            self.node = Node("view", self.where, [before] if before is not None else [])
            self.at_version = self.counter.version
        return self if self.node is None else self.node

    def write(self, node: Node | None) -> None:
        """Become what a recorded write makes of it: the base of a view has the write in its history, too."""
        if node is None:
            return
        if self.base is None:
            self.node = node
            return
        self.base.node = node
        self.node = Node("view", node.where, [node])
        self.at_version = self.counter.version


def reached(roots: Sequence[Node | Shadow], wanted: Sequence[Node | Shadow] | None = None) -> Iterator[Node]:
    """Yield the nodes that backward visits from here; if `wanted` is given, only those from which that is reached."""
    seen: set[int] = set()
    order: list[Node] = []
    stack: list[tuple[Node | Shadow, bool]] = [(root, False) for root in roots]
    while stack:
        node, left = stack.pop()
        if left:
            order.append(node)  # type: ignore[arg-type]
        elif isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((before, False) for before in node.inputs)
    useful = {id(one) for one in wanted or ()}
    for node in order:
        if wanted is not None and any(id(before) in useful for before in node.inputs):
            useful.add(id(node))
    yield from (node for node in reversed(order) if wanted is None or id(node) in useful)


def slices_of(array: Any) -> frozenset[Any]:
    """Return the calls of `vmap` whose slices differ in an array."""
    found = set()
    while type(array) is Batched:
        array, split, level = *array.values(), array.level
        found |= {level} if split else set()
    return frozenset(found)


def overlap(one: Any, other: Any) -> list[tuple[int, ...]] | None:
    """Return which elements of one array are memory of another; None if there are too many to look at each."""
    if not is_plain(one, other):
        return None
    if not np.may_share_memory(one, other):
        return []
    if one.size > 100_000 or other.size > 100_000:
        return None
    mine, theirs = addresses(one), addresses(other)
    size = max(one.itemsize, 1)
    hit = np.isin(mine // size, theirs // size)
    return [tuple(int(i) for i in place) for place in np.argwhere(hit.reshape(one.shape))]


def addresses(array: Any) -> Any:
    """Return where each element lies in memory, in order."""
    found = np.full(array.shape, array.__array_interface__["data"][0], np.int64)
    for d, (n, step) in enumerate(zip(array.shape, array.strides)):
        found = found + (np.arange(n, dtype=np.int64) * step).reshape((-1,) + (1,) * (array.ndim - 1 - d))
    return found.reshape(-1)
