"""What a trace is made of: events in the order in which they began, and the storages that they read and wrote.

Nothing here keeps a tensor alive, or its memory: a storage is known by a number and a weak reference to its buffer.
Events are kept up to a limit, the first half and the last; those between are added up by line.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple
from weakref import ref

from ..base.provenance import Where, describe, line_number
from .values import Facts


class Lane:
    """A storage: its number, what it holds, which event made it and which was the last before it was gone."""

    __slots__ = ("born", "bytes", "died", "dtype", "key", "last_write", "leaf", "name", "number", "reference", "savers",
                 "seen_as", "site", "shape", "version", "wrong")

    key: int
    reference: ref[Any]

    def __init__(self, number: int, shape: tuple[int, ...], dtype: str, size: int, version: int) -> None:
        self.number, self.shape, self.dtype, self.bytes, self.version = number, shape, dtype, size, version
        self.born: int | None = None  # None: before the trace began
        self.site: tuple[Where, str] | None = None  # the line and the operation that made it
        self.died: int | None = None  # None: it is still there
        self.leaf = self.wrong = False  # wrong: there is nan or inf in it
        self.name = ""  # as the program's module calls it
        self.seen_as: tuple[Where, str, int] | None = None  # at which line, of which operation which argument
        self.savers: tuple[Saver, ...] = ()
        self.last_write: Unread | None = None

    def __repr__(self) -> str:
        return f"<storage {self.number}: {self.dtype} {self.shape}>"


class Saver(NamedTuple):
    """An event that saved a value which lies in a storage, for its backward; and of which bytes."""

    event: int
    node: ref[Any]
    part: Any


class Unread(NamedTuple):
    """A recorded write that nothing has read yet."""

    event: int
    low: int
    high: int


class Touch(NamedTuple):
    """Bytes of a storage that an event has written, and the version of the memory before and after."""

    lane: Lane
    low: int
    high: int
    versions: tuple[int, int]


class Saved(NamedTuple):
    """A value that an event has saved for its backward: which storage it lies in, as what, and its size."""

    lane: Lane | None
    name: str
    bytes: int
    copied: bool


class Event:
    """One call of the program, one step of an optimizer, or one node of a backward sweep.

    `kind` is "new" (it made a storage), "write", "view", "read", "step" (an optimizer's), "unseen" (memory that has
    changed outside of all calls), "sweep" (a backward pass) or "backward" (a node of it, of which `forward` made it).
    """

    __slots__ = ("adjoint", "began", "buries", "copied", "dtype", "ended", "error", "forward", "index", "kind", "lane",
                 "live", "name", "nodes", "number", "overwrites", "protected", "reads", "saves", "shape", "sweep",
                 "thread", "values", "where", "wrong", "writes")

    def __init__(self, number: int, kind: str, name: str, where: Where | None, thread: int, began: int) -> None:
        self.number, self.kind, self.name, self.where, self.thread = number, kind, name, where, thread
        self.began = self.ended = began
        # Tuples: the cycle collector visits every list of every event again and again while a long program runs.
        self.reads: tuple[Lane, ...] = ()
        self.writes: tuple[Touch, ...] = ()
        self.saves: tuple[Saved, ...] = ()
        self.overwrites: tuple[int, ...] = ()  # events that had saved what this one has overwritten
        self.buries: int | None = None  # the event whose result this one has overwritten before anything read it
        self.copied = 0  # bytes, to protect saved values
        self.nodes = self.live = self.wrong = 0
        self.values: Any = None
        self.shape: tuple[int, ...] | None = None
        self.dtype = self.index = ""
        self.error: str | None = None
        self.lane: Lane | None = None
        self.adjoint: Facts | None = None
        self.forward: int | None = None
        self.sweep: int | None = None

    @property
    def line(self) -> str:
        """Where it was: `train.py:12: y = a * b`."""
        return "" if self.where is None else describe(self.where)

    @property
    def seconds(self) -> float:
        return (self.ended - self.began) / 1e9

    @property
    def is_notable(self) -> bool:
        """Whether it is kept though there are too many events."""
        return bool(self.overwrites or self.buries is not None or self.error or self.wrong)

    def __repr__(self) -> str:
        return f"<{self.number}: {self.kind} {self.name} at {self.line}>"


class LineTotal:
    """What was spent at one place of the program, all events together."""

    __slots__ = ("backward", "bytes", "calls", "copied", "folded", "forward", "names", "nodes")

    def __init__(self) -> None:
        self.calls = self.forward = self.backward = self.bytes = self.copied = self.nodes = self.folded = 0
        self.names: dict[str, int] = {}


NOTABLE = 200  # events that are kept, however many there are


class Events:
    """Events as they come, at most `limit`: the first half, the last, and a few notable ones of those between."""

    def __init__(self, limit: int) -> None:
        self.limit, self.count = limit, 0
        self.first: list[Event] = []
        self.notable: list[Event] = []
        self.last: deque[Event] = deque()
        self.lines: dict[Where, LineTotal] = {}
        self.folded = 0

    def add(self, event: Event) -> None:
        """Keep an event; where there are too many, the oldest of the second half is only counted from now on."""
        self.count += 1
        if len(self.first) < self.limit // 2:
            self.first.append(event)
            return
        self.last.append(event)
        if len(self.last) > self.limit - self.limit // 2:
            self._fold(self.last.popleft())

    def _fold(self, event: Event) -> None:
        if event.is_notable and len(self.notable) < NOTABLE:
            self.notable.append(event)
            return
        self.folded += 1
        if event.where is not None:
            self.line(event.where).folded += 1

    def line(self, where: Where) -> LineTotal:
        if where not in self.lines:
            self.lines[where] = LineTotal()
        return self.lines[where]

    def __iter__(self) -> Iterator[Event]:
        yield from self.first
        yield from self.notable
        yield from list(self.last)

    def by_line(self) -> dict[tuple[str, int], LineTotal]:
        """Return the totals of each line, by file and number: a line has several places."""
        found: dict[tuple[str, int], LineTotal] = {}
        for where, part in list(self.lines.items()):
            total = found.setdefault((where[0].co_filename, line_number(where)), LineTotal())
            for name in ("backward", "bytes", "calls", "copied", "folded", "forward", "nodes"):
                setattr(total, name, getattr(total, name) + getattr(part, name))
            for name, count in part.names.items():
                total.names[name] = total.names.get(name, 0) + count
        return found


class Recording(NamedTuple):
    """A trace as its page shows it."""

    title: str
    error: str | None
    began: int
    ended: int | None
    storages: int
    sweeps: int
    peak: int
    totals: Events
    events: list[Event]
    unrecorded: int
    failure: str
