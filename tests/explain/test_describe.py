"""`mutagrad.describe`: one line that tells the truth about a tensor of any type and size."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.base.errors import BadArgument
from mutagrad.explain import statistics as statistics_file
from mutagrad.explain.describe import last_writer, norm
from mutagrad.explain.statistics import statistics

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("made, line", [
    (lambda: mg.tensor(3.), "tensor () float32, 3"),
    (lambda: mg.tensor([]), "tensor (0,) float32, empty"),
    (lambda: mg.zeros(2, 0, 3), "tensor (2, 0, 3) float32, empty"),
    (lambda: mg.tensor([1., 2., 3.]), "tensor (3,) float32, 1 to 3, mean 2, std 1"),
    (lambda: mg.tensor([0., 0., 4., 0.]), "tensor (4,) float32, 0 to 4, mean 1, std 2, 75% zeros"),
    (lambda: mg.zeros(3), "tensor (3,) float32, all 0"),
    (lambda: mg.tensor([NAN, 1, INF, 1]), "tensor (4,) float32, finite ones all 1, 1 nan (25%), 1 inf (25%)"),
    (lambda: mg.tensor([NAN, -INF]), "tensor (2,) float32, 1 nan (50%), 1 inf (50%)"),
    (lambda: mg.tensor([NAN]), "tensor (1,) float32, 1 nan (100%)"),
    (lambda: mg.tensor([True, False, True, True]), "tensor (4,) bool, 75% True"),
    (lambda: mg.tensor([3 + 4j, 0]), "tensor (2,) complex64, |x| 0 to 5, mean 2.5, std 3.536, 50% zeros"),
    (lambda: mg.tensor([1, 2]), "tensor (2,) int64, 1 to 2, mean 1.5, std 0.7071"),
    (lambda: mg.tensor([250, 255], dtype=mg.uint8), "tensor (2,) uint8, 250 to 255, mean 252.5, std 3.536"),
    (lambda: mg.tensor([65504., -65504.], dtype=mg.float16), "tensor (2,) float16, -6.55e+04 to 6.55e+04, mean 0, std 9.264e+04"),
    (lambda: mg.tensor([1e308, -1e308], dtype=mg.float64), "tensor (2,) float64, -1e+308 to 1e+308, mean 0, std inf"),
    (lambda: mg.tensor(2.).expand(10**6, 10**6), "tensor (1000000, 1000000) float32, all 2"),
    (lambda: mg.empty(3, device="meta"), "tensor (3,) float32 on meta, no values"),
    (lambda: nn.Parameter(mg.ones(2)), "parameter (2,) float32, all 1, no grad yet, leaf"),
    (lambda: np.arange(3), "array (3,) int64, 0 to 2, mean 1, std 1, 33% zeros"),
    (lambda: mg.eye(2).to_sparse(), "sparse tensor (2, 2) with 2 values: tensor (2,) float32, all 1"),
])
def test_lines(made: Any, line: str) -> None:
    assert mg.describe(made()) == line and repr(mg.describe(made())) == line


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="needs the extra bfloat16")
    assert mg.describe(mg.tensor([1., 3., NAN]).bfloat16()) == "tensor (3,) bfloat16, 1 to 3, mean 2, std 1.414, 1 nan (33%)"


def test_gradients_and_who_wrote_last() -> None:
    x = mg.tensor([3., 4.], requires_grad=True)
    y = x * 2
    y[0] = 5.
    assert mg.describe(y).endswith("y[0] = 5.") and "written by copy at" in mg.describe(y) and "test_describe.py:" in mg.describe(y)
    assert mg.describe(y[1:]).endswith("y = x * 2"), "nobody has written there since"
    y.pow(2).sum().backward()
    assert ", grad norm 32, leaf" in mg.describe(x)
    x.grad = mg.tensor([NAN, 1.])
    assert "grad norm nan" in mg.describe(x)
    assert "written" not in mg.describe(x.detach()) and "grad" not in mg.describe(mg.ones(2))


def test_the_last_writer_of_each_part() -> None:
    x = mg.ones(4, 4, requires_grad=True)
    y = x * 1
    y[0] = 2.
    y[:, 1] = 3.
    y[mg.tensor([3]), mg.tensor([3])] = 4.
    assert last_writer(y) is last_writer(y[2, 2]) is y._storage.writer, "an index may have touched anything"
    z = x * 1
    z[0] = 2.
    z[:, 1] = 3.
    a, b, c, d = (last_writer(part) for part in (z, z[0, 0], z[2, 1], z[2, 2]))
    assert a is c is z._storage.writer and b is a.previous and d is b.previous and d.op.name == "mul"
    assert last_writer(x) is x._storage.leaf and last_writer(mg.ones(2)) is None


def test_containers_get_a_line_each() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    lines = mg.describe(model).splitlines()
    assert [line.split()[0] for line in lines] == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"]
    assert [line.split()[0] for line in mg.describe(model.state_dict()).splitlines()] == list(model.state_dict())
    text = mg.describe([mg.ones(2), {"a": (mg.zeros(1), 5)}])
    assert text.splitlines() == ["0      tensor (2,) float32, all 1", "1.a.0  tensor (1,) float32, 0", "1.a.1  int 5"]
    assert mg.describe([]) == "list without tensors" and mg.describe(nn.ReLU()) == "ReLU without tensors"
    assert "without a shape yet" in mg.describe(nn.LazyLinear(3))
    with pytest.raises(BadArgument, match="not int"):
        mg.describe(3)


def test_describing_changes_nothing() -> None:
    x = mg.ones(3, requires_grad=True)
    version, writer = x._version, x._storage.writer
    mg.describe(x)
    assert (x._version, x._storage.writer) == (version, writer)


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_statistics_are_those_of_numpy(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_file, "BLOCK", block)
    values = np.random.default_rng(0).normal(3, 2, (5, 8)).astype(np.float32)
    values[0, :3] = 0
    found = statistics(values)
    wide = values.astype(np.float64)
    assert found[:1] + found[5:] == (40, 3 / 40, 0, 0) and found.smallest == wide.min() and found.largest == wide.max()
    assert math.isclose(found.mean, wide.mean()) and math.isclose(found.std, wide.std(ddof=1))
    repeated = statistics(np.broadcast_to(values[:, None], (5, 3, 8)))
    copied = statistics(np.repeat(values, 3, axis=0))
    assert repeated.size == copied.size == 120 and math.isclose(repeated.std, copied.std) and math.isclose(repeated.mean, copied.mean)
    assert math.isclose(norm(mg.from_numpy(values)), np.linalg.norm(wide))
    assert norm(mg.tensor([3.])) == 3 and norm(mg.tensor([])) == 0 and norm(mg.tensor([3 + 4j])) == 5
