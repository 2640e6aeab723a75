"""Mapping a function over a dimension: once for all slices, or, where that cannot be, for one after the other."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..arrays.batched import Slices, Turns
from ..arrays.batched_rules import begin
from ..arrays.kinds import Level, any_open, device_of, others
from ..base.errors import BadValue
from ..base.modes import call_with, mode
from ..base.operands import Array
from ..base.pytree import tree_flatten, tree_unflatten
from ..core.factory import stamp_storages
from ..core.graph import next_order
from ..ops.create.create import zeros_like
from ..ops.math.elementwise import equal
from ..ops.shape.shape import cat, movedim, narrow, select, stack
from ..tensors.tensor import Tensor
from . import batching
from .batching import differs, result_dims


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """Return a function that maps `func` over a dimension of its arguments, and stacks the results.

    `in_dims` says along which dimension each argument is sliced, None that it is not; `out_dims` where the results are
    stacked. `func` is called once, with tensors that look like one slice and stand for all of them, or for `chunk_size`
    at a time. Where it needs the value of one slice (`if x > 0`, `x.item()`), it is called for each.

    >>> import mutagrad as mg
    >>> mg.vmap(mg.dot)(mg.ones(2, 3), mg.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise BadValue(f"vmap: randomness must be 'error', 'different' or 'same', not {randomness!r}")
    check_chunks("vmap", chunk_size)

    def mapped(*arguments: Any, **settings: Any) -> Any:
        size, dims, leaves, spec = batching._process_batched_inputs(in_dims, arguments, func)
        same = Turns(True) if randomness == "same" else None
        call = _Call(func, leaves, dims, spec, settings, out_dims, randomness, same)
        if chunk_size is not None and size > chunk_size:
            return call.in_chunks(size, chunk_size)
        return call.run(size)

    return mapped


def check_chunks(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size <= 0:
        raise BadValue(f"{name}: chunk_size should be greater than 0, got {chunk_size}", fix="leave chunk_size out")


class _Call(NamedTuple):
    """One call of a mapped function. `dims` says for each of the leaves along which dimension it is sliced."""

    func: Callable[..., Any]
    leaves: list[Any]
    dims: list[int | None]
    spec: Any
    settings: dict[str, Any]
    out_dims: Any
    randomness: str
    same: Turns | None  # how all slices draw the same random numbers, in whatever chunks

    def run(self, size: int) -> Any:
        """Return the results, where what the function makes anew is on the device of its arguments."""
        place, kind = self.place() if others() else None, mode.now.kind
        if place is None or kind is not None and (kind is place or not kind.on_device):
            return self.run_there(size)
        return call_with({"kind": place}, self.run_there, size)

    def place(self) -> Any:
        places = (device_of(x._array) for x in self.leaves if isinstance(x, Tensor))
        return next((place for place in places if place is not None), None)

    def run_there(self, size: int) -> Any:
        found = self.at_once(size) if size > 1 else None
        return self.one_by_one(size) if found is None else found[0]

    def called(self, leaves: list[Any]) -> Any:
        return self.func(*tree_unflatten(leaves, self.spec), **self.settings)

    def sliced(self, slice_of: Callable[..., Any], *place: int) -> list[Any]:
        return [x if d is None else slice_of(x, d, *place) for x, d in zip(self.leaves, self.dims)]

    def in_chunks(self, size: int, chunk_size: int) -> Any:
        """Return the results for some slices at a time, joined."""
        found = []
        for start in range(0, size, chunk_size):
            if self.same is not None:
                self.same.again()
            length = min(chunk_size, size - start)
            found.append(self._replace(leaves=self.sliced(_some, start, length)).run(length))
        trees = [tree_flatten(f) for f in found]
        dims = result_dims(self.out_dims, found[0], trees[0][0])
        columns = zip(*(outputs for outputs, _ in trees))
        joined = [_same(list(c)) if d is None else cat(list(c), d) for c, d in zip(columns, dims)]
        return tree_unflatten(joined, trees[0][1])

    def turns(self) -> Turns:
        """How this time random numbers are drawn."""
        return self.same or (NoTurns() if self.randomness == "error" else Turns(False))

    def at_once(self, size: int) -> tuple[Any] | None:
        """Return the results of one call for all slices; None where something in it has to be done for each."""
        turns = self.turns()
        level = begin(size, next_order(), turns)
        try:
            stamp_storages(True)
            found = call_with({"kind": level}, self.inside, level, size)
        except Exception:  # OneByOne, or what the function has made of it
            if not level.refusals:
                raise
        finally:
            level.close(next_order())
            stamp_storages(any_open())
        if level.refusals:
            turns.again()
            return None
        return (found,)

    def inside(self, level: Slices, size: int) -> Any:
        entered = batching._create_batched_inputs(self.dims, self.leaves, level, self.spec)
        return batching._unwrap_batched(self.func(*entered, **self.settings), self.out_dims, level, size, self.func)

    def one_by_one(self, size: int) -> Any:
        """Return the results of a call for each slice, stacked."""
        call = self
        if not size:  # zeros in the place of a slice say what the results would be like
            call = self._replace(leaves=self.sliced(lambda x, d: zeros_like(x.sum(d, keepdim=True))))
        turns = self.turns()
        level = Loop(mode.now.kind, turns)
        results = []
        for i in range(size or 1):
            if turns.same:
                turns.again()
            results.append(call_with({"kind": level}, call.called, call.sliced(_one, i)))
        trees = [tree_flatten(r) for r in results]
        dims = result_dims(self.out_dims, results[0], trees[0][0])
        columns = [[leaves[k] for leaves, _ in trees] for k in range(len(dims))]
        stacked = [_same(c) if d is None else narrow(stack(c), 0, 0, size) for c, d in zip(columns, dims)]
        moved = [x if d in (0, None) else movedim(x, 0, d) for x, d in zip(stacked, dims)]
        return tree_unflatten(moved, trees[0][1])


class NoTurns(Turns):
    """Nobody draws."""

    def __init__(self) -> None:
        super().__init__(True)

    def begin(self, source: Any) -> None:
        raise BadValue("vmap: the function draws random numbers", why="each slice could draw its own or all the same",
                       fix="vmap(func, randomness='different')")


class Loop(Level):
    """What is on while one slice after the other is done: arrays are what they would be without it."""

    def __init__(self, outer: Level | None, turns: Turns) -> None:
        super().__init__(outer)
        self.turns = turns

    @property
    def real(self) -> Any:
        return None if self.outer is None else self.outer.real

    def adopt(self, array: Array) -> Array:
        return array if self.outer is None else self.outer.adopt(array)

    def drawing(self, source: Any, owner: Any) -> Any:
        source = source if self.outer is None else self.outer.drawing(source, owner)
        self.turns.begin(source)
        return source


def _one(x: Any, dim: int, i: int) -> Any:
    """One slice, of a tensor or of a container that is sliced as a whole."""
    return select(x, dim, i) if isinstance(x, Tensor) else x[(slice(None),) * dim + (i,)]


def _some(x: Any, dim: int, start: int, length: int) -> Any:
    if isinstance(x, Tensor):
        return narrow(x, dim, start, length)
    return x[(slice(None),) * dim + (slice(start, start + length),)]


def _same(values: list[Any]) -> Any:
    """The one result of all slices."""
    first = values[0]
    for value in values:
        if value is not first and not (equal(value, first) if isinstance(first, Tensor) else value == first):
            raise differs()
    return first
