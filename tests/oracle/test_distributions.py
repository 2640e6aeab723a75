"""Distributions beside PyTorch's: densities, moments, entropies, divergences, and their gradients."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="compares with PyTorch")
pytestmark = pytest.mark.oracle

rng = np.random.default_rng(3)
L = np.tril(rng.uniform(0.1, 1, (2, 3, 3))) + np.eye(3)
SIMPLEX = rng.dirichlet(np.ones(4), 3)

# Name, parameters, values to ask about.
CASES: list[tuple[str, dict[str, Any], Any]] = [
    ("Normal", {"loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.normal(size=(2, 3))),
    ("LogNormal", {"loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("Uniform", {"low": np.array([-1.0, 0.0]), "high": np.array([1.0, 3.0])}, np.array([[0.5, 0.5], [-0.5, 2.0]])),
    ("Exponential", {"rate": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("Laplace", {"loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.normal(size=(2, 3))),
    ("Gamma", {"concentration": rng.uniform(0.5, 3, 3), "rate": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("Chi2", {"df": rng.uniform(1, 5, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("Beta", {"concentration1": rng.uniform(0.5, 3, 3), "concentration0": rng.uniform(0.5, 3, 3)}, rng.uniform(0.1, 0.9, (2, 3))),
    ("Cauchy", {"loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.normal(size=(2, 3))),
    ("Gumbel", {"loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.normal(size=(2, 3))),
    ("HalfNormal", {"scale": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 2, (2, 3))),
    ("HalfCauchy", {"scale": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 2, (2, 3))),
    ("NegativeBinomial", {"total_count": rng.uniform(1, 5, 3), "probs": rng.uniform(0.1, 0.9, 3)}, np.array([[0.0, 2, 5], [1, 1, 1]])),
    ("NegativeBinomial", {"total_count": rng.uniform(1, 5, 3), "logits": rng.normal(size=3)}, np.array([0.0, 2, 5])),
    ("LKJCholesky", {"dim": 3, "concentration": np.array([0.7, 2.0])}, np.linalg.cholesky(np.array([[1, 0.3, 0.2], [0.3, 1, 0.1], [0.2, 0.1, 1]]))),
    ("StudentT", {"df": rng.uniform(2.5, 5, 3), "loc": rng.normal(size=(3,)), "scale": rng.uniform(0.5, 2, 3)}, rng.normal(size=(2, 3))),
    ("Dirichlet", {"concentration": rng.uniform(0.5, 3, (3, 4))}, SIMPLEX),
    ("Dirichlet", {"concentration": np.array([0.5, 0.7, 0.2])}, np.array([0.2, 0.3, 0.5])),
    ("Bernoulli", {"probs": rng.uniform(0.1, 0.9, 3)}, np.array([[0.0, 1, 0], [1, 1, 0]])),
    ("Bernoulli", {"logits": rng.normal(size=3)}, np.array([0.0, 1, 0])),
    ("Geometric", {"probs": rng.uniform(0.1, 0.9, 3)}, np.array([0.0, 2, 5])),
    ("Geometric", {"logits": rng.normal(size=3)}, np.array([0.0, 2, 5])),
    ("Binomial", {"total_count": 5, "probs": rng.uniform(0.1, 0.9, 3)}, np.array([[0.0, 2, 5], [1, 1, 1]])),
    ("Binomial", {"total_count": 5, "logits": rng.normal(size=3)}, np.array([0.0, 2, 5])),
    ("Poisson", {"rate": rng.uniform(0.5, 4, 3)}, np.array([0.0, 2, 5])),
    ("Categorical", {"probs": rng.uniform(0.1, 1, (3, 4))}, np.array([0, 3, 1])),
    ("Categorical", {"logits": rng.normal(size=(3, 4))}, np.array([[0, 3, 1], [1, 1, 2]])),
    ("OneHotCategorical", {"logits": rng.normal(size=(3, 4))}, np.eye(4)[[0, 2, 1]]),
    ("OneHotCategoricalStraightThrough", {"probs": rng.uniform(0.1, 1, (3, 4))}, np.eye(4)[[0, 2, 1]]),
    ("Multinomial", {"total_count": 4, "probs": rng.uniform(0.1, 1, (2, 3))}, np.array([[1.0, 2, 1], [0, 0, 4]])),
    ("MultivariateNormal", {"loc": rng.normal(size=(2, 3)), "scale_tril": L}, rng.normal(size=(2, 3))),
    ("MultivariateNormal", {"loc": rng.normal(size=3), "covariance_matrix": L @ L.swapaxes(-1, -2)}, rng.normal(size=(4, 2, 3))),
    ("MultivariateNormal", {"loc": rng.normal(size=(2, 3)), "precision_matrix": L[0] @ L[0].T}, rng.normal(size=(2, 3))),
    ("Pareto", {"scale": rng.uniform(0.5, 1, 3), "alpha": rng.uniform(2.5, 4, 3)}, rng.uniform(1.1, 3, (2, 3))),
    ("GeneralizedPareto", {"loc": rng.normal(size=3), "scale": rng.uniform(2, 3, 3), "concentration": np.array([-0.3, 0.0, 0.4])}, rng.uniform(3, 4, (2, 3))),
    ("Weibull", {"scale": rng.uniform(0.5, 2, 3), "concentration": rng.uniform(1.2, 3, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("Kumaraswamy", {"concentration1": rng.uniform(1.1, 3, 3), "concentration0": rng.uniform(1.1, 3, 3)}, rng.uniform(0.1, 0.9, (2, 3))),
    ("InverseGamma", {"concentration": rng.uniform(2.5, 4, 3), "rate": rng.uniform(0.5, 2, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("FisherSnedecor", {"df1": rng.uniform(2.5, 5, 3), "df2": rng.uniform(4.5, 8, 3)}, rng.uniform(0.1, 3, (2, 3))),
    ("VonMises", {"loc": rng.normal(size=3), "concentration": rng.uniform(0.5, 4, 3)}, rng.uniform(-3, 3, (2, 3))),
    ("ContinuousBernoulli", {"probs": np.array([0.1, 0.4995, 0.8])}, rng.uniform(0.1, 0.9, (2, 3))),
    ("ContinuousBernoulli", {"logits": rng.normal(size=3)}, rng.uniform(0.1, 0.9, (2, 3))),
    ("RelaxedBernoulli", {"temperature": np.array(0.7), "probs": rng.uniform(0.1, 0.9, 3)}, rng.uniform(0.1, 0.9, (2, 3))),
    ("RelaxedBernoulli", {"temperature": np.array([0.5]), "logits": rng.normal(size=3)}, rng.uniform(0.1, 0.9, (2, 3))),
    ("RelaxedOneHotCategorical", {"temperature": np.array(0.7), "probs": rng.uniform(0.1, 1, (3, 4))}, SIMPLEX),
    ("RelaxedOneHotCategorical", {"temperature": np.array(2.0), "logits": rng.normal(size=(3, 4))}, SIMPLEX),
    ("LogisticNormal", {"loc": rng.normal(size=(3, 3)), "scale": rng.uniform(0.5, 2, (3, 3))}, SIMPLEX),
    ("LowRankMultivariateNormal", {"loc": rng.normal(size=(2, 4)), "cov_factor": rng.normal(size=(2, 4, 2)), "cov_diag": rng.uniform(0.5, 2, (2, 4))}, rng.normal(size=(3, 2, 4))),
    ("Wishart", {"df": np.array([5.0, 6.5]), "scale_tril": L}, L @ L.swapaxes(-1, -2) * 1.5),
    ("Wishart", {"df": np.array(7.0), "covariance_matrix": L @ L.swapaxes(-1, -2)}, L[0] @ L[0].T),
    ("Wishart", {"df": np.array(7.0), "precision_matrix": L[0] @ L[0].T}, L[0] @ L[0].T),
]
IDS = [f"{i}-{c[0]}" for i, c in enumerate(CASES)]
ELSEWHERE = {("GeneralizedPareto", "log_prob"): "PyTorch fails for doubles", ("GeneralizedPareto", "cdf"): "PyTorch fails for doubles",
             ("Kumaraswamy", "mode"): "PyTorch gives nan", ("InverseGamma", "cdf"): "PyTorch has none"}


def build(library: Any, name: str, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    tensors = {k: v if isinstance(v, int) else library.tensor(v, requires_grad=True) for k, v in given.items()}
    return getattr(library.distributions, name)(**tensors), {k: v for k, v in tensors.items() if not isinstance(v, int)}


def ask(library: Any, name: str, given: dict[str, Any], what: str, value: Any) -> Any:
    """A quantity and its derivative by each parameter; or the class of what was raised."""
    made, tensors = build(library, name, given)
    found = getattr(made, what)
    if callable(found):
        try:
            if what == "icdf":
                value = np.broadcast_to(np.linspace(0.1, 0.9, 3)[:, None], (3, max(1, *made.batch_shape, 1)))
            found = found(library.tensor(np.array(value))) if what in ("log_prob", "cdf", "icdf") else found()
        except NotImplementedError:
            return None
    answers = [found.detach().numpy()]
    if found.requires_grad:
        weights = library.tensor(np.linspace(0.5, 1.5, max(found.numel(), 1)).reshape(tuple(found.shape)))
        grads = library.autograd.grad((found * weights).sum(), list(tensors.values()), allow_unused=True)
        answers += [np.zeros(tuple(t.shape)) if g is None else g.numpy() for g, t in zip(grads, tensors.values())]
    return answers


@pytest.mark.parametrize("what", ["log_prob", "mean", "variance", "stddev", "mode", "entropy", "cdf", "icdf"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_quantities_and_gradients(case: Any, what: str) -> None:
    name, given, value = case
    if (name, what) in ELSEWHERE:
        pytest.skip(ELSEWHERE[name, what])
    if what == "cdf" and name in ("Gamma", "Chi2"):
        found = [getattr(lib.distributions, name)(**{k: lib.tensor(v) for k, v in given.items()}).cdf(lib.tensor(value)).numpy() for lib in (mg, torch)]
        np.testing.assert_allclose(*found, 1e-9)  # it has no derivative by the concentration
        return
    try:
        theirs = ask(torch, name, given, what, value)
    except NotImplementedError:
        theirs = None
    if theirs is None:
        with pytest.raises(NotImplementedError):
            made, _ = build(mg, name, given)
            found = getattr(made, what)
            found(mg.tensor(value)) if what in ("log_prob", "cdf", "icdf") else found()
        return
    ours = ask(mg, name, given, what, value)
    assert ours is not None
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        if name == "Wishart" and "scale_tril" in given and a.ndim > 2:  # nothing depends on the upper triangle
            a, b = np.tril(a), np.tril(b)
        np.testing.assert_allclose(a, b, 1e-6 if name == "VonMises" else 1e-7, 1e-9)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_divergences_and_gradients(case: Any) -> None:
    name, given, _ = case
    other = {k: v if isinstance(v, int) else np.roll(v, 1, 0) if k != "precision_matrix" and v.ndim else v * 1.1 for k, v in given.items()}
    if name.startswith("Relaxed") or name == "Wishart":
        pytest.skip("not known" if name != "Wishart" else "PyTorch's can be negative")
    if name == "Uniform":
        other = {"low": given["low"] - 1, "high": given["high"] + 0.5}
    found = []
    for library in (mg, torch):
        p, mine = build(library, name, given)
        q, yours = build(library, name, other)
        tensors = [*mine.values(), *yours.values()]
        try:
            kl = library.distributions.kl_divergence(p, q)
        except NotImplementedError:
            found.append(None)
            continue
        found.append([kl.detach().numpy(), *(g.numpy() for g in library.autograd.grad(kl.sum(), tensors))])
    ours, theirs = found
    assert (ours is None) == (theirs is None)
    for a, b in zip(ours or (), theirs or ()):
        np.testing.assert_allclose(a, b, 1e-7, 1e-9)


KINDS: dict[str, dict[str, Any]] = {
    "Bernoulli": {"probs": [0.2, 0.6]}, "Beta": {"concentration1": [1.5, 2.5], "concentration0": [2.0, 0.7]}, "Binomial": {"total_count": [3.0, 4.0], "probs": [0.2, 0.6]},
    "ContinuousBernoulli": {"probs": [0.2, 0.7]}, "Exponential": {"rate": [0.7, 2.0]}, "Gamma": {"concentration": [1.5, 0.8], "rate": [2.0, 0.6]},
    "Gumbel": {"loc": [0.3, -0.5], "scale": [0.7, 1.5]}, "Laplace": {"loc": [0.3, -0.5], "scale": [0.7, 1.5]}, "Normal": {"loc": [0.3, -0.5], "scale": [0.7, 1.5]},
    "Pareto": {"scale": [0.2, 0.5], "alpha": [2.5, 3.5]}, "Poisson": {"rate": [0.7, 2.0]}, "Uniform": {"low": [0.25, 0.1], "high": [0.75, 1.5]},
    "LogNormal": {"loc": [0.3, -0.5], "scale": [0.7, 1.5]}, "StudentT": {"df": [3.0, 4.0]}}


@pytest.mark.parametrize("first", KINDS)
def test_divergences_of_different_kinds(first: str) -> None:
    for second in KINDS:
        if first == second == "Bernoulli":
            continue
        found: list[Any] = []
        for library in (mg, torch):
            (p, mine), (q, yours) = (build(library, name, {k: np.array(v) for k, v in KINDS[name].items()}) for name in (first, second))
            try:
                kl = library.distributions.kl_divergence(p, q)
            except NotImplementedError:
                found.append(None)
                continue
            found.append([kl.detach().numpy()])
            if bool(kl.isfinite().all()) and (first, second) != ("Binomial", "Binomial"):
                found[-1] += [g.numpy() for g in library.autograd.grad(kl.sum(), [*mine.values(), *yours.values()])]
        assert (found[0] is None) == (found[1] is None), (first, second)
        for a, b in zip(found[0] or (), found[1] or (), strict=True):
            np.testing.assert_allclose(a, b, 1e-6, 1e-7, err_msg=f"{first} {second}")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_shapes_and_text(case: Any) -> None:
    name, given, _ = case
    (ours, _), (theirs, _) = build(mg, name, given), build(torch, name, given)
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (tuple(theirs.batch_shape), tuple(theirs.event_shape))
    assert ours.has_rsample == theirs.has_rsample
    if name == "Wishart":  # PyTorch warns of singular samples where there are none
        assert ours.sample((5, 2)).shape == (5, 2, *ours.batch_shape, 3, 3) and ours.expand((2, *ours.batch_shape)).sample().shape == (2, *ours.batch_shape, 3, 3)
        return
    assert tuple(ours.sample((5, 2)).shape) == tuple(theirs.sample((5, 2)).shape)
    wide = (2, *ours.batch_shape)
    assert tuple(ours.expand(wide).sample((3,)).shape) == tuple(theirs.expand(wide).sample((3,)).shape)
    assert repr(ours).replace("mutagrad", "torch").split("(")[0] == repr(theirs).split("(")[0]
    if ours.has_enumerate_support:
        np.testing.assert_array_equal(ours.enumerate_support().numpy(), theirs.enumerate_support().numpy())


BAD: list[tuple[str, dict[str, Any]]] = [
    ("Normal", {"loc": 0.0, "scale": -1.0}), ("Normal", {"loc": float("nan"), "scale": 1.0}), ("Uniform", {"low": 1.0, "high": 0.0}),
    ("Bernoulli", {"probs": 1.5}), ("Bernoulli", {}), ("Categorical", {"probs": [-1.0, 2.0]}), ("Gamma", {"concentration": 0.0, "rate": 1.0}),
    ("MultivariateNormal", {"loc": [0.0, 0.0], "covariance_matrix": [[1.0, 2.0], [2.0, 1.0]]}),
    ("MultivariateNormal", {"loc": [0.0, 0.0], "scale_tril": [[1.0, 2.0], [0.0, 1.0]]}), ("Binomial", {"total_count": -1, "probs": 0.5}),
    ("Poisson", {"rate": -1.0}), ("Dirichlet", {"concentration": [1.0, -1.0]})]


@pytest.mark.parametrize("name, given", BAD)
def test_bad_parameters_raise_as_in_pytorch(name: str, given: dict[str, Any]) -> None:
    for library in (mg, torch):
        with pytest.raises(ValueError):
            getattr(library.distributions, name)(**{k: library.tensor(v) if isinstance(v, list) else v for k, v in given.items()})


BAD_VALUES = [("Gamma", (1.0, 1.0), [-1.0]), ("Bernoulli", (0.5,), [0.5]), ("Uniform", (0.0, 1.0), [2.0]), ("Poisson", (1.0,), [0.5]), ("Beta", (1.0, 1.0), [1.5])]


@pytest.mark.parametrize("name, given, value", BAD_VALUES)
def test_values_outside_the_support_raise_as_in_pytorch(name: str, given: Any, value: Any) -> None:
    for library in (mg, torch):
        with pytest.raises(ValueError):
            getattr(library.distributions, name)(*given).log_prob(library.tensor(value))
        unchecked = getattr(library.distributions, name)(*given, validate_args=False)
        if name != "Bernoulli":
            unchecked.log_prob(library.tensor(value))


@pytest.mark.parametrize("concentration", [0.1, 0.7, 1.5, 8.0, 150.0])
def test_a_draw_moves_with_its_concentration_as_in_pytorch(concentration: float) -> None:
    from mutagrad.distributions.gamma import gamma_gradient
    drawn = np.quantile(np.random.default_rng(0).gamma(concentration, size=2000), np.linspace(0.02, 0.98, 9))
    a = np.full(9, concentration)
    theirs = torch._standard_gamma_grad(torch.tensor(a), torch.tensor(drawn)).numpy()
    np.testing.assert_allclose(gamma_gradient(a, drawn), theirs, 2e-3)


def squashed(library: Any, p: Any, cache: int) -> Any:
    d = library.distributions
    return d.TransformedDistribution(d.Independent(d.Normal(p, 1.5), 1),
                                     [d.transforms.TanhTransform(cache_size=cache), d.transforms.AffineTransform(loc=0.5, scale=p.detach().abs() + 1)])


def mixture(library: Any, p: Any, cache: int) -> Any:
    d = library.distributions
    return d.MixtureSameFamily(d.Categorical(logits=p), d.Normal(p * 2, 0.5))


def vectors(library: Any, p: Any, cache: int) -> Any:
    d = library.distributions
    return d.MixtureSameFamily(d.Categorical(logits=p), d.Independent(d.Normal(library.stack([p, p * 2], -1), 0.5), 1))


def positive(library: Any, p: Any, cache: int) -> Any:
    d = library.distributions
    return d.TransformedDistribution(d.Normal(p, 1.0), d.ComposeTransform([d.SigmoidTransform(), d.ExpTransform(), d.ExpTransform().inv]))


@pytest.mark.parametrize("make, value", [(squashed, [0.3, 0.7, 0.4]), (mixture, [0.1, 0.5]), (vectors, [[0.1, 0.5], [0.2, 0.9]]), (positive, [0.2, 0.5, 0.6])])
def test_made_of_others(make: Any, value: Any) -> None:
    found = []
    for library in (mg, torch):
        p = library.tensor([0.2, -0.3, 0.9], dtype=library.float64, requires_grad=True)
        d = make(library, p, 0)
        out = d.log_prob(library.tensor(value, dtype=library.float64))
        out.sum().backward()
        moments = [d.mean.detach().numpy(), d.variance.detach().numpy()] if make in (mixture, vectors) else []
        found.append([out.detach().numpy(), p.grad.numpy(), *moments, np.zeros(tuple(d.sample((5,)).shape)), np.zeros(tuple(d.batch_shape))])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-7)


def test_a_cached_transform_maps_back_exactly() -> None:
    p = mg.full((3,), 20.0, requires_grad=True)  # tanh is 1 in float32, and has no inverse there
    d = mg.distributions.TransformedDistribution(mg.distributions.Normal(p, 1.0), [mg.distributions.TanhTransform(cache_size=1)], validate_args=False)
    assert bool(d.log_prob(d.rsample()).isfinite().all())


# What Python itself gives to classes, and what PyTorch has by accident.
NOT_ASKED = {"__orig_bases__", "__parameters__", "__slots__", "__firstlineno__", "__static_attributes__", "_is_protocol"}


@pytest.mark.parametrize("name", torch.distributions.__all__)
def test_a_class_has_pytorchs_attributes_and_bases(name: str) -> None:
    theirs, ours = getattr(torch.distributions, name), getattr(mg.distributions, name)
    if isinstance(theirs, type):
        assert set(dir(theirs)) - set(dir(ours)) <= NOT_ASKED
        assert {base.__name__ for base in theirs.__mro__} <= {base.__name__ for base in ours.__mro__}


def test_modules_have_pytorchs_public_names() -> None:
    for module in ("", "constraints", "transforms", "utils", "kl", "constraint_registry"):
        theirs, ours = (getattr(lib.distributions, module) if module else lib.distributions for lib in (torch, mg))
        assert set(getattr(theirs, "__all__", ())) <= set(dir(ours)), module


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_instances_and_their_expansions_are_pytorchs_under_a_seed(case: Any) -> None:
    name, given, value = case
    made = [build(library, name, given)[0] for library in (mg, torch)]
    assert {k for k in vars(made[1]) if not hasattr(made[0], k)} == set()
    plain = repr(made[1].support)
    if name not in ("Multinomial", "Pareto", "Uniform", "GeneralizedPareto", "Binomial"):  # which print numbers
        assert repr(made[0].support) == plain
    wide = [one.expand((2, *one.batch_shape)) for one in made]
    for ours, theirs in (made, wide):
        assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
        for how in ("sample", "rsample"):
            if how == "sample" or theirs.has_rsample:
                drawn = []
                for library, one in ((mg, ours), (torch, theirs)):
                    library.manual_seed(7)
                    drawn.append(getattr(one, how)((4,)).detach())
                assert str(drawn[0].dtype).replace("mutagrad", "torch") == str(drawn[1].dtype)
                np.testing.assert_allclose(drawn[0].numpy(), drawn[1].numpy(), 1e-9, 1e-12)
        for what in ("mean", "variance", "mode", "entropy", "log_prob"):
            if (name, what) not in ELSEWHERE and (name, what, theirs) != ("Multinomial", "entropy", wide[1]):  # PyTorch's expand forgets a part
                found = [answered(lib, one, what, value) for lib, one in ((mg, ours), (torch, theirs))]
                assert (found[0] is None) == (found[1] is None), what
                if found[0] is not None:
                    np.testing.assert_allclose(*found, 1e-6, 1e-9, err_msg=what)


def answered(library: Any, one: Any, what: str, value: Any) -> Any:
    try:
        found = getattr(one, what)
        found = found(library.tensor(np.array(value))) if what == "log_prob" else found() if what == "entropy" else found
    except (NotImplementedError, ValueError):  # a value that does not fit the expanded batch
        return None
    return found.detach().numpy()


@pytest.mark.parametrize("case", [c for c in CASES if issubclass(getattr(torch.distributions, c[0]), torch.distributions.ExponentialFamily)], ids=lambda c: c[0])
def test_members_of_the_exponential_family_say_what_they_are(case: Any) -> None:
    name, given, _ = case
    found = []
    for library in (mg, torch):
        made, _ = build(library, name, given)
        theta = made._natural_params
        found.append([*(t.detach().numpy() for t in theta), made._log_normalizer(*theta).detach().numpy()])
        try:
            found[-1].append(np.array(made._mean_carrier_measure))
        except NotImplementedError:
            found[-1].append(np.array(np.nan))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


def test_a_mixture_has_pytorchs_parts() -> None:
    for library in (mg, torch):
        d = library.distributions
        mixture = d.MixtureSameFamily(d.Categorical(logits=library.zeros(3)), d.Independent(d.Normal(library.zeros(4, 3, 2), 1.0), 1))
        assert mixture._component_distribution is mixture.component_distribution and mixture._mixture_distribution is mixture.mixture_distribution
        assert mixture._num_component == 3 and mixture._event_ndims == 1 and tuple(mixture._pad(library.zeros(4, 2)).shape) == (4, 1, 2)
        assert tuple(mixture._pad_mixture_dimensions(library.zeros(3)).shape) == (1, 3, 1)
        assert tuple(mixture.expand((5, 4)).mean.shape) == (5, 4, 2) and tuple(mixture.mean.shape) == (4, 2)


def test_parameters_are_the_very_tensors() -> None:
    for library in (mg, torch):
        loc, scale = library.zeros(3, requires_grad=True), library.ones(3)
        normal = library.distributions.Normal(loc, scale)
        assert normal.loc is loc and normal.scale is scale
        assert library.broadcast_tensors(loc, library.ones(1))[0] is loc
