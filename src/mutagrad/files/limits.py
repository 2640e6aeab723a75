"""Bounds on what a file may cost: reading one takes time and memory in proportion to its length, whatever it says.

Three things would break that promise. A file that refers to one of its parts many times makes a long thing cheaply, so
whatever copies or hashes a part is charged for its length (`Meter`). A file can choose keys that all have one hash, so
chains of them are counted (`Meter.key`). And what it holds may be endless to look at, such as nested lists to print or
an expanded tensor to iterate over, so errors show only what is short (`shown`, `damage`).
"""
from __future__ import annotations

import errno
import io
import json
import pickle
import pickletools
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any, NoReturn

from ..arrays import np
from ..base.errors import BadFile, MissingExtra, NotSupported

PER_BYTE, FREE = 4, 100_000  # items that a file may have copied or hashed: for each of its bytes, and in any case
LOOKS = 64  # how often the elements of indices may be looked at
SECONDS_PER_BYTE, FREE_SECONDS = 6e-6, 1.0  # of processor time: several times what an honest file takes
LONGEST_CHAIN = 64  # keys of one dictionary that have the same hash: more than two are rare unless they were chosen
LONGEST_NAME = 255  # characters, of a class or a storage
DEEPEST_KEY = 20  # tuples in tuples
DEEPEST_TEXT = 1000  # brackets within brackets
LONGEST_LINE, LONGEST_INTEGER = 100_000, 4300  # characters: the time to read an integer grows with their square
MOST_DIMENSIONS = 64  # NumPy's limit
WORD = 1 << 64


def refuse(what: str, why: str = "it is damaged, or was made to do harm",
           fix: str = "save it again from its source") -> NoReturn:
    raise BadFile(f"load: {what}", why=why, fix=fix)


def whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 62


# --------------------------------------------------------------------------------------------------------------- errors

class Looked(Exception):
    """Raised when enough of a file has been read."""


class UsersError(Exception):
    """Carries, past the readers, what a function of the user's has raised: that is no damage of the file."""

    def __init__(self, raised: Exception) -> None:
        self.raised = raised


def shown(value: Any) -> str:
    """Show a value of a file in an error: itself if it is short, else its class. (`str` of nested lists can hang.)"""
    if type(value) in (str, bytes):
        return repr(value[:80])
    if value is None or type(value) in (bool, float) or _short(value):
        return str(value)
    if isinstance(value, (list, tuple)) and len(value) <= MOST_DIMENSIONS and all(map(_short, value)):
        return str(list(value))
    return f"an object of class {type(value).__name__[:80]}"


def _short(value: Any) -> bool:
    return type(value) is int and value.bit_length() < 100


@contextmanager
def damage(kind: str, trusted: bool = False) -> Iterator[None]:
    """Turn whatever a damaged file makes the readers raise into BadFile; classes in a trusted file raise their own.

    MemoryError stays what it is: memory is asked for in proportion to the file, so running short of it is no damage.
    """
    try:
        yield
    except (BadFile, NotSupported, MissingExtra, Looked, UsersError, MemoryError):
        raise
    except Exception as error:
        check_disk(error)
        if trusted and not isinstance(error, (zipfile.BadZipFile, EOFError, pickle.UnpicklingError)):
            raise
        raise BadFile(f"load: this is no {kind}, or it is damaged: {_reason(error)}",
                      fix="copy or save it again") from (error if _plain(error) else None)


def check_disk(error: Exception) -> None:
    """Reraise an error that is the disk's and not the file's. (Seeking to an impossible place is EINVAL.)"""
    for cause in (error, error.__context__):
        if isinstance(cause, OSError) and cause.errno not in (errno.EINVAL, None):
            raise cause


def _reason(error: Exception) -> str:
    """What a reader's error says, unless values of the file are part of it."""
    if isinstance(error, UnicodeError) or not error.args or not _plain(error):
        return type(error).__name__
    return str(error.args[0])[:200]


def _plain(error: Exception) -> bool:
    return all(type(a) is str and len(a) < 10_000 or _short(a) or a is None for a in error.args)


# -------------------------------------------------------------------------------------------------------------- reading

def parsed(text: bytes) -> Any:
    """Parse JSON, after a look at its depth: the parser is recursive, and the recursion limit is the user's."""
    outside = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    marks = np.frombuffer(outside, np.uint8)
    opening, closing = (np.isin(marks, np.frombuffer(kind, np.uint8)).astype(np.int8) for kind in (b"[{", b"]}"))
    if (opening - closing).cumsum(dtype=np.int32).max(initial=0) > DEEPEST_TEXT:
        refuse(f"its description is nested more than {DEEPEST_TEXT} levels deep")
    return json.loads(text.decode("utf-8", "surrogatepass"), parse_int=_integer)


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= LONGEST_INTEGER else refuse(f"it has an integer of {len(digits)} digits")


def instructions(program: bytes) -> Iterator[Any]:
    """Iterate over the instructions of a pickle: what each is, its argument, and its position."""
    return instructions_at(io.BytesIO(program), len(program))


def instructions_at(file: Any, size: int) -> Iterator[Any]:
    """Iterate over those of a pickle that begins at the position of an open file of this size."""
    bounded: Any = _Bounded(file, size)
    return pickletools.genops(bounded)


class _Bounded:
    """A file that is never asked for more than it has, nor for an endless line.

    A buffered file that is asked for a gigabyte allocates it before it finds that there is less.
    """

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._size = file, size
        self.read = file.read if isinstance(file, io.BytesIO) else self._read

    def _read(self, count: int) -> Any:
        return self._file.read(count if count < 1 << 16 else min(count, self._size - self._file.tell()))

    def readline(self) -> Any:
        line = self._file.readline(LONGEST_LINE)
        return line if len(line) < LONGEST_LINE else refuse(f"its pickle has a line of over {LONGEST_LINE} characters")


# ------------------------------------------------------------------------------------------------------------- counting

class Meter:
    """Counts the items that a file has copied or hashed, and refuses what is out of proportion to its length."""

    def __init__(self, length: int) -> None:
        self._left = PER_BYTE * length + FREE
        self._end = thread_time() + SECONDS_PER_BYTE * length + FREE_SECONDS
        self._keys = 0
        self._looks: Counter[int] = Counter()
        self._chains: dict[int, tuple[Any, Counter[int]]] = {}

    def charge(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            refuse("it copies or compares its own parts out of proportion to its length")

    def read(self, memory: Any, count: int) -> None:
        """Note that so many elements of a memory are looked at: each may be some times, not for every few bytes."""
        self._looks[id(memory)] += count
        if self._looks[id(memory)] > LOOKS * memory.buffer.size + FREE:
            refuse("it has the same indices checked again and again")

    def charge_for(self, values: Any) -> None:
        """Charge for a copy of each of these."""
        for value in values:
            if isinstance(value, (list, tuple, dict, set, frozenset)):
                self.charge(len(value))
            elif isinstance(value, (str, bytes, bytearray)):
                self.charge(len(value) >> 6)

    def key(self, key: Any, target: Any) -> Any:
        """Return a key for a dictionary or set, charged for, unless too many keys of it have the same hash.

        Numbers can be chosen so that each is compared with many others, in ways that cannot be counted from here; so
        the time is limited, too. It is the processor's, of this thread: a busy machine makes no difference.
        """
        self._keys += 1
        if not self._keys & 1023 and thread_time() > self._end:
            refuse("its keys take time out of proportion to its length")
        kind = type(key)
        if kind is str or kind is bytes:  # their hashes are salted, so that a file cannot choose them
            if len(key) > 255:
                self.charge(len(key) >> 6)
        elif kind is not int or not -WORD < key < WORD:
            self._weigh(key, 0)
            if key not in target:
                self._chain(hash(key), target)
        return key

    def _weigh(self, key: Any, depth: int) -> None:
        if isinstance(key, (tuple, frozenset)):
            if depth > DEEPEST_KEY:
                refuse(f"a key has more than {DEEPEST_KEY} tuples within each other")
            self.charge(len(key) + 1)
            for part in key:
                self._weigh(part, depth + 1)
        elif isinstance(key, (str, bytes)):
            self.charge(len(key) >> 6)
        elif isinstance(key, int):
            self.charge(key.bit_length() >> 9)

    def _chain(self, code: int, target: Any) -> None:
        """Count one more key with this hash. The target is kept, so that its id stays its own."""
        _, chains = self._chains.setdefault(id(target), (target, Counter()))
        chains[code] += 1
        if chains[code] > LONGEST_CHAIN:
            refuse("many of its keys have the same hash")
