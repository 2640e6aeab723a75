"""Functions of several steps, which NumPy computes piece by piece for large arrays, give what small arrays give."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays import parallel as large, pieces
from mutagrad.core.op import TABLE
from mutagrad.nn import functional as F

N = 600  # rows of so many elements: together more than LARGE, each of them few
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 0.5, -0.5, 1.0, 3.0, -3.0, 6.0, 20.0]
PLAIN = sorted(name for name, op in TABLE.items() if op.promotes in ("float", "real", "any") and not op.settings
               and len(op.inputs) < 3 and op.forward is not None)
OTHERS: dict[str, Any] = {
    "hardshrink": lambda x, y, z: mg.hardshrink(x, 0.5), "softshrink": lambda x, y, z: F.softshrink(x, 0.5),
    "threshold": lambda x, y, z: F.threshold(x, 0.5, -2.0), "leaky": lambda x, y, z: F.leaky_relu(x, 0.1),
    "elu": lambda x, y, z: F.elu(x, 0.7), "selu": lambda x, y, z: mg.selu(x), "softplus": lambda x, y, z: F.softplus(x, 2.0),
    "lerp": lambda x, y, z: mg.lerp(x, y, z), "lerp, a number": lambda x, y, z: mg.lerp(x, y, 0.3),
    "addcmul": lambda x, y, z: mg.addcmul(x, y, z, value=0.5), "addcdiv": lambda x, y, z: mg.addcdiv(x, y, z, value=0.5),
    "clamp": lambda x, y, z: x.clamp(y, z), "clamp, a number": lambda x, y, z: x.clamp(-1, 3),
    "where": lambda x, y, z: mg.where(x > y, y, z), "where, a number": lambda x, y, z: mg.where(x > y, 0.0, z),
    "nan_to_num": lambda x, y, z: mg.nan_to_num(x), "nan_to_num, given": lambda x, y, z: mg.nan_to_num(x, 1.0, 2.0, 3.0),
    "hardtanh": lambda x, y, z: F.hardtanh(x), "gelu, tanh": lambda x, y, z: F.gelu(x, approximate="tanh"),
    "x += alpha * y": lambda x, y, z: x.clone().add_(y, alpha=1e-3)}


@pytest.fixture(autouse=True)
def numpy_alone() -> Iterator[None]:
    before = mg.get_kernels()
    mg.set_kernels("numpy")
    yield
    mg.set_kernels(before)


def drawn(dtype: Any, seed: int, shape: tuple[int, ...] = (N, N)) -> Any:
    a = np.random.default_rng(seed).normal(size=shape)
    with np.errstate(over="ignore"):
        a[1 % len(a), 1:1 + len(SPECIAL)] = np.roll(SPECIAL, 3 * seed)
        return mg.tensor(a.astype(dtype))


def close(found: Any, expected: Any, exact: bool = True) -> None:
    a, b = found.detach().numpy(), expected.detach().numpy()
    assert a.dtype is b.dtype
    if exact:
        np.testing.assert_array_equal(a, b)
    else:  # a vector of NumPy's may round otherwise than what is left over at the end of a row
        np.testing.assert_allclose(a, b, 1e-3 if a.dtype == np.float16 else 3e-6 if a.dtype == np.float32 else 1e-13, 1e-38)


def by_rows(function: Any, *given: Any) -> Any:
    return mg.stack([function(*row) for row in zip(*given)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", [*PLAIN, *OTHERS])
def test_forwards_and_rules(name: str, dtype: str) -> None:
    count = len(TABLE[name].inputs) if name not in OTHERS else 3
    function = OTHERS.get(name) or TABLE[name].function
    given = [drawn(dtype, seed) for seed in range(count)]
    try:
        expected = by_rows(function, *given)
    except Exception as error:  # not for such numbers
        pytest.skip(f"{type(error).__name__}: not for these")
    close(function(*given), expected, False)
    if not expected.is_floating_point() or name not in OTHERS and not any(TABLE[name].rules.values()):
        return
    g = drawn(dtype, 7).nan_to_num(1.0, 2.0, 2.0)
    wanted = [x.clone().requires_grad_() for x in given]
    found = mg.autograd.grad(function(*wanted), wanted, g, allow_unused=True)
    rows = [mg.autograd.grad(function(*row), row, slope, allow_unused=True)
            for *row, slope in zip(*[[r.clone().requires_grad_() for r in x] for x in given], g)]
    for k, gradient in enumerate(found):
        if gradient is not None:
            close(gradient, mg.stack([row[k] for row in rows]), False)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_layouts(dtype: str) -> None:
    x, y, z = (drawn(dtype, seed) for seed in range(3))
    wide = drawn(dtype, 3, (N, 2 * N))
    row, column, one = y[5], z[:, 5:6], y[3, 40]
    for a, b, c in ((x.T, y, z), (x.T, y.T, z.T), (x, row, z), (x, y, column), (column, row, z), (wide[:, ::2], y, z),
                    (wide[:, :N], y, one), (x[:, None], row, z[None]) if dtype == "float16" else (x, one, z)):
        if a.numel() > 10 * N * N or mg.broadcast_tensors(a, b, c)[0].dim() > 2:
            continue
        whole = [t.contiguous() for t in mg.broadcast_tensors(a, b, c)]
        for function in (mg.lerp, lambda x, y, z: mg.addcmul(x, y, z, value=2.0), lambda x, y, z: mg.where(x > y, y, z)):
            close(function(a, b, c), function(*whole))


def test_writes_into_operands() -> None:
    for window in (np.s_[:], np.s_[5:-5, 5:-5], np.s_[:, ::2], np.s_[3:]):
        for pick in (lambda x: x, lambda x: x[0], lambda x: x[0, 0], lambda x: x[:, :1], lambda x: x.T if x.shape[0] == x.shape[1] else x):
            x, y = drawn("float32", 0)[window], drawn("float32", 1)[window]
            expected = mg.lerp(x.clone(), pick(x).clone(), y)
            close(x.lerp_(pick(x), y), expected)
            expected = x.clone() + y * 0.5
            close(x.add_(y, alpha=0.5), expected, False)


def test_a_window_that_overlaps_its_operand() -> None:
    x, y = drawn("float32", 0), drawn("float32", 1)
    expected = mg.lerp(x[1:].clone(), x[:-1].clone(), y[1:])
    close(x[1:].lerp_(x[:-1], y[1:]), expected)


def test_settings_and_numbers_are_not_mixed_up() -> None:
    x, y = drawn("float32", 0), drawn("float32", 1)
    for weight in (0.3, 0.7, mg.tensor(0.2), mg.tensor(0.9), 0.0, 1.0):
        close(mg.lerp(x, y, weight)[7], mg.lerp(x[7], y[7], weight), False)
    for bound in (0.0, -0.0, 1.0, float("inf"), float("nan")):
        close(F.threshold(x, 0.5, bound)[1], F.threshold(x[1], 0.5, bound))
        np.testing.assert_array_equal(np.signbit(F.threshold(x, 0.5, bound).numpy()), np.signbit(
            by_rows(lambda r, b=bound: F.threshold(r, 0.5, b), x).numpy()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_keep_their_sign(dtype: Any) -> None:
    x = drawn(dtype, 0)
    for function in (F.hardshrink, lambda x: mg.where(x > 0, x, 0.0), lambda x: mg.where(x > 0, -0.0, x), F.threshold,
                     lambda x: mg.copysign(x, -x), mg.sign, mg.trunc, mg.frac):
        if function is F.threshold:
            continue
        np.testing.assert_array_equal(np.signbit(function(x).nan_to_num(1.0).numpy()),
                                      np.signbit(by_rows(function, x).nan_to_num(1.0).numpy()))


def test_every_half_by_a_table() -> None:
    halves = mg.tensor(np.arange(1 << 16, dtype=np.uint16).view(np.float16))
    many = halves.repeat(5)
    for function in (lambda x: x * 2, lambda x: x * -0.3, lambda x: x + 1, F.relu, mg.sigmoid, mg.exp, lambda x: x.clamp(-1, 2), F.gelu,
                     lambda x: 2 / x, mg.tanh):
        np.testing.assert_array_equal(function(many).numpy(), np.tile(function(halves).numpy(), 5))
        written = many.clone()
        np.testing.assert_array_equal(written.mul_(-1.5).numpy(), np.tile((halves * -1.5).numpy(), 5))


def test_pieces_are_recorded(monkeypatch: Any) -> None:
    """What is to be computed in pieces is, and what asks for elements is refused without a trace."""
    assert pieces.run(lambda a: a, lambda given: [given[0] * 2 + 1], [np.ones(large.LARGE)], None, [np.empty(large.LARGE)])
    for refused in (lambda given: [given[0] * given[0].sum()], lambda given: [given[0][::-1]], lambda given: [np.sort(given[0])],
                    lambda given: [given[0] if given[0] > 0 else -given[0]]):
        out = np.zeros(large.LARGE)
        assert not pieces.run(refused, refused, [np.ones(large.LARGE)], None, [out]) and not out.any()


@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
def test_the_neighbour_of_a_short_float_is_one_of_its_type(dtype: Any) -> None:
    x = mg.tensor([1.0, -2.0, 0.0, np.inf]).to(dtype)
    y = mg.tensor([2.0, 0.0, -1.0, 0.0]).to(dtype)
    many = mg.nextafter(x.repeat(large.LARGE), y.repeat(large.LARGE)).reshape(-1, 4)
    assert mg.equal(many, mg.nextafter(x, y).expand(many.shape)) and (many != x).all()


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "softplus", "elu", "hardswish", "logsigmoid", "tanh", "erf"])
def test_one_element_that_stands_for_many(name: str) -> None:
    function = getattr(F, name, None) or getattr(mg, name)
    for shape in ((), (1,), (1, 1)):
        x = mg.full(shape, 0.7, requires_grad=True)
        g = mg.linspace(-1, 1, large.LARGE).reshape(*[1] * (len(shape) - 1), -1)
        found, = mg.autograd.grad(function(x.expand(g.shape)), x, g + 0.5)
        one, = mg.autograd.grad(function(x).sum(), x)
        assert found.item() == pytest.approx(one.item() * (g + 0.5).double().sum().item(), rel=1e-4)


def test_losses_of_whole_numbers_are_no_whole_numbers() -> None:
    """However many there are: the result has one type, which holds a half."""
    for count in (6, large.LARGE):
        x, y = mg.arange(count) % 5, mg.arange(count) % 3
        for function in (F.smooth_l1_loss, F.huber_loss):
            assert function(x, y, reduction="none")[3:6].tolist() == [2.5, 2.5, 1.5]
