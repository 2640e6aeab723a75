"""Kernels that are there at one moment and not at the next."""
from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled import compiler

needs_numba = pytest.mark.skipif(not compiler.has_numba(), reason="needs Numba: pip install 'mutagrad[fast]'")
F = mg.nn.functional


# ----------------------------------------------------------------------------------- chosen anew in the middle of a call

ASKED: dict[str, Callable[[Any], Any]] = {
    "amax": lambda x: x.amax(), "sum": lambda x: x.sum(), "norm": lambda x: x.norm(), "var": lambda x: x.var(),
    "nanmean": lambda x: x.nanmean(), "nonzero": lambda x: (x > 0).nonzero(), "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: F.softmax(x, 1), "layer_norm": lambda x: F.layer_norm(x, (301,)),
    "max_pool": lambda x: F.max_pool2d(x[None], 2), "conv": lambda x: F.conv2d(x[None, None], x[None, None, :3, :3]),
    "grid_sample": lambda x: F.grid_sample(x[None, None], x[:, :2].reshape(1, 20, 5, 2), align_corners=False)}


def gradient_and_result(name: str, x: np.ndarray) -> list[np.ndarray]:
    given = mg.tensor(x, requires_grad=True)
    found = ASKED[name](given)
    if found.requires_grad:
        found.sum().backward()
    return [found.detach().numpy(), *([] if given.grad is None else [given.grad.numpy()])]


@needs_numba
@pytest.mark.parametrize("name", ASKED)
def test_a_call_may_find_a_kernel_once_and_not_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((100, 301)).astype("f")
    mg.set_kernels("numpy")
    expected = gradient_and_result(name, x)
    mg.set_kernels("numba")
    gradient_and_result(name, x)
    get = compiler.Kernel.get
    for there in ((True, False), (False, True), (True, True, False)):
        answers = cycle(there)
        monkeypatch.setattr(compiler.Kernel, "get", lambda kernel, *uses, a=answers: get(kernel, *uses) if next(a) else None)
        for a, b in zip(expected, gradient_and_result(name, x), strict=True):
            np.testing.assert_allclose(b, a, 1e-4, 1e-4)
