"""What a compiler's tracing has in the place of sizes and tensors: there are none."""
from __future__ import annotations

from typing import Any

from ...base.errors import NotSupported


class _Traced:
    """What such tracing would make; nothing is an instance of it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        raise NotSupported(f"fx.{type(self).__name__}: sizes of a program are numbers", why="programs run as they are",
                           fix="call the module itself")


class SymBool(_Traced):
    """A condition on the sizes of a traced program."""


class SymFloat(_Traced):
    """A number that depends on the sizes of a traced program."""


class SymInt(_Traced):
    """A size of a traced program."""


class FakeTensor(_Traced):
    """A tensor without memory, as compilers use it; there are none."""


class ScriptObject(_Traced):
    """An object of TorchScript's; there are none."""


def get_proxy_mode() -> None:
    """Return what is being traced: nothing."""


def is_fake(x: Any) -> bool:
    """Whether it is such a tensor: none is."""
    return False
