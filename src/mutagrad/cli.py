"""The command line: `mutagrad COMMAND`, one table entry for each command."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import __version__, tour
from .arrays.compiled.compiler import has_numba
from .arrays.config import show_config, warm_up
from .explain import trace
from .explain.doctor import command as doctor
from .torch_api import launch, run


class Command(NamedTuple):
    """What a command is for, which options it takes, and what it does; `run` returns the exit status."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _warm_up(_: argparse.Namespace) -> int:
    if not has_numba():
        print("warm-up: needs Numba, which is not installed; pip install 'mutagrad[fast]'", file=sys.stderr)
        return 1
    print(f"{warm_up()} kernels are compiled")
    show_config()
    return 0


COMMANDS = {
    "doctor": Command(doctor.SUMMARY, doctor.add_arguments, doctor.run),
    "launch": Command(launch.SUMMARY, launch.add_arguments, launch.run),
    "run": Command(run.SUMMARY, run.add_arguments, run.run),
    "trace": Command(trace.SUMMARY, trace.add_arguments, trace.run),
    "tour": Command(tour.SUMMARY, tour.add_arguments, tour.run),
    "warm-up": Command("compile the kernels of mutagrad[fast] ahead of their first use", lambda _: None, _warm_up),
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, built from the table."""
    top = argparse.ArgumentParser(
        prog="mutagrad",
        description="Tensors with PyTorch's API in which mutation is an ordinary differentiable operation.",
        epilog="`mutagrad COMMAND --help` explains a command.",
    )
    top.add_argument("--version", action="version", version=f"mutagrad {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name, command in COMMANDS.items():
        said = f"{command.summary[0].upper()}{command.summary[1:]}."
        sub = commands.add_parser(name, help=command.summary, description=said)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out a command line and return its exit status; with no command, print the help."""
    top = parser()
    options = top.parse_args(argv)
    if not hasattr(options, "run"):
        top.print_help()
        return 0
    try:
        status: int = options.run(options)
        if not getattr(sys.stdout, "closed", True):  # by the program that was run
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, `| head` say, has seen enough: what is still buffered must go somewhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status
