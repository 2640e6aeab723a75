"""Trading time for memory: what a function computes on the way is not kept but computed again when it is differentiated.

The function runs once as it is. Then its nodes are dropped, and one takes their place that reads what they read from outside:
arguments, parameters, anything. Its reverse runs the function again and sweeps what that recorded. A function that changes
what it was given cannot be run twice, and keeps its nodes.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import partial
from typing import Any

from ..autograd.modes import enable_grad
from ..backward import run_sweep
from ..engine import OUTPUT
from ..errors import BadArgument, BadValue, GradientError, NotSupported
from ..graph import Leaf, Node, mode, next_order
from ..random import default_generator
from ..second_order import with_history
from ..storage import TensorBase, memory_of, save
from ..construct import window_or_none
from ..write import new_node
from ._pytree import tree_flatten, tree_unflatten

__all__ = ["CheckpointPolicy", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts", "noop_context_fn", "outer_writers",
           "set_checkpoint_debug_enabled", "set_checkpoint_early_stop"]


def outer_writers(tensors: Iterable[Any], since: int) -> tuple[list[Any], bool]:
    """What the history of `tensors` reads that is older than `since`; and whether it wrote to a part of any of that."""
    stack = [t._storage.writer for t in tensors]
    seen: set[Any] = set()
    found, wrote = [], False
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.order > since:  # orders count downwards
            found.append(node)
        else:
            stack.extend(node.inputs)
            wrote = wrote or _writes_on(node, since)
    return found, wrote


def _writes_on(node: Any, since: int) -> bool:
    return isinstance(node, Node) and node.written is not None and node[-1] is not None and node[-1].order > since


def _tensors(leaves: Iterable[Any]) -> list[Any]:
    return [x for x in leaves if isinstance(x, TensorBase)]


class Recomputed:
    """The operation of one such call: its reverse runs the function again."""

    adds, frees, promotes, name = False, True, "", "checkpoint"

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any, state: Any, outer: list[Any], outputs: list[Any]) -> None:
        self.function, self.spec, self.state, self.outer = function, spec, state, outer
        self.kinds, self.lower = [_kind(o) for o in outputs], _lower()
        self.leaves = [None if isinstance(x, TensorBase) else x for x in leaves]
        self.sources = [(x._storage.writer, window_or_none(x)) if isinstance(x, TensorBase) else None for x in leaves]
        self.versions = [(leaf.tensor, _version(leaf.tensor())) for leaf in outer if isinstance(leaf, Leaf)]
        self.saves = (("setting", 0),) * sum(source is not None for source in self.sources)  # as they are: `_again` gives them their history
        self.places: list[int] = []
        self.count = 0

    def reverse(self, xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
        given = g if isinstance(g, dict) else {0: g}
        since = next_order()
        recorded = mode.grad
        with enable_grad():
            outputs = self._again(saved)
        self._check(outputs, since)
        found: dict[Any, Any] = {}
        seeds = [(outputs[self.places[i]]._storage.writer, None, value) for i, value in given.items()]
        run_sweep(seeds, recorded, recorded, None, {}, False, {writer: partial(found.__setitem__, writer) for writer in self.outer})
        return [None if link is None else found.get(writer) for link, writer in zip(links, self.outer)]

    def _again(self, saved: tuple[Any, ...]) -> list[Any]:
        """The outputs once more: from the arguments as they were, and the same random numbers."""
        values = iter(saved)
        leaves = [x if source is None else with_history(next(values), *source) for x, source in zip(self.leaves, self.sources)]
        arguments, settings = tree_unflatten(leaves, self.spec)
        now = None if self.state is None else default_generator.get_state()
        try:
            if self.state is not None:
                default_generator.set_state(self.state)
            with _cast_to(self.lower):
                return _tensors(tree_flatten(self.function(*arguments, **settings))[0])
        finally:
            if now is not None:
                default_generator.set_state(now)

    def _check(self, outputs: list[Any], since: int) -> None:
        if self.kinds != [_kind(o) for o in outputs]:
            raise GradientError("checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass",
                                why=f"they were {self.kinds}, and are {[_kind(o) for o in outputs]}", fix="a function that computes the same each time")
        changed = any(tensor() is not None and _version(tensor()) != version for tensor, version in self.versions)
        if changed or set(outer_writers(outputs, since)[0]) != set(self.outer):
            raise GradientError("checkpoint: what the function reads has changed since it ran, so it cannot be computed again",
                                why="it was written to, by an optimizer's step for example, or the function took another way",
                                fix="call backward() before changing parameters, or call the function without checkpoint")


def _lower() -> Any:
    """The type that `autocast` computes products in here; None outside of it, as is known without loading it."""
    amp = sys.modules.get("mutagrad.amp")
    return amp.get_autocast_dtype("cpu") if amp is not None and amp.is_autocast_enabled("cpu") else None


def _cast_to(lower: Any) -> AbstractContextManager[Any]:
    """The mixed precision of another place, wherever this one is."""
    amp = sys.modules.get("mutagrad.amp")
    return nullcontext() if amp is None else amp.autocast("cpu", dtype=lower, enabled=lower is not None)


def _kind(tensor: Any) -> tuple[Any, ...]:
    return tensor._array.shape, tensor._array.dtype.name


def _version(tensor: Any) -> int:
    return -1 if tensor is None else memory_of(tensor).version


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """The contexts that a checkpointed function runs in, and runs again in, unless others are given: none."""
    return nullcontext(), nullcontext()


class set_checkpoint_early_stop(nullcontext[None]):
    """Accepted as PyTorch's: whether computing again may stop as soon as all is there that is needed. Here it never does."""

    def __init__(self, enable: bool) -> None:
        super().__init__()


class set_checkpoint_debug_enabled(nullcontext[None]):
    """Accepted as PyTorch's: whether errors tell which operations ran. Here they name the cause, either way."""

    def __init__(self, enabled: bool | None) -> None:
        super().__init__()


class CheckpointPolicy(Enum):
    """What a selective checkpoint may decide about an operation."""

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> Any:
    """Would keep the results of some operations; here a checkpoint computes all of them again."""
    raise NotSupported("create_selective_checkpoint_contexts: not supported", why="a checkpoint keeps its arguments and nothing else",
                       fix="checkpoint the parts between the operations whose results shall be kept")


class _InContexts:
    """A function that runs in one context the first time and in another from then on."""

    def __init__(self, function: Callable[..., Any], contexts: tuple[AbstractContextManager[Any], AbstractContextManager[Any]]) -> None:
        self.function, self.contexts = function, list(contexts)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        with self.contexts[0] if len(self.contexts) == 1 else self.contexts.pop(0):
            return self.function(*arguments, **settings)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Any = None, determinism_check: str = "default",
               debug: bool = False, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, whose inner values are computed again for the gradient instead of being kept.

    >>> import mutagrad as mg
    >>> from mutagrad.utils.checkpoint import checkpoint
    >>> x = mg.ones(3, requires_grad=True)
    >>> checkpoint(lambda x: (x * x).exp().sum(), x, use_reentrant=False).backward(); x.grad
    tensor([5.4366, 5.4366, 5.4366])
    """
    if context_fn not in (None, noop_context_fn):
        if use_reentrant:
            raise BadValue("checkpoint: context_fn is only supported when use_reentrant=False", fix="use_reentrant=False")
        function = _InContexts(function, context_fn())
    if determinism_check not in ("default", "none"):
        raise BadValue(f"checkpoint: determinism_check must be 'default' or 'none', not {determinism_check!r}")
    if kwargs and use_reentrant:
        raise BadValue(f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}", fix="use_reentrant=False")
    if not mode.grad:
        return function(*args, **kwargs)
    leaves, spec = tree_flatten((args, kwargs))
    tensors = _tensors(leaves)
    versions = [_version(t) for t in tensors]
    state = default_generator.get_state() if preserve_rng_state else None
    since = next_order()
    result = function(*args, **kwargs)
    outputs = _tensors(tree_flatten(result)[0])
    outer, wrote = outer_writers(outputs, since)
    if wrote or versions != [_version(t) for t in tensors] or any(_is_outer(o, since) for o in outputs):
        return result
    _replace(outputs, Recomputed(function, leaves, spec, state, outer, outputs), tensors)
    return result


def _is_outer(output: Any, since: int) -> bool:
    """Whether it is something from outside, or a view of it, handed through."""
    return output._storage.writer is not None and (output._storage.writer.order > since or output._storage.root is not None)


def _replace(outputs: list[Any], op: Recomputed, tensors: list[Any]) -> None:
    """Makes one node the writer of all outputs that have a history."""
    first: dict[Any, int] = {}
    for place, o in enumerate(outputs):
        if o._storage.writer is not None:
            first.setdefault(o._storage, place)
    if not first:
        return
    op.places, op.count = list(first.values()), len(first)
    node = new_node(op, op.outer)
    node.saved = tuple(save(t, node, slot) for slot, t in enumerate(tensors))
    for number, storage in enumerate(first):
        storage.writer = node
        if len(first) > 1:
            storage.writer = new_node(OUTPUT, (node,))
            storage.writer.saved = number


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Calls functions one after the other, in so many checkpointed segments; the last segment keeps its values."""
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if kwargs:
        raise BadArgument(f"checkpoint_sequential: unexpected arguments {sorted(kwargs)}")
    if not 1 <= segments <= max(len(functions), 1):
        raise BadArgument(f"checkpoint_sequential: {len(functions)} functions cannot be cut into {segments} segments", fix="segments=2")
    size = len(functions) // segments
    ends = [size * (k + 1) for k in range(segments - 1)] + [len(functions)]
    for k, (start, end) in enumerate(zip([0, *ends], ends)):
        run = _in_a_row(functions[start:end])
        input = run(input) if k == segments - 1 else checkpoint(run, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return input


def _in_a_row(functions: list[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """The devices that these tensors are on beside the CPU, and the states of their random numbers: there are none."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: Any = None) -> None:
    """Sets the states of such devices again."""


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if none of these requires a gradient: nothing that is computed of them will have one."""
    if not any(getattr(x, "requires_grad", False) for x in inputs):
        warnings.warn("checkpoint: none of the inputs requires a gradient, so none will be computed", stacklevel=2)
