"""A question about one tensor: which writer and which elements are meant, and what is remembered about them."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from types import FrameType
from typing import Any

from ..arrays import np
from ..base.layout import has_own_layout
from ..core.evidence import CUTS, SWEEPS, Cut, Evidence, Step
from ..core.graph import Node, positions
from ..core.storage import TensorBase
from . import reading
from .reading import Reading
from .swept import SOME

MANY, DEEP = 256, 16  # nodes that a walk towards the loss looks at, and steps that it takes


class Question:
    """`owner` is the tensor that reports the gradient: a leaf, of which `tensor` may be some `chosen` elements."""

    def __init__(self, tensor: TensorBase, loss: TensorBase | None, frame: FrameType | None) -> None:
        self.tensor, self.loss, self.frame = tensor, loss, frame
        storage = tensor._storage
        owner = storage.leaf.tensor() if storage.leaf is not None else None
        self.owner: TensorBase = tensor if owner is None else owner
        self.writer = storage.writer if owner is None else storage.leaf
        self.part = owner is not None and owner is not tensor
        self.chosen = elements_of(tensor)
        self._read: Reading | None = None

    def read(self) -> Reading:
        """Read the text of the program, once."""
        if self._read is None:
            try:
                self._read = reading.read([self.owner], self.frame)
            except RecursionError:
                self._read = reading.NOTHING
        return self._read

    # ------------------------------------------------------------------------------------------------------------ words

    @property
    def name(self) -> str:
        """What the program calls it; of a part of a leaf, which."""
        names = self.read().names
        name = names[0] if names else "the tensor"
        if not self.part:
            return name
        if self.tensor._array.size != 1:
            return f"this part of {name}"
        first = int(places_of(self.tensor)[0]) - int(places_of(self.owner).min())
        owner = self.owner._array
        place = np.unravel_index(first, owner.shape) if first < owner.size and owner.flags.c_contiguous else (first,)
        return f"{name}[{', '.join(map(str, map(int, place)))}]"

    @property
    def grad_name(self) -> str:
        if self.part or not self.read().names:
            return f"the gradient of {self.name}" if self.part else "the gradient"
        return f"{self.name}.grad"

    def head(self, zero: bool = False) -> str:
        """The first words of an answer about a gradient that is not there."""
        missing = self.owner._grad is None
        if zero and missing and not self.part:
            return f"the gradient of {self.name} is zero"
        return f"{self.grad_name} is {'None' if missing and not zero else 'zero'}"

    # --------------------------------------------------------------------------------------------- what is there to see

    def grad(self) -> Any:
        """Return the gradient as it is, of the elements that are meant, or None."""
        found = self.owner._grad
        if found is not None and has_own_layout((found,)):
            found = found.to_dense()
        if found is None or not self.part:
            return None if found is None else found._array
        index = {int(place): i for i, place in enumerate(places_of(self.owner))}
        picked = [index[int(place)] for place in places_of(self.tensor) if int(place) in index]
        return found._array.reshape(-1)[picked]

    def sweeps(self) -> Iterator[Evidence]:
        """Yield the latest sweeps that began after the tensor was made, the newest first."""
        for sweep in reversed(list(SWEEPS)):
            if self.writer is None or self.writer.order >= sweep.order:
                yield sweep

    def cuts(self) -> list[Cut]:
        """Return where it, or what was computed from it and is alive, was left behind, newest first."""
        mine = {self.writer, *self.descendants()}
        return [cut for cut in all_cuts() if any(reference() in mine for reference in cut.writers)]

    def is_itself(self, cut: Cut) -> bool:
        """Return whether it is the tensor itself that was cut off, and not something computed from it."""
        return bool(cut.writers) and cut.writers[0]() is self.writer

    def descendants(self) -> list[Any]:
        """Return the nodes that were computed from it and are alive, oldest first."""
        found: set[Any] = set()
        newest = [self.writer]
        for _ in range(DEEP):  # each is one look at all objects that there are
            newest = [node for node in gc.get_referrers(*newest)
                      if isinstance(node, Node) and not isinstance(node, Step) and node not in found]
            found.update(newest)
            if not newest or len(found) > MANY:
                break
        return sorted(found, key=lambda node: -node.order)


def all_cuts() -> list[Cut]:
    """Return all that is noted, newest first."""
    return [Cut(*cut) for cut in reversed(list(CUTS))]


def elements_of(tensor: TensorBase) -> Any:
    """Return which elements of its storage a tensor is; None for all of it."""
    buffer = tensor._storage.buffer
    if tensor._offset is None or buffer.size > SOME or tensor._array.dtype != buffer.dtype:
        return None
    chosen = np.zeros(buffer.size, bool)
    chosen[places_of(tensor)] = True
    return chosen


def places_of(tensor: TensorBase) -> Any:
    """Return the places of the elements of a tensor in its storage, one after the other."""
    array = tensor._array
    return positions(tensor._offset or 0, array.shape, array.strides, array.itemsize).reshape(-1)
