"""What one item costs when there are very many: `make bench-scale`, and a part of `make bench`.

    python benchmarks/scale.py
    python benchmarks/scale.py --only nodes --share 0.1     # a tenth of it, and a hundredth
    python benchmarks/scale.py --json scale.json

Three shapes: 100,000 views of one storage, all alive, each written through; a million writes into one tensor, each reading
what the last one wrote; and a chain of ten million nodes. Each is measured at a tenth of its size and at the whole, in a fresh
process, twice in turn, and the least counts. If the cost of an item is constant, the two columns are equal, up to what a
larger heap costs the caches of the processor.

Microseconds are processor time, which other programs disturb little: those of recording, those that Python's garbage collector
takes meanwhile, and those of `backward()` together with the end of the graph. The collector visits all objects whenever their number
has grown by a quarter, and misses the caches more often when there are many: what it takes is not ours, but users pay it. Bytes are what the process has grown by when everything is recorded, and at the peak of the sweep. What is
counted, not measured, is from `mutagrad.stats()`: nodes that the sweep visits, bytes of adjoint that it touches, bytes that it
allocates or that writes copied aside, and records of other values that writes looked at; those must be equal in both columns.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import mutagrad as mg
from bench import environment, machine, paint
from figures import Figures
from resident import status

ROUNDS = 2
FIELDS = {
    "record": "recording, µs",
    "collector": "and Python's collector, µs",
    "backward": "backward, µs",
    "bytes": "recorded, bytes",
    "peak": "at the peak, bytes",
    "nodes": "nodes visited",
    "touched": "adjoint touched, bytes",
    "copied": "allocated or copied, bytes",
    "examined": "records examined",
}
TIMES = "record", "collector", "backward"
BYTES = "bytes", "peak"


@dataclass(frozen=True)
class Shape:
    title: str
    size: int
    record: Callable[[int], tuple[Any, ...]]  # how many -> what to sum, and what must stay alive


def views(n: int) -> tuple[Any, ...]:
    y = mg.ones(n, requires_grad=True) * 2
    alive = [y[i] for i in range(n)]
    for view in alive:
        view.mul_(0.5)
    return y, alive


def writes(n: int) -> tuple[Any, ...]:
    y = mg.ones(n, requires_grad=True) * 2
    for i in range(1, n):
        y[i] = y[i] * 0.5 + y[i - 1] * 0.5
    return (y,)


def nodes(n: int) -> tuple[Any, ...]:
    y = mg.ones(2, requires_grad=True)
    for _ in range(n):
        y = y + 1.0
    return (y,)


SHAPES = {
    "views": Shape("views of one storage, each written through", 100_000, views),
    "writes": Shape("writes into one tensor, y[i] = y[i] * 0.5 + y[i-1] * 0.5", 1_000_000, writes),
    "nodes": Shape("nodes in a chain, y = y + 1.0", 10_000_000, nodes),
}

# -------------------------------------------------------------------------------------- measuring


class Collector:
    """Counts the time that Python's garbage collector takes."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, phase: str, _: dict[str, int]) -> None:
        self.seconds += process_time() * (1 if phase == "stop" else -1)

    def __enter__(self) -> Collector:
        gc.callbacks.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self)


def once(name: str, size: int) -> dict[str, float]:
    """Record and sweep a program of `size` items in this process: what one of them costs."""
    SHAPES[name].record(10)[0].sum().backward()
    gc.collect()
    before, counted, start = status("VmRSS"), mg.stats(), process_time()
    with Collector() as collector:
        made = SHAPES[name].record(size)
    recorded, grown = process_time(), status("VmRSS")
    made[0].sum().backward()
    del made
    end, used = process_time(), mg.stats() - counted
    return {
        "record": (recorded - start - collector.seconds) * 1e6 / size,
        "collector": collector.seconds * 1e6 / size,
        "backward": (end - recorded) * 1e6 / size,
        "bytes": (grown - before) / size,
        "peak": (status("VmHWM") - before) / size,
        "nodes": used.nodes / size,
        "touched": used.touched / size,
        "copied": (used.allocated + used.protected) / size,
        "examined": used.examined / size,
    }


def fresh(name: str, size: int) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--once", name, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(1))
    return json.loads(done.stdout) if done.returncode == 0 else {"error": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]}


def available() -> int:
    """Bytes of memory that can be had."""
    text = Path("/proc/meminfo").read_text()
    return 1024 * int(text.partition("MemAvailable:")[2].split()[0])


def measure(name: str, share: float) -> dict[str, Any]:
    size = int(SHAPES[name].size * share)
    found: dict[int, list[dict[str, Any]]] = {size // 10: [], size: []}
    row: dict[str, Any] = {"name": name, "title": SHAPES[name].title, "sizes": list(found), "error": ""}
    for _ in range(ROUNDS):
        for count, attempts in found.items():
            needed = count * found[size // 10][0]["peak"] if found[size // 10] else 0
            if needed > 0.9 * available():
                return row | {"error": f"{count:,} need {needed / 2**30:.1f} GiB of memory, which are not free"}
            attempts.append(fresh(name, count))
            if "error" in attempts[-1]:
                return row | {"error": attempts[-1]["error"]}
    return row | {key: [min(a[key] for a in attempts) for attempts in found.values()] for key in FIELDS}


# ---------------------------------------------------------------------------------------- printing


def figure(key: str, value: float) -> str:
    return f"{value:.2f}" if key in TIMES else f"{value:.0f}" if key in BYTES else f"{value:.3g}"


def show(row: dict[str, Any]) -> None:
    print(paint(f"\n{row['title']:60}", "1") + "".join(f"{count:>14,}" for count in row["sizes"]))
    if row["error"]:
        return print(f"    {row['error']}", flush=True)
    for key, title in FIELDS.items():
        print(f"    {title:56}" + "".join(f"{figure(key, value):>14}" for value in row[key]), flush=True)


# -------------------------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="what one item costs when there are very many")
    parser.add_argument("--only", action="append", choices=SHAPES, metavar="NAME", help="this shape (repeatable)")
    parser.add_argument("--share", type=float, default=1.0, help="of the full sizes (1.0)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to FILE")
    parser.add_argument("--resume", action="store_true", help="keep the rows that FILE has, and measure the others")
    parser.add_argument("--once", nargs=2, metavar=("NAME", "SIZE"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.once:
        return print(json.dumps(once(args.once[0], int(args.once[1]))))
    figures = Figures(args.json, machine(1), args.resume)
    print("One item among many, mutagrad: the columns are equal where its cost is constant")
    for name in SHAPES:
        if args.only and name not in args.only:
            continue
        if name not in figures.rows:
            figures.add(measure(name, args.share))
        show(figures.rows[name])


if __name__ == "__main__":
    main()
