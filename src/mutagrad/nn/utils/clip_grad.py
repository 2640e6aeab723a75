"""Gradients kept from growing: by their norm, or element by element."""
from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from ...autograd import no_grad
from ...base.errors import BadArgument, BadValue
from ...ops.create.create import zeros
from ...ops.linalg.norms import vector_norm
from ...ops.reduce.reductions import norm2_dims
from ...ops.shape.shape import stack
from ...tensors.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(tensors: Tensor | Iterable[Tensor], name: str) -> list[Tensor]:
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors) if isinstance(tensors, Iterable) else None
    if found is None or not all(isinstance(t, Tensor) for t in found):
        raise BadArgument(f"{name}: expects a tensor or several, got {type(tensors).__name__}",
                          fix=f"{name}(model.parameters(), ...)")
    return found


def _norm(x: Tensor, order: float) -> Any:
    """The norm of all elements; models have hundreds of parameters, so the usual one takes the shortest way."""
    if order == 2 and x.__class__ is Tensor and x._array.dtype.char in "fd":
        return norm2_dims(x, tuple(range(x._array.ndim)), False)
    return vector_norm(x, order)


@no_grad()
def get_total_norm(tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Any:
    """Return the norm of all elements of all tensors. (`foreach` chooses a kernel in PyTorch; here there is one.)

    >>> import mutagrad as mg
    >>> mg.nn.utils.get_total_norm([mg.tensor([3.]), mg.tensor([4.])])
    tensor(5.)
    """
    found, order = _listed(tensors, "get_total_norm"), float(norm_type)
    if not found:
        return zeros(())
    total = vector_norm(stack([_norm(t, order) for t in found]), order)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise BadValue(f"get_total_norm: the total norm of order {order} for gradients is non-finite: {total.item()}",
                       why="some gradient is infinite or no number",
                       fix="error_if_nonfinite=False, or a smaller learning rate")
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor,
                          foreach: bool | None = None) -> None:
    """Makes the gradients smaller, all by one factor, so that what was `total_norm` is at most `max_norm`.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> x.grad = mg.tensor([3., 4.])
    >>> mg.nn.utils.clip_grads_with_norm_([x], 1., mg.nn.utils.get_total_norm([x.grad]))
    >>> x.grad
    tensor([0.6000, 0.8000])
    """
    factor = (float(max_norm) / (total_norm.detach() + 1e-6)).clamp(max=1.0)
    factors: dict[Any, Any] = {}  # by type
    for p in _listed(parameters, "clip_grads_with_norm_"):
        g = p.grad
        if g is not None:
            dtype = g.dtype
            if dtype not in factors:
                factors[dtype] = factor.to(dtype)
            g.mul_(factors[dtype])


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False, foreach: bool | None = None) -> Any:
    """Scale all gradients by one factor where their norm is above `max_norm`; return the norm before.

    >>> import mutagrad as mg
    >>> p = mg.zeros(2, requires_grad=True)
    >>> p.grad = mg.tensor([3., 4.])
    >>> mg.nn.utils.clip_grad_norm_(p, max_norm=1.0)
    tensor(5.)
    >>> p.grad
    tensor([0.6000, 0.8000])
    """
    found = _listed(parameters, "clip_grad_norm_")
    if not found and isinstance(parameters, Iterator):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm([p.grad for p in found if p.grad is not None], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(found, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                   error_if_nonfinite: bool = False, foreach: bool | None = None) -> Any:
    """Do what clip_grad_norm_ does, under its former name."""
    warnings.warn("clip_grad_norm is deprecated in favor of clip_grad_norm_", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Cuts every element of the gradients off at `clip_value` and its negative.

    >>> import mutagrad as mg
    >>> x = mg.ones(2, requires_grad=True)
    >>> (x * 5).sum().backward()
    >>> mg.nn.utils.clip_grad_value_([x], 1.)
    >>> x.grad
    tensor([1., 1.])
    """
    bound = float(clip_value)
    for p in _listed(parameters, "clip_grad_value_"):
        if p.grad is not None:
            p.grad.clamp_(min=-bound, max=bound)
