"""`import torch` means mutagrad: for a block, or for a whole program.

>>> import mutagrad as mg
>>> with mg.as_torch():
...     import torch
...     import torch.nn.functional as F
>>> torch.Tensor is mg.Tensor, F is mg.nn.functional
(True, True)

`torch.nn` is `mutagrad.nn` itself, so classes and identities agree whichever name they were reached by. Only the top,
which has a version of its own, is another module, with the same attributes.
"""
from __future__ import annotations

import importlib
import linecache
import opcode
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, NoReturn

from ..base.alias import AliasLoader
from ..base.package_name import call_package
from ..base.provenance import OURS
from ..base.sockets import socket
from ..base.torch_paths import ELSEWHERE, our_path
from ..tensors.tensor import Tensor
from .unbound import PYTHON, Unbound, handed_out, in_classes

mutagrad = socket("top")

__all__ = ["VERSION", "as_torch", "install"]


class TorchVersion(str):
    """A version that can be compared with text and with numbers: `torch.__version__ >= (2, 0)`."""

    def _numbers(self, other: str | tuple[Any, ...] | None = None) -> tuple[int, ...]:
        text = str(self if other is None else other)
        parts = other if isinstance(other, tuple) else text.partition("+")[0].split(".")
        digits = ("".join(c for c in str(part) if c.isdigit()) for part in parts)
        return (*(int(d) for d in digits if d), 0, 0, 0)[:3]

    def __lt__(self, other: Any) -> bool:
        return self._numbers() < self._numbers(other)

    def __le__(self, other: Any) -> bool:
        return self._numbers() <= self._numbers(other)

    def __gt__(self, other: Any) -> bool:
        return self._numbers() > self._numbers(other)

    def __ge__(self, other: Any) -> bool:
        return self._numbers() >= self._numbers(other)


# The release whose API is followed, as programs that ask for a least version expect it.
VERSION = TorchVersion("2.13.0+mutagrad")

# Why something cannot be here, by the beginning of its path.
REASONS = {
    "torch.distributed": "tensors are spread over devices by placing them, see torch.distributed.tensor",
    "torch.nn.parallel": "tensors are spread over devices by placing them, see torch.distributed.tensor",
    "torch.cuda": "computation is on the CPU",
    "torch.backends": "computation is on the CPU, by NumPy",
    "torch.mps": "computation is on the CPU",
    "torch.xpu": "computation is on the CPU",
    "torch._C": "there is no C++ library behind it",
    "torch.ops": "there is no C++ library behind it",
    "torch.classes": "there is no C++ library behind it",
    "torch.library": "operations are declared in Python; torch.autograd.Function makes one",
    "torch.utils.cpp_extension": "there is no C++ library behind it",
    "torch._dynamo": "there is no compiler; programs run as they are",
    "torch._inductor": "there is no compiler; programs run as they are",
    "torch.fx.experimental": "there is no compiler; programs run as they are",
    "torch.fx.passes": "there is no compiler; programs run as they are",
    "torch.export": "there is no compiler; programs run as they are",
    "torch.onnx": "programs are not exported; they run as they are",
    "torch.package": "programs are not exported; they run as they are",
    "torch.ao": "there are no quantized types",
    "torch.quantization": "there are no quantized types",
    "torch.nn.quantized": "there are no quantized types",
    "torch.nn.intrinsic": "there are no quantized types",
    "torch.nn.qat": "there are no quantized types",
    "torch.nested": "a tensor has one shape",
    "torch.hub": "nothing is downloaded",
    "torch.profiler": "Python's own profilers see everything: python -m cProfile",
    "torch.utils.bottleneck": "Python's own profilers see everything: python -m cProfile",
}


def _missing(parent: str, name: str, known: Sequence[str]) -> str:
    """Return what to say about a name that is not there: why it cannot be, or what is most like it."""
    path = f"{parent}.{name}"
    said = f"{path} is not in mutagrad, which stands in for torch here"
    parts = path.split(".")
    for end in range(len(parts), 1, -1):
        reason = REASONS.get(".".join(parts[:end]))
        if reason is not None:
            return f"{said}: {reason}"
    lowered = {k.lower(): k for k in known}
    near = get_close_matches(name, known, 1) or [lowered[k] for k in get_close_matches(name.lower(), lowered, 1)]
    return f"{said}; nearest is {parent}.{near[0]}" if near else said


def _public(module: ModuleType) -> list[str]:
    return [n for n in dir(module) if not n.startswith("_")]


def _importing(depth: int) -> bool:
    """Whether the frame that asks for an attribute is at `from module import name`."""
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def _refuse(path: str, name: str, module: ModuleType, importing: bool) -> NoReturn:
    """Raise as Python does for a missing name, with more to say unless Python itself has asked, or torch is back."""
    plain = name.startswith("__") or not any(isinstance(f, Finder) for f in sys.meta_path)
    said = f"module {module.__name__!r} has no attribute {name!r}" if plain else _missing(path, name, _public(module))
    error = ImportError(said, name=path) if importing else AttributeError(said)
    raise (error if plain else _only_here(error)) from None


def _only_here(error: Exception) -> Exception:
    """Mark an error as mutagrad's: as far as it knows, PyTorch has what is missing."""
    error.only_here = True  # type: ignore[attr-defined]
    return error



def _explain(module: ModuleType, path: str) -> None:
    """Make a module say more about names that it does not have."""
    own: Callable[[str], Any] | None = module.__dict__.get("__getattr__")
    if getattr(own, "explains", False):
        return

    def __getattr__(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        return _refuse(path, name, module, _importing(1))

    __getattr__.explains = True  # type: ignore[attr-defined]
    module.__dict__["__getattr__"] = __getattr__


def _front(path: str, behind: ModuleType, **own: Any) -> ModuleType:
    """Return a module whose attributes are another's, but for its own."""
    front = ModuleType(path, behind.__doc__)
    front.__dict__.update(own)

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return [n for n in _public(behind) if not isinstance(getattr(behind, n), ModuleType)]
        try:
            found = getattr(behind, name)
        except AttributeError:
            if f"{path}.{name}" not in ELSEWHERE or front.__name__ not in sys.modules:
                return _refuse(path, name, behind, _importing(1))
            found = importlib.import_module(f"{path}.{name}")
        found = handed_out(found, name, UNBOUND)
        if isinstance(found, ModuleType) and found.__name__.startswith("mutagrad"):
            _explain(found, f"{path}.{name}")
        if not name.startswith("__"):
            front.__dict__[name] = found  # from now on it is found without coming here
        return found

    front.__dict__.update(__getattr__=__getattr__, __dir__=lambda: sorted({*dir(behind), *front.__dict__}))
    return front


class _Package(metadata.Distribution):
    """What `importlib.metadata` tells of the package `torch`: its name and version."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Any:
        return Path(str(mutagrad.__file__)).parent / path


class _Operations:
    """`torch.ops`: operations by name, where `mutagrad.ops` are modules. What finds them is loaded when it is asked."""

    def __getattr__(self, name: str) -> Any:
        return getattr(mutagrad.library.ops, name)


def _notice(name: str, path: Sequence[str] | None) -> None:
    """Look at the source of a module before it runs: at what its classes do with functions of torch."""
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
        watch_for(Path(spec.origin).read_bytes())


_ANSWERING = b"__torch_function__", b"sparse_coo", b"sparse_cs", b"sparse_bs", b"to_sparse", b".sparse."


def watch_for(source: bytes) -> None:
    """Have functions ask the classes of their arguments if a program speaks of what answers: classes, or layouts.

    And those that its classes have as attributes do not become methods of these.
    """
    wanted = in_classes(source, _is_function) - UNBOUND if b"torch" in source else set()
    if wanted:
        UNBOUND.update(wanted)
        for front in _finder[0].fronts.values():
            for name in wanted & front.__dict__.keys():
                front.__dict__[name] = handed_out(front.__dict__[name], name, UNBOUND)
    if any(name in source for name in _ANSWERING) and not Finder.watching:
        Finder.watching = True
        socket("torch_function").watch()


UNBOUND: set[str] = set()  # names of functions that some class has as an attribute


def _is_function(name: str) -> bool:
    """Whether it may name a function that is written in C in PyTorch."""
    known = name in mutagrad._lazy.FUNCTIONS or isinstance(vars(mutagrad).get(name), FunctionType)
    return known and name not in PYTHON


class Finder:
    """Answers the import system for `torch` and everything below it."""

    watching = False

    def __init__(self) -> None:
        version = _front("torch.version", mutagrad.version, __version__=VERSION)
        self.fronts = {"torch.version": version, "torch.functional": _front("torch.functional", mutagrad),
                       "torch": _front("torch", mutagrad, __version__=VERSION, __path__=[], __package__="torch",
                                       version=version)}
        self.fronts["torch"].__dict__.update(ops=_Operations(), functional=self.fronts["torch.functional"])
        self.fronts["torch"].__dict__["torch"] = self.fronts["torch"]  # torch.torch, as in PyTorch

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if not _is_torch(fullname):
            if not fullname.startswith("mutagrad"):
                _notice(fullname, path)
            return None
        return ModuleSpec(fullname, AliasLoader(self.find(fullname)))  # type: ignore[arg-type]

    def find_distributions(self, context: Any = None) -> Iterator[metadata.Distribution]:
        """Libraries ask for the version of the package by its name."""
        if context is not None and context.name == "torch":
            yield _Package()

    def find(self, path: str) -> ModuleType:
        front = self.fronts.get(path)
        if front is not None:
            return front
        ours = our_path(path)
        try:
            module = importlib.import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{ours}.".startswith(f"{error.name}."):
                raise  # one of ours needs something that is not installed
            parent, _, name = path.rpartition(".")
            known = sys.modules.get(parent)
            near = [] if known is None else _public(known)
            raise _only_here(ModuleNotFoundError(_missing(parent, name, near), name=path)) from None
        _explain(module, path)
        if any(longer.startswith(f"{path}.") and our_path(longer) == ours for longer in ELSEWHERE):
            # The import system notes what is below it there, not in the module of both.
            front = self.fronts[path] = _front(path, module, __path__=[])
            return front
        if any(longer.startswith(f"{path}.") for longer in (*ELSEWHERE, *REASONS)):
            module.__dict__.setdefault("__path__", [])  # a package, as in PyTorch: what is below it is asked for here
        return module


_finder: list[Finder] = []


def forget_functions() -> None:
    """Have fronts look up again the functions that they have noted."""
    for front in _finder[0].fronts.values() if _finder else ():
        for name, value in list(vars(front).items()):
            if isinstance(value, (FunctionType, Unbound)) and not name.startswith("__"):
                delattr(front, name)


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.") or name == "functorch"


def _without_torch() -> dict[str, ModuleType]:
    """Take everything called torch out of the loaded modules."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_torch(name)}


def install() -> ModuleType:
    """Make `import torch` mean mutagrad from now on, in this process; return the module that it gives."""
    _without_torch()
    if not _finder:
        _finder.append(Finder())
    sys.meta_path.insert(0, _finder[0])  # type: ignore[arg-type]
    call_package("torch")
    Tensor.__module__ = "torch"  # by which libraries for arrays of many kinds know whose it is
    return importlib.import_module("torch")


def _source_of_caller() -> bytes:
    """Return the source of the module that enters a block: it has not been imported through the finder."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename in OURS or frame.f_globals.get("__name__") == "contextlib"):
        frame = frame.f_back
    return "".join(linecache.getlines(frame.f_code.co_filename)).encode() if frame is not None else b""


@contextmanager
def as_torch() -> Iterator[ModuleType]:
    """A block, or a decorated function, in which `import torch` means mutagrad; an installed PyTorch is not touched.

    What was imported inside goes on working afterwards. An `import torch` that runs later means what it did before.

    >>> import mutagrad as mg
    >>> with mg.as_torch() as torch:
    ...     from torch import nn
    >>> nn is mg.nn
    True
    """
    before = {name: module for name, module in sys.modules.items() if _is_torch(name)}
    called, home = call_package("torch"), Tensor.__module__
    try:
        torch = install()
        watch_for(_source_of_caller())
        yield torch
    finally:
        call_package(called)
        Tensor.__module__ = home
        sys.meta_path.remove(_finder[0])  # type: ignore[arg-type]
        _without_torch()
        sys.modules.update(before)
