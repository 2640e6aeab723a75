"""A function of ours in PyTorch's graph: one node, whose backward is a sweep over the graph of ours.

The function runs first, recorded by mutagrad. What requires a gradient of what came out of it then becomes a result of
a node (`interop/torch_node.py`) of the tensors that went in, and of the parameters of ours that the function has read.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import torch
import torch.utils._pytree as torch_trees

from ..arrays.kinds import share_memory
from ..autograd.modes import enable_grad, no_grad
from ..base.errors import WriteError
from ..core.backward import GradientEdge, get_gradient_edge
from ..core.storage import memory_of, memory_offset
from ..tensors.tensor import Tensor
from .program import Call, Program, Trees, check_tensors, freeze, refused
from .recorded import Recorded, captured_leaves
from .torch_memory import ours, theirs, type_of
from .torch_node import apply
from .torch_transforms import is_transformed, only_once, transformed

TREES = Trees(torch_trees.tree_flatten, torch_trees.tree_unflatten)
_LEAF = "in PyTorch it is a leaf that requires a gradient, whose values a function may not change"


def wrapped(function: Callable[..., Any]) -> Any:
    """Return a function as one of PyTorch's."""
    @wraps(function)
    def called(*arguments: Any, **settings: Any) -> Any:
        return run(function, arguments, settings)

    return called


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have `torch.compile` call a function, and what that calls, without looking inside.

    `torch.compiler.disable` does the same, but loads the compiler, which takes seconds: it is the last resort.
    """
    frames = torch._C._dynamo.eval_frame
    if not hasattr(frames, "set_code_exec_strategy"):
        return torch.compiler.disable(function)  # type: ignore[no-any-return]
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    return function


@_as_it_is
def run(function: Callable[..., Any], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Call a function of ours with tensors of PyTorch's."""
    leaves, spec = TREES.flatten((arguments, settings))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    call = Call(function, leaves, spec, places, TREES)
    given = [leaves[i] for i in places]
    results = transformed(call, given) if is_transformed() else _recorded(call, given)
    return call.result(results)


# ------------------------------------------------------------------------------------------------------------- one call

class _Inputs:
    """What a function is given: the tensors of PyTorch's, each once, and ours over their memory."""

    def __init__(self, given: Sequence[Any], recording: bool) -> None:
        places = {id(tensor): i for i, tensor in reversed(list(enumerate(given)))}
        self.numbers = {old: new for new, old in enumerate(dict.fromkeys(places[id(t)] for t in given))}
        self.order = [self.numbers[places[id(t)]] for t in given]
        self.theirs = [given[i] for i in self.numbers]
        pairs = [ours(tensor) for tensor in self.theirs]
        self.ours, self.shared = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        self.edges: list[GradientEdge | None] = []
        for tensor, own in zip(self.theirs, self.ours):
            wanted = recording and tensor.requires_grad
            self.edges.append(get_gradient_edge(own.requires_grad_()) if wanted else None)
            if wanted and tensor.is_leaf:
                freeze(own)
        self.versions = [memory_of(own).version for own in self.ours]

    def written(self) -> list[int]:
        """Return the numbers of those that the function has written to."""
        found = [i for i, own in enumerate(self.ours) if memory_of(own).version != self.versions[i]]
        for i in found:
            if any(j != i and share_memory(self.ours[i]._array, own._array) for j, own in enumerate(self.ours)):
                raise WriteError("interop.torch: the function writes to an argument of which another is a view",
                                 why="they are separate tensors inside the function", fix="give it x.clone()")
        return found


def _recorded(call: Call, given: Sequence[Any]) -> list[Any]:
    """Run the function, and make one node of PyTorch's graph of all that it has recorded."""
    recording = torch.is_grad_enabled()
    inputs = _Inputs(given, recording)
    with enable_grad() if recording else no_grad():
        try:
            outputs = call(*(inputs.ours[i] for i in inputs.order))
        except ValueError as error:
            raise refused(error, _LEAF) from None
        check_tensors(outputs, "interop.torch")
        written = inputs.written()
        fresh = _Fresh(inputs)
        numbers = [fresh.add(y) for y in outputs]
        values = [fresh.add(inputs.ours[i].clone()) for i in written if _is_wanted(inputs.ours[i], inputs, i)]
    plain = not written and numbers == [*range(len(outputs))]
    made = _linked(call if plain else None, inputs, fresh.tensors)
    _write_back(inputs, written, [made[i] for i in values if i is not None])
    return [_alias(inputs, y) if i is None else made[i] for i, y in zip(numbers, outputs)]


def _is_wanted(own: Tensor, inputs: _Inputs, i: int) -> bool:
    """Whether a write to an argument has to be told to PyTorch's graph, or copied there."""
    return own.requires_grad or inputs.theirs[i].requires_grad or not inputs.shared[i]


class _Fresh:
    """Results as PyTorch may own them: no two over the same memory, and none over an argument's."""

    def __init__(self, inputs: _Inputs) -> None:
        self.arguments = {id(memory_of(own)): i for i, own in enumerate(inputs.ours)}
        self.inputs, self.tensors, self.known, self.memories = inputs, list[Tensor](), dict[int, int](), set[int]()

    def add(self, tensor: Tensor) -> int | None:
        """Return the number of a result; None where it will be a view of an argument."""
        if id(tensor) not in self.known:
            argument = self.arguments.get(id(memory_of(tensor)))
            if argument is not None and _can_be_view(self.inputs, argument, tensor):
                return None
            memory = id(memory_of(tensor))
            is_parameter = tensor.is_leaf and tensor.requires_grad
            taken = argument is not None or memory in self.memories or is_parameter
            found = tensor.clone() if taken else tensor
            self.memories.add(id(memory_of(found)))
            self.known[id(tensor)] = len(self.tensors)
            self.tensors.append(found)
        return self.known[id(tensor)]


def _can_be_view(inputs: _Inputs, i: int, tensor: Tensor) -> bool:
    return inputs.shared[i] and tensor.dtype is inputs.ours[i].dtype and min(tensor.stride(), default=0) >= 0


def _alias(inputs: _Inputs, tensor: Tensor) -> Any:
    """A result that is an argument, or a window on its memory: for PyTorch, too."""
    i = next(i for i, own in enumerate(inputs.ours) if memory_of(own) is memory_of(tensor))
    if tensor is inputs.ours[i]:
        return inputs.theirs[i]
    start = inputs.theirs[i].storage_offset() + memory_offset(tensor) // tensor.element_size()
    return inputs.theirs[i].as_strided(tuple(tensor.shape), tensor.stride(), start)


def _write_back(inputs: _Inputs, written: list[int], values: Sequence[Any]) -> None:
    """Tell PyTorch of writes to its tensors: the values are there, the history is not."""
    found = iter(values)
    for i in written:
        if _is_wanted(inputs.ours[i], inputs, i):
            inputs.theirs[i].copy_(next(found))
        elif not inputs.theirs[i].is_inference():
            torch.autograd.graph.increment_version(inputs.theirs[i])


def _linked(call: Call | None, inputs: _Inputs, outputs: list[Tensor]) -> list[Any]:
    """Return results as PyTorch's, with a history where ours have one. `call` is there if it can be made again."""
    results = [theirs(y) for y in outputs]
    chosen = [i for i, y in enumerate(outputs) if y.requires_grad]
    if not torch.is_grad_enabled() or not chosen:
        return results
    edges = [get_gradient_edge(outputs[i]) for i in chosen]
    wanted = [i for i, edge in enumerate(inputs.edges) if edge is not None]
    known = {id(inputs.edges[i].node): i for i in wanted}  # type: ignore[union-attr]
    captured = captured_leaves(edges, known)
    again: Program = only_once
    if call is not None and not captured:
        again = partial(_again, call, inputs, chosen)
    graph = Recorded(again, [edge for edge in inputs.edges if edge is not None] + captured, edges)
    sources = [inputs.theirs[i] for i in wanted] + [_twin(edge) for edge in captured]
    linked = apply(graph, [results[i] for i in chosen], sources)
    for i, result in zip(chosen, linked):
        results[i] = result
    return results


def _again(call: Call, inputs: _Inputs, chosen: list[int], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The function as a program of those arguments that require a gradient, with those results that have one."""
    own = list(inputs.ours)
    wanted = [i for i, edge in enumerate(inputs.edges) if edge is not None]
    for i, tensor in zip(wanted, tensors):
        own[i] = tensor
    outputs = call(*(own[i] for i in inputs.order))
    return tuple(outputs[i] for i in chosen)


# -------------------------------------------------------------------------------- parameters that the function has read

def _twin(edge: GradientEdge) -> Any:
    """Return a leaf of PyTorch's that hands its gradients on to one of ours. It has no memory of its own."""
    kept = edge.ownership_token
    assert kept is not None
    tensor, shape = edge.node.tensor, tuple(kept._array.shape)
    twin = torch.zeros((), dtype=type_of(kept.dtype)).expand(shape).requires_grad_()  # type: ignore[attr-defined]

    def hand_on(twin: Any) -> None:
        arrived, twin.grad = ours(twin.grad)[0], None
        target = tensor()
        if target is not None:
            with no_grad():
                target.grad = arrived.clone() if target.grad is None else target.grad.add_(arrived)

    twin.register_post_accumulate_grad_hook(hand_on)
    return twin
