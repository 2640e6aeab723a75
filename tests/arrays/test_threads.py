"""OpenBLAS's threads and this library's: whoever borrows a setting gives it back."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count as count_from

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import blas, parallel as large, threads as pool
from mutagrad.arrays.sizes import PIECE

needs_openblas = pytest.mark.skipif(blas._library() is None, reason="NumPy has another BLAS here")


def count() -> int:
    found: int = blas._library()[0]()
    return found


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets how many threads OpenBLAS has, for one test."""
    put = blas._library()[1]
    before = count()
    yield put
    put(before)


@needs_openblas
def test_one_thread_gives_the_others_back(threads: Callable[[int], None]) -> None:
    threads(2)

    def inside(free: bool) -> tuple[bool, int]:
        return free, count()

    def nested(free: bool) -> list[tuple[bool, int]]:
        return [inside(free), blas.on_one_thread(inside), inside(free)]

    assert blas.on_one_thread(nested)[::2] == [(True, 1), (True, 1)]
    assert count() == 2
    with pytest.raises(ZeroDivisionError):
        blas.on_one_thread(lambda free: 1 // 0)
    assert count() == 2


@needs_openblas
def test_a_second_thread_leaves_openblas_as_the_first_has_set_it(threads: Callable[[int], None]) -> None:
    threads(2)
    inside, over = threading.Event(), threading.Event()
    found: list[tuple[bool, int]] = []

    def first(free: bool) -> None:
        inside.set()
        over.wait(60)

    thread = threading.Thread(target=blas.on_one_thread, args=(first,))
    thread.start()
    inside.wait(60)
    blas.on_one_thread(lambda free: found.append((free, count())))
    assert count() == 1
    over.set()
    thread.join(60)
    assert found == [(True, 1)] and count() == 2


@needs_openblas
def test_one_thread_offers_none_where_openblas_has_one(threads: Callable[[int], None]) -> None:
    threads(1)
    assert not blas.on_one_thread(lambda free: free)
    assert count() == 1


@pytest.mark.parametrize(("before", "wanted"), [("", "14"), ("os.environ['OPENBLAS_THREAD_TIMEOUT'] = '20'", "20"), ("import numpy", None)])
def test_openblas_is_asked_to_rest_soon_unless_somebody_has_said_otherwise(before: str, wanted: str | None) -> None:
    """While it is loaded; then the environment is as it was."""
    program = f"""
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("OPENBLAS_THREAD_TIMEOUT"))
sys.meta_path.insert(0, Watch())
{before}
before = dict(os.environ)
import mutagrad
assert dict(os.environ) == before
"""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert found.stdout.strip() == str(wanted)


@pytest.mark.parametrize("seconds", [0, 0.01])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("count", "each"), [(0, 1), (7, 1), (PIECE + 1, 1), (9 * PIECE, 1), (1000, 1000), (5, 10**6)])
def test_work_in_turn_covers_everything_once(count: int, each: int, whole: bool, seconds: float) -> None:
    seen: list[int] = []

    def work(part: slice) -> None:
        seen.extend(range(part.start, part.stop))
        time.sleep(seconds)

    large.in_turn(count, each, work, whole)
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize(("seconds", "shared"), [(1e-6, False), (1e-2, True)])
def test_only_slow_work_is_given_to_other_threads(seconds: float, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    clock = count_from(0.0, seconds)
    monkeypatch.setattr(pool, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(pool, "get_num_threads", lambda: 2)
    monkeypatch.setattr(pool, "in_spans", lambda n, work: asked.append(n))
    large.in_turn(8 * PIECE, 1, lambda part: None)
    assert asked == ([7 * PIECE] if shared else [])


def test_attention_is_the_same_on_several_threads() -> None:
    before = mg.get_num_threads()
    found = []
    for n in (1, 2):
        mg.set_num_threads(n)
        mg.manual_seed(0)
        q, k, v = (mg.randn(8, 8, 128, 16, requires_grad=True) for _ in range(3))
        mg.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum().backward()
        found.append([t.grad.numpy() for t in (q, k, v)])
    mg.set_num_threads(before)
    for one, two in zip(*found):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)
