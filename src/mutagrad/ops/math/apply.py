"""Python functions applied to every element, in place: slow, and without derivatives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np
from ...base.errors import BadArgument, GradientError, ShapeError
from ...core.factory import make
from ...core.indexing import copy_
from ...core.storage import TensorBase as Tensor
from ..shape.shape import tensor_argument

METHODS = "apply_ map_ map2_"


def _write_each(name: str, function: Callable[..., Any], x: Tensor, *others: Any) -> Any:
    """Write what a function makes of each element, and of those in its place in others."""
    if not callable(function):
        raise BadArgument(f"{name}: {type(function).__name__} is not callable", fix=f"x.{name}(lambda v: 2 * v)")
    for t in (x, *others):
        if tensor_argument(t, name)._storage.writer is not None:
            raise GradientError(f"{name}: this tensor requires a gradient, which a Python function "
                                "of numbers would lose", fix=f"x.detach().{name}(function)")
    try:
        columns = [np.broadcast_to(t._array, x._array.shape).reshape(-1).tolist() for t in (x, *others)]
    except ValueError:
        raise ShapeError(f"{name}: shapes {[t._array.shape for t in others]} do not fit the tensor's, {x._array.shape}",
                         fix="y.expand_as(x)") from None
    found = np.array([function(*row) for row in zip(*columns, strict=True)])
    if found.size and found.dtype.kind not in "biufc":
        raise BadArgument(f"{name}: the function must return numbers, not {type(found.flat[0]).__name__}",
                          fix=f"x.{name}(lambda v: 2 * v)")
    return copy_(x, make(found.reshape(x._array.shape).astype(x._array.dtype)))


def apply_(x: Tensor, callable: Callable[[Any], Any]) -> Any:
    """Replace every element by a Python function of it.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2.]).apply_(lambda v: v + 10)
    tensor([11., 12.])
    """
    return _write_each("apply_", callable, x)


def map_(x: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Any:
    """Replace every element by a Python function of it and of the one in its place in another tensor.

    >>> import mutagrad as mg
    >>> mg.tensor([1., 2.]).map_(mg.tensor([3., 4.]), lambda x, y: x * y)
    tensor([3., 8.])
    """
    return _write_each("map_", callable, x, tensor)


def map2_(x: Tensor, tensor1: Tensor, tensor2: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Replace every element by a Python function of it and of those in its place in two other tensors.

    >>> import mutagrad as mg
    >>> mg.zeros(2).map2_(mg.tensor([1., 2.]), mg.tensor([3., 4.]), lambda x, a, b: a * b)
    tensor([3., 8.])
    """
    return _write_each("map2_", callable, x, tensor1, tensor2)
