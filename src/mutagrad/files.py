"""Saving and loading.

>>> import io
>>> import mutagrad as mg
>>> file = io.BytesIO()
>>> mg.save({"weight": mg.ones(2), "epoch": 3}, file)
>>> mg.load(io.BytesIO(file.getvalue()))
{'weight': tensor([1., 1.]), 'epoch': 3}

What is written is a safetensors file, which other libraries read too: arrays by name, and as text in its header whatever else
the object was made of (`structure.py`). What is read are such files, by whomever, and those that torch.save writes
(`archive.py`, `pickled.py`). Neither can run anything.
"""
from __future__ import annotations

import io
import json
import math
import mmap as memory_map
import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from . import dtypes
from .archive import as_elements, check_disk, read_archive
from .backends import np
from .device import device
from .errors import BadArgument, BadFile, BadValue, MissingExtra, NoDevice, NotSupported
from .pickled import refuse
from .structure import Packer, Unpacker

LONGEST_HEADER = 100_000_000  # bytes, as the format says
ELEMENTS = {"F64": dtypes.float64, "F32": dtypes.float32, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "I64": dtypes.int64, "I32": dtypes.int32,
            "I16": dtypes.int16, "I8": dtypes.int8, "U64": dtypes.uint64, "U32": dtypes.uint32, "U16": dtypes.uint16, "U8": dtypes.uint8,
            "BOOL": dtypes.bool_, "C64": dtypes.complex64}


@cache
def _safetensors(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra("save and load: need safetensors, which is not installed", why="it is the format of the files",
                           fix="pip install 'mutagrad[files]'") from None


# ------------------------------------------------------------------------------------------------------------------- saving

def save(obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True) -> None:
    """Writes tensors, and containers of tensors, arrays, numbers and text, to a path or an open file.

    Where something fails on the way, a file that was at that path before is still there, unchanged. No pickle is written, so
    what PyTorch lets a program say about that makes no difference.
    """
    packer = Packer()
    description = json.dumps(packer.pack(obj))
    data = _safetensors("safetensors.numpy").save(packer.arrays, metadata={"format": "pt", "mutagrad": description})
    if isinstance(f, (str, os.PathLike)):
        _replace(os.path.realpath(f), data)
    elif hasattr(f, "write"):
        write_all(f, data)
    else:
        raise BadArgument(f"save: expects a path or a file open for writing, got {type(f).__name__}", fix="mutagrad.save(x, 'x.safetensors')")


def write_all(file: Any, data: bytes) -> None:
    file.write(data)


def _replace(target: str, data: bytes) -> None:
    """Writes beside the old file, and puts the new one in its place once all of it has reached the disk."""
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe, or /dev/null
        with open(target, "wb") as file:
            return write_all(file, data)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".mutagrad-{os.getpid()}-{secrets.token_hex(4)}.partial")
    try:
        with open(temporary, "xb") as file:
            write_all(file, data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """That the name now means the new file must reach the disk, too. Not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ------------------------------------------------------------------------------------------------------------------ loading

class Source:
    """The bytes of a file, read where they are asked for or mapped into memory."""

    def __init__(self, file: Any, path: Any, mapped: bool) -> None:
        self.file, self.path = file, path
        self.size = file.seek(0, os.SEEK_END)
        self.mapped = memory_map.mmap(file.fileno(), 0, access=memory_map.ACCESS_COPY) if mapped and self.size else None

    def bytes_at(self, start: int, count: int) -> Any:
        """An array of bytes that may be written to: a write never reaches the file."""
        if start + count > self.size:
            refuse(f"the file ends after {self.size} bytes, and should have {start + count}")
        if self.mapped is not None:
            return np.frombuffer(self.mapped, np.uint8, count, start) if count else np.empty(0, np.uint8)
        found = np.empty(count, np.uint8)
        self.file.seek(start)
        view = memoryview(found)
        while len(view):
            piece = self.file.read(min(len(view), 1 << 24))
            if not piece:
                refuse("the file became shorter while it was read")
            view[:len(piece)] = piece
            view = view[len(piece):]
        return found


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = True, mmap: bool | None = None) -> Any:
    """What was saved, from a path or an open file: a safetensors file, or one that torch.save wrote.

    Nothing in a file is ever run: a file that names anything but plain data is refused, unless its names have been allowed
    with `serialization.add_safe_globals`. `weights_only=False` changes nothing about that.
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(Source(file, f, bool(mmap)), _arrival(map_location))
    if not hasattr(f, "read"):
        raise BadArgument(f"load: expects a path or a file open for reading, got {type(f).__name__}", fix="mutagrad.load('x.safetensors')")
    if mmap:
        raise BadValue("load: mmap=True with an open file", why="only a file with a name can be mapped", fix="mutagrad.load(path, mmap=True)")
    in_place = hasattr(f, "seekable") and f.seekable() and f.tell() == 0
    source = Source(f if in_place else io.BytesIO(f.read()), None, False)
    if not source.size:
        raise BadFile("load: there is nothing to read", why="this file is empty, or has been read or written up to its end", fix="f.seek(0)")
    return _load(source, _arrival(map_location))


def _load(source: Source, arrival: Callable[[Any, str], None]) -> Any:
    head = source.bytes_at(0, min(source.size, 16)).tobytes()
    if head[:2] == b"PK":
        return read_archive(source, arrival)
    if head[8:9] == b"{":
        arrival(None, "cpu")
        return _read_safetensors(source)
    if head[:1] == b"\x80":
        raise BadFile("load: this is a bare pickle, or a checkpoint in the format of PyTorch before 1.6", why="only its zip format is read",
                      fix="in PyTorch: torch.save(torch.load(old), new)")
    raise BadFile(f"load: this is neither a safetensors file nor one that torch.save wrote ({source.size} bytes, beginning with {head!r})",
                  fix="mutagrad.save(x, path) and torch.save(x, path) write files that can be loaded")


def _arrival(map_location: Any) -> Callable[[Any, str], None]:
    """Raises unless what was at a place is to come to the CPU. `map_location` is as in PyTorch: a place, a dict, or a function."""
    if isinstance(map_location, str):
        map_location = device(map_location)

    def check(storage: Any, location: str) -> None:
        place: Any = location
        if isinstance(map_location, dict):
            place = map_location.get(location, location)
        elif callable(map_location):
            moved = map_location(storage, location)
            place = location if moved is None else moved if isinstance(moved, (str, device)) else "cpu"
        elif map_location is not None:
            place = map_location
        if device(place).type != "cpu":
            raise NoDevice(f"load: a tensor was on {location}, and should come to {place}", why="this build computes on the CPU only",
                           fix="mutagrad.load(f, map_location='cpu')")

    return check


def _read_safetensors(source: Source) -> Any:
    try:
        length = int.from_bytes(source.bytes_at(0, 8).tobytes(), "little")
        if length > min(LONGEST_HEADER, source.size - 8):
            refuse(f"its header should have {length} bytes, in a file of {source.size}")
        _check(source)
        header = json.loads(source.bytes_at(8, length).tobytes())
        description = header.pop("__metadata__", {}).get("mutagrad")
        unpacker = Unpacker(lambda name: _array(source, header, name, 8 + length))
        return unpacker.unpack(json.loads(description) if description is not None else {"dict": [[name, {"tensor": name}] for name in header]})
    except (BadFile, NotSupported, MissingExtra):
        raise
    except Exception as error:  # whatever a damaged header makes the readers raise
        check_disk(error)
        raise BadFile(f"load: this is no safetensors file, or it is damaged: {error or type(error).__name__}", fix="copy or save it again") from error


def _check(source: Source) -> None:
    """The library's own check: types, sizes and places of all arrays, which together are the whole file."""
    library = _safetensors("safetensors")
    if source.path is not None:
        with library.safe_open(source.path, framework="numpy"):
            pass
    else:
        library.deserialize(source.bytes_at(0, source.size).tobytes())


def _array(source: Source, header: dict[str, Any], name: str, start: int) -> Any:
    if name not in header:
        refuse(f"the tensor {name[:80]!r} is not in this file")
    entry = header[name]
    kind, (first, end), shape = entry["dtype"], entry["data_offsets"], tuple(entry["shape"])
    if kind not in ELEMENTS:
        raise NotSupported(f"load: {name[:80]!r} has elements of type {kind}, which is not supported", why="supported are " + ", ".join(ELEMENTS),
                           fix="convert it before saving")
    if not 0 <= first <= end or math.prod(shape) * ELEMENTS[kind].itemsize != end - first:
        refuse(f"{name[:80]!r} of shape {shape} and type {kind} is said to have {end - first} bytes")
    return as_elements(source.bytes_at(start + first, end - first), ELEMENTS[kind], sys.byteorder == "big").reshape(shape)
