"""Lists of tensors that an optimizer steps together."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.device import device
from ..core.dtypes import dtype

Groups = dict[tuple[device, dtype], tuple[list[list[Any]], list[int]]]


def _group_tensors_by_device_and_dtype(tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False) -> Groups:
    """Rows across several lists, put together by the device and the type of the first list's tensor."""
    groups: Groups = {}
    for i, row in enumerate(zip(*tensorlistlist)):
        columns, places = groups.setdefault((row[0].device, row[0].dtype), ([[] for _ in row], []))
        for column, value in zip(columns, row):
            column.append(value)
        if with_indices:
            places.append(i)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices that have operations on whole lists: none."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices
