"""Muon: steps along orthogonalized momentum, for matrices."""
from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

from ..arrays import np
from ..base.errors import BadValue
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .optimizer import Group, ParamsT, State
from .per_parameter import PerParameter, exactly, larger, move, of_type, zeros
from .settings import check_positive, rate_of


class Muon(PerParameter):
    """For the matrices of hidden layers, by Keller Jordan; the other parameters need another optimizer.

    The matrices are orthogonalized in single precision, where PyTorch uses bfloat16: steps differ in the third digit.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9552, 0.9552])
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: Sequence[float] = (3.4445, -4.7750, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None) -> None:
        check_positive(self, lr, momentum=momentum, weight_decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise BadValue(f"Muon: Adjust learning rate function {adjust_lr_fn} is not supported",
                           fix="adjust_lr_fn='match_rms_adamw'")
        if len(ns_coefficients) != 3:
            raise BadValue(f"Muon: Coefficients must be a tuple of exactly 3 values, got {len(ns_coefficients)}")
        if ns_steps >= 100:
            raise BadValue("Muon: Number of steps must be less than 100 for computational efficiency, got "
                           f"{ns_steps}", fix="ns_steps=5")
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})
        for group in self.param_groups:
            for p in group["params"]:
                self.check(p)

    def check(self, p: Tensor) -> None:
        if p.ndim != 2 or p.is_complex():
            raise BadValue("Muon only supports 2D parameters of real numbers, whereas we found one of shape "
                           f"{tuple(p.shape)} and type {p.dtype}", fix="give the others to AdamW")

    def new_state(self, p: Tensor) -> State:
        return {"momentum_buffer": zeros(p, p._array.shape)}

    def numbers(self, group: Group, p: Tensor, step: float) -> tuple[Any, ...]:
        lr, momentum = rate_of(group), float(group["momentum"])
        rows, columns = p._array.shape
        as_adamw = group["adjust_lr_fn"] == "match_rms_adamw"
        factor = 0.2 * sqrt(max(rows, columns)) if as_adamw else sqrt(max(1, rows / columns))
        return (bool(group["nesterov"]), int(group["ns_steps"]), 1 - momentum, momentum,
                1 - lr * float(group["weight_decay"]), lr * factor, float(group["eps"]),
                *map(float, group["ns_coefficients"]))

    def moved(self, numbers: Any, state: State, p: Array, g: Array) -> Any:
        nesterov, steps, rest, momentum, shrink, rate, eps, *coefficients = numbers
        moving = move(state["momentum_buffer"], g, rest)
        direction = g + (moving - g) * of_type(momentum, p.dtype) if nesterov else moving
        step = _orthogonalized(direction, coefficients, steps, eps)
        return p * of_type(shrink, p.dtype) - of_type(rate, p.dtype) * step


def _orthogonalized(matrix: Array, coefficients: Sequence[Any], steps: int, eps: Any) -> Array:
    """About the nearest matrix with orthonormal rows or columns: singular values near one, by a polynomial."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).astype(np.float32)
    a, b, c = [of_type(k, x.dtype) for k in coefficients]
    x = x / of_type(larger(exactly(np.sqrt((x * x).sum())), eps), x.dtype)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if tall else x
