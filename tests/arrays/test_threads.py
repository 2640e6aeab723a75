"""OpenBLAS's threads and this library's: whoever borrows a setting gives it back."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count as count_from
from typing import Any

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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how long work takes that is timed."""
    def choose(seconds: float) -> None:
        ticks = count_from(0.0, seconds)
        monkeypatch.setattr(pool, "perf_counter", lambda: next(ticks))

    return choose


@pytest.mark.parametrize("seconds", [1e-9, 1.0])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("items", "each"), [
    (0, 1), (7, 1), (PIECE + 1, 1), (9 * PIECE, 1), (9 * PIECE + 5, 1), (1000, 1000), (5, 10**6)])
def test_work_in_turn_covers_everything_once(items: int, each: int, whole: bool, seconds: float, clock: Any) -> None:
    clock(seconds)
    times = np.zeros(items, int)
    large.in_turn(items, each, lambda part: np.add(times[part], 1, out=times[part]), whole)
    assert (times == 1).all()


@pytest.mark.parametrize(("seconds", "shared"), [(1e-6, False), (1e-2, True)])
def test_only_slow_work_is_given_to_other_threads(
        seconds: float, shared: bool, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    clock(seconds)
    monkeypatch.setattr(pool, "get_num_threads", lambda: 2)
    monkeypatch.setattr(pool, "in_spans", lambda n, work: [asked.append(n)])
    large.in_turn(8 * PIECE, 1, lambda part: None, True)
    assert asked == ([7 * PIECE] if shared else [])


@pytest.mark.parametrize("rows", [53, 65, 79, 80, 288, 301])  # 26 together, and 1 to 15 left
def test_what_is_fixed_is_cut_alike_whatever_the_clock_says(
        rows: int, clock: Any, threads: Callable[[int], None]) -> None:
    found = []
    threads(3)
    for seconds in (1e-9, 1.0):
        clock(seconds)
        cuts: list[tuple[int, int]] = []
        large.in_turn(rows, 5000, lambda part: cuts.append((part.start, part.stop)), fixed=True)
        found.append(sorted(cuts))
    assert found[0] == found[1] and len(found[0]) > 1


@needs_openblas
def test_products_of_some_millions_use_one_thread(
        threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    threads(2)
    seen: list[int] = []
    matmul = np.matmul
    monkeypatch.setattr(blas.np, "matmul", lambda *given: seen.append(count()) or matmul(*given))
    for size in (32, 128, 512):
        a = mg.ones(size, size)
        assert (a @ a)[0, 0] == size
    mg.ones(2, 128, 128) @ mg.ones(2, 128, 128)
    assert mg.ones(512, 1024).sum() == 512 * 1024
    assert seen == [2, 1, 2, 1, 1] and count() == 2


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
