"""Optimizers whose update of an element depends on the others of its parameter."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import np
from ..arrays.kinds import is_repeated, is_replayed, laid_like, lasting
from ..arrays.numpy import silently
from ..autograd import no_grad
from ..base.modes import mode
from ..base.operands import Array
from ..core.factory import make
from ..core.storage import before_write
from ..core.write import check_writable, end_write
from ..tensors.tensor import Tensor
from .blocks import computing_type
from .optimizer import Group, Optimizer, State, evaluated
from .replayed import uncounted
from .sparse_gradients import refuse_sparse


class PerParameter(Optimizer):
    """A subclass checks a parameter, makes its state, and computes its new value from arrays.

    It defines `updated`; or, so that a compiled step needs no new program when a number changes, `numbers` and `moved`.
    """

    counted = False  # state["step"] counts the steps

    def check(self, p: Tensor) -> None:
        """Raises for a parameter that this optimizer is not for."""
        raise NotImplementedError

    def new_state(self, p: Tensor) -> State:
        raise NotImplementedError

    def updated(self, group: Group, state: State, p: Array, g: Array) -> Array:
        """Return the new value of a parameter with array `p` and gradient `g`, both in the type to compute in."""
        raise NotImplementedError

    def numbers(self, group: Group, p: Tensor, step: float) -> tuple[Any, ...] | None:
        """Return the settings of a step: floats, and what decides what is computed. `step` counts them, from one."""
        return None

    def moved(self, numbers: Any, state: State, p: Array, g: Array) -> Array:
        """Return what `updated` does, by these numbers."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluated(closure)
        found = [(group, p) for group in self.param_groups for p in group["params"] if p._grad is not None]
        refuse_sparse(found, type(self).__name__)
        for _, p in found:
            self.check(p)
            check_writable(p, type(self).__name__)
        lasting(self._make_states, [p for _, p in found])
        if is_repeated():
            raise uncounted(self)
        if is_replayed():  # its numbers are Python's in each run
            numbers = mode.now.kind.each_run(lambda: self._numbers(found))
        else:
            numbers, commit = self._numbers(found)
            commit()
        for (group, p), each in zip(found, numbers):
            silently(self._step_of, group, p, each)
        return loss

    def _make_states(self, parameters: list[Any]) -> None:
        for p in parameters:
            if not self.state[p]:
                self.state[p].update(self.new_state(p))

    def _numbers(self, found: list[tuple[Group, Any]]) -> tuple[Any, Callable[[], None]]:
        """The numbers of the next step for each parameter, and what counts the step."""
        counts: dict[int, Any] = {}
        numbers = []
        for group, p in found:  # one that is listed twice is updated twice
            step = 0.0
            if self.counted and (count := self.state[p].get("step")) is not None:
                step = counts.get(id(p), (None, count._array.item()))[1] + 1
                counts[id(p)] = count._array, step
            numbers.append(self.numbers(group, p, step))

        def commit() -> None:
            for array, step in counts.values():
                array[...] = step

        return tuple(numbers), commit

    def _step_of(self, group: Group, p: Any, numbers: Any) -> None:
        array, dtype = p._array, computing_type(p._array.dtype)
        arrays = array.astype(dtype, copy=False), p._grad._array.astype(dtype, copy=False)
        state = self.state[p]
        value = self.updated(group, state, *arrays) if numbers is None else self.moved(numbers, state, *arrays)
        before_write(p)
        array[...] = value
        end_write(p, None)


def zeros(p: Tensor, shape: tuple[int, ...]) -> Any:
    """Return a part of the state of `p`, in its type."""
    return make(laid_like(np.zeros(shape, p._array.dtype), p._array))


def of_type(number: Any, dtype: Any) -> Any:
    """A number of Python's, or of each run, in the type of an array that it is multiplied with."""
    return dtype.type(number) if isinstance(number, float) else number.astype(dtype)


def exactly(number: Array) -> Any:
    """A number that was computed of an array, for more such: Python's, where it is known."""
    return number.astype(np.float64) if is_replayed() else float(number)


def larger(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if is_replayed() else max(a, b)


def move(average: Tensor, value: Array, weight: float) -> Array:
    """Moves a running average by `weight` towards a value, and gives its array."""
    before_write(average)
    array = average._array
    dtype = computing_type(array.dtype)
    wide = array.astype(dtype, copy=False)
    array[...] = wide + of_type(weight, dtype) * (value - wide)
    return array.astype(dtype, copy=False)
