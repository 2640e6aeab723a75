"""Writes docs/coverage.md: how much of PyTorch's table of operations is here. `make coverage` runs it.

The judgement is that of test_op_db.py, on all samples; test_coverage.py checks the names and counts without them.
"""
from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .compare import attempt
from .test_op_db import CLAIMED, DELIBERATE, HERE, PARTLY, entry_id, judge, namespace, our_function, torch

DOCUMENT = Path(__file__).parents[2] / "docs" / "coverage.md"
INTRODUCTION = """# Coverage

How much of PyTorch {version}'s own table of operations (`op_db`, {all} entries for the CPU) is here, by PyTorch's own samples:
value, type, shape and gradient of the function, the method, the form in place and the one with `out=`, in {calls:,} calls.
`make coverage` wrote this document; `make oracle` checks every entry, and the errors that bad input raises, too.
"""


class Outcome(NamedTuple):
    """What came of judging one entry."""

    entry: str
    calls: int
    failed: bool
    in_part: bool


def judged(number: int) -> Outcome:
    """Judges one entry, by its number because entries cannot be sent to another process."""
    op = CLAIMED[number]
    verdict, error = attempt(lambda: judge(op), quiet=True)
    if error is not None:
        print(f"{entry_id(op)}: {error!r}")
        return Outcome(entry_id(op), 0, True, False)
    return Outcome(verdict.entry, verdict.compared, bool(verdict.failures), bool(verdict.missing))


def by_names(calls: int) -> list[Outcome]:
    """What the judgement must give, as the tables of test_op_db.py say it."""
    entries = [entry_id(op) for op in CLAIMED]
    return [Outcome(entry, calls if i == 0 else 0, False, entry in PARTLY) for i, entry in enumerate(entries)]


def missing() -> list[Any]:
    return [op for op in HERE if our_function(op.name) is None]


def rows(header: str, lines: Iterable[tuple[Any, ...]]) -> str:
    head = header.split(" | ")
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in (head, ["---"] * len(head), *lines)) + "\n"


def code(entries: Iterable[str]) -> str:
    return ", ".join(f"`{entry}`" for entry in entries)


def counts(outcomes: list[Outcome]) -> str:
    """All entries, by namespace and by what came of them."""
    spaces = {entry_id(op): namespace(op) for op in HERE}
    passed = Counter(spaces[o.entry] for o in outcomes if not o.failed and not o.in_part)
    partly = Counter(spaces[o.entry] for o in outcomes if o.in_part and not o.failed)
    failed = Counter(spaces[o.entry] for o in outcomes if o.failed)
    absent, everything = Counter(map(namespace, missing())), Counter(spaces.values())
    lines = [(space, n, passed[space], partly[space], failed[space], absent[space]) for space, n in everything.most_common()]
    totals = ("**all**", *(sum(line[i] for line in lines) for i in range(1, 6)))
    return rows("namespace | entries | pass | pass in part | fail | not implemented", [*lines, totals])


def on_purpose() -> str:
    """The reasons of differences, each with the entries that it holds for."""
    reasons: dict[str, list[str]] = {}
    for meant in DELIBERATE:
        found = reasons.setdefault(meant.reason, [])
        found += [meant.entry] if meant.entry not in found else []
    return rows("in what | entries", ((reason, code(entries)) for reason, entries in reasons.items()))


def render(outcomes: list[Outcome]) -> str:
    """The document."""
    failed = [o.entry for o in outcomes if o.failed]
    partly = [(code([o.entry]), PARTLY.get(o.entry, "")) for o in outcomes if o.in_part]
    absent: dict[str, list[str]] = {}
    for op in missing():
        absent.setdefault(namespace(op), []).append(entry_id(op))
    parts = [
        INTRODUCTION.format(version=torch.__version__.partition("+")[0], all=len(HERE), calls=sum(o.calls for o in outcomes)),
        counts(outcomes),
        f"## Fail\n\n{code(failed)}\n" if failed else "",
        "## Pass in part\n\nWhat is missing raises an error that says so.\n\n" + rows("entry | missing", partly),
        "## Different on purpose\n\nThese pass but for samples in which the difference is meant. [differences.md](differences.md) has the principles.\n\n" + on_purpose(),
        "## Not implemented\n\n" + rows("namespace | entries", ((space, code(sorted(entries))) for space, entries in sorted(absent.items()))),
    ]
    return "\n".join(part for part in parts if part)


def main() -> None:
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        outcomes = pool.map(judged, range(len(CLAIMED)), chunksize=8)
    DOCUMENT.write_text(render(outcomes), encoding="utf-8")
    print(counts(outcomes))


if __name__ == "__main__":
    main()
