"""A store that one process keeps and others reach over the network.

A request and its answer are a few words: their number, and each with its length before it. The process that keeps the
store has a thread for each of the others, so a request may wait. Values are bytes, and nothing of them is run or read.
"""
from __future__ import annotations

import socket
import struct
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from threading import Lock, Thread
from time import monotonic, sleep
from typing import Any

from ..base.errors import NotSupported
from .store import REQUESTS, WAIT, DistNetworkError, Store, Table

COUNT = struct.Struct("!I")
LONGEST = 1 << 30  # bytes of a word
PROCESSES = "init/"  # the key by which they are counted; PyTorch's num_keys counts it, too
GRACE = 30.0  # seconds that an answer may take longer than it was to wait


def write(file: Any, words: Sequence[bytes]) -> None:
    file.write(b"".join([COUNT.pack(len(words)), *(part for word in words for part in (COUNT.pack(len(word)), word))]))
    file.flush()


def read(file: Any) -> list[bytes]:
    """Return the words that come next."""
    return [_exactly(file, _number(file)) for _ in range(_number(file))]


def _number(file: Any) -> int:
    number: int = COUNT.unpack(_exactly(file, COUNT.size))[0]
    if number > LONGEST:
        raise ConnectionError("the other side does not speak to a store")
    return number


def _exactly(file: Any, count: int) -> bytes:
    found: bytes = file.read(count)
    if len(found) < count:
        raise ConnectionError("the other side has closed the connection")
    return found


class Server:
    """The process that keeps the store: it answers until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self.listening = socket.create_server((host, port), family=family)
        self.port: int = self.listening.getsockname()[1]
        self.table = Table()
        self.open: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        Thread(target=self.accept, name="TCPStore", daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                connection = self.listening.accept()[0]
            except OSError:  # it was closed
                return
            self.open.add(connection)
            Thread(target=self.serve, args=(connection,), name="TCPStore", daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rwb") as file:
                while (request := read(file))[0] in REQUESTS:
                    write(file, self.table.answer(request))
        except (OSError, ValueError, TypeError, IndexError, struct.error):  # it has gone, or is no store of ours
            return

    def close(self) -> None:
        _close(self.listening)
        for connection in list(self.open):
            _close(connection)


def _close(connection: socket.socket) -> None:
    """Close it, and wake the thread that waits for it."""
    with suppress(OSError):  # not connected, or not any more
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


class TCPStore(Store):
    """A store that the process with `is_master` keeps, at a host and port where the others find it.

    With a `world_size`, the master waits until so many processes have come, itself among them. Port 0 is any free one.
    """

    def __init__(self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
                 timeout: timedelta = WAIT, wait_for_workers: bool = True, multi_tenant: bool = False,
                 master_listen_fd: int | None = None, use_libuv: bool = True) -> None:
        if multi_tenant or master_listen_fd is not None:
            raise NotSupported("TCPStore: multi_tenant and master_listen_fd are not supported",
                               fix="PrefixStore(name, store) for several users of one store")
        self.host, self._timeout, self._lock = host_name, timeout, Lock()
        server = _serving(host_name, port) if is_master else None
        self.port = port if server is None else server.port
        self._connection = _connected(host_name, self.port, timeout.total_seconds())
        self._file: Any = self._connection.makefile("rwb")
        weakref.finalize(self, _end, self._file, self._connection, server)
        self.add(PROCESSES, 1)
        if server is not None and wait_for_workers and world_size is not None:
            who = [f"the presence of {world_size} processes"]
            self._waited("reach", who, None, PROCESSES.encode(), b"%d" % world_size)

    def _ask(self, name: str, *words: bytes, seconds: float | None = None) -> list[bytes]:
        with self._lock:
            try:
                self._connection.settimeout((seconds or 0.0) + GRACE)
                write(self._file, [name.encode(), *words])
                return read(self._file)
            except OSError as error:  # what comes next would be an answer to something else
                _close(self._connection)
                raise _unreachable(self.host, self.port, error) from None

    @property
    def libuvBackend(self) -> bool:
        return False

    def clone(self) -> TCPStore:
        found = TCPStore(self.host, self.port, timeout=self._timeout)
        self.add(PROCESSES, -1)  # the same process
        return found

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host!r}, port={self.port})"


def _serving(host: str, port: int) -> Server:
    try:
        return Server(host, port)
    except OSError as error:
        raise DistNetworkError(f"TCPStore: cannot keep a store at {host}:{port}", why=str(error),
                               fix="another port, or 0 for any that is free; the host is this machine") from None


def _connected(host: str, port: int, seconds: float) -> socket.socket:
    """Connect to the process that keeps a store, which may have to come first."""
    end = monotonic() + seconds
    while True:
        try:
            found = socket.create_connection((host, port), max(end - monotonic(), 0.1))
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
        except OSError as error:
            if monotonic() >= end:
                raise _unreachable(host, port, error) from None
        sleep(0.05)


def _unreachable(host: str, port: int, error: OSError) -> DistNetworkError:
    return DistNetworkError(f"TCPStore: no store answers at {host}:{port}", why=str(error),
                            fix="TCPStore(host, port, is_master=True) in one process, for as long as others need it")


def _end(file: Any, connection: socket.socket, server: Server | None) -> None:
    _close(connection)
    if server is not None:
        server.close()
