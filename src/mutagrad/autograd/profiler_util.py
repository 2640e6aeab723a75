"""What a profiler has seen: calls, summed by name, as a table. Times are in microseconds."""
from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ..base.errors import BadValue

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]


def _format_time(microseconds: float) -> str:
    """Return a duration with its unit."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class Interval:
    """From when to when."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


def _lasts_within(event: FunctionEvent, outer: FunctionEvent) -> bool:
    """Whether one event begins before another ends, and does not outlast it."""
    inside, around = event.time_range, outer.time_range
    return inside.start < around.end and inside.end <= around.end


class _Times:
    """The figures that calls and their sums have in common; there are no devices, so theirs are zero."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """Of one call, on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    device_time = cuda_time = 0.0

    @property
    def cpu_time_total_str(self) -> str:
        return _format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return _format_time(self.self_cpu_time_total)

    @property
    def cpu_time_str(self) -> str:
        return _format_time(self.cpu_time)


class FunctionEvent(_Times):
    """One call, or one named block."""

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, node_id: int = 0,
                 input_shapes: list[list[int]] | None = None) -> None:
        self.id, self.node_id, self.name, self.key, self.thread, self.count = id, node_id, name, name, thread, 1
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes if input_shapes is not None else []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return (f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} thread={self.thread} "
                f"input_shapes={self.input_shapes}>")


class FunctionEventAvg(_Times):
    """The calls of one name together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count, self.cpu_time_total, self.self_cpu_time_total = 0, 0.0, 0.0
        self.input_shapes: list[list[int]] | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count one more call, or all of another sum."""
        self.key = other.key if self.key is None else self.key
        if other.key != self.key:
            raise BadValue(f"FunctionEventAvg: calls of {other.key!r} cannot be added to those of {self.key!r}")
        self.input_shapes = other.input_shapes if self.input_shapes is None else self.input_shapes
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} calls={self.count} self_cpu_time={self.self_cpu_time_total_str} "
                f"cpu_time={self.cpu_time_str}>")


class EventList(list[Any]):
    """Calls in the order in which they began, or their sums."""

    def _populate_cpu_children(self) -> None:
        """Make each event the child of the shortest one on its thread that lasts as long."""
        for event in self:
            event.cpu_children, event.cpu_parent = [], None
        for thread in {event.thread for event in self}:
            open_events: list[FunctionEvent] = []
            of_thread = (e for e in self if e.thread == thread)
            for event in sorted(of_thread, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while open_events and not _lasts_within(event, open_events[-1]):
                    open_events.pop()
                if open_events:
                    open_events[-1].cpu_children.append(event)
                    event.cpu_parent = open_events[-1]
                open_events.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(self, group_by_input_shapes: bool = False) -> EventList:
        """Return the calls summed by name, or by name and the shapes of their arguments."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            found.setdefault((event.key, shapes), FunctionEventAvg()).add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """Return all of them together."""
        total = FunctionEventAvg()
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
        total.key = "Total"
        return total

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
              max_name_column_width: int = 55, max_shapes_column_width: int = 80, header: str | None = None,
              top_level_events_only: bool = False) -> str:
        """Return the events as text, one a line."""
        events = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
        if sort_by is not None:
            if not hasattr(FunctionEventAvg(), sort_by):
                raise BadValue(f"table: cannot sort by {sort_by!r}", fix="sort_by='self_cpu_time_total'")
            events.sort(key=lambda event: -getattr(event, sort_by))
        total = self.self_cpu_time_total
        shown = events if row_limit < 0 else events[:row_limit]
        rows = [("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls")]
        rows += [(str(e.key)[:max_name_column_width], _share(e.self_cpu_time_total, total), e.self_cpu_time_total_str,
                  _share(e.cpu_time_total, total), e.cpu_time_total_str, e.cpu_time_str, str(e.count)) for e in shown]
        title = [header] if header else []
        return "\n".join([*title, *_aligned(rows), f"Self CPU time total: {_format_time(total)}", ""])

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for Chrome's viewer of traces."""
        events = [{"name": e.name, "ph": "X", "ts": e.time_range.start, "dur": e.cpu_time_total, "tid": e.thread,
                   "pid": "CPU", "args": {}} for e in self]
        with open(path, "w") as file:
            json.dump(events, file)


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    line = "  ".join("-" * width for width in widths)
    yield line
    for i, row in enumerate(rows):
        yield "  ".join(cell.rjust(width) for cell, width in zip(row, widths))
        if not i:
            yield line
    yield line
