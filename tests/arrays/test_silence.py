"""Infinite and undefined results come without a word, and the host program's settings for NumPy stay its own."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.numpy import PIECE, silently
from samples import SAMPLES, Sample

SPECIAL = np.array([0.0, np.inf, -0.0, 1e38, np.nan, -1e38, 1e-45, -np.inf, 1.0, 0.0, -1.0])


def special(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.resize(SPECIAL, shape).astype(dtype)


def whatever(call: Callable[[], Any]) -> Any:
    """What the call gives; None where it refuses such values."""
    try:
        return call()
    except (Warning, FloatingPointError):
        raise
    except (mg.MutagradError, ValueError, RuntimeError, OverflowError, np.linalg.LinAlgError):
        return None


@mg.autograd.set_nan_policy("ignore")
def run(sample: Sample, dtype: Any) -> None:
    xs = [mg.tensor(special(d.shape, dtype), requires_grad=True) for d in sample.draws]
    results = whatever(lambda: sample.call(mg, xs))
    for result in results or ():
        if isinstance(result, mg.Tensor):
            repr(result)
            if result.requires_grad:
                whatever(lambda result=result: result.sum().abs().backward(retain_graph=True))  # type: ignore[misc]


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_every_operation_is_silent(sample: Sample) -> None:
    state = np.geterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(sample, np.float32)
    with np.errstate(all="raise"):
        before = np.geterr()
        run(sample, np.float64)
        assert np.geterr() == before
    assert np.geterr() == state


def test_buffers_are_short_where_we_compute_and_nowhere_else() -> None:
    """With long ones a column of factors, which is repeated, is copied into them, and the matrix with it."""
    before = np.getbufsize()
    seen: list[int] = []
    x = mg.ones(512, 1024, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: seen.append(np.getbufsize()))
    y.sum().backward()
    assert seen == [PIECE] and silently(np.getbufsize) == PIECE < before == np.getbufsize()
