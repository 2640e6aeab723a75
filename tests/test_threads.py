"""OpenBLAS's threads and this library's: whoever borrows a setting gives it back."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.backends import blas, large

needs_openblas = pytest.mark.skipif(blas._library() is None, reason="NumPy has another BLAS here")


def count() -> int:
    found: int = blas._library().scipy_openblas_get_num_threads64_()
    return found


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Sets how many threads OpenBLAS has, for one test."""
    put = blas._library().scipy_openblas_set_num_threads64_
    before = count()
    yield put
    put(before)


@needs_openblas
def test_one_thread_gives_the_others_back(threads: Callable[[int], None]) -> None:
    threads(2)
    with blas.one_thread() as free:
        assert free and count() == 1
        with blas.one_thread() as free:
            assert free and count() == 1
        assert count() == 1
    assert count() == 2
    with pytest.raises(KeyError), blas.one_thread():
        raise KeyError
    assert count() == 2


@needs_openblas
def test_one_thread_offers_none_where_openblas_has_one(threads: Callable[[int], None]) -> None:
    threads(1)
    with blas.one_thread() as free:
        assert not free
    assert count() == 1


@pytest.mark.parametrize(("before", "wanted"), [("", "14"), ("import os; os.environ['OPENBLAS_THREAD_TIMEOUT'] = '20'", "20"), ("import numpy", None)])
def test_openblas_is_asked_to_rest_soon_unless_somebody_has_said_otherwise(before: str, wanted: str | None) -> None:
    program = f"{before}\nimport mutagrad, os\nprint(os.environ.get('OPENBLAS_THREAD_TIMEOUT'))"
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert found.stdout.strip() == str(wanted)


def test_pieces_cover_what_they_are_cut_from() -> None:
    found = large.pieces(slice(5, 5 + 2 * large.PIECE + 1))
    assert [p.start for p in found] == [5, 5 + large.PIECE, 5 + 2 * large.PIECE]
    assert found[-1].stop == 6 + 2 * large.PIECE
    assert large.pieces(slice(3, 3)) == []


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
