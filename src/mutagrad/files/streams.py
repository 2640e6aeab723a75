"""Writing files: all bytes or an error, arrays without copying them, and nothing under its name before it is complete.

A file is written beside the one that it will replace, under a name derived from that one's, and is locked meanwhile.
The kernel drops the lock when its process dies, however that happens. So the next save under that name can tell which
partial files nobody is writing any more, and removes them. Where there are no such locks (Windows, some network
file systems), leftovers stay: removing one that somebody is writing would be worse. A process id in the name would not
do, since processes on other machines and in other containers have numbers of their own.
"""
from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ..arrays import np
from ..arrays.kinds import host
from ..base.operands import Array

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BLOCK = 1 << 20  # bytes


# ---------------------------------------------------------------------------------------------------------------- bytes

def write_all(file: Any, data: bytes | memoryview) -> None:
    """Write all of it: an unbuffered file may take only a part at a time."""
    view = memoryview(data)
    while len(view):
        count = file.write(view)
        if type(count) is not int and not isinstance(file, io.RawIOBase):
            return  # an object of the user's, whose `write` need not return anything
        if count is None or count <= 0:
            code = errno.EAGAIN if count is None else errno.EIO
            raise OSError(code, f"save: the file takes no more, with {len(view)} bytes left to write")
        view = view[count:]


class Sink:
    """A target for bytes. Files of the user's get copies by blocks, which they may keep; ours get the memory."""

    def __init__(self, file: Any, ours: bool = False) -> None:
        self.file, self.ours, self.broken = file, ours, False

    def write(self, data: bytes | memoryview) -> int:
        view = memoryview(data)
        if self.broken:  # an error is on its way, and the cleaning up of others, such as zipfile's, must not write on
            return len(view)
        try:
            for part in [view] if self.ours else (bytes(view[k:k + BLOCK]) for k in range(0, len(view), BLOCK)):
                write_all(self.file, part)
        except BaseException:
            self.broken = True
            raise
        return len(view)

    def flush(self) -> None:
        """Do nothing: the file is flushed when all is written."""


def pieces(array: Array) -> Iterator[memoryview]:
    """Iterate over the bytes of an array in C order, little-endian. What lies otherwise is copied by blocks."""
    array = host(array, "it is saved")
    if array.dtype.kind == "V":  # bfloat16, which nditer does not know
        array = array.view(np.uint16)
    if not array.size:
        return
    wanted = array.dtype.newbyteorder("<")
    if array.flags.c_contiguous and wanted == array.dtype:
        yield memoryview(array.reshape(-1).view(np.uint8))
        return
    blocks = np.nditer(array, flags=["external_loop", "buffered"], op_flags=[["readonly", "contig"]],
                       op_dtypes=[wanted], order="C", casting="equiv", buffersize=BLOCK // array.itemsize)
    for block in blocks:
        yield memoryview(block.reshape(-1).view(np.uint8))


# ---------------------------------------------------------------------------------------------------------------- files

def write_file(path: str | os.PathLike[str], write: Callable[[Sink], None]) -> None:
    """Replace or make a file. On an error, which names the path as it was given, nothing has changed."""
    try:
        _replace(os.path.realpath(path), write)
    except OSError as error:
        error.filename = os.fspath(path)
        del error.filename2  # None would be shown as a second name
        raise


def _replace(target: str, write: Callable[[Sink], None]) -> None:
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe, or /dev/null
        with open(target, "wb") as file:
            return write(Sink(file, ours=True))
    folder, name = os.path.split(target)
    prefix = _prefix(name)
    _remove_leftovers(folder, prefix)
    temporary, file = _open_partial(folder, prefix)
    try:
        with file:
            write(Sink(file, ours=True))
            file.flush()
            os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, stat.S_IMODE(mode))
            if fcntl is not None:
                os.replace(temporary, target)  # while it is open, and so locked
        if fcntl is None:  # Windows renames no open file
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _prefix(name: str) -> str:
    """How partial files for this name begin. A digest stands for what would make a name too long."""
    return f".{name[:40]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}-"


def _open_partial(folder: str, prefix: str) -> tuple[str, io.BufferedWriter]:
    """Open a new file and lock it; try again if another process took it for a leftover before it was locked."""
    while True:
        path = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}.partial")
        file = open(path, "xb")  # noqa: SIM115
        if fcntl is None:
            return path, file
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                return path, file
        file.close()


def _remove_leftovers(folder: str, prefix: str) -> None:
    """Remove partial files for this name that nobody is writing."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        leftovers = [e.path for e in entries if e.name.startswith(prefix) and e.name.endswith(".partial")]
        for path in leftovers:
            with suppress(OSError):
                handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while its writer lives
                    os.unlink(path)
                finally:
                    os.close(handle)


def _sync_folder(folder: str) -> None:
    """Make the new name reach the disk, too. Not every system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
