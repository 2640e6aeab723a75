"""The files that torch.save wrote before PyTorch 1.6, many still in use: pickles one after the other, then the memory.

They are a magic number, a version, what the machine was like, the object, and the names of its storages; then, for each
of these, how many elements it has and those elements.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..arrays import np
from ..base.errors import BadFile, NotSupported
from ..base.operands import Array
from ..core import dtypes
from .archive import KIND, Run, Source, as_elements, fill, storage_key
from .limits import damage, instructions_at, refuse, shown
from .safe_unpickler import Cell, Machine

MAGIC = 0x1950A86A20F9469CFC6C


def read_old_archive(source: Source, at: Callable[[Any, str], None], run: Run, trusted: bool) -> Any:
    """Read what torch.save wrote in its first format."""
    with damage(KIND, trusted):
        return _OldArchive(source, at).load(run)


class _OldArchive:
    """Storages have room as soon as the pickle refers to them, and are filled when all of it has been read."""

    def __init__(self, source: Source, at: Callable[[Any, str], None]) -> None:
        self.source, self.file, self.at = source, source.file, at
        self.cells: dict[str, tuple[Cell, Array]] = {}
        self.filled: set[str] = set()
        self.room = source.size

    def load(self, run: Run) -> Any:
        """The object, with its storages filled."""
        self.file.seek(0)
        if self._plain() != MAGIC:
            raise BadFile("load: Invalid magic number: this is a pickle, but not one that torch.save wrote",
                          fix="pickle.load(file), if you trust it")
        self._plain()
        machine = self._plain()
        if type(machine) is not dict or machine.get("little_endian", True) is not (sys.byteorder == "little"):
            refuse("it was written on a machine with another order of bytes",
                   why="only the zip format tells how to change that",
                   fix="in PyTorch: torch.save(torch.load(old), new)")
        found = run(self._program(), self.storage)
        names = self._plain()
        for name in names if type(names) is list else refuse("its storages are not listed"):
            self._fill(name)
        if len(self.filled) < len(self.cells):
            refuse("the elements of a storage are missing")
        self.source.end = self.file.tell()
        return found

    def _program(self) -> bytes:
        """The pickle that begins here, up to its end."""
        start = self.file.tell()
        for _ in instructions_at(self.file, self.source.size):
            pass
        length = self.file.tell() - start
        self.file.seek(start)
        return self.file.read(length)

    def _plain(self) -> Any:
        """What the next pickle makes, which must be without storages."""
        return Machine(lambda _: refuse("its header refers to a storage")).run(self._program())

    def storage(self, key: Any) -> Any:
        """The storage that a pickle refers to."""
        if type(key) is tuple and len(key) == 4 and type(key[0]) is str and key[0] == "module":
            return key[1]  # a class; its source when it was saved follows
        if type(key) is not tuple or len(key) not in (5, 6) or key[5:] and key[5] is not None:
            refuse("its pickle refers to something that is no storage, or to a part of one")
        element, name, location, count = storage_key(key[:5])
        length = count * (element.itemsize if element else 1)
        if name not in self.cells:
            self.room -= length
            if self.room < 0:
                refuse(f"its storages are larger than the file of {self.source.size} bytes")
            memory = np.zeros(length, np.uint8)
            self.cells[name] = Cell(element, count, lambda kind: as_elements(memory, kind, False)), memory
            if self.at(self.cells[name][0], location) is not None:
                raise NotSupported(f"load: a file of PyTorch's old form comes to the CPU, not to {location}",
                                   why="its tensors are made before their elements are read",
                                   fix="mutagrad.load(f, map_location='cpu'), then x.to(device)")
        cell = self.cells[name][0]
        if element not in (None, cell.kind) or cell.count != count:
            refuse(f"the storage {name[:80]!r} is of two types or sizes")
        return cell

    def _fill(self, name: Any) -> None:
        """Reads the elements of the next storage."""
        if type(name) is not str or name not in self.cells or name in self.filled:
            refuse(f"the storage {shown(name)} is used by no tensor, or listed twice")
        cell, memory = self.cells[name]
        head = self.file.read(8)
        if len(head) < 8 or int.from_bytes(head, "little") != cell.count:
            refuse(f"the storage {shown(name)} has another size than its tensors say")
        fill(memory, self.file)
        if cell.kind is dtypes.bool_:
            np.minimum(memory, 1, out=memory)  # NumPy expects nothing but 0 and 1
        cell.compute_marked()
        self.filled.add(name)
