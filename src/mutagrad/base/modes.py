"""The modes of a thread: what is switched on for a stretch of the program, and the one way to leave it.

Every mode of a thread stands in one record, `mode.now`: whether operations are recorded, whether a zero adjoint stays
zero, which hooks pack saved values, which device new tensors live on, which sweep is running. Entering a block puts a
new record over the old one; leaving puts the old one back. That is a single attribute store, which neither a signal
handler nor another thread can come between (CPython runs those at calls and loops only), so we enter a mode by
    before = mode.now
    try:
        mode.now = Modes(before, recorded=False)
        ...
    finally:
        mode.now = before
        tidy()

and an interrupt leaves nothing behind, whenever it comes. (`with` would not do: one may come as `__exit__` begins.)

Blocks that users enter are `Block`s. They may be left twice, in the wrong order, by another thread, or inside a
callback of their own. `Block.leave` finds its record by identity, wherever it lies, takes it out, lays the records
above it anew, and only then complains.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar
from weakref import ref

from .errors import ModeError

F = TypeVar("F", bound=Callable[..., Any])


class Entry:
    """One entering of a block: on which thread (given by that thread's variables), and whether it was left again."""

    __slots__ = ("home", "left")

    def __init__(self) -> None:
        self.home, self.left = mode.__dict__, False


class Modes:
    """All modes of one thread at one time. `outer` is what they were before; `changes` is what differs from that."""

    __slots__ = ("anomaly", "anomaly_checks_nan", "autocast_dtype", "cast", "changes", "device", "dispatch_off", "dual",
                 "entry", "function_modes", "grad_off_below", "inference", "kind", "kind_below", "nan_policy",
                 "outer", "profilers",
                 "recorded", "saved_hooks", "saved_hooks_refused", "strong_zeros", "sweep", "transformed")
    recorded: bool  # operations become nodes
    strong_zeros: bool  # a zero adjoint stays zero where a derivative is infinite
    anomaly: bool  # detect_anomaly is on
    anomaly_checks_nan: bool  # ... and nan in a sweep is an error
    nan_policy: str  # what backward() does about a loss that is nan
    inference: bool
    dual: Any  # the tangents of the open level of forward mode
    saved_hooks: tuple[Any, ...]  # what packs saved values: the last
    saved_hooks_refused: tuple[str, ...]  # why there must be none
    function_modes: tuple[Any, ...]  # whose __torch_function__ is asked: the last
    dispatch_off: int  # 1: classes are not asked, 2: modes neither
    cast: Any  # how calls are cast
    autocast_dtype: Any  # the type that products are cast to
    profilers: tuple[Any, ...]
    device: Any  # where new tensors live; None: the CPU
    sweep: Any  # the innermost sweep that is running
    kind: Any  # of which kind new arrays are (see arrays/kinds.py); None: NumPy's own
    kind_below: bool  # some record from here down has one
    grad_off_below: bool  # some record from here down does not record
    transformed: Transformed | None  # a call of a function for its derivatives, which may be differentiated again
    entry: Entry | None  # None: a record of this package's own
    outer: Modes | None
    changes: dict[str, Any]

    def __init__(self, outer: Modes | None, entry: Entry | None = None, /, **changes: Any) -> None:
        self.outer, self.entry, self.changes = outer, entry, changes
        before = outer or _DEFAULTS
        self.recorded, self.strong_zeros, self.anomaly = before.recorded, before.strong_zeros, before.anomaly
        self.anomaly_checks_nan, self.nan_policy = before.anomaly_checks_nan, before.nan_policy
        self.inference, self.dual = before.inference, before.dual
        self.saved_hooks, self.saved_hooks_refused = before.saved_hooks, before.saved_hooks_refused
        self.function_modes, self.dispatch_off, self.cast = before.function_modes, before.dispatch_off, before.cast
        self.autocast_dtype, self.profilers, self.device = before.autocast_dtype, before.profilers, before.device
        self.sweep, self.kind, self.transformed = before.sweep, before.kind, before.transformed
        for name, value in changes.items():
            setattr(self, name, value(getattr(before, name)) if value.__class__ is Relative else value)
        self.grad_off_below = before.grad_off_below or not self.recorded
        if self.grad_off_below:
            NOT_RECORDING.add(id(_own.mark))
        self.kind_below = before.kind_below or self.kind is not None
        if self.kind_below:
            OTHER_KIND.add(id(_own.mark))
        if self.function_modes or self.cast is not None:
            DISPATCHING.add(id(_own.mark))


class Relative:
    """A change that depends on what it changes, so that it holds whatever lies below when records are laid anew."""

    __slots__ = ("change",)

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def __call__(self, before: Any) -> Any:
        return self.change(before)


def push(item: Any) -> Relative:
    """Return the change that adds to the end of a tuple."""
    return Relative(lambda before: (*before, item))


DROP_LAST = Relative(lambda before: before[:-1])


class _Defaults:
    """What modes are as long as nobody has changed them."""

    recorded, strong_zeros, anomaly, anomaly_checks_nan, nan_policy, inference = True, True, False, True, "warn", False
    dual, saved_hooks, saved_hooks_refused, function_modes, dispatch_off = None, (), (), (), 0
    cast, autocast_dtype, profilers, device, sweep, kind = None, None, (), None, None, None
    transformed = None
    grad_off_below = kind_below = False


_DEFAULTS: Any = _Defaults()

# Which threads may have recording off, which have somebody to ask about calls, and which make arrays of another kind:
# by their marks. While these are empty, hot paths need not look up their own thread's modes, which takes five times as
# long. A mark too many costs time, never a result.
NOT_RECORDING: set[int] = set()
DISPATCHING: set[int] = set()
OTHER_KIND: set[int] = set()

# Has what exchanges the functions of a package for those that ask, from when on there may be somebody to ask: packages
# that are loaded late call it with the beginning of their modules' names.
WATCHING: list[Callable[[str], None]] = []


class _Mark:
    """A thread, as it stands in these sets. When the thread ends, so does its mark."""

    __slots__ = ()

    def __del__(self) -> None:
        NOT_RECORDING.discard(id(self))
        DISPATCHING.discard(id(self))
        OTHER_KIND.discard(id(self))


class _Own(threading.local):
    """Of one thread: its mark. Apart from its modes, which whoever has entered a block on it may keep alive."""

    def __init__(self) -> None:
        self.mark = _Mark()


_own = _Own()


class _Mode(threading.local):
    """Of one thread: its modes `now`. Hot paths ask `not NOT_RECORDING or mode.now.recorded`, which is `mode.grad`."""

    now: Modes
    disordered = False  # some record was left that others lie on, or by another thread

    def __init__(self) -> None:
        self.now = _first

    @property
    def grad(self) -> bool:
        return self.now.recorded


_BASE = _first = Modes(None)
mode = _Mode()


def begin_threads_with(**changes: Any) -> None:
    """Set what differs from the defaults on threads that begin from now on; nothing, if nothing is given."""
    global _first
    _first = Modes(_BASE, **changes) if changes else _BASE


def tidy() -> None:
    """Take the thread, whose modes were put back, off lists that it need not be on, and drop records left meanwhile."""
    if mode.disordered:
        _settle(mode.__dict__)
    now = mode.now
    if NOT_RECORDING and not now.grad_off_below:
        NOT_RECORDING.discard(id(_own.mark))
    if OTHER_KIND and not now.kind_below:
        OTHER_KIND.discard(id(_own.mark))
    if DISPATCHING and not now.function_modes and now.cast is None and _asks_nobody(now):
        DISPATCHING.discard(id(_own.mark))


def call_with(changes: dict[str, Any], function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function with other modes."""
    before = mode.now
    try:
        mode.now = Modes(before, **changes)
        return function(*arguments, **settings)
    finally:
        mode.now = before
        tidy()


class Transformed:
    """A call of a user's function for its derivatives: what asked for them, and inside which other such call.

    `by` are the tensors that it is differentiated by, `others` those that it was given besides.
    """

    __slots__ = ("__weakref__", "by", "name", "others", "outer")

    def __init__(self, name: str, by: Iterable[Any], others: Iterable[Any] = ()) -> None:
        self.name, self.by, self.others, self.outer = name, [*map(ref, by)], [*map(ref, others)], mode.now.transformed


def keeps_modes(function: F) -> F:
    """Make a function leave modes as it found them, though it enters blocks by `with`, which can be interrupted."""
    @wraps(function)
    def run(*arguments: Any, **settings: Any) -> Any:
        return call_with({}, function, *arguments, **settings)

    return run  # type: ignore[return-value]


UNRECORDED, RECORDED = {"recorded": False}, {"recorded": True}
PRECISION = ["highest"]  # of products of float32, on devices that have others: see set_float32_matmul_precision
# How forward mode runs the reverse that it differentiates. Its adjoints stand for any, so none of them is zero for
# good: what is infinite stays so. (A zero tangent stays zero all the same: that is the second sweep's.)
FORWARD = {"strong_zeros": False}


def _asks_nobody(now: Modes) -> bool:
    """Whether no record below would need the mark again: one may hide the modes of those below it for a while."""
    outer = now.outer
    while outer is not None:
        if outer.function_modes or outer.cast is not None:
            return False
        outer = outer.outer
    return True


def _settle(home: dict[str, Any]) -> None:
    """Drop the records that were left from the modes of a thread, given by its variables."""
    now = home["now"]
    records = []
    record: Modes | None = now
    while record is not None:
        records.append(record)
        record = record.outer
    made: Modes | None = None
    for record in reversed(records):
        if record.entry is None or not record.entry.left:
            made = record if record.outer is made else Modes(made, record.entry, **record.changes)
    if home["now"] is now:  # else that thread has gone on meanwhile, and drops them when it next leaves a block
        home["now"] = made
        # Who is in a block may put back a record that was left.
        home["disordered"] = made is not None and made.outer is not None


def amend(**changes: Any) -> None:
    """Change modes from now on: for as long as the block lasts that has set them, or for good where none has."""
    now = mode.now
    for name, value in changes.items():
        now = _amended(now, name, value)
    mode.now = now
    tidy()


def _amended(record: Modes, name: str, value: Any) -> Modes:
    if name in record.changes or record.outer is None:
        return Modes(record.outer, record.entry, **{**record.changes, name: value})
    return Modes(_amended(record.outer, name, value), record.entry, **record.changes)


class Block:
    """A context manager that changes modes of this thread. Subclasses say in `changes` how."""

    def changes(self) -> dict[str, Any]:
        raise NotImplementedError

    def enter(self) -> None:
        entry = Entry()
        self.__dict__.setdefault("_entries", []).append(entry)
        mode.now = Modes(mode.now, entry, **self.changes())

    def leave(self) -> None:
        """Take this block's modes back, in whatever order and on whatever thread; raise if there is nothing to take."""
        entries: list[Entry] = self.__dict__.get("_entries") or []
        now = mode.now
        if entries and now.entry is entries[-1]:
            assert now.outer is not None and now.entry is not None
            now.entry.left = True
            mode.now = now.outer
            entries.remove(now.entry)
            tidy()
        else:
            self._leave_disordered(entries)

    def _leave_disordered(self, entries: list[Entry]) -> None:
        home, name = mode.__dict__, type(self).__name__
        mine = [entry for entry in entries if entry.home is home]
        if not entries:
            raise ModeError(f"{name}: left without having been entered",
                            why="__exit__ was called twice, or without __enter__", fix=f"with {name}(...): ...")
        entry = (mine or entries)[-1]
        entry.left = entry.home["disordered"] = True
        _settle(entry.home)
        entries.remove(entry)
        tidy()
        if not mine:
            raise ModeError(f"{name}: left on another thread than it was entered on",
                            why="a mode is one thread's; it has ended there nevertheless",
                            fix=f"with {name}(...): ..., inside the function that the thread runs")

    def __enter__(self) -> Any:
        self.enter()
        return self

    def __exit__(self, *error: Any) -> None:
        self.leave()
