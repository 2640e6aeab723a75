"""mutagrad against PyTorch, side by side: `make bench`.

    python benchmarks/bench.py                       # everything, about three minutes
    python benchmarks/bench.py --list
    python benchmarks/bench.py --only small_mul --only memory
    python benchmarks/bench.py --markdown            # the table in the README
    python benchmarks/bench.py --check               # exit 1 if a target is missed
    python benchmarks/bench.py --json figures.json --resume   # rows are written as they come; go on where it was cut off

How it is measured. Each library runs the same program (`programs.py`) in its own process (`worker.py`), and
the two take turns: mutagrad, PyTorch, mutagrad, PyTorch ... One sample is the mean over about 20 ms, or one
run where a run takes longer; the figure is the least of all samples, since noise from the rest of the machine
only ever adds; a row has 15 turns, or those that begin within 6 seconds, but at least 5 (the loop of 100,000
writes has 2: PyTorch is quadratic there and takes some 8 seconds a run). Python's garbage collector stays on,
as it is for users, and freeing the graph is part of the time. Gradients are compared: a row whose gradients
differ fails.

Imports are timed inside fresh interpreters. Memory is the peak of the resident set over three runs in a fresh
process, less what it was before them (Linux only).

The ratio is what to read: it survives a slower machine. It does not survive a busy one: with a core taken by
another program, PyTorch's two threads wait for each other, and a softmax goes from 0.25 to 44 ms. So the
processor time that others used is measured too; a row during which they used more than a tenth of the machine
is measured once more, and says so if that was no better. PyTorch compared with itself in this way came out
between 0.95 and 1.09 (memory 0.99): differences of that size mean nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from figures import Figures
from programs import ROWS, Row

OURS, THEIRS = "mutagrad", "torch"
LEAST_ROUNDS, ROW_S = 5, 6.0
QUIET = 0.1  # others' share of the machine that we put up with
IMPORT = "from time import perf_counter as t; a = t(); import {}; print(t() - a)"

Measure = Callable[[str], dict]  # library -> {"value", "gradient"?} or {"error"}


@dataclass
class Result:
    name: str
    title: str
    group: str
    mutagrad: float
    torch: float
    target: float | None
    error: str = ""
    others: float = 0.0  # the share of the machine that other programs used meanwhile

    @property
    def ratio(self) -> float:
        return self.mutagrad / self.torch

    @property
    def missed(self) -> bool:
        return bool(self.error) or (self.target is not None and not self.ratio <= self.target)


# -------------------------------------------------------------------------------------- measuring


class Worker:
    """A library in a process of its own; ask it by `ask("time", "small_mul")`."""

    options: dict[str, object] = {}  # of Popen

    def __init__(self, library: str, threads: int, table: str = "programs", python: str = sys.executable, **settings: str) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("worker.py")), library, table],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(threads) | settings,
            **self.options,
        )

    def ask(self, task: str, name: str, *details: float | str) -> dict:
        try:
            print(json.dumps([task, name, *details]), file=self.process.stdin, flush=True)
            return self.answer()
        except (BrokenPipeError, json.JSONDecodeError):
            return {"error": f"the process ended with status {self.process.wait()}"}

    def answer(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def seconds(self) -> float:
        """Processor time that it has used so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def environment(threads: int) -> dict[str, str]:
    pools = "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"
    return os.environ | dict.fromkeys(pools, str(threads))


def measure_import(library: str) -> dict:
    done = subprocess.run([sys.executable, "-c", IMPORT.format(library)], capture_output=True, text=True)
    return {"error": done.stderr.strip().splitlines()[-1]} if done.returncode else {"value": float(done.stdout)}


def undisturbed(attempt: Callable[[], Result], used: Callable[[], float]) -> Result:
    """Compare, and once more if programs beside what we `used` were in the way; the quieter of the two."""
    tries: list[Result] = []
    while len(tries) < 2 and not (tries and (tries[0].error or tries[0].others < QUIET)):
        tries.append(observed(attempt, used))
    return min(tries, key=lambda r: r.others)


def observed(attempt: Callable[[], Any], used: Callable[[], float]) -> Any:
    """The result of an attempt, with the share of the machine that programs beside what we `used` took meanwhile."""
    start, busy, ours = perf_counter(), machine_seconds(), used()
    r = attempt()
    others = machine_seconds() - busy - (used() - ours)
    r.others = max(0.0, others / (perf_counter() - start) / (os.cpu_count() or 1))
    return r


def machine_seconds() -> float:
    """Processor time that all programs together have used."""
    try:
        user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    except OSError:
        return 0.0
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def our_seconds() -> float:
    """Processor time of this program and of the workers that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def recorded(rows: list[Row], figures: Figures, measure: Callable[[Row], Result]) -> Iterator[Result]:
    """The result of each row: the one that the figures have, or else measured and added to them."""
    for row in rows:
        if row.name in figures.rows:
            yield Result(**{f.name: figures.rows[row.name][f.name] for f in fields(Result)})
            continue
        r = measure(row)
        figures.add(asdict(r) | {"ratio": r.ratio, "missed": r.missed})
        yield r


def compare(row: Row, libraries: list[str], threads: int) -> Result:
    """The least value of each library, taking turns."""
    with ExitStack() as stack:
        if row.name == "import":
            measure: Measure = measure_import
        elif row.name.startswith("memory"):

            def measure(library: str) -> dict:
                with Worker(library, threads) as worker:
                    return worker.ask("memory", row.name)
        else:
            workers = {library: stack.enter_context(Worker(library, threads)) for library in libraries}

            def measure(library: str) -> dict:
                return workers[library].ask("time", row.name)

        return best_of(row, libraries, measure)


def best_of(row: Row, libraries: list[str], measure: Measure) -> Result:
    least = dict.fromkeys((OURS, THEIRS), math.inf)
    gradients: dict[str, list[float]] = {}
    start = None
    for done in range(row.rounds):
        if done >= LEAST_ROUNDS and perf_counter() - start > ROW_S:
            break
        for library in libraries:
            answer = measure(library)
            start = start or perf_counter()  # not before: the first answer waits for the imports
            if "error" in answer:
                return result(row, least, f"{library}: {answer['error']}")
            least[library] = min(least[library], answer["value"])
            gradients[library] = answer.get("gradient", [0.0, 0.0])
    return result(row, least, "" if agree(*gradients.values()) else f"gradients differ: {gradients}")


def agree(first: list[float], second: list[float] | None = None) -> bool:
    """Whether two digests (sum, sum of magnitudes) are equal up to float32's rounding; one alone is."""
    second = first if second is None else second
    tolerance = 1e-3 * max(first[1], second[1])
    return all(abs(a - b) <= tolerance for a, b in zip(first, second, strict=True))


def result(row: Row, least: dict[str, float], error: str) -> Result:
    ours, theirs = (least[library] / row.per for library in (OURS, THEIRS))
    return Result(row.name, row.title, row.group, ours, theirs, row.target, error)


# ---------------------------------------------------------------------------------------- printing


def amount(value: float, name: str) -> str:
    if math.isinf(value):
        return "-"
    if name.startswith("memory"):
        return f"{value / 2**20:.0f} MiB"
    scale, unit = next(s for s in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if value * s[0] >= 1 or s[1] == "µs")
    return f"{value * scale:.3g} {unit}"


def cells(r: Result) -> tuple[str, ...]:
    known = math.isfinite(r.ratio) and r.ratio > 0
    verdict = "error" if r.error else "" if r.target is None or not known else "MISSED" if r.missed else "ok"
    target = "" if r.target is None else f"<= {r.target:g}"
    ratio = f"{r.ratio:.3f}" if known else "-"
    return r.title, amount(r.mutagrad, r.name), amount(r.torch, r.name), ratio, target, verdict


HEAD = "", "mutagrad", "PyTorch", "ratio", "target", ""
WIDTHS = 50, 10, 10, 7, 8, 6


def terminal(results: Iterator[Result]) -> Iterator[Result]:
    """Print each result as it comes."""
    group = None
    for r in results:
        if r.group != group:
            group = r.group
            print(f"\n{paint(group, '1')}\n{columns(HEAD)}")
        line, verdict = columns(cells(r)), cells(r)[-1]
        print(paint(line, {"ok": "32", "": "0"}.get(verdict, "31")), flush=True)
        if note := r.error or disturbance(r):
            print(f"    {note}", flush=True)
        yield r


def disturbance(r: Result) -> str:
    return "" if r.others < QUIET else f"measured while others used {r.others:.0%} of the machine: repeat it"


def columns(texts: tuple[str, ...]) -> str:
    first, *rest = (t.rjust(w) for t, w in zip(texts, WIDTHS, strict=True))
    return "  ".join([first.strip().ljust(WIDTHS[0]), *rest]).rstrip()


def paint(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


def markdown(results: list[Result]) -> str:
    lines = ["| | mutagrad | PyTorch | ratio | target |", "|---|--:|--:|--:|--:|"]
    for i, r in enumerate(results):
        if i == 0 or r.group != results[i - 1].group:
            lines.append(f"| **{r.group}** | | | | |")
        title, ours, theirs, ratio, target, verdict = cells(r)
        flag = {"MISSED": " (missed)", "error": " (error)"}.get(verdict, "")
        title += " (machine busy)" if disturbance(r) else ""
        lines.append(f"| {title} | {ours} | {theirs} | {ratio} | {target.replace('<=', '≤')}{flag} |")
    return "\n".join(lines)


def growth(results: list[Result], *, as_markdown: bool) -> str:
    """The write loop's cost per element as N grows: flat is linear, rising with N is quadratic."""
    rows = [r for r in results if r.name in ("writes_10k", "writes_30k", "writes_100k") and not r.error]
    if len(rows) < 2:
        return ""
    table = [("N writes, µs each", *(r.name[7:] for r in rows))]
    for library in OURS, THEIRS:
        values = [getattr(r, library) * 1e6 for r in rows]
        table.append((library, *(f"{v:.1f}" if math.isfinite(v) else "-" for v in values)))
    if as_markdown:
        table.insert(1, ("---", *("--:" for _ in rows)))
        return "\n".join(f"| {' | '.join(line)} |" for line in table)
    return "\n" + "\n".join(line[0].ljust(20) + "".join(c.rjust(10) for c in line[1:]) for line in table)


def machine(threads: int) -> dict[str, str | int]:
    def installed(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "from the source tree"

    versions = {package: installed(package) for package in (OURS, THEIRS, "numpy")}
    return versions | {"python": platform.python_version(), "cpu": cpu(), "threads": threads}


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((s.split(":")[1].strip() for s in lines if s.startswith("model name")), platform.machine())


# -------------------------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="mutagrad against PyTorch, side by side")
    parser.add_argument("--only", action="append", choices=ROWS, metavar="NAME", help="this row (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to FILE")
    parser.add_argument("--resume", action="store_true", help="keep the rows that FILE has, and measure the others")
    parser.add_argument("--check", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--solo", choices=(OURS, THEIRS), help="measure one library alone")
    parser.add_argument("--threads", type=int, default=2, help="threads for each library (2)")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    rows = [ROWS[name] for name in ROWS if not args.only or name in args.only]
    if args.list:
        print("\n".join(f"{r.name:20} {r.title:52} {r.target or ''}" for r in rows))
        return 0
    libraries = [args.solo] if args.solo else [OURS, THEIRS]
    if absent := [library for library in libraries if find_spec(library) is None]:
        sys.exit(f"{' and '.join(absent)} cannot be imported by {sys.executable}; `make bench` installs both")
    where = machine(args.threads)
    figures = Figures(args.json, where, args.resume)
    measured = recorded(rows, figures, lambda row: undisturbed(partial(compare, row, libraries, args.threads), our_seconds))
    heading = ", ".join(f"{key} {value}" for key, value in where.items())
    if args.markdown:
        results = list(measured)
        print("\n\n".join(filter(None, [markdown(results), growth(results, as_markdown=True), heading])))
    else:
        print(heading)
        results = list(terminal(measured))
        print(growth(results, as_markdown=False))
    missed = [r.name for r in results if r.missed] if not args.solo else []
    if missed and not args.markdown:
        print(f"\n{len(missed)} missed: {', '.join(missed)}")
    return int(args.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
