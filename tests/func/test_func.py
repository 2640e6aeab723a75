"""Functions of functions: nesting, mixing with backward(), trees, and mapping."""
from __future__ import annotations

from typing import Any

import pytest

import mutagrad as mg
import mutagrad.core.backward
from mutagrad import nn
from mutagrad.base.modes import Modes
from mutagrad.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from tools import same


def cube(x: Any) -> Any:
    return (x ** 3).sum()


def test_results_are_constants_and_inputs_untouched() -> None:
    x = mg.tensor([1.0, 2.0])
    g = grad(cube)(x)
    same(g, [3, 12])
    assert not g.requires_grad and not x.requires_grad and g.numpy().shape == (2,)


def test_nesting_keeps_levels_apart() -> None:
    same(grad(lambda x: x * grad(lambda y: x * y * y)(mg.tensor(3.0)))(mg.tensor(2.0)), 24)
    same(grad(grad(grad(lambda x: x ** 4)))(mg.tensor(2.0)), 48)
    x = mg.tensor(2.0)
    same(grad(lambda y: y * x)(x), 2)
    leaf = mg.tensor(2.0, requires_grad=True)
    same(grad(lambda y: y * leaf)(leaf), 2)


def test_outer_leaves_get_their_gradients() -> None:
    w = mg.tensor(2.0, requires_grad=True)
    grad(lambda x: w * x ** 2)(mg.tensor(3.0)).backward()
    same(w.grad, 6)
    x = mg.tensor(3.0, requires_grad=True)
    grad(lambda x: x ** 3)(x).backward()
    same(x.grad, 18)


def test_a_function_may_write_to_its_argument() -> None:
    def function(x: Any) -> Any:
        x[0] = x[1] * 2
        return (x * x).sum()

    x = mg.tensor([5.0, 3.0])
    same(grad(function)(x), [0, 30])
    same(x, [5, 3])


def test_argnums_aux_and_trees() -> None:
    f = lambda tree, y: ((tree["a"] * y).sum() + tree["b"][0], "aux")
    given = {"a": mg.tensor([1.0, 2.0]), "b": [mg.tensor(3.0)]}
    (by_tree, by_y), aux = grad(f, argnums=(0, 1), has_aux=True)(given, mg.tensor([5.0, 6.0]))
    same(by_tree["a"], [5, 6]), same(by_tree["b"][0], 1), same(by_y, [1, 2])
    assert aux == "aux"
    _, (value, aux) = grad_and_value(f, has_aux=True)(given, mg.tensor([5.0, 6.0]))
    assert value.item() == 20 and not value.requires_grad
    same(grad(lambda x, y: x * y, argnums=1)(mg.tensor(2.0), mg.tensor(3.0)), 2)


def test_products_with_the_jacobian() -> None:
    x, v = mg.tensor([1.0, 2.0]), mg.tensor([3.0, 4.0])
    _, product = vjp(lambda x: (x ** 2, x.sum()), x)
    found, = product((v, mg.tensor(1.0)))
    same(found, [7, 17])
    out, tangent = jvp(lambda x: x.sin() * x, (x,), (v,))
    same(tangent, ((x.cos() * x + x.sin()) * v).numpy())
    assert not out.requires_grad and not tangent.requires_grad


def test_jacobians_and_hessian() -> None:
    x = mg.tensor([1.0, 2.0])
    for transform in (jacrev, jacfwd):
        same(transform(lambda x: x ** 2)(x), [[2, 0], [0, 4]])
    same(hessian(cube)(x), [[6, 0], [0, 12]])
    table = jacrev(lambda x, y: {"p": x * y}, argnums=(0, 1))(x, x)
    same(table["p"][1], [[1, 0], [0, 2]])


def test_mapping() -> None:
    x = mg.arange(6.0).reshape(2, 3)
    same(vmap(lambda r: r.sum())(x), [3, 12])
    same(vmap(lambda c: c.sum(), in_dims=1)(x), [3, 5, 7])
    same(vmap(lambda r, y: r * y, in_dims=(0, None), out_dims=1)(x, mg.tensor(2.0)), (x * 2).T.numpy())
    same(vmap(vmap(lambda a: a * a))(x), (x * x).numpy())
    same(vmap(grad(cube))(x), (3 * x ** 2).numpy())
    _, b = vmap(lambda d: (d["k"], d["k"] + 1), in_dims=({"k": 0},))({"k": x})
    same(b, (x + 1).numpy())
    w = mg.ones(3, requires_grad=True)
    vmap(lambda r: (r * w).sum())(x).sum().backward()
    same(w.grad, [3, 5, 7])


def test_mapping_holds_randomness_to_what_was_asked_for() -> None:
    x = mg.zeros(3)
    with pytest.raises(RuntimeError, match="random"):
        vmap(lambda a: a + mg.rand(()))(x)
    drawn = vmap(lambda a: a + mg.rand(()), randomness="same")(x)
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(vmap(lambda a: a + mg.rand(()), randomness="different")(x).tolist())) == 3


@pytest.mark.parametrize("call", [
    lambda: grad(lambda x: x)(mg.ones(2)), lambda: vmap(lambda x: x)(mg.tensor(1.0)), lambda: vmap(lambda x, y: x)(mg.ones(2), mg.ones(3)),
    lambda: vmap(lambda x: 3)(mg.ones(2)), lambda: grad(cube, argnums=3)(mg.ones(2)), lambda: grad(cube)([1.0]), lambda: vmap(lambda x: x, in_dims=None)(mg.ones(2)),
    lambda: functional_call(nn.Linear(1, 1), {"nothing": mg.ones(1)}, mg.ones(1), strict=True), lambda: vmap(mg.sin, chunk_size=0)])
def test_mistakes_are_named(call: Any) -> None:
    with pytest.raises(mg.MutagradError):
        call()


def test_calling_a_module_with_other_parameters() -> None:
    layer = nn.Linear(2, 1)
    mine = {"weight": mg.ones(1, 2, requires_grad=True), "bias": mg.zeros(1)}
    before = layer.weight
    functional_call(layer, mine, mg.tensor([1.0, 2.0])).sum().backward()
    same(mine["weight"].grad, [[1, 2]])
    assert layer.weight is before and layer.weight.grad is None
    with pytest.raises(RuntimeError, match="missing"):
        functional_call(layer, {"bias": mg.zeros(1)}, mg.ones(2), strict=True)


def test_tied_parameters_are_replaced_together() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(mg.tensor(1.0))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return self.a * x + self.b

    assert functional_call(Tied(), {"a": mg.tensor(3.0)}, mg.tensor(2.0)).item() == 9
    assert functional_call(Tied(), {"a": mg.tensor(3.0)}, mg.tensor(2.0), tie_weights=False).item() == 7


def test_an_ensemble() -> None:
    models = [nn.Linear(2, 1) for _ in range(3)]
    parameters, _ = stack_module_state(models)
    x = mg.randn(4, 2)
    together = vmap(lambda p: functional_call(models[0], p, x))(parameters)
    same(together, mg.stack([m(x) for m in models]).detach().numpy())


def test_jacobian_of_a_function_that_writes_to_its_argument_or_reads_it_twice() -> None:
    def function(x: Any) -> Any:
        x[0] = x[1] * 2
        return x * x

    for create_graph in (False, True):
        for x in (mg.tensor([1.0, 2.0]), mg.tensor([1.0, 2.0], requires_grad=True)):
            same(mg.autograd.functional.jacobian(function, x, create_graph=create_graph), [[0, 16], [0, 4]])
            same(x, [1, 2])
            same(mg.autograd.functional.jacobian(lambda y: y * x, x, create_graph=create_graph), [[1, 0], [0, 2]])
            same(mg.autograd.functional.hessian(lambda y: function(y).sum(), x, create_graph=create_graph), [[0, 0], [0, 10]])


def test_linearize_and_what_tangents_must_be() -> None:
    x = mg.tensor([1.0, 2.0])
    out, product = linearize(lambda x, y: x * y, x, x)
    same(out, [1, 4])
    same(product(mg.ones(2), mg.zeros(2)), [1, 2])
    for primals, tangents in (((x,), (x, x)), ((x,), (mg.ones(3),)), (x, (x,)), ((x,), (x.double(),))):
        with pytest.raises(RuntimeError, match="jvp"):
            jvp(mg.sin, primals, tangents)


def test_what_functions_may_be_given_and_return() -> None:
    x = mg.tensor([1.0, 2.0])
    rows, whole = vmap(lambda x, y: (x * y[0], y * 2), in_dims=(0, None), out_dims=(0, None))(x, mg.tensor([3.0]))
    same(rows, [3, 6])
    same(whole, [6])
    assert functionalize(mg.sin)(x).shape == (2,)
    for call in (lambda: vmap(lambda x: x, out_dims=None)(x), lambda: vmap(mg.sin, 0.5)(x), lambda: vjp(lambda x: 3, x), lambda: jacrev(lambda x: (x, "a"))(x),
                 lambda: jvp(lambda x: (), (x,), (x,)), lambda: grad(mg.sum, argnums=())(x), lambda: grad(mg.dot, argnums=(0, -2))(x, x),
                 lambda: functionalize(mg.sin, remove="all")):
        with pytest.raises(ValueError):
            call()


def test_a_caller_that_does_not_record_gets_constants() -> None:
    def lifted(x: Any) -> Any:
        with mg.no_grad():
            shift = grad(lambda y: 0.25 * y ** 4)(x)
        return x ** 3 - shift

    x = mg.tensor(1.5, requires_grad=True)
    y = grad(lifted)(x)
    same(y, 6.75)
    same(mg.autograd.grad(y, x)[0], 9)
    with mg.no_grad():
        for found in (grad(cube)(x), jacrev(cube)(x), *jvp(cube, (x,), (mg.ones(()),)), vjp(cube, x)[0]):
            assert not found.requires_grad


def test_mapping_without_slices_or_with_results_that_are_not_stacked() -> None:
    assert vmap(lambda x: x.sum() * mg.ones(4))(mg.ones(0, 3)).shape == (0, 4)
    same(vmap(lambda x: x, out_dims=(1,))(mg.tensor([[1.0, 2.0]])), [[1], [2]])
    stacked, word = vmap(lambda x: (x, "word"), out_dims=(0, None))(mg.ones(2, 1))
    assert word == "word" and stacked.shape == (2, 1)


def test_batch_norm_without_running_statistics() -> None:
    net = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False))
    assert mg.func.replace_all_batch_norm_modules_(net) is net
    assert net[0].running_mean is None and not net[0].track_running_stats and not net.state_dict().keys() & {"0.running_mean", "0.num_batches_tracked"}
    same(net.eval()(mg.tensor([[1.0, 0.0], [3.0, 0.0]])).round(), [[-1, 0], [1, 0]])


class TimesOutside(mg.autograd.Function):
    """Its derivative has something in it that its result has not."""

    factor = mg.tensor(2.0, requires_grad=True)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * TimesOutside.factor


def _hooked(x: Any) -> Any:
    y = x * 1
    y.register_hook(lambda g: g * TimesOutside.factor)
    return y.sum()


@pytest.mark.parametrize("function", [lambda x: TimesOutside.apply(x).sum(), _hooked, lambda x: (x * TimesOutside.factor).sum()])
def test_a_derivative_is_recorded_where_something_outside_has_a_part_in_it(function: Any) -> None:
    found = grad(function)(mg.ones(2))
    factor, = mg.autograd.grad(found.sum(), TimesOutside.factor)
    assert factor.item() == 2


def test_a_derivative_is_not_recorded_where_nothing_could_differentiate_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = []
    monkeypatch.setattr(mutagrad.core.backward, "Modes", lambda *a, **k: recorded.append(k["recorded"]) or Modes(*a, **k))
    grad(lambda x: (x ** 3).sum())(mg.ones(2))
    grad(lambda x: (grad(lambda y: (y ** 3).sum())(x)).sum())(mg.ones(2))
    assert recorded == [False, True, False]  # of nested ones, the inner one is differentiated again


def test_products_of_vjp_have_derivatives_by_what_they_are_given() -> None:
    _, product = vjp(lambda x: x ** 2, mg.tensor([1.0, 2.0]))
    v = mg.ones(2, requires_grad=True)
    found, = product(v)
    assert mg.autograd.grad(found.sum(), v)[0].tolist() == [2, 4]
    assert not product(mg.ones(2))[0].requires_grad
    with mg.no_grad():
        assert not product(v)[0].requires_grad
