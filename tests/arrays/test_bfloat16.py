"""bfloat16: every operation of the core gives what float32 gives, rounded; promotion, writes, text, and the missing library."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from samples import CORE, SAMPLES, Sample
from tools import same

pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")

EPS = mg.finfo(mg.bfloat16).eps
# What a result may be off by, in units of the largest element: rounded once, unless said otherwise.
ROUGH = {"cumprod": 3, "cumsum": 2, "norm": 4, "dist": 3, "var_mean": 2, "einsum": 3, "tensordot": 2, "addmm": 2,
         "nn.functional.grid_sample": 30, "grid_sampler": 30}  # whose positions are rounded, too


def short(*values: Any, **settings: Any) -> mg.Tensor:
    return mg.tensor(values, dtype=mg.bfloat16, **settings)


def close(found: Any, expected: Any, units: float, why: str = "") -> None:
    found, expected = np.asarray(found.detach().double().numpy()), np.asarray(expected.detach().double().numpy())
    size = np.abs(expected[np.isfinite(expected)]).max(initial=1e-3)
    np.testing.assert_allclose(found, expected, rtol=units * EPS, atol=units * EPS * size, err_msg=why)


CALLS = [s for s in SAMPLES if s.name in CORE and s.draws and "nuc" not in str(s)]  # the nuclear norm needs LAPACK, which has no such type


OTHERS = [s for s in SAMPLES if s.name not in CORE and s.draws]
WIDE = ("fft.", "istft", "bincount", "ldexp")  # whose results are of another float type


def compare(sample: Sample, units: float, may_refuse: bool = False) -> None:
    """Values and gradients in bfloat16 with those in float32 of the same numbers, to within so many roundings."""
    inputs = [mg.tensor(a, dtype=mg.bfloat16) for a in sample.arrays()]
    narrow, single = [x.clone().requires_grad_() for x in inputs], [x.float().requires_grad_() for x in inputs]
    expected = sample.call(mg, single)
    try:
        found = sample.call(mg, narrow)
    except mg.MutagradError as error:
        assert may_refuse and "bfloat16" in str(error)
        return
    for f, e in zip(found, expected):
        if not isinstance(f, mg.Tensor):
            assert f == e
            continue
        assert f.shape == e.shape and f.requires_grad == e.requires_grad
        assert f.dtype is (mg.bfloat16 if e.dtype is mg.float32 else e.dtype) or sample.name.startswith(WIDE)
        if e.dtype.is_floating_point:
            close(f, e, units, "value")
        elif not e.dtype.is_complex:
            same(f, e.numpy())
    results = [(f, e) for f, e in zip(found, expected) if isinstance(f, mg.Tensor) and f.requires_grad and not f.is_complex()]
    if not results:
        return
    weights = [mg.randn(*e.shape, generator=mg.Generator().manual_seed(1)).bfloat16().float() for _, e in results]
    sum((f.float() * w).sum() for (f, _), w in zip(results, weights)).backward()
    sum((e * w).sum() for (_, e), w in zip(results, weights)).backward()
    for x, y in zip(narrow, single):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            assert x.grad.dtype is mg.bfloat16
            close(x.grad, y.grad, 4 * units, "gradient")


@pytest.mark.parametrize("sample", CALLS, ids=str)
def test_operation(sample: Sample) -> None:
    compare(sample, 0.51 * ROUGH.get(sample.name, 2))


@pytest.mark.parametrize("sample", OTHERS, ids=str)
def test_operation_of_a_room(sample: Sample) -> None:
    compare(sample, ROUGH.get(sample.name, 3), may_refuse=True)


def test_neighbours() -> None:
    x = short(1.0, 2.0)
    assert mg.nextafter(x, short(3.0, 3.0)).tolist() == [1 + EPS, 2 + 2 * EPS]
    assert x.nextafter_(short(0.0, 0.0)).tolist() == [1 - EPS / 2, 2 - EPS]


def test_nan_is_the_largest_when_sorted() -> None:
    x = short(1.0, float("nan"), 3.0, -1.0, 2.0)
    assert x.sort().indices.tolist() == [3, 0, 4, 2, 1] and x.argsort(descending=True).tolist() == [1, 2, 4, 0, 3]
    assert x.topk(2).indices.tolist() == [1, 2] and x.argmax().item() == 1 and x.max().isnan() and x.amin().isnan()
    assert mg.nanmedian(x).item() == 1 and mg.median(x).isnan() and x.unique().tolist()[:4] == [-1, 1, 2, 3]
    assert mg.searchsorted(short(1.0, 2.0, 3.0), short(2.5, float("nan"))).tolist() == [2, 3]


def test_only_the_first_such_tensor_looks_for_the_library() -> None:
    code = """
import sys
sys.modules["ml_dtypes"] = None  # as if it were not installed
import mutagrad as mg
mg.finfo(mg.bfloat16), mg.bfloat16.is_floating_point, mg.promote_types(mg.bfloat16, mg.int64), mg.promote_types(mg.float16, mg.bfloat16)
try:
    mg.zeros(2, dtype=mg.bfloat16)
except ImportError as error:
    print(error)
"""
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'mutagrad[bfloat16]'" in text


# ---------------------------------------------------------------------------------------------------------------------- types

PROMOTES = {mg.bool: "bfloat16", mg.uint8: "bfloat16", mg.int64: "bfloat16", mg.float16: "float32", mg.bfloat16: "bfloat16", mg.float32: "float32",
            mg.float64: "float64", mg.complex64: "complex64", mg.complex128: "complex128"}


@pytest.mark.parametrize("other", PROMOTES, ids=str)
def test_promotion(other: Any) -> None:
    expected = getattr(mg, PROMOTES[other])
    x, y = mg.ones(2, dtype=mg.bfloat16), mg.ones(2, dtype=other)
    assert mg.promote_types(mg.bfloat16, other) is mg.promote_types(other, mg.bfloat16) is expected
    assert (x * y).dtype is (y * x).dtype is mg.result_type(x, y) is expected
    of_higher_kind = other.is_complex
    assert (x * y[0]).dtype is (mg.complex64 if of_higher_kind else mg.bfloat16), "a 0-d tensor counts by category only"
    assert (y * x[0]).dtype is (mg.bfloat16 if not other.is_floating_point and not other.is_complex else other)


def test_numbers_keep_it() -> None:
    x = short(1.0, 2.0)
    for y in (x * 2, x * 2.5, 2.5 / x, x**2, x**0.5, 2.0**x, x + True, x * 2**70, mg.where(x > 1, x, 0.0), x.clamp(0.1, 1.5), mg.maximum(x, short(1.5))):
        assert y.dtype is mg.bfloat16
    assert (x * 1j).dtype is mg.complex64
    assert (x > 1.5).tolist() == [False, True] and (x / mg.tensor(3)).dtype is mg.bfloat16


def test_what_it_is() -> None:
    d = mg.bfloat16
    assert d.is_floating_point and not d.is_complex and d.is_signed and d.itemsize == 2 and repr(d) == "mutagrad.bfloat16"
    assert d.to_complex() is mg.complex64 and pickle.loads(pickle.dumps(d)) is d
    x = short(1.0, 2.0)
    assert x.element_size() == 2 and x.is_floating_point() and x.type() == "mutagrad.BFloat16Tensor" and isinstance(x, mg.BFloat16Tensor)
    info = mg.finfo(d)
    assert (info.bits, info.eps, info.dtype) == (16, 2**-7, "bfloat16")
    assert short(info.max).item() == info.max and short(info.tiny).item() == info.tiny and short(1 + info.eps).item() == 1 + info.eps
    assert short(info.max * 1.01).item() == float("inf")


def test_casts() -> None:
    x = mg.tensor([1.0, 1 + 2**-9, 3.14159, 1e30])
    assert x.bfloat16().tolist() == [1.0, 1.0, 3.140625, x.bfloat16()[3].item()]
    for cast in (x.to(mg.bfloat16), x.to(dtype=mg.bfloat16), x.type(mg.bfloat16), x.type_as(short(1.0)), x.double().bfloat16(), x.to(short(1.0))):
        assert cast.dtype is mg.bfloat16
    y = short(1.5, 0.0, -2.5)
    assert y.long().tolist() == [1, 0, -2] and y.bool().tolist() == [True, False, True] and y.half().tolist() == [1.5, 0, -2.5]
    assert y.to(mg.complex64).tolist() == [1.5, 0, -2.5] and y.bfloat16() is y
    assert mg.tensor([1, 2]).bfloat16().tolist() == [1, 2] and mg.tensor([True]).bfloat16().item() == 1.0
    assert mg.tensor([1, 2.5], dtype=mg.bfloat16).dtype is mg.bfloat16 and mg.tensor([y[0], y[2]]).dtype is mg.bfloat16
    assert mg.stack([y, y]).dtype is mg.cat([y, y]).dtype is mg.bfloat16 and mg.cat([y, y.half()]).dtype is mg.float32


def test_casts_pass_gradients() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    (x.bfloat16() * short(3.0, 5.0)).float().sum().backward()
    assert x.grad.dtype is mg.float32
    same(x.grad, [3, 5])
    y = short(1.0, 2.0, requires_grad=True)
    (y.double() * 1.5).sum().backward()
    assert y.grad.dtype is mg.bfloat16
    same(y.grad.float(), [1.5, 1.5])
    w = mg.tensor([[1.0], [2.0]], requires_grad=True)  # float32 meets bfloat16: the adjoint has each one's own type
    z = short(1.0, 2.0, requires_grad=True)
    (w * z).sum().backward()
    assert w.grad.dtype is mg.float32 and z.grad.dtype is mg.bfloat16
    same(z.grad.float(), [3, 3])


def test_creation_in_bfloat16() -> None:
    for made in (mg.zeros(3, dtype=mg.bfloat16), mg.ones(3, dtype=mg.bfloat16), mg.full((3,), 2.5, dtype=mg.bfloat16), mg.arange(3, dtype=mg.bfloat16),
                 mg.linspace(0, 1, 3, dtype=mg.bfloat16), mg.eye(3, dtype=mg.bfloat16), mg.rand(3, dtype=mg.bfloat16), mg.randn(3, dtype=mg.bfloat16),
                 mg.randint(0, 5, (3,), dtype=mg.bfloat16), mg.zeros_like(short(1.0)), mg.rand_like(short(1.0)), short(1.0).new_zeros(3),
                 mg.empty(3, dtype=mg.bfloat16).normal_(), mg.bernoulli(short(0.5)), mg.normal(short(0.5), 1.0), mg.empty(3, dtype=mg.bfloat16).exponential_()):
        assert made.dtype is mg.bfloat16
    drawn = mg.rand(20000, dtype=mg.bfloat16)
    assert drawn.max().item() < 1
    mg.set_default_dtype(mg.bfloat16)
    try:
        assert mg.tensor([1.5]).dtype is mg.zeros(1).dtype is mg.bfloat16 and (mg.tensor([1]) * 1.5).dtype is mg.bfloat16
    finally:
        mg.set_default_dtype(mg.float32)


@pytest.mark.parametrize("dtype", [mg.bfloat16, mg.float16], ids=str)
def test_sums_are_exact_where_running_sums_would_stick(dtype: Any) -> None:
    """256 + 1 is 256 in bfloat16, and 2048 + 1 is 2048 in float16."""
    x = mg.ones(4000, 4, dtype=dtype, requires_grad=True)
    assert x.sum(0).tolist() == [4000] * 4 and x.mean(0).tolist() == [1] * 4 and (x.T @ x.detach())[0, 0].item() == 4000
    b = mg.zeros(4, dtype=dtype, requires_grad=True)
    (x.detach() + b).sum().backward()  # broadcast over 4000 rows: the adjoint is their sum
    assert b.grad.tolist() == [4000] * 4
    many = mg.ones(1 << 18, dtype=dtype, requires_grad=True)
    (many.sigmoid() * 2).sum().backward()
    assert many.grad.dtype is dtype and abs(many.grad[0].item() - 0.3932) < 0.002


# --------------------------------------------------------------------------------------------------------------------- writes

def test_writes() -> None:
    x = mg.tensor([1.0, 2.0, 3.0, 4.0], dtype=mg.bfloat16, requires_grad=True)
    y = x * 2
    y[0] = 7
    y[1:3] *= 1.5
    y[3] = y[1] * y[2]
    y.add_(mg.tensor([1, 1, 1, 1])).mul_(0.5)
    y.clamp_(max=20)
    y.sum().backward()
    assert y.dtype is x.grad.dtype is mg.bfloat16
    assert y.tolist() == [4, 3.5, 5, 20]
    same(x.grad.float(), [0, 1.5, 1.5, 0])
    y = mg.zeros(3, dtype=mg.bfloat16)
    y.copy_(mg.tensor([1.0, 2.0, 3.0], dtype=mg.float64))
    y += mg.tensor([0.5, 0.5, 0.5])
    mg.exp(short(0.0, 0.0, 0.0), out=y)
    mg.sum(short(1.0, 2.0), out=y[0])
    assert y.tolist() == [3, 1, 1]
    with pytest.raises(RuntimeError):
        mg.tensor([1]).add_(short(1.0))


def test_indexed_writes_add_up() -> None:
    x, v = mg.zeros(3, dtype=mg.bfloat16, requires_grad=True), short(1.0, 2.0, 4.0, requires_grad=True)
    y = x.clone().index_add(0, mg.tensor([0, 0, 2]), v)
    y = y.scatter_add(0, mg.tensor([1, 1]), v[:2])
    y[mg.tensor([True, False, True])] *= 2
    y.sum().backward()
    assert y.tolist() == [6, 3, 8]
    assert v.grad.tolist() == [3, 3, 2] and x.grad.tolist() == [2, 1, 2]


def test_second_order() -> None:
    x = short(0.5, 1.0, requires_grad=True)
    (g,) = mg.autograd.grad((x.sigmoid() * x * x).sum(), x, create_graph=True)
    (h,) = mg.autograd.grad(g.sum(), x)
    y = mg.tensor([0.5, 1.0], requires_grad=True)
    (gy,) = mg.autograd.grad((y.sigmoid() * y * y).sum(), y, create_graph=True)
    (hy,) = mg.autograd.grad(gy.sum(), y)
    assert g.dtype is h.dtype is mg.bfloat16
    close(g, gy, 3)
    close(h, hy, 6)


def test_a_function_of_ones_own() -> None:
    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert g.dtype is mg.bfloat16
            return g * 2 * ctx.saved_tensors[0]

    x = short(1.0, 3.0, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 6] and x.grad.dtype is mg.bfloat16


def test_hooks_see_it() -> None:
    x, seen = short(1.0, 3.0, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.dtype))
    y.retain_grad()
    (y.sigmoid() * 0.5).sum().backward()
    assert seen == [mg.bfloat16] and y.grad.dtype is mg.bfloat16


# --------------------------------------------------------------------------------------------------------------- coming out

def test_numpy_has_no_such_type() -> None:
    x = short(1.0, 2.5)
    for call in (x.numpy, lambda: np.asarray(x), lambda: np.array(x)):
        with pytest.raises(TypeError, match="bfloat16"):
            call()
    same(x.float(), [1, 2.5])
    assert x.tolist() == [1, 2.5] and x[1].item() == 2.5 and type(x[1].item()) is float and float(x[0]) == 1 and int(x[1]) == 2 and bool(x[0])


def test_text() -> None:
    assert repr(short(1.0, 2.5)) == "tensor([1.0000, 2.5000], dtype=mutagrad.bfloat16)"
    assert repr(short(1.0, 2.0, requires_grad=True)) == "tensor([1., 2.], dtype=mutagrad.bfloat16, requires_grad=True)"
    assert repr(mg.zeros(0, dtype=mg.bfloat16)) == "tensor([], dtype=mutagrad.bfloat16)"
    assert f"{short(2.5)[0]:.2f}" == "2.50" and "nan" in repr(short(float("nan"), 1e30))


def test_copies() -> None:
    x = short(1.0, 2.5, requires_grad=True)
    for twin in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert twin.dtype is mg.bfloat16 and twin.tolist() == [1, 2.5]
    twin = pickle.loads(pickle.dumps(x))
    (twin * 2).sum().backward()
    assert twin.grad.tolist() == [2, 2]


def test_arrays_of_the_library_are_taken() -> None:
    array = np.array([1.0, 2.0], __import__("ml_dtypes").bfloat16)
    shared = mg.from_numpy(array)
    shared[0] = 5
    assert shared.dtype is mg.bfloat16 and array[0] == 5 and mg.tensor(array).dtype is mg.bfloat16
    with pytest.raises(TypeError):
        mg.from_numpy(np.zeros(2, __import__("ml_dtypes").float8_e5m2))
