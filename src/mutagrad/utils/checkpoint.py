"""Trading time for memory: what a function computes on the way is computed again when it is differentiated, not kept.

The function runs once as it is. Then its nodes are dropped, and one takes their place that reads what they read from
outside, through the same windows: arguments, parameters, anything. Its reverse runs the function again and sweeps what
that recorded, as far as those windows (`fence.py`). A function that changes what it was given cannot be run twice, and
keeps its nodes.

Arguments are kept as they were. What else the function reads may have changed since: tensors, arrays and numbers that
it has from elsewhere, random numbers. The gradient would be that of another function, so it is noticed: by the versions
of leaves, and by traces (`retrace.py`) of what each operation computed with, which is all that a derivative depends on.
"""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from functools import partial
from typing import Any, NoReturn
from weakref import ref

from ..autograd.modes import enable_grad
from ..autograd.packing import Keeping
from ..base.errors import BadArgument, BadValue, ChangedSince, GradientError, NotSupported
from ..base.layout import ANSWERING
from ..base.modes import call_with, keeps_modes, mode, push
from ..base.provenance import describe, here
from ..base.pytree import tree_flatten, tree_unflatten
from ..base.sockets import socket
from ..core.backward import run_sweep
from ..core.dtypes import dtype
from ..core.evidence import user_code
from ..core.graph import Leaf, Node, next_order
from ..core.storage import TensorBase, memory_of, save
from ..core.sweep import OUTPUT
from ..core.write import new_node
from ..ops.random.generator import default_generator
from .fence import Argument, Fence, Read, key_of, reads_outside, recorded_since, wrote_outside
from .fingerprint import fingerprint, unchanged
from .retrace import Trace

__all__ = ["CheckpointPolicy", "checkpoint", "checkpoint_sequential", "create_selective_checkpoint_contexts",
           "noop_context_fn", "outer_writers", "set_checkpoint_debug_enabled", "set_checkpoint_early_stop"]


def outer_writers(tensors: Iterable[TensorBase], since: int) -> tuple[list[Any], bool]:
    """Return what the history of `tensors` reads that is older than `since`; and whether it wrote to a part of that."""
    inner, outer = recorded_since(tensors, since)
    return outer, wrote_outside(inner, since)


def _tensors(leaves: Iterable[Any]) -> list[TensorBase]:
    return [x for x in leaves if isinstance(x, TensorBase)]


def _operations(nodes: list[Any]) -> list[Node]:
    """Without the leaves that the function itself has made."""
    return [node for node in nodes if isinstance(node, Node)]


class Checkpointed(Keeping):
    """While a checkpointed function runs the first time: PyTorch, too, keeps its arguments alone."""

    keeps = "again"

    def __init__(self, arguments: Iterable[Any], reentrant: bool) -> None:
        self.given = {str(i): ref(x) for i, x in enumerate(arguments) if isinstance(x, TensorBase)}
        self.reentrant, self.where = reentrant, here()


class Recomputing(Keeping):
    """While it runs again: PyTorch takes what it saves then as it is, and, but for a reentrant one, looks no more."""

    keeps = "alias"

    def __init__(self, first: Checkpointed) -> None:
        self.first = first


class Recomputed:
    """The operation of one such call: its reverse runs the function again."""

    adds, frees, promotes, name = False, True, "", "checkpoint"

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any, state: TensorBase | None,
                 outputs: list[TensorBase], nodes: list[Any], since: int, check: bool, first: Checkpointed) -> None:
        self.function, self.spec, self.state, self.check, self.first = function, spec, state, check, first
        self.kinds, self.lower = [_kind(o) for o in outputs], _lower()
        self.leaves = [None if isinstance(x, TensorBase) else x for x in leaves]
        self.given = [Argument.of(x) if isinstance(x, TensorBase) else None for x in leaves]
        read = reads_outside(nodes, since)
        self.outer = {r.writer for r in read}
        arguments = [(was.writer, was.window) for was in self.given if was is not None and was.writer in self.outer]
        self.inputs = {key_of(*source): source for source in (*arguments, *((r.writer, r.window) for r in read))}
        self.versions = {leaf: _version(leaf.tensor()) for leaf in self.outer if isinstance(leaf, Leaf)}
        self.traces = [Trace(node) for node in _operations(nodes)] if check else []
        self.results = [fingerprint(o._array) for o in outputs] if check else []
        # Arguments are saved as they are: `argument` gives them their history.
        self.saves = (("setting", 0),) * sum(was is not None for was in self.given)
        self.places: list[int] = []
        self.count = 0

    @keeps_modes
    def reverse(self, xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
        given = g if isinstance(g, dict) else {0: g}
        fence, recorded = Fence(), mode.grad
        with enable_grad():
            outputs = self._again(saved, fence)
        nodes = recorded_since(outputs, fence.since)[0]
        reads = reads_outside(nodes, fence.since)
        self._compare(outputs, _operations(nodes), reads, fence)
        fence.close(reads)
        found: dict[Any, Any] = {}

        def arrived(key: Any, g: Any) -> None:
            found[key] = found[key] + g if key in found else g

        seeds = [(outputs[self.places[i]]._storage.writer, None, value) for i, value in given.items()]
        edge = {end: partial(arrived, key) for end, key in fence.ends.items()}
        run_sweep(seeds, recorded, recorded, None, {}, False, edge)
        return user_code(links, [None if link is None else found.get(key) for link, key in zip(links, self.inputs)])

    def _again(self, saved: tuple[Any, ...], fence: Fence) -> list[TensorBase]:
        """The outputs once more: from the arguments as they were, and the same random numbers."""
        values = iter(saved)
        leaves = [x if was is None else fence.argument(next(values), was) for x, was in zip(self.leaves, self.given)]
        arguments, settings = tree_unflatten(leaves, self.spec)
        now = None if self.state is None else default_generator.get_state()
        try:
            if self.state is not None:
                default_generator.set_state(self.state)
            with _cast_to(self.lower):
                found = call_with({"saved_hooks": push(Recomputing(self.first))}, self.function, *arguments, **settings)
            return _tensors(tree_flatten(found)[0])
        finally:
            if now is not None:
                default_generator.set_state(now)

    def _compare(self, outputs: list[TensorBase], operations: list[Node], reads: list[Read], fence: Fence) -> None:
        """Raises if this is not what the function did the first time."""
        if self.kinds != [_kind(o) for o in outputs]:
            raise GradientError("checkpoint: Recomputed values for the following tensors have different metadata than "
                                "during the forward pass", fix="a function that computes the same each time",
                                why=f"they were {self.kinds}, and are {[_kind(o) for o in outputs]}")
        for node, _, leaf, _ in reads:  # those that it has not by way of an argument
            tensor = leaf.tensor() if leaf in self.versions else None
            if tensor is not None and _version(tensor) != self.versions[leaf]:
                raise _changed(f"the leaf of shape {tensor._array.shape} that {node.op.name} reads at "
                               f"{describe(node.where)} was written to, by an optimizer's step for example")
        for node, trace in zip(operations, self.traces):
            if not trace.matches(node, fence.arguments):
                raise _changed(f"{node.op.name} at {describe(node.where)} computes with other values now")
        read = dict(map(fence.source, reads))
        more = self.check and len(operations) != len(self.traces)
        if more or set(read.values()) != self.outer or not self.inputs.keys() >= read.keys():
            raise _changed("it took another way this time")
        if not all(unchanged(before, o._array) for before, o in zip(self.results, outputs)):
            raise _changed("its result is another one now")


def _changed(why: str) -> ChangedSince:
    return ChangedSince("checkpoint: what the function reads has changed since it ran, so it cannot be computed again",
                         why=why, fix="call backward() before changing it, or pass it as an argument: arguments are "
                         "kept as they were. determinism_check='none' differentiates what the function computes now")


def _lower() -> dtype | None:
    """The type that `autocast` computes products in here; None outside of it, as is known without loading it."""
    amp = sys.modules.get("mutagrad.torch_api.amp")
    return amp.get_autocast_dtype("cpu") if amp is not None and amp.is_autocast_enabled("cpu") else None


def _cast_to(lower: dtype | None) -> AbstractContextManager[Any]:
    """The mixed precision of another place, wherever this one is."""
    amp = sys.modules.get("mutagrad.torch_api.amp")
    return nullcontext() if amp is None else amp.autocast("cpu", dtype=lower, enabled=lower is not None)


def _kind(tensor: TensorBase) -> tuple[Any, ...]:
    return tensor._array.shape, tensor._array.dtype.name


def _version(tensor: TensorBase | None) -> int:
    return -1 if tensor is None else memory_of(tensor).version


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts that a checkpointed function runs in, and runs again in, unless others are given: none.

    >>> import mutagrad as mg
    >>> len(mg.utils.checkpoint.noop_context_fn())
    2
    """
    return nullcontext(), nullcontext()


class set_checkpoint_early_stop(nullcontext[None]):
    """Accepted as PyTorch's: whether computing again may stop once all that is needed is there. Here it never does."""

    def __init__(self, enable: bool) -> None:
        super().__init__()


class set_checkpoint_debug_enabled(nullcontext[None]):
    """Accepted as PyTorch's: whether errors tell which operations ran. Here they name the cause, either way."""

    def __init__(self, enabled: bool | None) -> None:
        super().__init__()


class CheckpointPolicy(Enum):
    """What a selective checkpoint may decide about an operation.

    >>> import mutagrad as mg
    >>> mg.utils.checkpoint.CheckpointPolicy.MUST_SAVE.name
    'MUST_SAVE'
    """

    MUST_SAVE, PREFER_SAVE, MUST_RECOMPUTE, PREFER_RECOMPUTE = range(4)


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> NoReturn:
    """Would keep the results of some operations; here a checkpoint computes all of them again."""
    raise NotSupported("create_selective_checkpoint_contexts: not supported",
                       why="a checkpoint keeps its arguments and nothing else",
                       fix="checkpoint the parts between the operations whose results shall be kept")


Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class _InContexts:
    """A function that runs in one context the first time and in another from then on."""

    def __init__(self, function: Callable[..., Any], contexts: Contexts) -> None:
        self.function, self.contexts = function, list(contexts)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        with self.contexts[0] if len(self.contexts) == 1 else self.contexts.pop(0):
            return self.function(*arguments, **settings)


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None,
               context_fn: Callable[[], Contexts] | None = None, determinism_check: str = "default",
               debug: bool = False, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Call `function(*args, **kwargs)`; its inner values are computed again for the gradient instead of being kept.

    >>> import mutagrad as mg
    >>> from mutagrad.utils.checkpoint import checkpoint
    >>> x = mg.ones(3, requires_grad=True)
    >>> checkpoint(lambda x: (x * x).exp().sum(), x, use_reentrant=False).backward(); x.grad
    tensor([5.4366, 5.4366, 5.4366])

    Arguments count as they were. If anything else that the function reads has changed meanwhile, `backward()` raises:
    be it a tensor, an array, a number, or a random number that is not the default generator's.
    `determinism_check="none"` takes what the function computes then, unseen.
    """
    if context_fn not in (None, noop_context_fn):
        if use_reentrant:
            raise BadValue("checkpoint: context_fn is only supported when use_reentrant=False",
                           fix="use_reentrant=False")
        function = _InContexts(function, context_fn())
    if determinism_check not in ("default", "none"):
        raise BadValue(f"checkpoint: determinism_check must be 'default' or 'none', not {determinism_check!r}")
    if kwargs and use_reentrant:
        raise BadValue(f"checkpoint: Unexpected keyword arguments: {', '.join(kwargs)}", fix="use_reentrant=False")
    if not mode.grad:
        return function(*args, **kwargs)
    check = determinism_check != "none"
    if not ANSWERING:
        return _checkpointed(function, args, kwargs, use_reentrant is not False, preserve_rng_state, check)
    function, args, kwargs, meant = socket("sparse").by_values(function, args, kwargs)
    return meant(_checkpointed(function, args, kwargs, use_reentrant is not False, preserve_rng_state, check))


def _checkpointed(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], reentrant: bool,
                  preserve_rng_state: bool, check: bool) -> Any:
    leaves, spec = tree_flatten((args, kwargs))
    tensors = _tensors(leaves)
    versions = [_version(t) for t in tensors]
    state = default_generator.get_state() if preserve_rng_state else None
    since = next_order()
    first = Checkpointed((function, *args, *kwargs.values()), reentrant)
    result = call_with({"saved_hooks": push(first)}, function, *args, **kwargs)
    outputs = _tensors(tree_flatten(result)[0])
    nodes = recorded_since(outputs, since)[0]
    changed = versions != [_version(t) for t in tensors]
    if changed or wrote_outside(nodes, since) or any(_is_outer(o, since) for o in outputs):
        return result
    check = check and not any(Argument.of(t).overlaps for t in tensors)
    op = Recomputed(function, leaves, spec, state, outputs, nodes, since, check, first)
    _replace(outputs, op, tensors)
    return result


def _is_outer(output: TensorBase, since: int) -> bool:
    """Whether it is something from outside, or a view of it, handed through."""
    storage = output._storage
    return storage.writer is not None and (storage.writer.order > since or storage.root is not None)


def _replace(outputs: list[TensorBase], op: Recomputed, tensors: list[TensorBase]) -> None:
    """Makes one node the writer of all outputs that have a history."""
    first: dict[Any, int] = {}
    for place, o in enumerate(outputs):
        if o._storage.writer is not None:
            first.setdefault(o._storage, place)
    if not first:
        return
    op.places, op.count = list(first.values()), len(first)
    windows = [window for _, window in op.inputs.values()]
    whole = all(window is None for window in windows)
    node = new_node(op, [writer for writer, _ in op.inputs.values()], None if whole else windows)
    node.saved = tuple(save(t, node, slot) for slot, t in enumerate(tensors))
    for number, storage in enumerate(first):
        storage.writer = node
        if len(first) > 1:
            storage.writer = new_node(OUTPUT, (node,))
            storage.writer.saved = number


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None,
                          preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Call functions one after the other, in so many checkpointed segments; the last segment keeps its values.

    >>> import mutagrad as mg
    >>> model = mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.Tanh(), mg.nn.Linear(2, 1))
    >>> x = mg.ones(3, 2, requires_grad=True)
    >>> mg.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False).shape
    mutagrad.Size([3, 1])
    """
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if kwargs:
        raise BadArgument(f"checkpoint_sequential: unexpected arguments {sorted(kwargs)}")
    if not 1 <= segments <= max(len(functions), 1):
        raise BadArgument(f"checkpoint_sequential: {len(functions)} functions cannot be cut into {segments} segments",
                          fix="segments=2")
    size = len(functions) // segments
    ends = [size * (k + 1) for k in range(segments - 1)] + [len(functions)]
    for k, (start, end) in enumerate(zip([0, *ends], ends)):
        run = _in_a_row(functions[start:end])
        if k == segments - 1:
            input = run(input)
        else:
            input = checkpoint(run, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return input


def _in_a_row(functions: list[Callable[..., Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run


def get_device_states(*args: Any) -> tuple[list[int], list[TensorBase]]:
    """Return the devices beside the CPU that these tensors are on, and their generators' states: there are none."""
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[TensorBase], *, device_type: str | None = None) -> None:
    """Set the states of such devices again."""


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if none of these requires a gradient: nothing that is computed of them will have one."""
    if not any(getattr(x, "requires_grad", False) for x in inputs):
        warnings.warn("checkpoint: none of the inputs requires a gradient, so none will be computed", stacklevel=2)
