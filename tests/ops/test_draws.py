"""Random numbers: that they have the distribution they are named after, that seeds repeat them, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from tools import leaf, same

N = 200_000


def seeded() -> mg.Generator:
    return mg.Generator().manual_seed(3)


def distance(drawn: Any, below: Callable[[Any], Any]) -> float:
    """The largest gap between the share of values below x and the probability of that (Kolmogorov's statistic)."""
    values = np.sort(drawn.double().numpy().ravel())
    expected = below(values)
    steps = np.arange(len(values) + 1) / len(values)
    return float(max(np.abs(expected - steps[1:]).max(), np.abs(expected - steps[:-1]).max()))


def normal_below(x: Any) -> Any:
    return 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


# ------------------------------------------------------------------------------------------------------------ distributions

CONTINUOUS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "rand": (lambda g: mg.rand(N, generator=g), lambda x: x),
    "randn": (lambda g: mg.randn(N, generator=g), normal_below),
    "rand_like": (lambda g: mg.rand_like(mg.empty(N, dtype=mg.float64), generator=g), lambda x: x),
    "randn_like": (lambda g: mg.randn_like(mg.empty(N), generator=g), normal_below),
    "uniform_": (lambda g: mg.empty(N).uniform_(-1, 3, generator=g), lambda x: (x + 1) / 4),
    "normal_": (lambda g: mg.empty(N).normal_(5, 2, generator=g), lambda x: normal_below((x - 5) / 2)),
    "normal of tensors": (lambda g: mg.normal(mg.full((N,), 5.0), mg.full((N,), 2.0), generator=g), lambda x: normal_below((x - 5) / 2)),
    "normal, number std": (lambda g: mg.normal(mg.full((N,), 5.0), 2.0, generator=g), lambda x: normal_below((x - 5) / 2)),
    "normal, number mean": (lambda g: mg.normal(5.0, mg.full((N,), 2.0), generator=g), lambda x: normal_below((x - 5) / 2)),
    "normal of numbers": (lambda g: mg.normal(5.0, 2.0, (N // 2, 2), generator=g), lambda x: normal_below((x - 5) / 2)),
    "exponential_": (lambda g: mg.empty(N).exponential_(0.5, generator=g), lambda x: 1 - np.exp(-0.5 * x)),
    "cauchy_": (lambda g: mg.empty(N).cauchy_(1, 2, generator=g), lambda x: 0.5 + np.arctan((x - 1) / 2) / math.pi),
    "log_normal_": (lambda g: mg.empty(N).log_normal_(0.5, 0.25, generator=g), lambda x: normal_below((np.log(x) - 0.5) / 0.25)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name: str) -> None:
    draw, below = CONTINUOUS[name]
    drawn = draw(seeded())
    assert drawn.numel() == N
    assert distance(drawn, below) < 1.95 / math.sqrt(N), "beyond what one draw in a thousand has"
    assert distance(drawn, lambda x: below(x + 0.05)) > 0.004, "the test itself would notice a shift"


# What is drawn, its mean and its variance.
DISCRETE: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "bernoulli": (lambda g: mg.bernoulli(mg.full((N,), 0.3), generator=g), 0.3, 0.21),
    "bernoulli, number": (lambda g: mg.bernoulli(mg.empty(N), 0.3, generator=g), 0.3, 0.21),
    "bernoulli_": (lambda g: mg.empty(N).bernoulli_(0.3, generator=g), 0.3, 0.21),
    "bernoulli_, tensor": (lambda g: mg.empty(N, dtype=mg.int64).bernoulli_(mg.tensor(0.3), generator=g), 0.3, 0.21),
    "poisson": (lambda g: mg.poisson(mg.full((N,), 4.0), generator=g), 4, 4),
    "binomial": (lambda g: mg.binomial(mg.full((N,), 10.0), mg.tensor(0.3), generator=g), 3, 2.1),
    "geometric_": (lambda g: mg.empty(N).geometric_(0.4, generator=g), 2.5, 0.6 / 0.16),
    "random_": (lambda g: mg.empty(N, dtype=mg.uint8).random_(generator=g), 127.5, (256**2 - 1) / 12),
    "random_, to": (lambda g: mg.empty(N).random_(10, generator=g), 4.5, 99 / 12),
    "random_, from and to": (lambda g: mg.empty(N, dtype=mg.int32).random_(-3, 7, generator=g), 1.5, 99 / 12),
    "randint": (lambda g: mg.randint(-3, 7, (N,), generator=g), 1.5, 99 / 12),
    "randint_like": (lambda g: mg.randint_like(mg.empty(N), -3, 7, generator=g), 1.5, 99 / 12),
    "randperm": (lambda g: mg.randperm(N, generator=g), (N - 1) / 2, (N**2 - 1) / 12),
    "multinomial": (lambda g: mg.multinomial(mg.tensor([0.0, 2.0, 0.0, 2.0]), N, replacement=True, generator=g), 2, 1),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_mean_and_variance(name: str) -> None:
    draw, mean, variance = DISCRETE[name]
    drawn = draw(seeded()).double()
    assert drawn.numel() == N
    assert abs(drawn.mean().item() - mean) < 4 * math.sqrt(variance / N)
    assert abs(drawn.var().item() / variance - 1) < 0.03
    assert mg.equal(drawn, drawn.round())


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_a_seed_repeats_the_numbers(name: str) -> None:
    draw = {**CONTINUOUS, **DISCRETE}[name][0]
    assert mg.equal(draw(seeded()), draw(seeded()))
    mg.manual_seed(5)
    first = draw(None)
    second = draw(None)
    mg.manual_seed(5)
    assert mg.equal(first, draw(None))
    assert not mg.equal(first, second)
    untouched = mg.random.get_rng_state()
    draw(seeded())
    assert mg.equal(untouched, mg.random.get_rng_state())


def test_multinomial_draws_in_proportion() -> None:
    rows = mg.tensor([[1.0, 2.0, 5.0], [4.0, 0.0, 4.0]])
    drawn = mg.multinomial(rows, N, replacement=True, generator=seeded())
    shares = [np.bincount(row, minlength=3) / N for row in drawn.numpy()]
    np.testing.assert_allclose(shares, [[1 / 8, 2 / 8, 5 / 8], [0.5, 0, 0.5]], atol=0.005)


def test_multinomial_without_replacement_draws_each_once() -> None:
    weights = mg.tensor([1.0, 2.0, 5.0]).expand(N // 4, 3)
    drawn = mg.multinomial(weights, 3, generator=seeded()).numpy()
    assert (np.sort(drawn, 1) == [0, 1, 2]).all()
    first, second = (np.bincount(drawn[:, k], minlength=3) / len(drawn) for k in (0, 1))
    np.testing.assert_allclose(first, [1 / 8, 2 / 8, 5 / 8], atol=0.01)
    np.testing.assert_allclose(second[0], 2 / 8 * 1 / 6 + 5 / 8 * 1 / 3, atol=0.01)


def test_shapes_and_types() -> None:
    assert mg.multinomial(mg.ones(2, 3), 2).shape == (2, 2)
    assert mg.multinomial(mg.ones(3), 2).dtype is mg.int64
    assert mg.multinomial(mg.ones(0, 3), 2).shape == (0, 2)
    assert mg.normal(mg.zeros(3, dtype=mg.float64), mg.ones(2, 1)).dtype is mg.float64
    assert mg.normal(mg.zeros(3), mg.ones(2, 1)).shape == (2, 3)
    assert mg.normal(0, 1, (2,), dtype=mg.complex64).dtype is mg.complex64
    assert mg.bernoulli(mg.tensor(0.5)).shape == ()
    out = mg.empty(3)
    assert mg.bernoulli(mg.ones(3), out=out) is out
    same(out, [1, 1, 1])
    same(mg.normal(mg.tensor([1.0, 2.0]), 0.0), [1, 2])


def test_short_types_stay_in_range() -> None:
    halves = mg.rand(N, dtype=mg.float16, generator=seeded())
    assert halves.max().item() < 1 and halves.min().item() >= 0
    assert mg.empty(N, dtype=mg.float16).exponential_(1e4, generator=seeded()).min().item() > 0


def test_complex_normal_has_variance_one() -> None:
    drawn = mg.empty(N, dtype=mg.complex64).normal_(generator=seeded()).numpy()
    assert abs((np.abs(drawn) ** 2).mean() - 1) < 0.02
    assert abs(drawn.real.var() - 0.5) < 0.02


# --------------------------------------------------------------------------------------------------------------- derivatives

@pytest.mark.parametrize("draw", [mg.bernoulli, mg.poisson, lambda p: mg.normal(p, 1.0), lambda p: mg.normal(0.0, p), lambda p: mg.normal(p, p)])
def test_what_is_drawn_has_derivative_zero(draw: Any) -> None:
    p = leaf(0.1, 0.5, 0.9)
    drawn = draw(p)
    assert drawn.requires_grad
    (drawn * drawn).sum().backward()
    same(p.grad, [0, 0, 0])


def test_binomial_has_no_derivative() -> None:
    p = leaf(0.1, 0.5)
    with pytest.raises(RuntimeError, match="no derivative"):
        mg.binomial(mg.full((2,), 3.0), p).sum().backward()


WRITES: dict[str, Callable[[Any], Any]] = {
    "uniform_": lambda x: x.uniform_(), "normal_": lambda x: x.normal_(), "bernoulli_": lambda x: x.bernoulli_(), "cauchy_": lambda x: x.cauchy_(),
    "exponential_": lambda x: x.exponential_(), "geometric_": lambda x: x.geometric_(0.5), "log_normal_": lambda x: x.log_normal_(),
    "random_": lambda x: x.random_(10),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_a_constant(name: str) -> None:
    """What is overwritten has no influence any more; what was read before keeps its own."""
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 2
    before = y * y
    assert WRITES[name](y[:2]).shape == (2,)
    (before.sum() + (y * 10).sum()).backward()
    same(x.grad, [8, 16, 24 + 20, 32 + 20])


@pytest.mark.parametrize("name", WRITES)
def test_a_write_reaches_the_memory_and_counts(name: str) -> None:
    x = mg.full((2, 50), -7.0)
    version = x._version
    assert WRITES[name](x[:, ::2]) is not None
    assert x._version > version
    assert (x[:, 1::2] == -7).all() and (x[:, ::2] != -7).all()


# ------------------------------------------------------------------------------------------------------------------ refusals

NEGATIVE, WHOLE = mg.tensor([0.5, -0.5]), mg.tensor([1, 0])
REFUSED: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: mg.bernoulli(mg.tensor([0.5, 1.5])), RuntimeError), (lambda: mg.bernoulli(NEGATIVE), RuntimeError),
    (lambda: mg.bernoulli(mg.tensor([float("nan")])), RuntimeError), (lambda: mg.bernoulli(WHOLE), NotImplementedError),
    (lambda: mg.ones(2).bernoulli_(1.5), RuntimeError), (lambda: mg.ones(2).bernoulli_(mg.rand(2, 2)), RuntimeError),
    (lambda: mg.bernoulli([0.5]), TypeError), (lambda: mg.bernoulli(mg.ones(2), mg.ones(2)), TypeError),
    (lambda: mg.poisson(NEGATIVE), RuntimeError), (lambda: mg.poisson(WHOLE), NotImplementedError),
    (lambda: mg.binomial(WHOLE, NEGATIVE), ValueError), (lambda: mg.binomial(NEGATIVE.double(), NEGATIVE), RuntimeError),
    (lambda: mg.normal(0.0, -1.0, (2,)), RuntimeError), (lambda: mg.normal(NEGATIVE, NEGATIVE), RuntimeError),
    (lambda: mg.normal(NEGATIVE, -1.0), RuntimeError), (lambda: mg.normal(0.0, 1.0), TypeError),
    (lambda: mg.normal(WHOLE, 1.0), NotImplementedError), (lambda: mg.normal(mg.ones(3), mg.ones(4)), RuntimeError),
    (lambda: mg.normal(NEGATIVE, 1.0, (2,)), TypeError), (lambda: mg.ones(2).normal_(0, -1), RuntimeError),
    (lambda: mg.tensor([1]).normal_(), NotImplementedError), (lambda: mg.tensor([1]).uniform_(), NotImplementedError),
    (lambda: mg.ones(2).uniform_(2, 1), RuntimeError), (lambda: mg.ones(2).half().uniform_(0, 1e6), RuntimeError),
    (lambda: mg.ones(2).uniform_(0, 1, 2), TypeError), (lambda: mg.ones(2).exponential_(0), RuntimeError),
    (lambda: mg.tensor([1]).exponential_(), RuntimeError), (lambda: mg.ones(2).cauchy_(0, 0), RuntimeError),
    (lambda: mg.ones(2).log_normal_(0, 0), RuntimeError), (lambda: mg.ones(2).geometric_(0), RuntimeError),
    (lambda: mg.ones(2).geometric_(1), RuntimeError), (lambda: mg.tensor([True]).geometric_(0.5), NotImplementedError),
    (lambda: mg.ones(2).random_(5, 5), RuntimeError), (lambda: mg.ones(2, dtype=mg.uint8).random_(300), RuntimeError),
    (lambda: mg.ones(2, dtype=mg.uint8).random_(-3, 3), RuntimeError), (lambda: mg.ones(2).random_(1, 2, 3), TypeError),
    (lambda: mg.ones(2, dtype=mg.complex64).random_(), NotImplementedError), (lambda: mg.ones(2).expand(3, 2).random_(5), RuntimeError),
    (lambda: mg.multinomial(mg.ones(3), 4), RuntimeError), (lambda: mg.multinomial(mg.ones(3), 0), RuntimeError),
    (lambda: mg.multinomial(mg.zeros(3), 1), RuntimeError), (lambda: mg.multinomial(NEGATIVE, 1), RuntimeError),
    (lambda: mg.multinomial(mg.tensor([1.0, math.inf]), 1), RuntimeError), (lambda: mg.multinomial(WHOLE, 1), RuntimeError),
    (lambda: mg.multinomial(mg.ones(2, 2, 2), 1), RuntimeError), (lambda: mg.multinomial(mg.tensor([[1.0, 0.0], [0.0, 0.0]]), 1), RuntimeError),
    (lambda: mg.multinomial(mg.ones(3), 1, out=mg.empty(1)), RuntimeError), (lambda: mg.rand(2, generator=3), TypeError),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number: int) -> None:
    call, error = REFUSED[number]
    with pytest.raises(error) as found:
        call()
    assert isinstance(found.value, mg.MutagradError) and found.value.fix


# ---------------------------------------------------------------------------------------------------------------- generators

def test_fork_rng_leaves_no_trace() -> None:
    mg.manual_seed(1)
    with mg.random.fork_rng():
        inside = mg.rand(3)
    assert mg.equal(inside, mg.rand(3))
    with pytest.raises(KeyError), mg.random.fork_rng(enabled=True):
        mg.manual_seed(2)
        raise KeyError
    assert mg.random.initial_seed() == 1


def test_states_are_kept_and_restored() -> None:
    generator = seeded()
    mg.rand(3, generator=generator)
    state, twin = generator.get_state(), generator.clone_state()
    expected = mg.randint(0, 100, (7,), generator=generator)
    assert mg.equal(expected, mg.randint(0, 100, (7,), generator=twin))
    assert mg.equal(expected, mg.randint(0, 100, (7,), generator=mg.Generator().set_state(state)))
    assert generator.initial_seed() == 3 and str(generator.device) == "cpu"
    mg.random.set_rng_state(state)
    assert mg.equal(expected, mg.randint(0, 100, (7,)))
    for wrong, error in ((mg.zeros(80), TypeError), ("state", TypeError), (mg.zeros(3, dtype=mg.uint8), ValueError)):
        with pytest.raises(error):
            generator.set_state(wrong)


def test_seed_is_another_each_time() -> None:
    assert mg.seed() != mg.seed()
    assert mg.initial_seed() == mg.random.initial_seed()
    with pytest.raises(RuntimeError):
        mg.Generator("cuda")


@pytest.mark.parametrize("draw", [lambda n: mg.randn(n), lambda n: mg.randn(n, dtype=mg.float64), lambda n: mg.empty(n).exponential_(),
                                  lambda n: mg.normal(mg.zeros(n), 2.0), lambda n: mg.empty(n).normal_(1, 2), lambda n: mg.randn(n, dtype=mg.complex64)])
def test_many_numbers_do_not_depend_on_threads(draw: Any) -> None:
    """Threads share what is made of the words, not the words, and none is drawn twice."""
    before, found = mg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            mg.set_num_threads(threads)
            mg.manual_seed(5)
            found.append((draw(300_001).numpy(), draw(7).numpy(), draw(200_000).numpy()))
    finally:
        mg.set_num_threads(before)
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
    many, _, again = found[0]
    blocks = np.concatenate([many[:4 * 65536].reshape(4, -1), again[:3 * 65536].reshape(3, -1)])
    assert len(np.unique(blocks[:, :50], axis=0)) == 7
    assert np.abs(np.corrcoef(blocks) - np.eye(7)).max() < 0.03


def test_the_state_says_which_numbers_come() -> None:
    mg.randn(300_000)
    state = mg.get_rng_state()
    first = mg.randn(300_000), mg.rand(3)
    mg.set_rng_state(state)
    assert all(mg.equal(a, b) for a, b in zip(first, (mg.randn(300_000), mg.rand(3))))
