"""AdamW: Adam whose weight decay is apart from the gradient."""
from __future__ import annotations

from typing import Any

from ..tensors.tensor import Tensor
from .adam import Adam
from .optimizer import ParamsT
from .settings import Betas


class AdamW(Adam):
    """Adam with weight decay that makes the weights themselves smaller, by Loshchilov and Hutter.

    >>> import mutagrad as mg
    >>> w = mg.tensor([1., -2.], requires_grad=True)
    >>> optimizer = mg.optim.AdamW([w], lr=0.5, weight_decay=0.1)
    >>> w.sum().backward()
    >>> optimizer.step(); w
    tensor([ 0.4500, -2.4000], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, betas: Betas = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
