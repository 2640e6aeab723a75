"""RAdam: Adam that waits until its average of squares means something."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, average_square, divided_step, seen_gradient, toward
from .elementwise import Elementwise, decays
from .optimizer import Group, ParamsT
from .settings import Betas, check_betas, check_positive, rate_of


class RAdam(Elementwise):
    """Adam with rectified steps, by Liu and others.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.RAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.8000, 0.8000])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:
        check_positive(self, lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas(self, betas), "eps": eps, "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        lr = rate_of(group)
        beta1, beta2 = map(float, group["betas"])
        rate, correction = lr / (1 - beta1 ** step), 1 - beta2 ** step
        longest = 2 / (1 - beta2) - 1  # of the averages of squares, in the limit; then the one after this many steps
        length = longest - 2 * step * beta2 ** step / correction
        rectified = length > 5
        if rectified:
            whole = (longest - 4) * (longest - 2) * length
            rate *= ((length - 4) * (length - 2) * longest / whole * correction) ** 0.5
        return (group["maximize"], *decays(group, lr), 1 - beta1, beta2, 1 - beta2, float(group["eps"]), rate,
                rectified)

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, mean: Array, square: Array) -> tuple[Array, ...]:
        maximize, decay, shrink, weight1, keep2, weight2, eps, rate, rectified = hyper
        g = toward(p, g, maximize, decay)
        p = p if shrink is None else shrink * p
        mean, square = mean + weight1 * (g - mean), keep2 * square + weight2 * g * g
        return p - rate * (mean / (np.sqrt(square) + eps) if rectified else mean), mean, square

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, mean: Array, square: Array) -> None:
        maximize, decay, shrink, weight1, keep2, weight2, eps, rate, rectified = hyper
        t, u, _ = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        if shrink is not None:
            np.multiply(p, shrink, p)
        average(mean, g, weight1, t)
        average_square(square, g, keep2, weight2, t)
        if rectified:
            np.sqrt(square, t)
            np.add(t, eps, t)
            divided_step(p, mean, t, rate, t)
        else:
            np.subtract(p, np.multiply(mean, rate, t), p)
