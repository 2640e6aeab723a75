"""Adamax: Adam by the largest gradients instead of their squares."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, divided_step, seen_gradient, toward
from .elementwise import Elementwise, weight_decay_of
from .optimizer import Group, ParamsT
from .settings import Betas, check_betas, check_positive, rate_of


class Adamax(Elementwise):
    """Adam with the infinity norm, by Kingma and Ba.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Adamax([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        check_positive(self, lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas(self, betas), "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return "exp_avg", "exp_inf"

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        beta1, beta2 = map(float, group["betas"])
        return (group["maximize"], weight_decay_of(group), 1 - beta1, beta2, float(group["eps"]),
                rate_of(group) / (1 - beta1 ** step))

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, mean: Array, largest: Array) -> tuple[Array, ...]:
        maximize, decay, weight, keep, eps, rate = hyper
        g = toward(p, g, maximize, decay)
        mean, largest = mean + weight * (g - mean), np.maximum(keep * largest, np.abs(g) + eps)
        return p - rate * mean / largest, mean, largest

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, mean: Array, largest: Array) -> None:
        maximize, decay, weight, keep, eps, rate = hyper
        t, u, _ = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        average(mean, g, weight, t)
        np.abs(g, t)
        np.add(t, eps, t)
        np.multiply(largest, keep, largest)
        np.maximum(largest, t, out=largest)
        divided_step(p, mean, largest, rate, t)
