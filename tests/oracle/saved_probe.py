"""Asks PyTorch what it keeps of one call for backward: a memory is kept if backward raises once its version was raised.

`_saved_*` of the recorded nodes says nearly the same (read_saved), but also names what backward does not look at in the
case at hand. What backward refuses is what a user meets, so that is what the table has.
"""
from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from mutagrad.explain.torch_calls import by_slot, results_of, tensors_of

torch = pytest.importorskip("torch", reason="make oracle installs it")

Fact = tuple[str, ...]  # ("saves", slot, for which argument), ("views", result), ("writes", slot), ("needs", result, argument)
FEW_TENSORS = 3  # up to so many, every choice of those that require a gradient; of more, each alone and all


class Call(NamedTuple):
    """One call of a public function."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    parameters: str = ""


class Run(NamedTuple):
    """A call that was made: its tensors and leaves by slot, its results, and versions before and after."""

    tensors: dict[str, Any]
    leaves: dict[str, Any]
    results: dict[str, Any]
    writes: dict[str, int]
    ends: list[Any]  # where backward begins: taken at once, because a view whose base was written gets a new node


class Missing(Exception):
    """PyTorch has no derivative for this."""


class NoAnswer(Exception):
    """The call, or its backward, cannot be made."""


def differentiable(t: Any) -> bool:
    return t.dtype.is_floating_point or t.dtype.is_complex


def copied(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (tuple, list)) and not isinstance(value, torch.Size):
        made = [copied(v, change) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def seed() -> None:
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


def run(call: Call, needing: frozenset[str]) -> Run:
    """Makes the call on copies that are no leaves, so that it may write into them."""
    seed()
    values = by_slot(call.args, call.kwargs, call.parameters)
    slots = {id(t): slot for slot, t in tensors_of(values).items()}
    leaves: dict[str, Any] = {}

    def fresh(t: Any) -> Any:
        leaf = t.detach()[tuple(slice(0, 1) if spread else slice(None) for spread in spread_dimensions(t))].clone()
        if slots[id(t)] in needing:
            leaves[slots[id(t)]] = leaf.requires_grad_()
        return laid_out(leaf.clone(), t)

    args = copied(call.args, fresh)
    kwargs = {k: copied(v, fresh) for k, v in call.kwargs.items()}
    tensors = tensors_of(by_slot(args, kwargs, call.parameters))
    versions = {slot: t._version for slot, t in tensors.items()}
    result = quietly(lambda: call.function(*args, **kwargs))
    writes = {slot: t._version - versions[slot] for slot, t in tensors.items() if t._version != versions[slot]}
    results = results_of(result) or dict(zip(["out"], map(tensors.get, writes)))  # a statement's result is what it wrote
    return Run(tensors, leaves, results, writes, [torch.autograd.graph.get_gradient_edge(t) for t in results.values() if t.requires_grad])


def spread_dimensions(t: Any) -> list[bool]:
    """Which dimensions repeat one element."""
    return [n > 1 and stride == 0 for n, stride in zip(t.shape, t.stride())]


def laid_out(x: Any, like: Any) -> Any:
    """The same values, as they lie in memory in another tensor: a case may depend on that."""
    if x.shape != like.shape:
        return x.expand(like.shape)
    if x.stride() == like.stride():
        return x
    extent = 1 + sum((n - 1) * stride for n, stride in zip(like.shape, like.stride()))
    return x.new_zeros(extent).as_strided(like.shape, like.stride()).copy_(x)


def memory(t: Any) -> int:
    return int(t.untyped_storage()._cdata)


def memories(made: Run) -> dict[str, Any]:
    """A tensor for each memory that may be kept: arguments, those written as the result that they are, and new results."""
    seen: dict[int, str] = {}
    found: dict[str, Any] = {}
    for slot, t in [*made.tensors.items(), *made.results.items()]:
        if memory(t) not in seen:
            seen[memory(t)] = slot
            found[slot] = t
        elif slot.startswith("out") and seen[memory(t)] in made.writes and not seen[memory(t)].startswith("out"):
            del found[seen[memory(t)]]
            seen[memory(t)] = slot
            found[slot] = t
    return found


# ------------------------------------------------------------------------------------------------------------- questions

def backward(made: Run) -> bool:
    """Runs backward from all results; False if it says that a kept memory was modified."""
    ones = [torch.ones_like(t, requires_grad=False) for t in made.results.values() if t.requires_grad]
    try:
        quietly(lambda: torch.autograd.grad(made.ends, list(made.leaves.values()), ones, retain_graph=True, allow_unused=True))
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error) or "has been modified inplace" in str(error):
            return False
        if "derivative for" in str(error) and "not implemented" in str(error):
            raise Missing from error
        raise NoAnswer(str(error)) from error
    return True


def refused(made: Run) -> Iterator[str]:
    """The slots of memories that backward refuses after they are written."""
    for slot, t in memories(made).items():
        version = t._version
        torch.autograd.graph.increment_version(t)
        if not backward(made):
            yield slot
        torch._C._autograd._unsafe_set_version_counter((t,), (version,))


def views(made: Run) -> dict[str, str]:
    """For each result the argument whose memory it shares, with "=" if it is that tensor, or "#" if writes in it are refused."""
    found = {}
    for out, t in made.results.items():
        of = [slot for slot, x in made.tensors.items() if memory(x) == memory(t) and t.numel()]
        same = [slot for slot, x in made.tensors.items() if x is t]
        found[out] = f"={same[0]}" if same else f"{'#' if refuses_writes(t) else ''}{of[0]}" if of else ""
    return found


def refuses_writes(t: Any) -> bool:
    try:
        t.requires_grad and t.add_(0)
    except RuntimeError as error:
        return "multiple views" in str(error)
    return False


def masks(call: Call) -> list[frozenset[str]]:
    """Which arguments require a gradient: every choice of a few, of many each alone and all."""
    slots = [s for s, t in tensors_of(by_slot(call.args, call.kwargs, call.parameters)).items() if differentiable(t)]
    sizes = range(1, len(slots) + 1) if len(slots) <= FEW_TENSORS else sorted({1, len(slots)})
    return [frozenset(chosen) for n in sizes for chosen in itertools.combinations(slots, n)]


def facts(call: Call) -> dict[Fact, Any]:
    """All that PyTorch answers about a call; NoAnswer if it cannot be made with any gradient."""
    found: dict[Fact, Any] = {}
    larger: list[tuple[frozenset[str], set[str]]] = []
    for mask in masks(call):
        made = attempt(call, mask)
        if made is None:
            continue
        defined = backward_is_defined(made, mask, found)
        kept = set(refused(made)) if defined else set()
        if defined:
            larger.append((mask, kept))
        if len(mask) == 1:
            learn(found, made, mask, kept)
    if not found:
        raise NoAnswer(call.name)
    for mask, kept in larger:
        if {fact[1] for fact, told in found.items() if fact[0] == "saves" and told and fact[2] in mask} != kept:
            found["depends", "saves"] = True
    return found


def attempt(call: Call, mask: frozenset[str]) -> Run | None:
    """Makes a call; None if PyTorch refuses it with these arguments."""
    try:
        return run(call, mask)
    except (RuntimeError, TypeError, ValueError, NotImplementedError, IndexError, AttributeError):
        return None


def backward_is_defined(made: Run, mask: frozenset[str], found: dict[Fact, Any]) -> bool:
    """Whether backward works as long as nothing is written; otherwise notes why not."""
    if not made.ends:
        return False
    try:
        works = backward(made)
    except Missing:
        found.update({("missing", slot): True for slot in mask if len(mask) == 1})
        return False
    if not works:
        found["raises",] = True
    return works


def learn(found: dict[Fact, Any], made: Run, mask: frozenset[str], kept: set[str]) -> None:
    """What a call with one argument that requires a gradient says."""
    (needing,) = mask
    for slot in memories(made):
        found["saves", slot, needing] = slot in kept
    for out, t in made.results.items():
        found["needs", out, needing] = t.requires_grad
    for slot in made.tensors:
        found["writes", slot] = made.writes.get(slot)
    for out, of in views(made).items():
        found["views", out] = max(found.get(("views", out), ""), of, key=len)


# ------------------------------------------------------------------------------------------------- what the nodes name

def read_saved(made: Run) -> set[str]:
    """The slots of memories that `_saved_*` of the recorded nodes name."""
    named = {memory(t) for node in nodes(made) for t in saved_tensors(node)}
    return {slot for slot, t in memories(made).items() if memory(t) in named}


def nodes(made: Run) -> list[Any]:
    """The nodes of the call: from its results down to the copies of the leaves."""
    ends = {t.grad_fn for slot, t in made.tensors.items() if slot in made.leaves and slot not in made.writes}
    seen, stack = [], [t.grad_fn for t in made.results.values() if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node is not None and node not in ends and node not in seen and not hasattr(node, "variable"):
            seen.append(node)
            stack += [after for after, _ in node.next_functions]
    return seen


def saved_tensors(node: Any) -> Iterator[Any]:
    yield from (t for t in getattr(node, "saved_tensors", ()) if t is not None)  # of a Function
    for name in dir(node):
        if name.startswith("_saved_"):
            yield from tensors_of({"": quietly(lambda: getattr(node, name))}).values()
