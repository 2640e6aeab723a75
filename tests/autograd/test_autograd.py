"""The API of differentiation: leaves, graphs, hooks, modes, `grad` and `backward`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import mutagrad as mg
from tools import N, leaf, ramp, same

# ---------------------------------------------------------------------------------------------------- autograd: what tensors say

def test_leaves_and_computed_tensors() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    assert x.is_leaf and x.grad_fn is None and x.grad is None and not y.is_leaf and y.requires_grad
    assert mg.ones(1).is_leaf and not mg.ones(1).requires_grad
    assert x.requires_grad_(False) is x and not x.requires_grad
    x.requires_grad = True
    assert x.requires_grad
    with pytest.raises(RuntimeError):
        y.requires_grad_(False)
    assert y.requires_grad_() is y


def test_a_view_can_be_a_leaf() -> None:
    base = mg.zeros(2, 3)
    row = base[1].requires_grad_()
    assert row.is_leaf and not base.requires_grad
    (row * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    same(row.grad, [1, 2, 3])


def test_grad_fn() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    z = y.sum()
    assert z.grad_fn.name() == "SumBackward0" and y.grad_fn.name() == "MulBackward0" and mg.cat([x, x]).grad_fn.name() == "CatBackward0"
    (made, number), = z.grad_fn.next_functions
    assert made is y.grad_fn and number == 0
    accumulate = y.grad_fn.next_functions[0][0]
    assert "AccumulateGrad" in accumulate.name() and accumulate.variable is x and accumulate.next_functions == ()
    assert "test_autograd.py" in y.grad_fn.metadata["where"] and "y = x * 2" in repr(y.grad_fn)
    view = x[0].grad_fn
    assert view.name() and view.next_functions[0][0] is accumulate
    y[0] = 1.0
    assert y.grad_fn is not made and made in [f for f, _ in y.grad_fn.next_functions]


def test_versions() -> None:
    x = mg.zeros(4)
    assert x._version == 0
    x.add_(1)
    x[0] = 2.0
    x[1:].mul_(2)
    assert x._version == x[2]._version == x.detach()._version == 3
    x.detach().zero_()
    with mg.no_grad():
        x += 1
    assert x._version == 5
    x + 1
    assert x._version == 5


def test_data_setter() -> None:
    x = leaf(1.0, 2.0)
    old = x * x
    x.data = mg.tensor([5.0, 6.0])
    assert x.is_leaf and x.requires_grad and x.tolist() == [5, 6]
    (x * x).sum().backward()
    old.sum().backward()  # the graph of the old value still leads to x
    same(x.grad, [10 + 2, 12 + 4])
    old, x.data, x.grad = x * x, mg.ones(3), None
    assert x.shape == (3,)
    with pytest.raises(RuntimeError):  # a gradient of the old shape has no place any more
        old.sum().backward()
    plain, other = mg.zeros(2), mg.ones(2)
    plain.data = other
    other[0] = 9.0
    assert plain.tolist() == [9, 1]
    with pytest.raises((TypeError, RuntimeError)):
        x.data = "a"


def test_grad_setter() -> None:
    x = leaf(1.0, 2.0)
    x.grad = mg.ones(2)
    (x * 2).sum().backward()
    same(x.grad, [3, 3])
    held, version = x.grad, x.grad._version
    (x * 2).sum().backward()
    assert held is x.grad and held._version > version
    x.grad = None
    assert x.grad is None
    for wrong in (mg.ones(3), mg.ones(2, dtype=mg.float64), 1.0):
        with pytest.raises((RuntimeError, TypeError)):
            x.grad = wrong
    del x.grad
    assert x.grad is None


def test_retain_grad() -> None:
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    x.retain_grad()
    assert y.retains_grad and not (x * 2).retains_grad
    z = y * y
    v = z[:1]
    v.retain_grad()
    (z * 3).sum().backward()
    same(y.grad, [12, 24])
    same(v.grad, [3])
    same(x.grad, [24, 48])
    with pytest.raises(RuntimeError):
        mg.ones(1).retain_grad()


# ------------------------------------------------------------------------------------------------------------------- hooks

def test_hooks_on_leaves_computed_tensors_and_views() -> None:
    x = ramp(4)
    y = x * 2
    seen: dict[str, Any] = {}
    x.register_hook(lambda g: seen.__setitem__("x", g.tolist()))
    y.register_hook(lambda g: seen.__setitem__("y", g.tolist()))
    y[1:3].register_hook(lambda g: seen.__setitem__("view", g.tolist()))
    (y * mg.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert seen == {"x": [2, 4, 6, 8], "y": [1, 2, 3, 4], "view": [2, 3]}


@pytest.mark.parametrize("create_graph", [False, True])
def test_hooks_replace_the_gradient(create_graph: bool) -> None:
    x = ramp(4)
    x.register_hook(lambda g: g + 100)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y[1:3].register_hook(lambda g: -g)
    y.sum().backward(create_graph=create_graph)
    same(x.grad, [120, 80, 80, 120])


def test_hooks_see_the_version_that_they_were_registered_on() -> None:
    x, seen = ramp(3), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    y[0] = 5.0
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1, 1, 1], [0, 1, 1]]


def test_what_hooks_see_is_theirs_to_keep() -> None:
    x, kept = ramp(N), []
    y = x * 2
    y[0] = 5.0
    y.register_hook(kept.append)
    x.register_hook(kept.append)
    y.sum().backward()
    x.grad.zero_()
    same(kept[0], [1] * N)
    same(kept[1], [0] + [2] * (N - 1))


@pytest.mark.parametrize("key", [0, slice(0, 2)])
def test_what_a_hook_keeps_stays_when_what_was_written_before_is_reversed(key: Any) -> None:
    kept: list[Any] = []
    x = mg.ones(4, requires_grad=True)
    y = x * 2
    y[key] = y[1:2].sum() * 3
    y.register_hook(kept.append)
    y[2] = 5.0
    y[3] = y[0] * y[1]
    y.sum().backward()
    assert kept[0].tolist() == [1 + y[1].item(), 1 + y[0].item(), 0, 0]


def test_hooks_run_in_order_and_can_be_removed() -> None:
    x, calls = ramp(2), []
    first = x.register_hook(lambda g: calls.append("first"))
    with x.register_hook(lambda g: calls.append("second")):
        x.sum().backward()
    x.sum().backward()
    first.remove()
    first.remove()
    x.sum().backward()
    assert calls == ["first", "second", "first"]


def test_a_hook_cannot_change_the_gradient_in_place_by_accident() -> None:
    x, y = ramp(3), ramp(3)
    z = x + y
    x.register_hook(lambda g: g.mul_(5))
    z.sum().backward()
    same(x.grad, [5, 5, 5])
    same(y.grad, [1, 1, 1])


def test_bad_hooks() -> None:
    x = ramp(2)
    x.register_hook(lambda g: mg.ones(3))
    with pytest.raises((TypeError, RuntimeError)):
        x.sum().backward()
    assert x.grad is None
    with pytest.raises(RuntimeError):
        mg.ones(1).register_hook(print)


def test_an_exception_in_a_hook_leaves_nothing_behind() -> None:
    x, y = ramp(N), ramp(N)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * y).sum().backward()
    assert mg.is_grad_enabled()
    (y * y).sum().backward()


def test_hooks_after_accumulation() -> None:
    x, seen = ramp(2), []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    x.sum().backward()
    x.sum().backward()
    handle.remove()
    x.sum().backward()
    assert seen == [[1, 1], [2, 2]]
    with pytest.raises(RuntimeError):
        (x * 2).register_post_accumulate_grad_hook(print)


# ------------------------------------------------------------------------------------------------------------------- modes

@pytest.fixture(autouse=True)
def recording() -> Iterator[None]:
    """Whatever a test that fails left behind."""
    yield
    mg.set_grad_enabled(True)


OFF = {"no_grad": mg.no_grad, "inference_mode": mg.inference_mode, "set_grad_enabled": lambda: mg.set_grad_enabled(False)}


@pytest.mark.parametrize("mode", OFF.values(), ids=OFF)
def test_modes_as_context_managers_and_decorators(mode: Any) -> None:
    x = leaf(1.0)
    with mode():
        assert not mg.is_grad_enabled() and not (x * 2).requires_grad
        with mg.enable_grad():
            assert mg.is_grad_enabled() or mode is mg.inference_mode
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), mode():
        raise ZeroDivisionError
    assert mg.is_grad_enabled()

    @mode()
    def f(v: Any, *, scale: float = 1) -> Any:
        """Doubles."""
        assert not mg.is_grad_enabled()
        return v * 2 * scale

    assert mg.is_grad_enabled() and not f(x, scale=3).requires_grad and mg.is_grad_enabled() and f.__name__ == "f" and f.__doc__ == "Doubles."


@pytest.mark.parametrize("mode", [mg.no_grad, mg.inference_mode])
def test_modes_as_decorators_without_parentheses(mode: Any) -> None:
    @mode
    def f(v: Any) -> Any:
        return v * 2

    assert not f(leaf(1.0)).requires_grad and f.__name__ == "f"


def test_one_mode_object_can_be_nested() -> None:
    off = mg.no_grad()
    with off, off:
        assert not mg.is_grad_enabled()
    assert mg.is_grad_enabled()


def test_set_grad_enabled_acts_at_once() -> None:
    try:
        mg.set_grad_enabled(False)
        assert not mg.is_grad_enabled()
        with mg.set_grad_enabled(True):
            assert mg.is_grad_enabled()
        assert not mg.is_grad_enabled()
    finally:
        mg.set_grad_enabled(True)
    with mg.set_grad_enabled(mode=False):
        assert not mg.is_grad_enabled()
    with mg.inference_mode(mode=False):
        assert mg.is_grad_enabled()


def test_a_decorated_generator_keeps_its_mode() -> None:
    @mg.no_grad()
    def numbers() -> Iterator[bool]:
        for _ in range(2):
            yield mg.is_grad_enabled()

    found = []
    for value in numbers():
        found.append(value)
        assert mg.is_grad_enabled()
    assert found == [False, False]


# -------------------------------------------------------------------------------------------------------- grad and backward

def test_grad_options() -> None:
    x, y, z = leaf(1.0, 2.0), leaf(3.0, 4.0), leaf(5.0)
    out = x * y
    gx, gy = mg.autograd.grad(out, (x, y), mg.tensor([1.0, 10.0]), retain_graph=True)
    same(gx, [3, 40])
    same(gy, [1, 20])
    assert x.grad is None and not gx.requires_grad
    with pytest.raises(RuntimeError, match="influence"):
        mg.autograd.grad(out, z, retain_graph=True)
    assert mg.autograd.grad(out, [z], retain_graph=True, allow_unused=True) == (None,)
    same(mg.autograd.grad(out, z, retain_graph=True, materialize_grads=True)[0], [0])
    a, b = mg.autograd.grad([out, out * out], [x, x], [mg.ones(2), mg.ones(2)], retain_graph=True)
    same(a, [3 + 18, 4 + 64])
    same(b, [3 + 18, 4 + 64])
    same(mg.autograd.grad(outputs=out, inputs=out)[0], [1, 1])
    with pytest.raises(RuntimeError):
        mg.autograd.grad(out, mg.ones(2))
    with pytest.raises(RuntimeError):
        mg.autograd.grad(mg.ones(2), x)


def test_grad_through_computed_tensors_visits_only_what_is_needed() -> None:
    x = ramp(N)
    y = x * x
    z = (y * 3).sum()
    before = mg.stats()
    same(mg.autograd.grad(z, y, retain_graph=True)[0], [3.0] * N)
    assert (mg.stats() - before).nodes <= 3
    z.backward()


def test_higher_orders() -> None:
    x = mg.tensor(2.0, dtype=mg.float64, requires_grad=True)
    y, expected = x**5, [80, 160, 240, 240, 120, 0]
    for e in expected[:-1]:
        y, = mg.autograd.grad(y, x, create_graph=True)
        assert math.isclose(y.item(), e)


def test_backward_with_create_graph() -> None:
    x = leaf(2.0, 3.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    g = x.grad
    x.grad = None
    g.sum().backward()
    same(x.grad, [12, 18])


def test_backward_arguments() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = x * y
    out.backward(mg.tensor([1.0, 10.0]), retain_graph=True, inputs=[x])
    assert y.grad is None
    same(x.grad, [3, 40])
    middle = x * 2
    (middle * y).backward(gradient=mg.ones(2), inputs=middle, retain_graph=True)
    same(middle.grad, [3, 4])
    mg.autograd.backward([out, out], [mg.ones(2), mg.ones(2)])
    same(y.grad, [2, 4])
    for wrong in (mg.ones(3), 1.0, mg.ones(2, dtype=mg.int64)):
        with pytest.raises((RuntimeError, TypeError)):
            (x * y).backward(wrong)
    with pytest.raises((RuntimeError, TypeError)):
        (x * y).backward(inputs=[])
    with pytest.raises(RuntimeError, match="does not require grad"):
        mg.ones(2).backward()


def test_gradients_accumulate_and_are_the_users_own() -> None:
    x, y = ramp(N), ramp(N)
    z = x + y
    z.sum().backward()
    x.grad.mul_(5)
    same(y.grad, [1] * N)
    seed = mg.ones(N, dtype=mg.float64)
    x.grad = y.grad = None
    (x + 0).backward(seed)
    x.grad.zero_()
    same(seed, [1] * N)


def test_an_element_of_another_type_than_its_result() -> None:
    """abs of a complex element is real; the adjoint of the storage it was read from is complex."""
    c = mg.tensor([3 + 4j, 1 - 1j, 2j], dtype=mg.complex128, requires_grad=True)
    (c[0].abs() * 5 + c[2].abs()).backward()
    assert mg.allclose(c.grad, mg.tensor([3 + 4j, 0, 1j], dtype=mg.complex128))


# ------------------------------------------------------------------------------------------------------------------- nan


def test_a_loss_that_is_nan_warns_once_for_each_line_and_says_where_it_began() -> None:
    x = mg.tensor([-1.0, 4.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for _ in range(3):
            loss = (x.log() * 2 + 1).sum()
            loss.backward()
        loss = (x.log() * 2 + 1).sum()
        loss.backward()
    assert len(caught) == 2 and caught[0].filename == __file__ and caught[0].lineno != caught[1].lineno
    assert "the loss is nan" in str(caught[0].message) and "the first nan was made by log at" in str(caught[0].message)
    assert x.grad.tolist() == [-8.0, 2.0]


@pytest.mark.parametrize(("expression", "culprit"), [
    ("(x / (x - 1) * 0).exp().sum()", "seen in exp"), ("(x * bad).sum()", "a constant, which mul read"), ("(leaf * leaf).sum()", "a leaf, which mul read"),
    ("(x - 2).sqrt().tanh().sum()", "made by sqrt"), ("copied(x).sum()", "made by log"), ("(x.log() / x.log()).sum()", "in div at")])
def test_the_first_nan_is_named(expression: str, culprit: str) -> None:
    def copied(x: mg.Tensor) -> mg.Tensor:
        y = mg.zeros(2)
        y[:] = (-x).log()
        y *= 3
        return y

    x, leaf = mg.ones(2, requires_grad=True), mg.tensor([math.nan, 1.0], requires_grad=True)
    with mg.autograd.set_nan_policy("raise"), pytest.raises(RuntimeError, match="the loss is nan") as caught:
        eval(expression, {"x": x, "leaf": leaf, "bad": mg.tensor([math.nan, 1.0]), "copied": copied}).backward()
    assert culprit in str(caught.value) and isinstance(caught.value, ValueError) and x.grad is None


def test_policies_about_nan() -> None:
    x = mg.tensor([-1.0], requires_grad=True)
    assert mg.autograd.get_nan_policy() == "warn"
    with mg.autograd.set_nan_policy("ignore"):
        x.log().backward()
        (x * 2).backward(mg.tensor([math.nan]))
    with mg.autograd.set_nan_policy("raise"), pytest.raises(ValueError, match="gradient to start from has nan"):
        (x * 2).backward(mg.tensor([math.nan]))
    with pytest.warns(UserWarning, match="gradient to start from has nan"):
        (x * 2).backward(mg.tensor([math.nan]))
    with pytest.raises(ValueError, match="none of 'ignore', 'warn', 'raise'"):
        mg.autograd.set_nan_policy("shout")
    assert mg.autograd.get_nan_policy() == "warn"


def test_anomalies_are_named_where_they_were_made() -> None:
    x = mg.tensor([0.0, 1.0], requires_grad=True)
    with mg.autograd.detect_anomaly():
        assert mg.autograd.is_anomaly_enabled()
        y = (x.sqrt() * mg.tensor([0.0, 1.0])).sum()
        y.backward()  # strong zeros: nothing is wrong here
        z = (x * 0).sqrt().sum()
        with pytest.raises(RuntimeError, match="'MulBackward0' returned nan") as caught:
            z.backward()
        assert "test_autograd.py" in str(caught.value)
    assert not mg.autograd.is_anomaly_enabled()
    before = mg.autograd.set_detect_anomaly(True)
    assert mg.autograd.is_anomaly_enabled()
    with before:
        pass
    assert not mg.autograd.is_anomaly_enabled()
    with mg.autograd.set_detect_anomaly(True):
        assert mg.autograd.is_anomaly_enabled()
    assert not mg.autograd.is_anomaly_enabled()


def test_hooks_on_one_tensor_are_shown_the_same_gradient() -> None:
    """Some libraries leave a note on it for the next hook."""
    for part in (slice(None), slice(1, None)):
        x, seen = mg.tensor([1.0, 2.0, 3.0], requires_grad=True), []
        y = (x * 2)[part]
        y.register_hook(lambda g, seen=seen: seen.append(g))
        y.register_hook(lambda g: setattr(g, "note", 7) or g * 3)
        y.register_hook(lambda g, seen=seen: seen.append(g))
        y.sum().backward()
        assert seen[0].note == 7 and seen[0][0].item() == 1.0 and seen[1][0].item() == 3.0
        assert x.grad[part].tolist() == [6.0] * len(x[part])


def test_classes_decorated_with_a_mode_are_made_in_it() -> None:
    with pytest.warns(FutureWarning, match="__init__"):
        @mg.no_grad()
        class Made:
            def __init__(self) -> None:
                self.recorded = mg.is_grad_enabled()

    assert isinstance(Made, type) and not Made().recorded


def test_a_decorated_generator_is_closed_in_its_mode() -> None:
    seen = []

    @mg.no_grad()
    def count() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            seen.append(mg.is_grad_enabled())
            raise

    made = count()
    next(made)
    made.close()
    assert seen == [False]


def test_inference_mode_is_told_and_nests() -> None:
    with mg.inference_mode():
        assert mg.is_inference_mode_enabled() and not mg.is_grad_enabled()
        with mg.inference_mode(False):
            assert not mg.is_inference_mode_enabled() and mg.is_grad_enabled()
        assert mg.is_inference_mode_enabled()
    assert not mg.is_inference_mode_enabled()
    with mg.autograd.grad_mode.no_grad(), mg.autograd.set_multithreading_enabled(False), mg.autograd.anomaly_mode.detect_anomaly():
        assert not mg.is_grad_enabled()


def test_arguments_of_grad() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    mg.autograd.backward(x * y, mg.tensor([1.0, 10.0]))
    same(x.grad, [3, 40])
    rows, = mg.autograd.grad((x * y).sum(), x, mg.arange(3), is_grads_batched=True)
    same(rows, [[0, 0], [3, 4], [6, 8]])
    first, = mg.autograd.grad((x * y).sum(), x, create_graph=True)
    zero, = mg.autograd.grad(first, x, create_graph=True, materialize_grads=True)
    same(mg.autograd.grad(zero, x, materialize_grads=True)[0], [0, 0])
    for settings, error in (({"inputs": []}, ValueError), ({"inputs": x, "allow_unused": False, "materialize_grads": True}, ValueError),
                            ({"inputs": x, "grad_outputs": mg.ones(2, 2), "is_grads_batched": True}, RuntimeError)):
        with pytest.raises(error):
            mg.autograd.grad((x * y).sum(), **settings)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * y).sum().backward(inputs=[])
    with pytest.warns(UserWarning, match="the loss is nan"):
        mg.autograd.backward((x * math.nan).sum())


def test_anomalies_without_nan() -> None:
    assert not mg.is_anomaly_enabled() and mg.is_anomaly_check_nan_enabled()
    with mg.autograd.detect_anomaly(check_nan=False):
        assert mg.is_anomaly_enabled() and not mg.is_anomaly_check_nan_enabled()
        with mg.autograd.set_detect_anomaly(False):
            assert not mg.is_anomaly_enabled()
        assert mg.is_anomaly_enabled()


def test_a_complex_result_needs_a_gradient_to_start_from() -> None:
    z = mg.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(RuntimeError, match="only for real"):
        (z * 2).backward()
    (z * 2).backward(mg.ones(1, dtype=mg.complex64))
    same(z.grad, [2])


def test_a_tensor_is_not_its_own_gradient() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="own gradient"):
        x.grad = x
    with mg.no_grad():
        assert x.numpy().tolist() == [1]


def test_the_gradient_of_a_computed_tensor_does_not_need_its_own_past() -> None:
    x = ramp(3)
    y = x.exp()
    z = (y * 3).sum()
    y.sum().backward()  # frees what exp has saved
    same(mg.autograd.grad(z, y)[0], [3, 3, 3])


def test_inputs_may_be_a_dictionary():
    x, y = mg.tensor(2.0, requires_grad=True), mg.tensor(3.0, requires_grad=True)
    found = mg.autograd.grad(x * y, {"a": x, 7: y})
    assert found == {"a": 3.0, 7: 2.0}
    rows = mg.autograd.grad(mg.stack([x, y]), {"a": x}, mg.eye(2), is_grads_batched=True)
    assert rows["a"].tolist() == [1.0, 0.0]
    (x * y).backward(inputs={"a": x})
    assert x.grad == 3.0 and y.grad is None


def test_gradcheck_gives_a_function_the_very_tensors():
    class Module(mg.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = mg.nn.Parameter(mg.tensor([1.0, 2.0], dtype=mg.float64))

    module, seen = Module(), set()

    def loss(weight):
        seen.add((type(weight), weight is module.weight))
        return module.weight ** 3

    assert mg.autograd.gradcheck(loss, (module.weight,)) and seen == {(mg.nn.Parameter, True)}
    assert module.weight.tolist() == [1.0, 2.0] and module.weight.is_leaf


def test_gradcheck_in_fast_mode_compares_along_directions():
    x, w = (mg.rand(4, 4, dtype=mg.float64, requires_grad=True) for _ in range(2))
    calls = []

    def program(x, w):
        calls.append(x)
        return (x @ w).sin(), x.sum() * 2

    assert mg.autograd.gradcheck(program, (x, w), fast_mode=True, check_forward_ad=True, rtol=1e-6, atol=1e-6)
    assert len(calls) == 1 + 2 * 3 and mg.autograd.gradgradcheck(program, (x, w), fast_mode=True)

    class Wrong(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            g = g * 2
            g[3, 1] *= 1.1
            return g

    with pytest.raises(RuntimeError, match="along one direction"):
        mg.autograd.gradcheck(Wrong.apply, (x,), fast_mode=True, rtol=1e-6)
    z = mg.rand(2, dtype=mg.complex128, requires_grad=True)
    assert mg.autograd.gradcheck(lambda z: z * z.conj() + z, (z,), fast_mode=True)


def test_backward_takes_the_gradient_in_a_list():
    for gradient in ([mg.tensor(2.0)], (mg.tensor(2.0),)):
        x = mg.tensor([1.0, 3.0], requires_grad=True)
        x.sum().backward(gradient)
        assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="1 tensors but 2 gradients"):
        x.sum().backward([mg.tensor(2.0), mg.tensor(3.0)])
