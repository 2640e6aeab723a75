"""An optimizer's step inside a program that runs again: its numbers are Python's in each run, the formula is XLA's."""
from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, itemgetter, methodcaller
from typing import Any

from ..arrays import np
from ..arrays.kinds import Refused, is_repeated, laid_like, lasting
from ..base.errors import NotSupported
from ..base.modes import mode
from ..base.operands import Array
from ..core.factory import make
from ..core.storage import before_write
from ..core.write import end_write
from ..tensors.tensor import Tensor
from .blocks import computing_type
from .optimizer import Group, State, count_tensor
from .settings import rate_of

_array, _item = attrgetter("_array"), methodcaller("item")
_PLAIN = (int, float, bool, str, type(None))


def replayed(optimizer: Any, found: list[tuple[Group, Any]]) -> None:
    """The step of an elementwise optimizer, for these parameters and their groups."""
    if is_repeated():
        return _counted(optimizer, found)
    lasting(_make_counts, optimizer, found)
    course = Course(optimizer, found)
    hypers, which = mode.now.kind.each_run(course.numbers, course)
    lasting(_make_kept, optimizer, found)
    known: dict[Any, Any] = {}
    for (group, p), k in zip(found, which):
        dtype = computing_type(p._array.dtype)
        if (k, dtype) not in known:
            known[k, dtype] = tuple([n.astype(dtype) if isinstance(n, np.ndarray) else n for n in hypers[k]])
        _update(optimizer, known[k, dtype], p, [optimizer.state[p][name] for name in optimizer.kept(group)], dtype)


def _counted(optimizer: Any, found: list[tuple[Group, Any]]) -> None:
    """The step in a loop or branch of a program: how often it is made is known there only, so it is counted there."""
    known = [() if optimizer.counts else optimizer.advance(group, optimizer.state[p]) for group, p in found]
    if optimizer.counts not in ((), ("step",)):
        raise uncounted(optimizer)
    if any(True in key for key in known):
        raise uncounted(optimizer, why="its first step is another one", fix="make a step before")
    lasting(_make_counts, optimizer, found)
    lasting(_make_kept, optimizer, found)
    groups = {id(group): group for group, _ in found}

    def settings() -> tuple[Any, Callable[[], None]]:
        each = [(rate_of(group), repr({k: v for k, v in group.items() if k not in ("lr", "params")}))
                for group in groups.values()]
        return tuple(each), lambda: None

    rates = dict(zip(groups, mode.now.kind.each_run(settings)))
    for (group, p), key in zip(found, known):
        state, dtype = optimizer.state[p], computing_type(p._array.dtype)
        if optimizer.counts:
            key = state["step"].add_(1)._array.astype(np.float64),
        try:
            hyper = optimizer.hyper({**group, "lr": rates[id(group)][0]}, *key)
        except Refused:
            raise uncounted(optimizer) from None
        hyper = tuple([n.astype(dtype) if isinstance(n, np.ndarray) else n for n in hyper])
        _update(optimizer, hyper, p, [state[name] for name in optimizer.kept(group)], dtype)


def uncounted(optimizer: Any, why: str = "its numbers are computed by Python, which does not know how often it runs",
              fix: str = "take it out of there; SGD, Adam, AdamW, RMSprop and Adagrad can be") -> NotSupported:
    return NotSupported(f"compile: a step of {type(optimizer).__name__} in a loop or a branch", why=why, fix=fix)


def _update(optimizer: Any, hyper: tuple[Any, ...], p: Any, kept: list[Any], dtype: Any) -> None:
    def computed(array: Array) -> Array:
        parts = array.copy().reshape(-1).view(dtype) if array.dtype.kind == "c" else array
        return parts.astype(dtype, copy=False)

    tensors = [p, *kept]
    first, *rest = [computed(t._array) for t in tensors]
    g = computed(p._grad._array.astype(p._array.dtype, copy=False))
    for t, value in zip(tensors, optimizer.formula(hyper, first, g, *rest)):
        before_write(t)
        array = t._array
        array[...] = value.view(array.dtype).reshape(array.shape) if array.dtype.kind == "c" else value
    end_write(p, None)


def _make_counts(optimizer: Any, found: list[tuple[Group, Any]]) -> None:
    for group, p in found if optimizer.counts else ():
        state = optimizer.state[p]
        for name in optimizer.counts:
            if name not in state:
                state[name] = count_tensor(optimizer.first_count(group, name))


def _make_kept(optimizer: Any, found: list[tuple[Group, Any]]) -> None:
    for group, p in found:
        for name in optimizer.kept(group):
            if optimizer.state[p].get(name) is None:
                optimizer.state[p][name] = filled(p, optimizer.first_value(group, name))


def filled(p: Tensor, value: float) -> Any:
    array = p._array
    if not value:
        return make(laid_like(np.zeros(array.shape, array.dtype), array))
    value = complex(value, value) if array.dtype.kind == "c" else value  # type: ignore[assignment]
    return make(laid_like(np.full(array.shape, value, array.dtype), array))


class Course:
    """The numbers by which an optimizer steps, now and in the runs to come.

    They depend on the settings of its groups, and on what it counts for each parameter.
    """

    def __init__(self, optimizer: Any, found: list[tuple[Group, Any]]) -> None:
        self.optimizer, self.found = optimizer, found
        self.groups = {id(group): group for group, _ in found}
        self.settings = [(itemgetter("lr", *group.keys() - {"params"}), group) for group in self.groups.values()]
        self.counts: list[Any] = [optimizer.state[p][name] for _, p in found for name in optimizer.counts]

    def state(self) -> Any:
        """What the next numbers depend on."""
        return [settings(group) for settings, group in self.settings], list(map(_item, map(_array, self.counts)))

    def is_plain(self) -> bool:
        """Whether it is seen by comparing that: not with a tensor for a rate, whose value may change."""
        found = [value for settings, group in self.settings for value in settings(group)]
        return all(type(v) in _PLAIN or type(v) is tuple and all(type(part) in _PLAIN for part in v) for v in found)

    def count(self, counts: list[Any]) -> None:
        """A step was made, after which these are the counts."""
        for tensor, count in zip(self.counts, counts):
            tensor._array.fill(count)

    def numbers(self) -> tuple[Any, Callable[[], None]]:
        """The numbers of the next step, those of each parameter among them; and what counts the step."""
        (numbers, _, counts), = self.ahead(1)
        return numbers, lambda: self.count(counts)

    def ahead(self, runs: int) -> list[tuple[Any, Any, list[Any]]]:
        """For each of the next steps, if nothing but the counts changes: the numbers, the state before, the counts."""
        optimizer, found = self.optimizer, self.found
        names = optimizer.counts
        each: dict[Any, tuple[Group, State]] = {}  # those that are at the same count go on alike
        which = []
        for group, p in found:
            state = optimizer.state.get(p, {})
            at = tuple([state[name]._array.item() for name in names])
            which.append((id(group), at, () if names else optimizer.advance(group, state)))
            each.setdefault(which[-1], (group, {**state, **{n: make(state[n]._array.copy()) for n in names}}))
        before, rows = self.state() if self.is_plain() else None, []
        for _ in range(runs):
            keys = {one: optimizer.advance(group, state) for one, (group, state) in each.items()}
            after = {one: [state[name]._array.item() for name in names] for one, (_, state) in each.items()}
            counts = [count for one in which for count in after[one]]
            rows.append((self.hypers(keys, which), before, counts))
            before = None if before is None else (before[0], counts)
        return rows

    def hypers(self, keys: dict[Any, Any], which: list[Any]) -> Any:
        """The numbers of all groups and counts, and for each parameter which of them are its."""
        places: dict[Any, int] = {}
        hypers: list[Any] = []
        place_of = {}
        for one, key in keys.items():
            if (one[0], key) not in places:
                places[one[0], key] = len(hypers)
                hypers.append(self.optimizer.hyper(self.groups[one[0]], *key))
            place_of[one] = places[one[0], key]
        return tuple(hypers), tuple(map(place_of.__getitem__, which))
