"""From indices to a batch: the part of loading that runs in the workers, or in the program where there are none."""
from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from .dataset import IterableDataset, items_at


class Recipe(NamedTuple):
    """What it takes to make a batch: the dataset, whether samples are gathered in batches, and what makes a batch."""

    dataset: Any
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool

    @property
    def streams(self) -> bool:
        return isinstance(self.dataset, IterableDataset)

    def fetcher(self) -> Callable[[Any], Any]:
        """Return the function from indices to a batch. For a stream it raises StopIteration at the end."""
        return _stream(self) if self.streams else _lookup(self)


def _lookup(recipe: Recipe) -> Callable[[Any], Any]:
    dataset = recipe.dataset
    if not recipe.batched:
        return lambda index: recipe.collate_fn(dataset[index])
    return lambda indices: recipe.collate_fn(items_at(dataset, indices))


def _stream(recipe: Recipe) -> Callable[[Any], Any]:
    """The samples come one after another; of the indices only their number counts."""
    samples = iter(recipe.dataset)
    if not recipe.batched:
        return lambda _: recipe.collate_fn(next(samples))

    def fetch(indices: list[Any]) -> Any:
        batch = list(islice(samples, len(indices)))
        if not batch or recipe.drop_last and len(batch) < len(indices):
            raise StopIteration
        return recipe.collate_fn(batch)

    return fetch
