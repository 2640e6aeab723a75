"""Checkpointed functions: the same gradients with less kept, and an error where that cannot be."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from samples import SAMPLES, Sample
from test_ops import BY_MEMORY, NEEDS_ORDER, base_for, weighted, weights, window
from tools import same


def network() -> nn.Module:
    mg.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 40), nn.Tanh(), nn.Dropout(0.5), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 3))


def gradients(call: Any) -> list[Any]:
    net = network()
    x = mg.ones(5, 4).requires_grad_()
    mg.manual_seed(1)
    call(net, x).pow(2).sum().backward()
    return [x.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("call", [
    lambda net, x: checkpoint(net, x, use_reentrant=False), lambda net, x: checkpoint(net, x, use_reentrant=True),
    lambda net, x: checkpoint(lambda a, *, scale: net(a * scale), x, scale=mg.tensor(1.0)),
    lambda net, x: checkpoint_sequential(net, 3, x, use_reentrant=False), lambda net, x: checkpoint_sequential(list(net), 2, x)])
def test_gradients_are_those_of_the_plain_call(call: Any) -> None:
    for found, expected in zip(gradients(call), gradients(lambda net, x: net(x)), strict=True):
        same(found, expected.numpy())


def test_random_numbers_go_on_as_they_would() -> None:
    states = []
    for call in (lambda f, x: f(x), checkpoint):
        mg.manual_seed(3)
        x = mg.ones(8, requires_grad=True)
        call(lambda x: nn.functional.dropout(x).sum(), x).backward()
        states.append(mg.rand(2))
    assert mg.equal(*states)


def test_it_runs_again_in_backward_and_keeps_nothing_meanwhile() -> None:
    calls = []

    def function(x: Any) -> Any:
        calls.append(1)
        return (x * x).exp().sin()

    x = mg.full((100,), 0.5, requires_grad=True)
    y = checkpoint(function, x)
    assert len(calls) == 1 and y.grad_fn.name() == "CheckpointBackward0" and len(y.grad_fn.next_functions) == 1
    y.sum().backward()
    assert len(calls) == 2


def test_several_results_and_views() -> None:
    x = mg.arange(1.0, 7.0).requires_grad_()
    a, (b, c) = checkpoint(lambda x: (x * 2, ((x * x).reshape(2, 3)[1], "text")), x)
    assert c == "text"
    (a[:3] * b).sum().backward()
    plain = mg.arange(1.0, 7.0).requires_grad_()
    ((plain * 2)[:3] * (plain * plain).reshape(2, 3)[1]).sum().backward()
    same(x.grad, plain.grad.numpy())


def test_mutation_inside_is_fine() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y[0] = y[1] * y[2]
        y += x
        return y

    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    checkpoint(function, x).sum().backward()
    same(x.grad, [1, 12 + 3, 8 + 3])


def test_an_argument_written_later_counts_as_it_was() -> None:
    w = mg.full((50,), 2.0, requires_grad=True)
    x = mg.full((50,), 3.0)
    y = checkpoint(lambda w, x: w * w * x, w, x)
    x.zero_()
    y.sum().backward()
    same(w.grad, [12.0] * 50)


class Product(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return None, g * x


def test_a_function_of_a_part_that_requires_no_gradient():
    constant, x = mg.arange(4.0), mg.ones(2, requires_grad=True)
    checkpoint(lambda a, b: Product.apply(a, b).sin(), constant[2:], x, use_reentrant=False).sum().backward()
    same(x.grad, [2 * np.cos(2.0), 3 * np.cos(3.0)])


def test_a_function_that_changes_its_argument_keeps_its_nodes() -> None:
    x = mg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    z = checkpoint(lambda a: a.mul_(3) * a, y)
    same(y, [3, 6])
    z.sum().backward()
    same(x.grad, [18, 36])


def test_a_changed_parameter_is_an_error_and_no_wrong_gradient() -> None:
    w = mg.ones(3, requires_grad=True)
    y = checkpoint(lambda x: (x * w).exp(), mg.ones(3))
    with mg.no_grad():
        w += 1
    with pytest.raises(RuntimeError, match="has changed since it ran"):
        y.sum().backward()


def test_second_derivatives() -> None:
    found = []
    for call in (lambda f, x: f(x), checkpoint):
        x = mg.tensor([0.5, 1.5], requires_grad=True)
        g, = mg.autograd.grad(call(lambda x: (x ** 3).sin(), x).sum(), x, create_graph=True)
        found += mg.autograd.grad((g * g).sum(), x)
    same(found[1], found[0].numpy())


def test_without_recording_it_is_a_call() -> None:
    with mg.no_grad():
        assert checkpoint(lambda x: x + 1, mg.ones(1)).grad_fn is None
    assert checkpoint(lambda x: x + 1, mg.ones(1)).item() == 2


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(lambda x: x, mg.ones(1), use_reentrant=True, context_fn=lambda: None)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda x: x, mg.ones(1), determinism_check="some")
    with pytest.raises(ValueError, match="y"):
        checkpoint(lambda x, y: x, mg.ones(1), y=2, use_reentrant=True)
    with pytest.raises(TypeError, match="segments"):
        checkpoint_sequential([nn.Identity()], 3, mg.ones(1))


def test_hooks_of_parameters_are_called_once() -> None:
    seen = []
    w = mg.ones(3, requires_grad=True)
    w.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    x = mg.ones(3, requires_grad=True)
    y = checkpoint(lambda x: x * w, x * 1)
    checkpoint(lambda y: y * w, y).sum().backward()
    assert seen == [[2.0, 2.0, 2.0]]
    same(w.grad, [4, 4, 4])
    same(x.grad, [1, 1, 1])


def test_contexts_for_running_and_for_running_again() -> None:
    seen: list[str] = []

    @contextmanager
    def note(text: str) -> Iterator[None]:
        seen.append(text)
        yield

    x = mg.ones(2, requires_grad=True)
    out = checkpoint(mg.exp, x, use_reentrant=False, context_fn=lambda: (note("first"), note("again")))
    assert seen == ["first"]
    out.sum().backward()
    assert seen == ["first", "again"]
    with set_checkpoint_early_stop(False), set_checkpoint_debug_enabled(True):
        checkpoint(mg.exp, x, use_reentrant=False, context_fn=noop_context_fn).sum().backward()


def test_a_function_that_gives_other_shapes_the_second_time() -> None:
    shapes = [(1,), (2,)]
    out = checkpoint(lambda x: x.exp() * mg.ones(shapes.pop(0)), mg.ones(1, requires_grad=True), use_reentrant=False)
    with pytest.raises(RuntimeError, match="different metadata"):
        out.backward()


def test_mixed_precision_is_that_of_the_first_run() -> None:
    seen = []

    def product(x: Any) -> Any:
        y = x @ x
        seen.append(y.dtype)
        return y

    for outside, inside in ((False, True), (True, False)):
        with mg.autocast("cpu", dtype=mg.bfloat16, enabled=inside):
            out = checkpoint(product, mg.ones(2, 2, requires_grad=True), use_reentrant=False)
        with mg.autocast("cpu", dtype=mg.bfloat16, enabled=outside):
            out.sum().backward()
    assert seen == [mg.bfloat16, mg.bfloat16, mg.float32, mg.float32]


# ------------------------------------------------------------------------------------------------ what changes meanwhile

N = 5000  # more than are looked at of values computed on the way


def differentiated(function: Any, change: Any, x: Any = None, **settings: Any) -> Any:
    x = mg.full((N,), 0.5, requires_grad=True) if x is None else x
    y = checkpoint(function, x, **settings)
    change()
    y.sum().backward()
    return x.grad


GLOBAL = mg.ones(N)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", mg.ones(N))

    def forward(self, x: Any) -> Any:
        return x * self.scale


def changes() -> dict[str, tuple[Any, ...]]:
    """What a function reads besides its arguments, and what becomes of it: made anew for each test."""
    c, few, mask, index = mg.ones(N), mg.ones(3), mg.arange(N) % 2 == 0, mg.arange(N)
    array, numbers, exported = np.ones(N, np.float32), [2.0], mg.ones(N)
    computed, leaf, module = mg.ones(N, requires_grad=True) * 2, mg.ones(N, requires_grad=True), Scaled()
    bound, target, place = mg.tensor(0.6), mg.zeros(N, dtype=mg.int64), [3]
    zeros = mg.zeros(N, requires_grad=True)
    return {
        "all of a constant": (lambda x: x * c, lambda: c.mul_(2)),
        "an element of it": (lambda x: x * c, lambda: c.__setitem__(7, 2.0)),
        "where that has no influence on the result": (lambda x: x * c, lambda: c.__setitem__(7, 2.0), zeros),
        "through an alias": (lambda x: x * c, lambda: c.detach().view(-1)[7:9].zero_()),
        "by assigning data": (lambda x: x * c, lambda: setattr(c, "data", mg.full((N,), 2.0))),
        "what is only added": (lambda x: (x + c).sin(), lambda: c.mul_(2)),
        "few elements": (lambda x: x[:3] * few, lambda: few.__setitem__(1, 2.0)),
        "a global": (lambda x: x * GLOBAL, lambda: GLOBAL.add_(1)),
        "a buffer": (module, lambda: module.scale.add_(1)),
        "a mask": (lambda x: mg.where(mask, x * 2, x), mask.logical_not_),
        "an index": (lambda x: x[index], lambda: index.__setitem__(0, 5)),
        "an index to write to": (lambda x: (x * 2).index_fill_(0, index[:2], 0.0), lambda: index.add_(1)),
        "a bound that is compared with": (lambda x: x * (x > bound), lambda: bound.fill_(0.2)),
        "classes, where all are alike": (
            lambda x: nn.functional.cross_entropy(x.reshape(-1, 5) * 0, target[:N // 5]), lambda: target.fill_(3)),
        "a computed tensor, unrecorded": (lambda x: x * computed, lambda: computed.data.mul_(2)),
        "a computed tensor, recorded": (lambda x: x * computed, lambda: computed.mul_(2)),
        "a leaf, recorded": (lambda x: x * leaf, lambda: leaf.mul_(2)),
        "by NumPy": (lambda x: x * exported, lambda: exported.numpy().__setitem__(7, 2.0)),
        "an array": (lambda x: x * mg.tensor(array), lambda: array.__setitem__(7, 2.0)),
        "a number": (lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 3.0)),
        "a number among settings": (lambda x: nn.functional.elu(-x, numbers[0]), lambda: numbers.__setitem__(0, 3.0)),
        "the element that is read": (lambda x: x[place[0]] * 2, lambda: place.__setitem__(0, 4)),
        "the part that is read": (lambda x: x[place[0]:place[0] + 3] * 2, lambda: place.__setitem__(0, 4), zeros),
        "which way it takes": (lambda x: x.sin() if place[0] == 3 else x.cos(), lambda: place.__setitem__(0, 4)),
        "how often": (lambda x: sum([x * 2 for _ in range(place[0])]), lambda: place.__setitem__(0, 4), zeros),
    }


@pytest.mark.parametrize("what", changes())
@pytest.mark.parametrize("reentrant", [False, True])
def test_a_change_of_what_it_reads_is_noticed(what: str, reentrant: bool) -> None:
    """And without a change, or with the change made afterwards, it is differentiated."""
    function, change, *x = changes()[what]
    with pytest.raises(RuntimeError, match="has changed since it ran") as raised:
        differentiated(function, change, *x, use_reentrant=reentrant)
    assert "argument" in raised.value.fix and raised.value.why
    function, _, *x = changes()[what]
    found = differentiated(function, lambda: None, *x, use_reentrant=reentrant)
    function, _, *x = changes()[what]
    plain = x[0] if x else mg.full((N,), 0.5, requires_grad=True)
    function(plain).sum().backward()
    same(found, plain.grad.numpy())


def test_the_error_names_the_operation_and_its_line() -> None:
    c = mg.ones(N)
    with pytest.raises(RuntimeError) as raised:
        differentiated(lambda x: x.sin() * c, c.zero_)
    assert raised.value.why.startswith("mul at ") and "test_checkpoint.py" in raised.value.why
    w = mg.ones(N, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"the leaf of shape \(5000,\) that mul reads at"):
        differentiated(lambda x: x.sin() * w, lambda: w.data.zero_())


@pytest.mark.parametrize("call", [lambda f, x: checkpoint_sequential([f, lambda y: y * 2], 2, x),
                                  lambda f, x: checkpoint(lambda x: checkpoint(f, x) * 2, x)])
def test_a_change_is_noticed_in_segments_and_inside_another_checkpoint(call: Any) -> None:
    c, x = mg.ones(N), mg.ones(N, requires_grad=True)
    y = call(lambda x: x * c, x)
    y.sum().backward()
    same(x.grad, [2.0] * N)
    y = call(lambda x: x * c, x)
    c.mul_(2)
    with pytest.raises(RuntimeError, match="has changed since it ran"):
        y.sum().backward()


def test_a_change_that_the_user_answers_for() -> None:
    c = mg.ones(N)
    same(differentiated(lambda x: x * c, lambda: c.mul_(2), determinism_check="none"), [2.0] * N)


def test_arguments_count_as_they_were_be_they_leaves() -> None:
    x = mg.full((N,), 0.5, requires_grad=True)
    same(differentiated(lambda x: x * x, lambda: x.mul_(3), x), [1.0] * N)
    table = mg.ones(3, N, requires_grad=True)
    y = checkpoint(lambda row: row * row, table[1])
    with mg.no_grad():
        table.zero_()
    y.sum().backward()
    same(table.grad[1], [2.0] * N)


def test_random_numbers_must_be_the_same() -> None:
    assert set(differentiated(nn.functional.dropout, lambda: mg.rand(7)).tolist()) == {0.0, 2.0}
    with pytest.raises(RuntimeError, match="has changed since it ran"):
        differentiated(nn.functional.dropout, lambda: mg.rand(7), preserve_rng_state=False)
    own = mg.Generator()
    with pytest.raises(RuntimeError, match="has changed since it ran"):
        differentiated(lambda x: nn.functional.dropout(x, generator=own), lambda: None)


def test_running_statistics_may_move_on() -> None:
    norm, x = nn.BatchNorm1d(4), mg.randn(8, 4).requires_grad_()
    (checkpoint(norm, x) + checkpoint(norm, x * 2)).pow(3).sum().backward()
    plain, other = x.detach().requires_grad_(), nn.BatchNorm1d(4)
    (other(plain) + other(plain * 2)).pow(3).sum().backward()
    same(x.grad, plain.grad.numpy())


# -------------------------------------------------------------------------------------------------------- all operations

@pytest.mark.parametrize("layout", ["whole", "transposed", "stepped", "row"])
@pytest.mark.parametrize("part", range(4))
def test_every_operation(layout: str, part: int) -> None:
    """The gradient is that of the plain call, however the arguments lie in memory."""
    usable = [s for s in SAMPLES if s.grad and (layout == "whole" or s.name not in BY_MEMORY | NEEDS_ORDER)]
    for sample in usable[part::4]:
        plain, again = (gradient(sample, layout, call) for call in (lambda f, *x: f(*x), checkpoint))
        for a, b in zip(plain, again, strict=True):
            np.testing.assert_allclose(a, b, 1e-10, 1e-10, err_msg=str(sample))


def gradient(sample: Sample, layout: str, call: Any) -> list[Any]:
    bases = [mg.tensor(base_for(layout, a), requires_grad=True) for a in sample.arrays()]
    inputs = [window(layout, base, a.shape) for base, a in zip(bases, sample.arrays())]
    results = call(lambda *x: tuple(r for r in sample.call(mg, list(x)) if isinstance(r, mg.Tensor)), *inputs)
    weighted(results, weights(sample, results)).backward()
    return [np.zeros(b.shape) if b.grad is None else b.grad.numpy() for b in bases]


VIEWS = [lambda x: x[1], lambda x: x[:, 2], lambda x: x.t()[1:], lambda x: x[::2, ::3], lambda x: x[::-1],
         lambda x: x[1:2].expand(3, 6), lambda x: x[:, :1].expand(4, 5), lambda x: x.unfold(1, 3, 1),
         lambda x: x.diagonal(), lambda x: x[2, 3].expand(2, 2), lambda x: (x * 2).t()[1:3]]
REGIONS = [lambda a: a.sin() * a, lambda a: a.reshape(-1).cumsum(0), lambda a: a[..., 1:] * a[..., :-1],
           lambda a: a[[0, 0]].exp(), lambda a: a.contiguous().tanh() * a.sum(), lambda a: a.flatten()[::2].sin()]


@pytest.mark.parametrize("view", range(len(VIEWS)))
@pytest.mark.parametrize("region", range(len(REGIONS)))
def test_views_as_arguments_and_from_elsewhere_in_both_orders(view: int, region: int) -> None:
    found = []
    for call in (lambda f, x: f(VIEWS[view](x)), lambda f, x: checkpoint(f, VIEWS[view](x)),
                 lambda f, x: checkpoint(lambda: f(VIEWS[view](x)))):
        x = mg.arange(1.0, 25.0, dtype=mg.float64).reshape(4, 6).mul(0.1).clone().requires_grad_()
        first, = mg.autograd.grad(call(REGIONS[region], x).pow(2).sum(), x, create_graph=True)
        found.append((first, *mg.autograd.grad((first * first).sum(), x)))
    for orders in found[1:]:
        for a, b in zip(orders, found[0], strict=True):
            same(a, b.detach().numpy(), 1e-9)
