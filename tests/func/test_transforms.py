"""Transforms of random numbers, the constraints that they lead to, and distributions made with them."""
from __future__ import annotations

import pickle
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import distributions as D
from mutagrad.distributions import biject_to, constraints, transform_to, transforms as T
from mutagrad.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix


def made(cache: int) -> list[tuple[T.Transform, tuple[int, ...]]]:
    """Transforms, and the shape of a value for each."""
    mg.manual_seed(0)
    loc, scale = mg.randn(5), mg.randn(4, 5)
    return [(t, shape) for shape, several in {
        (4, 5): [T.AbsTransform(cache), T.ExpTransform(cache), T.PowerTransform(2, cache), T.PowerTransform(mg.tensor(-0.7), cache), T.SigmoidTransform(cache),
                 T.TanhTransform(cache), T.SoftplusTransform(cache), T.AffineTransform(1, -2, cache_size=cache), T.AffineTransform(loc, scale, cache_size=cache),
                 T.AffineTransform(loc, 2.0, event_dim=1, cache_size=cache), T.SoftmaxTransform(cache), T.StickBreakingTransform(cache),
                 T.ComposeTransform([T.AffineTransform(loc, scale), T.ExpTransform(), T.AffineTransform(-1.0, 2.0)], cache),
                 T.ComposeTransform([T.TanhTransform(), T.StickBreakingTransform()], cache), T.ReshapeTransform((4, 5), (2, 5, 2), cache),
                 T.IndependentTransform(T.AffineTransform(loc, 3.0), 1, cache), T.CumulativeDistributionTransform(D.Normal(loc, 2.0), cache),
                 T.CatTransform([T.ExpTransform(), T.AffineTransform(1, 2)], -1, [2, 3], cache), T.StackTransform([T.ExpTransform(), T.TanhTransform()] * 2, 0, cache)],
        (3, 6): [T.CorrCholeskyTransform(cache)], (2, 3, 3): [T.LowerCholeskyTransform(cache), T.PositiveDefiniteTransform(cache)]}.items() for t in several]


EACH = made(0)
IDS = [type(t).__name__ for t, _ in EACH]


def value_for(t: T.Transform, shape: tuple[int, ...]) -> mg.Tensor:
    mg.manual_seed(1)
    x = mg.randn(shape).double()
    return x.exp() if isinstance(t, T.PowerTransform) else x


@pytest.mark.parametrize("t, shape", EACH, ids=IDS)
def test_there_and_back(t: T.Transform, shape: tuple[int, ...]) -> None:
    x = value_for(t, shape)
    y = t(x)
    assert y.shape == t.forward_shape(x.shape) and x.shape == t.inverse_shape(y.shape) and bool(t.codomain.check(y).all())
    back = t.inv(y)
    assert mg.allclose(back, x, atol=1e-6) if t.bijective else mg.allclose(t(back), y, atol=1e-6)
    assert t.inv.inv is t and t.inv.domain.event_dim == t.codomain.event_dim and t.inv == t.inv and t != T.AbsTransform().inv


@pytest.mark.parametrize("t, shape", EACH, ids=IDS)
def test_volumes_change_by_the_jacobian(t: T.Transform, shape: tuple[int, ...]) -> None:
    x = value_for(t, shape)
    y = t(x)
    if not t.bijective:
        with pytest.raises(NotImplementedError):
            t.log_abs_det_jacobian(x, y)
        return
    found = t.log_abs_det_jacobian(x, y)
    assert found.shape == x.shape[:x.ndim - t.domain.event_dim]
    end = {T.StickBreakingTransform: lambda y: y[..., :-1], T.CorrCholeskyTransform: lambda y: tril_matrix_to_vec(y, -1)}
    last = end.get(type(t.parts[-1] if isinstance(t, T.ComposeTransform) else t), lambda y: y)
    whole = mg.autograd.functional.jacobian(lambda x: last(t(x)), x).reshape(x.numel(), x.numel())
    assert mg.allclose(found.sum(), mg.linalg.slogdet(whole)[1])
    assert mg.allclose(t.inv.log_abs_det_jacobian(y, x), -found)


def test_a_memory_for_the_last_value() -> None:
    for (t, shape), (plain, _) in zip(made(1), EACH):
        x = value_for(t, shape)
        y = t(x)
        assert t._cache_size == 1 and t(x) is y and t.inv(y) is x and t.with_cache(1) is t and plain.with_cache(1)(x).shape == y.shape
    with pytest.raises(ValueError, match="cache_size"):
        T.ExpTransform(2)
    assert pickle.loads(pickle.dumps(T.ExpTransform(1)))(mg.zeros(1)).item() == 1


def test_what_is_equal_and_what_is_shown() -> None:
    assert T.ExpTransform() == T.ExpTransform() != T.TanhTransform() and T.AffineTransform(0, 1) != T.AffineTransform(0, 2) and T.PowerTransform(2) == T.PowerTransform(2)
    assert T.identity_transform == T.identity_transform.inv and T.ComposeTransform([T.ExpTransform()]) == T.ComposeTransform([T.ExpTransform()])
    assert repr(T.ComposeTransform([T.ExpTransform(), T.TanhTransform().inv])) == "ComposeTransform(\n    ExpTransform(),\n    _InverseTransform(TanhTransform())\n)"
    assert [t.sign for t in (T.ExpTransform(), T.AffineTransform(0, -2), T.PowerTransform(-1), T.ComposeTransform([T.AffineTransform(0, -2), T.ExpTransform()]))] == [1, -1, -1, -1]
    assert [T.ComposeTransform(parts).event_dim for parts in ([T.ExpTransform(), T.SoftmaxTransform()], [T.ExpTransform(), T.LowerCholeskyTransform()])] == [1, 2]
    for bad in (lambda: T.StickBreakingTransform().event_dim and T.CorrCholeskyTransform().event_dim, lambda: T.ReshapeTransform((2,), (3,)),
                lambda: T.ReshapeTransform((2,), (1, 2)).forward_shape((3,)), lambda: T.CorrCholeskyTransform().forward_shape((4,)), lambda: T.SoftmaxTransform().forward_shape(())):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(NotImplementedError):
        _ = T.SoftmaxTransform().sign


# ------------------------------------------------------------------------------------------------------------ constraints

ROWS = mg.tensor([-4.0, -2.0, 0.0, 2.0, 4.0]).double()
CONSTRAINTS = [constraints.real, constraints.real_vector, constraints.positive, constraints.greater_than(ROWS), constraints.greater_than(2), constraints.greater_than_eq(-2),
               constraints.less_than(ROWS), constraints.less_than(-2), constraints.unit_interval, constraints.interval(ROWS, ROWS + 2), constraints.interval(-2, -1),
               constraints.half_open_interval(1, 2), constraints.simplex, constraints.corr_cholesky, constraints.lower_cholesky, constraints.positive_definite,
               constraints.independent(constraints.positive, 1), constraints.cat([constraints.positive, constraints.real], -1, [2, 3]),
               constraints.stack([constraints.positive, constraints.unit_interval, constraints.real, constraints.less_than(0.0), constraints.positive], 0)]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)
@pytest.mark.parametrize("registry", [biject_to, transform_to], ids=["biject_to", "transform_to"])
def test_any_numbers_are_led_to_a_constraint(registry: Any, constraint: Any) -> None:
    mg.manual_seed(0)
    x = mg.randn(6, 6) if constraint is constraints.corr_cholesky else mg.randn(5, 5)
    x = x.double()
    if registry is biject_to and constraint in (constraints.lower_cholesky, constraints.positive_definite):
        with pytest.raises(NotImplementedError):
            registry(constraint)
        return
    t = registry(constraint)
    y = t(x)
    assert bool(constraint.check(y).all()) and mg.allclose(t(t.inv(y)), y)
    if registry is biject_to:
        assert t.bijective and mg.allclose(t.inv(y), x) and t.log_abs_det_jacobian(x, y).shape == x.shape[:x.ndim - t.domain.event_dim]


MATRICES = [([[2.0, 0], [2.0, 2]], (False, False, False)), ([[3.0, -5], [-5.0, 3]], (True, False, False)), ([[1.0, 2], [2.0, 4]], (True, True, False)),
            ([[4.0, 2], [2.0, 4]], (True, True, True)), ([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0]], (False, False, False))]


@pytest.mark.parametrize("matrix, expected", MATRICES)
def test_matrices(matrix: Any, expected: Any) -> None:
    kinds = constraints.symmetric, constraints.positive_semidefinite, constraints.positive_definite
    assert tuple(bool(kind.check(mg.tensor(matrix).double())) for kind in kinds) == expected
    assert bool(constraints.square.check(mg.tensor(matrix))) == (len(matrix) == len(matrix[0]))
    if len(matrix[0]) == 2:
        assert kinds[2].check(mg.tensor([matrix, [[1.0, 0.0], [0.0, 1.0]]]).double()).tolist() == [expected[2], True]


def test_constraints_that_depend_on_parameters() -> None:
    assert constraints.is_dependent(D.Uniform.support) and not D.Uniform.support.is_discrete and D.Multinomial.support.event_dim == 1
    assert not constraints.is_dependent(D.Uniform(0.0, 1.0).support) and not constraints.is_dependent(D.Normal.support)
    with pytest.raises(NotImplementedError):
        _ = constraints.dependent.event_dim
    assert constraints.dependent(event_dim=2).event_dim == 2
    with pytest.raises(ValueError, match="dependent"):
        constraints.dependent.check(mg.ones(1))

    class Even(constraints.Constraint):
        is_discrete = True

        def check(self, value: Any) -> Any:
            return value % 2 == 0

    assert repr(Even()) == "Even()" and repr(constraints.positive) == "GreaterThan(lower_bound=0.0)" and repr(constraints.real_vector) == "IndependentConstraint(Real(), 1)"
    with pytest.raises(NotImplementedError, match="Even"):
        biject_to(Even())
    biject_to.register(Even, lambda constraint: T.identity_transform)
    assert biject_to(Even()) is T.identity_transform
    with pytest.raises(TypeError):
        biject_to.register(3, lambda constraint: T.identity_transform)
    with pytest.raises(ValueError, match="dim"):
        constraints.real_vector.check(mg.tensor(1.0))


# ------------------------------------------------------------------------------------------------- distributions made with them

@pytest.mark.parametrize("transforms, batch, event", [
    ([T.ExpTransform()], (4, 3), ()), ([T.SoftmaxTransform()], (4,), (3,)), ([T.ExpTransform(), T.StickBreakingTransform()], (4,), (4,)), ([T.ReshapeTransform((3,), (3, 1))], (4,), (3, 1)),
    ([T.ReshapeTransform((4, 3), (12,))], (), (12,)), ([T.AffineTransform(mg.zeros(2, 4, 3), 1.0)], (2, 4, 3), ())])
def test_shapes_of_transformed_distributions(transforms: Any, batch: Any, event: Any) -> None:
    d = D.TransformedDistribution(D.Normal(mg.zeros(4, 3), 1.0), transforms)
    assert d.batch_shape == batch and d.event_shape == event and d.sample((5,)).shape == (5, *batch, *event)
    wide = d.expand((6, *batch))
    assert wide.batch_shape == (6, *batch) and wide.rsample().shape == (6, *batch, *event)
    if not isinstance(transforms[0], T.SoftmaxTransform):
        assert wide.log_prob(wide.sample()).shape == (6, *batch)


def test_a_falling_transform_turns_the_cdf_round() -> None:
    d = D.TransformedDistribution(D.Normal(0.0, 1.0), [T.AffineTransform(1.0, -2.0)])
    p = mg.tensor([0.1, 0.5, 0.9])
    assert mg.allclose(d.cdf(d.icdf(p)), p) and mg.allclose(d.icdf(p), D.Normal(1.0, 2.0).icdf(p), atol=1e-5)
    with pytest.raises(ValueError, match="at least 1"):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [T.SoftmaxTransform()])
    with pytest.raises(TypeError):
        D.TransformedDistribution(D.Normal(0.0, 1.0), [mg.exp])  # type: ignore[list-item]


def test_densities_integrate_to_one() -> None:
    for d, low, high in [(D.GeneralizedPareto(0.5, 1.0, -0.4), 0.5, 3.0), (D.GeneralizedPareto(0.5, 1.0, 0.0), 0.5, 30.0), (D.GeneralizedPareto(0.5, 1.0, 0.2), 0.5, 400.0),
                         (D.Kumaraswamy(1.5, 2.5), 0.0, 1.0), (D.VonMises(0.5, 2.0), -3.1416, 3.1416), (D.FisherSnedecor(5.0, 6.0), 0.0, 300.0), (D.InverseGamma(3.0, 1.0), 0.0, 100.0),
                         (D.Weibull(1.0, 1.5), 0.0, 20.0), (D.Pareto(1.0, 3.0), 1.0, 200.0), (D.ContinuousBernoulli(0.3), 0.0, 1.0), (D.RelaxedBernoulli(0.7, 0.3), 0.0, 1.0)]:
        x = mg.linspace(0, 1, 200_001, dtype=mg.float64)[1:-1] ** 2 * (high - low) + low
        density = d.log_prob(x).exp()
        assert mg.trapezoid(density, x).item() == pytest.approx(1, abs=5e-3), d
        if type(d) in (D.GeneralizedPareto, D.Kumaraswamy, D.Weibull, D.Pareto, D.ContinuousBernoulli, D.InverseGamma):
            assert mg.trapezoid(density * x, x).item() == pytest.approx(d.mean.item(), rel=1e-2), d
            assert mg.trapezoid(density[:100_000], x[:100_000]).item() == pytest.approx(d.cdf(x[99_999]).item(), abs=5e-3)
        if type(d) in (D.GeneralizedPareto, D.Weibull, D.Pareto, D.ContinuousBernoulli, D.Kumaraswamy):
            p = mg.tensor([0.1, 0.6], dtype=mg.float64)
            assert mg.allclose(d.cdf(d.icdf(p)), p, atol=1e-6)
    k = D.Kumaraswamy(2.0, 3.0)
    grid = mg.linspace(0.01, 0.99, 9801)
    assert grid[k.log_prob(grid).argmax()].item() == pytest.approx(k.mode.item(), abs=1e-3)


def test_vectors_and_triangles() -> None:
    v = mg.arange(1.0, 7.0)
    assert mg.equal(tril_matrix_to_vec(vec_to_tril_matrix(v)), v) and mg.equal(tril_matrix_to_vec(vec_to_tril_matrix(v, -1), -1), v)


def test_a_family_of_ones_own() -> None:
    class Rate(D.ExponentialFamily):
        arg_constraints = {"rate": constraints.positive}
        _mean_carrier_measure = 0

        def __init__(self, rate: Any) -> None:
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self) -> Any:
            return (-self.rate,)

        def _log_normalizer(self, x: Any) -> Any:
            return -(-x).log()

    a, b = mg.tensor([0.5, 2.0]), mg.tensor([1.5, 1.0])
    assert mg.allclose(Rate(a).entropy(), D.Exponential(a).entropy())
    assert mg.allclose(D.kl_divergence(Rate(a), Rate(b)), D.kl_divergence(D.Exponential(a), D.Exponential(b)))
