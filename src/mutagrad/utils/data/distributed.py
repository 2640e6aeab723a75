"""A sampler that gives each of several processes its own share of a dataset."""
from __future__ import annotations

from collections.abc import Iterator, Sized
from itertools import cycle, islice

from ...base.errors import BadValue
from ...distributed import get_rank, get_world_size, is_initialized
from ...ops.random.draws import randperm
from ...ops.random.generator import Generator
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on.

    The end is padded with indices from the start, or dropped, so that all get equally many.

    >>> from mutagrad.utils.data.distributed import DistributedSampler
    >>> [list(DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(self, dataset: Sized, num_replicas: int | None = None, rank: int | None = None, shuffle: bool = True,
                 seed: int = 0, drop_last: bool = False) -> None:
        if is_initialized():
            num_replicas = get_world_size() if num_replicas is None else num_replicas
            rank = get_rank() if rank is None else rank
        if num_replicas is None or rank is None:
            raise BadValue("DistributedSampler: num_replicas and rank must be given",
                           why="there is no process group that could say them",
                           fix="DistributedSampler(dataset, num_replicas=2, rank=0)")
        if not 0 <= rank < num_replicas:
            raise BadValue(f"DistributedSampler: rank {rank} of {num_replicas} replicas",
                           fix=f"a rank from 0 to {num_replicas - 1}")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // num_replicas if drop_last else -(-len(dataset) // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        indices = range(len(self.dataset))
        if self.shuffle:  # in the same order in every process
            indices = randperm(len(self.dataset), generator=Generator().manual_seed(self.seed + self.epoch)).tolist()
        return islice(cycle(indices), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, each of which has another order; to be called before iterating.

        >>> import mutagrad as mg
        >>> sampler = mg.utils.data.DistributedSampler(range(4), num_replicas=2, rank=0)
        >>> sampler.set_epoch(1)
        >>> len(list(sampler))
        2
        """
        self.epoch = epoch
