"""Loading in other processes: order, seeds, errors, and processes that die or are left behind."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.utils import data
from mutagrad.utils.data import DataLoader, get_worker_info

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@pytest.fixture(autouse=True)
def no_hang_and_nothing_left() -> Iterator[None]:
    """A test that hangs ends the run with all stacks; one that leaves processes behind fails."""
    faulthandler.dump_traceback_later(60, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    gc.collect()
    assert not multiprocessing.active_children()


class Items(data.Dataset[Any]):
    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Any:
        return index


class Draws(Items):
    def __getitem__(self, index: int) -> Any:
        return mg.rand(1, dtype=mg.float64).item(), random.random(), np.random.rand()


class Uneven(Items):
    """The first items take longest."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.05 if index % 4 == 0 else 0)
        return index


class Who(Items):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, info.dataset is self, os.getpid()


class Shares(data.IterableDataset[int]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(info.id, self.size, info.num_workers))


class TwoArguments(Exception):
    def __init__(self, first: str, second: int) -> None:
        super().__init__(f"{first} {second}")


class Failing(Items):
    def __init__(self, how: str) -> None:
        super().__init__(8)
        self.how = how

    def __getitem__(self, index: int) -> Any:
        if index == 3:
            self.fail()
        return index

    def fail(self) -> None:
        if self.how == "key":
            raise KeyError("no such thing")
        if self.how == "two":
            raise TwoArguments("odd", 7)
        if self.how == "local":
            class Local(ValueError):
                pass
            raise Local("hidden")
        if self.how == "shape":
            mg.ones(2) + mg.ones(3)
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "exit":
            os._exit(3)
        if self.how == "sleep":
            time.sleep(100)
        if self.how == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(100)


def lists(loader: Any) -> list[Any]:
    return [batch.tolist() for batch in loader]


# ---------------------------------------------------------------------------------------------------------- order and seeds

@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_is_the_same_as_without_workers(workers: int) -> None:
    for settings in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": 2, "shuffle": True}):
        alone = lists(DataLoader(Uneven(13), generator=mg.Generator().manual_seed(5), **settings))
        assert lists(DataLoader(Uneven(13), generator=mg.Generator().manual_seed(5), num_workers=workers, **settings)) == alone


def test_spawned_workers() -> None:
    loader = DataLoader(Items(5), 2, num_workers=1, multiprocessing_context="spawn")
    assert lists(loader) == [[0, 1], [2, 3], [4]]


def test_batches_larger_than_a_pipe() -> None:
    big = DataLoader([mg.full((50_000,), float(k)) for k in range(6)], batch_size=2, num_workers=2, prefetch_factor=3)
    assert [b.shape == (2, 50_000) and b[1, -1].item() for b in big] == [1.0, 3.0, 5.0]
    tasks = DataLoader(range(60_000), batch_size=30_000, num_workers=1, collate_fn=len)
    assert list(tasks) == [30_000, 30_000]


def test_a_part_of_a_large_tensor_travels_alone() -> None:
    found = list(DataLoader(data.TensorDataset(mg.arange(100_000.0)), batch_size=None, sampler=[7, 9], num_workers=1))
    assert [t[0].item() for t in found] == [7.0, 9.0] and all(t[0]._storage.buffer.size == 1 for t in found)


def test_each_worker_has_random_numbers_of_its_own_that_are_the_same_again() -> None:
    def drawn(seed: int, workers: int) -> list[Any]:
        return list(DataLoader(Draws(6), batch_size=None, num_workers=workers, generator=mg.Generator().manual_seed(seed)))

    first = drawn(0, 2)
    assert first == drawn(0, 2) != drawn(1, 2)
    for column in zip(*first):
        assert len(set(column)) == 6


def test_worker_info() -> None:
    found = list(DataLoader(Who(4), batch_size=None, num_workers=2, generator=mg.Generator().manual_seed(0)))
    assert [row[:2] for row in found] == [[0, 2], [1, 2], [0, 2], [1, 2]]
    assert found[1][2] == found[0][2] + 1 and all(row[3] for row in found) and len({row[4] for row in found} | {os.getpid()}) == 3
    assert get_worker_info() is None


def test_streams_in_workers() -> None:
    assert lists(DataLoader(Shares(10), batch_size=2, num_workers=2)) == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert list(DataLoader(Shares(5), batch_size=None, num_workers=3)) == [0, 1, 2, 3, 4]
    assert lists(DataLoader(Shares(10), batch_size=4, num_workers=2, drop_last=True)) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert list(DataLoader(Shares(0), num_workers=2)) == []


def test_worker_init_fn() -> None:
    def init(number: int) -> None:
        os.environ["WORKER"] = str(number)

    found = DataLoader(range(4), num_workers=2, worker_init_fn=init, collate_fn=lambda batch: os.environ["WORKER"])
    assert list(found) == ["0", "1", "0", "1"]

    def fail(number: int) -> None:
        raise LookupError(f"worker {number} has no disk")

    with pytest.raises(LookupError, match="worker 0 has no disk"):
        list(DataLoader(range(4), num_workers=2, worker_init_fn=fail))


def test_persistent_workers_stay() -> None:
    loader = DataLoader(Who(2), batch_size=None, num_workers=2, persistent_workers=True)
    first = [row[4] for row in loader]
    unfinished = iter(loader)
    next(unfinished)
    assert [row[4] for row in loader] == first == [row[4] for row in loader]
    streams = DataLoader(Shares(4), batch_size=None, num_workers=2, persistent_workers=True)
    assert list(streams) == list(streams) == [0, 1, 2, 3]
    del loader, streams, unfinished


def test_several_iterators_with_workers_at_once() -> None:
    loader = DataLoader(Items(4), 2, num_workers=1)
    assert [(a.tolist(), b.tolist()) for a, b in zip(loader, loader)] == [([0, 1], [0, 1]), ([2, 3], [2, 3])]


# ------------------------------------------------------------------------------------------------------------------- failures

@pytest.mark.parametrize("how, kind, message", [("key", KeyError, "no such thing"), ("two", TwoArguments, "odd 7"), ("local", RuntimeError, "Local.*hidden"),
                                                ("shape", mg.errors.ShapeError, r"\(2,\) and \(3,\)")])
def test_an_exception_arrives_as_it_was(how: str, kind: type[Exception], message: str) -> None:
    batches = iter(DataLoader(Failing(how), num_workers=2))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(kind, match=message) as found:
        next(batches)
    assert type(found.value) is kind or how == "local"
    assert "worker process 1" in str(found.value.__cause__) and "in fail" in str(found.value.__cause__)
    assert [int(b) for b in batches] == [4, 5, 6, 7]


def test_an_unpicklable_sample_is_an_error() -> None:
    with pytest.raises(mg.errors.CannotPickle, match=r"worker 0 fetched, function, cannot be pickled: .*lambda") as found:
        next(iter(DataLoader([lambda: 1], batch_size=None, num_workers=1)))
    assert "num_workers=0" in found.value.fix


@pytest.mark.parametrize("how, message", [("kill", r"worker 1 .*killed by signal SIGKILL"), ("exit", r"worker 1 .*exited with code 3")])
def test_a_worker_that_dies_is_noticed(how: str, message: str) -> None:
    batches, arrived = iter(DataLoader(Failing(how), num_workers=2)), []
    with pytest.raises(RuntimeError, match=message) as found:
        arrived.extend(map(int, batches))  # a sudden death may take a finished batch with it
    assert arrived == [0, 1, 2][:len(arrived)] and "pid" in str(found.value) and not multiprocessing.active_children()
    assert list(batches) == []


def test_an_idle_worker_that_is_killed_is_noticed() -> None:
    loader = DataLoader(Items(4), num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 4
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
    for attempt in range(2):
        with pytest.raises(RuntimeError, match="SIGKILL" if not attempt else "ended after a failure"):
            list(loader)


def test_a_timeout() -> None:
    batches = iter(DataLoader(Failing("sleep"), num_workers=1, timeout=0.3))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"timed out after 0.3 seconds"):
        next(batches)
    assert time.monotonic() - start < 5


def test_an_unfinished_iterator_leaves_no_processes() -> None:
    for how in ("none", "sleep"):
        batches = iter(DataLoader(Failing(how), num_workers=2))
        next(batches)
        assert len(multiprocessing.active_children()) == 2
        start = time.monotonic()
        del batches
        assert not multiprocessing.active_children() and time.monotonic() - start < 3


def test_a_stubborn_worker_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutagrad.utils.data.workers.PATIENCE", 0.3)
    batches = iter(DataLoader(Failing("stubborn"), num_workers=1, prefetch_factor=4))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    time.sleep(0.1)
    del batches
    assert not multiprocessing.active_children()


def test_a_copy_of_the_iterator_in_a_forked_process_ends_nothing() -> None:
    batches = iter(DataLoader(Items(6), num_workers=2))
    next(batches)
    child = os.fork()
    if not child:
        try:
            del batches
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert [int(b) for b in batches] == [1, 2, 3, 4, 5]


def program(body: str) -> subprocess.Popen[str]:
    """A program that prints the processes of its workers and then does `body`."""
    start = """
        import multiprocessing, os, signal, sys, time
        from mutagrad.utils.data import DataLoader
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs in the background ignore it
        class Slow:
            def __len__(self): return 100
            def __getitem__(self, index):
                time.sleep(0.01 if index < 2 else 30)
                return index
        batches = iter(DataLoader(Slow(), num_workers=2))
        next(batches)
        print(*(p.pid for p in multiprocessing.active_children()), flush=True)
    """
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(body)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)


def gone(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(_alive(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
@pytest.mark.parametrize("body", ["list(batches)", "time.sleep(30)"])
def test_ctrl_c_leaves_no_processes(body: str) -> None:
    running = program(body)
    pids = [int(pid) for pid in running.stdout.readline().split()]
    assert len(pids) == 2
    time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors and errors.count("Traceback") == 1
    assert gone(pids, 3)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_the_end_of_a_program_leaves_no_processes() -> None:
    running = program("")
    pids = [int(pid) for pid in running.stdout.readline().split()]
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 0 and errors == "" and gone(pids, 3)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_workers_end_when_the_program_is_killed() -> None:
    running = program("""
        import mutagrad.utils.data.workers as workers
        workers.PATIENCE = 0.2
        del batches
        batches = iter(DataLoader(range(4), num_workers=2))
        print(*(p.pid for p in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    first, second = ([int(pid) for pid in running.stdout.readline().split()] for _ in range(2))
    running.wait(timeout=20)
    running.stdout.close()
    running.stderr.close()
    assert len(second) == 2 and gone(first + second, 5)
