"""Optimizers that treat each element of a parameter by itself: all but a few."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from ..arrays import np
from ..arrays.compiled import loops
from ..arrays.kinds import is_plain, is_replayed
from ..autograd import no_grad
from ..base.errors import ShapeError
from ..base.operands import Array
from ..core.storage import aliased, before_write, is_foreign, memory_of
from ..core.write import check_writable, end_write
from ..tensors.tensor import Tensor
from .blocks import Job, computing_type, run, vector
from .optimizer import Group, Optimizer, State, count_tensor, evaluated
from .replayed import filled, replayed
from .settings import plain
from .sparse_gradients import refuse_sparse, sparse_among

byte_bounds = np.lib.array_utils.byte_bounds
WORTH = 1 << 12  # elements from which a compiled loop is worth its call


class Elementwise(Optimizer):
    """A subclass says what it keeps for each parameter, by which numbers a step goes, and the formula of the step.

    `step` first looks at everything, then changes the counts, then the memory of all parameters in one pass.

    `formula(hyper, parameter, gradient, *kept)` returns the new values of the parameter and of what is kept, for
    arrays of real numbers of any kind. `update(hyper, scratch, parameter, gradient, *kept)` is the same for NumPy's,
    in place and without memory of its own; a subclass that does not define it is slower.
    """

    formula: Callable[..., tuple[Array, ...]]
    update: Callable[..., None] | None = None

    def by_formula(self, hyper: tuple[Any, ...], scratch: list[Array], *arrays: Array) -> None:
        for array, value in zip((arrays[0], *arrays[2:]), self.formula(hyper, *arrays)):
            array[...] = value

    def kept(self, group: Group) -> tuple[str, ...]:
        """Return the entries of the state that are as large as the parameter."""
        raise NotImplementedError

    def first_count(self, group: Group, name: str) -> float:
        """Return what an entry of `counts` begins with."""
        return 0.0

    def first_value(self, group: Group, name: str) -> float:
        """Return what an entry of `kept` is filled with."""
        return 0.0

    def advance(self, group: Group, state: State) -> tuple[Any, ...]:
        """Changes the counts of one parameter, and says by what `hyper` goes."""
        return (stepped(state),)

    def hyper(self, group: Group, *step_key: Any) -> tuple[Any, ...]:
        """Return the numbers of this step, the same for all parameters of a group that are at the same step_key."""
        raise NotImplementedError

    def check_sparse(self, found: list[tuple[Group, Tensor]]) -> None:
        """Raise unless a step can be made by the sparse gradients of these."""
        refuse_sparse(found, type(self).__name__)

    def step_sparse(self, group: Group, p: Any, state: State) -> None:
        """Make a step by a sparse gradient."""
        raise NotImplementedError

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluated(closure)
        found = [(group, p) for group in self.param_groups for p in group["params"] if p._grad is not None]
        by_entries = sparse_among(found)
        if by_entries:
            self.check_sparse(by_entries)
            found = [one for one in found if not any(one is other for other in by_entries)]
        for group, p in found:
            kept = [self.state[p].get(name) for name in self.kept(group)] if p in self.state else ()
            _check(p, kept, type(self).__name__)
        for group, p in by_entries:
            self.step_sparse(group, p, self.state[p] if self.kept(group) or self.counts else {})
        if is_replayed():
            replayed(self, found)
            return loss
        known: dict[Any, tuple[Any, ...]] = {}
        if _apart([p for _, p in found]):
            self._update(found, known)
        else:  # one after the other, as they are listed: one that is listed twice is updated twice
            for one in found:
                self._update([one], known)
        return loss

    def _update(self, found: list[tuple[Group, Tensor]], known: dict[Any, tuple[Any, ...]]) -> None:
        back: list[tuple[Array, Array]] = []
        run([self._job(group, p, known, back) for group, p in found])
        for array, changed in back:
            array[...] = changed
        for _, p in found:
            end_write(p, None)

    def _job(self, group: Group, p: Any, known: dict[Any, tuple[Any, ...]],
             back: list[tuple[Array, Array]]) -> Job:
        kept = self.kept(group)
        state = self.state[p] if kept or self.counts else {}
        for name in self.counts:
            if name not in state:
                state[name] = count_tensor(self.first_count(group, name))
        step_key = self.advance(group, state)
        dtype = computing_type(p._array.dtype)
        key = id(group), step_key, dtype
        hyper = known.get(key)
        if hyper is None:
            exact = self.hyper(group, *step_key)
            hyper = known[key] = tuple([np.array(n, dtype) if n.__class__ is float else n for n in exact])
        vectors = [_writable(p, back), vector(_read(p._grad, p))]
        for name in kept:
            if state.get(name) is None:
                state[name] = filled(p, self.first_value(group, name))
            vectors.append(_writable(state[name], back))
        update = self.update if self.update is not None and is_plain(*vectors) else self.by_formula
        loop = loops.update(self.formula, hyper, vectors) if vectors[0].size >= WORTH and is_plain(*vectors) else None
        return Job(update, hyper, tuple(vectors), loop)


def stepped(state: State) -> float:
    """Counts one more step."""
    array = state["step"]._array
    array += 1
    return array.item()  # type: ignore[no-any-return]


def _check(p: Tensor, kept: Sequence[Tensor | None], name: str) -> None:
    shape = p._array.shape
    for other, what in ((p._grad, "its gradient"), *((k, "what the optimizer kept of it") for k in kept)):
        if other is not None and other._array.shape != shape:
            raise ShapeError(f"{name}: a parameter has shape {shape}, and {what} {other._array.shape}",
                             why="the parameter got other data after that was made",
                             fix="make the optimizer anew after changing a parameter's shape")
    check_writable(p, name)


def _apart(params: list[Any]) -> bool:
    """Whether no parameter shares memory with another one or its gradient, so that they can be updated in any order."""
    memories, others = [memory_of(p) for p in params], [memory_of(p._grad) for p in params]
    known = set(map(id, memories))
    if len(known) == len(params) and not any(map(is_foreign, (*memories, *others))) and all(
            g is m or id(g) not in known for m, g in zip(memories, others)):
        return True
    bounds = sorted((*byte_bounds(p._array), k) for k, p in enumerate(params))
    if any(start < end for (_, end, _), (start, _, _) in pairwise(bounds)):
        return False
    starts, ends = [b[0] for b in bounds], [b[1] for b in bounds]
    return not any(bounds[i][2] != k for k, p in enumerate(params) for low, high in (byte_bounds(p._grad._array),)
                   for i in range(bisect_right(ends, low), bisect_left(starts, high)))


def _read(grad: Tensor, p: Tensor) -> Array:
    """The gradient's array, row by row; a copy where the update would change it."""
    array = grad._array
    if array.dtype is not p._array.dtype and array.dtype != p._array.dtype:
        array = array.astype(p._array.dtype)
    if aliased(grad, p):
        return array.copy()
    return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)


def _writable(tensor: Tensor, back: list[tuple[Array, Array]]) -> Array:
    """A tensor's elements as a vector that may be changed: its own memory, or a copy that is to be written back."""
    before_write(tensor)
    array = tensor._array
    if array.flags.c_contiguous:
        return vector(array)
    changed = array.copy("C")
    back.append((array, changed))
    return vector(changed)


def weight_decay_of(group: Group) -> float | None:
    """Return the group's weight decay, None if there is none."""
    decay = plain(group["weight_decay"])
    return float(decay) if decay else None


def decays(group: Group, lr: float) -> tuple[float | None, float | None]:
    """Return the weight decay that is added to the gradient, and the factor by which a decoupled one scales."""
    decay = weight_decay_of(group)
    if decay is None or not group["decoupled_weight_decay"]:
        return decay, None
    return None, 1 - lr * decay
