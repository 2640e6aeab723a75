"""From a list of samples to a batch, under PyTorch's path."""
from __future__ import annotations

from ..collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]
