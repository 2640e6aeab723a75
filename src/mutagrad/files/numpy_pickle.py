"""NumPy's arrays and numbers in pickles, put together from what is described there: no function is called by name.

A pickle makes an array in two steps, an empty one and its state; so does this, and the state is looked at in between.
"""
from __future__ import annotations

import math
from typing import Any

from ..arrays import np
from ..base.operands import Array
from .limits import MOST_DIMENSIONS, Meter, refuse, shown, whole

_KINDS = frozenset(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
_ORDERS = frozenset("<>|=")


class ArrayType:
    """An element type, to which a pickle adds the order of its bytes afterwards."""

    def __init__(self, kind: Any) -> None:
        if type(kind) is not str or kind not in _KINDS:
            refuse(f"arrays of the type {shown(kind)} are not supported", why="only numbers and truth values are")
        self.dtype = np.dtype(kind)

    def set_state(self, state: Any) -> None:
        if type(state) is not tuple or len(state) < 2 or type(state[1]) is not str or state[1] not in _ORDERS:
            refuse("an element type of NumPy's is not described as it should be")
        self.dtype = self.dtype.newbyteorder(state[1])


def element_type(kind: Any, *settings: Any) -> ArrayType:
    return ArrayType(kind)


def empty_array(kind: Any, shape: Any, code: Any) -> Array:
    """Return an array that gets its state later."""
    if getattr(kind, "name", None) != "numpy.ndarray":
        refuse("an array is of a class that is not supported")
    return np.empty(0, np.bool_)


def number(meter: Meter, kind: Any, raw: Any) -> Any:
    return _elements(meter, kind, raw, ())[()]


def from_buffer(meter: Meter, raw: Any, kind: Any, shape: Any, order: Any) -> Array:
    """Return an array as protocol 5 of pickles describes it."""
    return _ordered(_elements(meter, kind, raw, shape), shape, order == "F")


def set_state(meter: Meter, array: Array, state: Any) -> None:
    """Give an array its shape, type and elements."""
    if type(state) is not tuple or len(state) != 5 or array.size:
        refuse("an array is not described as it should be")
    _, shape, kind, by_columns, raw = state
    flat = _elements(meter, kind, raw, shape)
    array.__setstate__((1, shape, flat.dtype, by_columns is True, flat.tobytes()))


def _elements(meter: Meter, kind: Any, raw: Any, shape: Any) -> Array:
    """Return a copy of raw bytes as elements in C order."""
    if not isinstance(kind, ArrayType) or type(raw) not in (bytes, bytearray) or type(shape) is not tuple:
        refuse("an array is not made of a type, a shape and bytes")
    if len(shape) > MOST_DIMENSIONS or not all(map(whole, shape)) or math.prod(shape) * kind.dtype.itemsize != len(raw):
        refuse(f"an array of shape {shown(shape)} does not have {len(raw)} bytes")
    meter.charge(len(raw) >> 3)
    return np.frombuffer(raw, kind.dtype).copy().reshape(shape)


def _ordered(array: Array, shape: Any, by_columns: bool) -> Array:
    return array.reshape(-1).reshape(shape, order="F") if by_columns else array


# What a pickle names, by what it means here. The first are given the meter.
METERED = {f"numpy.{core}.{name}": make for core in ("core", "_core") for name, make in (
    ("multiarray.scalar", number), ("numeric._frombuffer", from_buffer))}
PLAIN = {f"numpy.{core}.multiarray._reconstruct": empty_array for core in ("core", "_core")} | {
    "numpy.dtype": element_type}
