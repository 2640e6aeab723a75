"""How elements lie in memory. A fresh tensor's are in order, row by row; other orders exist as views only."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .errors import BadArgument, NotSupported
from .package_name import called


class layout:
    """How a tensor keeps its elements: all of them, `mutagrad.strided`, or those that are not zero, with indices.

    >>> import mutagrad as mg
    >>> mg.zeros(1).layout
    mutagrad.strided
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return called(self.name)

    def __reduce__(self) -> str:  # pickled as the name of its global
        return self.name


class memory_format(layout):
    """The order of elements that a copy is asked to have.

    >>> import mutagrad as mg
    >>> mg.zeros(1, 2, 2, 2).contiguous(memory_format=mg.channels_last).stride()
    (8, 1, 4, 2)
    """

    __slots__ = ()


strided, sparse_coo = layout("strided"), layout("sparse_coo")
sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(
    layout, ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"))
# Tensors of these compute in their own way. As soon as there is one, ANSWERING has what makes a call with it.
SPARSE = (sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
ANSWERING: list[Callable[..., Any]] = []


def has_own_layout(values: Iterable[Any]) -> bool:
    """Whether there is a tensor of such a layout among values, and lists of them."""
    return any(getattr(value, "_own_layout", False) or type(value) in (list, tuple) and _may_hold_tensors(value)
               and has_own_layout(value) for value in values)


def _may_hold_tensors(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether this is no list of numbers, which may be long."""
    return bool(values) and not isinstance(values[0], (int, float, complex, str))


def check_format(name: str, wanted: memory_format | None) -> None:
    """Raise unless the order asked for is that of every fresh storage."""
    if wanted is None or wanted is contiguous_format or wanted is preserve_format:
        return
    if isinstance(wanted, memory_format):
        raise NotSupported(f"{name}: memory_format={wanted} is not supported",
                           why="a storage is always contiguous, row by row",
                           fix=f"leave memory_format out; x.contiguous(memory_format={wanted}) puts the channels "
                           "of a tensor last")
    raise BadArgument(f"{name}: {wanted!r} is not a memory format", fix="memory_format=mutagrad.contiguous_format")


def check_layout(name: str, wanted: layout | None, pin_memory: bool = False) -> None:
    """Raise unless memory is asked to be what it is here."""
    if wanted is not None and wanted is not strided:
        if isinstance(wanted, layout):
            raise NotSupported(f"{name}: layout={wanted} is not supported",
                               fix="layout=mutagrad.strided, or leave it out")
        raise BadArgument(f"{name}: {wanted!r} is not a layout", fix="layout=mutagrad.strided, or leave it out")
    if pin_memory:
        raise NotSupported(f"{name}: pin_memory=True is not supported",
                           why="memory is pinned for copies to a GPU, and this build has none",
                           fix="leave pin_memory out")
