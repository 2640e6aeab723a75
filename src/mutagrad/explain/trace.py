"""`mutagrad trace SCRIPT`: run a program as `mutagrad run` does, and write the page of what it did to memory.

The page is written when the interpreter ends, after the program's threads and its own handlers have: whatever way it
ends, by an error, `sys.exit`, Ctrl-C or a signal to terminate, what was recorded until then is shown.
"""
from __future__ import annotations

import argparse
import atexit
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from ..base.errors import ModeError
from ..torch_api import run as running
from .leaving import before_sudden_end
from .tracing import Trace

SUMMARY = "run a PyTorch program and write a page that shows every storage, write and gradient"
_USAGE = """mutagrad trace [-o FILE] [--max-events N] SCRIPT [-o FILE] [ARGUMENT ...]
       mutagrad trace [-o FILE] [--max-events N] -m MODULE [-o FILE] [ARGUMENT ...]"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = _USAGE
    parser.epilog = ("-o may also stand right after the script; what comes later is the script's own. "
                     "`--` after the script hands on everything.")
    parser.add_argument("-o", "--output", metavar="FILE", help="the page to write (trace.html)")
    parser.add_argument("--max-events", type=int, default=50_000, metavar="N",
                        help="how many events are shown one by one; the rest is added up by line (50000)")
    running.add_program(parser)


def run(options: argparse.Namespace) -> int:
    """Run the program inside of a trace, and return its exit status."""
    given = options.module if options.module is not None else options.script
    output = _take_output(given) or options.output or "trace.html"
    if options.max_events < 2:
        print("mutagrad trace: --max-events must be at least 2", file=sys.stderr)
        return 2
    if problem := _cannot_write(output):
        print(f"mutagrad trace: can't write {output!r}: {problem}", file=sys.stderr)
        return 2
    return running.run_given(options, "trace", Session(os.path.abspath(output), given, options.max_events))


def _take_output(given: list[str]) -> str | None:
    """Take `-o FILE` off the arguments where it stands right after the script; `--` there hands on all the others."""
    if given[1:2] == ["--"]:
        del given[1]
    elif given[1:2] in (["-o"], ["--output"]) and len(given) > 2:
        _, output = given.pop(1), given.pop(1)
        return output
    elif given[1:] and given[1].startswith("--output="):
        return given.pop(1).partition("=")[2]
    return None


def _cannot_write(path: str) -> str:
    """Say why a file cannot be written, before a program has run for hours; "" if it can."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(folder):
        return "there is no such folder"
    return "" if os.access(path if os.path.exists(path) else folder, os.W_OK) else "it is not allowed"


class Session:
    """The block that a program runs in. Leaving it only notes how the program ended: its threads may still run."""

    def __init__(self, output: str, given: list[str], max_events: int) -> None:
        self.output, self.process, self.written = output, os.getpid(), False
        self.trace = Trace(max_events=max_events, title=" ".join(given))

    def __enter__(self) -> None:
        atexit.register(self.write)
        self._sudden = before_sudden_end(self._write_suddenly)
        self._sudden.__enter__()
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
        self.trace.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 frames: TracebackType | None) -> None:
        self.trace.note_error(error)

    def _terminated(self, number: int, frame: FrameType | None) -> Any:
        """Write the page, then end as if nobody had handled the signal."""
        self.trace.error = "a signal to terminate"
        self.write()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _write_suddenly(self) -> int:
        self.write()
        return 0

    def write(self) -> None:
        """Write the page, once, and not in a child that was forked; say where it is."""
        if self.written or os.getpid() != self.process:
            return
        self.written = True
        with suppress(ModeError):  # the program has left blocks that it never entered
            self.trace.__exit__()
        try:
            self.trace.save(self.output)
            said = f"{self.output}: {self.trace.count} events, {len(self.trace.findings)} to look at first"
        except OSError as error:
            said = f"can't write {self.output!r}: {error.strerror}"
        _say(f"mutagrad trace: {said}")


def _say(text: str) -> None:
    """Print to the error stream, which the program may have closed."""
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):
        return
