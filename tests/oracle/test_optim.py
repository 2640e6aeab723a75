"""Optimizers and schedulers against PyTorch's: the same parameters, state and learning rates from the same beginnings."""
from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import ours

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

table = pytest.importorskip("torch.testing._internal.common_optimizers", reason="make oracle installs it")

MORE: dict[str, list[dict[str, Any]]] = {  # settings that PyTorch's table does not try
    "SGD": [{"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "nesterov": False, "maximize": True, "weight_decay": 0.2}, {"foreach": True}, {"fused": True}],
    "Adam": [{"lr": 0.1, "betas": (0.5, 0.8), "eps": 1e-3}, {"decoupled_weight_decay": True, "weight_decay": 0.3}, {"amsgrad": True, "maximize": True},
             {"lr": torch.tensor(0.05)}, {"fused": True}, {"foreach": True}, {"betas": (0.0, 0.0)}],
    "AdamW": [{"amsgrad": True, "maximize": True, "lr": 0.1}],
    "NAdam": [{"lr": 0.1, "maximize": True, "decoupled_weight_decay": True, "weight_decay": 0.1}],
    "RAdam": [{"lr": 0.1, "betas": (0.8, 0.5)}],
    "ASGD": [{"lr": 0.1, "t0": 3, "alpha": 0.5, "lambd": 0.01}],
    "Rprop": [{"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2)}],
    "RMSprop": [{"momentum": 0.9, "lr": 0.05}, {"centered": True}],
    "Adafactor": [{"lr": 0.1, "eps": (1e-4, 1e-2), "weight_decay": 0.1, "maximize": True}],
}
ELEMENTWISE = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "ASGD", "RMSprop", "Rprop")


def cases() -> list[Any]:
    found = []
    for info in table.optim_db:
        name = info.optim_cls.__name__
        if name not in ("SparseAdam", "LBFGS", "Muon"):
            settings = [case.kwargs for case in info.optim_inputs_func(device="cpu")] + MORE.get(name, [])
            found += [pytest.param(name, kwargs, id=f"{name}-{kwargs}") for kwargs in settings]
    return found


def starts(dtype: Any = np.float64) -> list[Any]:
    rng = np.random.default_rng(3)
    return [(rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
            for shape in ((3, 4), (5,), (), (2, 3, 2))]


def parameters(library: Any, values: list[Any]) -> list[Any]:
    return [library.tensor(v).requires_grad_() for v in values]


def gradient(value: Any) -> Any:
    """Of a function with hills and valleys; changes its sign now and then."""
    return (2 * value * 0.1 + np.sin(5 * value.real) + (1j * np.cos(3 * value.imag) if np.iscomplexobj(value) else 0)).astype(value.dtype)


def run(library: Any, optimizer: Any, steps: int = 20) -> list[Any]:
    for _ in range(steps):
        for group in optimizer.param_groups:
            for p in group["params"]:
                p.grad = library.tensor(gradient(p.detach().numpy()))
        optimizer.step()
    return [p.detach().numpy().copy() for group in optimizer.param_groups for p in group["params"]]


def pair(name: str, kwargs: dict[str, Any], dtype: Any = np.float64) -> tuple[Any, Any]:
    return (getattr(mg.optim, name)(parameters(mg, starts(dtype)), **ours(kwargs)),
            getattr(torch.optim, name)(parameters(torch, starts(dtype)), **copy.deepcopy(kwargs)))


def close(found: list[Any], expected: list[Any], tolerance: float) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "kwargs"), cases())
def test_twenty_steps_end_where_pytorch_ends(name: str, kwargs: dict[str, Any]) -> None:
    here, there = pair(name, kwargs)
    assert repr(here) == repr(there)
    close(run(mg, here), run(torch, there), 1e-6)
    compare_states(here, there)


def compare_states(here: Any, there: Any) -> None:
    """The same keys and values, of the same types and shapes."""
    a, b = here.state_dict(), there.state_dict()
    assert list(a) == list(b) and a["state"].keys() == b["state"].keys()
    assert [set(g) for g in a["param_groups"]] == [set(g) for g in b["param_groups"]]
    assert [g["params"] for g in a["param_groups"]] == [g["params"] for g in b["param_groups"]]
    for number in a["state"]:
        mine, theirs = a["state"][number], b["state"][number]
        assert mine.keys() == theirs.keys()
        for key in mine:
            if isinstance(theirs[key], torch.Tensor):
                assert str(mine[key].dtype).split(".")[-1] == str(theirs[key].dtype).split(".")[-1]
                assert tuple(mine[key].shape) == tuple(theirs[key].shape)
                np.testing.assert_allclose(mine[key].numpy(), theirs[key].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor"])
def test_in_single_precision(name: str) -> None:
    here, there = pair(name, {"weight_decay": 0.1} if name != "Rprop" else {}, np.float32)
    close(run(mg, here, 10), run(torch, there, 10), 1e-5)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_complex_parameters(name: str) -> None:
    here, there = pair(name, {"weight_decay": 0.1} if name != "Rprop" else {}, np.complex128)
    close(run(mg, here), run(torch, there), 1e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_half_precision_is_that_of_fused_steps(name: str) -> None:
    kwargs = {"lr": 0.01, "weight_decay": 0.1, **({"momentum": 0.9} if name == "SGD" else {})}
    here = getattr(mg.optim, name)(parameters(mg, starts(np.float16)), **kwargs)
    there = getattr(torch.optim, name)(parameters(torch, starts(np.float16)), **kwargs, fused=True)
    close(run(mg, here), run(torch, there), 4e-3)


@pytest.mark.parametrize("kwargs", [{"lr": 0.5}, {"lr": 0.3, "max_iter": 7}, {"line_search_fn": "strong_wolfe"}, {"line_search_fn": "strong_wolfe", "max_iter": 5},
                                    {"line_search_fn": "strong_wolfe", "history_size": 3, "lr": 0.2}, {"line_search_fn": "strong_wolfe", "lr": 20.0}], ids=str)
def test_lbfgs(kwargs: dict[str, Any]) -> None:
    ends, evaluations = [], []
    for library in (mg, torch):
        p = library.tensor([-1.2, 1.0, 0.3], dtype=library.float64, requires_grad=True)
        q = library.tensor([[0.5]], dtype=library.float64, requires_grad=True)
        optimizer = library.optim.LBFGS([p, q], **kwargs)
        seen: list[float] = []

        def closure(optimizer: Any = optimizer, p: Any = p, q: Any = q, seen: list[float] = seen) -> Any:
            optimizer.zero_grad()
            loss = ((1 - p[:-1]) ** 2 + 2 * (p[1:] - p[:-1] ** 2) ** 2).sum() + (q - p[0]).pow(2).sum() + q.pow(4).sum()
            loss.backward()
            seen.append(loss.item())
            return loss

        for _ in range(4):
            optimizer.step(closure)
        ends.append(np.concatenate([p.detach().numpy(), q.detach().numpy().reshape(-1)]))
        evaluations.append(seen)
    assert len(evaluations[0]) == len(evaluations[1])
    np.testing.assert_allclose(evaluations[0], evaluations[1], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kwargs", [{}, {"lr": 0.01}, {"weight_decay": 0.2}, {"momentum": 0.8}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}], ids=str)
def test_muon_up_to_the_rounding_of_bfloat16(kwargs: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 4), (6, 2))]
    here, there = mg.optim.Muon(parameters(mg, values), **kwargs), torch.optim.Muon(parameters(torch, values), **kwargs)
    assert repr(here) == repr(there)
    close(run(mg, here, 10), run(torch, there, 10), 3e-2 * kwargs.get("lr", 1e-3) * 10)


@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor"])
def test_a_state_dict_of_pytorch_loads_here_and_back(name: str) -> None:
    kwargs: dict[str, Any] = {"lr": 0.05, **({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})}
    _, there = pair(name, kwargs)
    middle = run(torch, there, 7)
    here = getattr(mg.optim, name)(parameters(mg, middle))
    here.load_state_dict(there.state_dict())
    assert repr(here) == repr(there)
    close(run(mg, here, 7), run(torch, there, 7), 1e-6)
    again = getattr(torch.optim, name)(parameters(torch, [p.detach().numpy() for g in here.param_groups for p in g["params"]]))
    again.load_state_dict(theirs(here.state_dict()))
    close(run(mg, here, 7), run(torch, again, 7), 1e-6)


def theirs(value: Any) -> Any:
    if isinstance(value, mg.Tensor):
        return torch.tensor(value.numpy())
    if isinstance(value, dict):
        return {key: theirs(v) for key, v in value.items()}
    return [theirs(v) for v in value] if isinstance(value, list) else value


def test_a_file_that_pytorch_saved_loads() -> None:
    _, there = pair("Adam", {"lr": 0.05, "amsgrad": True})
    run(torch, there, 3)
    file = io.BytesIO()
    torch.save(there.state_dict(), file)
    file.seek(0)
    here = mg.optim.Adam(parameters(mg, starts()))
    here.load_state_dict(torch.load(file))
    compare_states(here, there)


def leaves(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [value] if isinstance(value, torch.Tensor) else [leaf for v in inner for leaf in leaves(v)]


def replaced(value: Any, known: dict[int, Any]) -> Any:
    """The same structure with our tensors in place of PyTorch's; one that occurs twice still does."""
    if isinstance(value, dict):
        return {key: replaced(v, known) for key, v in value.items()}
    return type(value)(replaced(v, known) for v in value) if isinstance(value, (list, tuple)) else known.get(id(value), value)


def errors() -> list[Any]:
    found = []
    for info in table.optim_db:
        if info.optim_cls.__name__ != "SparseAdam":
            for case in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
                found.append(pytest.param(info.optim_cls.__name__, case, id=f"{info.optim_cls.__name__}-{case.optimizer_error_input.desc}"))
    return found


@pytest.mark.parametrize(("name", "case"), errors())
def test_what_pytorch_refuses_is_refused(name: str, case: Any) -> None:
    given = case.optimizer_error_input
    if case.error_on is not table.OptimizerErrorEnum.CONSTRUCTION_ERROR:
        pytest.skip("an error of step()")
    if "lr as a Tensor" in case.error_regex or "betas" in case.error_regex and "Tensor" in case.error_regex and "1-element" not in case.error_regex:
        pytest.skip("here a tensor is as good as a number")
    params = list(given.params) if isinstance(given.params, list) else given.params
    known = {id(t): ours(t) for t in leaves(params)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((case.error_type, UserWarning)):
            getattr(mg.optim, name)(replaced(params, known), **ours(given.kwargs))


# ------------------------------------------------------------------------------------------------------------------ schedules

class Halving:
    """A function of the epoch that is an object."""

    def __init__(self) -> None:
        self.factor = 0.5

    def __call__(self, epoch: int) -> float:
        return self.factor ** (epoch / 4)


SCHEDULES: dict[str, Any] = {name: eval(f"lambda S, o: S.{name}", {"Halving": Halving}) for name in """
LambdaLR(o, lambda e: 0.9 ** e)
LambdaLR(o, [lambda e: 0.9 ** e, lambda e: 1 / (1 + e)])
LambdaLR(o, Halving())
MultiplicativeLR(o, lambda e: 0.9 + 0.01 * e)
StepLR(o, 3)
StepLR(o, step_size=4, gamma=0.7)
MultiStepLR(o, [2, 5, 5, 11], gamma=0.3)
ConstantLR(o)
ConstantLR(o, factor=0.25, total_iters=8)
LinearLR(o)
LinearLR(o, start_factor=0.1, end_factor=0.6, total_iters=12)
ExponentialLR(o, 0.85)
PolynomialLR(o, total_iters=9, power=2.0)
CosineAnnealingLR(o, 7)
CosineAnnealingLR(o, T_max=10, eta_min=0.01)
CosineAnnealingWarmRestarts(o, 5)
CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.001)
OneCycleLR(o, 0.9, total_steps=30)
OneCycleLR(o, [0.9, 0.5], epochs=6, steps_per_epoch=6, anneal_strategy='linear', pct_start=0.4)
OneCycleLR(o, max_lr=0.9, total_steps=40, three_phase=True, div_factor=10, final_div_factor=100)
OneCycleLR(o, 0.9, total_steps=35, cycle_momentum=False)
CyclicLR(o, 0.1, 0.9, step_size_up=4)
CyclicLR(o, 0.1, 0.9, step_size_up=3, step_size_down=5, mode='triangular2')
CyclicLR(o, [0.1, 0.2], [0.9, 0.8], step_size_up=3, mode='exp_range', gamma=0.95)
CyclicLR(o, 0.1, 0.9, step_size_up=3, scale_fn=lambda x: 1 / x, scale_mode='cycle')
CyclicLR(o, 0.1, 0.9, step_size_up=3, cycle_momentum=False)
SequentialLR(o, [S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.9)], [5])
SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=5), S.CosineAnnealingLR(o, 20), S.StepLR(o, 2)], [5, 20])
ChainedScheduler([S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.9)])
ChainedScheduler([S.LinearLR(o, 0.2, total_iters=6), S.StepLR(o, 5, 0.5)], o)
""".strip().splitlines()}


def two_groups(library: Any, name: str) -> Any:
    params = [library.zeros(2, requires_grad=True), library.zeros(3, requires_grad=True)]
    kwargs = {"momentum": 0.5} if name == "SGD" else {}
    return getattr(library.optim, name)([{"params": [params[0]]}, {"params": [params[1]], "lr": 0.3}], lr=0.8, **kwargs)


def sequence(library: Any, make: Any, name: str, epochs: int = 30, again: bool = False) -> list[Any]:
    optimizer = two_groups(library, name)
    scheduler = make(library.optim.lr_scheduler, optimizer)
    rates = []
    for epoch in range(epochs):
        rates.append([scheduler.get_last_lr(), [(g["lr"], g.get("momentum"), g.get("betas")) for g in optimizer.param_groups]])
        optimizer.step()
        scheduler.step()
        if again and epoch == 10:
            states = copy.deepcopy((optimizer.state_dict(), scheduler.state_dict()))
            optimizer = two_groups(library, name)
            scheduler = make(library.optim.lr_scheduler, optimizer)
            scheduler.load_state_dict(states[1])
            optimizer.load_state_dict(states[0])
            optimizer.step()
    return rates


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_thirty_epochs_have_the_rates_of_pytorch(schedule: str, name: str) -> None:
    expected = sequence(torch, SCHEDULES[schedule], name)
    assert sequence(mg, SCHEDULES[schedule], name) == expected
    assert sequence(mg, SCHEDULES[schedule], name, again=True) == expected


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_states_of_schedulers_have_the_keys_of_pytorch(schedule: str) -> None:
    states = []
    for library in (mg, torch):
        optimizer = two_groups(library, "SGD")
        states.append(SCHEDULES[schedule](library.optim.lr_scheduler, optimizer).state_dict())
    assert set(states[1]) <= set(states[0]) | {"_is_initial", "_get_lr_called_within_step"}


@pytest.mark.parametrize("kwargs", [{}, {"patience": 2, "cooldown": 2}, {"mode": "max", "patience": 1}, {"threshold_mode": "abs", "threshold": 0.2, "patience": 0},
                                    {"mode": "max", "threshold_mode": "abs", "patience": 1}, {"min_lr": [0.01, 0.2], "factor": 0.5, "patience": 1}], ids=str)
def test_reduce_on_plateau(kwargs: dict[str, Any]) -> None:
    losses = [abs(np.sin(0.7 * i)) + 1 / (1 + i) for i in range(30)]
    rates = []
    for library in (mg, torch):
        optimizer = two_groups(library, "SGD")
        scheduler = library.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **kwargs)
        rates.append([])
        for loss in losses:
            scheduler.step(loss)
            rates[-1].append((scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.best))
    assert rates[0] == rates[1]


@pytest.mark.parametrize("schedule", ["StepLR(o, 3)", "CosineAnnealingLR(o, 7)", "LinearLR(o)", "PolynomialLR(o, total_iters=9, power=2.0)",
                                      "MultiStepLR(o, [2, 5, 5, 11], gamma=0.3)", "ExponentialLR(o, 0.85)", "ConstantLR(o)", "CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.001)"])
def test_steps_to_an_epoch(schedule: str) -> None:
    rates = []
    for library in (mg, torch):
        optimizer = two_groups(library, "SGD")
        scheduler = SCHEDULES[schedule](library.optim.lr_scheduler, optimizer)
        optimizer.step()
        rates.append([])
        for epoch in (1, 4, 3, 12, 13):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scheduler.step(epoch)
            rates[-1].append(scheduler.get_last_lr())
    assert rates[0] == rates[1]


def test_rates_that_are_tensors_stay_the_same_tensors() -> None:
    rates = []
    for library in (mg, torch):
        lr = library.tensor(0.8)
        optimizer = library.optim.SGD([library.zeros(2, requires_grad=True)], lr=lr)
        scheduler = library.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5)
        for _ in range(3):
            optimizer.step()
            scheduler.step()
        assert optimizer.param_groups[0]["lr"] is lr
        rates.append(lr.item())
    assert rates[0] == pytest.approx(rates[1], rel=1e-6)


@pytest.mark.parametrize("kwargs", [{"swa_lr": 0.05}, {"swa_lr": [0.05, 0.1], "anneal_epochs": 4, "anneal_strategy": "linear"}, {"swa_lr": 0.05, "anneal_epochs": 0}], ids=str)
def test_swalr(kwargs: dict[str, Any]) -> None:
    rates = [sequence(library, lambda S, o, swa=library.optim.swa_utils: swa.SWALR(o, **kwargs), "SGD", 15) for library in (mg, torch)]
    assert rates[0] == rates[1]


@pytest.mark.parametrize("make", ["{}", "{'avg_fn': U.get_ema_avg_fn(0.8)}", "{'multi_avg_fn': U.get_ema_multi_avg_fn(0.8)}", "{'avg_fn': U.get_swa_avg_fn()}",
                                  "{'multi_avg_fn': U.get_ema_multi_avg_fn(0.8), 'use_buffers': True}", "{'multi_avg_fn': U.get_swa_multi_avg_fn()}"])
def test_averaged_model(make: str) -> None:
    results = []
    for library in (mg, torch):
        model = library.nn.Sequential(library.nn.Linear(2, 3), library.nn.BatchNorm1d(3))
        averaged = library.optim.swa_utils.AveragedModel(model, **eval(make, {"U": library.optim.swa_utils}))
        for value in (1.0, 2.0, 5.0, -3.0):
            for i, t in enumerate([*model.parameters(), model[1].running_mean]):
                t.data.fill_(value + i)
            averaged.update_parameters(model)
        results.append({key: value.tolist() for key, value in averaged.state_dict().items()})
    assert results[0].keys() == results[1].keys()
    for key in results[0]:
        np.testing.assert_allclose(results[0][key], results[1][key], rtol=1e-6)


def test_update_bn() -> None:
    batches = [np.random.default_rng(i).standard_normal((4, 3)).astype(np.float32) for i in range(3)]
    results = []
    for library in (mg, torch):
        model = library.nn.Sequential(library.nn.BatchNorm1d(3))
        model.eval()
        library.optim.swa_utils.update_bn([(library.tensor(b), 0) for b in batches], model)
        assert not model.training and model[0].momentum == 0.1
        results.append((model[0].running_mean.tolist(), model[0].running_var.tolist()))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
