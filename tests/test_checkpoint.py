"""Checkpointed functions: the same gradients with less kept, and an error where that cannot be."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mutagrad as mg
from mutagrad import nn
from mutagrad.utils.checkpoint import checkpoint, checkpoint_sequential, noop_context_fn, set_checkpoint_debug_enabled, set_checkpoint_early_stop
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
