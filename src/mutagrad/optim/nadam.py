"""NAdam: Adam with Nesterov's momentum."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import average, average_square, divided_step, seen_gradient, toward
from .elementwise import Elementwise, decays, stepped
from .optimizer import Group, ParamsT, State
from .settings import Betas, check_betas, check_positive, rate_of


class NAdam(Elementwise):
    """Adam that looks one step ahead, by Dozat.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.NAdam([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.8944, 0.8944])
    """

    counts = ("step", "mu_product")

    def __init__(self, params: ParamsT, lr: float | Tensor = 2e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        check_positive(self, lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas(self, betas), "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return "exp_avg", "exp_avg_sq"

    def first_count(self, group: Group, name: str) -> float:
        return float(name == "mu_product")

    def advance(self, group: Group, state: State) -> tuple[Any, ...]:
        step, product = stepped(state), state["mu_product"]._array
        product *= _momentum(group, step)
        return step, product.item()

    def hyper(self, group: Group, step: float, product: float) -> tuple[Any, ...]:  # type: ignore[override]
        lr = rate_of(group)
        beta1, beta2 = map(float, group["betas"])
        now, ahead = _momentum(group, step), _momentum(group, step + 1)
        return (group["maximize"], *decays(group, lr), 1 - beta1, beta2, 1 - beta2, 1 - beta2 ** step,
                float(group["eps"]), lr * (1 - now) / (1 - product), lr * ahead / (1 - product * ahead))

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, mean: Array, square: Array) -> tuple[Array, ...]:
        maximize, decay, shrink, weight1, keep2, weight2, correction, eps, rate, rate_ahead = hyper
        g = toward(p, g, maximize, decay)
        p = p if shrink is None else shrink * p
        mean, square = mean + weight1 * (g - mean), keep2 * square + weight2 * g * g
        return p - (rate * g + rate_ahead * mean) / (np.sqrt(square / correction) + eps), mean, square

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, mean: Array, square: Array) -> None:
        maximize, decay, shrink, weight1, keep2, weight2, correction, eps, rate, rate_ahead = hyper
        t, u, below = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        if shrink is not None:
            np.multiply(p, shrink, p)
        average(mean, g, weight1, t)
        average_square(square, g, keep2, weight2, t)
        np.divide(square, correction, below)
        np.sqrt(below, below)
        np.add(below, eps, below)
        divided_step(p, g, below, rate, t)
        divided_step(p, mean, below, rate_ahead, t)


def _momentum(group: Group, step: float) -> float:
    return float(group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"])))
