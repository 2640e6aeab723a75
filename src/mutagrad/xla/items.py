"""A value as a step found it somewhere, and what of it is compared: the entries that guards are made of."""
from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable
from math import copysign
from types import CellType, MappingProxyType
from typing import Any, NamedTuple

import numpy

PLAIN = (int, float, complex, bool, str, bytes, type(None))


class _Gone:
    def __repr__(self) -> str:
        return "gone"


GONE: Any = _Gone()


class Reading:
    """What is asked of a container as a whole. It stands where a key would, which may be a function or a class."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, container: Any) -> Any:
        return self.function(container)


class Item(NamedTuple):
    """A value that stands in a container: a dict, a list, a cell of a closure (no key), or an attribute by its name."""

    container: Any
    key: Any
    value: Any
    name: str

    def now(self) -> Any:
        try:
            if type(self.container) is CellType:
                return self.container.cell_contents
            if isinstance(self.key, Attribute):
                return getattr(self.container, self.key, GONE)
            return self.key(self.container) if isinstance(self.key, Reading) else self.container[self.key]
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            return GONE


class Attribute(str):
    """The name of an attribute that stands in no dict: of a slot."""


size = Reading(len)


@Reading
def contents(value: Any) -> Any:
    """Return what can be compared: a dict's keys, a list's size, the elements of a set, a copy of an array's values."""
    if isinstance(value, (numpy.ndarray, memoryview, array)):
        return getattr(value, "shape", ()), getattr(value, "dtype", None), _copied(value)
    if isinstance(value, bytearray):
        return bytes(value)
    by_name = isinstance(value, (dict, MappingProxyType)) and value and all(type(key) in PLAIN for key in value)
    return tuple(value) if by_name or isinstance(value, (deque, set, frozenset)) else len(value)


def _copied(value: Any) -> Any:
    of_objects = isinstance(value, numpy.ndarray) and value.dtype.hasobject
    return tuple(value.flat) if of_objects else value.tobytes()


def same_value(a: Any, b: Any) -> bool:
    """Whether two values that are not the same object are the same to a program."""
    if type(a) is not type(b) or not isinstance(a, (*PLAIN, tuple, range)):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return a == b and copysign(1, a) == copysign(1, b) or a != a and b != b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(x is y or same_value(x, y) for x, y in zip(a, b))
    return bool(a == b)


def told(value: Any) -> str:
    if value is GONE:
        return "gone"
    few = type(value) is tuple and len(value) < 5 and all(type(v) in PLAIN for v in value)
    return repr(value) if few or type(value) in PLAIN else f"another {type(value).__name__}"


def is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is GONE
    except ValueError:
        return True
