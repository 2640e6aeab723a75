"""Adam: steps that go by running averages of the gradient and of its square."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, average_square, divided_step, seen_gradient, toward
from .elementwise import Elementwise, decays
from .optimizer import Group, ParamsT
from .settings import Betas, check_betas, check_positive, rate_of


class Adam(Elementwise):
    """Adam, by Kingma and Ba; with `decoupled_weight_decay` it is AdamW.

    >>> import mutagrad as mg
    >>> w = mg.tensor([1., -2.], requires_grad=True)
    >>> optimizer = mg.optim.Adam([w], lr=0.5)
    >>> (w ** 2).sum().backward()
    >>> optimizer.step(); optimizer.zero_grad()
    >>> w
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        check_positive(self, lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas(self, betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay})

    def kept(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        lr = rate_of(group)
        beta1, beta2 = map(float, group["betas"])
        root = (1 - beta2 ** step) ** 0.5
        return (group["maximize"], *decays(group, lr), 1 - beta1, beta2, 1 - beta2, float(group["eps"]) * root,
                lr / (1 - beta1 ** step) * root)

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, mean: Array, square: Array,
                top: Array | None = None) -> tuple[Array, ...]:
        maximize, decay, shrink, weight1, keep2, weight2, eps, rate = hyper
        g = toward(p, g, maximize, decay)
        p = p if shrink is None else shrink * p
        mean, square = mean + weight1 * (g - mean), keep2 * square + weight2 * g * g
        largest = square if top is None else np.maximum(top, square)
        p = p - rate * mean / (np.sqrt(largest) + eps)
        return (p, mean, square) if top is None else (p, mean, square, largest)

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, mean: Array, square: Array,
               top: Array | None = None) -> None:
        maximize, decay, shrink, weight1, keep2, weight2, eps, rate = hyper
        t, u, _ = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        if shrink is not None:
            np.multiply(p, shrink, p)
        average(mean, g, weight1, t)
        average_square(square, g, keep2, weight2, t)
        if top is not None:
            square = np.maximum(top, square, out=top)
        np.sqrt(square, t)
        np.add(t, eps, t)  # what PyTorch divides the root by is in `eps` and `rate`: one operation less
        divided_step(p, mean, t, rate, t)
