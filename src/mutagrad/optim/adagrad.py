"""Adagrad: steps that get smaller where gradients have been large."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import divided_step, seen_gradient, toward
from .elementwise import Elementwise, stepped, weight_decay_of
from .optimizer import Group, ParamsT, State, count_tensor
from .replayed import filled
from .settings import check_positive, plain, rate_of
from .sparse_gradients import entries, refuse_decay


class Adagrad(Elementwise):
    """Divides by the root of the sum of all squares so far, by Duchi and others.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Adagrad([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        check_positive(self, lr, lr_decay=lr_decay, weight_decay=weight_decay,
                       initial_accumulator_value=initial_accumulator_value, eps=eps)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused})
        for group in self.param_groups:  # PyTorch has this state from the beginning, too
            for p in group["params"]:
                self.state[p].update(step=count_tensor(0.0), sum=filled(p, self.first_value(group, "sum")))

    def kept(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def first_value(self, group: Group, name: str) -> float:
        return float(plain(group["initial_accumulator_value"]))

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        rate = rate_of(group) / (1 + (step - 1) * float(group["lr_decay"]))
        return group["maximize"], weight_decay_of(group), float(group["eps"]), rate

    def check_sparse(self, found: list[tuple[Group, Tensor]]) -> None:
        for group, _ in found:
            refuse_decay(group, "Adagrad")

    def step_sparse(self, group: Group, p: Any, state: State) -> None:
        maximize, _, eps, rate = self.hyper(group, stepped(state))
        at, g = entries(p.grad)
        total = state["sum"]
        total.index_put_(at, g * g, accumulate=True)
        p.index_put_(at, g / (total[at].sqrt() + eps) * (rate if maximize else -rate), accumulate=True)

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, total: Array) -> tuple[Array, ...]:
        maximize, decay, eps, rate = hyper
        g = toward(p, g, maximize, decay)
        total = total + g * g
        return p - rate * g / (np.sqrt(total) + eps), total

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, total: Array) -> None:
        maximize, decay, eps, rate = hyper
        t, u, _ = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        np.add(total, np.multiply(g, g, t), total)
        np.sqrt(total, t)
        np.add(t, eps, t)
        divided_step(p, g, t, rate, t)
