"""Saving and loading under PyTorch's path, and which classes a file may name that is loaded without being trusted."""
from __future__ import annotations

import sys
from enum import Enum
from types import ModuleType
from typing import Any

from ..base.device import device, place_named
from ..base.errors import BadArgument, BadValue, NoDevice
from . import FILE_LIKE, MAP_LOCATION, get_unsafe_globals_in_checkpoint, load, save
from .archive import BYTE_ORDER
from .safe_unpickler import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

DEFAULT_PROTOCOL = 2  # of pickles

__all__ = ["FILE_LIKE", "MAP_LOCATION", "LoadEndianness", "SourceChangeWarning", "add_safe_globals",
           "check_module_version_greater_or_equal", "clear_safe_globals", "default_restore_location",
           "get_default_load_endianness", "get_safe_globals", "get_unsafe_globals_in_checkpoint", "load",
           "safe_globals", "save", "set_default_load_endianness"]


class SourceChangeWarning(Warning):
    """For programs that silence it: source code is not saved, so none is compared."""


def default_restore_location(storage: Any, location: str) -> Any:
    """Return the storage, or the place that it belongs to if that is no CPU; for use in a `map_location` function.

    >>> import mutagrad as mg
    >>> mg.serialization.default_restore_location(mg.zeros(2).untyped_storage(), "cpu").nbytes()
    8
    """
    try:
        return storage if place_named(location) is None else device(location)
    except NoDevice:
        raise NoDevice(f"default_restore_location: {location} is not there", why="there is no such device",
                       fix="map_location='cpu'") from None


class LoadEndianness(Enum):
    """The order of bytes of numbers in a file that does not tell: this machine's, the lowest first or the highest.

    >>> import mutagrad as mg
    >>> [order.name for order in mg.serialization.LoadEndianness]
    ['NATIVE', 'LITTLE', 'BIG']
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_ORDERS = {LoadEndianness.NATIVE: sys.byteorder, LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}
_chosen: list[LoadEndianness | None] = [None]


def get_default_load_endianness() -> LoadEndianness | None:
    """Return what was said last; None where nothing was, and the lowest is taken to be first.

    >>> import mutagrad as mg
    >>> mg.serialization.get_default_load_endianness() is None
    True
    """
    return _chosen[0]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Say in which order the bytes are in files that do not tell.

    >>> import mutagrad as mg
    >>> LITTLE = mg.serialization.LoadEndianness.LITTLE
    >>> mg.serialization.set_default_load_endianness(LITTLE)
    >>> mg.serialization.get_default_load_endianness().name
    'LITTLE'
    >>> mg.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise BadArgument("set_default_load_endianness: expects a LoadEndianness or None, "
                          f"got {type(endianness).__name__}", fix="LoadEndianness.LITTLE")
    _chosen[0], BYTE_ORDER[0] = endianness, None if endianness is None else _ORDERS[endianness]


def check_module_version_greater_or_equal(module: ModuleType, req_version_tuple: tuple[int, ...],
                                          error_if_malformed: bool = True) -> bool:
    """Return whether a module's `__version__` is at least this.

    >>> import mutagrad as mg
    >>> import numpy
    >>> mg.serialization.check_module_version_greater_or_equal(numpy, (1, 0, 0))
    True
    """
    try:
        numbers = tuple(int(part) for part, _ in zip(module.__version__.split("."), req_version_tuple))
    except (AttributeError, ValueError):
        if error_if_malformed:
            raise BadValue(f"check_module_version_greater_or_equal: {module!r} has no version "
                           "of numbers and dots") from None
        return True
    return numbers >= tuple(req_version_tuple)
