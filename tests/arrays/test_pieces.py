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
from mutagrad.ops.math import special

assert special  # or its operations would not be in the table yet
N = 520  # rows of so many elements: together more than LARGE, each of them few
SOME = [*range(4), *range(4, N, 61), N - 1]  # rows that are looked at
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
    "glu": lambda x, y, z: F.glu(mg.stack([x, y], -1).reshape(*x.shape[:-1], -1)), "glu, halves": lambda x, y, z: F.glu(mg.cat([x, y], -1)),
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


ROUNDING = {"float16": 1e-3, "float32": 3e-6, "float64": 1e-13}


def close(found: Any, expected: Any, exact: bool = True, least: float = 1e-38) -> None:
    a, b = found.detach().numpy(), expected.detach().numpy()
    assert a.dtype is b.dtype
    if exact:
        np.testing.assert_array_equal(a, b)
    else:  # a vector of NumPy's may round otherwise than what is left over at the end of a row
        np.testing.assert_allclose(a, b, ROUNDING.get(a.dtype.name, 0), least)


def by_rows(function: Any, *given: Any) -> Any:
    return mg.stack([function(*[x[i] for x in given]) for i in SOME])


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
    close(function(*given)[SOME], expected, False)
    if not expected.is_floating_point() or name not in OTHERS and None in map(TABLE[name].rules.get, TABLE[name].inputs):
        return
    g = drawn(dtype, 7).nan_to_num(1.0, 2.0, 2.0)
    wanted = [x.clone().requires_grad_() for x in given]
    found = mg.autograd.grad(function(*wanted), wanted, g, allow_unused=True)
    rows = []
    for i in SOME:
        row = [x[i].clone().requires_grad_() for x in given]
        rows.append(mg.autograd.grad(function(*row), row, g[i], allow_unused=True))
    for k, gradient in enumerate(found):
        if gradient is not None:
            close(gradient[SOME], mg.stack([row[k] for row in rows]), False, ROUNDING[dtype] / 30)


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


@pytest.mark.parametrize("n", [2, 3, 17])
def test_short_rows(n: int) -> None:
    """What is the same for all rows is laid out once."""
    x, row = drawn("float32", 0, (large.LARGE // n + 3, n)) if n == 17 else mg.randn(large.LARGE // n + 3, n), mg.randn(n)
    column, cube = x[:, :1].contiguous(), x[:, None].expand(-1, 2, -1)
    for a, b in ((x, row), (row, x), (column, row), (x, row[:1]), (cube, row), (cube, mg.randn(2, n)), (cube, mg.randn(2, 1)), (x.T, row[:, None])):
        whole = [t.contiguous() for t in mg.broadcast_tensors(a, b)]
        for function in (lambda a, b: a * b, lambda a, b: a - b, lambda a, b: mg.lerp(a, b, 0.3), mg.atan2, lambda a, b: a > b):
            close(function(a, b), function(*whole))
    y = x.clone()
    close(y.mul_(row), x * row.expand_as(x).contiguous())


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
        np.testing.assert_array_equal(np.signbit(F.threshold(x, 0.5, bound).numpy()[SOME]), np.signbit(
            by_rows(lambda r, b=bound: F.threshold(r, 0.5, b), x).numpy()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zeros_keep_their_sign(dtype: Any) -> None:
    x = drawn(dtype, 0)
    for function in (F.hardshrink, lambda x: mg.where(x > 0, x, 0.0), lambda x: mg.where(x > 0, -0.0, x), F.threshold,
                     lambda x: mg.copysign(x, -x), mg.sign, mg.trunc, mg.frac):
        if function is F.threshold:
            continue
        np.testing.assert_array_equal(np.signbit(function(x).nan_to_num(1.0).numpy()[SOME]),
                                      np.signbit(by_rows(function, x).nan_to_num(1.0).numpy()))


def test_every_half_by_a_table() -> None:
    halves = mg.tensor(np.arange(1 << 16, dtype=np.uint16).view(np.float16))
    many = halves.repeat(5)
    for function in (lambda x: x * 2, lambda x: x * -0.3, lambda x: x + 1, F.relu, mg.sigmoid, mg.exp, lambda x: x.clamp(-1, 2), lambda x: x.clamp(-1, 1), F.gelu,
                     lambda x: 2 / x, mg.tanh):
        np.testing.assert_array_equal(function(many).numpy(), np.tile(function(halves).numpy(), 5))
        written = many.clone()
        np.testing.assert_array_equal(written.mul_(-1.5).numpy(), np.tile((halves * -1.5).numpy(), 5))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_bounds_of_short_floats_by_their_bits(dtype: str) -> None:
    kind = np.float16 if dtype == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    halves = np.arange(1 << 16, dtype=np.uint16).view(kind)
    known = halves[~np.isnan(halves.astype(np.float32))]
    for some in (halves, known, np.concatenate([known, halves[-1:]]), np.concatenate([known, halves[0x7FC0:0x7FC1]])):
        x = mg.tensor(np.array(some).view(np.int16)).view(getattr(mg, dtype))
        for function in (F.relu, F.relu6, lambda x: x.clamp(0.1, 100), lambda x: x.clamp(min=-0.0), lambda x: x.clamp(1e-8, 1e6)):
            np.testing.assert_array_equal(function(x.repeat(5)).float().numpy(), np.tile(function(x).float().numpy(), 5))
            y = x.repeat(5)
            assert mg.equal(y.clamp_(0, 6).nan_to_num(9.0), F.relu6(x).repeat(5).nan_to_num(9.0))


def test_pieces_are_recorded(monkeypatch: Any) -> None:
    """What is to be computed in pieces is, and what asks for elements is refused without a trace."""
    assert pieces.run(lambda a: a, lambda given: [given[0] * 2 + 1], [np.ones(large.LARGE)], None, [np.empty(large.LARGE)])
    for refused in (lambda given: [given[0] * given[0].sum()], lambda given: [given[0][::-1]], lambda given: [np.sort(given[0])],
                    lambda given: [given[0] if given[0] > 0 else -given[0]]):
        out = np.zeros(large.LARGE)
        assert not pieces.run(refused, refused, [np.ones(large.LARGE)], None, [out]) and not out.any()


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_quotients_of_integers(dtype: str) -> None:
    kind, random = np.dtype(dtype), np.random.default_rng(0)
    limits = np.iinfo(kind)
    for most in (100, limits.max):
        a = random.integers(max(-most, limits.min), most, (N, N), kind, endpoint=True)
        b = random.integers(1, most, (N, N), kind, endpoint=True) * random.choice([1, -1] if kind.kind == "i" else [1], (N, N)).astype(kind)
        a[0, :4] = limits.min, limits.max, 0, limits.min
        b[0, :4] = limits.max, limits.max, 1, 1
        x, y = mg.tensor(a), mg.tensor(b)
        for found, expected in ((x // y, np.floor_divide(a, b)), (x % y, np.remainder(a, b)), (mg.fmod(x, y), np.fmod(a, b)),
                                (mg.div(x, y, rounding_mode="trunc"), (a - np.fmod(a, b)) // b)):
            np.testing.assert_array_equal(found.numpy(), expected)
            assert found.numpy().dtype == kind


def test_rests_of_floats() -> None:
    a, b = drawn("float32", 0).clamp(-5, 5).numpy() * 100, np.abs(drawn("float32", 1).numpy()) + 0.1
    a[1], b[1] = 1, 1
    a[2, :4], b[2, :4] = (-0.0, 0.0, -3.0, 3.0), 3
    for divisor in (b, -b, np.float32(1.7)):
        for ours, numpys in ((mg.fmod, np.fmod), (mg.remainder, np.remainder)):
            found, expected = ours(mg.tensor(a), mg.tensor(divisor)).numpy(), numpys(a, divisor)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_softmax_of_numbers_near_and_far() -> None:
    for scale in (1, 100):
        x = drawn("float32", 0).nan_to_num(0.0, 50.0, -50.0).clamp(-50, 50) * scale
        close(mg.softmax(x, 1)[SOME], by_rows(lambda row: mg.softmax(row, 0), x), False)
        close(mg.softmax(x.T, 1)[SOME], by_rows(lambda row: mg.softmax(row, 0), x.T), False)
        close(mg.softmax(x.abs(), 1)[SOME], by_rows(lambda row: mg.softmax(row, 0), x.abs()), False)
    x[3] = -float("inf")
    assert mg.softmax(x, 1)[3].isnan().all() and not mg.softmax(x, 1)[4].isnan().any()


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


@pytest.mark.parametrize("name", ["fmax", "fmin", "copysign", "hypot", "maximum", "add"])
def test_many_halves_and_one_number(name: str) -> None:
    function, halves = getattr(mg, name), drawn("float16", 0)
    for number in (mg.tensor(2.0).half(), mg.tensor(-0.5).half()):
        close(function(halves, number), mg.stack([function(row, number) for row in halves]))
        close(function(number, halves), mg.stack([function(number, row) for row in halves]))
