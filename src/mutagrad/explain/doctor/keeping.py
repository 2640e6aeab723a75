"""What PyTorch keeps for backward where it is told to keep it in another way: by hooks, on the CPU, in a checkpoint.

A checkpoint without reentrance is PyTorch's own use of such hooks. In its first run nothing is kept but the arguments.
In the second, which backward starts, what is saved is kept as it is, not looked at again, and the run ends with the
last value that is needed: a write that comes after it is not made.
"""
from __future__ import annotations

from typing import Any

from ...base.modes import mode
from .books import Books
from .shadow import Frame, Save


def frame_here(doctor: Books) -> Frame | None:
    """Return the run of a checkpointed function that the program is in; what is not known yet begins here."""
    blocks = mode.now.saved_hooks
    block = blocks[-1] if blocks else None
    if not hasattr(block, "given") and not hasattr(block, "first"):
        return None
    if block not in doctor.frames:
        first = getattr(block, "first", None)
        given = _arguments(doctor, block) if first is None else []
        doctor.frames[block] = Frame(given, None if first is None else doctor.frames.get(first))
    return doctor.frames[block]


def _arguments(doctor: Books, block: Any) -> list[Save]:
    given = {slot: reference() for slot, reference in block.given.items()}
    shadows = {slot: doctor.shadow(tensor) for slot, tensor in given.items()}
    return [Save(shadow, given[slot]._array, slot, block.where, "checkpoint", shadow.counter.version)
            for slot, shadow in shadows.items()]


def kept(doctor: Books, saves: list[Save]) -> list[Save]:
    """Return what PyTorch keeps of these here."""
    block, frame = mode.now.saved_hooks[-1], frame_here(doctor)
    if frame is not None:
        frame.count += len(saves)
    if block.keeps != "alias" and block.pack_hook is None:
        return frame.given if frame is not None else []
    if frame is not None and block.first.reentrant:
        return saves
    for save in saves:
        save.kind, save.block = "saved_and_rewritten", block
        save.how = "a checkpoint computes it again" if frame is not None else "a hook or save_on_cpu keeps it as it is"
    return saves
