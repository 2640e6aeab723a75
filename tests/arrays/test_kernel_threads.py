"""Threads that share a compiled kernel: whoever does which share, and whatever comes between, the results are the same."""
from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, loops, workers

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
SIZE = 1 << 17


@pytest.fixture(autouse=True)
def compiled() -> None:
    mg.set_kernels("numba")


def formula(a: Any, b: Any) -> Any:
    return a * b + 1


def check(seed: int, threads: int, size: int = SIZE) -> bool:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-99, 99, size).astype(np.float32) for _ in range(2))
    out = np.full(size, np.nan, np.float32)
    loop = loops.forward(formula, (a, b), (), out)
    assert loop is not None
    loop.run(threads)
    return bool((out == a * b + 1).all())


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 100])
def test_any_number_of_threads(threads: int) -> None:
    for size in (2, 5, 1000, SIZE, SIZE + 1):
        assert check(size, threads, size)


def test_a_worker_that_has_gone_to_sleep_is_woken_or_done_without() -> None:
    for seed in range(30):
        time.sleep(0.0005 * (seed % 5))
        assert check(seed, 2)


def test_many_threads_of_the_program_share_the_workers() -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for k in range(40):
            if not check(seed * 100 + k, 3, 20_000):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_is_infinite_is_noticed_whoever_meets_it() -> None:
    for where in (0, SIZE - 1):
        a = np.ones(SIZE, np.float32)
        a[where] = np.inf
        words = loops.forward(formula, (a, a), (), np.empty_like(a))
        assert words is not None
        assert words.shared(words.count, words.given, 2)
        a[where] = 1
        assert not words.shared(words.count, words.given, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_workers_of_its_own() -> None:
    assert check(0, 3)
    child = os.fork()
    if not child:
        os._exit(0 if all(check(seed, 3) for seed in range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert check(1, 3)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an interval timer")
def test_interrupts_leave_nothing_half_done() -> None:
    x = mg.ones(SIZE)

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    met = 0
    try:
        for k in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.000013 * k)
                while True:
                    x.sigmoid()
            except KeyboardInterrupt:
                met += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert met == 200
    assert all(state == 0 for state in workers._workers.words[:, 0])
    for seed in range(20):
        assert check(seed, 2)


def test_a_box_that_is_busy_is_done_without() -> None:
    assert check(0, 2)
    workers._workers.words[0, 0] = 3  # as if another thread's work had begun
    try:
        assert check(1, 2)
    finally:
        workers._workers.words[0, 0] = 0


def test_workers_help() -> None:
    """One that was called takes part: or all of this would be for nothing. On a busy machine it may come too late, often."""
    a = np.ones(1 << 22, np.float32)
    loop = loops.forward(formula, (a, a), (), np.empty_like(a))
    assert loop is not None
    end = time.monotonic() + 30
    while time.monotonic() < end:
        workers._workers.words[0, 6] = 77  # what the worker found last
        loop.run(2)
        if workers._workers.words[0, 6] == 0:
            return
    pytest.fail("no worker took a share")
