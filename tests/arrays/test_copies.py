"""Copies that are not element by element: of short runs, and of transposed matrices by OpenBLAS."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.copies import copy_in_order, put_runs, put_turned

KINDS = "f4", "f8", "i8", "i2", "c8", "?"


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


def drawn(seed: int) -> tuple[Any, Any, Any]:
    """A window, and another of its shape in a memory of its own, with that memory."""
    rng = np.random.default_rng(seed)
    ndim = int(rng.integers(1, 5))
    shape = rng.integers(1, [300, 150, 40, 16][ndim - 1], ndim)
    dtype = np.dtype(str(rng.choice(KINDS)))
    memory = np.arange(np.prod(shape + 5)).reshape(shape + 5).astype(dtype)
    window = memory[tuple(slice(int(start), int(start + n)) for start, n in zip(rng.integers(0, 3, ndim), shape))] if rng.random() < 0.6 else (
        np.ascontiguousarray(memory[tuple(slice(int(n)) for n in shape)]))
    if rng.random() < 0.3:
        window = window[tuple(slice(None, None, int(step)) for step in rng.choice([1, 1, 2, -1], ndim))]
    source = window.transpose(rng.permutation(ndim))
    if rng.random() < 0.1:
        source = np.broadcast_to(source[..., :1], source.shape)
    around = np.zeros([n + 4 for n in source.shape], dtype)
    return source, around[tuple(slice(int(start), int(start + n)) for start, n in zip(rng.integers(0, 3, ndim), source.shape))], around


@pytest.mark.parametrize("put", [put_runs, put_turned])
def test_what_is_put_is_what_numpy_puts_and_nothing_else_is_written(put: Any) -> None:
    done = 0
    for seed in range(4000):
        source, target, around = drawn(seed)
        before = around.copy()
        if put(target, source):
            done += 1
            assert np.array_equal(target, source)
            target[...] = 0
        assert np.array_equal(around, before)
        assert np.array_equal(copy_in_order(source), source)
    assert done > 50 or put is put_turned and not done  # where NumPy has another BLAS


def test_values_are_copied_as_they_are() -> None:
    x = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3e-39] * 10] * 80, np.float32)
    target = np.empty(x.T.shape, np.float32)
    assert not put_turned(target, x.T) or target.tobytes() == np.ascontiguousarray(x.T).tobytes()
    assert mg.tensor(x).t().contiguous().numpy().tobytes() == np.ascontiguousarray(x.T).tobytes()


@pytest.mark.parametrize("shape", [(300, 200), (7, 90, 80)])
def test_tensors_that_are_transposed(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x = mg.tensor(a, requires_grad=True)
    y = mg.cat([x.mT, x.mT.clone()], -1)
    np.testing.assert_array_equal(y.detach().numpy(), np.concatenate([a.swapaxes(-1, -2)] * 2, -1))
    y.backward(y.detach())
    np.testing.assert_array_equal(x.grad.numpy(), 2 * a)
    z = mg.zeros(*shape)
    z.mT.copy_(mg.tensor(np.ascontiguousarray(a.swapaxes(-1, -2))))
    np.testing.assert_array_equal(z.numpy(), a)


@pytest.mark.parametrize("turn", [lambda x: x.mT, lambda x: x[:, 1:-1], lambda x: x.unfold(1, 16, 8), lambda x: x.half().float().mT])
def test_copies_of_what_all_slices_of_a_vmap_share(turn: Any) -> None:
    x = mg.tensor(np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32))
    exact = turn(x).contiguous()
    found = mg.func.vmap(lambda factor: turn(x).contiguous() * factor)(mg.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(found.numpy(), np.stack([exact.numpy(), 2 * exact.numpy()]))
