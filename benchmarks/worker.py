"""One library in a process of its own: answers one JSON line for each line asked on stdin.

    echo '["time", "small_mul"]' | python benchmarks/worker.py torch

A process for each library, not one for both: an allocator that one of them tunes, or a thread pool that one
of them leaves spinning, must not help or hurt the other.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import sys
from time import perf_counter
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")
LIBRARY = importlib.import_module(sys.argv[1])  # before NumPy: either library may set it up for itself

import numpy as np  # noqa: E402

from programs import ROWS  # noqa: E402

SAMPLE_S = 0.02  # long enough for the garbage collector's share, short enough to fall between disturbances
SLOW_S = 0.2  # a run this long needs no other before it


class Timer:
    """Makes a row's program once, then times it again and again."""

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.name, self.run = "", None

    def time(self, name: str) -> dict[str, Any]:
        """Seconds for one run, as the mean over about SAMPLE_S, and a digest of the gradient it gave."""
        if name != self.name:
            self.name, self.run = name, ROWS[name].make(self.lib)
        gc.collect()
        seconds, g = self.sample(0.0)
        if seconds < SLOW_S:  # that run woke the threads and filled the caches after the other's turn
            seconds, g = self.sample(SAMPLE_S)
        return {"value": seconds, "gradient": digest(g)}

    def sample(self, duration: float) -> tuple[float, Any]:
        calls, start = 0, perf_counter()
        while not calls or perf_counter() - start < duration:
            g = self.run()
            calls += 1
        return (perf_counter() - start) / calls, g


def digest(g: Any) -> list[float]:
    """The sum, and the sum of magnitudes, which says how much rounding the first may show."""
    values = np.asarray(g.detach(), dtype=np.float64)
    return [values.sum(), np.abs(values).sum()]


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


def status(field: str) -> int:
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(rf"{field}:\s+(\d+)", file.read())[1])


def main(lib: Any) -> None:
    if hasattr(lib, "set_num_threads"):
        lib.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    timer = Timer(lib)
    for line in sys.stdin:
        task, name = json.loads(line)
        try:
            answer = timer.time(name) if task == "time" else memory(lib, name)
        except Exception as error:  # one library lacks something: the row says so, the others go on
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(LIBRARY)
