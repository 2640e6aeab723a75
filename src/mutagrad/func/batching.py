"""How `vmap` takes its arguments apart and puts its results together.

PyTorch has these three steps, `_process_batched_inputs`, `_create_batched_inputs` and `_unwrap_batched`, in
`torch._functorch.vmap`. A library whose containers are sliced in a way of their own puts its functions in their place,
as tensordict does, so `vmap` looks them up here in each call. `vmap_level`, a number there, is the level itself here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays.batched import Slices
from ..base.errors import BadData, BadValue
from ..base.pytree import TreeSpec, tree_flatten, tree_unflatten
from ..ops.shape.shape import select, whole_dim
from ..ops.shape.slices import enter_slices, leave_slices
from ..tensors.tensor import Tensor


def _process_batched_inputs(in_dims: Any, args: Any, func: Callable[..., Any],
                            ) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """Return the number of slices, the dimension of each leaf, the leaves, and the shape of the arguments."""
    leaves, spec = tree_flatten(args)
    dims = spread(in_dims, args)
    return _size(leaves, dims), dims, leaves, spec


def _size(leaves: list[Any], dims: list[int | None]) -> int:
    for x, d in zip(leaves, dims):
        if d is not None and (not isinstance(x, Tensor) or not -x.ndim <= d < x.ndim):
            shape = tuple(getattr(x, "shape", ()))
            raise BadValue(f"vmap: cannot slice {type(x).__name__} of shape {shape} along dimension {d}",
                           fix="in_dims=None for it")
    sizes = {x.shape[d] for x, d in zip(leaves, dims) if d is not None}
    if not sizes:
        raise BadValue("vmap: no argument is sliced", fix="in_dims=0 for at least one argument")
    if len(sizes) > 1:
        raise BadValue(f"vmap: the sliced dimensions have sizes {sorted(sizes)}", why="they are sliced together",
                       fix="make them equal")
    return int(sizes.pop())


def _create_batched_inputs(flat_in_dims: list[int | None], flat_args: list[Any], vmap_level: Slices,
                           args_spec: TreeSpec) -> Any:
    """Return the arguments with tensors that look like one slice."""
    return tree_unflatten([x if d is None else _add_batch_dim(x, d, vmap_level)
                           for x, d in zip(flat_args, flat_in_dims)], args_spec)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: Slices, batch_size: int,
                    func: Callable[..., Any]) -> Any:
    """Return the results with the slices as a dimension."""
    outputs, spec = tree_flatten(batched_outputs)
    dims = result_dims(out_dims, batched_outputs, outputs)
    return tree_unflatten([_remove_batch_dim(x, vmap_level, batch_size, d) for x, d in zip(outputs, dims)], spec)


def _add_batch_dim(tensor: Tensor, dim: int, level: Slices) -> Any:
    """Return a tensor that looks like one slice along `dim`, and stands for all of them."""
    entered = enter_slices(tensor, dim, level)
    entered._array.frozen = True
    return entered


def _remove_batch_dim(tensor: Any, level: Slices, batch_size: int, out_dim: int | None) -> Any:
    """Return a result with its slices along `out_dim`; None: the one value that all of them have."""
    if out_dim is not None:
        return leave_slices(tensor, whole_dim(out_dim, tensor.ndim + 1, "vmap"), level)
    if not isinstance(tensor, Tensor) or getattr(tensor._array, "level", None) is not level:
        return tensor
    if tensor._array.values()[1]:
        raise differs()
    return select(leave_slices(tensor, 0, level), 0, 0)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: Slices, batch_size: int,
                            out_dim: int | None) -> Any:
    """Return a result of the function `name` with its slices along `out_dim`."""
    if out_dim is not None:
        _only_tensor(batched_output)
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _only_tensor(x: Any) -> None:
    if not isinstance(x, Tensor):
        raise BadData(f"vmap: the function must only return tensors, not {type(x).__name__}",
                      fix="out_dims=None for it")


def differs() -> BadValue:
    return BadValue("vmap: out_dims cannot be None for this result, because every slice has its own", fix="out_dims=0")


def spread(dims: Any, tree: Any) -> list[Any]:
    """A dimension for each leaf of a tree, from a tree of dimensions that may end higher up."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(tree)[0])
    if not isinstance(dims, (tuple, list, dict)):
        raise BadValue(f"vmap: a dimension must be a number or None, not {dims!r}", fix="in_dims=0")
    if isinstance(tree, dict) and isinstance(dims, dict):
        return [d for k in tree for d in spread(dims[k], tree[k])]
    if not isinstance(tree, (tuple, list)) or len(dims) != len(tree):
        count = len(tree) if hasattr(tree, "__len__") else 1
        raise BadValue(f"vmap: dimensions {dims!r} are not compatible with {type(tree).__name__} of {count}")
    return [d for part, inner in zip(dims, tree) for d in spread(part, inner)]


def result_dims(out_dims: Any, result: Any, outputs: list[Any]) -> list[Any]:
    """A dimension for each output of the function."""
    alone = isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(result, Tensor)
    dims = spread(out_dims[0] if alone else out_dims, result)
    for x, d in zip(outputs, dims):
        if d is not None:
            _only_tensor(x)
    return dims


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
