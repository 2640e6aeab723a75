"""`with mutagrad.profile() as p:`: time, memory and nodes of each operation at each line, as a table or a Chrome trace.

>>> import mutagrad as mg
>>> x = mg.ones(1000, requires_grad=True)
>>> with mg.profile() as p:
...     y = x * 2
...     y.sum().backward()
>>> [(row.operation, row.calls, row.nodes, row.protected) for row in sorted(p.rows)]
[('backward', 1, 0, 0), ('mul', 1, 1, 0), ('sum', 1, 1, 0)]

What a backward sweep takes is that of the line which made the node, in its column; the rest of `backward()` is its own.
`print(p)` shows the table, `p.by_line()` and `p.by_operation()` add it up, and `p.save("p.json")` writes a file that
chrome://tracing and Perfetto open. (`mutagrad.profiler` is PyTorch's.)
"""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from time import perf_counter_ns
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..base.counters import counters
from ..base.locks import new_lock
from ..base.provenance import Where, describe, line_number
from ..core.graph import Node, Writer, next_order
from ..core.storage import memory_of
from .calls import distinct, is_told, new_nodes, short_name, tensors_in
from .recorder import Recorder
from .sources import file_name
from .watching import Call

_lock = new_lock()


class Row(NamedTuple):
    """What one operation has cost at one line, all calls together. Times are in seconds, memory in bytes."""

    operation: str
    line: str
    """`train.py:12: y = a * b`, "" where it is all lines together."""
    calls: int
    forward: float
    backward: float
    """The time that sweeps took for the nodes that it made."""
    allocated: int
    """Of new storages, and of adjoints that sweeps allocate for its nodes."""
    protected: int
    """Copied so that a write does not change a value saved for backward."""
    nodes: int
    """Of the graph, that it has recorded."""

    @property
    def total(self) -> float:
        return self.forward + self.backward


class Cost:
    """The same while it grows; times in nanoseconds."""

    __slots__ = ("allocated", "backward", "calls", "forward", "nodes", "protected")

    def __init__(self) -> None:
        self.calls = self.forward = self.backward = self.allocated = self.protected = self.nodes = 0

    def add(self, other: Cost) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def row(self, operation: str, line: str) -> Row:
        return Row(operation, line, self.calls, self.forward / 1e9, self.backward / 1e9, self.allocated,
                   self.protected, self.nodes)


Key = tuple[str, Where]  # an operation, and the place that calls it


class profile(Recorder, ContextDecorator):
    """Measures calls and backward sweeps in a block or a decorated function, on this thread and those begun in it.

    Entered again it goes on adding. `max_events` is how many single calls are kept for `save`.

    >>> import mutagrad as mg
    >>> with mg.profile() as p:
    ...     x = mg.ones(3).sum()
    >>> sorted(row.operation for row in p.by_operation())
    ['ones', 'sum']
    """

    def __init__(self, *, max_events: int = 200_000) -> None:
        super().__init__()
        self.max_events, self.dropped = max_events, 0
        self.spans: list[tuple[str, Where | None, int, int, int, bool]] = []
        self._costs: dict[Key, Cost] = {}
        self._made: WeakKeyDictionary[Node, Key] = WeakKeyDictionary()
        # Of each thread and each call that it is in: the time that sweeps took for nodes, the bytes that were copied to
        # protect values meanwhile, and those that were allocated for the gradients of leaves.
        self._inside: dict[int, list[list[int]]] = {}
        self._swept: dict[int, tuple[int, int]] = {}  # of each thread in a sweep, counters after the node before
        self._began = perf_counter_ns()

    # ------------------------------------------------------------------------------------------------------- measuring

    def before(self, call: Call) -> None:
        if self.depth and is_told(call.name, call.args):
            given = [memory_of(tensor) for tensor in distinct(tensors_in([call.args, call.kwargs]))]
            call.notes = given, next_order(), counters.protected
            self._inside.setdefault(call.thread, []).append([0, 0, 0])

    def after(self, call: Call) -> None:
        if call.notes is None:
            return
        given, mark, protected = call.notes
        key = short_name(call.name), call.where
        swept, protected_there, for_leaves = self._inside[call.thread].pop()
        results = distinct(tensors_in(call.result))
        made = new_nodes([*results, *distinct(tensors_in([call.args, call.kwargs]))], mark)
        with _lock:
            cost = self._cost(key)
            cost.calls, cost.nodes = cost.calls + 1, cost.nodes + len(made)
            cost.forward += call.ended - call.began - swept
            cost.protected += counters.protected - protected - protected_there
            cost.allocated += _new_bytes(results, given) + for_leaves
            for node in made:
                self._made[node] = key
            self._span(key[0], call.where, call.began, call.ended, call.thread, False)

    def sweep_began(self, where: Where, roots: Any, wanted: Any) -> None:
        if self._inside.get(threading.get_ident()) or self.is_asked():
            self._swept[threading.get_ident()] = counters.allocated, counters.protected

    def sweep_ended(self) -> None:
        self._swept.pop(threading.get_ident(), None)

    def visited(self, node: Writer, facts: Any, began: int, ended: int) -> None:
        thread = threading.get_ident()
        if thread not in self._swept:
            return
        before = self._swept[thread]
        now = self._swept[thread] = counters.allocated, counters.protected
        if not isinstance(node, Node):
            for call in self._inside.get(thread, [])[-1:]:
                call[2] += now[0] - before[0]
            return
        key = self._made.get(node, (node.op.name, node.where))
        with _lock:
            cost = self._cost(key)
            cost.backward += ended - began
            cost.allocated, cost.protected = cost.allocated + now[0] - before[0], cost.protected + now[1] - before[1]
            for call in self._inside.get(thread, []):
                call[0], call[1] = call[0] + ended - began, call[1] + now[1] - before[1]
            self._span(f"{key[0]} backward", key[1], began, ended, thread, True)

    def _cost(self, key: Key) -> Cost:
        if key not in self._costs:
            self._costs[key] = Cost()
        return self._costs[key]

    def _span(self, name: str, where: Where | None, began: int, ended: int, thread: int, backward: bool) -> None:
        if len(self.spans) < self.max_events:
            self.spans.append((name, where, began, ended, thread, backward))
        else:
            self.dropped += 1

    # --------------------------------------------------------------------------------------------------------- answers

    @property
    def rows(self) -> list[Row]:
        """A row for each operation at each line, the dearest first.

        >>> import mutagrad as mg
        >>> with mg.profile() as p:
        ...     x = mg.ones(3, requires_grad=True) * 2
        >>> sorted(row.operation for row in p.rows)
        ['mul', 'ones']
        """
        return self._added_up(lambda operation, where: (operation, describe(where)))

    def by_line(self) -> list[Row]:
        """A row for each line; its operation is the list of those that it calls.

        >>> import mutagrad as mg
        >>> with mg.profile() as p:
        ...     x = mg.ones(3, requires_grad=True) * 2
        >>> len(p.by_line())
        1
        """
        names: dict[str, dict[str, None]] = {}
        for operation, where in list(self._costs):
            names.setdefault(describe(where), {})[operation] = None
        return self._added_up(lambda _, where: (", ".join(names[describe(where)]), describe(where)))

    def by_operation(self) -> list[Row]:
        """A row for each operation.

        >>> import mutagrad as mg
        >>> with mg.profile() as p:
        ...     x = mg.ones(3, requires_grad=True) * 2
        >>> sorted(row.operation for row in p.by_operation())
        ['mul', 'ones']
        """
        return self._added_up(lambda operation, _: (operation, ""))

    def _added_up(self, group: Callable[[str, Where], tuple[str, str]]) -> list[Row]:
        found: dict[tuple[str, str], Cost] = {}
        for (operation, where), cost in list(self._costs.items()):
            found.setdefault(group(operation, where), Cost()).add(cost)
        return sorted((cost.row(*name) for name, cost in found.items()), key=lambda row: -row.total)

    def __str__(self) -> str:
        return table(self.rows)

    def __repr__(self) -> str:
        rows = self.rows
        return (f"<profile of {sum(row.calls for row in rows)} calls, {seconds(sum(row.total for row in rows))}; "
                "print it for the table>")

    def _repr_html_(self) -> str:
        return f"<pre>{str(self).replace('&', '&amp;').replace('<', '&lt;')}</pre>"

    def save(self, path: Any) -> None:
        """Write what was measured as a Chrome trace: chrome://tracing and Perfetto show it.

        >>> import mutagrad as mg
        >>> with mg.profile() as p:
        ...     x = mg.ones(3, requires_grad=True) * 2
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     p.save(f"{folder}/trace.json")
        ...     os.listdir(folder)
        ['trace.json']
        """
        events = [_chrome(*span, since=self._began) for span in self.spans]
        data = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"dropped": self.dropped}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data, file)


def _new_bytes(results: Iterable[Any], given: list[Any]) -> int:
    """Return the bytes of storages that a call has made: those of its results that it was not given."""
    made = {id(memory): memory.buffer.nbytes for memory in map(memory_of, results)
            if not any(memory is other for other in given)}
    return int(sum(made.values()))


def _chrome(name: str, where: Where | None, began: int, ended: int, thread: int, backward: bool,
            since: int) -> dict[str, Any]:
    place = {} if where is None else {"line": f"{file_name(where[0].co_filename)}:{line_number(where)}",
                                      "source": describe(where).partition(": ")[2]}
    return {"name": name, "cat": "backward" if backward else "forward", "ph": "X", "ts": (began - since) / 1000,
            "dur": (ended - began) / 1000, "pid": os.getpid(), "tid": thread, "args": place}


# ----------------------------------------------------------------------------------------------------------- as a table


def table(rows: list[Row]) -> str:
    """Return rows as text, with what they add up to."""
    heads = ("operation", "calls", "total", "forward", "backward", "allocated", "protected", "nodes", "line")
    cells = [heads, *(_cells(row.operation, row, row.line) for row in rows)]
    if len(rows) > 1:
        whole = Row("total", "", *(sum(column) for column in zip(*(row[2:] for row in rows))))
        cells.append(_cells("total", whole, ""))
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads) - 1)]
    lines = ["  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:])),
                        row[-1]]).rstrip() for row in cells]
    return "\n".join(lines)


def _cells(name: str, row: Row, line: str) -> tuple[str, ...]:
    return (name, str(row.calls), seconds(row.total), seconds(row.forward), seconds(row.backward),
            size(row.allocated), size(row.protected), str(row.nodes), line)


def seconds(value: float) -> str:
    """Return a time as people write it: `1.25 ms`."""
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.2f} {unit}"
    return f"{value * 1e6:.1f} µs"


def size(value: int) -> str:
    """Return a number of bytes as people write it: `1.5 KiB`."""
    if value < 1024:
        return f"{value} B"
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << power:
            return f"{value / (1 << power):.1f} {unit}"
    raise AssertionError(value)
