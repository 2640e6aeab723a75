"""What an operation computed with, and whether another one computes with the same.

Kept of a node, so that it can be told from the node of a second run: its operation, fingerprints of the values that it
saved, the settings, and which windows it read and wrote. That is all that its derivative depends on.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.kinds import Level, all_values
from ..base.operands import Array
from ..core.graph import Node
from ..core.window import As
from .fence import Argument
from .fingerprint import fingerprint, unchanged

_FEW = 4096  # of larger values that were computed on the way, so many elements are looked at; of constants, all


class Place(NamedTuple):
    """A window without what does not matter: strides of single elements, and of an index's arrays all but a hash."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    index: Any
    kind: str  # of elements that are of another type than the storage's

    @classmethod
    def of(cls, window: Any) -> Place | None:
        if window is None:
            return None
        if window.__class__ is int:
            return cls(window, (), (), None, "")
        offset, shape, strides, index = window
        kind, index = (index.dtype.str, index.index) if index.__class__ is As else ("", index)
        return cls(offset, shape, tuple(t for n, t in zip(shape, strides) if n > 1), _exact(index), kind)

    def within(self, argument: Argument) -> Place | None:
        """Return the same, counted from where an argument begins; None if it is all of the argument."""
        moved = self._replace(offset=self.offset - (argument.offset or 0), kind="")  # a new storage is of its own type
        return None if (moved.offset, moved.shape, moved.index) == (0, argument.shape, None) else moved


def _exact(value: Any) -> Any:
    """What can be compared of a setting: numbers, text, arrays of integers, and what is made of these."""
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    if isinstance(value, Level):  # another call of vmap, for as many slices
        return type(value).__name__, getattr(value, "size", None)
    if isinstance(value, np.ndarray):  # floats may be memory to work in, and not even filled
        return (value.shape, hash(all_values(value).tobytes())) if value.dtype.kind in "biu" else None
    if isinstance(value, (tuple, list)):
        return tuple(map(_exact, value))
    if isinstance(value, slice):
        return value.start, value.stop, value.step
    return tuple(_exact(getattr(value, name, None)) for name in getattr(type(value), "__slots__", ()))


def _saved(node: Node) -> tuple[dict[int, tuple[Array, int | None]], dict[int, Any]]:
    """By slot: the saved arrays, and of how many elements of each to make the fingerprint; and the settings."""
    arrays: dict[int, tuple[Array, int | None]] = {}
    settings: dict[int, Any] = {}
    if type(node.saved) is tuple:
        # An operation on a list has no plan of what it saves: its inputs come first.
        saves = getattr(node.op, "saves", ()) or [("input", i) for i in range(len(node.saved))]
        for slot, ((kind, i), value) in enumerate(zip(saves, node.saved)):
            if kind in ("input", "out") and isinstance(value, (np.ndarray, np.generic)):
                constant = kind == "input" and i < len(node) and node[i] is None
                arrays[slot] = value, None if constant else _FEW
            else:
                settings[slot] = _exact(value)
    return arrays, settings


class Trace:
    """What is kept of a node."""

    __slots__ = ("name", "prints", "settings", "written", "read")

    def __init__(self, node: Node) -> None:
        arrays, self.settings = _saved(node)
        self.name = node.op.name
        self.prints = {slot: fingerprint(value, most) for slot, (value, most) in arrays.items()}
        self.written, self.read = Place.of(node.written), tuple(map(Place.of, node.windows or ()))

    def matches(self, node: Node, arguments: Mapping[Any, tuple[Argument, Any]]) -> bool:
        """Return whether this node computes with the same; `arguments` says which of its inputs stand for arguments."""
        arrays, settings = _saved(node)
        if node.op.name != self.name or repr(settings) != repr(self.settings) or Place.of(node.written) != self.written:
            return False
        if arrays.keys() != self.prints.keys():
            return False
        windows = (*(node.windows or ()), *[None] * len(node))
        read = (*self.read, *[None] * len(node))
        return (all(_same_place(read[k], Place.of(windows[k]), arguments.get(writer)) for k, writer in enumerate(node))
                and all(unchanged(self.prints[slot], value, most) for slot, (value, most) in arrays.items()))


def _same_place(before: Place | None, now: Place | None, argument: tuple[Argument, Any] | None) -> bool:
    if argument is None:
        return before == now
    was = argument[0]
    shapes = [was.shape if place is None else place.shape for place in (before, now)]
    if 0 in was.strides or max(map(prod, shapes)) > prod(was.shape):  # elements share memory, by places in all of it
        return True
    if not was.dense:  # there was more between its elements than now
        return shapes[0] == shapes[1] and getattr(before, "index", None) == getattr(now, "index", None)
    first = 0 if was.offset is None else was.itemsize
    return (before and before.within(was)) == (now and now.within(was._replace(offset=first)))
