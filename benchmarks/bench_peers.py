"""Other libraries beside mutagrad and PyTorch, on some of the programs of `make bench`: `make bench-peers`.

    python benchmarks/bench_peers.py --peers .venv-peers/bin/python
    python benchmarks/bench_peers.py --only pond_80 --only small_mix --library taichi
    python benchmarks/bench_peers.py --list

The programs are in `peers/`, each as the library's manual would have it written. They are measured as those of `bench.py`:
a process for each library, all take turns, and the figure is the least of all samples, here of at most 7 turns, or those
that begin within 6 seconds of a library's own time. Before anything is timed, a program has run once, or as
often as its library needs to compile it; compiling is not counted. The gradient of that run is compared with mutagrad's,
element by element; a program whose gradient differs has no figure.

mutagrad and PyTorch are imported by the Python that runs this file, the others by that of --peers, which has an environment
of its own. A library that it lacks has no figures. Nor has one that needs more than 90 seconds to compile a program or
to run it once. All processes are kept to as many cores as there are threads, since not every library can be told.

With --json each row is written as soon as it is measured; with --resume, rows that the file has are not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from bench import OURS, QUIET, THEIRS, Worker, amount, machine, observed, our_seconds, paint
from figures import Figures
from programs import ROWS

HERE = Path(__file__).parent
ROUNDS, LIBRARY_S = 7, 6.0
SAMPLE_S = 0.02
LIMIT_S = 90.0
TOLERANCE = 1e-3  # of each element and of the root mean square: sums are rounded differently
# The rows that are measured, and what each is called in a sentence.
NAMES = {
    "small_mix": "small operations",
    "writes_10k": "a loop that writes elements",
    "reads_10k": "a loop that reads elements",
    "pond_80": "a pond of 32 x 32 over 80 steps",
    "pond_1000": "a pond of 32 x 32 over 1,000 steps",
    "pond_large": "a pond of 512 x 512",
    "large_mix": "elementwise operations on a million",
    "softmax": "softmax",
    "layer_norm": "layer_norm",
    "cross_entropy": "cross_entropy",
    "gelu": "gelu",
    "train_mlp": "a training step of an MLP",
}
SETTINGS = {"JAX_PLATFORMS": "cpu", "DEV": "CPU", "ENABLE_TAICHI_HEADER_PRINT": "0"}


@dataclass(frozen=True)
class Library:
    title: str
    module: str
    table: str
    package: str


LIBRARIES = {
    OURS: Library("mutagrad", "mutagrad", "programs", "mutagrad"),
    THEIRS: Library("PyTorch", "torch", "programs", "torch"),
    "jax_jit": Library("JAX, jit", "jax", "peers.jax_jit", "jax"),
    "jax_eager": Library("JAX, eager", "jax", "peers.jax_eager", "jax"),
    "mygrad": Library("MyGrad", "mygrad", "peers.mygrad", "mygrad"),
    "autograd": Library("autograd", "autograd", "peers.autograd", "autograd"),
    "tinygrad": Library("tinygrad", "tinygrad", "peers.tinygrad", "tinygrad"),
    "warp": Library("Warp", "warp", "peers.warp", "warp-lang"),
    "taichi": Library("Taichi", "taichi", "peers.taichi", "taichi"),
}


@dataclass
class Result:
    """Seconds of each library that has any, and what kept the others from having them."""

    name: str
    title: str
    seconds: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    error: str = ""
    others: float = 0.0

    def ratio(self, library: str) -> float:
        return self.seconds.get(library, math.nan) / self.seconds.get(THEIRS, math.nan)


# -------------------------------------------------------------------------------------- measuring


class Patient(Worker):
    """A worker that is given up when it has not answered for LIMIT_S, with all processes that it has started."""

    options = {"start_new_session": True, "stderr": subprocess.DEVNULL}

    def answer(self) -> dict:
        if select.select([self.process.stdout], [], [], LIMIT_S)[0]:
            return super().answer()
        self.end()
        return {"error": f"no answer within {LIMIT_S:.0f} s"}

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


class Stable:
    """The workers of a run, one for each library, started when first asked and again when they have ended."""

    def __init__(self, python: str, threads: int) -> None:
        self.python, self.threads = python, threads
        self.workers: dict[str, Patient] = {}

    def ask(self, library: str, *question: Any) -> dict:
        worker = self.workers.get(library)
        if worker is None or worker.process.poll() is not None:
            worker = self.workers[library] = self.started(library)
        return worker.ask(*question)

    def started(self, library: str) -> Patient:
        made = LIBRARIES[library]
        if library in (OURS, THEIRS):
            return Patient(made.module, self.threads, made.table)
        return Patient(made.module, self.threads, made.table, self.python, **settings(self.python, self.threads))

    def seconds(self) -> float:
        return our_seconds() + sum(worker.seconds() for worker in self.workers.values())

    def close(self) -> None:
        for worker in self.workers.values():
            worker.end()


def settings(python: str, threads: int) -> dict[str, str]:
    """Variables that keep the other libraries to the CPU and its threads, and let them find what they call."""
    folder = Path(python).absolute().parent
    compiler = {} if shutil.which("clang") else {"CC": str(HERE / "peers" / "clang")}
    caches = {"CACHEDB": str(folder.parent / "tinygrad.db"), "WARP_CACHE_PATH": str(folder.parent / "warp")}
    return SETTINGS | {"NUM_CPU_THREADS": str(threads), "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"} | caches | compiler


def present(python: str) -> dict[str, str]:
    """The libraries that can be measured, with their versions."""
    code = "import json, sys; from importlib.metadata import distributions as d; print(json.dumps({x.name.lower(): x.version for x in d()}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True) if shutil.which(python) else None
    installed = json.loads(done.stdout) if done and done.returncode == 0 else {}
    return {name: installed[lib.package] for name, lib in LIBRARIES.items() if lib.package in installed and name not in (OURS, THEIRS)}


def measure(name: str, libraries: list[str], stable: Stable) -> Result:
    """One row: the gradients are compared, then everybody whose gradient is right is timed."""
    result = Result(name, title_of(name))
    right = checked(result, libraries, stable)
    if OURS not in right or THEIRS not in right:
        result.error = "; ".join(f"{library}: {note}" for library, note in result.notes.items())
        return result
    return observed(lambda: timed(result, right, stable), stable.seconds)


def title_of(name: str) -> str:
    return f"pond, {ROWS[name].title}" if name.startswith("pond") else ROWS[name].title


def checked(result: Result, libraries: list[str], stable: Stable) -> list[str]:
    """The libraries whose gradient is mutagrad's; the notes say what is wrong with those of others."""
    right = []
    with TemporaryDirectory() as folder:
        for library in libraries:
            path = Path(folder) / f"{library}.npy"
            answer = stable.ask(library, "save_gradient", result.name, str(path))
            if answer.get("absent"):
                continue
            if note := answer.get("error") or unlike(np.load(path), np.load(path.with_name(f"{OURS}.npy"))):
                result.notes[library] = note
            else:
                right.append(library)
    return right


def unlike(found: np.ndarray, expected: np.ndarray) -> str:
    if found.shape != expected.shape:
        return f"a gradient of shape {found.shape} instead of {expected.shape}"
    spread = float(np.sqrt(np.mean(expected.astype(np.float64) ** 2)))
    count = int((~np.isclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * spread)).sum())
    return f"{count:,} of {expected.size:,} elements of the gradient differ" if count else ""


def timed(result: Result, libraries: list[str], stable: Stable) -> Result:
    """The least time of each library, taking turns."""
    least = dict.fromkeys(libraries, math.inf)
    spent = dict.fromkeys(libraries, 0.0)
    for _ in range(ROUNDS):
        for library in libraries:
            if spent[library] > LIBRARY_S or library in result.notes:
                continue
            start = perf_counter()
            answer = stable.ask(library, "seconds", result.name, SAMPLE_S)
            spent[library] += perf_counter() - start
            least[library] = min(least[library], answer.get("value", math.inf))
            result.notes |= {library: answer["error"]} if "error" in answer else {}
    seconds = {library: value / ROWS[result.name].per for library, value in least.items() if math.isfinite(value)}
    return Result(result.name, result.title, seconds, result.notes)


# ---------------------------------------------------------------------------------------- printing


def cell(r: Result, library: str) -> str:
    if library == THEIRS:
        return amount(r.seconds.get(THEIRS, math.inf), "")
    ratio = r.ratio(library)
    return "-" if math.isnan(ratio) else f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def shown(results: Iterator[Result]) -> Iterator[Result]:
    """Print each result as it comes."""
    print(paint(f"\n{'':48}" + "".join(f"{library.title:>11}" for library in LIBRARIES.values()), "1"))
    for r in results:
        print(f"{r.title[:48]:48}" + "".join(f"{cell(r, library):>11}" for library in LIBRARIES), flush=True)
        for library, note in r.notes.items():
            print(f"    {LIBRARIES[library].title}: {note}", flush=True)
        if r.others >= QUIET:
            print(f"    measured while others used {r.others:.0%} of the machine: repeat it", flush=True)
        yield r


# -------------------------------------------------------------------------------------- the command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="other libraries beside mutagrad and PyTorch")
    parser.add_argument("--peers", metavar="PYTHON", default=".venv-peers/bin/python", help="the Python that has the other libraries")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help="this row (repeatable)")
    parser.add_argument("--library", action="append", choices=LIBRARIES, metavar="NAME", help="this library beside mutagrad and PyTorch (repeatable)")
    parser.add_argument("--list", action="store_true", help="list the rows and the libraries and stop")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures to FILE")
    parser.add_argument("--resume", action="store_true", help="keep the rows that FILE has")
    parser.add_argument("--threads", type=int, default=2, help="threads for each library (2)")
    return parser.parse_args()


def keep_to_cores(count: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main() -> int:
    args = arguments()
    if args.list:
        print("\n".join([*(f"{name:14} {title_of(name)}" for name in NAMES), "", *(f"{name:14} {lib.title}" for name, lib in LIBRARIES.items())]))
        return 0
    versions = present(args.peers)
    if not versions:
        print(f"{args.peers} has none of the other libraries; `make bench-peers` installs and measures them")
        return 0
    libraries = [name for name in LIBRARIES if name in (OURS, THEIRS) or name in versions and name in (args.library or LIBRARIES)]
    keep_to_cores(args.threads)
    where = machine(args.threads) | {lib.package: versions[name] for name, lib in LIBRARIES.items() if name in versions}
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    if absent := sorted({lib.package for name, lib in LIBRARIES.items() if name not in versions} - {OURS, THEIRS}):
        print(f"not installed, and without figures: {', '.join(absent)}; `make bench-peers` installs them, or {args.peers} -m pip install NAME")
    print("seconds for PyTorch, the others as ratios to it: below 1 is faster; compiling is not counted")
    figures = Figures(args.json, where, args.resume)
    stable = Stable(args.peers, args.threads)
    try:
        for r in shown(measure(name, libraries, stable) for name in NAMES if name in (args.only or NAMES) and name not in figures.rows):
            figures.add(asdict(r))
    finally:
        stable.close()
    return int(any(r["error"] for r in figures.rows.values()))


if __name__ == "__main__":
    sys.exit(main())
