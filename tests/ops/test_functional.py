"""Jacobians, Hessians and products with them, and the check by differences, of functions that write."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.autograd import functional, gradcheck, gradgradcheck


def program(x: Any, y: Any) -> Any:
    """Overwrites part of a product, through a view, with what was read from it."""
    z = x * y.sum()
    z[1:] = z[:-1] * y
    z[0] *= x[2]
    return z


def inputs() -> tuple[Any, Any]:
    return mg.tensor([1.0, 2.0, 3.0], dtype=mg.float64), mg.tensor([0.5, -1.5], dtype=mg.float64)


def by_differences(f: Any, values: tuple[Any, ...], k: int) -> Any:
    columns = []
    for i in range(values[k].numel()):
        ends = []
        for h in (1e-6, -1e-6):
            moved = [v.clone() for v in values]
            moved[k].reshape(-1)[i] += h
            ends.append(f(*moved).numpy())
        columns.append((ends[0] - ends[1]) / 2e-6)
    return np.stack(columns, -1)


def test_jacobian() -> None:
    for k, found in enumerate(functional.jacobian(program, inputs())):
        np.testing.assert_allclose(found.numpy(), by_differences(program, inputs(), k), atol=1e-7)


def test_products_agree_with_the_jacobian() -> None:
    jx, jy = functional.jacobian(program, inputs())
    v, (dx, dy) = mg.tensor([1.0, -2.0, 0.5], dtype=mg.float64), (mg.tensor([0.1, 0.2, -0.3], dtype=mg.float64), mg.tensor([2.0, 1.0], dtype=mg.float64))
    out, (gx, gy) = functional.vjp(program, inputs(), v)
    np.testing.assert_allclose(out.numpy(), program(*inputs()).numpy())
    np.testing.assert_allclose(gx.numpy(), (v @ jx).numpy())
    np.testing.assert_allclose(gy.numpy(), (v @ jy).numpy())
    _, tangent = functional.jvp(program, inputs(), (dx, dy))
    np.testing.assert_allclose(tangent.numpy(), (jx @ dx + jy @ dy).numpy())


def test_hessian_and_its_products() -> None:
    def loss(x: Any, y: Any) -> Any:
        return (program(x, y) ** 2).sum()

    h = functional.hessian(loss, inputs())
    v = (mg.tensor([0.1, 0.2, -0.3], dtype=mg.float64), mg.tensor([2.0, 1.0], dtype=mg.float64))
    for product in (functional.hvp, functional.vhp):
        value, found = product(loss, inputs(), v)
        assert value.item() == pytest.approx(loss(*inputs()).item())
        for i in range(2):
            np.testing.assert_allclose(found[i].numpy(), sum(h[i][k] @ v[k] for k in range(2)).numpy())
    for i in range(2):
        def slope(*values: Any, i: int = i) -> Any:
            xs = [x.detach().requires_grad_() for x in values]
            return mg.autograd.grad(loss(*xs), xs)[i]
        for k in range(2):
            np.testing.assert_allclose(h[i][k].numpy(), by_differences(slope, inputs(), k), atol=1e-5)


def test_shapes_follow_what_was_given() -> None:
    x = mg.tensor(2.0)
    assert functional.jacobian(lambda x: x * x, x).shape == ()
    assert isinstance(functional.jacobian(lambda x: (x, x * x), x), tuple)
    assert functional.jacobian(lambda x: mg.stack([x, x * x]), (x,))[0].tolist() == [1.0, 4.0]
    assert functional.jvp(lambda x: x ** 3, x)[1].item() == 12.0


def test_mistakes_are_named() -> None:
    x = mg.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="can only be None"):
        functional.vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match="invalid size"):
        functional.jvp(lambda x: x, x, mg.ones(3))
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda x: x, x)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.vjp(lambda x: mg.tensor(1.0), x, strict=True)
    with pytest.raises(TypeError):
        functional.jacobian(lambda x: 3, x)


def test_create_graph() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    j = functional.jacobian(lambda x: x ** 3, x, create_graph=True)
    j.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


class WrongSquare(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0]


def test_gradcheck() -> None:
    x, y = (v.requires_grad_() for v in inputs())
    assert gradcheck(program, (x, y)) and gradgradcheck(program, (x, y))
    z = mg.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
    assert gradcheck(lambda z: z * z.conj() + z ** 2, (z.to(mg.complex128).detach().requires_grad_(),))
    with pytest.raises(RuntimeError, match="by differences"):
        gradcheck(WrongSquare.apply, (x,))
    assert not gradcheck(WrongSquare.apply, (x,), raise_exception=False)
    with pytest.raises(ValueError, match="require gradient"):
        gradcheck(program, inputs())


def test_gradcheck_is_a_module_too() -> None:
    module = importlib.import_module("mutagrad.autograd.gradcheck")
    x = mg.tensor([1.0], dtype=mg.float64, requires_grad=True)
    assert module.gradcheck(lambda x: x * x, (x,)) and module(lambda x: x * x, (x,)) and mg.autograd.gradcheck(lambda x: x * x, (x,))


def test_what_gradcheck_finds() -> None:
    x = mg.tensor([1.0, 2.0], dtype=mg.float64, requires_grad=True)

    def hooked(hook: Any) -> Any:
        def f(x: Any) -> Any:
            y = x * 1
            y.register_hook(hook)
            return y
        return f

    def shape_changes(x: Any) -> Any:
        return mg.cat([x, x]) if x[0] >= 1 else x

    for f, error, said in (
            (hooked(lambda g: g + 0.01), RuntimeError, "Jacobian mismatch for output 0 with respect to input 0"),
            (hooked(lambda g: g * (1 + 1e-6 * mg.rand(2, dtype=mg.float64))), RuntimeError, "not reentrant"),
            (lambda x: x.detach() * 1, RuntimeError, "expected to be zero"), (shape_changes, AssertionError, "same shape")):
        with pytest.raises(error, match=said):
            gradcheck(f, (x,))
    with pytest.raises(RuntimeError, match="multiplied by grad_output"):
        gradcheck(hooked(lambda g: g + 0.01), (x,), atol=0.1)
    assert gradcheck(hooked(lambda g: g * (1 + 1e-6 * mg.rand(2, dtype=mg.float64))), (x,), nondet_tol=1e-5)
    for fast in (False, True):  # beside a result, what has no history is a constant, as in PyTorch
        assert gradcheck(lambda x: (x.detach() * 3, x * 2), (x,), fast_mode=fast, check_forward_ad=True)
        with pytest.raises(RuntimeError, match="mismatch for output 0"):
            gradcheck(lambda x: (x.detach() * 3, hooked(lambda g: g + 0.01)(x)), (x,), fast_mode=fast)
    with pytest.warns(UserWarning, match="double precision"):
        assert gradcheck(lambda x: x * 1, (mg.ones(1, requires_grad=True),), atol=0.1) and gradcheck(lambda x: (), (x,))


def test_strategies_have_pytorchs_restrictions() -> None:
    x = mg.tensor([1.0, 2.0])
    assert functional.jacobian(mg.sin, x, vectorize=True, strategy="forward-mode").shape == (2, 2)
    for settings, error in (({"strategy": "forward-mode"}, NotImplementedError), ({"strategy": "some"}, ValueError),
                            ({"strict": True, "vectorize": True}, RuntimeError)):
        with pytest.raises(error):
            functional.jacobian(mg.sin, x, **settings)
    with pytest.raises(RuntimeError, match=r"Jacobian .* independent of input 0"):
        functional.jacobian(lambda x: x * 4, x.requires_grad_(), create_graph=True, strict=True)
    with pytest.raises(RuntimeError, match="single Tensor"):
        functional.hessian(lambda x: (x.sum(), x.sum()), x)


@pytest.mark.parametrize("piece", ["relu", "relu6", "leaky_relu", "hardtanh", "relu_"])
def test_second_derivatives_of_straight_pieces_are_zero(piece: str) -> None:
    """As PyTorch's are: a Hessian, or a loss of second derivatives, need not know that a network is piecewise linear."""
    x = mg.tensor([0.5, -0.7, 1.2, -2.0], requires_grad=True)
    slope, = mg.autograd.grad(getattr(mg.nn.functional, piece)(x * 1).sum(), x, create_graph=True)
    curvature, = mg.autograd.grad(slope.sum(), x)
    assert curvature.tolist() == [0, 0, 0, 0]
