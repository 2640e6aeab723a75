"""Sparse tensors in coordinates (COO): a column of indices for each value. Values at the same place add up."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ..arrays import np
from ..base.errors import BadIndex
from ..base.layout import layout as Layout, sparse_coo
from ..base.operands import Array
from ..ops.create.create import zeros
from ..ops.select.selecting import index_add, index_select
from ..tensors.tensor import Tensor
from .tensor import SparseTensor, bare, index_of


class Coordinates(SparseTensor):
    """`indices` has a row for each sparse dimension; a value may have dimensions of its own, the dense ones."""

    __slots__ = ()
    is_sparse = True
    _places: Tensor
    _coalesced: bool

    @property
    def layout(self) -> Layout:
        return sparse_coo

    @classmethod
    def of(cls, places: Tensor, numbers: Tensor, size: Sequence[int], coalesced: bool = False) -> Coordinates:
        made = cls._made(bare(numbers), size)
        made._places, made._coalesced = places, coalesced
        return made

    def _with(self, numbers: Tensor) -> Coordinates:
        made = type(self)._made(numbers, self._size)
        made._places, made._coalesced = self._places, self._coalesced
        return made

    def _places_of_values(self) -> tuple[Array, Tensor]:
        return self._places._array, self._numbers

    def _become(self, other: Any) -> None:
        self._keep_leaf()
        self._places, self._numbers, self._coalesced = other._places, other._numbers, other._coalesced
        self._size = other._size

    def sparse_dim(self) -> int:
        return int(self._places.shape[0])

    def dense_dim(self) -> int:
        return self._numbers.ndim - 1

    def _nnz(self) -> int:
        return int(self._places.shape[1])

    def _indices(self) -> Tensor:
        return self._places.detach()

    def _values(self) -> Tensor:
        return self._numbers

    def indices(self) -> Tensor:
        """Return the places, a column for each value."""
        return self._only_coalesced("indices")._places.detach()

    def values(self) -> Tensor:
        """Return the values: what is written to them is written to the sparse tensor."""
        return bare(self._only_coalesced("values")._numbers)

    def _only_coalesced(self, name: str) -> Coordinates:
        if not self._coalesced:
            raise BadIndex(f"{name}: Cannot get {name} on an uncoalesced tensor, please call .coalesce() first",
                           why="a place may be there several times", fix=f"x.coalesce().{name}()")
        return self

    def is_coalesced(self) -> bool:
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> Coordinates:
        """Say that the places are in order, each once; nobody checks."""
        self._coalesced = coalesced
        return self

    def coalesce(self) -> Coordinates:
        """Return the same with places in order, each once."""
        if self._coalesced:
            return self
        once, first, which = _distinct(self._places._array, self._size)
        count = once.shape[1]
        if count == self._nnz():  # no place is there twice: they only change their order
            return Coordinates.of(index_of(once), index_select(self._numbers, 0, index_of(first)), self._size, True)
        numbers = self._numbers
        if numbers._array.dtype.kind == "b":
            numbers = numbers.byte()
        summed = index_add(zeros((count, *numbers.shape[1:]), dtype=numbers.dtype), 0, index_of(which), numbers)
        return Coordinates.of(index_of(once), summed.to(self.dtype), self._size, True)

    def _entries(self) -> Coordinates:
        return self.coalesce()

    def _first_of_each(self) -> Coordinates:
        if self._coalesced:
            return self
        once, first, _ = _distinct(self._places._array, self._size)
        return Coordinates.of(index_of(once), index_select(self._numbers, 0, index_of(first)), self._size, True)

    def clone(self, *, memory_format: Any = None) -> Coordinates:
        return self.placed(self._places.clone(), self._numbers.clone())

    def placed(self, places: Tensor, numbers: Tensor) -> Coordinates:
        made = self._with(numbers)
        made._places = places
        return made

    def detach(self) -> Coordinates:
        return self._with(self._numbers.detach())

    def _shown(self) -> list[tuple[str, Tensor]]:
        return [("indices", self._places), ("values", self._numbers.detach())]

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = self._places, self._numbers.detach(), tuple(self._size), self._coalesced, self.requires_grad
        return rebuilt, parts


def of_rows(rows: Array, values: Tensor, size: Sequence[int]) -> Coordinates:
    """Return the rows of a matrix, some perhaps several times: a gradient that has no others."""
    return Coordinates.of(index_of(rows[None]), values, size)


def rebuilt(places: Tensor, numbers: Tensor, size: Sequence[int], coalesced: bool, requires_grad: bool) -> Coordinates:
    """Return what a pickle holds."""
    return Coordinates.of(places, numbers, size, coalesced).requires_grad_(requires_grad)


def _distinct(places: Array, size: Sequence[int]) -> tuple[Array, Array, Array]:
    """Return the distinct columns in order, at which one each is first, and which of them each column is."""
    dims = tuple(size[:len(places)])
    if not len(places):
        count = min(places.shape[1], 1)
        return places[:, :count], np.arange(count), np.zeros(places.shape[1], np.int64)
    if prod(dims) < 1 << 62:
        flat = flattened(places, dims)
        _, first, which = np.unique(flat, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(places, axis=1, return_index=True, return_inverse=True)
    return places[:, first], first, which.reshape(-1)


def flattened(places: Array, dims: Sequence[int]) -> Array:
    """Return the number of each place, counting row by row."""
    flat = np.zeros(places.shape[1], np.int64)
    for row, n in zip(places, dims):
        flat = flat * n + row
    return flat


def coordinates(x: SparseTensor) -> Coordinates:
    """Return the same in coordinates."""
    if isinstance(x, Coordinates):
        return x
    places, numbers = x._places_of_values()
    return Coordinates.of(index_of(places), numbers, x.shape, _in_order(places, x.shape))


def _in_order(places: Array, size: Sequence[int]) -> bool:
    if prod(size[:len(places)]) >= 1 << 62:
        return False
    flat = flattened(places, size)
    return bool((flat[1:] > flat[:-1]).all())


def everywhere(x: Tensor, sparse_dim: int | None = None) -> Coordinates:
    """Return all elements of a dense tensor, zeros among them, as entries."""
    first = x.ndim if sparse_dim is None else sparse_dim
    count = prod(x.shape[:first])
    places = np.indices(tuple(x.shape[:first])).reshape(first, count)
    return Coordinates.of(index_of(places), x.reshape(count, *x.shape[first:]), tuple(x.shape), True)


def keeping(x: Coordinates, kept: Array, places: Array, size: Sequence[int], coalesced: bool = False) -> Coordinates:
    """Return the entries that a mask or index array picks, at other places."""
    if kept.dtype == bool:
        kept = np.flatnonzero(kept)
    return Coordinates.of(index_of(places), index_select(x._numbers, 0, index_of(kept)), size, coalesced)
