"""What stands below PyTorch's functions and is asked about each; here nothing does."""
from __future__ import annotations

from typing import Any

from ..base.errors import NotSupported

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode:
    """A class to name and to inherit from; it cannot be entered."""

    def __enter__(self) -> Any:
        raise NotSupported(f"{type(self).__name__}: __torch_dispatch__ is not supported",
                           why="operations are Python functions, with nothing below them",
                           fix="overrides.TorchFunctionMode is asked about every call of a public function")

    def __exit__(self, *exception: Any) -> None:
        return None


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor around others that a compiler could take apart: there are none."""
    return False
