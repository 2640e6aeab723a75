"""`mutagrad run`: an ordinary PyTorch program, unchanged, on mutagrad."""
from __future__ import annotations

import argparse
import importlib.util
import io
import os
import runpy
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any

from . import import_hook as stand_in

SUMMARY = "run a PyTorch program with mutagrad in the place of torch"
_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
INTERRUPTED = 130  # what a shell reports for a program that was interrupted from the keyboard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "mutagrad run SCRIPT [ARGUMENT ...]\n       mutagrad run -m MODULE [ARGUMENT ...]"
    add_program(parser)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments by which every command that runs a program takes it."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE",
                        help="run a module, as `python -m` does")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGUMENT ...]",
                        help="the program, and what it is given")


def run(options: argparse.Namespace) -> int:
    """Run a script or a module as Python itself would, and return its exit status."""
    return run_given(options, "run", nullcontext())


def run_given(options: argparse.Namespace, command: str, around: AbstractContextManager[Any]) -> int:
    """Do so for any command, with the program inside of a block: that sees what ends it, `sys.exit` included."""
    given = options.module if options.module is not None else options.script
    if not given:
        print(f"mutagrad {command}: give a script, or -m and a module", file=sys.stderr)
        return 2
    for_children()
    stand_in.install()
    return (run_module if options.module is not None else run_script)(given, command, around)


def for_children() -> None:
    """Have child processes find `torch_api/startup/sitecustomize.py`, so that `torch` is mutagrad there, too."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if _STARTUP not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([_STARTUP, *filter(None, paths)])


def _first_on_path(folder: str) -> None:
    """Put a folder first, as Python does with that of what it runs; ours stands there now. With -P it does not."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def run_script(given: list[str], command: str, around: AbstractContextManager[Any]) -> int:
    path = os.path.abspath(given[0])
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        path, folder = os.path.join(path, "__main__.py"), path
    try:
        with io.open_code(path) as file:
            source = file.read()
    except OSError as error:
        print(f"mutagrad {command}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        return 2
    stand_in.watch_for(source)
    sys.argv = list(given)
    _first_on_path(folder)
    main = ModuleType("__main__")
    main.__dict__.update(__file__=path, __cached__=None, __builtins__=__builtins__,
                         __loader__=SourceFileLoader("__main__", path))
    sys.modules["__main__"] = main  # for good: what the program leaves to be done at exit still needs it
    return _guarded(lambda: exec(compile(source, path, "exec", dont_inherit=True), main.__dict__), around)


def run_module(given: list[str], command: str, around: AbstractContextManager[Any]) -> int:
    sys.argv = list(given)
    _first_on_path(os.getcwd())
    try:
        known = importlib.util.find_spec(given[0]) is not None
    except ModuleNotFoundError:
        known = False
    if not known:
        print(f"mutagrad {command}: No module named {given[0]}", file=sys.stderr)
        return 1
    return _guarded(lambda: runpy.run_module(given[0], run_name="__main__", alter_sys=True), around)


def _guarded(program: Callable[[], Any], around: AbstractContextManager[Any]) -> int:
    """Return the exit status of a program; what it does not catch is reported without the frames above its own."""
    try:
        with around:
            program()
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = _below(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _below(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the program's first frame on."""
    while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        frames = frames.tb_next
    return frames
