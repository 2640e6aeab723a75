"""Stores: the same requests, answered in this process's memory and over the network."""
from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from mutagrad.distributed import (
    DistNetworkError,
    DistStoreError,
    HashStore,
    PrefixStore,
    QueueEmptyError,
    Store,
    TCPStore,
)

SOON, LATER = timedelta(milliseconds=20), timedelta(seconds=60)


def alone() -> TCPStore:
    return TCPStore("127.0.0.1", 0, 1, True, LATER)


KINDS: list[Callable[[], Store]] = [HashStore, alone, lambda: PrefixStore("a", PrefixStore("b", HashStore()))]


@pytest.mark.parametrize("kind", KINDS, ids=["memory", "network", "prefix"])
def test_what_stores_do(kind: Callable[[], Store]) -> None:
    store = kind()
    before = store.num_keys()
    store.set("a", "1")
    store.set("bytes", b"\xff\x00")
    store.multi_set(["g", "h"], ["", "ä"])
    assert store.get("a") == b"1" and store.multi_get(["bytes", "g", "h"]) == [b"\xff\x00", b"", "ä".encode()]
    assert store.add("n", 2) == 2 and store.add("n", -5) == -3 and store.get("n") == b"-3" and store.add("a", 1) == 2
    assert store.check(["a", "n"]) and not store.check(["a", "nowhere"])
    store.append("text", "po")
    store.append("text", "tato")
    assert store.get("text") == b"potato" and store.num_keys() == before + 6
    assert store.delete_key("text") and not store.delete_key("text") and not store.check(["text"])
    assert store.has_extended_api() and len(store.list_keys()) == store.num_keys()
    with pytest.raises(ValueError, match="'h' is not a number"):
        store.add("h", 1)


@pytest.mark.parametrize("kind", KINDS, ids=["memory", "network", "prefix"])
def test_a_value_is_exchanged_if_it_is_the_expected_one(kind: Callable[[], Store]) -> None:
    store = kind()
    assert store.compare_set("x", "", "v") == b"v" and store.compare_set("x", "", "w") == b"v"
    assert store.compare_set("x", "v", "z") == store.get("x") == b"z"
    assert store.compare_set("nowhere", "expected", "new") == b"expected" and not store.check(["nowhere"])


@pytest.mark.parametrize("kind", KINDS, ids=["memory", "network", "prefix"])
def test_queues(kind: Callable[[], Store]) -> None:
    store = kind()
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert store.queue_len("q") == 2 and store.queue_pop("q") == b"1" and store.queue_pop("q", block=False) == b"2"
    with pytest.raises(QueueEmptyError, match="queue is empty"):
        store.queue_pop("q", block=False)
    store.set_timeout(SOON)
    with pytest.raises(DistStoreError, match=r"wait timeout after 0\.02 s"):
        store.queue_pop("q")


@pytest.mark.parametrize("kind", KINDS, ids=["memory", "network", "prefix"])
def test_what_nobody_sets_is_waited_for_in_vain(kind: Callable[[], Store]) -> None:
    store = kind()
    with pytest.raises(DistStoreError, match="wait timeout"):
        store.wait(["nowhere"], SOON)
    store.set_timeout(SOON)
    assert store.timeout == SOON
    with pytest.raises(RuntimeError, match="nobody has set 'nowhere'"):
        store.get("nowhere")


@pytest.mark.parametrize("kind", KINDS, ids=["memory", "network", "prefix"])
def test_a_thread_waits_for_another(kind: Callable[[], Store]) -> None:
    store = kind()
    found: list[bytes] = []
    waiting = threading.Thread(target=lambda copy: found.append(copy.get("late")), args=(store.clone(),))
    waiting.start()
    store.set("late", "now")
    waiting.join()
    assert found == [b"now"]


def test_wrong_kinds() -> None:
    store = HashStore()
    with pytest.raises(TypeError, match="a key is a text"):
        store.get(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a value is text or bytes"):
        store.set("a", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expects an int"):
        store.add("a", "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot pickle 'HashStore' object"):
        pickle.dumps(store)
    with pytest.raises(TypeError, match="keeps nothing"):
        Store().num_keys()


def test_a_number_is_added_to_by_many_threads() -> None:
    store = alone()

    def add(copy: Store) -> None:
        for _ in range(50):
            copy.add("n", 1)

    threads = [threading.Thread(target=add, args=(store.clone(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.add("n", 0) == 200


WORKER = """
from mutagrad.distributed import TCPStore
store = TCPStore("127.0.0.1", {port}, 2)
store.set("from the worker", store.get("from the master") + b"!")
store.get("end")
"""


def test_two_processes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", WORKER.format(port=port)]) as worker:
        store = TCPStore("127.0.0.1", port, 2, True, LATER)
        assert store.port == port and store.num_keys() == 1 and store.get("init/") == b"2"
        store.set("from the master", "hello")
        assert store.get("from the worker") == b"hello!"
        store.set("end", "")
        assert worker.wait(60) == 0


def test_there_is_nobody() -> None:
    store = alone()
    with pytest.raises(DistNetworkError, match=f"cannot keep a store at 127.0.0.1:{store.port}"):
        TCPStore("127.0.0.1", store.port, 1, True)
    with pytest.raises(DistStoreError, match="the presence of 2 processes"):
        TCPStore("127.0.0.1", 0, 2, True, SOON)
    other = store.clone()
    port = store.port
    del store
    with pytest.raises(DistNetworkError, match="no store answers"):
        other.get("a")
    with pytest.raises(DistNetworkError, match="no store answers"):
        TCPStore("127.0.0.1", port, timeout=SOON)
    with pytest.raises(NotImplementedError, match="multi_tenant"):
        TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)


def test_a_stranger_is_not_answered() -> None:
    store = alone()
    for words in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, b"\0\0\0\1\0\0\0\3zzz", b"\0\0\0\1\0\0\0\3add", b"\0\0\0\0"):
        with socket.create_connection(("127.0.0.1", store.port), 10) as stranger:
            stranger.sendall(words)
            stranger.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                assert stranger.recv(1) == b""
    store.set("a", "1")
    assert store.get("a") == b"1"
