"""The shape of a tensor as a program sees it."""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any, SupportsIndex

from ..base.errors import BadArgument
from ..base.package_name import called
from ..base.pytree import SequenceKey, register_pytree_node


def as_int(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise BadArgument(f"{name}: expects an integer, got {type(value).__name__}", why=f"it was {value!r}",
                          fix="int(n)")
    return int(value.__index__())


def sizes(arguments: tuple[Any, ...], name: str = "size") -> tuple[int, ...]:
    """Return sizes that are given one by one or as one sequence: `x.view(2, 3)`, `x.view((2, 3))`."""
    if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)):
        arguments = tuple(arguments[0])
    for n in arguments:
        if n.__class__ is not int:  # as in PyTorch, the first says whether these are sizes: a bool after it is a number
            return tuple(as_int(int(n) if k and n.__class__ is bool else n, name) for k, n in enumerate(arguments))
    return arguments


whole_sizes = sizes


class Size(tuple[int, ...]):
    """A shape: a tuple with `numel()`.

    >>> import mutagrad as mg
    >>> mg.Size([2, 3]).numel()
    6
    """

    __module__ = "mutagrad"
    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = ()) -> Size:
        return tuple.__new__(cls, whole_sizes((tuple(sizes),), "Size"))

    def numel(self) -> int:
        """Return how many elements a tensor of this shape has.

        >>> import mutagrad as mg
        >>> mg.zeros(2, 3).shape.numel()
        6
        """
        return prod(self)

    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return tuple.__new__(Size, found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return called(f"Size([{', '.join(map(str, self))}])")


# A container among trees, as in PyTorch, of which a plain tuple is made.
register_pytree_node(Size, lambda size: (list(size), None), lambda children, _: tuple(children),
                     flatten_with_keys_fn=lambda size: ([(SequenceKey(i), n) for i, n in enumerate(size)], None))
