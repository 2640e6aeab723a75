"""Learning rate schedules: rates written out, saving, warnings, bad input. (tests/oracle compares all of them with PyTorch's.)"""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from math import cos, pi
from typing import Any

import pytest

import mutagrad as mg
from mutagrad.optim import SGD, Adam, lr_scheduler as schedules
from mutagrad.optim.swa_utils import SWALR


def optimizer(lr: Any = 1.0, **settings: Any) -> SGD:
    return SGD([mg.zeros(2, requires_grad=True)], lr=lr, **settings)


def rates(make: Callable[[Any], Any], epochs: int, **settings: Any) -> list[float]:
    o = optimizer(**settings)
    scheduler, found = make(o), []
    for _ in range(epochs):
        assert scheduler.get_last_lr() == [o.param_groups[0]["lr"]]
        found.append(o.param_groups[0]["lr"])
        o.step()
        scheduler.step()
    return found


EXPECTED: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "LambdaLR": (lambda o: schedules.LambdaLR(o, lambda e: 1 / (1 + e)), [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
    "MultiplicativeLR": (lambda o: schedules.MultiplicativeLR(o, lambda e: 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
    "StepLR": (lambda o: schedules.StepLR(o, 2, 0.5), [1, 1, 0.5, 0.5, 0.25]),
    "MultiStepLR": (lambda o: schedules.MultiStepLR(o, [1, 3], 0.5), [1, 0.5, 0.5, 0.25, 0.25]),
    "ConstantLR": (lambda o: schedules.ConstantLR(o, 0.5, 3), [0.5, 0.5, 0.5, 1, 1]),
    "LinearLR": (lambda o: schedules.LinearLR(o, 0.25, 1.0, 3), [0.25, 0.5, 0.75, 1, 1]),
    "ExponentialLR": (lambda o: schedules.ExponentialLR(o, 0.5), [1, 0.5, 0.25, 0.125, 0.0625]),
    "PolynomialLR": (lambda o: schedules.PolynomialLR(o, 4), [1, 0.75, 0.5, 0.25, 0]),
    "CosineAnnealingLR": (lambda o: schedules.CosineAnnealingLR(o, 4), [(1 + cos(pi * e / 4)) / 2 for e in range(5)]),
    "CosineAnnealingWarmRestarts": (lambda o: schedules.CosineAnnealingWarmRestarts(o, 2), [1, 0.5, 1, 0.5, 1]),
    "CyclicLR": (lambda o: schedules.CyclicLR(o, 0.0, 1.0, 2, cycle_momentum=False), [0, 0.5, 1, 0.5, 0]),
    "OneCycleLR": (lambda o: schedules.OneCycleLR(o, 1.0, 5, pct_start=0.6, div_factor=2, final_div_factor=2, anneal_strategy="linear", cycle_momentum=False),
                   [0.5, 0.75, 1, 0.625, 0.25]),
    "SequentialLR": (lambda o: schedules.SequentialLR(o, [schedules.ConstantLR(o, 0.5, 9), schedules.ExponentialLR(o, 0.5)], [2]), [0.5, 0.5, 1, 0.5, 0.25]),
    "ChainedScheduler": (lambda o: schedules.ChainedScheduler([schedules.ConstantLR(o, 0.5, 2), schedules.ExponentialLR(o, 0.5)]),
                         [0.5, 0.25, 0.25, 0.125, 0.0625]),
    "SWALR": (lambda o: SWALR(o, 0.5, 2, "linear"), [1, 0.75, 0.5, 0.5, 0.5]),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_rates(name: str) -> None:
    make, expected = EXPECTED[name]
    assert rates(make, 5) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", EXPECTED)
def test_goes_on_where_it_was_saved(name: str) -> None:
    make, _ = EXPECTED[name]
    whole = rates(make, 5)
    first = optimizer()
    scheduler = make(first)
    for _ in range(2):
        first.step()
        scheduler.step()
    states = pickle.loads(pickle.dumps((first.state_dict(), scheduler.state_dict())))
    second = optimizer()
    again = make(second)
    again.load_state_dict(states[1])
    second.load_state_dict(states[0])
    assert "optimizer" not in states[1]
    for expected in whole[2:]:
        assert second.param_groups[0]["lr"] == again.get_last_lr()[0] == expected
        second.step()
        again.step()


def test_resuming_at_an_epoch() -> None:
    o = optimizer(0.5)
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(o, 2, last_epoch=3)
    o.param_groups[0]["initial_lr"] = 1.0
    scheduler = schedules.StepLR(o, 2, 0.5, last_epoch=2)
    o.step()
    scheduler.step()
    assert scheduler.last_epoch == 4 and scheduler.get_last_lr() == [0.25]


def test_plateau() -> None:
    o = optimizer()
    scheduler = schedules.ReduceLROnPlateau(o, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    found = []
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, mg.tensor(2.0), 2.0, 2.0):
        scheduler.step(loss)
        found += scheduler.get_last_lr()
    assert found == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2]
    twin = schedules.ReduceLROnPlateau(optimizer())
    twin.load_state_dict(copy.deepcopy(scheduler.state_dict()))
    assert twin.best == 2.0 and twin.factor == 0.5 and twin.last_epoch == 10


def test_momentum_goes_against_the_rate() -> None:
    for o, momentum in ((optimizer(momentum=0.9), lambda g: g["momentum"]), (Adam([mg.zeros(2, requires_grad=True)], lr=1.0), lambda g: g["betas"][0])):
        scheduler = schedules.CyclicLR(o, 0.0, 1.0, 2, base_momentum=0.5, max_momentum=0.9)
        found = []
        for _ in range(4):
            found.append(momentum(o.param_groups[0]))
            o.step()
            scheduler.step()
        assert found == pytest.approx([0.9, 0.7, 0.5, 0.7])


def test_a_rate_for_each_group() -> None:
    o = SGD([{"params": [mg.zeros(2)]}, {"params": [mg.zeros(2)], "lr": 0.5}], lr=1.0)
    scheduler = schedules.LambdaLR(o, [lambda e: 1.0, lambda e: 0.5 ** e])
    o.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [1.0, 0.25] and scheduler.base_lrs == [1.0, 0.5]


def test_a_rate_that_is_a_tensor_is_changed_in_place() -> None:
    lr = mg.tensor(1.0)
    o = optimizer(lr)
    scheduler = schedules.ExponentialLR(o, 0.5)
    o.step()
    scheduler.step()
    assert lr.item() == 0.5 and o.param_groups[0]["lr"] is lr
    assert scheduler.get_last_lr()[0] is not lr


def test_a_schedule_of_ones_own() -> None:
    class Fifths(schedules.LRScheduler):
        def get_lr(self) -> list[float]:
            return [rate * (1 - self.last_epoch / 5) for rate in self.base_lrs]

    assert rates(Fifths, 3) == pytest.approx([1, 0.8, 0.6])


def test_the_wrong_order_is_warned_of() -> None:
    scheduler = schedules.StepLR(optimizer(), 2)
    with pytest.warns(UserWarning, match="before optimizer.step"):
        scheduler.step()
    o = optimizer()
    scheduler = schedules.StepLR(o, 2)
    o.step()
    scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with pytest.warns(UserWarning, match="deprecated"):
        scheduler.step(4)
    assert scheduler.get_last_lr() == [pytest.approx(0.01)]


BAD: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "no optimizer": (lambda: schedules.StepLR(3, 2), TypeError),  # type: ignore[arg-type]
    "too many functions": (lambda: schedules.LambdaLR(optimizer(), [abs, abs]), ValueError),
    "no function": (lambda: schedules.MultiplicativeLR(optimizer(), 0.5), TypeError),
    "factor": (lambda: schedules.ConstantLR(optimizer(), 2.0), ValueError),
    "start_factor": (lambda: schedules.LinearLR(optimizer(), 0.0), ValueError),
    "end_factor": (lambda: schedules.LinearLR(optimizer(), 0.5, 1.5), ValueError),
    "T_0": (lambda: schedules.CosineAnnealingWarmRestarts(optimizer(), 0), ValueError),
    "T_mult": (lambda: schedules.CosineAnnealingWarmRestarts(optimizer(), 2, 0), ValueError),
    "negative epoch": (lambda: schedules.CosineAnnealingWarmRestarts(optimizer(), 2).step(-1), ValueError),
    "no steps": (lambda: schedules.OneCycleLR(optimizer(momentum=0.9), 1.0), ValueError),
    "no epochs": (lambda: schedules.OneCycleLR(optimizer(momentum=0.9), 1.0, epochs=0, steps_per_epoch=2), ValueError),
    "strategy": (lambda: schedules.OneCycleLR(optimizer(), 1.0, 5, anneal_strategy="no"), ValueError),
    "rates for other groups": (lambda: schedules.OneCycleLR(optimizer(), [1.0, 2.0], 5), ValueError),
    "mode of a cycle": (lambda: schedules.CyclicLR(optimizer(), 0.1, 1.0, mode="no"), ValueError),
    "no momentum": (lambda: schedules.CyclicLR(mg.optim.Adagrad([mg.zeros(2)]), 0.1, 1.0), ValueError),
    "plateau's factor": (lambda: schedules.ReduceLROnPlateau(optimizer(), factor=1.0), ValueError),
    "plateau's mode": (lambda: schedules.ReduceLROnPlateau(optimizer(), mode="no"), ValueError),
    "plateau in a chain": (lambda: schedules.ChainedScheduler([schedules.ReduceLROnPlateau(optimizer())]), ValueError),
    "empty chain": (lambda: schedules.ChainedScheduler([]), ValueError),
    "two optimizers": (lambda: schedules.ChainedScheduler([schedules.StepLR(optimizer(), 2), schedules.StepLR(optimizer(), 2)]), ValueError),
    "milestones": (lambda: schedules.SequentialLR(o := optimizer(), [schedules.StepLR(o, 2)], [2]), ValueError),
    "not a scheduler": (lambda: schedules.SequentialLR(optimizer(), [3], []), TypeError),
    "SWALR": (lambda: SWALR(optimizer(), 0.5, -1), ValueError),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    make, error = BAD[name]
    with pytest.raises(error):
        make()


def test_a_cycle_has_an_end() -> None:
    o = optimizer(momentum=0.9)
    scheduler = schedules.OneCycleLR(o, 1.0, 3)
    o.step()
    for _ in range(3):
        scheduler.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        scheduler.step()
