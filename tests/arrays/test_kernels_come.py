"""Kernels that are there at one moment and not at the next, that no thread can compile, or whose files are damaged."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import cycle
from pathlib import Path
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


# ------------------------------------------------------------------------------------------------------ without a thread

class NoThread:
    def __init__(self, **_: Any) -> None:
        pass

    def start(self) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")


@pytest.mark.parametrize("waits", [True, False])
def test_where_no_thread_can_be_started_there_is_no_kernel_yet(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_threads", [])
    monkeypatch.setattr(compiler.choice, "on", True)
    monkeypatch.setattr(compiler.choice, "waits", waits)
    monkeypatch.setattr(compiler.choice, "compiles", True)
    monkeypatch.setattr(compiler, "has_numba", lambda: True)
    monkeypatch.setattr(compiler, "ALL", [])
    kernel = compiler.Kernel("a test's", lambda: len)
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "Thread", NoThread)
        assert [kernel.get(1) for _ in range(3)] == [None] * 3
    kernel.get(1)  # there are threads again
    assert kernel.done.wait(10) and kernel.get(1) is len
    compiler._threads[0].end()


AT_THE_END = """
import atexit, mutagrad as mg
def last():
    print(mg.nn.functional.softmax(mg.ones(100, 100), -1).sum().item())
atexit.register(last)
"""


def test_a_program_may_compute_while_it_ends() -> None:
    """From Python 3.12 on no thread can be started then."""
    ended = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and not ended.stderr and float(ended.stdout) == pytest.approx(100, 1e-5)


# --------------------------------------------------------------------------------------------------------- damaged files

def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:file.stat().st_size // 2])


@needs_numba
@pytest.mark.parametrize("damaged", ["*.py", "*.nbc", "*.nbi", "*.pyc"])
@pytest.mark.parametrize("damage", [truncate, partial(Path.write_bytes, data=bytes(3000))], ids=["short", "zeros"])
def test_damaged_files_are_made_anew(damaged: str, damage: Callable[[Path], Any], tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAGRAD_CACHE", str(tmp_path))
    make = partial(compiler.compiled, "def kernel(x):\n    y = x + 1\n    return y * 2\n", "intp(intp)")
    assert make()(20) == 42
    files = [*tmp_path.rglob(damaged)]
    assert files or damaged == "*.pyc"
    before = {file: file.stat().st_size for file in files}
    for file in files:
        damage(file)
    assert make()(20) == 42
    assert {file: file.stat().st_size for file in files} == before  # and the next process finds them whole
    assert make()(20) == 42
