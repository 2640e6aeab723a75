"""The standard's functions that rearrange or pick elements."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..arrays import np
from ..base.errors import BadValue
from ..core.dtypes import int64
from ..core.factory import make
from ..core.storage import TensorBase
from ..ops.select import selecting
from ..ops.shape import joining as arrange, moving, shape as shapes
from ..ops.shape.shape import tensor_argument, whole_dim
from ..tensors.tensor import Tensor
from .kinds import as_type, common


def axes_of(axis: int | tuple[int, ...] | None, ndim: int, name: str) -> tuple[int, ...]:
    """Return axes counted from the front: all for None, none for an empty tuple (where PyTorch's take all)."""
    if axis is None:
        return tuple(range(ndim))
    return tuple(whole_dim(a, ndim, name) for a in ((axis,) if isinstance(axis, int) else axis))


def flat(x: Tensor) -> Tensor:
    return shapes.reshape(x, (prod(x.shape),))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Return the tensors one after the other along an axis, or all their elements in a row for None.

    >>> import mutagrad as mg
    >>> mg.array_api.concat((mg.tensor([1, 2]), mg.tensor([3])))
    tensor([1, 2, 3])
    """
    parts = common("concat", *arrays)
    return shapes.cat([flat(x) for x in parts], 0) if axis is None else shapes.cat(parts, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Return the tensors side by side along a new axis.

    >>> import mutagrad as mg
    >>> mg.array_api.stack((mg.tensor([1, 2]), mg.tensor([3, 4])))
    tensor([[1, 2],
            [3, 4]])
    """
    return shapes.stack(common("stack", *arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along an axis.

    >>> import mutagrad as mg
    >>> mg.array_api.unstack(mg.tensor([[1., 2.], [3., 4.]]))
    (tensor([1., 2.]), tensor([3., 4.]))
    """
    return tuple(shapes.unbind(tensor_argument(x, "unstack"), axis))


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return the tensor with new axes of size 1 at these places of the result.

    >>> import mutagrad as mg
    >>> mg.array_api.expand_dims(mg.zeros(2), axis=0).shape
    mutagrad.Size([1, 2])
    """
    x, places = tensor_argument(x, "expand_dims"), axis if isinstance(axis, tuple) else (axis,)
    for a in sorted(whole_dim(a, len(x.shape) + len(places), "expand_dims") for a in places):
        x = shapes.unsqueeze(x, a)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return the tensor without these axes, whose size must be 1.

    >>> import mutagrad as mg
    >>> mg.array_api.squeeze(mg.zeros(1, 2), axis=0).shape
    mutagrad.Size([2])
    """
    places = axes_of(axis, len(tensor_argument(x, "squeeze").shape), "squeeze")
    if any(x.shape[a] != 1 for a in places):
        raise BadValue(f"squeeze: axis {axis} of shape {tuple(x.shape)} has a size other than 1",
                       fix="squeeze(x, axis) of an axis of size 1")
    return shapes.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in places))


def flip(x: Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Return the elements in reverse order along these axes.

    >>> import mutagrad as mg
    >>> mg.array_api.flip(mg.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """
    return moving.flip(x, axes_of(axis, len(tensor_argument(x, "flip").shape), "flip"))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Move the axes at some places to others.

    >>> import mutagrad as mg
    >>> mg.array_api.moveaxis(mg.zeros(2, 3, 4), 0, -1).shape
    mutagrad.Size([3, 4, 2])
    """
    return shapes.movedim(tensor_argument(x, "moveaxis"), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Put the axes in another order.

    >>> import mutagrad as mg
    >>> mg.array_api.permute_dims(mg.zeros(2, 3, 4), (2, 0, 1)).shape
    mutagrad.Size([4, 2, 3])
    """
    return shapes.permute(tensor_argument(x, "permute_dims"), tuple(axes))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Exchange the last two axes.

    >>> import mutagrad as mg
    >>> mg.array_api.matrix_transpose(mg.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 3.],
            [2., 4.]])
    """
    return shapes.transpose(tensor_argument(x, "matrix_transpose"), -2, -1)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape: a view where that is possible, unless a copy is asked for or forbidden.

    >>> import mutagrad as mg
    >>> mg.array_api.reshape(mg.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    x = tensor_argument(x, "reshape")
    if copy is False:
        return shapes.view_as_shape(x, *shape)
    return shapes.reshape(shapes.clone(x) if copy else x, tuple(shape))


def repeat(x: Tensor, repeats: Tensor | int, /, *, axis: int | None = None) -> Tensor:
    """Return every element so many times in a row, along an axis or, for None, of all elements.

    >>> import mutagrad as mg
    >>> mg.array_api.repeat(mg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    x = tensor_argument(x, "repeat")
    times = as_type(repeats, int64) if isinstance(repeats, TensorBase) else repeats
    return arrange.repeat_interleave(flat(x) if axis is None else x, times, dim=0 if axis is None else axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Return the whole tensor so many times along each axis.

    >>> import mutagrad as mg
    >>> mg.array_api.tile(mg.tensor([1, 2]), (2,))
    tensor([1, 2, 1, 2])
    """
    return moving.tile(tensor_argument(x, "tile"), tuple(repetitions))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """Move the elements along axes; what falls off one end comes in at the other.

    >>> import mutagrad as mg
    >>> mg.array_api.roll(mg.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return moving.roll(tensor_argument(x, "roll"), shift, axis)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Return the elements at these positions along an axis, which may be left out for vectors.

    >>> import mutagrad as mg
    >>> mg.array_api.take(mg.tensor([3, 4, 5]), mg.tensor([2, 0]))
    tensor([5, 3])
    """
    x = tensor_argument(x, "take")
    if axis is None and len(x.shape) != 1:
        raise BadValue(f"take: a tensor of shape {tuple(x.shape)} has several axes to take along",
                       fix="take(x, indices, axis=0)")
    place = whole_dim(0 if axis is None else axis, len(x.shape), "take")
    return x[(slice(None),) * place + (as_type(tensor_argument(indices, "take"), int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return for every place the element at the position along the axis that `indices` has there.

    >>> import mutagrad as mg
    >>> x = mg.tensor([[3, 1], [2, 4]])
    >>> mg.array_api.take_along_axis(x, mg.array_api.argsort(x))
    tensor([[1, 3],
            [2, 4]])
    """
    places = as_type(tensor_argument(indices, "take_along_axis"), int64)
    return selecting.take_along_dim(tensor_argument(x, "take_along_axis"), places, axis)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the positions of the elements that are not zero, a tensor for each axis.

    >>> import mutagrad as mg
    >>> mg.array_api.nonzero(mg.tensor([0, 1, 1]))
    (tensor([1, 2]),)
    """
    if not tensor_argument(x, "nonzero").shape:
        raise BadValue("nonzero: a 0-d tensor has no positions", fix="nonzero(reshape(x, (1,)))")
    return tuple(make(places) for places in np.nonzero(x._array))
