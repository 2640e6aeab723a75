"""Truth values whose bytes are neither 0 nor 1: a view of bytes, or memory of another library, may have them."""
from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled.compiler import has_numba

NUMBA = pytest.param("numba", marks=pytest.mark.skipif(not has_numba(), reason="needs Numba"))
SIZE = 50_000
QUESTIONS = {
    "nonzero": lambda m, x: m.nonzero(),
    "nonzero of rows": lambda m, x: mg.stack(m.reshape(50, -1).nonzero(as_tuple=True)),
    "count": lambda m, x: m.count_nonzero(),
    "sum": lambda m, x: m.sum(),
    "sum of columns": lambda m, x: m.reshape(50, -1).sum(0),
    "where": lambda m, x: mg.where(m, x, -x),
    "where of doubles": lambda m, x: mg.where(m, x.double(), 0.0),
    "masked_fill": lambda m, x: x.masked_fill(m, 7.0),
    "masked_select": lambda m, x: x.masked_select(m),
    "index": lambda m, x: x[m],
    "bfloat16": lambda m, x: m.bfloat16(),
    "floats": lambda m, x: m.float() * x,
    "not": lambda m, x: ~m,
    "gradient": lambda m, x: mg.func.grad(lambda x: mg.where(m, x * 2, x).sum())(x)}


@pytest.mark.parametrize("kernels", ["numpy", NUMBA])
@pytest.mark.parametrize("question", QUESTIONS)
def test_any_byte_but_zero_is_true(kernels: str, question: str) -> None:
    if question == "bfloat16":
        pytest.importorskip("ml_dtypes")
    mg.set_kernels(kernels)
    rng = np.random.default_rng(0)
    values = rng.choice(np.array([0, 1, 2, 128, 255], np.uint8), SIZE)
    x, ask = mg.arange(1.0, SIZE + 1), QUESTIONS[question]
    expected = ask(mg.tensor(values != 0), x)
    for mask in (mg.tensor(values).view(mg.bool), mg.from_numpy(values.view(bool)),
                 mg.frombuffer(bytearray(values), dtype=mg.bool)):
        assert mg.equal(ask(mask, x), expected)


@pytest.mark.skipif(not has_numba(), reason="needs Numba")
def test_memory_holds_when_every_byte_is_large() -> None:
    mg.set_kernels("numba")
    mask = mg.full((SIZE,), 255, dtype=mg.uint8).view(mg.bool)
    assert mask.nonzero().shape == (SIZE, 1)
