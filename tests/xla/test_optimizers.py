"""Steps of optimizers that are made as often as the program decides: in loops, in branches, and by a GradScaler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

pytest.importorskip("jax")

OPTIM = mg.optim
MAKE: dict[str, Callable[..., Any]] = {
    "SGD": lambda p: OPTIM.SGD(p, lr=0.1, momentum=0.9, nesterov=True), "Adam": lambda p: OPTIM.Adam(p, lr=0.1),
    "AdamW": lambda p: OPTIM.AdamW(p, lr=0.1, amsgrad=True), "Adagrad": lambda p: OPTIM.Adagrad(p, lr=0.1, lr_decay=0.1),
    "RMSprop": lambda p: OPTIM.RMSprop(p, lr=0.1, centered=True), "Adamax": lambda p: OPTIM.Adamax(p, lr=0.1)}


def state(w: Any, optimizer: Any) -> list[Any]:
    return [w.tolist(), *(v.tolist() for kept in optimizer.state.values() for v in kept.values())]


def in_a_loop(optimizer: Any, w: Any) -> Callable[..., None]:
    def body(i: Any) -> None:
        w.grad.copy_(mg.autograd.grad((w ** 2).sum() * (i + 1), w)[0])
        optimizer.step()

    return lambda x: mg.loop(4, body)


def in_a_branch(optimizer: Any, w: Any) -> Callable[..., None]:
    def step(x: Any) -> None:
        w.grad.copy_(mg.autograd.grad((w ** 2).sum() * x, w)[0])
        mg.cond(x > 0, lambda: [optimizer.step()].clear(), lambda: None)

    return step


@pytest.mark.parametrize("make_step", [in_a_loop, in_a_branch], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", MAKE)
def test_a_step_is_counted_where_it_is_made(name: str, make_step: Any) -> None:
    found = []
    for c in (lambda f: f, mg.compile):
        w = mg.tensor([1.0, -2.0], requires_grad=True)
        w.grad = mg.zeros(2)
        optimizer = MAKE[name]([w])
        scheduler = OPTIM.lr_scheduler.ExponentialLR(optimizer, 0.9)
        step = c(make_step(optimizer, w))
        for x in (1.0, -1.0, 2.0, -1.0, 3.0):
            step(mg.tensor(x))
            scheduler.step()
        found.append(state(w, optimizer))
    assert len(step.retraces) == 1
    for got, expected in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(got, expected, 1e-4, 1e-6)


def test_other_settings_are_noticed_in_a_loop() -> None:
    found = []
    for c in (lambda f: f, mg.compile):
        w = mg.tensor([1.0, -2.0], requires_grad=True)
        w.grad = mg.zeros(2)
        optimizer = OPTIM.Adam([w], lr=0.1)
        step = c(in_a_loop(optimizer, w))
        for betas in ((0.9, 0.999), (0.5, 0.5), (0.9, 0.999)):
            optimizer.param_groups[0]["betas"] = betas
            step(mg.tensor(1.0))
        found.append(w.tolist())
    np.testing.assert_allclose(found[1], found[0], 1e-4)


@pytest.mark.parametrize("make", [OPTIM.NAdam, OPTIM.RAdam, OPTIM.ASGD, OPTIM.Adafactor,
                                  lambda p: OPTIM.SGD(p, momentum=0.9, dampening=0.5)])
def test_those_that_python_computes_are_refused(make: Any) -> None:
    w = mg.ones(2, requires_grad=True)
    w.grad = mg.ones(2)
    optimizer = make([w])
    with pytest.raises(NotImplementedError, match="in a loop or a branch"):
        mg.compile(in_a_loop(optimizer, w))(mg.tensor(1.0))


def test_both_inside_and_outside_of_a_branch_is_refused() -> None:
    w = mg.ones(2, requires_grad=True)
    w.grad = mg.ones(2)
    optimizer = OPTIM.Adam([w])

    def step(x: Any) -> None:
        optimizer.step()
        in_a_branch(optimizer, w)(x)

    with pytest.raises(NotImplementedError, match="and another besides"):
        mg.compile(step)(mg.tensor(1.0))


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_a_scaler_leaves_out_steps(name: str, clipped: bool) -> None:
    found = []
    for c in (lambda f: f, mg.compile):
        mg.manual_seed(0)
        model = mg.nn.Linear(3, 2)
        optimizer, scaler = MAKE[name](model.parameters()), mg.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        scheduler = OPTIM.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x: Any, model: Any = model, optimizer: Any = optimizer, scaler: Any = scaler) -> Any:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            scaler.scale(loss).backward()
            if clipped:
                scaler.unscale_(optimizer)
                mg.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        g, seen = c(step), []
        for i in range(8):
            x = mg.randn(4, 3)
            if i in (2, 5):
                x[0, 0] = float("inf")
            seen.append([g(x).nan_to_num().item(), scaler.get_scale(), scaler.state_dict()["_growth_tracker"]])
            scheduler.step()
        scaler.update(8.0)
        g(mg.ones(4, 3))
        found.append([*np.ravel(seen), scaler.get_scale(), *model.weight.detach().numpy().ravel(),
                      *[float(v.sum()) for kept in optimizer.state.values() for v in kept.values()]])
    assert len(g.retraces) == 1
    np.testing.assert_allclose(found[1], found[0], 1e-4, 1e-6)
