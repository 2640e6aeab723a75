"""What PyTorch's own programs do to versions and views behind the back of its rules."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.storage import TensorBase, memory_of


class _unsafe_preserve_version_counter:
    """A block whose writes to these tensors are not counted. Saved values are protected from them all the same.

    >>> import mutagrad as mg
    >>> x = mg.zeros(2)
    >>> with mg.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.add_(1)
    >>> x._version
    0
    """

    def __init__(self, tensors: TensorBase | Iterable[TensorBase]) -> None:
        several: Iterable[TensorBase] = (tensors,) if isinstance(tensors, TensorBase) else tensors
        self.memories = [memory_of(t) for t in several]
        self.versions = [memory.version for memory in self.memories]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        for memory, version in zip(self.memories, self.versions):
            memory.version = version


class _Views:
    """What `_force_original_view_tracking` was told last."""

    replayed = False


def is_view_replay_enabled() -> bool:
    """Whether a program has asked for PyTorch's own way to find the base of a view.

    >>> import mutagrad as mg
    >>> mg.autograd.is_view_replay_enabled()
    False
    """
    return _Views.replayed


class _force_original_view_tracking:
    """Accepted as PyTorch's: how a written view finds its base. Here it needs no way back: it is a window on it.

    >>> import mutagrad as mg
    >>> with mg.autograd._force_original_view_tracking(True):
    ...     mg.autograd.is_view_replay_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        self.before, _Views.replayed = _Views.replayed, bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        _Views.replayed = self.before
