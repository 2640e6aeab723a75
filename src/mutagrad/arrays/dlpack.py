"""Memory exchanged with other array libraries over DLPack, alike for every NumPy.

NumPy 2.0 knows the protocol's first form only, which has no settings, and 2.1.0 takes all memory that comes in the
second for read-only. The first form cannot say whether memory is read-only, so every NumPy takes it to be; but it may
be used only for memory that can be written.
"""
from __future__ import annotations

from functools import cache
from typing import Any

from ..base.operands import Array
from .numpy import np

CPU = (1, 0)


@cache
def _has_second_form() -> bool:
    return bool(np.from_dlpack(np.zeros(1)).flags.writeable)


def lend(array: Array, stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[Any, int] | None,
         copy: bool | None) -> Any:
    """Return a capsule over the memory of an array. One of the first form is a valid answer to every `max_version`."""
    if _has_second_form():
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError("unsupported device requested")  # the class and the words of newer NumPy
    return (array.copy() if copy else array).__dlpack__(stream=stream)


def borrow(source: Any) -> Any:
    """Return an array over the memory of another library's array or a capsule; read-only only if its owner says so."""
    lender = _Lender(source)
    array = np.from_dlpack(lender)
    return array if array.flags.writeable or lender.says_whether_writable else np.asarray(Writable(array))


class _Lender:
    """Hands NumPy the capsule, and remembers its form."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.bare = type(source).__name__ == "PyCapsule"
        self.says_whether_writable = False

    def __dlpack__(self, **settings: Any) -> Any:
        capsule = self.source if self.bare else self.source.__dlpack__(**settings if _has_second_form() else {})
        self.says_whether_writable = "_versioned" in repr(capsule)  # Python can see nothing of a capsule but its name
        return capsule

    def __dlpack_device__(self) -> Any:
        return CPU if self.bare else self.source.__dlpack_device__()


class Writable:
    """The memory of a read-only array, offered as memory that can be written."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory alive
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}
