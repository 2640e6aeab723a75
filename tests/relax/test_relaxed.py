"""What all stand-ins promise: the limit, the gradient, no nan, any float type, vmap, meta, devices, and errors that help."""
from __future__ import annotations

from typing import Any

import pytest
from relaxed import CASES, Case, points

import mutagrad as mg
from mutagrad import relax
from mutagrad.autograd import gradcheck, gradgradcheck
from mutagrad.func import grad, vmap

each = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
SMOOTH = [c for c in CASES if "hard=True" not in c.name]


def test_the_points_are_apart() -> None:
    x = points(3, 4).flatten().sort()[0]
    assert float((x[1:] - x[:-1]).min()) > 0.02 and float((x * 2 - (x * 2).round()).abs().min()) > 0.005


def test_every_function_with_a_temperature_has_a_case() -> None:
    without = {"add_", "gather", "read", "scatter_", "scatter_add_", "straight_through", "write_"}
    assert {c.name.partition("-")[0] for c in CASES} == set(relax.__all__) - without


@each
@pytest.mark.parametrize("dtype", [mg.float32, mg.float64], ids=str)
def test_the_limit_is_the_exact_operation(case: Case, dtype: Any) -> None:
    for seed in range(3):
        x = points(3, 4, dtype=dtype, seed=seed)
        found, exact = case.soft(x, 1e-6), case.exact(x)
        assert found.dtype == dtype and found.shape == exact.shape
        assert mg.allclose(found, exact.to(dtype), atol=1e-5)


@each
def test_a_lower_temperature_is_closer(case: Case) -> None:
    x, exact = points(3, 4), case.exact(points(3, 4)).double()
    errors = [float((case.soft(x, t) - exact).abs().max()) for t in (0.5, 0.05, 0.005)]
    assert errors == sorted(errors, reverse=True) and errors[-1] <= 0.02


@pytest.mark.parametrize("case", SMOOTH, ids=lambda c: c.name)
@pytest.mark.parametrize("temperature", [0.1, 0.8])
def test_gradients_are_those_of_differences(case: Case, temperature: float) -> None:
    x, t = points(2, 3).requires_grad_(), mg.tensor(temperature, dtype=mg.float64, requires_grad=True)
    assert gradcheck(case.soft, (x, t)) and gradgradcheck(case.soft, (x, t))


@each
@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16, mg.float32, mg.float64], ids=str)
def test_there_is_no_nan_at_any_temperature(case: Case, dtype: Any) -> None:
    large = 1e30 if dtype not in (mg.float16, mg.float64) else 1e4 if dtype == mg.float16 else 1e300
    for t in (1e-4 if dtype == mg.float16 else 1e-6, 1.0, 1e4):
        for row in ([0.0, 0.0, 0.0], [-large, 0.0, large], [0.5, 1.0, 1.5], [1e-7, 0.0, -3.0], [2.5, 2.5, -2.5]):
            x = mg.tensor([row, row[::-1], row], dtype=dtype, requires_grad=True)
            y = case.soft(x, t)
            assert y.dtype == dtype and bool(y.isfinite().all())
            if y.requires_grad:
                y.sum().backward()
                assert bool(x.grad.isfinite().all()) or t < 1e-3 and not bool(x.grad.isnan().any())


@each
def test_vmap_is_a_loop(case: Case) -> None:
    x = mg.stack([points(3, 4, seed=s) for s in range(3)])

    def loss(one: Any) -> Any:
        return (case.soft(one, 0.3) ** 2).sum()

    assert mg.allclose(vmap(lambda one: case.soft(one, 0.3), randomness="same")(x), mg.stack([case.soft(one, 0.3) for one in x]))
    assert mg.allclose(vmap(grad(loss), randomness="same")(x), mg.stack([grad(loss)(one) for one in x]))


@each
def test_without_data_there_is_a_shape(case: Case) -> None:
    x = points(3, 4)
    found = case.soft(mg.empty(3, 4, device="meta", dtype=mg.float64), 0.3)
    assert found.is_meta and found.shape == case.soft(x, 0.3).shape


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), 1e-50])
@each
def test_a_temperature_is_positive(case: Case, wrong: float) -> None:
    name = case.name.partition("-")[0]
    with pytest.raises(ValueError, match=rf"relax\.{name}: the temperature must be positive and finite") as raised:
        case.soft(points(3, 4, dtype=mg.float32), wrong)
    assert raised.value.fix and "relaxed.py" in raised.value.where
    if wrong != 1e-50:
        with pytest.raises(ValueError, match="the temperature must be positive and finite"):
            case.soft(points(3, 4), mg.tensor(wrong, dtype=mg.float64))


@pytest.mark.parametrize("wrong", ["1", None, True, mg.ones(2), mg.tensor(1)], ids=repr)
@each
def test_a_temperature_is_a_number(case: Case, wrong: Any) -> None:
    with pytest.raises((TypeError, mg.errors.ShapeError), match=r"relax\.\w+: "):
        case.soft(points(3, 4), wrong)


@pytest.mark.parametrize("wrong", [mg.ones(3, 4, dtype=mg.int64), mg.ones(3, 4, dtype=mg.bool), mg.ones(3, 4, dtype=mg.complex64), [[1.0, 2.0]], None], ids=["int64", "bool", "complex", "list", "None"])
@pytest.mark.parametrize("name", sorted({c.name.partition("-")[0] for c in CASES}))
def test_the_input_has_a_derivative(name: str, wrong: Any) -> None:
    more: list[Any] = {"where": [1.0, 0.0], "topk": [1], "topk_mask": [1]}.get(name, [1.0] if name in ("eq", "ge", "gt", "le", "lt", "maximum", "minimum", "ne") else [])
    with pytest.raises(TypeError, match=rf"relax\.{name}: expects a") as raised:
        getattr(relax, name)(wrong, *more)
    assert raised.value.fix


@pytest.mark.parametrize("name", ["argmax", "argmin", "argsort", "gumbel_softmax", "max", "min", "one_hot", "permutation", "rank", "sort"])
def test_a_dimension_is_one_of_the_input_and_has_elements(name: str) -> None:
    function = getattr(relax, name)
    with pytest.raises(IndexError, match=rf"relax\.{name}: Dimension out of range"):
        function(mg.ones(2, 3), 2)
    with pytest.raises(RuntimeError, match=rf"relax\.{name}: dimension 1 .* has no elements"):
        function(mg.ones(2, 0), 1)


@pytest.mark.parametrize("name", ["argsort", "permutation", "rank", "sort"])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_compared_with_all_others_is_finite(name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=rf"relax\.{name}: the input holds inf or nan"):
        getattr(relax, name)(mg.tensor([1.0, wrong]))


def test_a_number_is_a_tensor_of_no_dimensions() -> None:
    x = mg.tensor(2.5)
    assert relax.one_hot(x).tolist() == relax.one_hot(x, hard=True).tolist() == 1 and relax.argmax(x).tolist() == relax.argmax(x, 0).tolist() == 0
    assert [v.tolist() for v in relax.sort(x)] == [v.tolist() for v in relax.topk(x, 1)] == [2.5, 0] and relax.rank(x).tolist() == 0
    assert relax.max(x).tolist() == relax.min(x).tolist() == 2.5 and relax.permutation(x).tolist() == [[1]] and relax.topk_mask(x, 1).tolist() == 1
