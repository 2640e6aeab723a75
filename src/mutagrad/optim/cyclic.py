"""Learning rates that go up and down, with a momentum that goes down and up."""
from __future__ import annotations

from collections.abc import Callable
from math import cos, floor, pi
from typing import Any

from ..base.errors import BadValue
from .optimizer import Group, Optimizer
from .scheduler import LRScheduler, Rate, Rates, check_optimizer, for_groups, saved_functions, set_in_group

__all__ = ["CyclicLR", "OneCycleLR"]


class _WithMomentum(LRScheduler):
    """Schedulers that change the momentum (of Adam, the first of its betas) against the rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base_momentum: Rates, max_momentum: Rates, fresh: bool) -> None:
        groups, defaults = self.optimizer.param_groups, self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise BadValue("optimizer must support momentum or beta1 with `cycle_momentum` option enabled",
                           fix="cycle_momentum=False")
        self.use_beta1 = "betas" in defaults
        self.base_momentums = for_groups("base_momentum", self.optimizer, base_momentum)
        self.max_momentums = for_groups("max_momentum", self.optimizer, max_momentum)
        if fresh:
            for most, least, group in zip(self.max_momentums, self.base_momentums, groups):
                self._set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, least

    def _set_momentum(self, group: Group, value: Rate) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


_SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda gamma, x: 1.0),
    "triangular2": ("cycle", lambda gamma, x: 1 / (2.0 ** (x - 1))),
    "exp_range": ("iterations", lambda gamma, x: gamma ** x),
}


class CyclicLR(_WithMomentum):
    """Up from `base_lr` to `max_lr` and down again, in cycles; by Smith.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.1, max_lr=0.5, step_size_up=2)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.3
    0.5
    0.3
    """

    def __init__(self, optimizer: Optimizer, base_lr: Rates, max_lr: Rates, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True, base_momentum: Rates = 0.8, max_momentum: Rates = 0.9,
                 last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        if mode not in _SCALES and scale_fn is None:
            raise BadValue(f"CyclicLR: mode is invalid and scale_fn is None: {mode!r}",
                           fix=f"one of {', '.join(_SCALES)}")
        self.optimizer = optimizer
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self.cycle_momentum = mode, gamma, cycle_momentum
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALES[mode][0]
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                set_in_group(group, "lr", rate)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return how high the cycle (or the epoch) with this number goes.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, mode="triangular2")
        >>> scheduler.scale_fn(2)
        0.5
        """
        return self._scale_fn_custom(x) if self._scale_fn_custom is not None else _SCALES[self.mode][1](self.gamma, x)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for least, most, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                self._set_momentum(group, most - (most - least) * height * scale)
        return [least + (most - least) * height * scale for least, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and functions; of an object that is called, its attributes.

        >>> import mutagrad as mg
        >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
        >>> scheduler = mg.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5)
        >>> scheduler.state_dict()["last_epoch"]
        0
        """
        f = self._scale_fn_custom
        return super().state_dict() | {"_scale_fn_custom": None if f is None else saved_functions([f])[0]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)


def annealed_by_cosine(start: Rate, end: Rate, done: float) -> Rate:
    """Return a value between two, along half a cosine."""
    return end + (start - end) / 2.0 * (cos(pi * done) + 1)


def _annealed_linearly(start: Rate, end: Rate, done: float) -> Rate:
    return (end - start) * done + start


_ANNEALED = {"cos": annealed_by_cosine, "linear": _annealed_linearly}


class OneCycleLR(_WithMomentum):
    """Up to `max_lr` and then far below the first rate, once in all of training, step by batch; by Smith and Topin.

    >>> import mutagrad as mg
    >>> optimizer = mg.optim.SGD([mg.zeros(1, requires_grad=True)], lr=1.)
    >>> scheduler = mg.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1., total_steps=4)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    ...     print(round(scheduler.get_last_lr()[0], 4))
    0.8117
    0.2831
    0.0
    """

    def __init__(self, optimizer: Optimizer, max_lr: Rates, total_steps: int | None = None,
                 epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
                 anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Rates = 0.85,
                 max_momentum: Rates = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
                 three_phase: bool = False, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer, self.total_steps = optimizer, _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise BadValue(f"OneCycleLR: Expected float between 0 and 1 pct_start, but got {pct_start}",
                           fix="pct_start=0.3")
        if anneal_strategy not in _ANNEALED:
            raise BadValue("OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', instead got "
                           f"{anneal_strategy}", fix="anneal_strategy='cos'")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups):
                group.update(initial_lr=most / div_factor, max_lr=most, min_lr=most / div_factor / final_div_factor)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise BadValue(f"OneCycleLR: Tried to step {step} times. The specified number of total steps is "
                           f"{self.total_steps}", fix="total_steps=epochs * len(batches)")
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        done = (step - start) / (phase["end_step"] - start)
        anneal = _ANNEALED[self._anneal_func_type]
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._set_momentum(group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], done))
        return [anneal(group[phase["start_lr"]], group[phase["end_lr"]], done) for group in groups]


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is None and (epochs is None or steps_per_epoch is None):
        raise BadValue("OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)",
                       fix="total_steps=epochs * len(batches)")
    given = {"total_steps": total_steps}
    if total_steps is None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    product = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise BadValue(f"OneCycleLR: Expected positive integer {name}, but got {value}")
        product *= value
    return product


def _phases(pct_start: float, total_steps: int, three_phase: bool) -> list[dict[str, Any]]:
    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {"end_step": end, "start_lr": rates[0], "end_lr": rates[1], "start_momentum": momenta[0],
                "end_momentum": momenta[1]}

    down, up = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
    first = phase(float(pct_start * total_steps) - 1, ("initial_lr", "max_lr"), down)
    if not three_phase:
        return [first, phase(total_steps - 1, ("max_lr", "min_lr"), up)]
    return [first, phase(float(2 * pct_start * total_steps) - 2, ("max_lr", "initial_lr"), up),
            phase(total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]
