"""Datasets that are put together from steps, each a dataset itself."""
from __future__ import annotations

from . import iter, map
from .pipes import IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]
