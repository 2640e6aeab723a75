"""Steps of a dataset whose items have keys."""
from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy as _copied
from typing import Any

from ....base.errors import BadValue
from .pipes import MapDataPipe, functional_datapipe

__all__ = ["Batcher", "Concater", "MapDataPipe", "Mapper", "SequenceWrapper", "Zipper"]


class SequenceWrapper(MapDataPipe):
    """The items of a list or a dict; a copy of it, so that changes afterwards are not seen."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = _copied(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe):
    """A function of each item."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any]) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("batch")
class Batcher(MapDataPipe):
    """Lists of so many items."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False,
                 wrapper_class: Callable[[Any], Any] = list) -> None:
        if batch_size < 1:
            raise BadValue(f"Batcher: Batch size is required to be larger than 0, got {batch_size}")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        end = min(start + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[k] for k in range(start, end)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + bool(rest and not self.drop_last)


@functional_datapipe("concat")
class Concater(MapDataPipe):
    """The items of one, then those of the next."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise BadValue("Concater: Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        for pipe in self.datapipes:
            if index < len(pipe):
                return pipe[index]
            index -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(MapDataPipe):
    """Tuples of an item of each."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
