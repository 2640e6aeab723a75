"""A seed gives PyTorch's own numbers: every function that draws, bit for bit, and what programs make of them.

Where the C library's functions differ from machine to machine, both use the same. PyTorch draws `bernoulli_(p)`, and with it
dropout, and `exponential_` by MKL on Intel's processors: what is compared with that is skipped there.
"""
from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

SIZES = (1, 15, 16, 17, 31, 1000, 100003)
FEWER = (1, 15, 16, 17, 31, 1000)
SEEDS = (0, 1, 2**32 + 7, -3)
SHORT, FLOATS = ("float16", "bfloat16"), ("float32", "float64")
Draw = Callable[[Any, int], Any]


def array(value: Any) -> Any:
    """The elements of a tensor of either library, as NumPy has them."""
    value = value.detach()
    return (value.float() if "bfloat16" in str(value.dtype) else value).cpu().numpy()


def drawn_by_mkl() -> bool:
    """Whether this processor makes PyTorch draw dropout by another generator: one word is taken, not two for each."""
    torch.manual_seed(0)
    torch.empty(8).bernoulli_(0.5)
    after = torch.rand(1)
    torch.manual_seed(0)
    torch.rand(8, dtype=torch.float64)
    return not torch.equal(after, torch.rand(1))


BY_MKL = drawn_by_mkl()
MKL = pytest.mark.skipif(BY_MKL, reason="MKL draws these on Intel's processors")


def same(draw: Draw, sizes: tuple[int, ...] = FEWER, seeds: tuple[int, ...] = SEEDS) -> None:
    """The same bits, and the same state afterwards."""
    for size in sizes:
        for seed in seeds if size < 10000 else seeds[:2]:
            torch.manual_seed(seed)
            mg.manual_seed(seed)
            theirs, mine = array(draw(torch, size)), array(draw(mg, size))
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype
            np.testing.assert_array_equal(mine, theirs, err_msg=f"{size} numbers, seed {seed}")
            same_state()


def same_state() -> None:
    assert mg.get_rng_state().numpy().tobytes() == torch.get_rng_state().numpy().tobytes()


def of(lib: Any, name: str) -> Any:
    return getattr(lib, name)


def spread(lib: Any, low: float, high: float, size: int, dtype: str) -> Any:
    return lib.tensor(np.linspace(low, high, size)).to(of(lib, dtype))


# --------------------------------------------------------------------------------------------------- numbers, by the type

@pytest.mark.parametrize("dtype", [*SHORT, *FLOATS, "complex64", "complex128"])
@pytest.mark.parametrize("draw", [
    lambda lib, n, t: lib.rand(n, dtype=t), lambda lib, n, t: lib.randn(n, dtype=t),
    lambda lib, n, t: lib.empty(n, dtype=t).uniform_(-0.3, 0.7), lambda lib, n, t: lib.empty(n, dtype=t).uniform_(1, 1.001),
    lambda lib, n, t: lib.empty(n, dtype=t).normal_(0.3, 0.7), lambda lib, n, t: lib.empty(n, 2, dtype=t)[:, 0].normal_(0.3, 0.7),
    lambda lib, n, t: lib.empty(n, 2, dtype=t)[:, 1].uniform_(), lambda lib, n, t: lib.empty(n, 3, 2, dtype=t).permute(2, 0, 1).uniform_(),
    lambda lib, n, t: lib.empty(n, 3, 2, dtype=t).permute(1, 2, 0).normal_(), lambda lib, n, t: lib.rand_like(lib.empty(n, 3, dtype=t).t()),
    lambda lib, n, t: lib.randn_like(lib.empty(n, 3, dtype=t).t()), lambda lib, n, t: lib.randn_like(lib.empty(n, 3, dtype=t)[:, 1]),
    lambda lib, n, t: lib.normal(0.5, 2.0, (n, 1), dtype=t),
], ids=["rand", "randn", "uniform", "uniform-narrow", "normal", "normal-strided", "uniform-strided", "uniform-permuted", "normal-permuted",
        "rand_like", "randn_like", "randn_like-strided", "normal-of-numbers"])
def test_uniform_and_normal(draw: Any, dtype: str) -> None:
    same(lambda lib, n: draw(lib, n, of(lib, dtype)), SIZES if dtype == "float32" else FEWER)


@pytest.mark.parametrize("dtype", [*SHORT, *FLOATS])
@pytest.mark.parametrize("draw", [
    lambda lib, n, t: lib.empty(n, dtype=t).cauchy_(), lambda lib, n, t: lib.empty(n, dtype=t).cauchy_(3.0, 0.7),
    lambda lib, n, t: lib.empty(n, dtype=t).log_normal_(), lambda lib, n, t: lib.empty(3, n, dtype=t).t().log_normal_(0.3, 0.7),
    lambda lib, n, t: lib.empty(n, dtype=t).geometric_(0.3), lambda lib, n, t: lib.empty(n, dtype=t).random_(),
    lambda lib, n, t: lib.empty(n, dtype=t).random_(-5, 100), lambda lib, n, t: lib.empty(n, dtype=t).random_(7, None),
    pytest.param(lambda lib, n, t: lib.empty(n, dtype=t).exponential_(), marks=MKL),
    pytest.param(lambda lib, n, t: lib.empty(n, dtype=t).exponential_(3.0), marks=MKL),
    pytest.param(lambda lib, n, t: lib.empty(n, dtype=t).bernoulli_(0.3), marks=MKL),
], ids=["cauchy", "cauchy-moved", "log_normal", "log_normal-permuted", "geometric", "random", "random-to", "random-from", "exponential",
        "exponential-3", "bernoulli-number"])
def test_in_place(draw: Any, dtype: str) -> None:
    same(lambda lib, n: draw(lib, n, of(lib, dtype)), SIZES if dtype == "float32" else FEWER)


@pytest.mark.parametrize("dtype", [*SHORT, *FLOATS])
@pytest.mark.parametrize("draw", [
    lambda lib, n, t: lib.bernoulli(spread(lib, 0, 1, n, t)), lambda lib, n, t: lib.empty(n, dtype=lib.int32).bernoulli_(spread(lib, 0, 1, n, t)),
    lambda lib, n, t: lib.empty(n, 3, 4).permute(1, 2, 0).bernoulli_(spread(lib, 0, 1, n, t)),
    lambda lib, n, t: lib.normal(spread(lib, 0, 1, n, t), spread(lib, 1, 2, n, t)), lambda lib, n, t: lib.normal(spread(lib, 0, 1, n, t), 0.7),
    lambda lib, n, t: lib.normal(0.3, spread(lib, 1, 2, n, t)),
    lambda lib, n, t: lib.multinomial(spread(lib, 0, 9, 50, t), n + 1, replacement=True),
    pytest.param(lambda lib, n, t: lib.multinomial(spread(lib, 0, 9, 50, t).repeat(n, 1), 1), marks=MKL),
], ids=["bernoulli", "bernoulli_", "bernoulli_-permuted", "normal", "normal-std", "normal-mean", "multinomial", "multinomial-one"])
def test_out_of_tensors(draw: Any, dtype: str) -> None:
    same(lambda lib, n: draw(lib, n, dtype), FEWER)


@MKL
@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial_without_replacement(dtype: str) -> None:
    """Of shorter types many times are equal, among which PyTorch's sorting chooses."""
    same(lambda lib, n: lib.multinomial(spread(lib, 1, 9, n, dtype), n))
    same(lambda lib, n: lib.multinomial(lib.ones(4, n, dtype=of(lib, dtype)), (n + 1) // 2))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("draw", [
    lambda lib, n, t: lib.poisson(spread(lib, 0, 40, n, t)), lambda lib, n, t: lib.distributions.Gamma(spread(lib, 0.01, 12, n, t), 1.0).sample(),
    lambda lib, n, t: lib.binomial(spread(lib, 0, 200, n, t).floor(), spread(lib, 0, 1, n, t)),
    lambda lib, n, t: lib.distributions.Dirichlet(spread(lib, 0.1, 5, n + 1, t)).sample(),
], ids=["poisson", "gamma", "binomial", "dirichlet"])
def test_rejection(draw: Any, dtype: str) -> None:
    for size in FEWER:
        for seed in SEEDS:
            torch.manual_seed(seed)
            mg.manual_seed(seed)
            theirs, mine = array(draw(torch, size, dtype)), array(draw(mg, size, dtype))
            np.testing.assert_allclose(mine, theirs, rtol=2e-7 if dtype == "float32" else 1e-14)
            same_state()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "bool"])
def test_whole_numbers(dtype: str) -> None:
    same(lambda lib, n: lib.empty(n, dtype=of(lib, dtype)).random_())
    same(lambda lib, n: lib.empty(n, dtype=of(lib, dtype)).random_(0, 2))
    same(lambda lib, n: lib.empty(n, 2, dtype=of(lib, dtype)).t().random_(0, 2))
    same(lambda lib, n: lib.randint(0, 2, (n,), dtype=of(lib, dtype)))
    if dtype != "bool":
        same(lambda lib, n: lib.empty(n, dtype=of(lib, dtype)).geometric_(0.3))
    if not BY_MKL:
        same(lambda lib, n: lib.empty(n, dtype=of(lib, dtype)).bernoulli_(0.3))


@pytest.mark.parametrize("bounds", [(0, 10), (-5, 2**27), (0, 2**28 - 1), (0, 2**28), (-7, 2**33), (-2**62, 2**62 + 5), (0, 2**63 - 1)])
def test_ranges(bounds: tuple[int, int]) -> None:
    same(lambda lib, n: lib.randint(*bounds, (n,)), SIZES)
    same(lambda lib, n: lib.randint_like(lib.empty(n, 3, dtype=lib.int64).t(), *bounds))


def test_all_64_bits() -> None:
    same(lambda lib, n: lib.empty(n, dtype=lib.int64).random_(-2**63, None))
    same(lambda lib, n: lib.empty(n, dtype=lib.int64).random_(5, None))


@pytest.mark.filterwarnings("ignore:.*out of bounds:UserWarning")
@pytest.mark.parametrize("dtype, end", [("float16", 65504), ("float16", 4099), ("bfloat16", 2**28), ("float32", 2**30 + 1), ("float64", 2**62)])
def test_more_whole_numbers_than_a_float_holds(dtype: str, end: int) -> None:
    same(lambda lib, n: lib.empty(n, dtype=of(lib, dtype)).random_(3, end))


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_permutations(dtype: str) -> None:
    same(lambda lib, n: lib.randperm(n, dtype=of(lib, dtype)), (0, 2, 1499, 1500, 1501, 1502, *SIZES))


def test_calls_that_follow_each_other() -> None:
    """The second number of a pair waits through other draws, of other types, and through a round of the twister."""
    def draw(lib: Any, n: int) -> Any:
        f = lib.float64
        return lib.cat([lib.randn(3), lib.rand(3), lib.randn(n), lib.empty(2).log_normal_(), lib.randn(1, dtype=f).float(), lib.randperm(n).float(),
                        lib.empty(n, 2)[:, 1].normal_(), lib.rand(5, dtype=f).float(), lib.randint(0, 5, (n,)).float(), lib.rand(700), lib.randn(7),
                        lib.randn(1), lib.randn(0), lib.randn(n, dtype=f).float(), lib.bernoulli(lib.full((n,), 0.5)), lib.randn(2, 7).flatten()])

    same(draw, SIZES)


# ------------------------------------------------------------------------------------------------------------- generators

def test_states_go_from_one_library_to_the_other() -> None:
    for draws in ((), (3,), (16, 1), (623,), (624,), (625,), (1000, 5)):
        theirs, mine = torch.Generator().manual_seed(11), mg.Generator().manual_seed(11)
        for n in draws:
            torch.randn(n, generator=theirs), mg.randn(n, generator=mine)
        state = theirs.get_state()
        assert state.numpy().tobytes() == mine.get_state().numpy().tobytes()
        given = mg.Generator().set_state(mg.from_numpy(state.numpy().copy()))
        assert given.initial_seed() == theirs.initial_seed() == 11
        back = torch.Generator()
        back.set_state(torch.from_numpy(given.get_state().numpy().copy()))
        expected = torch.randn(5, generator=theirs).numpy()
        for found in (mg.randn(5, generator=given), torch.randn(5, generator=back), mg.randn(5, generator=mine)):
            np.testing.assert_array_equal(found.numpy(), expected)


def test_generators_by_themselves() -> None:
    assert torch.Generator().initial_seed() == mg.Generator().initial_seed()
    np.testing.assert_array_equal(mg.rand(5, generator=mg.Generator()).numpy(), torch.rand(5, generator=torch.Generator()).numpy())
    for seed in (-1, -2**63, 2**64 - 1, 2**32):
        theirs, mine = torch.Generator().manual_seed(seed), mg.Generator().manual_seed(seed)
        assert theirs.initial_seed() == mine.initial_seed()
        np.testing.assert_array_equal(mg.rand(3, generator=mine).numpy(), torch.rand(3, generator=theirs).numpy())
        for twin in (mine.clone_state(), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
            np.testing.assert_array_equal(mg.randn(3, generator=twin).numpy(), torch.randn(3, generator=theirs.clone_state()).numpy())


def test_fork_rng() -> None:
    def draw(lib: Any, n: int) -> Any:
        before = lib.randn(3)
        with lib.random.fork_rng():
            lib.manual_seed(n)
            inside = lib.rand(n)
        return lib.cat([before, inside, lib.randn(3)])

    same(draw)


# ------------------------------------------------------------------------------------------------------ layers and losses

def functional(lib: Any) -> Any:
    return lib.nn.functional


@MKL
@pytest.mark.parametrize("dtype", [*SHORT, *FLOATS])
@pytest.mark.parametrize("call", [
    lambda f, x: f.dropout(x, 0.3), lambda f, x: f.dropout(x.t(), 0.3), lambda f, x: f.dropout1d(x.unsqueeze(2), 0.3),
    lambda f, x: f.dropout2d(x.reshape(-1, 3, 1, 1).expand(-1, 3, 2, 2), 0.3), lambda f, x: f.dropout3d(x.reshape(-1, 3, 1, 1, 1), 0.3),
], ids=["dropout", "transposed", "1d", "2d", "3d"])
def test_dropout(call: Any, dtype: str) -> None:
    same(lambda lib, n: call(functional(lib), lib.ones(n, 3, dtype=of(lib, dtype))) != 0)


@MKL
def test_what_dropout_gives() -> None:
    same(lambda lib, n: functional(lib).dropout(spread(lib, 0, 1, n, "float32"), 0.3))
    same(lambda lib, n: functional(lib).alpha_dropout(spread(lib, 0, 1, n, "float32"), 0.3, True))
    same(lambda lib, n: functional(lib).feature_alpha_dropout(lib.ones(n, 3, 2), 0.3, True))
    same(lambda lib, n: lib.nn.Dropout(0.9)(lib.ones(n)))
    same(lambda lib, n: lib.nn.AlphaDropout(0.2)(lib.ones(n)))
    same(lambda lib, n: lib.native_dropout(lib.ones(n), 0.2, True)[1])


def test_random_slopes() -> None:
    for dtype in FLOATS:
        same(lambda lib, n: functional(lib).rrelu(spread(lib, -1, 1, n, dtype), training=True))


@MKL
def test_gumbel_softmax() -> None:
    same(lambda lib, n: functional(lib).gumbel_softmax(spread(lib, -1, 1, 5 * n, "float32").reshape(n, 5), hard=True).round())


@pytest.mark.filterwarnings("ignore:.*mean.*:UserWarning")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "sparse_"])
def test_initializers(name: str, dtype: str) -> None:
    settings = {"sparsity": 0.3} if name == "sparse_" else {}
    same(lambda lib, n: of(lib.nn.init, name)(lib.empty(n, 7, dtype=of(lib, dtype)), **settings))
    if name == "trunc_normal_":
        same(lambda lib, n: lib.nn.init.trunc_normal_(lib.empty(n, 7), 0.5, 1.0, 3.0, 4.0))
        same(lambda lib, n: lib.nn.init.trunc_normal_(lib.empty(n, 7), 0.0, 1.0, -1.0, 1.0))


def test_orthogonal() -> None:
    """The numbers are PyTorch's; the factors are another LAPACK's."""
    for shape in ((3, 7), (7, 3), (4, 3, 2)):
        torch.manual_seed(0)
        mg.manual_seed(0)
        np.testing.assert_allclose(mg.nn.init.orthogonal_(mg.empty(shape)).numpy(), torch.nn.init.orthogonal_(torch.empty(shape)).numpy(), atol=1e-6)
        same_state()


LAYERS: dict[str, Callable[[Any], Any]] = {
    "Linear": lambda nn: nn.Linear(7, 5), "Bilinear": lambda nn: nn.Bilinear(3, 4, 5),
    "Conv1d": lambda nn: nn.Conv1d(4, 6, 3, groups=2), "Conv2d": lambda nn: nn.Conv2d(3, 6, 3), "Conv3d": lambda nn: nn.Conv3d(3, 6, 3),
    "ConvTranspose1d": lambda nn: nn.ConvTranspose1d(3, 6, 3), "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(4, 6, 3, groups=2),
    "Embedding": lambda nn: nn.Embedding(10, 4, padding_idx=2), "EmbeddingBag": lambda nn: nn.EmbeddingBag(10, 4),
    "RNN": lambda nn: nn.RNN(3, 4, 2), "LSTM": lambda nn: nn.LSTM(3, 4, 2, bidirectional=True), "LSTM, projected": lambda nn: nn.LSTM(3, 4, proj_size=2),
    "GRU": lambda nn: nn.GRU(3, 4), "RNNCell": lambda nn: nn.RNNCell(3, 4), "LSTMCell": lambda nn: nn.LSTMCell(3, 4), "GRUCell": lambda nn: nn.GRUCell(3, 4),
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(8, 2),
    "MultiheadAttention, other sizes": lambda nn: nn.MultiheadAttention(8, 2, kdim=6, vdim=5, add_bias_kv=True),
    "TransformerEncoderLayer": lambda nn: nn.TransformerEncoderLayer(8, 2, 16), "TransformerDecoderLayer": lambda nn: nn.TransformerDecoderLayer(8, 2, 16),
    "Transformer": lambda nn: nn.Transformer(8, 2, 2, 2, 16), "PReLU": lambda nn: nn.PReLU(4), "LayerNorm": lambda nn: nn.LayerNorm(4),
    "AdaptiveLogSoftmaxWithLoss": lambda nn: nn.AdaptiveLogSoftmaxWithLoss(32, 20, [5, 10]),
    "Sequential": lambda nn: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Conv1d(4, 4, 1), nn.LSTM(3, 3)),
}
NEARLY = {  # what is computed from the numbers, to rounding
    "weight_norm": lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(7, 5)),
    "spectral_norm": lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(7, 5)),
    "orthogonal": lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(7, 5)),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor:UserWarning")
@pytest.mark.parametrize("name", [*LAYERS, *NEARLY])
def test_first_values_of_layers(name: str) -> None:
    for seed in SEEDS:
        torch.manual_seed(seed)
        mg.manual_seed(seed)
        theirs, mine = ({**LAYERS, **NEARLY}[name](lib.nn).state_dict() for lib in (torch, mg))
        assert list(theirs) == list(mine)
        for key, value in theirs.items():
            np.testing.assert_allclose(mine[key].numpy(), value.numpy(), rtol=0, atol=1e-6 if name in NEARLY else 0, err_msg=key)
        same_state()


DISTRIBUTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Normal": lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), "LogNormal": lambda d, t: d.LogNormal(t([0.0, 1.0]), t([1.0, 2.0])),
    "HalfNormal": lambda d, t: d.HalfNormal(t([1.0, 2.0])), "HalfCauchy": lambda d, t: d.HalfCauchy(t([1.0, 2.0])),
    "Cauchy": lambda d, t: d.Cauchy(t([0.0, 1.0]), t([1.0, 2.0])), "Uniform": lambda d, t: d.Uniform(t([0.0, 1.0]), t([1.0, 2.0])),
    "Gamma": lambda d, t: d.Gamma(t([0.3, 5.0]), t([1.0, 2.0])), "Chi2": lambda d, t: d.Chi2(t([0.3, 5.0])),
    "StudentT": lambda d, t: d.StudentT(t([0.3, 5.0])), "FisherSnedecor": lambda d, t: d.FisherSnedecor(t([3.0, 5.0]), t([4.0, 2.0])),
    "Beta": lambda d, t: d.Beta(t([0.3, 5.0]), t([1.0, 2.0])), "Dirichlet": lambda d, t: d.Dirichlet(t([0.3, 5.0, 2.0])),
    "InverseGamma": lambda d, t: d.InverseGamma(t([0.3, 5.0]), t([1.0, 2.0])), "Kumaraswamy": lambda d, t: d.Kumaraswamy(t([0.3, 5.0]), t([1.0, 2.0])),
    "Laplace": lambda d, t: d.Laplace(t([0.3, 5.0]), t([1.0, 2.0])), "Gumbel": lambda d, t: d.Gumbel(t([0.3, 5.0]), t([1.0, 2.0])),
    "Bernoulli": lambda d, t: d.Bernoulli(t([0.3, 0.5])), "ContinuousBernoulli": lambda d, t: d.ContinuousBernoulli(t([0.3, 0.7])),
    "Geometric": lambda d, t: d.Geometric(t([0.3, 0.7])), "Binomial": lambda d, t: d.Binomial(10, t([0.3, 0.7])),
    "NegativeBinomial": lambda d, t: d.NegativeBinomial(10, t([0.3, 0.7])), "Poisson": lambda d, t: d.Poisson(t([0.3, 17.0])),
    "MultivariateNormal": lambda d, t: d.MultivariateNormal(t([0.3, 0.7]), t([[2.0, 0.0], [0.0, 2.0]])),
    "LowRankMultivariateNormal": lambda d, t: d.LowRankMultivariateNormal(t([0.3, 0.7]), t([[1.0], [1.0]]), t([1.0, 1.0])),
    "VonMises": lambda d, t: d.VonMises(t([0.3, 0.7]), t([1.0, 4.0])), "RelaxedBernoulli": lambda d, t: d.RelaxedBernoulli(t(0.5), t([0.3, 0.7])),
    "RelaxedOneHotCategorical": lambda d, t: d.RelaxedOneHotCategorical(t(0.5), t([0.3, 0.7])),
    "Wishart": lambda d, t: d.Wishart(t(5.0), t([[1.0, 0.0], [0.0, 1.0]])), "LKJCholesky": lambda d, t: d.LKJCholesky(3, 1.5),
    "LogisticNormal": lambda d, t: d.LogisticNormal(t([0.3, 0.7]), t([1.0, 2.0])), "Pareto": lambda d, t: d.Pareto(t([0.3, 5.0]), t([1.0, 2.0])),
    "GeneralizedPareto": lambda d, t: d.GeneralizedPareto(t([0.3, 0.7]), t([1.0, 2.0]), t([0.1, 0.2])),
}
EXPONENTIAL: dict[str, Callable[[Any, Any], Any]] = {
    "Exponential": lambda d, t: d.Exponential(t([1.0, 2.0])), "Weibull": lambda d, t: d.Weibull(t([0.3, 5.0]), t([1.0, 2.0])),
    "Categorical": lambda d, t: d.Categorical(t([0.3, 0.7, 0.2])), "Categorical, rows": lambda d, t: d.Categorical(logits=t([[0.3, 0.7], [1.0, 0.0]])),
    "OneHotCategorical": lambda d, t: d.OneHotCategorical(t([0.3, 0.7, 0.2])), "Multinomial": lambda d, t: d.Multinomial(10, t([0.3, 0.7, 0.2])),
    "MixtureSameFamily": lambda d, t: d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), d.Normal(t([0.0, 5.0]), t([1.0, 1.0]))),
}


@pytest.mark.parametrize("name", [*DISTRIBUTIONS, *(pytest.param(n, marks=MKL) for n in EXPONENTIAL)])
def test_distributions(name: str) -> None:
    make = {**DISTRIBUTIONS, **EXPONENTIAL}[name]
    for shape in ((), (3,), (40,)):
        for seed in SEEDS[:3]:
            torch.manual_seed(seed)
            mg.manual_seed(seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # PyTorch's, of singular samples where there are none
                theirs = array(make(torch.distributions, torch.tensor).sample(shape))
            mine = array(make(mg.distributions, mg.tensor).sample(shape))
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-6)
            same_state()


# ------------------------------------------------------------------------------------------------------------------- data

@pytest.mark.parametrize("dimension", [1, 2, 23])
def test_scrambled_sobol_sequences(dimension: int) -> None:
    def drawn(lib: Any, seed: int | None) -> Any:
        lib.manual_seed(3)
        engine = lib.quasirandom.SobolEngine(dimension, scramble=True, seed=seed)
        parts = [engine.draw(5), engine.draw(3, dtype=lib.float64), engine.fast_forward(6).draw_base2(1)]
        return [part.tolist() for part in parts], lib.rand(2).tolist()

    for seed in (None, 0, 12345):
        assert drawn(mg, seed) == drawn(torch, seed)


def test_samplers() -> None:
    for given in (False, True):
        for make in (
            lambda data, g: data.RandomSampler(range(101), generator=g), lambda data, g: data.RandomSampler(range(10), num_samples=35, generator=g),
            lambda data, g: data.RandomSampler(range(10), True, 75, generator=g), lambda data, g: data.SubsetRandomSampler(range(5, 60), g),
            lambda data, g: data.WeightedRandomSampler([0.1, 3.0, 2.0], 40, generator=g),
        ):
            found = []
            for lib in (torch, mg):
                lib.manual_seed(5)
                sampler = make(lib.utils.data, lib.Generator().manual_seed(9) if given else None)
                found.append((list(sampler), list(sampler)))
            assert found[0] == found[1]
            same_state()


def test_splits_and_loaders() -> None:
    found = []
    for lib in (torch, mg):
        lib.manual_seed(5)
        data = lib.utils.data
        parts = data.random_split(range(50), [30, 20])
        loader = data.DataLoader(data.TensorDataset(lib.arange(30)), batch_size=7, shuffle=True)
        epochs = [[batch.tolist() for batch, in loader] for _ in range(2)]
        kept = data.DataLoader(range(10), batch_size=3, shuffle=True, drop_last=True, generator=lib.Generator().manual_seed(1))
        weighted = data.DataLoader(range(4), sampler=data.WeightedRandomSampler([1.0, 2.0, 3.0, 4.0], 9))
        found.append(([list(p.indices) for p in parts], epochs, [[b.tolist() for b in kept] for _ in range(2)], [b.tolist() for b in weighted]))
    assert found[0] == found[1]
    same_state()


class Seeds:
    """Items that say what a worker draws."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        lib = self.lib  # type: ignore[attr-defined]
        return [index, *lib.rand(2).tolist(), float(np.random.random())]


def test_workers_are_seeded_alike() -> None:
    found = []
    for lib in (torch, mg):
        lib.manual_seed(5)
        items = Seeds()
        items.lib = lib  # type: ignore[attr-defined]
        loader = lib.utils.data.DataLoader(items, batch_size=2, num_workers=2, collate_fn=list, multiprocessing_context="fork")
        found.append(list(loader))
    assert found[0] == found[1]


# --------------------------------------------------------------------------------------------------------------- programs

def train(lib: Any, model: Any, loss_of: Callable[[Any], Any], steps: int = 15) -> list[float]:
    optimizer = lib.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def mlp(lib: Any) -> tuple[Any, list[float]]:
    """Dropout, and batches in random order."""
    nn, data = lib.nn, lib.utils.data
    x = lib.randn(60, 4)
    y = (x[:, 0] > 0).long()
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 16), nn.Tanh(), nn.AlphaDropout(0.1), nn.Linear(16, 2))
    first = {k: v.clone() for k, v in model.state_dict().items()}
    loader = data.DataLoader(data.TensorDataset(x, y), batch_size=16, shuffle=True)
    batches = [batch for _ in range(4) for batch in loader]
    given = iter(batches)

    def loss(model: Any) -> Any:
        inputs, targets = next(given)
        return lib.nn.functional.cross_entropy(model(inputs), targets)

    return first, train(lib, model, loss, len(batches))


def conv(lib: Any) -> tuple[Any, list[float]]:
    nn = lib.nn
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Dropout2d(0.4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3))
    x, y = lib.rand(12, 1, 8, 8), lib.randint(0, 3, (12,))
    return dict(model.state_dict()), train(lib, model, lambda model: lib.nn.functional.cross_entropy(model(x), y))


def lstm(lib: Any) -> tuple[Any, list[float]]:
    nn = lib.nn
    model = nn.ModuleDict({"embed": nn.Embedding(12, 6), "lstm": nn.LSTM(6, 10, 2, dropout=0.3, batch_first=True), "out": nn.Linear(10, 12)})
    tokens = lib.randint(0, 12, (4, 9))

    def loss(model: Any) -> Any:
        hidden, _ = model["lstm"](model["embed"](tokens[:, :-1]))
        return lib.nn.functional.cross_entropy(model["out"](hidden).flatten(0, 1), tokens[:, 1:].flatten())

    return dict(model.state_dict()), train(lib, model, loss)


def vae(lib: Any) -> tuple[Any, list[float]]:
    nn, F, d = lib.nn, lib.nn.functional, lib.distributions
    model = nn.ModuleDict({"encode": nn.Linear(20, 6), "decode": nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 20))})
    images = lib.bernoulli(lib.full((30, 20), 0.4))

    def loss(model: Any) -> Any:
        mean, log_std = model["encode"](images).chunk(2, -1)
        posterior = d.Normal(mean, log_std.exp())
        found = model["decode"](posterior.rsample() + 0.01 * lib.randn_like(mean))
        return F.binary_cross_entropy_with_logits(found, images, reduction="sum") / 30 + d.kl_divergence(posterior, d.Normal(0.0, 1.0)).mean()

    return dict(model.state_dict()), train(lib, model, loss)


def transformer(lib: Any, batch_first: bool) -> tuple[Any, list[float]]:
    nn = lib.nn
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.2, batch_first=batch_first)
    model = nn.ModuleDict({"embed": nn.Embedding(11, 16), "encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "head": nn.Linear(16, 11)})
    tokens = lib.randint(0, 11, (6, 9))

    def loss(model: Any) -> Any:
        given = tokens[:, :-1] if batch_first else tokens[:, :-1].t()
        wanted = tokens[:, 1:] if batch_first else tokens[:, 1:].t()
        found = model["head"](model["encoder"](model["embed"](given)))
        return lib.nn.functional.cross_entropy(found.flatten(0, 1), wanted.flatten())

    return dict(model.state_dict()), train(lib, model, loss)


def attention(lib: Any) -> tuple[Any, list[float]]:
    nn = lib.nn
    model = nn.ModuleDict({"given": nn.Linear(6, 8), "attention": nn.MultiheadAttention(8, 2, dropout=0.3)})
    x = lib.randn(5, 3, 6)

    def loss(model: Any) -> Any:
        y = model["given"](x)
        with_weights, weights = model["attention"](y, y, y)
        q = y.unflatten(-1, (2, 4)).transpose(0, 2)
        return (with_weights - 1).square().mean() + lib.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.2).square().mean() + weights.std()

    return dict(model.state_dict()), train(lib, model, loss)


PROGRAMS: dict[str, Callable[[Any], tuple[Any, list[float]]]] = {
    "mlp": mlp, "conv": conv, "lstm": lstm, "vae": vae, "attention": attention,
    "transformer, batches first": lambda lib: transformer(lib, True), "transformer, time first": lambda lib: transformer(lib, False),
}


@MKL
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_the_same_losses(name: str) -> None:
    torch.manual_seed(1)
    mg.manual_seed(1)
    (first, theirs), (mine_first, mine) = PROGRAMS[name](torch), PROGRAMS[name](mg)
    assert list(first) == list(mine_first) and math.isfinite(sum(theirs))
    np.testing.assert_allclose(mine, theirs, rtol=2e-4)
    same_state()
