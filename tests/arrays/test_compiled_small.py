"""Compiled kernels for arrays so small that what Python does around them counts, and for recurrent layers."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler, library, rows
from mutagrad.nn import functional as F

pytestmark = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")


def both(function: Any, shapes: tuple[tuple[int, ...], ...], dtype: str, spread: bool = False) -> tuple[list[Any], list[Any]]:
    """Values and gradients by NumPy's kernels, and by compiled ones; `spread`: the incoming adjoint is one number."""
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        rng = np.random.default_rng(0)
        xs = [mg.tensor(rng.standard_normal(shape).astype(dtype), requires_grad=True) for shape in shapes]
        results = function(*xs)
        results = results if isinstance(results, tuple) else (results,)
        if spread:
            sum(r.sum() for r in results).backward()
        else:
            mg.autograd.backward(results, [mg.tensor(rng.standard_normal(r.shape).astype(dtype)) for r in results])
        found.append([*(r.detach().numpy() for r in results), *(x.grad.numpy() for x in xs)])
    return found[0], found[1]


LAYERS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "softmax": (lambda x: x.softmax(-1), ((3, 5),)),
    "softmax of a vector": (lambda x: x.softmax(0), ((7,),)),
    "softmax of one": (lambda x: x.softmax(-1), ((3, 4, 1),)),
    "softmax of a column": (lambda x: x.softmax(1), ((3, 4, 1),)),
    "softmax, turned": (lambda x: x.T.softmax(-1), ((3, 5),)),
    "softmax down": (lambda x: x.softmax(0), ((3, 5),)),
    "log_softmax": (lambda x: x.log_softmax(-1), ((2, 3, 9),)),
    "logsumexp": (lambda x: x.logsumexp((1, 2)), ((2, 3, 9),)),
    "logsumexp, kept": (lambda x: x.logsumexp(-1, keepdim=True), ((2, 3, 9),)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (8,), w, b), ((4, 8), (8,), (8,))),
    "layer_norm, no bias": (lambda x, w: F.layer_norm(x, (3, 8), w), ((4, 3, 8), (3, 8))),
    "layer_norm alone": (lambda x: F.layer_norm(x, (8,)), ((8,),)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (8,), w), ((4, 8), (8,))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 2, 3), (6,), (6,))),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((5, 3), (3,), (3,))),
    "batch_norm of constants": (lambda x: F.batch_norm(x, mg.arange(3.0).to(x.dtype), mg.ones(3, dtype=x.dtype)), ((5, 3, 2),)),
    "cross_entropy": (lambda x: F.cross_entropy(x, mg.arange(4) % 3), ((4, 5),)),
}

QKV = ((2, 3, 5, 4), (2, 3, 7, 4), (2, 3, 7, 6))
MASK = np.random.default_rng(1).random((5, 7)) < 0.6
MASK[2] = False
MASK[3, 3:] = False
SDPA = F.scaled_dot_product_attention
LAYERS |= {
    "attention": (SDPA, QKV),
    "attention, causal": (lambda q, k, v: SDPA(q, k, v, is_causal=True), QKV),
    "attention, causal, more queries": (lambda q, k, v: SDPA(q, k, v, is_causal=True), ((50, 4), (9, 4), (9, 6))),
    "attention, causal, many": (lambda q, k, v: SDPA(q, k, v, is_causal=True), ((4, 2, 150, 4), (4, 2, 150, 4), (4, 2, 150, 6))),
    "attention, heads between": (lambda x: SDPA(*(x.reshape(2, 40, 8, 6).transpose(1, 2).chunk(3, -1))), ((2, 40, 48),)),
    "attention, masked": (lambda q, k, v: SDPA(q, k, v, mg.tensor(MASK)), QKV),
    "attention, biased": (lambda q, k, v, b: SDPA(q, k, v, b), (*QKV, (5, 7))),
    "attention, dropped": (lambda q, k, v: mg.manual_seed(3) and SDPA(q, k, v, dropout_p=0.3), QKV),
}


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LAYERS)
def test_small_layers(name: str, dtype: str, spread: bool) -> None:
    function, shapes = LAYERS[name]
    expected, found = both(function, shapes, dtype, spread)
    tolerance = 2e-5 if dtype == "float32" else 1e-11
    for a, b in zip(expected, found, strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(b, a, tolerance, tolerance * max(1, float(np.abs(a).max())))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 4)])
def test_nothing(shape: tuple[int, ...]) -> None:
    mg.set_kernels("numba")
    x = mg.zeros(shape, requires_grad=True)
    for result in (x.softmax(-1), x.log_softmax(-1), F.layer_norm(x, shape[-1:])):
        assert result.shape == shape
        result.sum().backward()
    assert x.grad is not None and x.grad.shape == shape


@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
def test_short_floats_are_as_before(dtype: Any) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        x = mg.arange(12.0).reshape(3, 4).to(dtype)
        found.append(mg.stack([x.softmax(-1), F.layer_norm(x, (4,))]).double().numpy())
    np.testing.assert_array_equal(found[0], found[1])


def test_few_uses_of_small_arrays_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that takes the softmax of ten numbers now and then does not want a compiler."""
    mg.set_kernels("auto")
    asked: list[Any] = []
    kernel = compiler.Kernel("test", lambda: len)
    compiler.ALL.remove(kernel)

    class Queue:
        def put(self, one: Any) -> None:
            asked.append(one)

    monkeypatch.setattr(compiler, "_background", Queue)
    monkeypatch.setattr(library, "_kernel", lambda function, char: kernel)
    few, many = np.zeros((3, 4), np.float32), np.zeros((64, 64), np.float32)
    for _ in range(compiler.USES * 2):
        assert library.find_for(rows.softmax, few) is None
    assert asked == []
    library.find_for(rows.softmax, many)
    assert asked == [kernel]
    for _ in range(compiler.OFTEN):
        library.find_for(rows.softmax, few)
    assert asked == [kernel]


def recurrent(name: str, dtype: str, batch: int, hidden: int, packed: bool, **settings: Any) -> list[Any]:
    mg.manual_seed(0)
    layer = getattr(mg.nn, name)(5, hidden, num_layers=2, dtype=getattr(mg, dtype), **settings)
    rng = np.random.default_rng(0)
    x = mg.tensor(rng.standard_normal((7, batch, 5)).astype(dtype), requires_grad=True)
    given: Any = x
    if packed:
        lengths = np.sort(rng.integers(1, 8, batch))[::-1].copy()
        lengths[0] = 7
        given = mg.nn.utils.rnn.pack_padded_sequence(x, mg.tensor(lengths))
    out, last = layer(given)
    last = last if isinstance(last, tuple) else (last,)
    results = [out.data if packed else out, *last]
    weights = [mg.tensor(rng.standard_normal(r.shape).astype(dtype)) for r in results]
    sum((r * w).sum() for r, w in zip(results, weights)).backward()
    return [*(r.detach().numpy() for r in results), x.grad.numpy(), *(p.grad.numpy() for p in layer.parameters())]


def assert_same(expected: list[Any], found: list[Any], dtype: str) -> None:
    tolerance = 5e-5 if dtype == "float32" else 1e-11
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, tolerance, tolerance * max(1, float(np.abs(a).max())))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("settings", [{}, {"bidirectional": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(name: str, dtype: str, settings: dict[str, Any], packed: bool) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(recurrent(name, dtype, 3, 9, packed, **settings))
    assert_same(*found, dtype)


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_recurrent_layers_on_several_threads(name: str, packed: bool, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread goes through all steps for its part of the batch; products are BLAS's where the steps are few."""
    monkeypatch.setattr("mutagrad.ops.nn.recurrent_loops.FEW", few)
    monkeypatch.setattr("mutagrad.arrays.compiled.written.SHARED", 1)
    before = mg.get_num_threads()
    found = []
    try:
        for kernels, threads in (("numpy", 1), ("numba", 3), ("numba", 3)):
            mg.set_num_threads(threads)
            mg.set_kernels(kernels)
            found.append(recurrent(name, "float64", 8, 6, packed))
    finally:
        mg.set_num_threads(before)
    assert_same(*found[:2], "float64")
    for a, b in zip(found[1], found[2], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_cells_of_what_is_not_finite(name: str, value: float) -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        mg.manual_seed(0)
        cell = getattr(mg.nn, name)(4, 5)
        x = mg.ones(3, 4)
        x[1, 2] = value
        result = cell(x)
        found.append(mg.stack(list(result) if isinstance(result, tuple) else [result]).detach().numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-6)


def test_a_projected_lstm_is_as_before() -> None:
    found = []
    for kernels in ("numpy", "numba"):
        mg.set_kernels(kernels)
        found.append(recurrent("LSTM", "float64", 3, 9, False, proj_size=4))
    assert_same(*found, "float64")
