"""Which kernels are used, and how they come to be: nobody waits for a compiler.

A kernel is a function of Python's that Numba compiles for given types. Where it is asked for and is not there yet,
NumPy's version serves, and a thread compiles it meanwhile, once it has been asked for a few times. What is compiled is
kept on disk, so that the next process only loads it. `set_kernels` chooses:

    "numpy"   NumPy's versions only
    "numba"   compiled kernels, and whoever asks first waits for them
    "auto"    compiled kernels as soon as they are there, if Numba is installed; so it is unless MUTAGRAD_KERNELS says
"""
from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

from ...base.errors import BadValue, MissingExtra
from ...base.locks import new_lock
from ...base.modes import OTHER_KIND, mode

CHOICES = ("numpy", "numba", "auto")
USES = 3  # how often a kernel is asked for before it is worth compiling
OFTEN = 300  # the same where it is asked for arrays so small that a program of a few calls would not notice
_compiling = new_lock()


class Choice:
    """What is used now. `on`: whether kernels are looked for at all; `compiles`: whether this process makes any."""

    def __init__(self) -> None:
        named = os.environ.get("MUTAGRAD_KERNELS", "auto")
        self.name = named if named in CHOICES else "auto"
        self.on = self.name != "numpy"
        self.waits = self.name == "numba"
        self.compiles = True


choice = Choice()


@cache
def has_numba() -> bool:
    return find_spec("numba") is not None


def set_kernels(name: str) -> None:
    """Choose by what large arrays are computed: "numpy", "numba", or "auto".

    "auto" is compiled kernels as soon as a thread in the background has them, if Numba is installed. With "numba"
    whoever needs a kernel first waits for it.

    >>> import mutagrad as mg
    >>> before = mg.get_kernels()
    >>> mg.set_kernels("numpy")
    >>> mg.get_kernels()
    'numpy'
    >>> mg.set_kernels(before)
    """
    if name not in CHOICES:
        raise BadValue(f"set_kernels: there is no choice {name!r}", why=f"there are {', '.join(CHOICES)}",
                       fix='mutagrad.set_kernels("auto")')
    if name == "numba" and not has_numba():
        raise MissingExtra("set_kernels: needs Numba, which is not installed", why="it compiles the kernels",
                           fix="pip install 'mutagrad[fast]'")
    choice.name, choice.on, choice.waits = name, name != "numpy" and has_numba(), name == "numba"


def get_kernels() -> str:
    """Return what `set_kernels` was told last: "numpy", "numba" or "auto".

    >>> import mutagrad as mg
    >>> mg.get_kernels() in ("numpy", "numba", "auto")
    True
    """
    return choice.name


class Kernel:
    """A function that may have been compiled. `make` compiles it, and returns what is called then."""

    __slots__ = ("_made", "asked", "done", "error", "make", "name", "waiting")

    def __init__(self, name: str, make: Callable[[], Callable[..., Any]]) -> None:
        self.name, self.make, self.asked, self.waiting, self.done = name, make, 0, False, Event()
        self._made: Callable[..., Any] | None = None
        self.error: BaseException | None = None
        ALL.append(self)

    def get(self, uses: int = USES) -> Any:
        """Return the compiled function; None while there is none, or none is wanted. It is worth so many uses.

        Nor while this thread makes arrays of another kind: it would be given such a one to write into.
        """
        if not choice.on or OTHER_KIND and mode.now.kind is not None:
            return None
        if self._made is None and self.error is None and choice.compiles:
            self.asked += 1
            if choice.waits:
                if _put(self):
                    self.done.wait()  # an interrupt does no harm on this thread; on one that compiles it would
            elif not has_numba():
                choice.on = False
            elif self.asked >= uses and not self.waiting:
                self.waiting = _put(self)
        return self._made

    def is_made(self) -> bool:
        return self._made is not None

    def compile(self) -> None:
        """Compile it now, unless somebody has."""
        with _compiling:
            if self._made is None and self.error is None:
                try:
                    self._made = self.make()
                except Exception as error:  # NumPy's version serves on; show_config says why
                    self.error = error
                self.done.set()


ALL: list[Kernel] = []


# --------------------------------------------------------------------------------------------------- in the background

class _Background:
    """A thread that compiles. A program that ends waits for the kernel at hand: LLVM cannot be stopped midway."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Kernel | None] = SimpleQueue()
        self.thread = Thread(target=self.work, name="mutagrad kernels", daemon=True)
        self.ending = False
        self.thread.start()
        atexit.register(self.end)

    def put(self, kernel: Kernel) -> None:
        self.waiting.put(kernel)

    def work(self) -> None:
        while (kernel := self.waiting.get()) is not None and not self.ending:
            kernel.compile()

    def end(self) -> None:
        self.ending, choice.compiles = True, False
        self.waiting.put(None)
        self.thread.join()


_threads: list[_Background] = []


def _background() -> _Background:
    if not _threads:
        _threads.append(_Background())
    return _threads[0]


def _put(kernel: Kernel) -> bool:
    """Have a kernel compiled; False where there is no thread for it, and NumPy's version serves on."""
    try:
        background = _background()
    except RuntimeError:  # no more threads can be started, or the interpreter is ending
        return False
    background.put(kernel)
    return True


def _after_fork() -> None:
    """A forked child has what was compiled before; the compiler's lock may belong to a thread that it does not have."""
    _threads.clear()
    choice.compiles = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# --------------------------------------------------------------------------------------------------------------- Numba

def folder() -> str | None:
    """Where compiled kernels are kept between processes; None with MUTAGRAD_CACHE=0."""
    named = os.environ.get("MUTAGRAD_CACHE")
    if named == "0":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(named or os.path.join(home, "mutagrad"), "kernels")


HEAD = """from numba import cfunc, njit
import numpy as np
from mutagrad.arrays.compiled.memory import *
from mutagrad.arrays.compiled.scalars import *
"""
# Sums may be fused with products, zeros may lose their sign in between; inf and nan are as they are.
OPTIONS = "nogil=True, error_model='numpy', fastmath={{'contract'{}}}"
EXACT = "nogil=True, error_model='numpy'"


def compiled(source: str, signature: str, sums: bool = False, decorator: str = "njit",
             exact: bool = False) -> Callable[..., Any]:
    """Compile the function `kernel` of this source for these types, or load it from disk.

    `sums`: what is added may be added in another order, so that several sums go on side by side. `exact`: every step is
    rounded as it stands.

    Numba keeps what it has compiled beside the file that a function comes from, so that is where the source is put.
    """
    options = EXACT if exact else OPTIONS.format(", 'reassoc'" if sums else "")
    where = folder()
    if where is not None:
        try:
            return _kept(where, _decorated(source, signature, f"{options}, cache=True", decorator))
        except (OSError, RuntimeError):  # a folder that cannot be written to; Numba's own error for one is the second
            pass
    names: dict[str, Any] = {}
    exec(compile(_decorated(source, signature, options, decorator), "<mutagrad kernel>", "exec"), names)
    return names["kernel"]  # type: ignore[no-any-return]


def _decorated(source: str, signature: str, options: str, decorator: str) -> str:
    line = f"@{decorator}('{signature}', {options})\n" if decorator else ""
    return HEAD + source.replace("def kernel(", f"{line}def kernel(")


def _kept(where: str, text: str) -> Callable[..., Any]:
    """Load a kernel from disk; compile it and keep it, if it is not there or its files are damaged."""
    hashlib = import_module("hashlib")
    name = f"mutagrad_kernel_{hashlib.sha256((text + _version()).encode()).hexdigest()[:24]}"
    path = os.path.join(where, f"{name}.py")
    if not _holds(path, text):
        os.makedirs(where, 0o700, exist_ok=True)
        part = f"{path}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
    try:
        return _from_file(name, path)
    except OSError:
        raise
    except Exception:  # whatever reading half a file may give
        _remove(os.path.join(where, "__pycache__"), name)
        return _from_file(name, path)


def _holds(path: str, text: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == text
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _remove(where: str, name: str) -> None:
    """What Python and Numba keep beside the source of this name."""
    for file in os.listdir(where) if os.path.isdir(where) else ():
        if file.startswith(name):
            os.remove(os.path.join(where, file))


def _from_file(name: str, path: str) -> Callable[..., Any]:
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # what is loaded from disk looks for it there
    spec.loader.exec_module(module)
    return module.kernel  # type: ignore[no-any-return]


@cache
def _version() -> str:
    """What all kernels depend on besides their source."""
    texts = []
    for name in ("memory.py", "scalars.py", "tiles.py"):
        with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
            texts.append(file.read())
    return "".join(texts)
