"""In which order the elements of a tensor are drawn: that in which they lie in memory, as PyTorch goes over them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays.kinds import is_plain
from ...base.operands import Array


def memory_order(array: Array) -> tuple[int, ...] | None:
    """The dimensions from the slowest to the quickest; None if that is their own order."""
    if not is_plain(array) or array.flags.c_contiguous or not array.size:
        return None
    moving = [d for d in range(array.ndim) if array.shape[d] > 1]
    if not all(array.strides[d] for d in moving):
        return None
    found = sorted(moving, key=lambda d: -array.strides[d])
    if found == moving:
        return None
    return (*found, *(d for d in range(array.ndim) if array.shape[d] == 1))


def restored(drawn: Any, order: tuple[int, ...]) -> Any:
    """An array whose dimensions are in that order, with its dimensions in their own."""
    places = sorted(range(len(order)), key=order.__getitem__)
    return drawn.transpose(places).copy()


def is_in_order(array: Array) -> bool:
    """Whether the elements follow each other in memory."""
    return not is_plain(array) or bool(array.flags.c_contiguous)


def in_memory(array: Array, draw: Callable[[tuple[int, ...], bool], Any]) -> Any:
    """What `draw` gives for the shape of an array, whose elements get it in the order in which they lie in memory."""
    order = memory_order(array)
    if order is None:
        return draw(array.shape, True)
    return restored(draw(tuple(array.shape[d] for d in order), False), order)
