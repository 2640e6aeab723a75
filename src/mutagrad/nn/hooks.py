"""Functions that a module calls around its forward, and with the gradients that pass its boundary."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from ..autograd import Function
from ..base.errors import BadValue
from ..ops.create.create import zeros
from ..tensors.tensor import Tensor

# Changed whenever an attribute, a parameter or a hook of any module is set: a compiled step looks at its modules then.
CHANGES = [0]


class Handle:
    """Takes a hook away again: `handle.remove()`, or the end of a `with` block."""

    _next = 0

    def __init__(self, table: dict[int, Any], *others: dict[int, Any]) -> None:
        self.id = Handle._next
        Handle._next += 1
        self.hooks_dict_ref: Callable[[], Any] = ref(table)
        self.extra_dict_ref: tuple[Callable[[], Any], ...] = tuple(map(ref, others))

    def remove(self) -> None:
        CHANGES[0] += 1
        for table in (self.hooks_dict_ref, *self.extra_dict_ref):
            found = table()
            if found is not None:
                found.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.id, self.hooks_dict_ref(), *(table() for table in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """A handle that was copied or loaded belongs to the tables copied with it; those of others are gone."""
        self.id, *tables = state
        self.hooks_dict_ref, *others = (ref(OrderedDict() if table is None else table) for table in tables)
        self.extra_dict_ref = tuple(others)
        Handle._next = max(Handle._next, self.id + 1)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def put(table: OrderedDict[int, Any], hook: Callable[..., Any], prepend: bool = False,
        marks: Sequence[OrderedDict[int, Any]] = ()) -> Handle:
    """Enters a hook into its table, last or first, and its number into those that mark something about it."""
    CHANGES[0] += 1
    handle = Handle(table, *marks)
    table[handle.id] = hook
    if prepend:
        table.move_to_end(handle.id, last=False)
    for mark in marks:
        mark[handle.id] = True
    return handle


class Hooks(OrderedDict[int, Any]):
    """Hooks in the order in which they are called."""

    def put(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        return put(self, hook, prepend)


def _tensors(values: Sequence[Any]) -> list[int]:
    return [i for i, v in enumerate(values) if isinstance(v, Tensor)]


class _Boundary(Function):
    """The identity on several tensors, whose gradients are shown to (and may be changed by) a function."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[[tuple[Any, ...]], Any], *tensors: Tensor) -> Any:
        ctx.seen = seen
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return None, *ctx.seen(grads)


class BackwardHooks:
    """Calls a module's hooks with (module, gradients of inputs, gradients of outputs) when a sweep has passed it."""

    def __init__(self, module: Any, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]],
                 inside: bool = False) -> None:
        """`inside` is the old way, register_backward_hook: tensors in a dict count, what is not seen is warned of."""
        self.module, self.hooks, self.pre_hooks, self.inside = module, hooks, pre_hooks, inside
        self.inputs: list[int] = []
        self.constants: dict[int, Any] = {}
        self.n_inputs = 0
        self.grad_outputs: tuple[Any, ...] | None = None

    def around_inputs(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        self.n_inputs = len(arguments)
        if self.inside and not all(isinstance(value, Tensor) for value in arguments):
            warnings.warn(f"backward hook: {type(self.module).__name__} does not take as input a single Tensor or a "
                          "tuple of Tensors, so the hook sees None for the other inputs", stacklevel=4)
        self.inputs = [i for i in _tensors(arguments) if arguments[i].requires_grad]
        constants = [i for i in _tensors(arguments) if not arguments[i].requires_grad]
        self.constants = {i: (arguments[i].shape, arguments[i].dtype) for i in constants}
        if not self.inputs:
            return arguments
        passed = _Boundary.apply(self._leave, *(arguments[i] for i in self.inputs))
        return _replaced(arguments, self.inputs, passed)

    def around_outputs(self, result: Any) -> Any:
        if isinstance(result, dict) and self.inside:
            keys = list(result)
            return type(result)(zip(keys, self.around_outputs(tuple(result[key] for key in keys))))
        several = isinstance(result, (tuple, list))
        if not several and not isinstance(result, Tensor):
            warnings.warn(f"backward hooks are not called: the output of {type(self.module).__name__} should be a "
                          f"Tensor or a tuple of Tensors, got {type(result).__name__}", stacklevel=4)
        outputs = tuple(result) if several else (result,)
        places = [i for i in _tensors(outputs) if outputs[i].requires_grad]
        if not places:
            return result
        passed = _Boundary.apply(lambda grads: self._enter(grads, places, len(outputs)), *(outputs[i] for i in places))
        replaced = _replaced(outputs, places, passed)
        if not several:
            return replaced[0]
        return type(result)(*replaced) if hasattr(result, "_fields") else type(result)(replaced)

    def _enter(self, grads: tuple[Any, ...], places: list[int], count: int) -> tuple[Any, ...]:
        shown: tuple[Any, ...] = _replaced((None,) * count, places, grads)
        for hook in self.pre_hooks:
            answer = hook(self.module, shown)
            if answer is not None:
                shown = _answered(answer, count, "grad_output")
        self.grad_outputs = shown
        if not self.inputs:  # nothing will leave: the parameters are all there is
            answer = self._call((None,) * self.n_inputs)
            if any(value is not None for value in answer):
                raise BadValue("backward hook: returned a gradient where no input requires gradient", fix="return None")
        return tuple(shown[i] for i in places)

    def _leave(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_outputs is None:  # they came another way than through the outputs that are seen
            return grads
        zero = [zeros(shape, dtype=dtype) for shape, dtype in self.constants.values()]
        shown = self._call(_replaced((None,) * self.n_inputs, [*self.inputs, *self.constants], [*grads, *zero]))
        return tuple(shown[i] for i in self.inputs)

    def _call(self, grad_inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            answer = hook(self.module, grad_inputs, self.grad_outputs)
            if answer is not None:
                grad_inputs = _answered(answer, len(grad_inputs), "grad_input")
        return grad_inputs


def _replaced(values: Sequence[Any], places: list[int], new: Sequence[Any]) -> tuple[Any, ...]:
    values = list(values)
    for i, v in zip(places, new):
        values[i] = v
    return tuple(values)


def _answered(answer: Any, count: int, what: str) -> tuple[Any, ...]:
    found: tuple[Any, ...] = answer if isinstance(answer, tuple) else (answer,)
    if len(found) != count:
        raise BadValue(f"backward hook: returned a wrong number of {what}: got {len(found)}, but expected {count}",
                       fix="return one for each, or None to change nothing")
    return found
