"""What a graph of ours computed, as one node of PyTorch's graph.

The node's backward, if it is recorded itself, is again a program of ours that has run, and so on for every order.

The graph of ours belongs to a tensor that PyTorch saves (`_Keeper`): it is freed when PyTorch frees what a backward
needs, and a checkpoint drops it and has it made again. The inputs are saved by a node beside it (`_Saved`), which is
looked at for second derivatives only: values that a sweep of ours needs are protected from PyTorch's writes already.
"""
from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch

from ..arrays import np
from ..base.errors import GradientError, NotSupported
from ..core.backward import get_gradient_edge
from ..tensors.tensor import Tensor
from .program import Reversed
from .recorded import Recorded
from .torch_memory import ours, theirs
from .torch_transforms import is_transformed, reversed_anew


class _Keeper(np.ndarray):  # type: ignore[misc, type-arg]
    """One number, in memory that keeps a graph of ours alive: what PyTorch saves is a tensor over it."""

    graph: Recorded


_keepers: WeakValueDictionary[int, _Keeper] = WeakValueDictionary()
_next_number = count().__next__


def _kept(graph: Recorded) -> Any:
    keeper = np.array([_next_number()]).view(_Keeper)
    keeper.graph = graph
    _keepers[int(keeper[0])] = keeper
    return torch.from_numpy(keeper)


def _graph_of(saved: Any) -> Recorded:
    keeper = _keepers.get(int(saved))
    if keeper is None:
        raise GradientError("interop.torch: the graph of this function is gone",
                            why="what it had PyTorch save was copied, and that does not keep it alive",
                            fix="leave the call out of torch.autograd.graph.save_on_cpu and hooks like it")
    return keeper.graph


def apply(graph: Recorded, results: list[Any], sources: list[Any]) -> Sequence[Any]:
    return _Node.apply(graph, results, _Saved.apply(*sources), *sources)  # type: ignore[no-any-return]


class _Saved(torch.autograd.Function):  # type: ignore[misc]
    """Saves the inputs of a node beside it; no gradient comes here."""

    @staticmethod
    def forward(ctx: Any, *sources: Any) -> Any:
        ctx.save_for_backward(*sources)
        return torch.empty(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(ctx.needs_input_grad)


class _Node(torch.autograd.Function):  # type: ignore[misc]
    """What a graph of ours computed, in PyTorch's."""

    @staticmethod
    def forward(ctx: Any, graph: Recorded, results: list[Any], saved: Any, *sources: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(_kept(graph))
        ctx.beside = saved.grad_fn
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        graph = _graph_of(ctx.saved_tensors[0])
        if all(g is None for g in grads):
            return (None,) * len(ctx.needs_input_grad)
        if is_transformed():
            return None, None, None, *reversed_anew(graph.program, len(graph.outputs), ctx.beside.saved_tensors, grads)
        if any(g is not None and torch._C._functorch.is_legacy_batchedtensor(g) for g in grads):
            return None, None, None, *_rows(graph, grads)
        if torch.is_grad_enabled():
            return None, None, None, *_recorded_reverse(graph, ctx.beside.saved_tensors, grads)
        found = graph.reverse([None if g is None else ours(g)[0] for g in grads], False)
        return None, None, None, *_separate(found, grads)


def _separate(found: Sequence[Tensor | None], given: Sequence[Any]) -> list[Any]:
    """Gradients as PyTorch's, each over memory of its own: it adds to them in place."""
    results: list[Any] = []
    for g in found:
        result = None if g is None else theirs(g.detach())
        others = [*given, *results]
        if result is not None and any(o is not None and _touches(result, o) for o in others):
            result = result.clone()
        results.append(result)
    return results


def _touches(a: Any, b: Any) -> bool:
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()) or (
        a.dtype is b.dtype is not torch.bfloat16 and np.may_share_memory(a.detach().numpy(), b.detach().numpy()))


def _rows(graph: Recorded, grads: Sequence[Any]) -> list[Any]:
    """The reverse for each row of gradients that `autograd.grad(is_grads_batched=True)` brings all at once."""
    if torch.is_grad_enabled():
        raise NotSupported("interop.torch: is_grads_batched=True together with create_graph=True",
                           why="PyTorch has an older kind of batched tensor here", fix="a loop, or torch.func.hessian")
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    batched = [g is not None and torch._C._functorch.is_legacy_batchedtensor(g) for g in grads]
    seeds = [torch._remove_batch_dim(g, level, 1, 0) if one else g for g, one in zip(grads, batched)]
    size = next(len(g) for g, one in zip(seeds, batched) if one)
    rows = [graph.reverse([None if g is None else ours(g[k] if one else g)[0] for g, one in zip(seeds, batched)], False)
            for k in range(size)]
    columns = [[None if g is None else theirs(g.detach()) for g in column] for column in zip(*rows)]
    return [None if column[0] is None else torch._add_batch_dim(torch.stack(column), 0, level) for column in columns]


def _recorded_reverse(graph: Recorded, sources: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """The reverse as a program of ours that has run: a function of the sources and of the gradients."""
    chosen = [i for i, g in enumerate(grads) if g is not None]
    seeds = [ours(grads[i])[0].requires_grad_() for i in chosen]
    found = graph.reverse([seeds[chosen.index(i)] if i in chosen else None for i in range(len(grads))], True)
    program = Reversed(graph.program, len(graph.inputs), tuple(range(len(graph.inputs))), tuple(chosen))
    numbers = [i for i, g in enumerate(found) if g is not None and g.requires_grad]
    plain = _separate(found, grads)
    outer = Recorded(lambda *t: tuple(program(*t)[i] for i in numbers),
                     graph.inputs + [get_gradient_edge(g) for g in seeds],
                     [get_gradient_edge(g) for g in found if g is not None and g.requires_grad])
    linked = apply(outer, [plain[i] for i in numbers], [*sources, *(grads[i] for i in chosen)]) if numbers else ()
    for i, result in zip(numbers, linked):
        plain[i] = result
    return plain
