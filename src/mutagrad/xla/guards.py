"""What has to be as it was when a step was traced, for its program to be right: guards, found while it is traced.

Python's part of a step runs once, while it is traced; its numbers and choices are in the program. So all that its code
may have looked at is noted (`notes.py`), and of every tensor from outside in which containers it was found. Plain
values are compared, anything else has to be the same object. If one of these has changed, the step is traced anew.
"""
from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from types import CellType, MappingProxyType
from typing import Any

from ..nn.hooks import CHANGES
from .asked import position
from .flat import OURS_TO_COMPARE, Comparison
from .items import GONE, Attribute, Item, Reading, contents, is_empty, same_value, size, told
from .notes import NOTHING, Notes, is_users, snapshot
from .unchanged import Unchanged


class Retrace(Exception):
    """A program is not right any more; says why."""


class Guards(Notes):
    """Everything that a trace depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.generation = CHANGES[0]

    def finish(self, session: Any, arguments: Iterable[Any]) -> None:
        """Note in which containers tensors from outside are, and what the step itself has changed."""
        given = {id(a) for a in arguments}
        grads = {id(session.tensors[k].grad) for k in session.grads}
        tensors = [seen.tensor for seen in session.tensors.values() if id(seen.tensor) not in given
                   and id(seen.tensor) not in grads]
        snapshots = [known for _, known in self.modules.values()]
        mine = {id(c) for c in (session.grads, tensors, self.seen, self.objects, *snapshots)}
        for container, key, tensor in holders(tensors, mine):
            self.note(Item(container, key, tensor, f"a tensor ({key!r})"))
        if "param_groups" in self.names:  # the step looks at numbers that are inputs of an optimizer's own step
            self.items = {**self.watched_settings(), **self.items}
        for optimizer in self.optimizers:
            for p, kept in optimizer.state.items():  # which the step may have made: for good
                self.note(Item(optimizer.state, p, kept, "an optimizer's state"), optimizer)
                if isinstance(kept, dict) and is_users(type(optimizer).__module__):
                    self.note(Item(kept, contents, contents(kept), "an optimizer's state, what is in it"), optimizer)
                for key, value in kept.items() if isinstance(kept, dict) else ():
                    self.note(Item(kept, key, value, f"an optimizer's {key}"), optimizer)
        self.changed += [f"{item.name}, which is advanced" if item.key is position else
                         f"{item.name}: {told(item.value)} to {told(now)}"
                         for item, now in self.different((*self.items.values(), *self.watched.values()))]
        self.changed += [f"{type(m).__name__}: {text}" for m, before in self.modules.values()
                         for text in differences(before, snapshot(m))]
        self.outside = Unchanged(session, given, grads)
        self.same = self.compared()
        self.before = NOTHING
        for each in (self.objects, self.generators, self.seen, self.tables, self.watched):
            each.clear()  # type: ignore[attr-defined]
        self.generation = CHANGES[0]

    def watched_settings(self) -> dict[tuple[int, Any], Item]:
        return {key: item for key, item in self.watched.items() if item.key is not position}

    def compared(self) -> Callable[[], bool]:
        """Return the function that compares nearly all that is guarded; `others` are asked one by one."""
        now = Comparison()
        self.others: list[Item] = []
        for item in self.items.values():
            container, key, value, _ = item
            if type(container) is CellType:
                now.attributes([container], ["cell_contents"], [value])
            elif isinstance(key, Attribute):
                now.attributes([container], [key], [value])
            elif (key is contents or key is size) and type(value) is int:
                now.equal("len", [container], [value])
            elif key is contents and isinstance(container, dict) and type(value) is tuple:
                now.equal("tuple", [container], [value])
            elif isinstance(key, Reading) or not isinstance(container, (dict, list, MappingProxyType)):
                self.others.append(item)
            elif value is GONE:
                now.lacking([container], [key])
            else:
                now.entries([container], [key], [value])
        self.outside.compare(now)
        return now.function()

    def different(self, items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
        for item in items:
            now = item.now()
            if now is not item.value and not same_value(now, item.value):
                yield item, now

    def check(self) -> str | None:
        """Return why the program is not right any more; None if it is."""
        same = self.same()
        for item, now in self.different(self.others if same else self.items.values()):
            return f"{item.name} was {told(item.value)} and is {told(now)}"
        if self.generation != CHANGES[0]:
            for module, before in self.modules.values():
                for text in differences(before, snapshot(module)):
                    return f"{type(module).__name__}: {text}"
            self.generation = CHANGES[0]
        return self.outside.check(same)


def differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in before.keys() | now.keys():
        a, b = before.get(name), now.get(name)
        if a is not b and not same_value(a, b):
            yield f"{name} was {told(a)} and is {told(b)}"


def holders(tensors: list[Any], ours: set[int]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the containers in which tensors stand, with their keys."""
    wanted = {id(t): t for t in tensors}
    for container in gc.get_referrers(*tensors) if tensors else ():
        if id(container) in ours or container is wanted or type(container) is dict and OURS_TO_COMPARE in container:
            continue
        if type(container) is list:
            for i, value in enumerate(container):
                if id(value) in wanted:
                    yield container, i, value
        elif isinstance(container, dict):
            for key, value in list(container.items()):
                if id(value) in wanted:
                    yield container, key, value
        elif type(container) is CellType and not is_empty(container):
            yield container, None, container.cell_contents
