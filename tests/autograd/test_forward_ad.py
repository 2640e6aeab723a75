"""Dual numbers: tangents of everything that has a derivative, writes included."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
from mutagrad.autograd import Function, forward_ad, gradcheck, gradgradcheck
from mutagrad.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tools import leaf, same


def test_values_and_tangents() -> None:
    x, t = mg.tensor([1.0, 2.0]), mg.tensor([1.0, 10.0])
    with dual_level():
        dual = make_dual(x, t)
        assert unpack_dual(dual).tangent is t and unpack_dual(x).tangent is None
        primal, tangent = unpack_dual((dual ** 3).cumsum(0))
        same(primal, [1, 9])
        same(tangent, [3, 123])
        assert not tangent.requires_grad and not primal.requires_grad
        same(unpack_dual(dual.floor()).tangent, [0, 0])
        assert unpack_dual(dual.detach()).tangent is None
        same(unpack_dual(primal * dual).tangent, [1, 90])
    assert unpack_dual(dual).tangent is None


def test_writes_carry_tangents() -> None:
    with dual_level():
        dual = make_dual(mg.tensor([1.0, 2.0, 3.0])[1:], mg.tensor([1.0, 10.0]))
        y = mg.ones(3)
        y[1:] = dual
        y[2] *= 5
        y[0] = y[1] * y[2]
        same(unpack_dual(y).tangent, [15 + 100, 1, 50])
        same(unpack_dual(y[1:]).tangent, [1, 50])


def test_gradients_of_tangents() -> None:
    x = leaf(1.0, 2.0)
    with dual_level():
        tangent = unpack_dual((make_dual(x, mg.tensor([1.0, 10.0])) ** 3).sum()).tangent
    tangent.backward()
    same(x.grad, [6, 120])


def test_levels() -> None:
    with mg.no_grad(), dual_level():
        assert mg.is_grad_enabled() and forward_ad._current_level == 0
        with pytest.raises(RuntimeError, match="Nested"):
            forward_ad.enter_dual_level()
        with pytest.raises(NotImplementedError, match="dual_level"), mg.no_grad():
            pass
    assert forward_ad._current_level == -1
    for call in (forward_ad.exit_dual_level, lambda: make_dual(mg.ones(1), mg.ones(1))):
        with pytest.raises(RuntimeError, match="level"):
            call()


@pytest.mark.parametrize("tangent", [mg.ones(3), mg.ones(2, dtype=mg.float64)])
def test_tangents_must_fit(tangent: Any) -> None:
    with dual_level():
        with pytest.raises(RuntimeError, match="different size or type"):
            make_dual(mg.ones(2), tangent)
        with pytest.raises(ValueError, match="floating point"):
            make_dual(mg.ones(2).int(), mg.ones(2))


class Product(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, y: Any) -> Any:
        ctx.save_for_forward(x, y)
        ctx.factor = factor
        return x * y * factor

    @staticmethod
    def jvp(ctx: Any, dx: Any, nothing: Any, dy: Any) -> Any:
        x, y = ctx.saved_tensors
        assert nothing is None
        return (dx * y + x * dy) * ctx.factor


class Wrong(Product):
    @staticmethod
    def jvp(ctx: Any, dx: Any, nothing: Any, dy: Any) -> Any:
        return dx


def test_a_function_that_knows_its_tangent() -> None:
    x, y = (mg.tensor([v], dtype=mg.float64, requires_grad=True) for v in (2.0, 3.0))
    assert gradcheck(lambda x, y: Product.apply(x, 5.0, y) ** 2, (x, y), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(RuntimeError, match="forward mode mismatch"):
        gradcheck(lambda x, y: Wrong.apply(x, 5.0, y), (x, y), check_forward_ad=True, check_backward_ad=False)


class Doubled(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def jvp(ctx: Any, dx: Any) -> Any:
        return dx.mul_(2)


class TwoTangents(Doubled):
    @staticmethod
    def jvp(ctx: Any, dx: Any) -> Any:
        return dx, dx


def test_a_function_that_writes() -> None:
    with dual_level():
        dual = make_dual(mg.ones(2), mg.ones(2))
        assert Doubled.apply(dual) is dual
        same(unpack_dual(dual * 3).tangent, [6, 6])
        with pytest.raises(RuntimeError, match="2 tangents for 1 outputs"):
            TwoTangents.apply(dual)


def test_forward_mode_is_checked() -> None:
    x = mg.rand(2, dtype=mg.float64, requires_grad=True)
    z = mg.rand(2, dtype=mg.complex128, requires_grad=True)
    assert gradcheck(lambda x, z: (x.sin() * z, z.abs()), (x, z), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda x: x ** 3, (x,), check_fwd_over_rev=True, gen_non_contig_grad_outputs=True)
    with pytest.raises(AssertionError, match="at least one"):
        gradcheck(lambda x: x, (x,), check_backward_ad=False)
