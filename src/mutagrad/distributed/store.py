"""Stores: keys and values by which processes, or threads, tell each other a few bytes, and wait for each other.

>>> from mutagrad.distributed import HashStore, PrefixStore
>>> store = HashStore()
>>> store.set("step", "3")
>>> store.add("step", 2), store.get("step")
(5, b'5')
>>> PrefixStore("worker", store).set("host", "a"); store.get("worker/host")
b'a'

All that a store can do is a row of requests that `Table` answers: at once (`HashStore`), or in another process
(`TCPStore`).
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Condition
from typing import Any

from ..base.errors import BadArgument, BadValue, MutagradError

WAIT = timedelta(seconds=300)
DONE = b"1"  # the first word of an answer to a request that waits; without it, time was up


class DistError(MutagradError, RuntimeError):
    """What goes wrong between processes."""


class DistStoreError(DistError):
    """A key that nobody has set in time."""


class DistNetworkError(DistError):
    """A process that cannot be reached."""


class QueueEmptyError(DistStoreError):
    """A queue with nothing in it, asked for its first value."""


class Table:
    """The keys and values of a store; threads wait here for those that are not there yet. Words are bytes."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}
        self.changed = Condition()

    def answer(self, request: Sequence[bytes]) -> list[bytes]:
        """Do what a request asks: a name of `REQUESTS`, and its words."""
        with self.changed:
            found = REQUESTS[request[0]](self, *request[1:])
            self.changed.notify_all()
            return found

    def wait(self, seconds: bytes, ready: Callable[[], object]) -> bool:
        return bool(self.changed.wait_for(ready, float(seconds)))

    def set(self, *words: bytes) -> list[bytes]:
        self.values.update(zip(words[::2], words[1::2]))
        return []

    def get(self, seconds: bytes, *keys: bytes) -> list[bytes]:
        there = self.wait(seconds, lambda: all(key in self.values for key in keys))
        return [DONE, *(self.values[key] for key in keys)] if there else []

    def check(self, *keys: bytes) -> list[bytes]:
        return [DONE] if all(key in self.values for key in keys) else []

    def add(self, key: bytes, amount: bytes) -> list[bytes]:
        try:
            total = int(self.values.get(key, b"0")) + int(amount)
        except ValueError:
            return []
        self.values[key] = b"%d" % total
        return [self.values[key]]

    def reach(self, seconds: bytes, key: bytes, count: bytes) -> list[bytes]:
        there = self.wait(seconds, lambda: int(self.values.get(key, b"0")) >= int(count))
        return [DONE] if there else []

    def append(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = self.values.get(key, b"") + value
        return []

    def exchange(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return [self.values.get(key, expected)]

    def delete(self, key: bytes) -> list[bytes]:
        return [] if self.values.pop(key, None) is None else [DONE]

    def keys(self) -> list[bytes]:
        return [*self.values, *(key for key, queue in self.queues.items() if queue)]

    def push(self, key: bytes, value: bytes) -> list[bytes]:
        self.queues.setdefault(key, deque()).append(value)
        return []

    def pop(self, seconds: bytes, key: bytes) -> list[bytes]:
        return [DONE, self.queues[key].popleft()] if self.wait(seconds, lambda: self.queues.get(key)) else []

    def length(self, key: bytes) -> list[bytes]:
        return [b"%d" % len(self.queues.get(key, ()))]


REQUESTS: dict[bytes, Callable[..., list[bytes]]] = {
    b"set": Table.set, b"get": Table.get, b"check": Table.check, b"add": Table.add, b"reach": Table.reach,
    b"append": Table.append, b"exchange": Table.exchange, b"delete": Table.delete, b"keys": Table.keys,
    b"push": Table.push, b"pop": Table.pop, b"length": Table.length}


class Store:
    """What all stores can do. `timeout` is how long a key is waited for."""

    _timeout = WAIT

    def _ask(self, name: str, *words: bytes, seconds: float | None = None) -> list[bytes]:
        """Have a request answered, which may wait for so long."""
        raise BadArgument(f"{type(self).__name__}: a Store by itself keeps nothing", fix="HashStore() or TCPStore(...)")

    def _key(self, key: str) -> bytes:
        if not isinstance(key, str):
            raise BadArgument(f"{type(self).__name__}: a key is a text, not {type(key).__name__}",
                              fix='store.get("key")')
        return key.encode()

    def _value(self, value: str | bytes) -> bytes:
        if not isinstance(value, (str, bytes)):
            raise BadArgument(f"{type(self).__name__}: a value is text or bytes, not {type(value).__name__}",
                              fix='store.set("key", str(value))')
        return value.encode() if isinstance(value, str) else value

    def _waited(self, name: str, what: Sequence[str], timeout: timedelta | None, *words: bytes) -> list[bytes]:
        """Return the answer to a request that waits, or raise when time is up."""
        seconds = (self._timeout if timeout is None else timeout).total_seconds()
        found = self._ask(name, b"%r" % seconds, *words, seconds=seconds)
        if not found:
            raise DistStoreError(f"{type(self).__name__}: wait timeout after {seconds:g} s",
                                 why=f"nobody has set {', '.join(map(repr, what))}",
                                 fix="set it in another process, or store.set_timeout(timedelta(...)) for longer")
        return found[1:]

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long keys are waited for."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key's value, be it new or not."""
        self.multi_set([key], [value])

    def get(self, key: str) -> bytes:
        """Return a key's value, which is waited for."""
        return self.multi_get([key])[0]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise BadValue(f"{type(self).__name__}.multi_set: {len(keys)} keys and {len(values)} values",
                           fix="a value for each key")
        self._ask("set", *(word for key, value in zip(keys, values) for word in (self._key(key), self._value(value))))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return the values of several keys, which are waited for."""
        return self._waited("get", keys, None, *map(self._key, keys))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all of the keys are there."""
        self._waited("get", keys, timeout, *map(self._key, keys))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all of the keys are there."""
        return bool(self._ask("check", *map(self._key, keys)))

    def add(self, key: str, amount: int) -> int:
        """Add to a key's number, which begins with 0, and return the sum."""
        if not isinstance(amount, int):
            raise BadArgument(f"{type(self).__name__}.add: expects an int, got {type(amount).__name__}",
                              fix='store.add("count", 1)')
        found = self._ask("add", self._key(key), b"%d" % amount)
        if not found:
            raise BadValue(f"{type(self).__name__}.add: the value of {key!r} is not a number", fix="another key")
        return int(found[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Write behind a key's value."""
        self._ask("append", self._key(key), self._value(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key's value if it is the expected one ("": if there is none), and return the one that it has then."""
        return self._ask("exchange", self._key(key), self._value(expected_value), self._value(desired_value))[0]

    def delete_key(self, key: str) -> bool:
        """Forget a key; return whether it was there."""
        return bool(self._ask("delete", self._key(key)))

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return [key.decode() for key in self._ask("keys")]

    def num_keys(self) -> int:
        """Return the number of keys; a `TCPStore` has one more, by which it counts processes."""
        return len(self._ask("keys"))

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append a value to a queue."""
        self._ask("push", self._key(key), self._value(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value out of a queue, which is waited for unless `block` is False."""
        if block:
            return self._waited("pop", [key], None, self._key(key))[0]
        found = self._ask("pop", b"0", self._key(key))
        if not found:
            raise QueueEmptyError(f"{type(self).__name__}.queue_pop: queue is empty: {key!r}", fix="block=True waits")
        return found[1]

    def queue_len(self, key: str) -> int:
        """Return how many values are in a queue."""
        return int(self._ask("length", self._key(key))[0])

    def has_extended_api(self) -> bool:
        """Return whether there are `append`, `multi_get` and `multi_set`."""
        return True

    def clone(self) -> Store:
        """Return another store of the same keys, for another thread."""
        return self

    def __reduce__(self) -> Any:
        raise BadArgument(f"cannot pickle '{type(self).__name__}' object",
                          why="other processes cannot share its memory",
                          fix="make a TCPStore with the same host and port in each process")


class HashStore(Store):
    """A store in this process's memory, for its threads."""

    def __init__(self) -> None:
        self._table = Table()

    def _ask(self, name: str, *words: bytes, seconds: float | None = None) -> list[bytes]:
        return self._table.answer([name.encode(), *words])


class PrefixStore(Store):
    """A part of another store: every key begins with a prefix there."""

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store, self._timeout = prefix, store, store.timeout

    def _key(self, key: str) -> bytes:
        return self.underlying_store._key(f"{self.prefix}/{super()._key(key).decode()}")

    def _ask(self, name: str, *words: bytes, seconds: float | None = None) -> list[bytes]:
        return self.underlying_store._ask(name, *words, seconds=seconds)
