"""Samplers: the order in which a loader asks for items.

>>> import mutagrad as mg
>>> from mutagrad.utils.data import BatchSampler, SequentialSampler
>>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
[[0, 1], [2, 3], [4]]
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any, Generic, TypeVar

from ...base.errors import BadArgument, BadValue
from ...core.dtypes import float64, int64
from ...ops.create.create import as_tensor, empty
from ...ops.random.draws import randint, randperm
from ...ops.random.generator import Generator, default_generator
from ...ops.random.sampling import multinomial

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An iterable of indices, or of lists of them.

    >>> import mutagrad as mg
    >>> class Even(mg.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter(range(0, 6, 2))
    >>> list(mg.utils.data.DataLoader(range(6), sampler=Even()))
    [tensor([0]), tensor([2]), tensor([4])]
    """

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """All indices in order.

    >>> import mutagrad as mg
    >>> list(mg.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def draw_seed(generator: Generator | None) -> int:
    """Draw a number to seed something else with."""
    return int(empty((), dtype=int64).random_(generator=generator).item())


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise BadValue(f"{name} must be a positive integer, not {value!r}", fix=f"{name}=100")
    return value


def _check_flag(value: Any, name: str, kind: type[Exception]) -> None:
    if not isinstance(value, bool):
        raise kind(f"{name} must be True or False, not {value!r}")


class RandomSampler(Sampler[int]):
    """Indices in random order, or drawn with replacement. Without a generator, the default one gives a fresh seed.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> sorted(mg.utils.data.RandomSampler(range(4)))
    [0, 1, 2, 3]
    """

    data_source: Sized
    replacement: bool

    def __init__(self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
                 generator: Generator | None = None) -> None:
        _check_flag(replacement, "replacement", BadArgument)
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        _count(self.num_samples, "num_samples")

    @property
    def num_samples(self) -> int:
        """How many indices are drawn in one round.

        >>> import mutagrad as mg
        >>> mg.utils.data.RandomSampler(range(4)).num_samples
        4
        """
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or Generator().manual_seed(draw_seed(default_generator))
        size = len(self.data_source)
        if not size:
            return
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                count = min(32, self.num_samples - start)
                yield from randint(size, (count,), generator=generator).tolist()
            return
        for _ in range(self.num_samples // size):
            yield from randperm(size, generator=generator).tolist()
        # Also if none of them is wanted: PyTorch draws an order more, which a generator of the user's shows.
        yield from randperm(size, generator=generator).tolist()[:self.num_samples % size]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order.

    >>> import mutagrad as mg
    >>> sorted(mg.utils.data.SubsetRandomSampler([1, 3, 5]))
    [1, 3, 5]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn in proportion to weights, which need not sum to one.

    >>> import mutagrad as mg
    >>> list(mg.utils.data.WeightedRandomSampler([0., 1., 0.], 3))
    [1, 1, 1]
    """

    def __init__(self, weights: Sequence[float], num_samples: int, replacement: bool = True,
                 generator: Generator | None = None) -> None:
        _check_flag(replacement, "replacement", BadValue)
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise BadValue(f"WeightedRandomSampler: weights of shape {tuple(self.weights.shape)}",
                           why="there must be one weight for each item", fix="weights.flatten()")
        self.num_samples, self.replacement, self.generator = _count(num_samples, "num_samples"), replacement, generator

    def __iter__(self) -> Iterator[int]:
        return iter(multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of so many indices of another sampler; the last may be shorter, or is dropped.

    >>> import mutagrad as mg
    >>> list(mg.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_flag(drop_last, "drop_last", BadValue)
        self.sampler, self.batch_size, self.drop_last = sampler, _count(batch_size, "batch_size"), drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)
