"""Averaged gradient descent."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, seen_gradient, toward
from .elementwise import Elementwise, stepped, weight_decay_of
from .optimizer import Group, ParamsT, State
from .settings import check_positive, rate_of


class ASGD(Elementwise):
    """Gradient descent that also keeps the average of where it has been, in state[p]["ax"]; by Polyak and Juditsky.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.ASGD([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.8000, 0.8000])
    """

    counts = ("step", "eta", "mu")

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_positive(self, lr, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return ("ax",)

    def first_count(self, group: Group, name: str) -> float:
        return {"step": 0.0, "eta": rate_of(group), "mu": 1.0}[name]

    def advance(self, group: Group, state: State) -> tuple[Any, ...]:
        eta, mu, step = state["eta"].item(), state["mu"].item(), stepped(state)
        lr = rate_of(group)
        state["eta"]._array[...] = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        state["mu"]._array[...] = 1 / max(1, step - group["t0"])
        return eta, mu

    def hyper(self, group: Group, eta: float, mu: float) -> tuple[Any, ...]:  # type: ignore[override]
        return group["maximize"], weight_decay_of(group), 1 - float(group["lambd"]) * eta, eta, None if mu == 1 else mu

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, mean: Array) -> tuple[Array, ...]:
        maximize, decay, shrink, eta, weight = hyper
        p = shrink * p - eta * toward(p, g, maximize, decay)
        return p, p if weight is None else mean + weight * (p - mean)

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, mean: Array) -> None:
        maximize, decay, shrink, eta, weight = hyper
        t, u, _ = scratch
        np.multiply(seen_gradient(u, p, g, maximize, decay), eta, t)
        np.multiply(p, shrink, p)
        np.subtract(p, t, p)
        if weight is None:
            mean[...] = p
        else:
            average(mean, p, weight, t)
