"""Adadelta: steps in the unit of the steps before."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.errors import BadValue
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average_square, seen_gradient, toward
from .elementwise import Elementwise, weight_decay_of
from .optimizer import Group, ParamsT
from .settings import check_positive, number, rate_of


class Adadelta(Elementwise):
    """Scales by running averages of squared gradients and of squared steps, by Zeiler.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Adadelta([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9997, 0.9997])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        check_positive(self, lr, eps=eps, weight_decay=weight_decay)
        if not 0 <= number(self, "rho", rho) <= 1:
            raise BadValue(f"Adadelta: Invalid rho value: {rho}", why="it must be from 0 to 1", fix="rho=0.9")
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return "square_avg", "acc_delta"

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        rho = float(group["rho"])
        return group["maximize"], weight_decay_of(group), rho, 1 - rho, float(group["eps"]), rate_of(group)

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, square: Array, steps: Array) -> tuple[Array, ...]:
        maximize, decay, keep, weight, eps, lr = hyper
        g = toward(p, g, maximize, decay)
        square = keep * square + weight * g * g
        delta = np.sqrt(steps + eps) / np.sqrt(square + eps) * g
        return p - lr * delta, square, keep * steps + weight * delta * delta

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, square: Array, steps: Array) -> None:
        maximize, decay, keep, weight, eps, lr = hyper
        t, u, delta = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        average_square(square, g, keep, weight, t)
        np.sqrt(np.add(square, eps, t), t)
        np.sqrt(np.add(steps, eps, delta), delta)
        np.divide(delta, t, delta)
        np.multiply(delta, g, delta)
        average_square(steps, delta, keep, weight, t)
        np.subtract(p, np.multiply(delta, lr, t), p)
