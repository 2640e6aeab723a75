"""The recorded operations: places in their graph, hooks on several of them, and where their saved values are kept."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from ..base.errors import BadValue, GradientError
from ..base.modes import Block, mode, push
from ..base.pytree import tree_flatten
from ..base.sockets import socket
from ..core.backward import GradientEdge, get_gradient_edge, running
from ..core.graph import Leaf, Node as Recorded, ViewOf, next_order
from ..core.storage import TensorBase, memory_of
from ..tensors.tensor import Tensor
from .function import Context
from .packing import Keeping, pack_since

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
           "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


class _Any(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (Recorded, Leaf, ViewOf, Context))

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is cls or issubclass(kind, (Recorded, Leaf, ViewOf, Context))


class Node(metaclass=_Any):
    """What every `grad_fn` is an instance of: recorded operations, and the ends of the graph at leaves."""


class save_on_cpu(Keeping):
    """A block in which saved values are kept on the CPU, as all are."""

    keeps = "alias"

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__()


class saved_tensors_hooks(Keeping):
    """A block in which what operations save goes through `pack_hook`; `unpack_hook` brings it back when it is needed.

    >>> import mutagrad as mg
    >>> x = mg.tensor([1., 2.], requires_grad=True)
    >>> with mg.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
    ...     y = (x * x).sum()
    >>> y.backward(); x.grad
    tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def changes(self) -> dict[str, Any]:
        return {**super().changes(), "function_modes": push(self)}

    def __enter__(self) -> None:
        socket("torch_function").watch()
        super().__enter__()

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        since = next_order()
        result = func(*args, **(kwargs or {}))
        hooks = mode.now.saved_hooks
        if hooks and hooks[-1] is self:  # of several blocks, the innermost
            pack_since([x for x in tree_flatten(result)[0] if isinstance(x, TensorBase)], since, self)
        return result


class disable_saved_tensors_hooks(Block):
    """A block in which `saved_tensors_hooks` is refused, with a message."""

    def __init__(self, error_message: str) -> None:
        self.message = error_message

    def changes(self) -> dict[str, Any]:
        return {"saved_hooks_refused": push(self.message)}

    def __enter__(self) -> None:
        if mode.now.saved_hooks:
            raise GradientError(self.message)
        self.enter()


class allow_mutation_on_saved_tensors(Keeping):
    """A block in which saved tensors may be written to, as they may everywhere: what was saved is moved aside."""


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write that somebody else has made to the memory of a tensor, or of several."""
    for t in [tensor] if isinstance(tensor, TensorBase) else tensor:
        memory_of(t).version += 1


class _Together:
    """A hook on several tensors that is called once in a sweep."""

    def __init__(self, tensors: Sequence[TensorBase], hook: Callable[..., Any], name: str) -> None:
        self.writers, self.hook, self.first = [t._storage.writer for t in tensors], hook, name == "any"
        self.handles = [t.register_hook(partial(self.arrived, i)) for i, t in enumerate(tensors)]

    def arrived(self, i: int, g: Tensor) -> None:
        run = running()
        note = run.note(self)
        if not note:
            reached = run.reached()
            note["missing"] = 1 if self.first else sum(writer in reached for writer in self.writers)
            note["grads"] = [None] * len(self.writers)
        note["missing"] -= 1
        note["grads"][i] = g
        if not note["missing"]:
            self.hook(g if self.first else note["grads"])

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Together:
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _Together:
    """Call `fn` once in a sweep: with the first gradient, or with all (None: never comes) when they are there."""
    if mode not in ("all", "any"):
        raise BadValue(f"register_multi_grad_hook: Expects mode to be one of ('all', 'any') but got {mode}",
                       fix="mode='all'")
    return _Together(tensors, fn, mode)
