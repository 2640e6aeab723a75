"""The shape of a tensor as a program sees it."""
from __future__ import annotations

from math import prod
from typing import Any

from .called import called
from .ops.shape import sizes as whole_sizes


class Size(tuple[int, ...]):
    """A shape: a tuple with `numel()`."""

    __slots__ = ()

    def __new__(cls, sizes: Any = ()) -> Size:
        return tuple.__new__(cls, whole_sizes((tuple(sizes),), "Size"))

    def numel(self) -> int:
        return prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return called(f"Size([{', '.join(map(str, self))}])")
