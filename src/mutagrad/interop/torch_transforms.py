"""Programs of ours inside transforms of `torch.func`, where tensors have no memory to share.

There everything is done by what is called with plain tensors at the innermost level, and derivatives compute the
program anew.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..autograd.modes import enable_grad, no_grad
from ..base.errors import NotSupported
from ..core.storage import memory_of
from ..tensors.tensor import Tensor
from .program import Call, Mapped, Pushed, Reversed, unwritten
from .torch_memory import ours, theirs


def is_transformed() -> bool:
    return bool(torch._C._are_functorch_transforms_active())


def only_once(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Stand for a program that cannot be computed anew from tensors alone."""
    raise NotSupported("interop.torch: a function that reads parameters of mutagrad's, writes to its arguments "
                       "or returns them cannot be transformed",
                       why="torch.func knows the arguments and new results only",
                       fix="give parameters as arguments, or interop.torch(module); x = x.clone() before a write")


def transformed(call: Call, given: Sequence[Any]) -> Sequence[Any]:
    program = call if torch.is_grad_enabled() else no_grad()(call.__call__)
    return _Transformed.apply(program, *given)  # type: ignore[no-any-return]


def reversed_anew(program: Callable[..., Any], outputs: int, sources: Sequence[Any], grads: Sequence[Any]) -> list[Any]:
    """Gradients by all sources that can have one, computed anew."""
    wanted = tuple(i for i, x in enumerate(sources) if x.is_floating_point() or x.is_complex())
    seeded = tuple(i for i in range(outputs) if grads[i] is not None)
    found = _Transformed.apply(Reversed(program, len(sources), wanted, seeded), *sources, *(grads[i] for i in seeded))
    return [found[wanted.index(i)] if i in wanted else None for i in range(len(sources))]


class _Transformed(torch.autograd.Function):  # type: ignore[misc]
    """A program of ours, under transforms: what it needs for a derivative is the program itself."""

    @staticmethod
    def forward(program: Callable[..., Any], *sources: Any) -> Any:
        tensors = [ours(x)[0] for x in sources]
        with enable_grad():
            found = unwritten(program, tensors, "torch.func transforms functions that leave their arguments alone")
        if any(y.requires_grad for y in found):  # parameters of ours would be constants here, without a word
            only_once()
        memories = [memory_of(x) for x in tensors]
        return tuple(theirs(y.clone() if any(memory_of(y) is m for m in memories) else y) for y in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        ctx.program, *sources = inputs
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(y for y in output if not (y.is_floating_point() or y.is_complex())))
        ctx.save_for_backward(*sources)
        ctx.save_for_forward(*sources)
        ctx.outputs = len(output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *reversed_anew(ctx.program, ctx.outputs, ctx.saved_tensors, grads)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        sources = ctx.saved_tensors
        moved = tuple(i for i, t in enumerate(tangents) if t is not None)
        return _Transformed.apply(Pushed(ctx.program, len(sources), moved), *sources, *(tangents[i] for i in moved))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], program: Callable[..., Any], *sources: Any) -> Any:
        found = _Transformed.apply(Mapped(program, tuple(in_dims[1:]), info.randomness), *sources)
        return found, (0,) * len(found)
