"""All parameters as one vector, and back."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...base.errors import ShapeError
from ...ops.shape.shape import cat, tensor_argument
from ...tensors.tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """Return all elements of all parameters in one tensor, which is differentiable with respect to them.

    >>> import mutagrad as mg
    >>> mg.nn.utils.parameters_to_vector([mg.ones(2), mg.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return cat([tensor_argument(p, "parameters_to_vector").reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Makes the parameters windows on parts of the vector, one after the other.

    >>> import mutagrad as mg
    >>> x = mg.zeros(1, 2)
    >>> mg.nn.utils.vector_to_parameters(mg.tensor([1., 2.]), [x])
    >>> x
    tensor([[1., 2.]])
    """
    found = [tensor_argument(p, "vector_to_parameters") for p in parameters]
    need = sum(p.numel() for p in found)
    if tensor_argument(vec, "vector_to_parameters").numel() < need:
        raise ShapeError(f"vector_to_parameters: {need} elements are needed, the vector has {vec.numel()}",
                         fix="parameters_to_vector(parameters)")
    at = 0
    for p in found:
        p.data = vec.detach()[at:at + p.numel()].reshape(p.shape)
        at += p.numel()
