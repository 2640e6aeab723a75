"""Memory exchanged with other array libraries over DLPack, alike for every NumPy.

NumPy 2.0 knows the protocol's first form only, which has no settings, and 2.1.0 takes all memory that comes in the
second for read-only. The first form cannot say whether memory is read-only, so every NumPy takes it to be; but it may
be used only for memory that can be written.

NumPy exchanges no bfloat16. Such memory is lent and borrowed as elements of two bytes, and the name of their type is
exchanged in the capsule.
"""
from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ..base.operands import Array
from .bfloat16 import bfloat16_type
from .numpy import np

CPU = (1, 0)


@cache
def _has_second_form() -> bool:
    return bool(np.from_dlpack(np.zeros(1)).flags.writeable)


def lend(array: Array, stream: Any, max_version: tuple[int, int] | None, dl_device: tuple[Any, int] | None,
         copy: bool | None) -> Any:
    """Return a capsule over the memory of an array. One of the first form is a valid answer to every `max_version`."""
    if array.dtype.kind == "V":
        capsule = lend(array.view(np.uint16), stream, max_version, dl_device, copy)
        _exchange(capsule, UINT16, BFLOAT16)
        return capsule
    if _has_second_form():
        return array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
    if dl_device is not None and tuple(dl_device) != CPU:
        raise BufferError("unsupported device requested")  # the class and the words of newer NumPy
    return (array.copy() if copy else array).__dlpack__(stream=stream)


def borrow(source: Any) -> Any:
    """Return an array over the memory of another library's array or a capsule; read-only only if its owner says so."""
    lender = _Lender(source)
    array = np.from_dlpack(lender)
    if not array.flags.writeable and not lender.says_whether_writable:
        array = np.asarray(Writable(array))
    return array.view(bfloat16_type()) if lender.is_bfloat16 else array


# Types of elements as the protocol has them: a code, bits, and how many are one element, in four bytes.
UINT16, BFLOAT16 = bytes([1, 16, 1, 0]), bytes([4, 16, 1, 0])
_FORMS = {b"dltensor": 0, b"dltensor_versioned": 32}  # by name: at which byte the description of the tensor begins
_TYPE = 20  # and at which byte of that the type: after an address, a device of two integers, and a count of dimensions


def _exchange(capsule: Any, old: bytes, new: bytes) -> bool:
    """Write another type into a capsule whose type is `old`; return whether it was."""
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    called = name(capsule)
    if called not in _FORMS:
        return False
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = pointer(capsule, called) + _FORMS[called] + _TYPE
    if ctypes.string_at(place, 4) != old:
        return False
    ctypes.memmove(place, new, 4)
    return True


class _Lender:
    """Hands NumPy the capsule, and remembers its form."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.bare = type(source).__name__ == "PyCapsule"
        self.says_whether_writable = self.is_bfloat16 = False

    def __dlpack__(self, **settings: Any) -> Any:
        capsule = self.source if self.bare else self.source.__dlpack__(**settings if _has_second_form() else {})
        self.says_whether_writable = "_versioned" in repr(capsule)  # Python can see nothing of a capsule but its name
        self.is_bfloat16 = _exchange(capsule, BFLOAT16, UINT16)
        return capsule

    def __dlpack_device__(self) -> Any:
        return CPU if self.bare else self.source.__dlpack_device__()


class Writable:
    """The memory of a read-only array, offered as memory that can be written."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory alive
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}
