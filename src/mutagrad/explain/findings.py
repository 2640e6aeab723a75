"""What is worth looking at first in a trace: overwritten values, gradients that vanished, what is not a number."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base.provenance import describe
from .recording import Event
from .sources import lane_name

VANISHED, EXPLODED = 1e-6, 1e6  # of the norm at which a sweep began
MOST = 12  # findings of one kind


class Finding(NamedTuple):
    """One thing to look at: which event, how serious ("wrong", "careful" or "note"), and what to say of it."""

    event: int
    level: str
    title: str
    text: str


def findings(events: Sequence[Event]) -> list[Finding]:
    """Return the findings of a trace, the most serious first."""
    by_number = {event.number: event for event in events}
    found = [*_errors(events), *_not_finite(events), *_adjoints(events, by_number), *_buried(events, by_number),
             *_overwritten(events, by_number)]
    return sorted(found, key=lambda finding: ("wrong", "careful", "note").index(finding.level))


def _errors(events: Sequence[Event]) -> Iterator[Finding]:
    for event in [event for event in events if event.error][-MOST:]:
        yield Finding(event.number, "wrong", "raised", f"{_at(event)} raised {_first_line(event.error)}")


def _not_finite(events: Sequence[Event]) -> Iterator[Finding]:
    first = next((event for event in events if event.wrong and event.kind != "backward"), None)
    if first is not None:
        yield Finding(first.number, "wrong", "not finite",
                      f"the first nan or inf is made at {_at(first)}: {first.wrong} of its elements")


def _adjoints(events: Sequence[Event], by_number: dict[int, Event]) -> Iterator[Finding]:
    sweeps: dict[int, list[Event]] = {}
    for event in events:
        if event.kind == "backward" and event.sweep is not None and event.adjoint is not None:
            sweeps.setdefault(event.sweep, []).append(event)
    seen: set[tuple[str, str]] = set()
    for visits in sweeps.values():
        for finding in _of_sweep(visits, by_number):
            key = finding.title, finding.text.partition(" (")[0]
            if key not in seen and len(seen) < MOST:
                seen.add(key)
                yield finding


def _of_sweep(visits: Sequence[Event], by_number: dict[int, Event]) -> Iterator[Finding]:
    """Yield the first place of a sweep at which adjoints are nan, all zero, tiny, or huge."""
    norms = [visit.adjoint.norm for visit in visits if visit.adjoint is not None and visit.adjoint.norm > 0]
    is_whole = visits[0].number - 1 in by_number  # else its beginning is not shown, and nothing is large or small
    start = norms[0] if norms and is_whole else None
    done: set[str] = set()
    for event in visits:
        kind = _kind_of(event, start)
        if kind and kind not in done:
            done.add(kind)
            assert event.adjoint is not None
            yield Finding(event.number, "wrong" if kind == "nan gradient" else "careful", kind,
                          f"{_SAID[kind]} {_at(event)} (norm {event.adjoint.norm:.3g} in sweep {event.sweep})"
                          f"{_maker(event, visits, by_number, start)}")


def _maker(event: Event, visits: Sequence[Event], by_number: dict[int, Event],
           start: float | None) -> str:
    """Say whose derivative made an adjoint what it is: the newest visit that read the storage, itself still well."""
    for visit in reversed([visit for visit in visits if visit.number < event.number]):
        forward = by_number.get(visit.forward or 0)
        if forward is not None and event.lane in forward.reads and not _kind_of(visit, start):
            return f", by the derivative of {visit.name} at {_at(visit)}"
    return ""


_SAID = {"nan gradient": "the gradient is first nan or inf at", "zero gradient": "the gradient is zero at",
         "vanished": "the gradient has all but vanished at", "exploded": "the gradient has exploded at"}


def _kind_of(event: Event, start: float | None) -> str:
    facts = event.adjoint
    if facts is None or not facts.size:
        return ""
    if facts.nans or facts.infinite:
        return "nan gradient"
    if facts.zeros == facts.size:
        return "zero gradient"
    if start is None:
        return ""
    return "vanished" if facts.norm < start * VANISHED else "exploded" if facts.norm > start * EXPLODED else ""


def _buried(events: Sequence[Event], by_number: dict[int, Event]) -> Iterator[Finding]:
    for event in [event for event in events if event.buries is not None][:MOST]:
        lost = by_number.get(event.buries or 0)
        of = f"what {_at(lost)} wrote" if lost is not None else "an earlier result"
        yield Finding(event.number, "careful", "overwritten unread",
                      f"{_at(event)} overwrites {of} before anything has read it: no gradient goes there")


def _overwritten(events: Sequence[Event], by_number: dict[int, Event]) -> Iterator[Finding]:
    """By the line that writes and the line that saved: a loop is one finding."""
    seen: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        for saver in event.overwrites:
            saved = by_number.get(saver)
            key = _at(event), _at(saved) if saved is not None else "an earlier event"
            seen.setdefault(key, []).append(event)
    for (writes, saved_at), found in list(seen.items())[:MOST]:
        times = f", {len(found)} times" if len(found) > 1 else ""
        copied = sum(event.copied for event in found)
        kept = f"; {copied} bytes were copied to keep it" if copied else "; a copy was kept"
        yield Finding(found[0].number, "careful", "overwrites a saved value",
                      f"{writes} overwrites what {saved_at} saved for backward{times} "
                      f"(PyTorch may refuse its backward){kept}")


def _at(event: Event) -> str:
    if event.where is None and event.lane is not None:
        return f"the leaf {lane_name(event.lane)}".rstrip()
    if event.where is None:
        return event.name
    place, _, source = describe(event.where).partition(": ")
    return f"{place} `{source.partition('  #')[0].strip()}`" if source else place


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
