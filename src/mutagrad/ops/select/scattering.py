"""Copies in which one window holds other values: a clone, written through a view."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ShapeError
from ...core.indexing import copy_
from ...core.out_arg import write_out
from ...core.storage import TensorBase as Tensor
from ..shape.joining import slice
from ..shape.shape import as_strided, clone, diagonal, select, tensor_argument

FUNCTIONS = "as_strided_scatter diagonal_scatter select_scatter slice_scatter"
METHODS = "as_strided_scatter diagonal_scatter select_scatter slice_scatter"


def _written(name: str, result: Tensor, window: Tensor, src: Tensor) -> Tensor:
    """The result after `src` was written to a window of it."""
    if tensor_argument(src, name)._array.shape != window._array.shape:
        raise ShapeError(f"{name}: src of shape {src._array.shape} for a window of shape {window._array.shape}",
                         why="the two must have one shape", fix=f"src.expand{tuple(window._array.shape)}")
    copy_(window, src)
    return result


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """Return a copy with another diagonal.

    >>> import mutagrad as mg
    >>> mg.diagonal_scatter(mg.zeros(2, 2), mg.tensor([1., 2.]))
    tensor([[1., 0.],
            [0., 2.]])
    """
    result = clone(tensor_argument(input, "diagonal_scatter"))
    return _written("diagonal_scatter", result, diagonal(result, offset, dim1, dim2), src)


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Any:
    """Return a copy with other values at one position along a dimension.

    >>> import mutagrad as mg
    >>> mg.select_scatter(mg.zeros(2, 2), mg.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    result = clone(tensor_argument(input, "select_scatter"))
    return _written("select_scatter", result, select(result, dim, index), src)


def slice_scatter(input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1, *, out: Tensor | None = None) -> Any:
    """Return a copy with other values at `start:end:step` along a dimension.

    >>> import mutagrad as mg
    >>> mg.slice_scatter(mg.zeros(4), mg.ones(2), start=1, end=3)
    tensor([0., 1., 1., 0.])
    """
    result = clone(tensor_argument(input, "slice_scatter"))
    found = _written("slice_scatter", result, slice(result, dim, start, end, step), src)
    return write_out("slice_scatter", found, out)


def as_strided_scatter(input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Any:
    """Return a copy with other values in a window given by strides, which count in the memory of the input.

    >>> import mutagrad as mg
    >>> mg.as_strided_scatter(mg.zeros(4), mg.ones(2), (2,), (2,))
    tensor([1., 0., 1., 0.])
    """
    array, item = tensor_argument(input, "as_strided_scatter")._array, input._array.itemsize
    memory = clone(as_strided(input, (input._storage.buffer.nbytes // item,), (1,), input._storage.start // item))
    begin = (input._offset or 0) // item
    window = as_strided(memory, size, stride, begin if storage_offset is None else storage_offset)
    result = as_strided(memory, array.shape, tuple(s // item for s in array.strides), begin)
    return _written("as_strided_scatter", result, window, src)
