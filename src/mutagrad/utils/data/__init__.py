"""Datasets, samplers and the loader that makes batches of them, under PyTorch's names.

>>> import mutagrad as mg
>>> from mutagrad.utils.data import DataLoader, TensorDataset
>>> for x, y in DataLoader(TensorDataset(mg.arange(3), mg.arange(3.)), batch_size=2):
...     print(x, y)
tensor([0, 1]) tensor([0., 1.])
tensor([2]) tensor([2.])
"""
from __future__ import annotations

from . import _utils, dataloader, datapipes, dataset, distributed, sampler
from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .datapipes import IterDataPipe, MapDataPipe, functional_datapipe
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .display import progress
from .distributed import DistributedSampler
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from .workers import get_worker_info

__all__ = ["BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler",
           "IterDataPipe", "IterableDataset", "MapDataPipe", "RandomSampler", "Sampler", "SequentialSampler",
           "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "_utils",
           "dataloader", "datapipes", "dataset", "default_collate", "default_convert", "distributed",
           "functional_datapipe", "get_worker_info", "progress", "random_split", "sampler"]
