"""Control flow as functions, which compilers want and Python does not need: a branch, a loop, and sums of other kinds.

In a compiled step a loop of Python's is written out round by round; `loop` is one round, which XLA repeats. What a
round changes, it writes into tensors that were there before:

>>> import mutagrad as mg
>>> x, path = mg.tensor([1., 2.], requires_grad=True), mg.zeros(3, 2)
>>> y = x.clone()
>>> def fall(i):
...     y.mul_(0.5)
...     path[i] = y
>>> mg.loop(3, fall)
>>> path.sum().backward(); x.grad
tensor([0.8750, 0.8750])
>>> mg.cond(mg.tensor(True), lambda x: x + 1, lambda x: x - 1, (mg.ones(2),))
tensor([2., 2.])
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arrays.kinds import is_replayed, unknown
from ..base.errors import BadArgument
from ..base.pytree import PyTree, tree_flatten, tree_map, tree_unflatten
from ..base.sockets import socket
from ..ops.shape.moving import flip
from ..ops.shape.shape import stack
from ..tensors.tensor import Tensor


def cond(pred: Tensor | bool, true_fn: Callable[..., Any], false_fn: Callable[..., Any],
         operands: Sequence[Any] = ()) -> Any:
    """Call one of two functions with the operands; in a compiled step, both become part of the program.

    >>> import mutagrad as mg
    >>> mg.cond(mg.tensor(True), lambda x: x + 1, lambda x: x - 1, (mg.tensor(2.),))
    tensor(3.)
    """
    if is_replayed() and isinstance(pred, Tensor) and unknown(pred._array):
        return socket("loops").traced_cond(pred, true_fn, false_fn, operands)
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Tensor | bool], body_fn: Callable[..., Sequence[Any]],
               carried_inputs: Sequence[Any]) -> Sequence[Any]:
    """Return what the body makes of the inputs, and of its own results, as long as the condition holds for them.

    >>> import mutagrad as mg
    >>> mg.while_loop(lambda i: i < 5, lambda i: (i + 2,), (mg.tensor(0),))
    (tensor(6),)
    """
    if is_replayed():
        return socket("loops").traced_while(cond_fn, body_fn, carried_inputs)
    while bool(cond_fn(*carried_inputs)):
        carried_inputs = body_fn(*carried_inputs)
    return carried_inputs


def loop(n: int, body: Callable[[Any], Any], *, checkpoint: bool | int = False) -> None:
    """Do `for i in range(n): body(i)`; in a compiled step one round is traced, whatever n is, and `i` is a tensor.

    What rounds hand on stands in tensors that the body writes to. With `checkpoint` a compiled loop keeps the state
    only before every so many rounds (True: the square root of n) and computes the rest again in its backward.

    >>> import mutagrad as mg
    >>> x = mg.zeros(3)
    >>> def body(i):
    ...     x[i] = i * 2.
    >>> mg.loop(3, body)
    >>> x
    tensor([0., 2., 4.])
    """
    if isinstance(n, Tensor) or not hasattr(n, "__index__"):
        raise BadArgument(f"loop: the number of rounds must be an integer, not {type(n).__name__}",
                          why="what a backward has to keep depends on it", fix="loop(100, body), or while_loop")
    if is_replayed():
        if n > 0:
            socket("loops").traced_loop(n.__index__(), body, checkpoint)
        return
    for i in range(n):
        body(i)


def _steps(xs: PyTree, dim: int, reverse: bool) -> list[PyTree]:
    """Return a tree of tensors as trees of their slices along a dimension."""
    leaves, shape = tree_flatten(xs)
    slices = [x.unbind(dim) for x in leaves]
    steps = [tree_unflatten(step, shape) for step in zip(*slices, strict=True)]
    return steps[::-1] if reverse else steps


def _stacked(steps: list[PyTree], dim: int, reverse: bool) -> PyTree:
    """Return trees of slices as one tree of tensors."""
    made = tree_map(lambda *slices: stack(slices, dim), *steps)
    return tree_map(lambda x: flip(x, [dim]), made) if reverse else made


def scan(combine_fn: Callable[..., tuple[PyTree, PyTree]], init: PyTree, xs: PyTree, *, dim: int = 0,
         reverse: bool = False) -> tuple[PyTree, PyTree]:
    """Loop over slices: combine_fn(carried, slice) gives what is carried on, and a result; return the last, and all."""
    results = []
    for step in _steps(xs, dim, reverse):
        init, result = combine_fn(init, step)
        results.append(result)
    return init, _stacked(results, 0, reverse)


def associative_scan(combine_fn: Callable[..., PyTree], xs: PyTree, dim: int, reverse: bool = False,
                     combine_mode: str = "pointwise") -> PyTree:
    """Return, for each position along a dimension, all slices up to it combined: cumsum with another operation."""
    first, *rest = _steps(xs, dim, reverse)
    results = [first]
    for step in rest:
        results.append(combine_fn(results[-1], step))
    return _stacked(results, dim, reverse)
