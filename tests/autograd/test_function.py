"""`autograd.Function`: operations that users define."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad.autograd import Function
from tools import N, leaf, ramp, same

# ---------------------------------------------------------------------------------------------------------------- Function

class Multiply(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, scale: float) -> Any:
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        Multiply.needed = ctx.needs_input_grad
        return g * y * ctx.scale, g * x * ctx.scale, None


@pytest.mark.parametrize("size", [2, N])
def test_function(size: int) -> None:
    x, y = ramp(size), ramp(size)
    out = Multiply.apply(x, y, 3.0)
    assert out.grad_fn.name().startswith("Multiply")
    out.sum().backward()
    same(x.grad, 3 * np.arange(1, size + 1))
    assert Multiply.needed == (True, True, False)
    Multiply.apply(x, y.detach(), 3.0).sum().backward()
    assert Multiply.needed == (True, False, False)
    assert not Multiply.apply(x.detach(), y.detach(), 3.0).requires_grad
    with mg.no_grad():
        assert not Multiply.apply(x, y, 3.0).requires_grad


@pytest.mark.parametrize("size", [2, N])
def test_function_saves_values_that_are_overwritten_later(size: int) -> None:
    x = ramp(size)
    a, b = x * 1, x * 2
    out = Multiply.apply(a, b, 1.0)
    a.zero_()
    b.data.zero_()
    out.sum().backward()
    same(x.grad, 4 * np.arange(1, size + 1))


def test_double_backward_through_a_function() -> None:
    x, y = leaf(2.0, 3.0), leaf(5.0, 7.0)
    g, = mg.autograd.grad((Multiply.apply(x, y, 2.0) ** 2).sum(), x, create_graph=True)
    same(g, [8 * 2 * 25, 8 * 3 * 49])
    gxx, gxy = mg.autograd.grad(g.sum(), (x, y))
    same(gxx, [8 * 25, 8 * 49])
    same(gxy, [16 * 2 * 5, 16 * 3 * 7])


def test_function_in_the_setup_context_style() -> None:
    class Square(Function):
        @staticmethod
        def forward(x: Any, power: int) -> Any:
            return x**power

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, ctx.power = inputs
            ctx.save_for_backward(x, output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, output = ctx.saved_tensors
            return ctx.power * g * output / x, None

    x = leaf(2.0, 3.0)
    g, = mg.autograd.grad(Square.apply(x, 3).sum(), x, create_graph=True)
    same(g, [12, 27])
    same(mg.autograd.grad(g.sum(), x)[0], [12, 18])  # through the saved output, too


class Several(Function):
    """Sum, difference and order of two inputs."""

    seen: Any = None
    materialize = True

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(Several.materialize)
        bigger, kept = x > y, (x * 1)
        ctx.mark_non_differentiable(bigger, kept)
        return x + y, x - y, bigger, kept

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        Several.seen = [None if g is None else g.tolist() for g in grads]
        total = [mg.zeros(2) if g is None else g for g in grads[:2]]
        return total[0] + total[1], total[0] - total[1]


@pytest.mark.parametrize("materialize", [True, False])
def test_functions_with_several_outputs(materialize: bool) -> None:
    Several.materialize = materialize
    x, y = leaf(1.0, 2.0), leaf(2.0, 1.0)
    total, difference, bigger, kept = Several.apply(x, y)
    assert total.requires_grad and difference.requires_grad and not bigger.requires_grad and not kept.requires_grad and bigger.tolist() == [False, True]
    (difference * 3).sum().backward()
    same(x.grad, [3, 3])
    same(y.grad, [-3, -3])
    assert Several.seen[1] == [3, 3] and Several.seen[0] == ([0, 0] if materialize else None)
    total, difference, *_ = Several.apply(x, y)
    (total * difference).sum().backward()
    same(x.grad, [3 + 2, 3 + 4])


def in_place_function(mark: bool, save_out: bool) -> type[Function]:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(x)
            if mark:
                ctx.mark_dirty(x)
            if save_out:
                ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * (ctx.saved_tensors[0].sqrt() if save_out else 1)

    return Doubled


@pytest.mark.parametrize("size", [2, N])
@pytest.mark.parametrize("mark", [True, False], ids=["marked", "unmarked"])
def test_functions_that_change_their_input(mark: bool, size: int) -> None:
    """One that does not say so is noticed by the version."""
    x = ramp(size)
    y = x * 1
    before = y * y
    z = in_place_function(mark, True).apply(y)
    assert z is y and y._version > 0 and not y.is_leaf
    same(y, np.arange(1, size + 1) ** 2)
    (y * 3 + before).sum().backward()
    same(x.grad, 6 * np.arange(1, size + 1) + 2 * np.arange(1, size + 1))


@pytest.mark.parametrize("mark", [True, False], ids=["marked", "unmarked"])
def test_functions_that_change_a_view(mark: bool) -> None:
    x = ramp(N)
    y = x * 1
    in_place_function(mark, True).apply(y[: N // 2])
    y.sum().backward()
    expected = np.ones(N)
    expected[: N // 2] = 2 * np.arange(1, N // 2 + 1)
    same(x.grad, expected)


def test_function_that_changes_a_leaf() -> None:
    x = ramp(3)
    in_place_function(False, True).apply(x)
    (x * 2).sum().backward()
    same(x.grad, [4, 8, 12])


def test_function_that_returns_its_input_or_a_view() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    class Flat(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

    for function in (Same, Flat):
        x = ramp(2, 2)
        out = function.apply(x)
        out.sum().backward()
        same(x.grad, [[7, 7], [7, 7]])


def test_function_errors() -> None:
    def returning(*answers: Any) -> Any:
        class Wrong(Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                return x * y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return answers

        return Wrong

    x = leaf(1.0, 2.0)
    for answers in ((mg.ones(2),), (mg.ones(2),) * 3, (mg.ones(3), None), (1.0, None)):
        with pytest.raises((RuntimeError, TypeError)):
            returning(*answers).apply(x, x).sum().backward()
    returning(None, mg.ones(2)).apply(x, x).sum().backward()
    same(x.grad, [1, 1])
    returning(mg.ones(2), None, None).apply(x, x).sum().backward()
    with pytest.raises(TypeError):
        class Saves(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(3)

        Saves.apply(x)
    with pytest.raises(NotImplementedError):
        Function.apply(x)


def test_a_failing_forward_leaves_recording_on() -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            assert not mg.is_grad_enabled()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Fails.apply(leaf(1.0))
    assert mg.is_grad_enabled()


def test_once_differentiable() -> None:
    class Once(Multiply):
        @staticmethod
        @mg.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x, None

    x = leaf(2.0, 3.0)
    Once.apply(x, x, 1.0).sum().backward()
    same(x.grad, [4, 6])
    g, = mg.autograd.grad(Once.apply(x, x, 1.0).sum(), x, create_graph=True)
    same(g, [4, 6])
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_a_freed_function_says_so() -> None:
    x = leaf(1.0)
    out = Multiply.apply(x, x, 1.0)
    out.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        out.backward()


def test_a_backward_inside_a_backward() -> None:
    class Root(Function):
        """The root of y^3 = x by Newton, differentiated by a sweep of its own."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.detach().abs() ** (1 / 3)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, = ctx.saved_tensors
            with mg.enable_grad():
                z = y.detach().requires_grad_()
                slope, = mg.autograd.grad((z**3).sum(), z)
            return g / slope

    x = mg.tensor([8.0, 27.0], requires_grad=True)
    Root.apply(x).sum().backward()
    same(x.grad, [1 / 12, 1 / 27])


def test_vjp_is_another_name_for_backward() -> None:
    class Twice(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Any) -> Any:
            return g * 2

    class Both(Twice):
        backward = Twice.vjp

    class Neither(Function):
        forward = Twice.forward

    x = leaf(1.0)
    Twice.apply(x).backward()
    same(x.grad, [2])
    for wrong, said in ((Both, "both"), (Neither, "either")):
        with pytest.raises(RuntimeError, match=said):
            wrong.apply(x).backward()


def test_an_output_returned_twice_is_one_tensor() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return (g + h) * 2

    x = leaf(1.0)
    a, b = Same.apply(x)
    assert a is b
    (a + 10 * b).backward()
    same(x.grad, [22])


def test_gradients_of_constant_outputs_may_stay_none() -> None:
    class Marked(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            a, b = x * 1, x * 2
            ctx.mark_non_differentiable(b)
            ctx._materialize_non_diff_grads = False
            return a, b

        @staticmethod
        def backward(ctx: Any, g: Any, nothing: Any) -> Any:
            assert nothing is None
            return g

    x = leaf(1.0)
    Marked.apply(x)[0].backward()
    same(x.grad, [1])


def test_a_context_outlives_its_values() -> None:
    kept: list[Any] = []

    class Kept(Multiply):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            kept.append(ctx)
            return Multiply.backward(ctx, g)

    out = Kept.apply(leaf(1.0), leaf(2.0), 1.0)
    out.backward(retain_graph=True)
    assert out.grad_fn.saved_tensors[1].tolist() == [2]
    del out
    with pytest.raises(RuntimeError, match="gone"):
        _ = kept[0].saved_tensors


def test_old_ways_are_told() -> None:
    class Old(Multiply):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with pytest.warns(DeprecationWarning, match="saved_tensors"):
                return (*ctx.saved_variables, None)

    Old.apply(leaf(1.0), leaf(1.0), 1.0).backward()
    with pytest.warns(DeprecationWarning, match="instantiated"):
        made = Multiply()
    with pytest.raises(RuntimeError, match="apply"):
        made(leaf(1.0))
    assert not Multiply.generate_vmap_rule and issubclass(mg.autograd.function.InplaceFunction, Function)


def test_only_inputs_are_dirty() -> None:
    class Odd(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 3
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = leaf(1.0)
    with pytest.warns(UserWarning, match="not an input"):
        Odd.apply(x).backward()
    same(x.grad, [3])


def test_a_node_is_named_after_its_function_and_knows_its_context() -> None:
    class LongName(Multiply):
        pass

    out = LongName.apply(leaf(1.0), leaf(2.0), 5.0)
    assert out.grad_fn.name() == type(out.grad_fn).__name__ == "LongNameBackward" and type(out.grad_fn) is LongName._backward_cls
    assert out.grad_fn.scale == 5 and "LongNameBackward>" in repr(out)
    out.grad_fn.metadata["note"] = 1
    assert out.grad_fn.metadata["note"] == 1
    with pytest.raises(AttributeError, match="nothing"):
        _ = out.grad_fn.nothing


def test_defaults_of_forward_reach_the_context() -> None:
    class Power(Function):
        @staticmethod
        def forward(x: Any, n: int = 3) -> Any:
            return x ** n

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.x, ctx.n = inputs

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.n * ctx.x ** (ctx.n - 1), None

    x = leaf(2.0)
    Power.apply(x).backward()
    same(x.grad, [12])


class Power(Function):
    @staticmethod
    def forward(ctx, x, y, k=2.0):
        ctx.save_for_backward(x, y)
        ctx.k = k
        return x * y * k

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y * ctx.k, g * x * ctx.k, None)[:len(ctx.needs_input_grad)]


class Separate(Function):
    @staticmethod
    def forward(x, k=2.0):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class Boxed(Function):
    boxed_grads_call = True

    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, grads):
        assert type(grads) is list
        first = grads.pop(0)
        return first * 2, grads.pop() * 3


def test_arguments_by_name():
    x, y = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)
    for call, factor in ((lambda: Power.apply(x, y=y), 2), (lambda: Power.apply(y=y, x=x), 2), (lambda: Power.apply(x, k=5.0, y=y), 5)):
        assert [g.item() for g in mg.autograd.grad(call(), [x, y])] == [3.0 * factor, 2.0 * factor]
    assert mg.autograd.grad(Separate.apply(k=4.0, x=x), x)[0] == 4
    for call, what in ((lambda: Power.apply(x, k=1.0), "missing required argument: 'y'"), (lambda: Power.apply(x, y, z=1), "unexpected keyword argument 'z'")):
        with pytest.raises(TypeError, match=what):
            call()


def test_gradients_in_a_box():
    x, y = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)
    a, b = Boxed.apply(x, y)
    (a * b).backward()
    assert (x.grad.item(), y.grad.item()) == (18.0, 12.0)


class Both(Function):
    """Two outputs, of which the first is needed to differentiate the second."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        square, cube = x * x, x * x * x
        ctx.save_for_backward(x, square)
        return square, cube

    @staticmethod
    def backward(ctx: Any, first: Any, second: Any) -> Any:
        x, square = ctx.saved_tensors
        return 2 * x * first + 3 * square * second


@pytest.mark.parametrize("kept", [True, False])
def test_a_saved_output_has_its_history_when_the_program_has_dropped_it(kept: bool) -> None:
    x = leaf(1.0, 2.0, -3.0)
    outputs = Both.apply(x)
    cube = outputs[1]
    if not kept:
        del outputs
    g, = mg.autograd.grad(cube.sum(), x, create_graph=True)
    same(g, [3.0, 12.0, 27.0])
    same(mg.autograd.grad(g.sum(), x)[0], [6.0, 12.0, -18.0])


class ManySaved(mg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        square = x * x
        ctx.save_for_backward(x, square, x * 3, square)
        return square

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, square, _, again = ctx.saved_tensors
        return g * (2 * x + square - again)


def test_second_derivatives_of_functions_that_save_more_than_their_inputs() -> None:
    x = leaf(1.0, 2.0)
    g, = mg.autograd.grad(ManySaved.apply(x * 1).sum(), x, create_graph=True)
    same(g, [2.0, 4.0])
    same(mg.autograd.grad((g * g).sum(), x)[0], [8.0, 16.0])
