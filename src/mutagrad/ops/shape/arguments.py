"""Arguments of functions that concern shapes: tensors and dimensions, checked."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ...base.errors import BadArgument, BadIndex, BadValue
from ...base.operands import kind_name
from ...core.size import as_int
from ...core.storage import TensorBase

Dims = int | Sequence[int] | None  # one dimension, several, or None for all
Value = TypeVar("Value")


def tensor_argument(value: Value | None, name: str) -> Value:
    """Return the tensor itself; raise a TypeError for what is none."""
    if not isinstance(value, TensorBase):
        raise no_tensor(value, name)
    return value


def no_tensor(value: object, name: str) -> Exception:
    """Return the error for what has no array. The commonest views learn of it by its absence, at no cost to tensors."""
    return BadArgument(f"{name}: expects a tensor, got {kind_name(value)}",
                       fix=f"mutagrad.{name}(mutagrad.as_tensor(x))")


def whole_dim(dim: Any, ndim: int, name: str) -> int:
    """Return `dim` counted from the front."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return dim if dim >= 0 else dim + ndim  # type: ignore[no-any-return]
    top = max(ndim, 1)
    place: int = dim if dim.__class__ is int else as_int(dim, name)
    if not -top <= place < top:
        raise BadIndex(f"{name}: Dimension out of range: {place} for a tensor of {ndim} dimensions",
                       why=f"it may be from {-top} to {top - 1}", fix="dim=-1 for the last dimension")
    return place % top


def whole_dims(dim: Any, ndim: int, name: str) -> tuple[int, ...]:
    """Return a dim, several, or None or () for all, counted from the front."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        dim = (dim,)
    dims = tuple(whole_dim(d, ndim, name) for d in dim)
    if len(set(dims)) != len(dims):
        repeated = max(dims, key=dims.count)
        raise BadValue(f"{name}: dim {repeated} appears multiple times in the list of dims {tuple(dim)}",
                       fix=f"dim={tuple(sorted(set(dims)))}")
    return dims if ndim else ()
