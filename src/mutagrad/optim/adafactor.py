"""Adafactor: Adam's averages of squares in as little memory as rows and columns need."""
from __future__ import annotations

from typing import Any

from ..arrays import np
from ..base.errors import BadValue
from ..base.operands import Array
from ..tensors.tensor import Tensor
from .blocks import computing_type
from .optimizer import Group, ParamsT, State, count_tensor
from .per_parameter import PerParameter, exactly, larger, move, of_type, zeros
from .settings import check_positive, number, plain, rate_of


class Adafactor(PerParameter):
    """Keeps the averages of squares of a matrix as a column times a row, by Shazeer and Stern.

    >>> import mutagrad as mg
    >>> w = mg.ones(2, 2, requires_grad=True)
    >>> optimizer = mg.optim.Adafactor([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.detach()[0]
    tensor([0.9000, 0.9000])
    """

    counted = True

    def __init__(self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
                 foreach: bool | None = None, maximize: bool = False) -> None:
        check_positive(self, lr, weight_decay=weight_decay)
        if not number(self, "beta2_decay", beta2_decay) <= 0:
            raise BadValue(f"Adafactor: beta2_decay should be <= 0 but is: {beta2_decay}", fix="beta2_decay=-0.8")
        for i, e in enumerate(eps, 1):
            if not (e is None and i == 1) and not number(self, f"eps[{i - 1}]", e) >= 0:
                raise BadValue(f"Adafactor: epsilon{i} should be >= 0 but is: {e}", fix="eps=(None, 1e-3)")
        if not number(self, "d", d) >= 1:
            raise BadValue(f"Adafactor: Clipping threshold d should be >= 1 but is: {d}", fix="d=1.0")
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize})

    def check(self, p: Tensor) -> None:
        if p.is_complex():
            raise BadValue("Adafactor: does not support complex parameters", fix="mutagrad.optim.Adam(params)")

    def new_state(self, p: Tensor) -> State:
        shape = p._array.shape
        if len(shape) < 2:
            return {"step": count_tensor(0.0), "variance": zeros(p, shape)}
        return {"step": count_tensor(0.0), "row_var": zeros(p, (*shape[:-1], 1)),
                "col_var": zeros(p, (*shape[:-2], 1, shape[-1]))}

    def numbers(self, group: Group, p: Tensor, step: float) -> tuple[Any, ...]:
        lr, (eps1, eps2) = rate_of(group), group["eps"]
        eps1 = float(np.finfo(computing_type(p._array.dtype)).eps) if eps1 is None else float(eps1)
        return (bool(group["maximize"]), bool(group["weight_decay"]), eps1, float(eps2), min(lr, step ** -0.5),
                step ** float(plain(group["beta2_decay"])), float(group["d"]), 1 - lr * float(group["weight_decay"]))

    def moved(self, numbers: Any, state: State, p: Array, g: Array) -> Any:
        maximize, shrinks, eps1, eps2, most, weight, d, shrink = numbers
        rate = larger(eps2, _size(p)) * most
        variance = _variance(state, g, weight, of_type(eps1, p.dtype))
        direction = g / np.sqrt(np.maximum(variance, of_type(eps1 * eps1, p.dtype)))
        rate = rate / larger(1.0, _size(direction) / d)
        shrunk = p * of_type(shrink, p.dtype) if shrinks else p
        return shrunk + of_type(rate if maximize else -rate, p.dtype) * direction


def _variance(state: State, g: Array, weight: Any, eps: Any) -> Any:
    """The average of squared gradients, estimated from those of rows and columns where there are any."""
    squares = g * g
    if "variance" in state:
        return move(state["variance"], squares, weight)
    rows = move(state["row_var"], squares.mean(-1, keepdims=True), weight)
    columns = move(state["col_var"], squares.mean(-2, keepdims=True), weight)
    return rows * columns / np.maximum(rows.mean(-2, keepdims=True), eps)


def _size(array: Array) -> Any:
    """The root of the mean of squares."""
    return exactly(np.sqrt((array * array).sum()) / max(array.size, 1) ** 0.5)
