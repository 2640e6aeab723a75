"""L-BFGS: Newton's method with what the last gradients say about the curvature."""
from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

from ..base.errors import BadArgument, BadValue
from ..base.layout import has_own_layout
from ..base.modes import RECORDED, UNRECORDED, call_with
from ..ops.shape.shape import cat
from ..tensors.tensor import Tensor
from .optimizer import Group, Optimizer, ParamsT, State
from .settings import check_positive, plain


class LBFGS(Optimizer):
    """Minimizes by several evaluations of the closure in each step, over all parameters together; by Liu and Nocedal.

    >>> import mutagrad as mg
    >>> w = mg.tensor([0., 0.], requires_grad=True)
    >>> optimizer = mg.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(3):
    ...     _ = optimizer.step(closure)
    >>> w
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(self, params: ParamsT, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None) -> None:
        check_positive(self, lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise BadValue(f"LBFGS: only 'strong_wolfe' is supported as line_search_fn, not {line_search_fn!r}",
                           fix="line_search_fn='strong_wolfe'")
        super().__init__(params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn})

    def add_param_group(self, param_group: Group) -> None:
        if self.param_groups:
            raise BadValue("LBFGS doesn't support per-parameter options (parameter groups)",
                           why="it takes all parameters as one vector", fix="one list of parameters")
        super().add_param_group(param_group)

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]  # type: ignore[no-any-return]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take a step of up to `max_iter` iterations.

        `closure` clears the gradients, computes the loss and its gradients, and returns it.

        >>> import mutagrad as mg
        >>> w = mg.tensor([3.], requires_grad=True)
        >>> optimizer = mg.optim.LBFGS([w])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (w - 1).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> w.detach().round()
        tensor([1.])
        """
        if not callable(closure):
            raise BadArgument("LBFGS: step() needs a closure", why="it evaluates the loss several times in each step",
                              fix="optimizer.step(closure)")
        return call_with(UNRECORDED, self._minimize, lambda: call_with(RECORDED, closure))

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)
        returned = closure()
        loss, gradient, used = float(returned), self._gradient(), 1
        state["func_evals"] += 1
        n = 0
        flat = gradient.abs().max() <= group["tolerance_grad"]
        while not flat and n < group["max_iter"]:
            n += 1
            state["n_iter"] += 1
            first = state["n_iter"] == 1
            state["d"] = direction = _direction(state, gradient, group["history_size"], first)
            state["prev_flat_grad"], before = gradient.clone(), loss
            state["prev_loss"] = loss
            t = (min(1.0, 1.0 / gradient.abs().sum().item()) if first else 1.0) * float(plain(group["lr"]))
            state["t"] = t
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            last = n == group["max_iter"]
            here, left = _Point(0.0, loss, gradient, slope), group["max_eval"] - used
            loss, gradient, t, evaluations = self._move(closure, here, t, direction, left, last)
            state["t"] = t
            used += evaluations
            state["func_evals"] += evaluations
            flat = bool(gradient.abs().max() <= group["tolerance_grad"])
            if last or used >= group["max_eval"] or (direction * t).abs().max() <= group["tolerance_change"]:
                break
            if abs(loss - before) < group["tolerance_change"]:
                break
        return returned

    def _move(self, closure: Callable[[], Any], start: _Point, t: float, direction: Tensor, most: int,
              last: bool) -> tuple[float, Tensor, float, int]:
        """Goes along the direction: loss and gradient there, how far, and how many evaluations it took."""
        if self.param_groups[0]["line_search_fn"] is None:
            self._add(t, direction)
            if last:  # nobody will look at the loss there
                return start.loss, start.gradient, t, 0
            return float(closure()), self._gradient(), t, 1
        before = [p.clone() for p in self._params]

        def evaluate(at: float) -> _Point:
            self._add(at, direction)
            loss, gradient = float(closure()), self._gradient()
            for p, value in zip(self._params, before):
                p.copy_(value)
            return _Point(at, loss, gradient, gradient.dot(direction).item())

        found, evaluations = strong_wolfe(evaluate, start, t, direction.abs().max().item(), most)
        self._add(found.at, direction)
        return found.loss, found.gradient, found.at, evaluations

    def _gradient(self) -> Any:
        """The gradients of all parameters as one vector of real numbers, which later sweeps do not change."""
        parts = []
        for p in self._params:
            g = p.grad.to_dense() if p.grad is not None and has_own_layout((p.grad,)) else p.grad
            part = p.new_zeros(p.numel()) if g is None else g.detach().reshape(-1)
            parts.append(part.view(part.real.dtype) if part.is_complex() else part)
        return cat(parts) if len(parts) > 1 else parts[0].clone()

    def _add(self, t: float, direction: Tensor) -> None:
        start = 0
        for p in self._params:
            size = p.numel() * (2 if p.is_complex() else 1)
            part = direction[start:start + size]
            p.add_((part.view(p.dtype) if p.is_complex() else part).reshape(p.shape), alpha=t)
            start += size


def _direction(state: State, gradient: Tensor, history_size: int, first: bool) -> Any:
    """The gradient, turned around and multiplied by the estimate of the inverse Hessian."""
    if first:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        return -gradient
    changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
    change, step = gradient - state["prev_flat_grad"], state["d"] * plain(state["t"])
    curvature = change.dot(step).item()
    if curvature > 1e-10:
        if len(changes) == history_size:
            for history in (changes, steps, ro):
                history.pop(0)
        changes.append(change)
        steps.append(step)
        ro.append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change).item()
    found, shares = -gradient, [0.0] * len(changes)
    for i in reversed(range(len(changes))):
        shares[i] = steps[i].dot(found).item() * plain(ro[i])
        found.add_(changes[i], alpha=-shares[i])
    found *= plain(state["H_diag"])
    for i in range(len(changes)):
        found.add_(steps[i], alpha=shares[i] - changes[i].dot(found).item() * plain(ro[i]))
    return found


class _Point(NamedTuple):
    """A place on the line that is searched: how far along, the loss, the gradient, and the slope of the loss there."""

    at: float
    loss: float
    gradient: Tensor
    slope: float


class _Enough(NamedTuple):
    """How much lower the loss, and how much flatter the slope, has to be: Nocedal and Wright's values."""

    decrease: float = 1e-4
    flatter: float = 0.9


def strong_wolfe(evaluate: Callable[[float], _Point], start: _Point, t: float, size: float, most: int,
                 tolerance_change: float = 1e-9, enough: _Enough | None = None) -> tuple[_Point, int]:
    """Return a point on the line with a lower loss and a flatter slope, and how many evaluations it took."""
    enough = enough or _Enough()
    bracket, n = _bracket(evaluate, start, t, most, enough)
    evaluations = n + 1
    stuck = False
    while len(bracket) == 2 and n < most:
        low, high = sorted(bracket, key=lambda point: point.loss)
        if abs(low.at - high.at) * size < tolerance_change:
            break
        t, stuck = _inside(_cubic(bracket[0], bracket[1]), min(low.at, high.at), max(low.at, high.at), stuck)
        new = evaluate(t)
        evaluations += 1
        n += 1
        i = 0 if bracket[0] is low else 1
        if new.loss > start.loss + enough.decrease * t * start.slope or new.loss >= low.loss:
            bracket[1 - i] = new
            continue
        if abs(new.slope) <= -enough.flatter * start.slope:
            return new, evaluations
        if new.slope * (high.at - low.at) >= 0:
            bracket[1 - i] = low
        bracket[i] = new
    return min(bracket, key=lambda point: point.loss), evaluations


def _bracket(evaluate: Callable[[float], _Point], start: _Point, t: float, most: int,
             enough: _Enough) -> tuple[list[_Point], int]:
    """Two points between which there is one to be found, or the only one if it is found; and the number of steps."""
    before, new = start, evaluate(t)
    n = 0
    while n < most:
        if new.loss > start.loss + enough.decrease * new.at * start.slope or n > 1 and new.loss >= before.loss:
            return [before, new], n
        if abs(new.slope) <= -enough.flatter * start.slope:
            return [new], n
        if new.slope >= 0:
            return [before, new], n
        t = _cubic(before, new, new.at + 0.01 * (new.at - before.at), new.at * 10)
        before, new = new, evaluate(t)
        n += 1
    return [start, new], n


def _cubic(x: _Point, y: _Point, least: float | None = None, most: float | None = None) -> float:
    """Where the cubic through two points with their slopes is lowest, between the bounds."""
    x, y = (x, y) if x.at <= y.at else (y, x)
    least, most = x.at if least is None else least, y.at if most is None else most
    d1 = x.slope + y.slope - 3 * (x.loss - y.loss) / (x.at - y.at)
    square = d1 ** 2 - x.slope * y.slope
    d2 = sqrt(square) if square >= 0 else 0.0
    below = y.slope - x.slope + 2 * d2
    if not square >= 0 or not below:
        return (least + most) / 2
    return min(max(y.at - (y.at - x.at) * ((y.slope + d2 - d1) / below), least), most)


def _inside(t: float, least: float, most: float, stuck: bool) -> tuple[float, bool]:
    """Keeps `t` a tenth of the bracket away from its ends, the second time that it comes so near."""
    margin = 0.1 * (most - least)
    if min(most - t, t - least) >= margin:
        return t, False
    if stuck or t >= most or t <= least:
        return (most - margin if abs(t - most) < abs(t - least) else least + margin), False
    return t, True


# ------------------------------------------------------------------- the search under the names that minimizers import

def _strong_wolfe(obj_func: Callable[..., tuple[Any, Tensor]], x: Any, t: Any, d: Tensor, f: Any, g: Tensor, gtd: Any,
                  c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9,
                  max_ls: int = 25) -> tuple[Any, Tensor, Any, int]:
    """Return the loss and gradient of `obj_func(x, t, d)` at the step t that was found, t, and the evaluations."""
    def evaluate(at: Any) -> _Point:
        loss, gradient = obj_func(x, at, d)
        return _Point(at, loss, gradient.clone(), gradient.dot(d))  # type: ignore[arg-type]

    start = _Point(0, f, g, gtd)
    found, evaluations = strong_wolfe(evaluate, start, t, d.abs().max().item(), max_ls, tolerance_change,
                                      _Enough(c1, c2))
    return found.loss, found.gradient, found.at, evaluations


def _cubic_interpolate(x1: float, f1: float, g1: float, x2: float, f2: float, g2: float,
                       bounds: tuple[float, float] | None = None) -> float:
    """Return where the cubic through two points with their slopes is lowest, between the bounds."""
    nothing: Any = None
    return _cubic(_Point(x1, f1, nothing, g1), _Point(x2, f2, nothing, g2), *(bounds or ()))
