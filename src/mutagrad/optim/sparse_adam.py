"""SparseAdam: Adam for tables of which each step reads a few rows."""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from ..autograd import no_grad
from ..base.errors import BadValue
from ..base.layout import has_own_layout
from ..ops.create.create import zeros_like
from ..tensors.tensor import Tensor
from .optimizer import Group, Optimizer, ParamsT, evaluated
from .settings import Betas, check_betas, check_positive, plain
from .sparse_gradients import entries


class SparseAdam(Optimizer):
    """Adam in which a row that a step did not touch stays as it is, with its averages.

    Touched are the rows that a sparse gradient has; of a dense one, those where it is not zero throughout.

    >>> import mutagrad as mg
    >>> table = mg.nn.Embedding(3, 1, sparse=True)
    >>> optimizer = mg.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(mg.tensor([1])).sum().backward()
    >>> optimizer.step()
    >>> (table.weight.detach() - before).flatten()
    tensor([ 0.0000, -0.1000,  0.0000])
    """

    counts = ()

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 maximize: bool = False) -> None:
        check_positive(self, lr, eps=eps)
        if not plain(lr) or not plain(eps):
            raise BadValue(f"SparseAdam: Invalid learning rate or epsilon value: {lr}, {eps}",
                           why="they must be above zero", fix="lr=1e-3, eps=1e-8")
        check_betas(self, betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        if any(p.is_complex() for group in self.param_groups for p in group["params"]):
            raise BadValue("SparseAdam: does not support complex parameters", fix="mutagrad.optim.Adam(params, lr)")

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluated(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, -p.grad if group["maximize"] else p.grad, group)
        return loss

    def _update(self, p: Tensor, g: Any, group: Group) -> None:
        state = self.state[p]
        if not state:
            state.update(step=0, exp_avg=zeros_like(p), exp_avg_sq=zeros_like(p))
        state["step"] += 1
        if has_own_layout((g,)):
            at, g = entries(g)
        else:
            touched = g != 0
            at = (touched.reshape(len(g), -1).any(1) if g.ndim else touched,)
            g = g[at]
        beta1, beta2 = map(plain, group["betas"])
        mean, square = state["exp_avg"][at], state["exp_avg_sq"][at]
        mean, square = mean + (g - mean) * (1 - beta1), square + (g ** 2 - square) * (1 - beta2)
        state["exp_avg"][at], state["exp_avg_sq"][at] = mean, square
        rate = plain(group["lr"]) * sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
        p[at] = p[at] - rate * mean / (square.sqrt() + group["eps"])
