"""A program of ours that has run, as the places in its graph at which it began and ended.

Places, not tensors: what is written to these later, by either library, leaves the derivative alone.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..autograd.modes import enable_grad
from ..core.backward import GradientEdge, grad
from ..core.factory import detached
from ..core.graph import Leaf
from ..tensors.tensor import Tensor
from .program import Program


class Recorded(NamedTuple):
    """A program of ours that has run: places in its graph. `program` computes it anew, of tensors alone."""

    program: Program
    inputs: list[GradientEdge]
    outputs: list[GradientEdge]

    def reverse(self, seeds: Sequence[Tensor | None], recorded: bool) -> list[Tensor | None]:
        """Return gradients by the inputs; None where nothing depends on one."""
        chosen = [(y, g) for y, g in zip(self.outputs, seeds) if g is not None]
        with enable_grad():
            return list(grad([y for y, _ in chosen], self.inputs, [g for _, g in chosen], retain_graph=True,
                             create_graph=recorded, allow_unused=True))


def captured_leaves(edges: Sequence[GradientEdge], known: dict[int, int]) -> list[GradientEdge]:
    """Return the leaves of ours that a graph leads to, besides the arguments."""
    seen: set[int] = set()
    found: list[GradientEdge] = []
    stack: list[Any] = [edge.node for edge in edges]
    stack += [edge.ownership_token._storage.writer for edge in edges if edge.ownership_token is not None]
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if not isinstance(node, Leaf):
            stack.extend(node.inputs)
        elif id(node) not in known and (tensor := node.tensor()) is not None:
            kept = detached(tensor)
            kept._storage.writer = node
            found.append(GradientEdge(node, 0, kept))
    return found
