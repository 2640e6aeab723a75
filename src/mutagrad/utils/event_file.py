"""Files of events as TensorBoard reads them: records with checksums, in each of them a message of protocol buffers."""
from __future__ import annotations

import itertools
import os
import socket
import struct
import time
import weakref
from pathlib import Path

_counted = itertools.count()


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_REMAINDERS = [_remainder(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """Return the checksum of Castagnoli's polynomial, which `zlib.crc32` does not have."""
    sum = 0xFFFFFFFF
    for byte in data:
        sum = _REMAINDERS[(sum ^ byte) & 0xFF] ^ sum >> 8
    return sum ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    """The checksum as records hold it: turned and shifted, so that sums of sums differ from sums."""
    sum = crc32c(data)
    return struct.pack("<I", ((sum >> 15 | sum << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    """An integer in pieces of seven bits; negative ones as 64 bits."""
    number &= 0xFFFFFFFFFFFFFFFF
    pieces = bytearray()
    while number > 0x7F:
        pieces.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*pieces, number])


def field(number: int, value: int | float | str | bytes) -> bytes:
    """Return one field of a message: an integer, a double, a text, or bytes, which another message may be."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def single(number: int, value: float) -> bytes:
    """Return one field with a number of 32 bits."""
    return _varint(number << 3 | 5) + struct.pack("<f", value)


class EventFile:
    """One file of events, named as TensorBoard looks for it."""

    def __init__(self, folder: Path, suffix: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        started, host = f"{int(time.time()):010d}", socket.gethostname()
        name = f"events.out.tfevents.{started}.{host}.{os.getpid()}.{next(_counted)}{suffix}"
        self._file = (folder / name).open("wb")
        weakref.finalize(self, self._file.close)  # programs that never close it lose nothing
        self.write(field(3, "brain.Event:2"))

    def write(self, content: bytes, step: int | None = None, at: float | None = None) -> None:
        """Add an event at a time, in seconds, and a step."""
        event = field(1, time.time() if at is None else float(at)) + (b"" if step is None else field(2, step)) + content
        length = struct.pack("<Q", len(event))
        self._file.write(length + _checksum(length) + event + _checksum(event))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()
