"""The long form of the fuzz: a million random programs and the stress cases, for a night on one machine.

    PYTHONPATH=tests python -m fuzz.soak [--programs 1000000] [--minutes 600] [--workers 2] [--seed 0] [--every 60] [--fresh]

Work comes in chunks that their numbers determine, and what is done is kept in a small file: Ctrl-C, or SIGTERM in the
background, stops it, and the same command goes on from there. A program that fails is made as small as it can be, and
written to a folder with what was expected. The status is 1 if anything has failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "soak"
STRESS = Path(__file__).resolve().parents[1] / "stress"

CHUNK = 50  # programs
FIRST_SEED = 10_000_000  # beyond those of the tests
REPORTS = 3  # programs of one chunk that are made small; the rest is counted
PATIENCE = 900  # seconds after which a chunk is taken to hang
RENEWED = 400  # chunks after which the workers are started anew


class Job(NamedTuple):
    """A kind of chunk: how often it comes, and of which programs, or of which function of a seed."""

    weight: float
    families: tuple[str, ...] = ()
    order: int = 1
    setting: str = ""  # "by reference", "in pieces" or "forward"
    module: str = ""  # of which `run(seed)` or `check(seed)` is called instead

    @property
    def label(self) -> str:
        if self.module:
            return self.module
        return " ".join([*(self.families or ("core",)), f"order {self.order}" if self.setting != "forward" else "", self.setting]).replace("  ", " ").strip()


JOBS = [
    Job(12), Job(4, (), 2), Job(8, ("rooms",)), Job(3, ("rooms",), 2),
    Job(10, ("aliases",)), Job(4, ("aliases",), 2), Job(4, ("aliases",), 1, "by reference"), Job(2, ("aliases",), 2, "by reference"), Job(3, ("aliases", "rooms")),
    Job(4, ("hooks",)), Job(3, ("hooks",), 2), Job(2, ("hooks", "rooms")), Job(1, ("hooks", "rooms"), 2),
    Job(3, ("scalars",)), Job(1, ("scalars",), 2), Job(3, ("regions",)), Job(1, ("regions",), 2), Job(1, ("regions", "rooms")),
    Job(2, (), 1, "plainly"), Job(1, ("aliases",), 2, "plainly"), Job(3, (), 1, "by reference"), Job(2, ("rooms",), 1, "by reference"),
    Job(4, (), 1, "in pieces"), Job(2, (), 2, "in pieces"), Job(3, ("rooms",), 1, "in pieces"), Job(2, ("aliases",), 1, "in pieces"),
    Job(2, (), 1, "forward"), Job(2, ("rooms",), 1, "forward"),
    Job(1, module="fuzz.test_large"), Job(1, module="fuzz.test_threads")]


def stress_jobs() -> list[Job]:
    """One for each module in `stress/` that has a `run(seed)`."""
    found = sorted(path for path in STRESS.glob("*.py") if re.search(r"^def run\(", path.read_text(), re.MULTILINE))
    return [Job(1, module=f"stress.{path.stem}") for path in found]


class Result(NamedTuple):
    """What a chunk has given: verdicts counted, and reports of failures by name."""

    label: str
    counts: Counter[str]
    reports: dict[str, str]


# A chunk, on a worker.


def begin(parent: int) -> None:
    """What a worker does first. Ctrl-C is for the parent to answer; if that is gone, there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warnings.simplefilter("error")
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()


def end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(2)
    os._exit(1)


def work(base: int, number: int, jobs: list[Job]) -> Result:
    """Chunk `number` of those that `base` determines."""
    job = random.Random(f"soak {base} {number}").choices(jobs, [j.weight for j in jobs])[0]
    seeds = range(FIRST_SEED + (base * 1_000_003 + number) * CHUNK, FIRST_SEED + (base * 1_000_003 + number + 1) * CHUNK)
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    try:
        return called(job, seeds[0]) if job.module else judged(job, seeds)
    finally:
        faulthandler.cancel_dump_traceback_later()


def called(job: Job, seed: int) -> Result:
    """A stress case with one seed."""
    module = importlib.import_module(job.module)
    try:
        round_of(module)(seed)
    except Exception:
        return Result(job.label, Counter(failed=1), {f"{job.label} {seed}": f"{job.module}, seed {seed}\n\n{traceback.format_exc()}"})
    return Result(job.label, Counter(right=1), {})


def round_of(module: Any) -> Callable[[int], None]:
    """`run(seed)`; of the fuzz's own modules, what they check."""
    if module.__name__ == "fuzz.test_threads":
        return lambda seed: module.check_programs(seed, random.Random(seed).choice([(), ("rooms",), ("aliases",), ("hooks",), ("regions",)]))
    return module.check if module.__name__ == "fuzz.test_large" else module.run  # type: ignore[no-any-return]


def judged(job: Job, seeds: range) -> Result:
    import mutagrad

    from .generator import generate
    from .judge import by_duals, by_function, described, judge, judge_forward, report
    from .settings import by_reference, in_pieces, plainly

    counts: Counter[str] = Counter()
    reports: dict[str, str] = {}
    for seed in seeds:
        around = {"by reference": by_reference, "plainly": plainly, "in pieces": lambda: in_pieces(seed)}.get(job.setting, nullcontext)
        program = generate(seed, order=2 if job.setting == "forward" else job.order, families=job.families)
        if job.setting == "forward":
            verdict = judge_forward(program, mutagrad, by_function if seed % 2 else by_duals)
        else:
            verdict = judge(program, mutagrad, order=job.order, full=False, around=around)
        counts[verdict.kind] += 1
        if verdict.failed and len(reports) < REPORTS:
            told = (f"{program.source}\n\n{verdict.message}\n{described(verdict)}" if job.setting == "forward"
                    else report(program, verdict, mutagrad, order=job.order, around=around))
            reports[f"{job.label} {seed}"] = f"{job}\n{told}"
    return Result(job.label, counts, reports)


# What is done, in a file.


@dataclass
class State:
    """`done`: all chunks below are; `beyond`: more that are. `counts`: verdicts by the label of the job."""

    path: Path
    base: int = 0
    done: int = 0
    beyond: set[int] = field(default_factory=set)
    seconds: float = 0.0
    counts: dict[str, Counter[str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, base: int, fresh: bool) -> State:
        if fresh or not path.exists():
            return cls(path, base)
        kept = json.loads(path.read_text())
        if kept["base"] != base:
            raise SystemExit(f"soak: {path} is of seed {kept['base']}, not {base}; --fresh begins anew, --state names another file")
        return cls(path, base, kept["done"], set(kept["beyond"]), kept["seconds"], {label: Counter(c) for label, c in kept["counts"].items()})

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps({"base": self.base, "done": self.done, "beyond": sorted(self.beyond), "seconds": round(self.seconds, 1),
                                       "counts": self.counts}, indent=1))
        os.replace(partial, self.path)

    def left(self) -> Iterator[int]:
        """The chunks that are not done, without end."""
        number = self.done
        while True:
            if number not in self.beyond:
                yield number
            number += 1

    def add(self, number: int, result: Result) -> None:
        self.beyond.add(number)
        while self.done in self.beyond:
            self.beyond.remove(self.done)
            self.done += 1
        self.counts.setdefault(result.label, Counter()).update(result.counts)

    @property
    def programs(self) -> int:
        return sum(sum(counts.values()) for counts in self.counts.values())

    @property
    def failures(self) -> dict[str, int]:
        """By label and verdict."""
        bad = ("wrong", "error", "diverged", "failed", "crashed")
        return {f"{label}: {kind}": n for label, counts in sorted(self.counts.items()) for kind, n in sorted(counts.items()) if kind in bad}


def kept(reports: dict[str, str], folder: Path) -> None:
    """Writes each report to a file of its own."""
    for name, text in reports.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (re.sub(r"[^\w.]+", "-", name) + ".txt")).write_text(text + "\n")


# The parent.


class Soak:
    def __init__(self, state: State, folder: Path, options: argparse.Namespace) -> None:
        self.state, self.folder, self.options = state, folder, options
        self.jobs = JOBS + stress_jobs()
        self.began = self.told = time.monotonic()
        self.before, self.seconds = state.programs, state.seconds
        self.suspects: list[int] = []
        self.named: dict[str, int] = {}  # failures that were told of

    def over(self) -> bool:
        minutes = self.options.minutes
        return self.state.programs >= self.options.programs or minutes is not None and time.monotonic() - self.began >= 60 * minutes

    def run(self) -> None:
        """Chunk by chunk, until there are enough; saves what is done, however it ends."""
        try:
            while not self.over():
                self.with_workers()
        finally:
            self.note()
            self.tell()

    def with_workers(self) -> None:
        """So many chunks on new workers. If one of them dies, those that were at work are looked at one by one."""
        numbers = islice((n for n in self.state.left() if n not in self.suspects), RENEWED)
        workers = 1 if self.suspects else self.options.workers
        if self.suspects:
            numbers = iter([self.suspects[0]])
        running: dict[Future[Result], int] = {}
        pool = ProcessPoolExecutor(workers, get_context("spawn"), begin, (os.getpid(),))
        try:
            self.feed(pool, running, numbers, workers)
            while running:
                finished, _ = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                for future in finished:
                    self.finish(running[future], future.result())
                    del running[future]
                if time.monotonic() - self.told >= self.options.every:
                    self.tell()
                if not self.over():
                    self.feed(pool, running, numbers, workers)
                elif not finished:
                    return
        except BrokenProcessPool:
            self.broken(list(running.values()))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()

    def feed(self, pool: ProcessPoolExecutor, running: dict[Future[Result], int], numbers: Iterator[int], workers: int) -> None:
        for number in islice(numbers, workers + 1 - len(running)):
            running[pool.submit(work, self.state.base, number, self.jobs)] = number

    def finish(self, number: int, result: Result) -> None:
        self.suspects = [n for n in self.suspects if n != number]
        self.state.add(number, result)
        kept(result.reports, self.folder)
        self.note()

    def broken(self, numbers: list[int]) -> None:
        """A process has died, or was ended because it hung: of a chunk that was alone, that is the verdict."""
        if len(numbers) == 1:
            label = f"chunk {numbers[0]}"
            self.finish(numbers[0], Result(label, Counter(crashed=1), {label: f"the process died, or hung for {PATIENCE} s, at chunk {numbers[0]} of seed {self.state.base}"}))
        else:
            self.suspects = sorted(numbers)

    def note(self) -> None:
        self.state.seconds = self.seconds + time.monotonic() - self.began
        self.state.save()

    def tell(self) -> None:
        self.told = time.monotonic()
        done, failures = self.state.programs, self.state.failures
        rate = (done - self.before) / max(self.told - self.began, 1e-9)
        left = (self.options.programs - done) / rate / 3600 if rate else float("inf")
        print(f"{time.strftime('%H:%M:%S')}  {done:,} of {self.options.programs:,} programs, {rate:.1f} a second, "
              f"{max(left, 0):.1f} hours left, {sum(failures.values())} failed", flush=True)
        if failures != self.named:
            self.named = failures
            for name, count in failures.items():
                print(f"          {count:6,}  {name}", flush=True)


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz.soak", description="Random programs and stress cases, without end or for a while.")
    parser.add_argument("--programs", type=int, default=1_000_000, help="how many in all, those of earlier runs included (default: a million)")
    parser.add_argument("--minutes", type=float, help="stop after so long, whatever is left")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--seed", type=int, default=0, help="other programs for another number")
    parser.add_argument("--every", type=float, default=60, help="seconds between two lines that tell how far it is")
    parser.add_argument("--state", type=Path, default=FOLDER / "state.json", help="where what is done is kept")
    parser.add_argument("--failures", type=Path, default=FOLDER / "failures", help="the folder for programs that failed")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever was done")
    options = parser.parse_args(arguments)
    if options.workers < 1 or options.programs < 1:
        parser.error("--workers and --programs must be at least 1")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the workers fill the cores
    state = State.load(options.state, options.seed, options.fresh)
    if state.programs:
        print(f"going on after {state.programs:,} programs in {state.seconds / 3600:.1f} hours; --fresh begins anew", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # in the background, the first is ignored and the second is how to stop it
        signal.signal(number, signal.default_int_handler)
    try:
        Soak(state, options.failures, options).run()
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on from here ({options.state})", flush=True)
        return 130
    if state.failures:
        print(f"the programs that failed are in {options.failures}", flush=True)
    return 1 if state.failures else 0


if __name__ == "__main__":
    sys.exit(main())
