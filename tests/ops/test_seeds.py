"""A seed gives PyTorch's numbers: what PyTorch 2.13 drew with the seed 3. tests/oracle/test_seeds.py asks it about everything."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.arrays.compiled.compiler import choice
from mutagrad.ops.random import permutation, twister

NUMBERS: dict[str, tuple[Callable[[], Any], list[float]]] = {
    "rand": (lambda: mg.rand(4), [0.0042635202, 0.10556936, 0.28584248, 0.02695483]),
    "rand, double": (lambda: mg.rand(3, dtype=mg.float64), [0.03410819565052048, 0.28674022672130695, 0.7729149443285843]),
    "rand, half": (lambda: mg.rand(4, dtype=mg.float16), [0.00426483154296875, 0.1055908203125, 0.285888671875, 0.0269622802734375]),
    "randn": (lambda: mg.randn(5), [0.80327606, 0.17483339, 0.0889781, -0.61371803, 0.04618245]),
    "randn, 16": (lambda: mg.randn(16)[:4], [-0.076644294, 0.35988152, -0.7820168, 0.071527734]),
    "randn, 19": (lambda: mg.randn(19)[-4:], [-0.14680818, 0.485114, 0.20523438, 0.3384282]),
    "randn, double": (lambda: mg.randn(17, dtype=mg.float64)[-3:], [-0.269718737037564, 0.20366863384122577, 0.028752867895017985]),
    "randn, half": (lambda: mg.randn(19, dtype=mg.float16)[-4:], [0.998046875, 0.459228515625, 2.435546875, -0.1468505859375]),
    "randn, complex": (lambda: mg.view_as_real(mg.randn(2, dtype=mg.complex64)), [0.568002, 0.123625875, 0.06291702, -0.43396416]),
    "uniform_": (lambda: mg.empty(3).uniform_(-0.3, 0.7), [-0.2957365, -0.19443065, -0.014157534]),
    "normal_": (lambda: mg.empty(20).normal_(0.3, 0.7)[:3], [0.246349, 0.5519171, -0.24741174]),
    "normal_, strided": (lambda: mg.empty(20, 2)[:, 0].normal_()[:3], [0.80327606, 0.17483339, 0.0889781]),
    "uniform_, transposed": (lambda: mg.empty(2, 3).t().uniform_()[0], [0.0042635202, 0.02695483]),
    "randint": (lambda: mg.randint(0, 1000, (4,)), [986, 48, 737, 667]),
    "randint, wide": (lambda: mg.randint(0, 2**40, (3,)), [455570294424, 1073054410371, 790795084744]),
    "randperm": (lambda: mg.randperm(9), [4, 1, 5, 6, 0, 2, 3, 8, 7]),
    "randperm, many": (lambda: mg.randperm(2000)[:5], [986, 1005, 255, 1128, 224]),
    "random_": (lambda: mg.empty(3, dtype=mg.int32).random_(), [218175338, 303761048, 893988089]),
    "bernoulli": (lambda: mg.bernoulli(mg.full((8,), 0.5)), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]),
    "bernoulli_": (lambda: mg.empty(8).bernoulli_(0.3), [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]),
    "dropout": (lambda: mg.nn.functional.dropout(mg.ones(8), 0.25), [1.3333334, 1.3333334, 0.0, 1.3333334, 0.0, 1.3333334, 1.3333334, 1.3333334]),
    "exponential_": (lambda: mg.empty(3).exponential_(), [0.034703456, 0.33790958, 1.4824307]),
    "cauchy_": (lambda: mg.empty(3).cauchy_(), [-9.296613, -0.79221404, 1.1554374]),
    "log_normal_": (lambda: mg.empty(3).log_normal_(), [13.552244, 3.8561404, 3.2477298]),
    "geometric_": (lambda: mg.empty(5).geometric_(0.3), [10.0, 4.0, 1.0, 5.0, 1.0]),
    "multinomial": (lambda: mg.multinomial(mg.tensor([1.0, 2.0, 3.0]), 8, replacement=True), [0, 1, 2, 1, 2, 2, 1, 1]),
    "multinomial, each once": (lambda: mg.multinomial(mg.tensor([1.0, 2.0, 3.0, 4.0]), 4), [0, 3, 1, 2]),
    "poisson": (lambda: mg.poisson(mg.tensor([0.5, 4.0, 40.0, 3.0])), [0.0, 4.0, 34.0, 3.0]),
    "binomial": (lambda: mg.binomial(mg.tensor([5.0, 100.0, 100.0]), mg.tensor([0.5, 0.3, 0.9])), [1.0, 34.0, 93.0]),
    "gamma": (lambda: mg.distributions.Gamma(mg.tensor([0.5, 3.0]), 1.0).sample(), [0.7377499, 6.4472575]),
    "trunc_normal_": (lambda: mg.nn.init.trunc_normal_(mg.empty(3)), [0.80327606, 0.17483339, 0.0889781]),
    "Linear": (lambda: mg.nn.Linear(3, 1).weight.detach(), [-0.57242715, -0.45544925, -0.2472878]),
    "LSTM": (lambda: mg.nn.LSTM(2, 1).bias_hh_l0.detach(), [-0.6487895, 0.89836574, 0.6946373, 0.74971247]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    draw, expected = NUMBERS[name]
    mg.manual_seed(3)
    drawn = draw()
    exact = drawn.dtype is not mg.float64  # doubles depend on the C library's last bit
    np.testing.assert_allclose(drawn.flatten().numpy(), np.array(expected, drawn.numpy().dtype), rtol=0 if exact else 1e-15)


def test_normal_numbers_of_other_kernels() -> None:
    """NumPy's steps and the compiled loop give the same bits, and so does a tensor that is drawn in parts."""
    before, found = choice.name, []
    for kernels in ("numpy", "numba"):
        try:
            mg.set_kernels(kernels)
            mg.manual_seed(3)
            found.append([mg.randn(100_003).numpy(), mg.empty(5000).normal_(0.3, 0.7).numpy()])
        finally:
            mg.set_kernels(before)
    assert all(np.array_equal(a, b) for a, b in zip(*found))


def test_a_state_is_laid_out_as_pytorchs() -> None:
    mg.manual_seed(3)
    fresh = mg.get_rng_state()
    mg.randn(3)
    state = mg.get_rng_state()
    assert state.shape == (5056,) and state[:16].tolist() == [3, 0, 0, 0, 0, 0, 0, 0, 105, 2, 0, 0, 1, 0, 0, 0]
    assert fresh[8:24].tolist() == [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert np.frombuffer(state.numpy().tobytes(), "<f8", 1, 5024)[0] == pytest.approx(-0.6137180077293578, rel=1e-14)
    following = mg.randn(20), mg.randn(1), mg.rand(700)
    for given in (state, state[:5048]):  # older versions had no number of float32
        mg.set_rng_state(given)
        assert all(mg.equal(a, b) for a, b in zip(following, (mg.randn(20), mg.randn(1), mg.rand(700))))
    for wrong in (mg.zeros(5056, dtype=mg.uint8), mg.full((5056,), 255, dtype=mg.uint8), mg.zeros(816, dtype=mg.uint8)):
        with pytest.raises(ValueError, match="state"):
            mg.set_rng_state(wrong)


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625, 1300])
def test_states_between_rounds(draws: int) -> None:
    mine = twister.Twister(7)
    mine.words(draws)
    other = twister.Twister(0)
    other.from_bytes(mine.to_bytes())
    assert other.to_bytes() == mine.to_bytes() and other.first == 7
    assert np.array_equal(other.words(1000), mine.words(1000))


def test_copies_go_on_by_themselves() -> None:
    generator = mg.Generator().manual_seed(3)
    mg.randn(3, generator=generator)
    twins = [generator.clone_state(), copy.deepcopy(generator), pickle.loads(pickle.dumps(generator))]
    expected = mg.randn(3, generator=generator)
    for twin in twins:
        assert twin.initial_seed() == 3
        assert mg.equal(mg.randn(3, generator=twin), expected)
    assert mg.equal(mg.rand(2, generator=copy.deepcopy(mg.Generator())), mg.rand(2, generator=mg.Generator()))


@pytest.mark.parametrize("count", [1, 2, 3, 50, 700])
def test_exchanges_all_at_once(count: int) -> None:
    """As the loop does them, few ways to go and many."""
    draw = np.random.default_rng(count)
    for most in (1, 2, count):
        steps = np.array([draw.integers(0, min(most, count - 1 - i) + 1) for i in range(count - 1)], np.int64)
        assert np.array_equal(permutation._together(steps), permutation._in_turn(steps.tolist()))


def test_draws_of_two_threads_do_not_mix() -> None:
    """Each call takes its words from one place of the stream: what two threads get are the same two pieces, in some order."""
    generator = mg.Generator().manual_seed(3)
    expected = [mg.empty(50_000, 2)[:, 0].normal_(generator=generator).numpy() for _ in range(6)]
    generator.manual_seed(3)
    found: list[Any] = []

    def work() -> None:
        for _ in range(3):
            found.append(mg.empty(50_000, 2)[:, 0].normal_(generator=generator).numpy())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.tobytes() for a in found) == sorted(a.tobytes() for a in expected)


def test_elements_are_drawn_as_they_lie_in_memory() -> None:
    mg.manual_seed(3)
    plain = mg.empty(4, 3, 2).uniform_()
    mg.manual_seed(3)
    moved = mg.empty(4, 3, 2).permute(2, 0, 1).uniform_()
    assert mg.equal(moved, plain.permute(2, 0, 1))
    mg.manual_seed(3)
    assert mg.equal(mg.rand_like(moved), plain.permute(2, 0, 1))
    mg.manual_seed(3)
    mg.rand(3, 0)
    assert mg.equal(mg.rand_like(mg.empty(5, 7)[:, 2]), plain.flatten()[:5])


def test_a_generator_for_each_draw_is_made_of_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(twister, "_made", lambda make=twister._made: made.append(make()) or made[-1])
    expected = [mg.randn(3, generator=mg.Generator().manual_seed(seed)).tolist() for seed in range(3)]
    assert expected[1] == mg.randn(3, generator=mg.Generator().manual_seed(1)).tolist() and len(made) <= 1
    at_once = [mg.Generator().manual_seed(seed) for seed in range(3)]
    assert [mg.randn(3, generator=g).tolist() for g in at_once] == expected  # an odd number: one is left over in each
    assert len({id(g._source.bits) for g in at_once}) == 3
    del at_once
    assert mg.randn(3, generator=mg.Generator().manual_seed(2)).tolist() == expected[2]
