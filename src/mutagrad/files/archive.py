"""The files that torch.save writes: a zip archive of a pickle, `data.pkl`, and of its tensors' memory, `data/0` and on.

Sizes are compared with what the file holds before memory is asked for.
"""
from __future__ import annotations

import mmap
import os
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from ..arrays import np
from ..base.errors import MissingExtra, NotSupported
from ..base.operands import Array
from ..core import dtypes
from .limits import LONGEST_NAME, damage, refuse, whole
from .safe_unpickler import STORAGES, UNTYPED, Cell, Global

BYTE_ORDER: list[str | None] = [None]  # of files that do not tell theirs, where the user has said what it is
PIECE = 1 << 20  # bytes
KIND = "file that torch.save wrote"
Run = Callable[[bytes, Callable[[Any], Any]], Any]  # makes the object of a pickle, with a function for its storages


class Source:
    """The bytes of a file, read where asked for or mapped into memory. `end`, once known, is where the content ends."""

    end: int | None = None

    def __init__(self, file: IO[bytes], path: str | os.PathLike[str] | None, mapped: bool) -> None:
        self.file, self.path = file, path
        self.size = file.seek(0, os.SEEK_END)
        self.mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped and self.size else None

    def bytes_at(self, start: int, count: int) -> Any:
        """Return an array of bytes that may be written to: a write never reaches the file."""
        if start + count > self.size:
            refuse(f"the file ends after {self.size} bytes, and should have {start + count}")
        if self.mapped is not None:
            return np.frombuffer(self.mapped, np.uint8, count, start) if count else np.empty(0, np.uint8)
        found = np.empty(count, np.uint8)
        self.file.seek(start)
        fill(found, self.file)
        return found


def read_archive(source: Source, at: Callable[[Any, str], None], run: Run, trusted: bool) -> Any:
    """Read what torch.save wrote. `at(storage, location)` raises where what was at this location cannot be here."""
    with damage(KIND, trusted), zipfile.ZipFile(source.file) as archive:
        return _Archive(source, archive, at).load(run)


class _Archive:
    """The entries of a checkpoint, and the storages that have been read from them."""

    def __init__(self, source: Source, archive: zipfile.ZipFile, at: Callable[[Any, str], None]) -> None:
        self.source, self.archive, self.at = source, archive, at
        self.entries = {info.filename: info for info in archive.infolist()}
        self.cells: dict[str, Cell] = {}
        self._check_sizes()
        pickles = [name for name in self.entries if name.endswith("/data.pkl") and name.count("/") == 1]
        roots = [name[:-len("data.pkl")] for name in pickles]
        if len(roots) != 1:
            refuse("this zip archive was not written by torch.save",
                   why=f"it has {len(roots)} entries data.pkl where there should be one")
        self.root = roots[0]
        if self.root + "constants.pkl" in self.entries:
            raise NotSupported("load: this is a TorchScript archive", why="it holds a program",
                               fix="torch.save(model.state_dict(), f)")
        self.swap = (self._text("byteorder") or BYTE_ORDER[0] or "little") != sys.byteorder

    def _check_sizes(self) -> None:
        """Nothing is compressed, and no two entries are the same bytes: so all together is no larger than the file."""
        if len(self.entries) != len(self.archive.infolist()):
            refuse("two entries of this archive have the same name")
        for info in self.entries.values():
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
                refuse(f"the entry {info.filename[:80]!r} is compressed or encrypted", why="torch.save writes neither")
        if min((info.header_offset for info in self.entries.values()), default=0):
            refuse("this archive is followed by another one",
                   why="the end of a zip archive says where it is, and this file ends with the other",
                   fix="a file for each; or format='safetensors', which can stand one after the other")
        if sum(info.file_size for info in self.entries.values()) > self.source.size:
            refuse(f"its entries are larger than the file of {self.source.size} bytes")

    def _text(self, name: str) -> str:
        info = self.entries.get(self.root + name)
        return "" if info is None or info.file_size > 100 else self.archive.read(info).decode("ascii")

    def load(self, run: Run) -> Any:
        found = run(self.archive.read(self.root + "data.pkl"), self.storage)
        for cell in self.cells.values():  # some may be there for their own sake, and the file is about to be closed
            cell.settled()
            cell.compute_marked()
        return refuse("it holds a name and no data") if isinstance(found, Global) else found

    def storage(self, key: Any) -> Cell:
        """("storage", its class, the name of its entry, where it was, how many elements)."""
        if type(key) is not tuple or len(key) != 5:
            refuse("its pickle refers to something that is no storage")
        element, name, location, count = storage_key(key)
        info = self.entries.get(f"{self.root}data/{name}")
        if info is None:
            refuse(f"the storage {name[:80]!r} is not in this archive")
        if count * (element.itemsize if element else 1) != info.file_size:
            refuse(f"the storage {name[:80]!r} should have {count} elements of {element or 'a byte'} "
                   f"and has {info.file_size} bytes")
        if name not in self.cells:
            self.cells[name] = Cell(element, count, lambda d: self._array(info, d))
            self.cells[name].place = self.at(self.cells[name], location)
        elif self.cells[name].kind is not element and element is not None:
            refuse(f"the storage {name[:80]!r} is of two types")
        return self.cells[name]

    def _array(self, info: zipfile.ZipInfo, kind: dtypes.dtype) -> Array:
        if info.file_size % kind.itemsize:
            refuse(f"the entry {info.filename[:80]!r} has {info.file_size} bytes, which are no elements of {kind}")
        if self.source.mapped is not None:
            raw = self.source.bytes_at(self._start(info), info.file_size)
        else:
            raw = np.empty(info.file_size, np.uint8)
            with self.archive.open(info) as entry:
                fill(raw, entry)
        return as_elements(raw, kind, self.swap)

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where an entry's bytes begin: after its local header, and a name and extras whose lengths stand in that."""
        header = self.source.bytes_at(info.header_offset, 30).tobytes()
        if header[:4] != b"PK\x03\x04":
            refuse(f"the entry {info.filename[:80]!r} is not where it should be")
        name, extra = (int.from_bytes(header[k:k + 2], "little") for k in (26, 28))
        return info.header_offset + 30 + name + extra


def storage_key(key: Any) -> tuple[dtypes.dtype | None, str, str, int]:
    """Check ("storage", class or element type, entry, where it was, how many elements); return all but the first."""
    what, kind, name, location, count = key
    if not all(type(text) is str and len(text) <= LONGEST_NAME for text in (what, name, location)) or what != "storage":
        refuse("its pickle refers to something that is no storage")
    if not isinstance(kind, (Global, dtypes.dtype)) or not whole(count):
        refuse("its pickle refers to a storage without a class or a size")
    element = kind if isinstance(kind, dtypes.dtype) else STORAGES.get(kind.name)
    if element is None and kind.name != UNTYPED:
        refuse(f"{kind.name} is no class of storages")
    return element, name, location, count


def fill(target: Any, file: IO[bytes]) -> None:
    """Read an array of bytes from an open file, piece by piece."""
    view = memoryview(target)
    while len(view):
        piece = file.read(min(len(view), PIECE))
        if not piece:
            refuse(f"the file ends {len(view)} bytes too early, or became shorter while it was read")
        view[:len(piece)] = piece
        view = view[len(piece):]


def as_elements(raw: Array, kind: dtypes.dtype, swap: bool) -> Array:
    """Return bytes of a file as elements of a type, in this machine's order."""
    if kind in dtypes.LOADED_AS:
        return _converted(raw, kind, swap)
    if kind is dtypes.bool_:
        return raw.view(np.bool_) if not raw.size or raw.max() <= 1 else raw != 0  # NumPy expects nothing but 0 and 1
    found = raw.view(kind.array_type) if raw.ctypes.data % kind.itemsize == 0 else raw.copy().view(kind.array_type)
    if swap:
        part = kind.itemsize // 2 if kind.is_complex else kind.itemsize
        found.view(f"u{part}").byteswap(inplace=True)
    return found


def _converted(raw: Array, kind: dtypes.dtype, swap: bool) -> Array:
    """Return elements of a type that no tensor can have in one that holds all of its values."""
    wanted = dtypes.LOADED_AS[kind].array_type
    if kind is dtypes.complex32:
        return as_elements(raw, dtypes.float16, swap).astype(np.float32).view(wanted)
    try:
        return raw.view(getattr(import_module("ml_dtypes"), kind.name)).astype(wanted)
    except (ImportError, AttributeError):
        raise MissingExtra(f"load: elements of type {kind.name} need ml_dtypes, which is not installed or too old",
                           why="NumPy has no such type", fix="pip install 'mutagrad[bfloat16]'") from None
