"""Writes of the program's own backward code to the gradients that it is given: in hooks, and in a Function's backward.

PyTorch gives them the gradient itself. That of `sum()` is one number, expanded to a shape: all its elements are the
same memory, so that writing to it raises, and writing to some of its elements changes all of them.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...arrays import np
from ...core.storage import TensorBase
from ..torch_calls import results_of
from ..watching import Call, Watcher
from .shadow import Node, Shadow

SUMS = {"sum", "nansum"}
# Those that hand on the very gradient that they are given.
PASSING = {"add", "add_", "__add__", "__radd__", "__iadd__", "unsqueeze", "squeeze", "transpose", "permute", "t",
           "view"}
# Those that write element by element through an index or a mask, at which PyTorch only warns.
PICKING = {"__setitem__", "masked_fill_", "index_put_", "index_fill_", "index_add_", "index_copy_"}


def is_expanded(edge: Node | Shadow, visited: Sequence[Node]) -> bool:
    """Whether PyTorch's gradient of what a node made, in a sweep that visits these, is one number in many places."""
    readers = [node for node in visited for before in node.inputs if before is edge]
    if len(readers) != 1:
        return False
    return readers[0].name in SUMS or readers[0].name in PASSING and is_expanded(readers[0], visited)


class InsideBackward(Watcher):
    """Sees the calls of a hook, or of a Function's backward, and tells doctor of them."""

    def __init__(self, doctor: Any, edge: Any, visited: Sequence[Node], g: Any) -> None:
        self.doctor, self.edge, self.visited, self.g = doctor, edge, visited, g
        self.made: list[Any] = []  # what calls have given: none of these is the gradient

    def before(self, call: Call) -> None:
        self.doctor.before(call)
        if call.notes is not None:
            self.doctor.carefully(lambda: self._look(call), call.name)

    def after(self, call: Call) -> None:
        self.doctor.after(call)
        if call.notes is not None:
            given = call.notes.tensors.values()
            self.made += [t for t in results_of(call.result).values() if not any(t is one for one in given)]
            self.doctor.wrote_inside |= bool(call.notes.written())

    def _look(self, call: Call) -> None:
        facts = call.notes
        for slot in facts.written():
            if self._is_gradient(facts.tensors[slot]) and is_expanded(self.edge, self.visited):
                one = facts.name == "__setitem__" and np.size(_part(call)) == 1
                wrong = one or facts.name in PICKING and not _is_slice(call)
                kind = "write_to_some_of_gradient" if wrong else "write_to_gradient"
                self.doctor.findings.add(kind, call.where, slot=slot, name=facts.name)

    def _is_gradient(self, tensor: TensorBase) -> bool:
        """Whether this is what was given: it is a copy here, which no call of the program has made."""
        g, array = self.g, tensor._array
        if any(tensor is one for one in self.made) or isinstance(g, (dict, list)) or array.shape != g.shape:
            return False
        return array.size > 1 and bool(np.array_equal(array, getattr(g, "_array", g)))


def _is_slice(call: Call) -> bool:
    return call.notes.name == "__setitem__" and isinstance(call.args[1], (slice, int, type(...)))


def _part(call: Call) -> Any:
    return call.args[0]._array[call.args[1]] if _is_slice(call) else call.args[0]._array
