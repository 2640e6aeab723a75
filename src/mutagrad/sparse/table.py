"""Which functions know sparse tensors, by the names under which programs call them.

A sparse tensor has no memory of its own that an operation on arrays could read. So a public function that is given one
is looked up here: either there is an answer, or the call is refused. Nothing is made dense that was not asked to be.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..base.errors import NotSupported
from ..base.layout import ANSWERING
from ..base.sockets import socket

F = TypeVar("F", bound=Callable[..., Any])

ANSWERS: dict[str, Callable[..., Any]] = {}

# Functions that ask a tensor only what sparse ones can tell, too: they run as they are.
_HARMLESS = frozenset([
    "__format__", "__hash__", "__set__", "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "cuda", "double",
    "element_size",
    "float", "half", "int", "is_complex", "is_floating_point", "is_signed", "is_tensor", "long", "nelement", "numel",
    "short", "size", "to_device", "type_as"])


def answers(*names: str) -> Callable[[F], F]:
    """Enter a function as the answer of sparse tensors to calls by these names."""
    def enter(function: F) -> F:
        for name in names:
            assert name not in ANSWERS, name
            ANSWERS[name] = function
        return function

    return enter


def answer(name: str, raw: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Make a call of a public function in which there is a sparse tensor."""
    if name in ANSWERS:
        return ANSWERS[name](*args, **kwargs)
    if name in _HARMLESS or raw.__module__.startswith("mutagrad.sparse"):
        return raw(*args, **kwargs)
    raise refused(name)


def refused(name: str, why: str = "it computes with all elements, and most of these are not there",
            fix: str = "x.to_dense() has them all; x.values() are those that are there") -> NotSupported:
    return NotSupported(f"{name}: not supported for sparse tensors", why=why, fix=fix)


def enter() -> None:
    """Have public functions look for sparse tensors among their arguments. Asked whenever one is made."""
    if not ANSWERING:
        socket("torch_function").watch()
        ANSWERING.append(answer)
