"""Functions as attributes of classes: PyTorch's are C functions, which do not become methods; Python's, as ours, do.

    class Sine:
        function = torch.sin      # Sine().function(x) is torch.sin(x), not torch.sin(self, x)

Only the names that some class body takes from `torch` are handed out in a wrapper, from when the source of its module
is read, just before it runs; so calls cost what they did everywhere else. (A wrapper for all would take part in every
call.)
"""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

# `name = path.to.function`, indented, and nothing else on the line.
_ASSIGNED = re.compile(rb"([ \t]+)\w+[ \t]*(?::[^=]+)?=[ \t]*(?:\w+\.)*([a-z]\w*)[ \t]*(?:#.*)?$")

# Those that are written in Python in PyTorch, too, and do become methods there.
_PYTHON = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod cdist chain_matmul
    compile cond einsum from_dlpack is_storage is_tensor load lu manual_seed meshgrid norm pca_lowrank save seed split
    stft svd_lowrank tensordot typename unique unique_consecutive unravel_index vmap while_loop"""
PYTHON = frozenset(_PYTHON.split())


class Unbound(staticmethod):  # type: ignore[type-arg]
    """A function that stays one in a class. It is equal to the function itself, for tables of functions."""

    def __eq__(self, other: object) -> bool:
        return self.__func__ is (other.__func__ if isinstance(other, Unbound) else other)

    def __hash__(self) -> int:
        return hash(self.__func__)

    def __reduce__(self) -> tuple[Any, ...]:
        return Unbound, (self.__func__,)


def in_classes(source: bytes, is_known: Callable[[str], bool]) -> set[str]:
    """Return the known names among those that class bodies of a module assign to names of their own."""
    lines, found = source.splitlines(), set()
    for number, line in enumerate(lines):
        match = _ASSIGNED.match(line) if b"=" in line else None
        if match and is_known(name := match[2].decode()) and _in_class(lines, number):
            found.add(name)
    return found


def _indent(line: bytes) -> int:
    wide = line.expandtabs()
    return len(wide) - len(wide.lstrip())


def _in_class(lines: Sequence[bytes], number: int) -> bool:
    """Whether the nearest line above that is indented less, apart from conditions, begins a class."""
    depth = _indent(lines[number])
    for line in reversed(lines[:number]):
        text = line.strip()
        if text and not text.startswith((b"#", b")")) and _indent(line) < depth:
            if not text.startswith((b"if ", b"else", b"elif ", b"try", b"except", b"with ")):
                return text.startswith(b"class ")
            depth = _indent(line)
    return False


def handed_out(found: Any, name: str, wanted: set[str]) -> Any:
    """Return what `torch` has under a name: a function that class bodies want does not become a method there."""
    return Unbound(found) if name in wanted and isinstance(found, FunctionType) else found
