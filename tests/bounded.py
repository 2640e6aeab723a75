"""Files loaded in a process that has little time and memory: what loads, what is refused, and what takes too much.

    outcomes = load_all([data, ...])

The process ends the moment a file takes longer than `seconds` of the processor, and has no more than `megabytes`
beside what it began with. The files after one that ended it are loaded by the next process.
"""
from __future__ import annotations

import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SECONDS, MEGABYTES = 5, 300
LOADED, REFUSED = "loaded", "refused"


def load_all(cases: Sequence[bytes], seconds: int = SECONDS, megabytes: int = MEGABYTES, **settings: Any) -> list[str]:
    """Return for each file `LOADED`, `REFUSED`, or what went wrong. `recursion` is Python's limit."""
    outcomes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases").write_bytes(pickle.dumps((cases, settings)))
        while len(outcomes) < len(cases):
            arguments = [sys.executable, "-W", "error", __file__, folder, str(len(outcomes)), str(seconds),
                str(megabytes)]
            done = subprocess.run(arguments, capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
            outcomes += done.stdout.splitlines()
            if len(outcomes) < len(cases):
                reason = signal.Signals(-done.returncode).name if done.returncode < 0 else done.stderr
                assert done.returncode < 0, done.stderr
                outcomes.append(f"killed by {reason}")
    return outcomes


def _limit_memory(megabytes: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _outcome(source: Any, name: str, settings: Any) -> str:
    import mutagrad as mg
    from mutagrad.base.errors import BadFile, NotSupported

    try:
        found = mg.load(source, **settings)
    except (BadFile, NotSupported) as error:
        report = "".join(traceback.format_exception(error))  # with its causes, which must not hang either
        if len(report) > 20_000 or len(str(error)) > 5000:
            return f"an error of {len(report)} characters"
        return REFUSED if name in str(error) else f"the file is not named: {error.what!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:500]!r}"
    del found  # deep structures end deeply, too
    return LOADED


def main(folder: str, first: int, seconds: int, megabytes: int) -> None:
    """Load the files from number `first` on, and print what came of each. Every other one is read from memory."""
    import mutagrad as mg

    cases, settings = pickle.loads((Path(folder) / "cases").read_bytes())
    sys.setrecursionlimit(settings.pop("recursion", 1000))
    if hasattr(sys, "set_int_max_str_digits"):  # not in the first releases of Python 3.10
        sys.set_int_max_str_digits(0)  # as programs do that write long integers
    path = Path(folder) / "a file.pt"
    mg.save({"x": mg.ones(2)}, path)
    mg.load(path)  # so that everything that is imported late is
    _limit_memory(megabytes)
    for number in range(first, len(cases)):
        path.write_bytes(cases[number])
        file = io.BytesIO(cases[number])
        file.name = "a file.pt"  # type: ignore[attr-defined]
        signal.setitimer(signal.ITIMER_PROF, seconds)
        start = time.process_time()
        outcome = _outcome(path if number % 2 or settings.get("mmap") else file, "a file.pt", settings)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if os.environ.get("BOUNDED_TIMES"):
            outcome += f" {time.process_time() - start:.3f}"
        print(outcome, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
