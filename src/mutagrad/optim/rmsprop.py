"""RMSprop: gradients divided by their usual size."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, average_square, divided_step, seen_gradient, toward
from .elementwise import Elementwise, weight_decay_of
from .optimizer import Group, ParamsT
from .settings import check_positive, rate_of


class RMSprop(Elementwise):
    """Divides by the root of a running average of squares, or of the variance if `centered`; by Hinton.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.RMSprop([w], lr=0.01)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_positive(self, lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable})

    def kept(self, group: Group) -> tuple[str, ...]:
        momentum, centered = group["momentum"] > 0, group["centered"]
        return "square_avg", *(("momentum_buffer",) if momentum else ()), *(("grad_avg",) if centered else ())

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        alpha, momentum = float(group["alpha"]), float(group["momentum"])
        return (group["maximize"], weight_decay_of(group), alpha, 1 - alpha, float(group["eps"]),
                momentum if momentum > 0 else None, group["centered"], rate_of(group))

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, square: Array, *others: Array) -> tuple[Array, ...]:
        maximize, decay, keep, weight, eps, momentum, centered, lr = hyper
        g = toward(p, g, maximize, decay)
        square = keep * square + weight * g * g
        means = [mean + weight * (g - mean) for mean in (others[-1:] if centered else ())]
        ratio = g / (np.sqrt(square - means[0] * means[0] if centered else square) + eps)
        if momentum is None:
            return p - lr * ratio, square, *means
        moving = momentum * others[0] + ratio
        return p - lr * moving, square, moving, *means

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, square: Array,
               *others: Array) -> None:
        maximize, decay, keep, weight, eps, momentum, centered, lr = hyper
        t, u, below = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        average_square(square, g, keep, weight, t)
        if centered:
            mean = others[-1]
            average(mean, g, weight, t)
            square = np.subtract(square, np.multiply(mean, mean, t), t)
        np.sqrt(square, below)
        np.add(below, eps, below)
        if momentum is None:
            return divided_step(p, g, below, lr, below)
        moving = others[0]
        np.multiply(moving, momentum, moving)
        np.add(moving, np.divide(g, below, below), moving)
        np.subtract(p, np.multiply(moving, lr, t), p)
