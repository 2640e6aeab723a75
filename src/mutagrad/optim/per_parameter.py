"""Optimizers whose update of an element depends on the others of its parameter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import np
from ..arrays.kinds import laid_like
from ..arrays.numpy import silently
from ..autograd import no_grad
from ..base.operands import Array
from ..core.factory import make
from ..core.storage import before_write
from ..core.write import check_writable, end_write
from ..tensors.tensor import Tensor
from .blocks import computing_type
from .optimizer import Group, Optimizer, State, evaluated


class PerParameter(Optimizer):
    """A subclass checks a parameter, makes its state, and computes its new value from arrays."""

    def check(self, p: Tensor) -> None:
        """Raises for a parameter that this optimizer is not for."""
        raise NotImplementedError

    def new_state(self, p: Tensor) -> State:
        raise NotImplementedError

    def updated(self, group: Group, state: State, p: Array, g: Array) -> Array:
        """Return the new value of a parameter with array `p` and gradient `g`, both in the type to compute in."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluated(closure)
        found = [(group, p) for group in self.param_groups for p in group["params"] if p._grad is not None]
        for _, p in found:
            self.check(p)
            check_writable(p, type(self).__name__)
        for group, p in found:
            silently(self._step_of, group, p)
        return loss

    def _step_of(self, group: Group, p: Any) -> None:
        state = self.state[p]
        if not state:
            state.update(self.new_state(p))
        array, dtype = p._array, computing_type(p._array.dtype)
        value = self.updated(group, state, array.astype(dtype, copy=False), p._grad._array.astype(dtype, copy=False))
        before_write(p)
        array[...] = value
        end_write(p, None)


def zeros(p: Tensor, shape: tuple[int, ...]) -> Any:
    """Return a part of the state of `p`, in its type."""
    return make(laid_like(np.zeros(shape, p._array.dtype), p._array))


def move(average: Tensor, value: Array, weight: float) -> Array:
    """Moves a running average by `weight` towards a value, and gives its array."""
    before_write(average)
    array = average._array
    dtype = computing_type(array.dtype)
    wide = array.astype(dtype, copy=False)
    array[...] = wide + np.array(weight, dtype) * (value - wide)
    return array.astype(dtype, copy=False)
