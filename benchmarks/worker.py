"""One library in a process of its own: answers one JSON line for each line asked on stdin.

    echo '["time", "small_mul"]' | python benchmarks/worker.py torch
    echo '["seconds", "x + y", 0.02]' | python benchmarks/worker.py torch call_table

The second argument is the module whose `ROWS` are asked for, `programs` where there is none; `peers.warp` has the programs
as that library's manual would have them written.

A process for each library, not one for both: an allocator that one of them tunes, or a thread pool that one
of them leaves spinning, must not help or hurt the other.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a library prints is no answer
LIBRARY = importlib.import_module(sys.argv[1])  # before NumPy: either library may set it up for itself

import numpy as np  # noqa: E402

from resident import status  # noqa: E402

ROWS = importlib.import_module((sys.argv[2:] or ["programs"])[0]).ROWS

SAMPLE_S = 0.02  # long enough for the garbage collector's share, short enough to fall between disturbances
SLOW_S = 0.2  # a run this long needs no other before it


class Timer:
    """Makes a row's program once, then times it again and again."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.name, self.run = "", None

    def time(self, name: str) -> dict[str, Any]:
        """Seconds for one run, as the mean over about SAMPLE_S, and a digest of the gradient it gave."""
        self.program(name)
        gc.collect()
        seconds, g = self.awake(SAMPLE_S)
        return {"value": seconds, "gradient": digest(g)}

    def seconds(self, name: str, duration: float) -> dict[str, Any]:
        """The same over about `duration`, without the digest: of a call that takes microseconds it is most of the work."""
        self.program(name)
        return {"value": self.awake(duration)[0]}

    def save(self, name: str, path: str) -> dict[str, Any]:
        """Write the result of the program's first run into a file; their names say their order and their types."""
        self.name = ""  # a program that writes into its inputs is another after one run
        gc.collect()
        np.savez(path, **ROWS[name].arrays(self.program(name)()))
        return {}

    def save_gradient(self, name: str, path: str) -> dict[str, Any]:
        """Write the gradient that the program returns into a file, or say that the library has no such program."""
        if name not in ROWS:
            return {"absent": True}
        np.save(path, array_of(self.program(name)()))
        return {}

    def program(self, name: str) -> Any:
        if name != self.name:
            self.run = None  # its memory is for the next
            self.name, self.run = name, ROWS[name].make(self.lib)
        return self.run

    def awake(self, duration: float) -> tuple[float, Any]:
        seconds, g = self.sample(0.0)
        if seconds < SLOW_S:  # that run woke the threads and filled the caches after the other's turn
            seconds, g = self.sample(duration)
        return seconds, g

    def sample(self, duration: float) -> tuple[float, Any]:
        calls, start = 0, perf_counter()
        while not calls or perf_counter() - start < duration:
            g = self.run()
            calls += 1
        return (perf_counter() - start) / calls, g


def digest(g: Any) -> list[float]:
    """The sum, and the sum of magnitudes, which says how much rounding the first may show."""
    values = array_of(g).astype(np.float64)
    return [values.sum(), np.abs(values).sum()]


def array_of(g: Any) -> np.ndarray:
    """Whatever a library calls an array, as NumPy's."""
    for name in ("detach", "numpy", "to_numpy"):
        g = getattr(g, name)() if hasattr(g, name) else g
    return np.asarray(g)


def memory(lib: Any, name: str) -> dict[str, Any]:
    """The most bytes that three runs held, above what the process held before them (or in all)."""
    ROWS[name].before(lib)()  # what a library loads at first use is not what a network needs
    run = ROWS[name].make(lib)
    gc.collect()
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # from here on, VmHWM is the peak
    for _ in range(3):
        g = run()
    peak = status("VmHWM")
    return {"value": peak if name == "memory_process" else peak - before, "gradient": digest(g)}


def main(lib: Any) -> None:
    if hasattr(lib, "set_num_threads"):
        lib.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    timer = Timer(lib)
    for line in sys.stdin:
        task, *details = json.loads(line)
        try:
            answer = memory(lib, *details) if task == "memory" else getattr(timer, task)(*details)
        except Exception as error:  # one library lacks something: the row says so, the others go on
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main(LIBRARY)
