"""What PyTorch keeps for backward where it is told to keep it in another way: by hooks, on the CPU, in a checkpoint.

A checkpoint without reentrance is PyTorch's own use of such hooks. In its first run nothing is kept but the arguments.
In the second, which backward starts, what is saved is kept as it is, not looked at again, and the run ends with the
last value that is needed: a write that comes after it is not made.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...base.modes import mode
from .shadow import Save

if TYPE_CHECKING:
    from .books import Books


class Frame:
    """One run of a checkpointed function: the arguments that are kept of it, and how many values it has saved."""

    def __init__(self, given: list[Save], first: Frame | None = None) -> None:
        self.given, self.first, self.count = given, first, 0

    def is_over(self, more: int) -> bool:
        """Whether a second run has ended, once it has saved so many more."""
        return self.first is not None and self.count + more >= self.first.count > 0


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
