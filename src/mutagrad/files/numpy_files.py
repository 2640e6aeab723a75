"""Files that numpy.save and numpy.savez write, as tensors: `.npy` holds one array, `.npz` is a zip archive of several.

Objects, which would have to be unpickled, are refused. Sizes are compared with the file before memory is asked for.
"""
from __future__ import annotations

import io
import math
import zipfile
from typing import Any

from ..arrays import np
from ..arrays.kinds import moved
from ..base.operands import Array
from ..core import dtypes
from ..core.factory import make
from .archive import Source, fill
from .limits import MOST_DIMENSIONS, damage, refuse, whole

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000  # bytes
MOST_COMPRESSED = 1040  # times: what deflate can do at best


def read_array(source: Source, place: Any) -> Any:
    """Read a file of one array."""
    with damage(".npy file"):
        head = io.BytesIO(source.bytes_at(0, min(source.size, LONGEST_HEADER)).tobytes())
        found, order = _described(head, source.size)
        raw = source.bytes_at(head.tell(), source.size - head.tell())
        return make(moved(_elements(raw, *found, order), place))


def is_array_archive(source: Source) -> bool:
    """Return whether a zip archive holds nothing but arrays."""
    with damage("zip archive"), zipfile.ZipFile(source.file) as archive:
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def read_arrays(source: Source, place: Any) -> dict[str, Any]:
    """Read a file of several arrays, by name."""
    with damage(".npz file"), zipfile.ZipFile(source.file) as archive:
        infos = archive.infolist()
        packed = sum(info.compress_size for info in infos)
        if packed > source.size or any(info.file_size > MOST_COMPRESSED * (info.compress_size + 1) for info in infos):
            refuse(f"its entries are larger than a file of {source.size} bytes can hold")
        return {info.filename.removesuffix(".npy"): _entry(archive, info, place) for info in infos}


def _entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: Any) -> Any:
    with archive.open(info) as entry:
        head = io.BytesIO(entry.read(min(info.file_size, LONGEST_HEADER)))
        found, order = _described(head, info.file_size)
        raw = np.empty(info.file_size - head.tell(), np.uint8)
        first = np.frombuffer(head.read(), np.uint8)
        raw[:first.size] = first
        fill(raw[first.size:], entry)
    return make(moved(_elements(raw, *found, order), place))


def _described(head: io.BytesIO, size: int) -> tuple[tuple[tuple[int, ...], Any], str]:
    """Return the shape, the element type and the order of an array, whose elements begin where `head` then is."""
    version = np.lib.format.read_magic(head)
    if version not in ((1, 0), (2, 0)):
        refuse(f"its version is {version}, for arrays that no tensor can hold")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, kind = read(head, max_header_size=LONGEST_HEADER)
    if kind.kind not in "biufc" or kind.newbyteorder("=") not in _TYPES:
        refuse(f"it holds elements of type {str(kind)[:80]}, which no tensor can have",
               why="objects would have to be unpickled, which runs code" if kind.hasobject else "they are no numbers",
               fix="save numbers")
    left, fits = size - head.tell(), len(shape) <= MOST_DIMENSIONS and all(map(whole, shape))
    if not fits or math.prod(shape) * kind.itemsize != left:
        refuse(f"its shape is {str(shape)[:80]}, of {kind.itemsize} bytes each, and it has {left} bytes")
    return (shape, kind), "F" if by_columns else "C"


_TYPES = frozenset(d.array_type for d in dtypes.ALL)


def _elements(raw: Array, shape: tuple[int, ...], kind: Any, order: str) -> Array:
    found = raw.view(kind) if raw.ctypes.data % kind.itemsize == 0 else raw.copy().view(kind)
    if kind == np.bool_:
        found = raw.view(np.bool_) if not raw.size or raw.max() <= 1 else raw != 0
    if not kind.isnative:
        found = found.astype(kind.newbyteorder("="))
    return np.ascontiguousarray(found.reshape(shape, order=order)).reshape(shape)
