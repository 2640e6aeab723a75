"""Safetensors files: eight bytes for the length of a header, a header that says where each array lies, and the arrays.

Other libraries read and write them, too, and nothing in them can be run. What the header says is compared with the file
before memory is asked for: the arrays lie end to end, so all of them together are no larger than the file.
"""
from __future__ import annotations

import json
import math
import sys
from typing import Any, NamedTuple

from ..base.errors import NotSupported
from ..base.operands import Array
from ..core import dtypes
from .archive import Source, as_elements
from .limits import MOST_DIMENSIONS, parsed, refuse, shown, whole
from .streams import Sink, pieces

LONGEST_HEADER = 100_000_000  # bytes, as the format says
RESERVED = "__metadata__"
ELEMENTS = {"F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16,
            "I64": dtypes.int64, "I32": dtypes.int32, "I16": dtypes.int16, "I8": dtypes.int8,
            "U64": dtypes.uint64, "U32": dtypes.uint32, "U16": dtypes.uint16, "U8": dtypes.uint8,
            "BOOL": dtypes.bool_, "C64": dtypes.complex64}
NAMES = {d: name for name, d in ELEMENTS.items()}
EIGHT_BITS = {"F8_E4M3": dtypes.float8_e4m3fn, "F8_E5M2": dtypes.float8_e5m2, "F8_E8M0": dtypes.float8_e8m0fnu,
              "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz}  # are only read
OTHERS = {"F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}  # with their bits
BITS = {**{name: 8 * d.itemsize for name, d in (ELEMENTS | EIGHT_BITS).items()}, **OTHERS}


# -------------------------------------------------------------------------------------------------------------- writing

def write(arrays: dict[str, Array], metadata: dict[str, str], sink: Sink) -> None:
    """Write arrays by name, those with the largest elements first, which keeps all of them aligned."""
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Any] = {RESERVED: metadata}
    end = 0
    for name in order:
        kind, shape = _described(arrays[name])
        start, end = end, end + arrays[name].nbytes
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    sink.write(len(text).to_bytes(8, "little") + text)
    for name in order:
        for piece in pieces(arrays[name]):
            sink.write(piece)


def _described(array: Array) -> tuple[str, list[int]]:
    kind = dtypes.of_array(array.dtype)
    if kind is dtypes.complex128:  # the format has no such type: pairs of doubles
        return "F64", [*array.shape, 2]
    return NAMES[kind], list(array.shape)


# -------------------------------------------------------------------------------------------------------------- reading

class Entry(NamedTuple):
    """What the header says of an array. `first` and `end` count bytes from the end of the header."""

    kind: str
    shape: tuple[int, ...]
    first: int
    end: int


class Header:
    """The header of a file, checked against it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        length = int.from_bytes(source.bytes_at(0, 8).tobytes(), "little")
        if length > min(LONGEST_HEADER, source.size - 8):
            refuse(f"its header should have {length} bytes, in a file of {source.size}")
        found = parsed(source.bytes_at(8, length).tobytes())
        if type(found) is not dict:
            refuse("its header is no object of names")
        self.metadata = found.pop(RESERVED, None) or {}
        if type(self.metadata) is not dict or not all(type(value) is str for value in self.metadata.values()):
            refuse("its metadata is not text")
        self.start = 8 + length
        self.entries = {name: _entry(name, content) for name, content in found.items()}
        self.end = self.start + self._total()
        if self.end > source.size or self.end < source.size and source.path is not None:  # more may follow in a stream
            refuse(f"its arrays end at byte {self.end}, in a file of {source.size}")

    def _total(self) -> int:
        """Return the number of bytes of all arrays, which must lie end to end."""
        end = 0
        for name, entry in sorted(self.entries.items(), key=lambda item: item[1][2:]):
            if entry.first != end:
                refuse(f"the array {shown(name)} begins at byte {entry.first}, where {end} is next")
            end = entry.end
        return end

    def array(self, name: Any) -> Array:
        """Read an array."""
        if type(name) is not str or name not in self.entries:
            refuse(f"the tensor {shown(name)} is not in this file")
        kind, shape, first, end = self.entries[name]
        if kind in OTHERS:
            raise NotSupported(f"load: {shown(name)} has elements of type {kind}, which is not supported",
                               why="supported are " + ", ".join(ELEMENTS), fix="convert it before saving")
        data = self.source.bytes_at(self.start + first, end - first)
        return as_elements(data, (ELEMENTS | EIGHT_BITS)[kind], sys.byteorder == "big").reshape(shape)


def _entry(name: str, content: Any) -> Entry:
    if type(content) is not dict:
        refuse(f"the array {shown(name)} is not described")
    kind, shape, place = map(content.get, ("dtype", "shape", "data_offsets"))
    if type(kind) is not str or kind not in BITS:
        refuse(f"{shown(name)} has elements of type {shown(kind)}, which the format does not have")
    if type(shape) is not list or len(shape) > MOST_DIMENSIONS or not all(map(whole, shape)):
        refuse(f"{shown(name)} has the shape {shown(shape)}")
    if type(place) is not list or len(place) != 2 or not all(map(whole, place)):
        refuse(f"{shown(name)} lies at {shown(place)}")
    if math.prod(shape) * BITS[kind] != 8 * (place[1] - place[0]):
        refuse(f"{shown(name)} of shape {shape} and type {kind} is said to have {place[1] - place[0]} bytes")
    return Entry(kind, tuple(shape), *place)
