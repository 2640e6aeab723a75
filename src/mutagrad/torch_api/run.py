"""`mutagrad run`: an ordinary PyTorch program, unchanged, on mutagrad."""
from __future__ import annotations

import argparse
import builtins
import importlib.util
import io
import linecache
import os
import runpy
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any

from . import import_hook as stand_in

SUMMARY = "run a PyTorch program with mutagrad in the place of torch"
_STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")
RUNNERS = (__file__, runpy.__file__, "<frozen runpy>")  # between Python's own start and the program
INTERRUPTED = 130  # what a shell reports for a program that was interrupted from the keyboard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = ("mutagrad run SCRIPT [ARGUMENT ...]\n       mutagrad run -m MODULE [ARGUMENT ...]\n"
                    "       mutagrad run -c CODE [ARGUMENT ...]\n       mutagrad run - [ARGUMENT ...] < SCRIPT")
    parser.description = ("Run a PyTorch program as it is: `import torch` finds mutagrad, in child processes, too. "
                          "Everything else is as if Python itself ran it: arguments, path, tracebacks, exit status.")
    parser.epilog = "What stands after the program is the program's own, options included."
    parser.add_argument("-c", dest="code", nargs=argparse.REMAINDER, metavar="CODE", help="the program as text")
    add_program(parser)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments by which every command that runs a program takes it."""
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE",
                        help="a module by its name, found as `import` finds it")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGUMENT ...]",
                        help="a file, a folder with a __main__.py, or - for standard input; and what it is given")


def run(options: argparse.Namespace) -> int:
    """Run a program as Python itself would, and return its exit status."""
    sys.breakpointhook = _stop_here
    status = run_given(options, "run", nullcontext())
    if status == INTERRUPTED:  # it has been reported; how the process ends from here on is Python's own way
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
    return status


def run_given(options: argparse.Namespace, command: str, around: AbstractContextManager[Any]) -> int:
    """Do so for any command, with the program inside of a block: that sees what ends it, `sys.exit` included."""
    code = getattr(options, "code", None)
    given = next((given for given in (code, options.module) if given is not None), options.script)
    if not given:
        print(f"mutagrad {command}: give a script, or -m and a module", file=sys.stderr)
        return 2
    for_children()
    stand_in.install()
    if code is not None:
        return run_text(code[0], "<string>", ["-c", *code[1:]], around)
    if options.module is None and given[0] == "-":
        return run_text(sys.stdin.read(), "<stdin>", given, around)
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


def run_text(source: str, name: str, given: list[str], around: AbstractContextManager[Any]) -> int:
    """Run a program that is in no file. Its lines can be shown all the same."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    stand_in.watch_for(source.encode("utf-8", "replace"))
    sys.argv = list(given)
    _first_on_path("")
    main = _new_main(__loader__=BuiltinImporter, **({"__file__": name} if name == "<stdin>" else {}))
    return _guarded(lambda: exec(compile(source, name, "exec", dont_inherit=True), main.__dict__), around)


def _new_main(**own: Any) -> ModuleType:
    """Return a new module `__main__`. It stays: what the program leaves to be done at exit still needs it."""
    main = ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, **own)
    sys.modules["__main__"] = main
    return main


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
    main = _new_main(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
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
    _new_main()
    return _guarded(lambda: runpy._run_module_as_main(given[0]), around)  # type: ignore[attr-defined]


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


def _stop_here(*arguments: Any, **settings: Any) -> Any:
    """Do what `breakpoint()` does, in a debugger whose stack begins at the program."""
    if os.environ.get("PYTHONBREAKPOINT") or arguments or settings:  # the user has said what is to be done
        return sys.__breakpointhook__(*arguments, **settings)
    return import_module("mutagrad.torch_api.debugger").stop(sys._getframe(1), RUNNERS)


def _below(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the program's first frame on."""
    while frames is not None and frames.tb_frame.f_code.co_filename in RUNNERS:
        frames = frames.tb_next
    return frames
