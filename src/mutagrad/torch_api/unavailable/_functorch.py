"""What programs ask of a tensor inside `vmap`: whether it stands for many slices at once, and for which."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ...arrays.batched import Batched
from ...base.errors import BadValue, NotSupported
from ...base.pytree import TreeSpec, tree_flatten, tree_unflatten as tree_unflatten
from ...core.factory import make
from ...tensors.tensor import Tensor


def is_batchedtensor(tensor: Tensor) -> bool:
    """Whether it stands for the slices of a `vmap`."""
    return type(tensor._array) is Batched and tensor._array.values()[1]


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Whether it is a stand-in that `func.grad` has made: under that, tensors are tensors like any other."""
    return False


def maybe_get_bdim(tensor: Any) -> int:
    """Return where the slices lie in `get_unwrapped`: first, or -1 of a tensor that stands for none."""
    return 0 if is_batchedtensor(tensor) else -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Return all slices as one tensor, without history."""
    if not is_batchedtensor(tensor):
        raise BadValue("get_unwrapped: No wrappers present!", why="the tensor does not stand for slices of a vmap",
                       fix="ask is_batchedtensor(x) first")
    return make(tensor._array.values()[0].copy())  # type: ignore[no-any-return]


def _no_levels(name: str) -> NotSupported:
    return NotSupported(f"{name}: slices cannot be made and taken apart by hand",
                        why="calls of vmap have no numbers here", fix="mutagrad.vmap(function)(tensors)")


def _add_batch_dim(tensor: Tensor, dim: int, level: int) -> NoReturn:
    raise _no_levels("_add_batch_dim")


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> NoReturn:
    raise _no_levels("_remove_batch_dim")


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int) -> NoReturn:
    raise _no_levels("_maybe_remove_batch_dim")


def _get_name(func: Callable[..., Any]) -> str:
    """Return the name of a function, or how it is shown."""
    return getattr(func, "__name__", repr(func))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec) -> list[Any] | None:
    """Return the leaves of a tree, each for as many leaves as the other has in its place; None if they do not fit."""
    if tree is None or not isinstance(tree, (tuple, list, dict)):
        return [tree] * treespec.num_leaves
    leaves, spec = tree_flatten(tree, is_leaf=lambda v: v is None)
    if spec == treespec:
        return leaves
    if spec.type is not treespec.type or len(spec.children_specs) != len(treespec.children_specs):
        return None
    parts = tree.values() if isinstance(tree, dict) else tree
    found = [_broadcast_to_and_flatten(part, child) for part, child in zip(parts, treespec.children_specs)]
    return None if None in found else [v for part in found if part is not None for v in part]
