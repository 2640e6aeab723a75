"""The page of a trace: everything that it shows, as one JSON text inside of one HTML file that needs no other.

Events are columns of numbers, because 50,000 objects with names would be five times as long and slower to read.
"""
from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from typing import Any

from ..base.provenance import Where, line_number
from .findings import findings
from .recording import Event, Events, Lane, Recording
from .sources import around, columns, expression, file_name, function_name, lane_name, source_at, variable

_WEB = os.path.join(os.path.dirname(__file__), "web")
KINDS = ("new", "write", "view", "read", "step", "unseen", "sweep", "backward")


def page(trace: Recording) -> str:
    """Return the HTML of a trace."""
    text = _file("page.html")
    for mark, part in (("/*STYLE*/", _file("page.css")), ("/*MODEL*/", _file("model.js")),
                       ("/*DRAWING*/", _file("drawing.js")), ("/*PANELS*/", _file("panels.js")),
                       ("/*DATA*/", as_script(page_data(trace)))):
        text = text.replace(mark, part)
    return text


def _file(name: str) -> str:
    with open(os.path.join(_WEB, name), encoding="utf-8") as file:
        return file.read()


def as_script(data: Any) -> str:
    """Return JSON that may stand inside of a script element: nothing in it ends that, and no number is not one."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def page_data(trace: Recording) -> dict[str, Any]:
    """Return all that a page shows."""
    events = trace.events
    places = Places()
    rows = [_row(event, trace.began, places) for event in events]
    lanes = _lanes(events)
    ended = trace.ended or max((event.ended for event in events), default=trace.began)
    return {
        "title": trace.title, "error": trace.error, "count": trace.totals.count, "folded": trace.totals.folded,
        "limit": trace.totals.limit, "storages": trace.storages, "sweeps": trace.sweeps, "peak": trace.peak,
        "seconds": (ended - trace.began) / 1e9, "kinds": KINDS,
        "unrecorded": trace.unrecorded, "failure": trace.failure,
        "events": rows, "details": {event.number: found for event in events if (found := _details(event))},
        "lanes": [_lane(lane, places) for lane in lanes],
        "findings": [finding._asdict() for finding in findings(events)],
        "totals": _totals(trace.totals, places), "places": places.rows, "names": list(places.names),
        "files": places.sources(), "threads": list(places.threads)}


class Places:
    """Lines, names and threads by number, each once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.names: dict[str, int] = {}
        self.threads: dict[int, int] = {}
        self._numbers: dict[Where, int] = {}
        self._lines: dict[tuple[str, int], None] = {}

    def place(self, where: Where | None) -> int:
        if where is None:
            return -1
        if where not in self._numbers:
            self._numbers[where] = len(self.rows)
            code, line = where[0], line_number(where)
            self.show(code.co_filename, line)
            self.rows.append({"file": file_name(code.co_filename), "line": line, "text": source_at(where).strip(),
                              "in": function_name(code), "at": columns(where), "what": expression(where),
                              "name": variable(where)})
        return self._numbers[where]

    def show(self, filename: str, line: int) -> None:
        """Have the source around a line be part of the page."""
        self._lines[filename, line] = None

    def name(self, text: str) -> int:
        return self.names.setdefault(text, len(self.names))

    def thread(self, number: int) -> int:
        return self.threads.setdefault(number, len(self.threads))

    def sources(self) -> dict[str, dict[int, str]]:
        """Return the source around every line, by file and number."""
        found: dict[str, dict[int, str]] = {}
        for filename, line in self._lines:
            found.setdefault(file_name(filename), {}).update(around(filename, line))
        return found


def _row(event: Event, began: int, places: Places) -> list[Any]:
    """Return the columns of an event: number, kind, name, place, thread, began, time, live, norm."""
    norm = None if event.adjoint is None else number(event.adjoint.norm)
    return [event.number, KINDS.index(event.kind), places.name(event.name), places.place(event.where),
            places.thread(event.thread), (event.began - began) // 1000, max(event.ended - event.began, 0) / 1000,
            event.live, norm]


def number(value: float) -> Any:
    """Return a number as JSON can hold it: what is not finite as text."""
    return value if math.isfinite(value) else str(value)


def _details(event: Event) -> dict[str, Any]:
    """Return what is particular to an event: whatever is not there is not mentioned."""
    found: dict[str, Any] = {
        "writes": [[touch.lane.number, touch.low, touch.high, *touch.versions] for touch in event.writes],
        "reads": [lane.number for lane in event.reads],
        "saves": [[None if s.lane is None else s.lane.number, s.name, s.bytes, int(s.copied)] for s in event.saves],
        "overwrites": list(event.overwrites[:50]), "buries": event.buries, "copied": event.copied, "error": event.error,
        "values": _finite(event.values), "shape": event.shape, "dtype": event.dtype, "index": event.index,
        "wrong": event.wrong, "forward": event.forward, "sweep": event.sweep, "nodes": event.nodes,
        "lane": None if event.lane is None else event.lane.number,
        "adjoint": None if event.adjoint is None else [number(part) for part in event.adjoint]}
    kept = {name: value for name, value in found.items() if value not in (None, [], "", 0)}
    if event.values is not None:
        kept["values"] = found["values"]  # which may be 0
    return kept


def _finite(values: Any) -> Any:
    """Return nested lists with text in the place of what JSON has no number for."""
    if isinstance(values, list):
        return [_finite(value) for value in values]
    if isinstance(values, complex):
        return str(values)
    return number(values) if isinstance(values, float) else values


def _lanes(events: Iterable[Event]) -> list[Lane]:
    found: dict[int, Lane] = {}
    for event in events:
        for lane in (*(touch.lane for touch in event.writes), *event.reads, event.lane):
            if lane is not None:
                found[lane.number] = lane
    return sorted(found.values(), key=lambda lane: lane.number)


def _lane(lane: Lane, places: Places) -> dict[str, Any]:
    site = None if lane.site is None else [places.place(lane.site[0]), places.name(lane.site[1])]
    return {"number": lane.number, "name": lane_name(lane), "shape": lane.shape, "dtype": lane.dtype,
            "bytes": lane.bytes, "born": lane.born, "died": lane.died, "leaf": lane.leaf, "site": site}


def _totals(events: Events, places: Places) -> list[dict[str, Any]]:
    """Return what each line has cost, the dearest first."""
    rows = []
    for (filename, line), total in events.by_line().items():
        places.show(filename, line)
        rows.append({"file": file_name(filename), "line": line, "calls": total.calls, "forward": total.forward / 1000,
                     "backward": total.backward / 1000, "bytes": total.bytes, "copied": total.copied,
                     "nodes": total.nodes, "folded": total.folded,
                     "names": [name for name, _ in sorted(total.names.items(), key=lambda item: -item[1])][:6]})
    return sorted(rows, key=lambda row: -(row["forward"] + row["backward"]))
