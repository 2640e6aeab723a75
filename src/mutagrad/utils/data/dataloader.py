"""The loader: batches of a dataset, made in this process or in workers."""
from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from ...base.errors import BadArgument, BadValue, Mismatch
from ...ops.random.generator import Generator
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .fetch import Recipe
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from .workers import Pool

__all__ = ["DataLoader", "default_collate", "default_convert"]

T_co = TypeVar("T_co", covariant=True)
_FIXED = frozenset(["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"])
_ONE_OR_OTHER = "the two say the same thing in two ways"


class _Endless:
    """The sampler of a stream, which has no indices."""

    def __iter__(self) -> Iterator[None]:
        return repeat(None)


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches; with `num_workers`, processes prepare them ahead of time.

    >>> from mutagrad.utils.data import DataLoader
    >>> list(DataLoader(range(5), batch_size=2))
    [tensor([0, 1]), tensor([2, 3]), tensor([4])]

    A `generator` decides the order and the workers' seeds: the same numbers follow from it, whatever the number of
    workers. Memory is never pinned, as there is no accelerator that it would help: `pin_memory` and `pin_memory_device`
    change nothing.
    """

    _ready = False

    dataset: Any

    def __init__(self, dataset: Dataset[T_co] | Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Sampler[Any] | Iterable[Any] | None = None,
                 batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None, num_workers: int = 0,
                 collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: str | BaseContext | None = None, generator: Generator | None = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False, pin_memory_device: str = "",
                 in_order: bool = True) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        _check_sampling(dataset, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if generator is not None and not isinstance(generator, Generator):
            raise BadArgument(f"DataLoader: generator must be a mutagrad.Generator, not {type(generator).__name__}",
                              fix="generator=mutagrad.Generator()")
        self.dataset, self.num_workers = dataset, num_workers
        self.timeout, self.worker_init_fn = timeout, worker_init_fn
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device, self.in_order = pin_memory, pin_memory_device, in_order
        self.generator, self.persistent_workers = generator, persistent_workers
        self.multiprocessing_context = _context(multiprocessing_context, num_workers)
        self.sampler = sampler if sampler is not None else self._default_sampler(shuffle)
        self.batch_size, self.drop_last = (None, False) if batch_sampler is not None else (batch_size, drop_last)
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(self.sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._pool: Pool | None = None
        self._ready = True

    def _default_sampler(self, shuffle: bool | None) -> Any:
        if isinstance(self.dataset, IterableDataset):
            return _Endless()
        return RandomSampler(self.dataset, generator=self.generator) if shuffle else SequentialSampler(self.dataset)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in _FIXED:
            raise BadValue(f"{name} attribute should not be set after DataLoader is initialized",
                           fix=f"DataLoader(dataset, {name}=...)")
        super().__setattr__(name, value)

    @property
    def _indices(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._indices)
        size = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset) and hasattr(self.dataset, "__len__"):
            return _Counted(self._iterate(), len(self), repr(type(self.dataset).__name__))
        return self._iterate()

    def _iterate(self) -> Iterator[Any]:
        seed = draw_seed(self.generator)  # in any case, so that the order does not depend on the number of workers
        recipe = Recipe(self.dataset, self.batch_sampler is not None, self.collate_fn, self.drop_last)
        if not self.num_workers:
            if self.timeout:
                raise Mismatch(f"DataLoader: timeout={self.timeout} without workers",
                               why="nobody could end a sample that takes too long",
                               fix="DataLoader(dataset, num_workers=1, timeout=...)")
            return _Here(recipe.fetcher(), self._indices)
        if self._pool is not None:
            self._pool.restart(self._indices)
            return self._pool
        assert self.prefetch_factor is not None
        context = self.multiprocessing_context or multiprocessing.get_context()
        pool = Pool(recipe, self._indices, seed, self.num_workers, self.prefetch_factor, self.timeout,
                    self.worker_init_fn, context)
        if self.persistent_workers:
            self._pool = pool
        pool.persistent = self.persistent_workers
        return pool


class _Here:
    """Batches made in this process. After an error in a dataset the next batch can still be asked for."""

    def __init__(self, fetch: Callable[[Any], Any], indices: Any) -> None:
        self._fetch, self._all, self._indices = fetch, indices, iter(indices)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._all)

    def __next__(self) -> Any:
        return self._fetch(next(self._indices))


class _Counted:
    """Warns when a stream has more batches than its length announced."""

    def __init__(self, batches: Iterator[Any], announced: int, name: str) -> None:
        self._batches, self._announced, self._name, self._given = batches, announced, name, 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._announced

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._given += 1
        if self._given == self._announced + 1:
            warnings.warn(f"DataLoader: Length of IterableDataset {self._name} announced {self._announced} batches, "
                          "and there are more; in workers, each one's copy must give only its share "
                          "(get_worker_info).", stacklevel=2)
        return batch


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if not isinstance(num_workers, int) or num_workers < 0:
        raise BadValue(f"DataLoader: num_workers must be a whole number from 0, not {num_workers!r}",
                       fix="num_workers=0 loads in this process")
    if timeout < 0:
        raise BadValue(f"DataLoader: timeout must not be negative, got {timeout}", fix="timeout=0 waits for ever")
    if prefetch_factor is not None and not num_workers or prefetch_factor is not None and prefetch_factor < 1:
        raise BadValue(f"DataLoader: prefetch_factor={prefetch_factor} with num_workers={num_workers}",
                       why="it is the number of batches, at least 1, that each worker prepares ahead",
                       fix="num_workers=2, prefetch_factor=2")
    if persistent_workers and not num_workers:
        raise BadValue("DataLoader: persistent_workers without workers", fix="num_workers=2, persistent_workers=True")


def _check_sampling(dataset: Any, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
                    drop_last: bool) -> None:
    if isinstance(dataset, IterableDataset):
        for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
            if value is not None:
                raise BadValue(f"DataLoader: {name}={value!r} with an IterableDataset",
                               why="a stream has an order of its own", fix=f"leave {name} out")
    if sampler is not None and shuffle:
        raise BadValue("DataLoader: sampler option is mutually exclusive with shuffle", why=_ONE_OR_OTHER,
                       fix="sampler=RandomSampler(dataset)")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise BadValue("DataLoader: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                       "and drop_last", why=_ONE_OR_OTHER, fix="DataLoader(dataset, batch_sampler=batch_sampler)")
    if batch_sampler is None and batch_size is None and drop_last:
        raise BadValue("DataLoader: batch_size=None disables batching and is mutually exclusive with drop_last",
                       fix="leave drop_last out")


def _context(wanted: Any, num_workers: int) -> Any:
    """Where processes come from: a start method by name, one of multiprocessing's contexts, or None for its default."""
    if wanted is None:
        return None
    if not num_workers:
        raise BadValue("DataLoader: multiprocessing_context without workers",
                       fix="num_workers=2, multiprocessing_context='spawn'")
    if isinstance(wanted, str):
        known = multiprocessing.get_all_start_methods()
        if wanted not in known:
            raise BadValue(f"DataLoader: multiprocessing_context={wanted!r} is none of {known}",
                           fix="multiprocessing_context='spawn'")
        return multiprocessing.get_context(wanted)
    if not isinstance(wanted, multiprocessing.context.BaseContext):
        raise BadArgument("DataLoader: multiprocessing_context must be a name or a context, "
                          f"not {type(wanted).__name__}", fix="multiprocessing_context='spawn'")
    return wanted


# PyTorch's names for what iterates, by which programs tell them apart, and for the types of functions a loader takes.
_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = _Here, Pool
_BaseDataLoaderIter = _Here | _Counted | Pool
_collate_fn_t, _worker_init_fn_t = Callable[[list[Any]], Any], Callable[[int], None]
