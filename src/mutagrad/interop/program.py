"""A function of the user's as one of tensors alone, and its derivatives as such functions, too.

What another library's machinery calls again and again, with other tensors: for a derivative of a derivative, for all
slices at once. What is given and what comes back besides tensors is kept aside.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import func
from ..base.errors import BadData, WriteError
from ..core.storage import memory_of
from ..ops.create.create import zeros_like
from ..tensors.tensor import Tensor

Tensors = tuple[Tensor, ...]
Program = Callable[..., Tensors]


class Trees(NamedTuple):
    """How a library takes nested containers apart into leaves and the rest, and puts them together."""

    flatten: Callable[[Any], tuple[list[Any], Any]]
    unflatten: Callable[[list[Any], Any], Any]


class Call:
    """One call of a function: a program of the tensors among its arguments. `places` says which leaves those are."""

    def __init__(self, function: Callable[..., Any], leaves: list[Any], spec: Any, places: Sequence[int],
                 trees: Trees) -> None:
        self.function, self.spec, self.places, self.trees = function, spec, places, trees
        self.leaves = list(leaves)
        for place in places:
            self.leaves[place] = None
        self.others: list[Any] = []  # of the result: what is no tensor
        self.result_spec: Any = None
        self.result_places: list[int] = []

    def __call__(self, *tensors: Tensor) -> Tensors:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        arguments, settings = self.trees.unflatten(leaves, self.spec)
        found, self.result_spec = self.trees.flatten(self.function(*arguments, **settings))
        self.result_places = [i for i, x in enumerate(found) if isinstance(x, Tensor)]
        self.others = [None if isinstance(x, Tensor) else x for x in found]
        return tuple(found[i] for i in self.result_places)

    def result(self, given: Sequence[Any]) -> Any:
        """Return the tree of the last result, with these in the place of its tensors."""
        leaves = list(self.others)
        for place, value in zip(self.result_places, given):
            leaves[place] = value
        return self.trees.unflatten(leaves, self.result_spec)


@dataclass(frozen=True)
class Reversed:
    """Gradients by the inputs numbered `wanted`, of what a program gives: its inputs come first, then the gradients of
    the outputs numbered `seeded`."""

    program: Program
    inputs: int  # how many the program has
    wanted: tuple[int, ...]
    seeded: tuple[int, ...]

    def __call__(self, *tensors: Tensor) -> Tensors:
        inputs, seeds = tensors[:self.inputs], dict(zip(self.seeded, tensors[self.inputs:]))
        outputs, product = func.vjp(_of(self.program, inputs, self.wanted), *(inputs[i] for i in self.wanted))
        return tuple(product(tuple(seeds[i] if i in seeds else zeros_like(y) for i, y in enumerate(outputs))))


@dataclass(frozen=True)
class Pushed:
    """Tangents of all outputs: a program's inputs come first, then tangents of those numbered `moved`."""

    program: Program
    inputs: int
    moved: tuple[int, ...]

    def __call__(self, *tensors: Tensor) -> Tensors:
        inputs, tangents = tensors[:self.inputs], tensors[self.inputs:]
        chosen = tuple(inputs[i] for i in self.moved)
        return tuple(func.jvp(_of(self.program, inputs, self.moved), chosen, tuple(tangents))[1])


@dataclass(frozen=True)
class Mapped:
    """A program for every slice along these dimensions of its inputs (None: the same for all); results along 0."""

    program: Program
    dims: tuple[int | None, ...]
    randomness: str = "error"

    def __call__(self, *tensors: Tensor) -> Tensors:
        return tuple(func.vmap(self.program, self.dims, randomness=self.randomness)(*tensors))


def _of(program: Program, inputs: Sequence[Tensor], chosen: Sequence[int]) -> Program:
    """A program as one of only some of its inputs."""
    def partly(*tensors: Tensor) -> Tensors:
        given = list(inputs)
        for i, tensor in zip(chosen, tensors):
            given[i] = tensor
        return program(*given)

    return partly


def unwritten(program: Program, inputs: Sequence[Tensor], why: str) -> Tensors:
    """Run a program that must not write to its inputs."""
    for tensor in inputs:
        freeze(tensor)
    versions = [memory_of(tensor).version for tensor in inputs]
    try:
        found = program(*inputs)
    except ValueError as error:
        raise refused(error, why) from None
    if any(memory_of(tensor).version != before for tensor, before in zip(inputs, versions)):
        raise written(why)
    return found


def freeze(tensor: Tensor) -> None:
    """Have NumPy refuse writes to the memory of a tensor, before they change anything."""
    for array in (tensor._storage.buffer, tensor._array):
        array.flags.writeable = False


def refused(error: ValueError, why: str) -> Exception:
    """Return NumPy's error of a write to a frozen tensor as ours, and any other as it is."""
    return written(why) if "read-only" in str(error) else error


def written(why: str) -> WriteError:
    return WriteError("interop: the function writes to an argument that must stay as it is", why=why,
                      fix="x = x.clone() at the beginning of the function")


def check_tensors(results: Sequence[Any], asked: str) -> None:
    """Refuse results that were computed elsewhere than in the CPU's memory."""
    for result in results:
        if not result.is_cpu:
            raise BadData(f"{asked}: a result is on {result.device}", why="memory is shared on the CPU only",
                          fix="return y.cpu()")
