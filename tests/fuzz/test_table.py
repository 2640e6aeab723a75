"""Every operation of the table in three small programs that chance would rarely write for each of them."""

from __future__ import annotations

import numpy as np
import pytest

import mutagrad as mg

from . import table

ONE_OF_EACH = [str(table.of_name(name)[0]) for name in table.NAMES]
SINGLE = [k for k in ONE_OF_EACH if not table.USABLE[k].writes and len(table.USABLE[k].reference(table.inputs(k))) == 1]
STEP = 1e-5


def leaves(arrays):
    return [mg.tensor(a, requires_grad=True) for a in arrays]


def results(key, tensors):
    """The results that have a derivative."""
    return [r for r in table.USABLE[key].call(mg, tensors) if isinstance(r, mg.Tensor) and r.requires_grad]


def numbers(rng, like):
    return rng.normal(size=like.shape) + (1j * rng.normal(size=like.shape) if like.is_complex() else 0)


def weighed(xs, weights):
    """The real part of sum(conj(weights) * xs), over all of them."""
    terms = [(x * mg.tensor(np.conj(w))).sum() for x, w in zip(xs, weights)]
    return sum((t.real if t.is_complex() else t) for t in terms)


def gradients(total, xs, **options):
    return mg.autograd.grad(total, xs, materialize_grads=True, **options)


@pytest.mark.parametrize("key", SINGLE)
def test_a_result_without_a_name_is_written_as_one_with_a_name(key):
    """In `y[1] = f(x)` the node of f itself becomes the write to y."""
    sample = table.USABLE[key]
    function = next(iter(sample.forms(mg).values()))

    def gradient(named):
        xs = leaves(table.inputs(key))
        arguments, settings = sample.bind(xs, mg.tensor)
        result = function(*arguments, **settings)
        y = mg.ones((2, *result.shape), dtype=result.dtype)
        if named:
            y[1] = result
        else:
            del result
            y[1] = function(*arguments, **settings)
        weights = [numbers(np.random.default_rng(1), y)]
        first = gradients(weighed([y], weights), xs, create_graph=True)
        square = sum((g * g).sum() for g in first)
        second = gradients(square, xs) if square.requires_grad else []
        return [g.detach().numpy() for g in (*first, *second)]

    for got, expected in zip(gradient(named=False), gradient(named=True)):
        np.testing.assert_allclose(got, expected, 1e-9, 1e-12)


@pytest.mark.parametrize("recorded", [False, True], ids=["raw", "recorded"])
@pytest.mark.parametrize("key", ONE_OF_EACH)
def test_a_sweep_leaves_everything_as_it_was(key, recorded):
    """Its gradients belong to the caller, who overwrites them here; the next sweep gives the same."""
    xs = leaves(table.inputs(key))
    found = results(key, xs)
    seeds = [mg.tensor(numbers(np.random.default_rng(2), r)) for r in found]
    kept = [*xs, *found, *seeds]
    before = [t.detach().clone().numpy() for t in kept]
    first = mg.autograd.grad(found, xs, seeds, retain_graph=True, create_graph=recorded, materialize_grads=True)
    values = [g.detach().clone().numpy() for g in first]
    for g in first:
        g.data.zero_()
    for t, array in zip(kept, before):
        assert np.array_equal(t.detach().numpy(), array, equal_nan=True)
    again = mg.autograd.grad(found, xs, seeds, materialize_grads=True)
    for g, array in zip(again, values):
        np.testing.assert_allclose(g.numpy(), array, 1e-9, 1e-12)


@pytest.mark.parametrize("key", table.COMPLEX)
def test_second_order_of_complex_numbers(key):
    """Along a direction, against differences of the gradient."""
    rng = np.random.default_rng(4)
    point = [a + 1j * rng.uniform(-0.4, 0.4, a.shape) for a in table.inputs(key)]
    seeds = [numbers(rng, r) for r in results(key, leaves(point))]
    weights, direction = ([numbers(rng, mg.tensor(a)) for a in point] for _ in range(2))

    def slope(arrays, **options):
        xs = leaves(arrays)
        return xs, weighed(gradients(weighed(results(key, xs), seeds), xs, **options), weights)

    ends = [slope([a + h * d for a, d in zip(point, direction)])[1].item() for h in (STEP, -STEP)]
    xs, total = slope(point, create_graph=True)
    second = gradients(total, xs) if total.requires_grad else []
    got = sum((np.conj(g.numpy()) * d).real.sum() for g, d in zip(second, direction))
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * STEP), 1e-5, 1e-5)


IN_COLUMNS = [k for k in ONE_OF_EACH if table.USABLE[k].elementwise and table.in_place_name(k) and not table.USABLE[k].settings]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("key", IN_COLUMNS)
def test_a_column_is_written_as_a_vector_is(key, dtype):
    """For rows of many lengths: NumPy has other loops for some strides than for others, and they can be wrong."""
    write, (values, *others) = table.in_place_name(key), [a.reshape(-1)[:5].astype(dtype) for a in table.inputs(key)]
    others = [mg.tensor(a) for a in others]
    expected = getattr(mg.tensor(values), write)(*others).numpy()
    for width in (2, 3, 4, 5, 8, 16, 32):
        x = mg.tensor(np.repeat(values[:, None], width, axis=1))
        getattr(x[:, 1], write)(*others)
        np.testing.assert_allclose(x[:, 1].numpy(), expected, 1e-6)
        assert np.array_equal(x[:, 0].numpy(), values)
