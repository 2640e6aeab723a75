"""`mutagrad doctor`: runs a PyTorch program, and says what PyTorch itself would reject or get wrong."""
from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from ...base.errors import ModeError
from ...torch_api import run as running
from ..leaving import before_sudden_end
from . import report
from .diagnosis import Diagnosis
from .edits import read, write
from .endings import look_at_gradients
from .findings import RAISES, WRONG
from .fixes import propose, rewritten

SUMMARY = "run a PyTorch program, and say what PyTorch would reject or get wrong, and how to write it"
_ROUNDS = 5
_FLAGS = ("--json", "--sarif", "--fix")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = ("mutagrad doctor [--json | --sarif] [--fix] [-o FILE] SCRIPT [ARGUMENT ...]\n"
                    "       mutagrad doctor [OPTION ...] -m MODULE [ARGUMENT ...]")
    parser.add_argument("--json", action="store_true", help="findings for tools; the program prints to stderr")
    parser.add_argument("--sarif", action="store_true", help="findings for editors and code hosts, likewise")
    parser.add_argument("--fix", action="store_true", help="write the files as they can be run by PyTorch")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)  # --fix without looking at what is left
    parser.add_argument("-o", "--output", metavar="FILE", help="where the findings go; stdout if not given")
    running.add_program(parser)
    parser.epilog = ("The exit status is the program's own, and 1 where PyTorch would raise or be wrong. --json, "
                     "--sarif and --fix may also stand after the script; what stands after -- is the script's.")


def run(options: argparse.Namespace) -> int:
    """Run the program and report on it; return its exit status, or 1 if PyTorch would not do what it means."""
    _take_flags(options)
    session = _Session()
    apart = options.output is None and (options.json or options.sarif)
    with _stdout_apart(apart) as stdout:
        with before_sudden_end(lambda: _report(options, session.ended(), stdout)):
            status = _watched(options, session)
        bad = _report(options, session.ended(), stdout)
    return status or bad


def _report(options: argparse.Namespace, diagnosis: Diagnosis, stdout: Any) -> int:
    """Write what was found, and rewrite the files if that is wanted; return 1 if PyTorch would fail."""
    diagnosis.carefully(lambda: look_at_gradients(diagnosis), "the end")
    diagnosis.carefully(lambda: propose(diagnosis.findings), "the rewrites")
    _write(options, diagnosis, stdout)
    if options.fix:
        _fix(options, diagnosis)
    return int(diagnosis.findings.verdict != "accepts")


def _fix(options: argparse.Namespace, diagnosis: Diagnosis) -> None:
    """Write the files as PyTorch can run them.

    A rewrite may uncover the next finding, so the program is run again, without its output, until nothing is left. One
    that leaves as much as there was before is taken back.
    """
    changed = rewritten(diagnosis.findings)
    before = {path: read(path) or "" for path in changed}
    for path, text in changed.items():
        write(path, text)
        print(f"mutagrad doctor: {path} is rewritten", file=sys.stderr)
    bad = sum(finding.torch in (RAISES, WRONG) for finding in diagnosis.findings)
    for _ in range(_ROUNDS if changed and not options.once else 0):
        now = {path: read(path) or "" for path in before}
        again = _once_more(options)
        left = sum(finding["torch"] in (RAISES, WRONG) for finding in again["findings"])
        if left >= bad:
            for path, text in before.items():
                write(path, text)
            print("mutagrad doctor: a rewrite did not help, and is taken back", file=sys.stderr)
        if left >= bad or not left or not again["rewritten"]:
            bad = left
            break
        bad, before = left, now
    if bad and not options.once:
        print("mutagrad doctor: what is left has no mechanical rewrite; run it again to see it", file=sys.stderr)


def _once_more(options: argparse.Namespace) -> dict[str, Any]:
    """Run the rewritten program in another process, rewrite what is found, and return the findings: none of a program
    that ended without a report."""
    program = ["-m", *options.module] if options.module is not None else list(options.script)
    program.insert(2 if options.module is not None else 1, "--")
    with tempfile.TemporaryDirectory() as folder:
        found = os.path.join(folder, "found.json")
        command = [sys.executable, "-m", "mutagrad", "doctor", "--json", "--fix", "--once", "-o", found, *program]
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if not os.path.exists(found):
            return {"findings": [], "rewritten": False}
        with open(found, encoding="utf-8") as file:
            return {**json.load(file), "rewritten": "is rewritten" in said.stderr}


def _take_flags(options: argparse.Namespace) -> None:
    """Take our flags from among the arguments of the script, up to a `--`."""
    given = options.module if options.module is not None else options.script
    ours, dashes, theirs = given[:1], given.index("--") if "--" in given else len(given), []
    for argument in given[1:dashes]:
        if argument in _FLAGS:
            setattr(options, argument.lstrip("-"), True)
        else:
            theirs.append(argument)
    given[:] = [*ours, *theirs, *given[dashes + 1:]]


def _watched(options: argparse.Namespace, session: _Session) -> int:
    """Run the program under the eyes of a diagnosis; what it does to end itself is its exit status."""
    with _terminated_in_order():
        try:
            status = running.run_given(options, "doctor", session)
        except SystemExit as error:
            status = _status(error.code)
        try:
            _wait_for_threads()
        except (KeyboardInterrupt, SystemExit) as error:
            status = status or (_status(error.code) if isinstance(error, SystemExit) else running.INTERRUPTED)
    return status


class _Session:
    """The program's block. Its threads are watched for as long as they run, so leaving it ends nothing."""

    def __init__(self) -> None:
        self.diagnosis, self.looks = Diagnosis(), False

    def __enter__(self) -> None:
        self.diagnosis.__enter__()
        self.looks = True

    def ended(self) -> Diagnosis:
        """Stop looking, if that has begun, and return what was found."""
        if self.looks:
            self.looks = False
            with suppress(ModeError):  # the program has left blocks that it never entered
                self.diagnosis.__exit__()
        return self.diagnosis

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 frames: TracebackType | None) -> None:
        if isinstance(error, Exception):
            self.diagnosis.note_error(error, frames)


def _wait_for_threads() -> None:
    """Wait for what the interpreter would wait for before it ends."""
    me = threading.current_thread()
    for thread in threading.enumerate():
        if thread is not me and not thread.daemon:
            thread.join()


def _status(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


@contextmanager
def _terminated_in_order() -> Iterator[None]:
    """Have SIGTERM end the program as sys.exit does, so that there is a report."""
    def leave(number: int, _: Any) -> None:
        sys.exit(128 + number)

    before: Any = None
    with suppress(ValueError):  # not the main thread
        before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if before is not None and signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _stdout_apart(apart: bool) -> Iterator[Any]:
    """Yield the real stdout; if it shall be apart, what the program prints goes to stderr meanwhile."""
    if not apart:
        yield sys.stdout
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream:
            yield stream
    finally:
        with suppress(Exception):
            sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _write(options: argparse.Namespace, diagnosis: Diagnosis, stdout: Any) -> None:
    """Write the findings where they are wanted, after all that the program has printed."""
    with suppress(Exception):
        sys.stdout.flush()
    if options.output is None:  # and where the program has closed stdout, there is still stderr
        _write_to(sys.stderr if getattr(stdout, "closed", True) else stdout, options, diagnosis)
    else:
        with open(options.output, "w", encoding="utf-8") as file:
            _write_to(file, options, diagnosis)


def _write_to(stream: Any, options: argparse.Namespace, diagnosis: Diagnosis) -> None:
    if options.json:
        stream.write(report.as_json(diagnosis) + "\n")
    elif options.sarif:
        stream.write(report.as_sarif(diagnosis) + "\n")
    else:
        report.Text(stream).report(diagnosis)
    stream.flush()
