"""Datasets: things with items, or with a stream of them.

>>> import mutagrad as mg
>>> from mutagrad.utils.data import TensorDataset
>>> pairs = TensorDataset(mg.arange(4), mg.arange(4.) ** 2)
>>> pairs[3]
(tensor(3), tensor(9.))
>>> len(pairs + pairs)
8
"""
from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

from ...base.errors import BadArgument, BadValue, Mismatch, NoSuchItem
from ...ops.random.draws import randperm
from ...ops.random.generator import Generator
from ...tensors.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Anything with `__getitem__` and, for most samplers, `__len__`. `__getitems__`, if any, gives a batch at once.

    >>> import mutagrad as mg
    >>> class Squares(mg.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, i):
    ...         return i ** 2
    >>> list(mg.utils.data.DataLoader(Squares(), batch_size=2))
    [tensor([0, 1]), tensor([4])]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of items. In each worker of a loader runs a copy of it, which asks `get_worker_info` for its share.

    >>> import mutagrad as mg
    >>> class Count(mg.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(mg.utils.data.DataLoader(Count(), batch_size=2))
    [tensor([0, 1]), tensor([2])]
    """

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of equal first size: item i is entry i of each.

    >>> import mutagrad as mg
    >>> data = mg.utils.data.TensorDataset(mg.tensor([1., 2.]), mg.tensor([0, 1]))
    >>> data[1]
    (tensor(2.), tensor(1))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise BadArgument(f"TensorDataset: expects tensors, got {type(tensor).__name__}",
                                  fix="TensorDataset(mutagrad.as_tensor(data))")
        if not tensors or any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise Mismatch(f"TensorDataset: tensors of shapes {[tuple(tensor.shape) for tensor in tensors]}",
                           why="an item is one entry of each, so their first sizes must be equal",
                           fix="TensorDataset(x[:n], y[:n])")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Datasets side by side: an item is a tuple, or given by keyword a dict, of one item of each.

    >>> import mutagrad as mg
    >>> mg.utils.data.StackDataset([1, 2], ["a", "b"])[1]
    (2, 'b')
    """

    datasets: Any

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise BadValue("StackDataset: expects datasets either by position or by keyword",
                           fix="StackDataset(images, labels)")
        self.datasets = args or kwargs
        sizes = [len(dataset) for dataset in (args or kwargs.values())]  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            raise Mismatch(f"StackDataset: datasets of lengths {sizes}", why="an item is one item of each",
                           fix="Subset(dataset, range(n))")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [items_at(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(items_at(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


def items_at(dataset: Any, indices: list[Any]) -> list[Any]:
    """Return several items, at once where the dataset can."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    found = dataset.__getitems__(indices)
    if len(found) != len(indices):
        raise BadValue(f"{type(dataset).__name__}.__getitems__: gave {len(found)} items for {len(indices)} indices",
                       fix="return one item for each index")
    return list(found)


class ConcatDataset(Dataset[T_co]):
    """Datasets one after another.

    >>> import mutagrad as mg
    >>> data = mg.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2]
    (3, 3)
    """

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise Mismatch("ConcatDataset: there are no datasets", fix="ConcatDataset([first, second])")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise Mismatch("ConcatDataset: cannot index into an IterableDataset", fix="ChainDataset(datasets)")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return where the datasets end: the sums of their lengths so far.

        >>> import mutagrad as mg
        >>> mg.utils.data.ConcatDataset.cumsum([[1, 2], [3]])
        [2, 3]
        """
        return list(accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        place = idx + len(self) if idx < 0 else idx
        if not 0 <= place < len(self):
            raise NoSuchItem(f"ConcatDataset: index {idx} for {len(self)} items",
                             fix=f"dataset[{len(self) - 1}] is the last")
        which = bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[Any]):
    """Streams one after another.

    >>> import mutagrad as mg
    >>> class Count(mg.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(mg.utils.data.ChainDataset([Count(), Count()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise Mismatch(f"ChainDataset: {type(dataset).__name__} is no IterableDataset",
                               fix="ConcatDataset(datasets)")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for stream in self._streams():
            yield from stream

    def __len__(self) -> int:
        return sum(map(len, self._streams()))


class Subset(Dataset[T_co]):
    """The items of a dataset at some indices.

    >>> import mutagrad as mg
    >>> list(mg.utils.data.Subset(["a", "b", "c"], [2, 0]))
    ['c', 'a']
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, idx: Any) -> Any:
        return self.dataset[[self.indices[i] for i in idx] if isinstance(idx, list) else self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return items_at(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset[T_co], lengths: Sequence[int | float],
                 generator: Generator | None = None) -> list[Subset[T_co]]:
    """Deal the items at random into subsets of these lengths, or of these fractions of the whole.

    >>> import mutagrad as mg
    >>> from mutagrad.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.7, 0.3], mg.Generator().manual_seed(0))]
    [7, 3]
    """
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_fractions(lengths, size)
    if sum(lengths) != size or any(int(n) != n or n < 0 for n in lengths):
        raise BadValue(f"random_split: lengths {list(lengths)} do not sum to the {size} items",
                       fix="random_split(dataset, [0.8, 0.2])")
    ends = list(accumulate(map(int, lengths), initial=0))
    order = randperm(size, generator=generator).tolist()
    return [Subset(dataset, order[start:end]) for start, end in pairwise(ends)]


def _from_fractions(fractions: Sequence[float], size: int) -> list[int]:
    """Each fraction of the items, rounded down; what is left over goes to the first ones in turn."""
    for k, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise BadValue(f"random_split: the fraction {fraction} at place {k} is not between 0 and 1",
                           fix="random_split(dataset, [0.8, 0.2])")
    lengths = [math.floor(size * fraction) for fraction in fractions]
    for k in range(size - sum(lengths)):
        lengths[k % len(lengths)] += 1
    for k, length in enumerate(lengths):
        if not length:
            warnings.warn(f"random_split: Length of split at index {k} is 0: it has no items.", stacklevel=3)
    return lengths
