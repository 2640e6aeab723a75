"""PyTorch's rules inside `torch.func`: what a function may do to tensors while it is differentiated or mapped."""
from __future__ import annotations

from typing import Any

from ...base.modes import Transformed, mode
from ...base.provenance import here
from ...core.graph import Leaf
from ..watching import Call
from .books import Books
from .shadow import Counter, Shadow, slices_of

FORWARD = {"jvp", "jacfwd"}  # which keep nothing for a backward
VALUES = {"item", "__bool__", "__float__", "__int__", "__index__", "__complex__", "tolist", "numpy", "__array__"}


def keeps_nothing(level: Transformed | None) -> bool:
    """Whether all derivatives that are asked for here are forward ones."""
    if level is None:
        return False
    while level is not None:
        if level.name not in FORWARD:
            return False
        level = level.outer
    return True


def begin(doctor: Books, level: Transformed | None) -> None:
    """Make what a function is differentiated by leaves for it, as PyTorch does, when it makes its first call."""
    if level is None or level in doctor.levels:
        return
    doctor.levels.add(level)
    for reference in level.by:
        tensor: Any = reference()
        writer = tensor._storage.writer
        source = None if writer is None else next(iter(writer.inputs), None)  # it is a copy of what the sweep is for
        if level.name not in FORWARD and (level.name != "functional" or isinstance(source, Leaf)):
            leaf = doctor.remember(tensor, Shadow(doctor.memory(tensor), Counter(), True, here()))
            leaf.level, leaf.slices, doctor.edges[source] = level, slices_of(tensor._array), leaf


def _among(tensor: Any, references: list[Any]) -> bool:
    return any(reference() is tensor for reference in references)


def _is_captured(level: Transformed, shadow: Shadow, tensor: Any) -> bool:
    """Whether a function that is differentiated has a tensor from outside, other than as an argument."""
    made_in = shadow.level
    while made_in is not None and made_in is not level:  # in a call inside of this one, which has returned it
        made_in = made_in.outer
    return level.name != "functional" and made_in is None and not _among(tensor, level.by + level.others)


def before_call(doctor: Books, call: Call) -> None:
    """Note writes to what is not the function's own, and values asked for that differ from slice to slice."""
    facts = call.notes
    level = mode.now.transformed
    sliced = frozenset().union(*(shadow.slices for shadow in facts.shadows.values()))
    for slot in facts.written():
        shadow = facts.shadows[slot]
        if level is not None and _is_captured(level, shadow, facts.tensors[slot]):
            doctor.findings.add("captured_write", call.where, slot=slot, name=facts.name, by=level.name)
        elif not shadow.slices >= sliced:
            doctor.findings.add("unmapped_write", call.where, shadow.where, slot, name=facts.name)
    if facts.name in VALUES and sliced:
        doctor.findings.add("value_of_slice", call.where, name=facts.name)
