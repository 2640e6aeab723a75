"""From a list of samples to a batch.

>>> from mutagrad.utils.data import default_collate
>>> default_collate([{"size": 1, "name": "a"}, {"size": 2, "name": "b"}])
{'size': tensor([1, 2]), 'name': ['a', 'b']}
"""
from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ...arrays import np
from ...base.errors import BadArgument, BadIndex, MissingKey, ShapeError
from ...core.dtypes import float64
from ...ops.create.create import as_tensor, tensor
from ...ops.shape.shape import stack
from ...tensors.tensor import Tensor

Collators = dict[Any, Callable[..., Any]]


np_str_obj_array_pattern = re.compile(r"[SaUO]")  # types of arrays whose elements are no numbers


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack tensors, arrays and numbers along a new first dimension, in mappings, tuples and sequences as nested.

    >>> import mutagrad as mg
    >>> mg.utils.data.default_collate([(1, 2.), (3, 4.)])
    [tensor([1, 3]), tensor([2., 4.], dtype=mutagrad.float64)]
    """
    return _collate(batch, "", _of_the_user(default_collate_fn_map))


def collate(batch: Sequence[Any], *, collate_fn_map: Collators | None = None) -> Any:
    """Collate with functions of one's own for some classes: `function(batch, collate_fn_map=...)`."""
    return _collate(batch, "", _of_the_user(collate_fn_map or {}))


def _stacked(batch: Any, *, collate_fn_map: Collators | None = None) -> Any:
    return _collate(batch, "", _of_the_user(collate_fn_map or {}))


default_collate_fn_map: Collators = {
    Tensor: _stacked, np.ndarray: _stacked, (np.bool_, np.number, np.object_): _stacked, float: _stacked, int: _stacked,
    str: _stacked, bytes: _stacked}


collate_tensor_fn = _stacked


def _of_the_user(functions: Collators) -> Collators:
    return {kind: function for kind, function in functions.items() if function is not _stacked}


def default_convert(data: Any) -> Any:
    """Return arrays as tensors, in mappings, tuples and sequences as they are nested; anything else as it is.

    >>> import mutagrad as mg
    >>> import numpy as np
    >>> mg.utils.data.default_convert([np.ones(2), "a"])
    [tensor([1., 1.], dtype=mutagrad.float64), 'a']
    """
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SUO":
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def _collate(batch: Any, path: str, functions: Collators) -> Any:
    if not len(batch):
        raise BadIndex("default_collate: the batch is empty", fix="default_collate([sample])")
    first = batch[0]
    for kind, function in functions.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=default_collate_fn_map | functions)
    if isinstance(first, Tensor):
        return stack(_equal_shapes(batch, path))
    if isinstance(first, (np.ndarray, np.generic)) and not isinstance(first, (str, bytes)):
        return _collate_arrays(batch, path)
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _like_mapping(first, {key: _collate([_entry(sample, key, path) for sample in batch],
                                                   f"{path}[{key!r}]", functions) for key in first})
    if isinstance(first, Sequence):
        return _collate_sequences(batch, path, functions)
    raise _no_batch(type(first).__name__, path)


def _no_batch(what: str, path: str) -> BadArgument:
    return BadArgument(f"default_collate: sample{path} is {what}, of which no batch can be made",
                       why="a batch must contain tensors, NumPy arrays, numbers, strings, dicts or lists",
                       fix="DataLoader(dataset, collate_fn=your_function)")


def _entry(sample: Any, key: Any, path: str) -> Any:
    try:
        return sample[key]
    except KeyError:
        raise MissingKey(f"default_collate: sample{path} has the key {key!r} in the first item of the batch "
                         "and not in another", fix="DataLoader(dataset, collate_fn=your_function)") from None


def _equal_shapes(batch: Any, path: str) -> Any:
    """The batch, if all of its tensors have the same shape."""
    for k, item in enumerate(batch):
        if not isinstance(item, Tensor):
            raise BadArgument(f"default_collate: sample{path} is a tensor in the first item of the batch "
                              f"and {type(item).__name__} in item {k}",
                              fix="DataLoader(dataset, collate_fn=your_function)")
        if item.shape != batch[0].shape:
            raise ShapeError(f"default_collate: sample{path} has shape {tuple(batch[0].shape)} in the first item of "
                             f"the batch and {tuple(item.shape)} in item {k}",
                             why="stack expects each tensor to be equal size",
                             fix="pad them in the dataset, or DataLoader(dataset, collate_fn=your_function)")
    return batch


def _collate_arrays(batch: Any, path: str) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise _no_batch(f"an array of {batch[0].dtype}", path)
    if isinstance(batch[0], np.generic):
        return as_tensor(np.stack(batch))
    return stack(_equal_shapes([as_tensor(item) for item in batch], path))


def _collate_sequences(batch: Any, path: str, functions: Collators) -> Any:
    first = batch[0]
    for k, item in enumerate(batch):
        if len(item) != len(first):
            raise ShapeError(f"default_collate: sample{path} has {len(first)} entries in the first item of the batch "
                             f"and {len(item)} in item {k}",
                             why="each element in list of batch should be of equal size",
                             fix="pad them in the dataset, or DataLoader(dataset, collate_fn=your_function)")
    entries = enumerate(zip(*batch))
    return _like_sequence(first, [_collate(entry, f"{path}[{k}]", functions) for k, entry in entries])


def _like_mapping(original: Any, found: dict[Any, Any]) -> Any:
    """A mapping of the original's class where that can be made."""
    try:
        if isinstance(original, MutableMapping):
            clone = copy.copy(original)
            clone.update(found)
            return clone
        return type(original)(found)  # type: ignore[call-arg]
    except TypeError:
        return found


def _like_sequence(original: Any, found: list[Any]) -> Any:
    """A sequence of the original's class where that can be made; a list for a plain tuple, as in PyTorch."""
    if isinstance(original, tuple):
        return type(original)(*found) if hasattr(original, "_fields") else found
    try:
        if isinstance(original, MutableSequence):
            clone = copy.copy(original)
            for k, value in enumerate(found):
                clone[k] = value
            return clone
        return type(original)(found)  # type: ignore[call-arg]
    except TypeError:
        return found
