"""Gradient descent, with momentum if wanted."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.errors import BadValue
from ..base.layout import has_own_layout
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import seen_gradient, toward
from .elementwise import Elementwise, weight_decay_of
from .optimizer import Group, ParamsT, State
from .settings import check_positive, rate_of
from .sparse_gradients import entries, refuse_decay


class SGD(Elementwise):
    """Goes down the gradient, or down a running sum of gradients.

    >>> import mutagrad as mg
    >>> w = mg.tensor([1., -2.], requires_grad=True)
    >>> optimizer = mg.optim.SGD([w], lr=0.25, momentum=0.9)
    >>> (w ** 2).sum().backward()
    >>> optimizer.step(); w
    tensor([ 0.5000, -1.0000], requires_grad=True)
    """

    counts = ()

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        check_positive(self, lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise BadValue("SGD: Nesterov momentum requires a momentum and zero dampening",
                           fix="momentum=0.9, dampening=0, nesterov=True")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach, "differentiable": differentiable,
            "fused": fused})

    def kept(self, group: Group) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def advance(self, group: Group, state: State) -> tuple[Any, ...]:
        return (bool(group["dampening"]) and state.get("momentum_buffer") is None,)  # else zeros are as good

    def hyper(self, group: Group, first: bool) -> tuple[Any, ...]:  # type: ignore[override]
        dampening = float(group["dampening"])
        return (group["maximize"], weight_decay_of(group), rate_of(group), float(group["momentum"]), first,
                1 - dampening if dampening else None, group["nesterov"])

    def check_sparse(self, found: list[tuple[Group, Tensor]]) -> None:
        for group, _ in found:
            refuse_decay(group, "SGD")

    def step_sparse(self, group: Group, p: Any, state: State) -> None:
        g, momentum = -p.grad if group["maximize"] else p.grad, float(group["momentum"])
        if momentum:
            moving = state.get("momentum_buffer")
            moving = g.clone() if moving is None else moving * momentum + g * (1 - float(group["dampening"]))
            state["momentum_buffer"] = moving
            g = g + moving * momentum if group["nesterov"] else moving
        if has_own_layout((g,)):
            at, values = entries(g)
            p.index_put_(at, values * -rate_of(group), accumulate=True)
        else:  # of a gradient before that was dense
            p.sub_(g * rate_of(group))

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, moving: Array | None = None) -> tuple[Array, ...]:
        maximize, decay, lr, momentum, first, weight, nesterov = hyper
        g = toward(p, g, maximize, decay)
        if moving is None:
            return (p - lr * g,)
        moving = g if first else momentum * moving + (g if weight is None else weight * g)
        return p - lr * (g + momentum * moving if nesterov else moving), moving

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, moving: Array | None = None) -> None:
        maximize, decay, lr, momentum, first, weight, nesterov = hyper
        t, u, _ = scratch
        g = seen_gradient(u, p, g, maximize, decay)
        if moving is not None:
            if first:
                moving[...] = g
            else:
                np.multiply(moving, momentum, moving)
                np.add(moving, g if weight is None else np.multiply(g, weight, t), moving)
            g = np.add(g, np.multiply(moving, momentum, t), u) if nesterov else moving
        np.subtract(p, np.multiply(g, lr, t), p)
