"""Steps of a stream.

>>> from mutagrad.utils.data.datapipes.iter import IterableWrapper
>>> list(IterableWrapper(range(6)).filter(lambda x: x % 2 == 0).map(lambda x: x * 10).batch(2))
[[0, 20], [40]]
"""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

from ....base.errors import BadValue
from ..collate import default_collate
from .pipes import IterDataPipe, functional_datapipe

__all__ = ["Batcher", "Collator", "Concater", "Filter", "IterDataPipe", "IterableWrapper", "Mapper", "Shuffler",
           "Zipper"]


class IterableWrapper(IterDataPipe):
    """A stream of the items of anything that can be iterated; a copy of it, so that changes afterwards are not seen."""

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        return iter(_copied(self.iterable) if self.deepcopy else self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)


def _copied(iterable: Any) -> Any:
    try:
        return deepcopy(iterable)
    except TypeError:  # generators and open files cannot be
        return iterable


@functional_datapipe("map")
class Mapper(IterDataPipe):
    """A function of each item; of one column of it, put back there or into another, if columns are given."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise BadValue("Mapper: `output_col` must be None when `input_col` is None.", fix="input_col=0")
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _mapped(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        several = isinstance(self.input_col, (list, tuple))
        found = self.fn(*(item[c] for c in self.input_col)) if several else self.fn(item[self.input_col])
        columns = dict(item) if isinstance(item, dict) else list(item)
        target = self.output_col if self.output_col is not None else self.input_col[0] if several else self.input_col
        if target == -1 and isinstance(columns, list) and self.output_col is not None:
            columns.append(found)
        else:
            columns[target] = found
        return tuple(columns) if isinstance(item, tuple) else columns

    def __iter__(self) -> Iterator[Any]:
        return map(self._mapped, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("filter")
class Filter(IterDataPipe):
    """Those items for which a function, of one column if that is given, is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        column = self.input_col
        return (item for item in self.datapipe if self.filter_fn(item if column is None else item[column]))


@functional_datapipe("batch")
class Batcher(IterDataPipe):
    """Lists of so many items."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False,
                 wrapper_class: Callable[[Any], Any] = list) -> None:
        if batch_size < 1:
            raise BadValue(f"Batcher: Batch size is required to be larger than 0, got {batch_size}")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + bool(rest and not self.drop_last)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe):
    """The items in another order, drawn from so many at a time."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size < 1:
            raise BadValue(f"Shuffler: buffer_size should be larger than 0, got {buffer_size}")
        if unbatch_level:
            raise BadValue(f"Shuffler: unbatch_level={unbatch_level} is not supported", fix="shuffle before batch")
        self.datapipe, self.buffer_size, self._seed, self._enabled = datapipe, buffer_size, None, True

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Set whether it shuffles at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """Set the seed of the next pass, which has the same order again."""
        self._seed = seed  # type: ignore[assignment]
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        source, self._seed = random.Random(self._seed) if self._seed is not None else random, None
        kept: list[Any] = []
        for item in self.datapipe:
            if len(kept) == self.buffer_size:
                place = source.randrange(len(kept))
                kept[place], item = item, kept[place]
                yield item
            else:
                kept.append(item)
        source.shuffle(kept)
        yield from kept

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class Collator(IterDataPipe):
    """Batches made of lists of items."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        self.datapipe, self.collate_fn = datapipe, collate_fn or conversion

    def __iter__(self) -> Iterator[Any]:
        return map(self.collate_fn, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """One stream after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise BadValue("Concater: Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(IterDataPipe):
    """Tuples of an item of each, up to the end of the shortest."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
