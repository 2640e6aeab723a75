"""Rprop: steps by the gradient's sign alone."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.errors import BadValue
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import toward
from .elementwise import Elementwise
from .optimizer import Group, ParamsT
from .settings import check_positive, rate_of


class Rprop(Elementwise):
    """A step size for each element, which grows while the gradient's sign stays the same; by Riedmiller and Braun.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Rprop([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        check_positive(self, lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise BadValue(f"Rprop: Invalid eta values: {etas[0]}, {etas[1]}",
                           why="the first makes steps smaller, the second larger", fix="etas=(0.5, 1.2)")
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable})

    def kept(self, group: Group) -> tuple[str, ...]:
        return "prev", "step_size"

    def first_value(self, group: Group, name: str) -> float:
        return rate_of(group) if name == "step_size" else 0.0

    def hyper(self, group: Group, step: float) -> tuple[Any, ...]:  # type: ignore[override]
        (smaller, larger), (least, most) = group["etas"], group["step_sizes"]
        return group["maximize"], float(smaller), float(larger), float(least), float(most)

    @staticmethod
    def formula(hyper: tuple[Any, ...], p: Array, g: Array, before: Array, size: Array) -> tuple[Array, ...]:
        maximize, smaller, larger, least, most = hyper
        g = toward(p, g, maximize, None)
        change = g * before
        size = np.where(change > 0, larger * size, np.where(change < 0, smaller * size, size))
        size = np.minimum(np.maximum(size, least), most)
        g = np.where(change < 0, g * 0, g)
        return p - np.where(g > 0, size, np.where(g < 0, -size, size * 0)), g, size  # a nan has no sign

    @staticmethod
    def update(hyper: tuple[Any, ...], scratch: list[Array], p: Array, g: Array, before: Array, size: Array) -> None:
        maximize, smaller, larger, least, most = hyper
        t, u, _ = scratch
        np.negative(g, u) if maximize else np.copyto(u, g)
        np.multiply(u, before, t)
        turned = t < 0
        np.multiply(size, larger, size, where=t > 0)
        np.multiply(size, smaller, size, where=turned)
        np.minimum(np.maximum(size, least, out=size), most, out=size)
        np.copyto(u, 0, where=turned)
        before[...] = u
        np.subtract(p, size, p, where=u > 0)  # a nan has no sign
        np.add(p, size, p, where=u < 0)
