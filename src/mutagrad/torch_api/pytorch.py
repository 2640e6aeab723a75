"""PyTorch's own tensors and functions, where PyTorch itself is loaded in the same program: they do not mix with ours.

Converting silently would lose the gradients of one side, so operators and functions say how to convert instead.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..base.errors import BadArgument
from ..base.operands import is_pytorchs


class Mixed(BadArgument):
    """A call with tensors of two libraries."""


def _is_function_of_pytorch(func: Callable[..., Any]) -> bool:
    """Whether it is one that PyTorch itself asks about. Ours are of modules called mutagrad."""
    owner = getattr(func, "__objclass__", None) or getattr(func, "__self__", None)
    home = getattr(func, "__module__", None) or getattr(owner, "__module__", None) or ""
    return home.partition(".")[0] == "torch"


def check_ours(func: Callable[..., Any], values: Iterable[Any]) -> None:
    """Raise if a call mixes tensors of PyTorch's with ours: a function of either, or an operand."""
    name = getattr(func, "__name__", repr(func))
    if any(is_pytorchs(type(value)) for value in values):
        raise Mixed(f"{name}: one operand is a tensor of PyTorch's", why="gradients do not pass from it to mutagrad's",
                    fix="mutagrad.from_dlpack(t.detach()), which shares its memory")
    if _is_function_of_pytorch(func):
        raise Mixed(f"{name}: a function of PyTorch's is called with a tensor of mutagrad's",
                    why="gradients do not pass from one library to the other",
                    fix=f"mutagrad's {name}, or torch.from_dlpack(x.detach()), which shares its memory")
