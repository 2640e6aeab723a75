"""Steps by sparse gradients, such as those of `Embedding(sparse=True)`: only what has one is changed."""
from __future__ import annotations

from typing import Any

from ..base.errors import NotSupported
from ..base.layout import ANSWERING, has_own_layout
from ..tensors.tensor import Tensor
from .optimizer import Group

Found = list[tuple[Group, Tensor]]


def sparse_among(found: Found) -> Found:
    """Return the parameters whose gradient is sparse, with their groups."""
    return [one for one in found if has_own_layout((one[1]._grad,))] if ANSWERING else []


def refuse_sparse(found: Found, name: str) -> None:
    """Raise where there is a sparse gradient."""
    if sparse_among(found):
        raise NotSupported(f"{name} does not support sparse gradients, please consider SparseAdam instead",
                           why="its step changes all elements of a parameter",
                           fix="optim.SparseAdam, SGD or Adagrad; or Embedding(sparse=False)")


def refuse_decay(group: Group, name: str) -> None:
    """Raise where a sparse gradient meets a weight decay, which all elements would have."""
    if group["weight_decay"]:
        raise NotSupported(f"{name}: weight_decay option is not compatible with sparse gradients",
                           why="all elements decay, and only those with a gradient are changed",
                           fix="weight_decay=0 for this group")


def entries(g: Any) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return an index of what a sparse gradient has, each place once, and the values there."""
    once = g.coalesce()
    return tuple(once.indices()), once.values()
