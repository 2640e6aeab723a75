"""Optimizers: what they promise about parameters, state and memory. (That they compute what PyTorch does, tests/oracle asks.)"""
from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import optim
from mutagrad.arrays.parallel import LARGE
from mutagrad.base.errors import NotSupported
from mutagrad.optim import blocks

ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda params: optim.SGD(params, lr=0.1),
    "SGD with momentum": lambda params: optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda params: optim.Adam(params, lr=0.1),
    "Adam with amsgrad": lambda params: optim.Adam(params, lr=0.1, amsgrad=True, weight_decay=0.01),
    "AdamW": lambda params: optim.AdamW(params, lr=0.1),
    "NAdam": lambda params: optim.NAdam(params, lr=0.1),
    "RAdam": lambda params: optim.RAdam(params, lr=0.1),
    "Adamax": lambda params: optim.Adamax(params, lr=0.1),
    "Adagrad": lambda params: optim.Adagrad(params, lr=0.5),
    "Adadelta": lambda params: optim.Adadelta(params, lr=10.0),
    "ASGD": lambda params: optim.ASGD(params, lr=0.1, t0=5),
    "RMSprop": lambda params: optim.RMSprop(params, lr=0.05, momentum=0.5, centered=True),
    "Rprop": lambda params: optim.Rprop(params, lr=0.1),
}
ALL = ELEMENTWISE | {
    "Adafactor": lambda params: optim.Adafactor(params, lr=0.1),
    "Muon": lambda params: optim.Muon(params, lr=0.1, weight_decay=0.0),
    "LBFGS": lambda params: optim.LBFGS(params, lr=0.5),
}


def parameter(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return mg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype)).requires_grad_()


def descend(optimizer: Any, loss: Callable[[], Any], steps: int) -> float:
    def closure() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        value = optimizer.step(closure)
    return float(value)


def give_gradients(*params: Any, scale: float = 1.0) -> None:
    for p in params:
        p.grad = (p.detach() * scale).sin()


@pytest.mark.parametrize("name", ALL)
def test_finds_a_minimum(name: str) -> None:
    w = parameter(3, 4)
    optimizer = ALL[name]([w])
    first = float((w ** 2).sum())
    assert descend(optimizer, lambda: (w ** 2).sum(), 60) < 0.2 * first


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_blocks_and_threads_make_no_difference(name: str) -> None:
    size = 2 * LARGE + 17
    whole = parameter(size)
    places = [0, 3, blocks.LEAST_BLOCK, blocks.BLOCK + 1, size]
    parts = [whole.detach()[a:b].clone().requires_grad_() for a, b in pairwise(places)]
    one, several = ELEMENTWISE[name]([whole]), ELEMENTWISE[name](parts)
    for _ in range(3):
        give_gradients(whole, *parts)
        one.step()
        several.step()
    assert (whole.detach() == mg.cat([p.detach() for p in parts])).all()


MORE = ELEMENTWISE | {
    "SGD, dampened": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.3, maximize=True),
    "AdamW with amsgrad": lambda params: optim.AdamW(params, lr=0.1, amsgrad=True, maximize=True),
    "RMSprop, plain": lambda params: optim.RMSprop(params, lr=0.05, weight_decay=0.1),
    "RMSprop, centered": lambda params: optim.RMSprop(params, lr=0.05, centered=True),
    "NAdam, decoupled": lambda params: optim.NAdam(params, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam, decoupled": lambda params: optim.RAdam(params, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    "Rprop, maximizing": lambda params: optim.Rprop(params, lr=0.1, maximize=True),
    "ASGD with decay": lambda params: optim.ASGD(params, lr=0.1, t0=1, weight_decay=0.1),
}


@pytest.mark.parametrize("name", MORE)
def test_an_update_is_its_formula(name: str) -> None:
    """The formula says what an optimizer does; the update in place is the same, written for speed."""
    one, other = parameter(4, 5, dtype=np.float64), parameter(4, 5, dtype=np.float64)
    fast, plain = MORE[name]([one]), MORE[name]([other])
    plain.update = None
    for k in range(7):
        for p in (one, other):
            p.grad = (p.detach() * 3 + k).sin()
        fast.step()
        plain.step()
    np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), 1e-12, 1e-14)
    for entry, value in fast.state[one].items():
        np.testing.assert_allclose(value.numpy(), plain.state[other][entry].numpy(), 1e-12, 1e-14)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_training_inside_vmap(name: str) -> None:
    """Each slice trains a model of its own, all of them at once."""
    calls = []

    def trained(target: Any) -> Any:
        calls.append(1)
        w = mg.zeros(3, dtype=mg.float64, requires_grad=True)
        optimizer = ELEMENTWISE[name]([w])
        for _ in range(4):
            optimizer.zero_grad()
            ((w - target) ** 2).sum().backward()
            optimizer.step()
        return w.detach()

    targets = mg.randn(5, 3, dtype=mg.float64)
    found = mg.vmap(trained)(targets)
    assert len(calls) == 1
    np.testing.assert_allclose(found.numpy(), mg.stack([trained(t) for t in targets]).numpy(), 1e-12, 1e-14)


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("window", [lambda x: x.T, lambda x: x[::2], lambda x: x[:, 1:3], lambda x: x[1, 2]], ids=["transposed", "steps", "columns", "element"])
def test_parameters_that_are_windows(name: str, window: Any) -> None:
    memory = parameter(4, 5).detach()
    view, plain = window(memory).requires_grad_(), window(memory).clone().contiguous().requires_grad_()
    outside = memory.clone()
    here, there = ELEMENTWISE[name]([view]), ELEMENTWISE[name]([plain])
    for _ in range(3):
        give_gradients(view, plain)
        here.step()
        there.step()
    assert (view.detach() == plain.detach()).all()
    window(outside).copy_(view.detach())
    assert (memory == outside).all()  # nothing beside the window has changed


def test_a_gradient_of_another_layout() -> None:
    a, b = parameter(3, 4), parameter(3, 4)
    a.grad, b.grad = parameter(4, 3, seed=1).detach().T, parameter(4, 3, seed=1).detach().T.contiguous()
    for p in (a, b):
        optim.Adam([p]).step()
    assert (a == b).all()


def test_a_gradient_that_is_the_parameter_itself() -> None:
    p = mg.tensor([1., -2.]).requires_grad_()
    p.grad = p.detach()
    optimizer = optim.AdamW([p], lr=0.5, weight_decay=1.0)
    optimizer.step()
    assert optimizer.state[p]["exp_avg"].tolist() == pytest.approx([0.1, -0.2])


# ------------------------------------------------------------------------------------------------------------- a step is a write

@pytest.mark.parametrize("name", ALL)
def test_saved_values_are_not_disturbed(name: str) -> None:
    w = parameter(8, 9)
    before = w.detach().clone()
    y = (w ** 3).sum()
    optimizer = ALL[name]([w])
    give_gradients(w)
    optimizer.step(*((lambda: mg.tensor(0.0),) if name == "LBFGS" else ()))
    assert (w != before).any()
    optimizer.zero_grad()
    y.backward()
    np.testing.assert_allclose(w.grad.numpy(), (3 * before ** 2).numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_a_leaf_stays_a_leaf(name: str) -> None:
    w = parameter(8, 9)
    version, shared = w._version, w.detach()
    optimizer = ALL[name]([w])
    give_gradients(w)
    optimizer.step(*((lambda: mg.tensor(0.0),) if name == "LBFGS" else ()))
    assert w.is_leaf and w.requires_grad and w.grad_fn is None
    assert w._version > version
    assert (shared == w).all()
    optimizer.zero_grad()
    (w * 2).sum().backward()
    assert (w.grad == 2).all()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_leaf_that_was_written_is_a_leaf_again(name: str) -> None:
    w = parameter(3)
    optimizer = ELEMENTWISE[name]([w])
    w.mul_(2)
    (w ** 2).sum().backward()
    assert not w.is_leaf
    optimizer.step()
    assert w.is_leaf and w.requires_grad


def test_state_that_was_saved_is_not_disturbed() -> None:
    w, x = parameter(40), parameter(40, seed=1)
    optimizer = optim.Adam([w])
    give_gradients(w)
    optimizer.step()
    mean = optimizer.state[w]["exp_avg"]
    before = mean.clone()
    y = (x * mean).sum()
    optimizer.step()
    y.backward()
    assert (x.grad == before).all() and (mean != before).any()


def test_parameters_without_gradient_stay() -> None:
    a, b = parameter(3), parameter(3)
    give_gradients(a)
    optimizer = optim.Adam([a, b])
    before = b.tolist()
    optimizer.step()
    assert b.tolist() == before and list(optimizer.state) == [a]


def test_memory_is_flat() -> None:
    w = parameter(50)
    optimizer = optim.Adam([w], amsgrad=True)

    def steps(count: int) -> int:
        for _ in range(count):
            optimizer.zero_grad()
            (w ** 2).sum().backward()
            optimizer.step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = steps(50)
        assert steps(3000) - before < 3000 * 16  # what leaks one object a step needs more; interpreters fill caches of their own
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------------------- number types

@pytest.mark.parametrize("name", ELEMENTWISE)
def test_half_precision(name: str) -> None:
    half = parameter(20).detach().half().requires_grad_()
    wide = half.detach().float().requires_grad_()
    here, there = ELEMENTWISE[name]([half]), ELEMENTWISE[name]([wide])
    for _ in range(3):
        give_gradients(half)
        wide.grad = half.grad.float()
        here.step()
        there.step()
    np.testing.assert_allclose(half.tolist(), wide.tolist(), rtol=2e-2, atol=2e-3)
    for name, kept in here.state[half].items():
        if kept.ndim:
            assert kept.dtype == mg.float16
            np.testing.assert_allclose(kept.tolist(), there.state[wide][name].tolist(), rtol=2e-2, atol=2e-3)


def test_bfloat16() -> None:
    pytest.importorskip("ml_dtypes", reason="pip install 'mutagrad[bfloat16]'")
    w = parameter(20).detach().bfloat16().requires_grad_()
    optimizer = optim.AdamW([w], lr=0.1)
    assert descend(optimizer, lambda: (w.float() ** 2).sum(), 60) < 0.5
    assert optimizer.state[w]["exp_avg"].dtype == mg.bfloat16


def test_complex_parameters() -> None:
    w = mg.tensor([1 + 2j, -1j, 3 + 0j]).requires_grad_()
    assert descend(optim.Adam([w], lr=0.2), lambda: (w * w.conj()).real.sum(), 80) < 0.2


# ------------------------------------------------------------------------------------------------------------- the user's own

class Plain(optim.Optimizer):
    """What people write: a loop over groups and parameters, on `.data`."""

    def __init__(self, params: Any, lr: float = 0.1, momentum: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    def step(self, closure: Any = None) -> Any:
        loss = None if closure is None else closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = mg.zeros_like(p.data)
                state["buffer"].mul_(group["momentum"]).add_(p.grad.data)
                p.data.add_(state["buffer"], alpha=-group["lr"])
        return loss


def test_an_optimizer_of_ones_own() -> None:
    a, b = parameter(3, 4), parameter(3, 4)
    mine, builtin = Plain([a], lr=0.1, momentum=0.5), optim.SGD([b], lr=0.1, momentum=0.5)
    for _ in range(5):
        for p, optimizer in ((a, mine), (b, builtin)):
            optimizer.zero_grad()
            (p ** 2).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
    assert a.is_leaf
    again = Plain([parameter(3, 4)])
    again.load_state_dict(mine.state_dict())
    assert again.param_groups[0]["lr"] == 0.1 and (again.state[again.param_groups[0]["params"][0]]["buffer"] == mine.state[a]["buffer"]).all()


def test_step_of_the_base_is_not_there() -> None:
    with pytest.raises(NotImplementedError):
        optim.Optimizer([parameter(2)], {}).step()


def test_required_settings() -> None:
    with pytest.raises(ValueError, match="required optimization parameter lr"):
        optim.Optimizer([parameter(2)], {"lr": optim.optimizer.required})


# ------------------------------------------------------------------------------------------------------------------------ groups

def test_groups_have_settings_of_their_own() -> None:
    a, b = parameter(3), parameter(3)
    optimizer = optim.SGD([{"params": a}, {"params": [b], "lr": 0.0}], lr=0.1)
    give_gradients(a, b)
    expected, kept = (a - 0.1 * a.grad).tolist(), b.tolist()
    optimizer.step()
    assert a.tolist() == pytest.approx(expected) and b.tolist() == kept
    c = parameter(2)
    optimizer.add_param_group({"params": c, "momentum": 0.9})
    assert [g["momentum"] for g in optimizer.param_groups] == [0, 0, 0.9]


def test_names() -> None:
    model = mg.nn.Linear(2, 3)
    optimizer = optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.param_groups[0]["params"][0] is model.weight
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [parameter(2)]})
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", parameter(2)), parameter(2)])
    unnamed = optim.SGD(list(model.parameters()), lr=0.1)
    unnamed.load_state_dict(optimizer.state_dict())
    assert unnamed.param_groups[0]["param_names"] == ["weight", "bias"]


def test_a_parameter_that_is_listed_twice_is_updated_twice() -> None:
    p = mg.tensor([1.0]).requires_grad_()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([p, p], lr=0.25)
    p.grad = mg.ones(1)
    optimizer.step()
    assert p.tolist() == [0.5]


BAD: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "negative lr": (lambda p: optim.SGD([p], lr=-0.1), ValueError),
    "lr of nan": (lambda p: optim.Adam([p], lr=float("nan")), ValueError),
    "lr as text": (lambda p: optim.Adam([p], lr="0.1"), TypeError),
    "lr with two elements": (lambda p: optim.Adam([p], lr=mg.ones(2)), ValueError),
    "betas": (lambda p: optim.Adam([p], betas=(0.9, 1.0)), ValueError),
    "one beta": (lambda p: optim.Adam([p], betas=0.9), TypeError),
    "eps": (lambda p: optim.AdamW([p], eps=-1), ValueError),
    "weight decay": (lambda p: optim.RMSprop([p], weight_decay=-1), ValueError),
    "rho": (lambda p: optim.Adadelta([p], rho=1.1), ValueError),
    "etas": (lambda p: optim.Rprop([p], etas=(1.2, 0.5)), ValueError),
    "nesterov": (lambda p: optim.SGD([p], nesterov=True), ValueError),
    "nothing to optimize": (lambda p: optim.SGD([]), ValueError),
    "a tensor, not a list": (lambda p: optim.SGD(p), TypeError),
    "no iterable": (lambda p: optim.SGD(3), TypeError),
    "a set": (lambda p: optim.SGD([{"params": {p}}]), TypeError),
    "an array": (lambda p: optim.SGD([np.ones(3)]), TypeError),
    "no params": (lambda p: optim.SGD([{"lr": 0.1}]), ValueError),
    "no dict": (lambda p: optim.SGD([p]).add_param_group([p]), TypeError),  # type: ignore[arg-type]
    "a computed tensor": (lambda p: optim.SGD([p * 2]), ValueError),
    "in two groups": (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), ValueError),
    "capturable": (lambda p: optim.Adam([p], capturable=True), NotSupported),
    "differentiable": (lambda p: optim.SGD([p], differentiable=True), NotSupported),
    "capturable in a group": (lambda p: optim.Adam([{"params": [p], "capturable": True}]), NotSupported),
    "fused and foreach": (lambda p: optim.Adam([p], fused=True, foreach=True), RuntimeError),
    "SparseAdam's rate": (lambda p: optim.SparseAdam([p], lr=0.0), ValueError),
    "Muon of a vector": (lambda p: optim.Muon([p]), ValueError),
    "Muon's rate": (lambda p: optim.Muon([parameter(2, 2)], adjust_lr_fn="no"), ValueError),
    "LBFGS in groups": (lambda p: optim.LBFGS([{"params": [p]}, {"params": [parameter(2)]}]), ValueError),
    "LBFGS without closure": (lambda p: optim.LBFGS([p]).step(), TypeError),
    "line search": (lambda p: optim.LBFGS([p], line_search_fn="armijo"), ValueError),
    "Adafactor's d": (lambda p: optim.Adafactor([p], d=0.5), ValueError),
    "Adafactor's eps": (lambda p: optim.Adafactor([p], eps=(None, -1)), ValueError),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    make, error = BAD[name]
    with pytest.raises(error):
        make(parameter(3))


def test_a_group_that_is_refused_leaves_the_optimizer_as_it_was() -> None:
    a, b = parameter(3), parameter(3)
    optimizer = optim.SGD([a], lr=0.1)
    group = {"params": iter([b, a])}
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1 and list(group) == ["params"]


def test_a_parameter_of_another_shape_is_refused_before_anything_changes() -> None:
    a, b = parameter(3), parameter(4)
    optimizer = optim.Adam([a, b])
    give_gradients(a, b)
    optimizer.step()
    b.data = mg.ones(2, 3)
    b.grad = mg.ones(2, 3)
    before = a.tolist()
    with pytest.raises(RuntimeError, match="shape"):
        optimizer.step()
    assert a.tolist() == before and optimizer.state[a]["step"] == 1


# --------------------------------------------------------------------------------------------------------------- step, hooks, grads

def test_a_closure_is_recorded_even_without_grad() -> None:
    w = parameter(3)
    optimizer = optim.SGD([w], lr=0.1)
    with mg.no_grad():
        loss = optimizer.step(lambda: _loss(w))
    assert loss.requires_grad and (w.grad != 0).all()


def _loss(w: Any) -> Any:
    loss = (w ** 2).sum()
    loss.backward()
    return loss


def test_zero_grad() -> None:
    w = parameter(3)
    optimizer = optim.SGD([w])
    _loss(w)
    before = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0, 0, 0] and before.tolist() == [0, 0, 0]
    optimizer.zero_grad()
    assert w.grad is None


def test_hooks_are_called_around_a_step() -> None:
    w = parameter(3)
    optimizer, calls = Plain([w]), []
    handles = [optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append(("before", o is optimizer, args[0] is optimizer, kwargs))),
               optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append(("after", args[1:])))]
    everywhere = optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: calls.append("all"))
    optimizer.step(None)
    assert calls == [("before", True, True, {}), ("after", (None,)), "all"]
    everywhere.remove()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 3


def test_a_hook_can_change_the_arguments() -> None:
    optimizer = Plain([parameter(3)])
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 5), {}))
    assert optimizer.step() == 5
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_hooks_are_called_once_where_a_subclass_calls_its_base() -> None:
    class Twice(optim.SGD):
        def step(self, closure: Any = None) -> Any:
            super().step(closure)
            return super().step(closure)

    w, calls = parameter(3), []
    optimizer = Twice([w], lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: calls.append(1))
    give_gradients(w)
    optimizer.step()
    assert calls == [1]


@pytest.mark.parametrize("speed", [{"foreach": True}, {"foreach": False}, {"fused": True}])
def test_foreach_and_fused_change_nothing(speed: dict[str, bool]) -> None:
    a, b = parameter(3), parameter(3)
    for p, settings in ((a, {}), (b, speed)):
        give_gradients(p)
        optim.Adam([p], lr=0.1, **settings).step()
    assert (a == b).all()


def test_the_learning_rate_can_be_a_tensor() -> None:
    a, b, lr = parameter(3), parameter(3), mg.tensor(0.1)
    optimizer = optim.Adam([a], lr=lr)
    give_gradients(a, b)
    optimizer.step()
    optim.Adam([b], lr=lr.item()).step()
    assert (a == b).all()
    lr.fill_(0.0)
    before = a.tolist()
    optimizer.step()
    assert a.tolist() == before


# ----------------------------------------------------------------------------------------------------------------------- saving

@pytest.mark.parametrize("name", ALL)
def test_training_goes_on_where_it_was_saved(name: str) -> None:
    a = parameter(3, 4)
    optimizer = ALL[name]([a])
    descend(optimizer, lambda: (a ** 4).sum(), 4)
    b = a.detach().clone().requires_grad_()
    again = ALL[name]([b])
    again.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    for p, o in ((a, optimizer), (b, again)):
        descend(o, lambda p=p: (p ** 4).sum(), 4)
    assert (a == b).all()


def test_the_format_of_state_dict() -> None:
    a, b, c = parameter(3), parameter(2), parameter(4)
    optimizer = optim.Adam([{"params": [a]}, {"params": [b, c], "lr": 0.5}])
    give_gradients(a, c)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"] and list(state["state"]) == [0, 2]
    assert [g["params"] for g in state["param_groups"]] == [[0], [1, 2]]
    assert list(state["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert state["state"][0]["step"].dtype == mg.float32 and state["state"][0]["step"].item() == 1
    assert state["param_groups"][1]["lr"] == 0.5


def test_a_state_dict_that_does_not_fit_is_refused() -> None:
    one = optim.Adam([parameter(3)], lr=0.25)
    two = optim.Adam([parameter(3), parameter(3)], lr=0.5)
    groups = optim.Adam([{"params": [parameter(3)]}, {"params": [parameter(3)]}])
    for other, match in ((two, "size of optimizer's group"), (groups, "different number of parameter groups")):
        with pytest.raises(ValueError, match=match):
            one.load_state_dict(other.state_dict())
    assert one.param_groups[0]["lr"] == 0.25


def test_loading_copies_settings_and_casts_state() -> None:
    a = parameter(3, dtype=np.float64)
    optimizer = optim.Adam([a], lr=0.25)
    give_gradients(a)
    optimizer.step()
    saved = optimizer.state_dict()
    b = parameter(3)
    again = optim.Adam([b])
    again.load_state_dict(saved)
    again.param_groups[0]["lr"] = 7.0
    assert optimizer.param_groups[0]["lr"] == saved["param_groups"][0]["lr"] == 0.25
    assert again.state[b]["exp_avg"].dtype == mg.float32 and again.param_groups[0]["params"] == [b]


def test_an_old_checkpoint_with_counts_that_are_numbers() -> None:
    w = parameter(3)
    optimizer = optim.Adam([w])
    give_gradients(w)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    saved["state"][0]["step"] = 1
    del saved["param_groups"][0]["amsgrad"], saved["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(saved)
    optimizer.step()
    assert optimizer.state[w]["step"].item() == 2


def test_hooks_of_state_dict() -> None:
    w = parameter(3)
    optimizer, calls = optim.SGD([w], lr=0.5), []
    optimizer.register_state_dict_pre_hook(lambda o: calls.append("before"))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: {k: v for k, v in state.items() if k != "more"})
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    state = optimizer.state_dict()
    assert state["more"] == 1
    optimizer.load_state_dict(state)
    assert calls == ["before", "loaded"]


def test_copies_and_pickles_have_parameters_of_their_own() -> None:
    w = parameter(3)
    optimizer = optim.SGD([w], lr=0.5, momentum=0.9)
    give_gradients(w)
    optimizer.step()
    before = w.tolist()
    for twin in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        p = twin.param_groups[0]["params"][0]
        assert p.tolist() == before and list(twin.state) == [p]
        give_gradients(p)
        twin.step()
        assert w.tolist() == before != p.tolist()


def test_turning_on_amsgrad_later() -> None:
    w = parameter(3)
    optimizer = optim.Adam([w])
    give_gradients(w)
    optimizer.step()
    optimizer.param_groups[0]["amsgrad"] = True
    optimizer.step()
    assert "max_exp_avg_sq" in optimizer.state[w]


def test_repr() -> None:
    assert repr(optim.SGD([parameter(2)], lr=0.1)) == """SGD (
Parameter Group 0
    dampening: 0
    differentiable: False
    foreach: None
    fused: None
    lr: 0.1
    maximize: False
    momentum: 0
    nesterov: False
    weight_decay: 0
)"""


# ----------------------------------------------------------------------------------------------------------------------- averages

def test_averaged_model_and_its_decay() -> None:
    model = mg.nn.Linear(2, 1)
    averaged = optim.swa_utils.AveragedModel(model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5))
    for value in (1.0, 3.0):
        model.weight.data.fill_(value)
        averaged.update_parameters(model)
    assert averaged.module.weight.tolist() == [[2.0, 2.0]] and averaged.n_averaged == 2
    with pytest.raises(ValueError, match="Invalid decay value"):
        optim.swa_utils.get_ema_avg_fn(1.5)
