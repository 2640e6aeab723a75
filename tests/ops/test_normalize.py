"""Normalisation beyond single values: running statistics, the results without gradient, and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg

F = mg.nn.functional


def drawn(*shape: int) -> Any:
    return mg.tensor(np.random.default_rng(1).normal(size=shape))


def test_running_statistics_follow_the_batch_without_gradient() -> None:
    x, mean, var = drawn(6, 3, 4).requires_grad_(), mg.zeros(3).double(), mg.ones(3).double()
    F.batch_norm(x, mean, var, training=True, momentum=0.25).sum().backward()
    a = x.detach().numpy()
    assert not mean.requires_grad and mean._version == var._version == 2
    np.testing.assert_allclose(mean.numpy(), 0.25 * a.mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.75 + 0.25 * a.var((0, 2), ddof=1))
    before = mean.tolist()
    F.batch_norm(x, mean, var)
    assert mean.tolist() == before


def test_instances_average_their_statistics() -> None:
    x, mean, var = drawn(6, 3, 4), mg.zeros(3).double(), mg.ones(3).double()
    F.instance_norm(x, mean, var)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.numpy().mean((0, 2)))
    np.testing.assert_allclose(var.numpy(), 0.9 + 0.1 * x.numpy().var(2, ddof=1).mean(0))


def test_running_statistics_may_change_before_the_sweep() -> None:
    x, mean, var = drawn(20, 3).requires_grad_(), mg.zeros(3).double(), mg.full((3,), 4.0).double()
    y = F.batch_norm(x, mean, var, eps=0.0)
    var.zero_()
    y.sum().backward()
    assert np.allclose(x.grad.numpy(), 0.5)


def test_native_forms_also_give_what_was_divided_by() -> None:
    x = drawn(5, 7).requires_grad_()
    out, mean, scale = mg.native_layer_norm(x, (7,), None, None, 1e-5)
    a = x.detach().numpy()
    np.testing.assert_allclose(mean.numpy()[:, 0], a.mean(1))
    np.testing.assert_allclose(scale.numpy()[:, 0], 1 / np.sqrt(a.var(1) + 1e-5))
    assert out.requires_grad and not mean.requires_grad and not scale.requires_grad
    expected, = mg.autograd.grad((F.layer_norm(x, (7,)) * mg.arange(7)).sum(), x)
    mean.zero_(), scale.zero_()
    (out * mg.arange(7)).sum().backward()
    assert np.array_equal(x.grad.numpy(), expected.numpy())
    _, mean, scale = mg.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    np.testing.assert_allclose(mean.numpy(), a.mean(0))
    np.testing.assert_allclose(scale.numpy(), 1 / np.sqrt(a.var(0) + 1e-5))


@pytest.mark.parametrize("shape", [(600, 512), (40, 8, 1024), (4, 6, 128, 64), (200_000, 2), (3, 90_000)])
def test_large_arrays_give_what_small_ones_give(shape: tuple[int, ...]) -> None:
    """Blocks and threads: against the rules for recorded sweeps, which know neither."""
    array = np.random.default_rng(2).normal(size=shape)
    g = mg.tensor(np.random.default_rng(3).normal(size=shape))
    sides = shape[-1:], (shape[1],)
    for function, n in ((lambda x, w, b: F.layer_norm(x, sides[0], w, b), 0), (lambda x, w, b: F.group_norm(x, 2, w, b) if shape[1] % 2 == 0 else x * w + b, 1),
                        (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), 1)):
        if n and shape[1] > 5000:
            continue
        leaves = [mg.tensor(a, requires_grad=True) for a in (array, np.linspace(0.5, 1.5, sides[n][0]), np.linspace(-1, 1, sides[n][0]))]
        raw = mg.autograd.grad(function(*leaves), leaves, g)
        recorded = mg.autograd.grad(function(*leaves), leaves, g, create_graph=True)
        for a, b in zip(raw, recorded):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-9, 1e-9)


@pytest.mark.parametrize(("call", "error"), [
    (lambda x: F.layer_norm(x, (5,)), RuntimeError),
    (lambda x: F.layer_norm(x, ()), RuntimeError),
    (lambda x: F.layer_norm(x, (7,), mg.ones(7)), RuntimeError),
    (lambda x: F.layer_norm(x, (7,), [1.0] * 7), TypeError),
    (lambda x: F.layer_norm(x.long(), (7,)), RuntimeError),
    (lambda x: F.layer_norm([[1.0]], (1,)), TypeError),
    (lambda x: F.rms_norm(x, (5,)), RuntimeError),
    (lambda x: F.group_norm(x, 2), RuntimeError),
    (lambda x: F.batch_norm(x, None, None), RuntimeError),
    (lambda x: F.batch_norm(x[:1], None, None, training=True), ValueError),
    (lambda x: F.batch_norm(x, mg.ones(5).double(), mg.ones(5).double()), RuntimeError),
    (lambda x: F.instance_norm(x.unsqueeze(-1)), ValueError),
    (lambda x: F.local_response_norm(x, 2), RuntimeError),
])
def test_bad_input(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as raised:
        call(drawn(5, 7))
    assert isinstance(raised.value, mg.MutagradError)


@pytest.mark.parametrize("dtype", [mg.float16, mg.bfloat16])
@pytest.mark.parametrize("norm", [
    lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), lambda x, w, b: F.group_norm(x, 1, w, b),
    lambda x, w, b: F.layer_norm(x.mT, (2,), w, b).mT])
def test_short_inputs_with_weights_of_float32(norm: Any, dtype: Any) -> None:
    x, w, b = drawn(3, 2, 4).to(dtype).requires_grad_(), mg.tensor([1.5, 0.5], requires_grad=True), mg.zeros(2, requires_grad=True)
    y = norm(x, w, b)
    (y.float() ** 2).sum().backward()
    assert y.dtype is x.grad.dtype is dtype and w.grad.dtype is mg.float32
    assert mg.allclose(y.float(), norm(x.float(), w, b), atol=2e-2)
