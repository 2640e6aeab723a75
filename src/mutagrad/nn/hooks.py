"""Functions that a module calls around its forward, and with the gradients that pass its boundary."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import ref

from .._tensor import Tensor
from ..autograd import Function
from ..errors import BadValue
from ..ops.create import zeros


class Handle:
    """Takes a hook away again: `handle.remove()`, or the end of a `with` block."""

    _next = 0

    def __init__(self, *tables: dict[int, Any]) -> None:
        self.id = Handle._next
        Handle._next += 1
        self._tables = tuple(map(ref, tables))

    def remove(self) -> None:
        for table in self._tables:
            found = table()
            if found is not None:
                found.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


class Hooks(OrderedDict[int, Any]):
    """Hooks in the order in which they are called."""

    def put(self, hook: Any, prepend: bool = False) -> Handle:
        handle = Handle(self)
        self[handle.id] = hook
        if prepend:
            self.move_to_end(handle.id, last=False)
        return handle


def _tensors(values: Any) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v, Tensor)]


class _Boundary(Function):
    """The identity on several tensors, whose gradients are shown to (and may be changed by) a function."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[[tuple[Any, ...]], Any], *tensors: Any) -> Any:
        ctx.seen = seen
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *ctx.seen(grads)


class BackwardHooks:
    """Calls a module's hooks with (module, gradients of its inputs, gradients of its outputs) when a sweep has passed it."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs: list[int] = []
        self.constants: dict[int, Any] = {}
        self.n_inputs = 0
        self.grad_outputs: tuple[Any, ...] | None = None

    def around_inputs(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        self.n_inputs = len(arguments)
        self.inputs = [i for i in _tensors(arguments) if arguments[i].requires_grad]
        self.constants = {i: (arguments[i].shape, arguments[i].dtype) for i in _tensors(arguments) if not arguments[i].requires_grad}
        if not self.inputs:
            return arguments
        passed = _Boundary.apply(self._leave, *(arguments[i] for i in self.inputs))
        return _replaced(arguments, self.inputs, passed)

    def around_outputs(self, result: Any) -> Any:
        several = isinstance(result, (tuple, list))
        outputs = tuple(result) if several else (result,)
        places = [i for i in _tensors(outputs) if outputs[i].requires_grad]
        if not places:
            return result
        passed = _Boundary.apply(lambda grads: self._enter(grads, places, len(outputs)), *(outputs[i] for i in places))
        replaced = _replaced(outputs, places, passed)
        return type(result)(replaced) if several else replaced[0]

    def _enter(self, grads: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        shown: tuple[Any, ...] = _replaced((None,) * count, places, grads)
        for hook in self.pre_hooks:
            answer = hook(self.module, shown)
            if answer is not None:
                shown = _answered(answer, count, "grad_output")
        self.grad_outputs = shown
        if not self.inputs:  # nothing will leave: the parameters are all there is
            self._call((None,) * self.n_inputs)
        return tuple(shown[i] for i in places)

    def _leave(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        zero = [zeros(shape, dtype=dtype) for shape, dtype in self.constants.values()]
        shown = self._call(_replaced((None,) * self.n_inputs, [*self.inputs, *self.constants], [*grads, *zero]))
        return tuple(shown[i] for i in self.inputs)

    def _call(self, grad_inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            answer = hook(self.module, grad_inputs, self.grad_outputs)
            if answer is not None:
                grad_inputs = _answered(answer, len(grad_inputs), "grad_input")
        return grad_inputs


def _replaced(values: Any, places: list[int], new: Any) -> tuple[Any, ...]:
    values = list(values)
    for i, v in zip(places, new):
        values[i] = v
    return tuple(values)


def _answered(answer: Any, count: int, what: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = answer if isinstance(answer, tuple) else (answer,)
    if len(found) != count:
        raise BadValue(f"backward hook: returned {len(found)} values for {count} in {what}", fix="return one for each, or None to change nothing")
    return found
