"""What has to be as it was when a step was traced, for its program to be right: guards, found while it is traced.

Python's part of a step runs once, while it is traced; its numbers and choices are in the program. So all that its code
may have looked at is noted: of every function that ran its arguments, and the globals, closure variables and
attributes that its code names; what these lead to, through containers and attributes; of modules and optimizers their
parts; and of every tensor from outside in which containers it was found. Plain values are compared, anything else has
to be the same object. If one of these has changed, the step is traced anew.
"""
from __future__ import annotations

import functools
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from math import copysign
from operator import attrgetter, getitem, is_
from types import CellType, CodeType, FrameType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy

from ..base.provenance import OURS
from ..core.storage import TensorBase
from ..nn import module as modules
from ..nn.hooks import CHANGES
from ..nn.module import Module
from ..optim.optimizer import Optimizer
from .unchanged import Unchanged

PLAIN = (int, float, complex, bool, str, bytes, type(None))
DEEP = 8  # attributes of attributes, and items of items
# Whose code is no part of a user's program: its own numbers are its own business.
_LIBRARIES = {"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "typing_extensions", "mutagrad",
              *sys.stdlib_module_names}
GONE = object()


# Objects of this package whose state is a program's own.
_STATEFUL = ("mutagrad.torch_api.amp", "mutagrad.optim.", "mutagrad.distributions.", "mutagrad.utils.")


@functools.cache
def _is_users(module: str) -> bool:
    return module.partition(".")[0] not in _LIBRARIES and not module.startswith("namedtuple_")


class Retrace(Exception):
    """A program is not right any more; says why."""


class Item(NamedTuple):
    """A value that stands in a container: a dict, a list, a cell of a closure (no key), or an attribute by its name."""

    container: Any
    key: Any
    value: Any
    name: str

    def now(self) -> Any:
        try:
            if type(self.container) is CellType:
                return self.container.cell_contents
            if isinstance(self.key, Attribute):
                return getattr(self.container, self.key, GONE)
            return self.key(self.container) if callable(self.key) else self.container[self.key]
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            return GONE


class Attribute(str):
    """The name of an attribute that stands in no dict: of a slot."""


def contents(value: Any) -> Any:
    """Return what of a container that has no keys can be compared: its size, or its elements; of an array, a copy."""
    if isinstance(value, numpy.ndarray):
        return value.shape, value.dtype, value.tobytes()
    return tuple(map(id, value)) if isinstance(value, (deque, set, frozenset)) else len(value)


class Guards:
    """Everything that a trace depends on."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, Any], Item] = {}
        self.watched: dict[tuple[int, Any], Item] = {}  # inputs of each run, which the step itself must not change
        self.modules: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.codes: set[tuple[CodeType, int]] = set()
        self.names: set[str] = set()
        self.seen: dict[int, Any] = {}
        self.before: set[int] = set()  # all objects that there were before the step began
        self.changed: list[str] = []
        self.generation = CHANGES[0]

    # --------------------------------------------------------------------------------------------------- while tracing

    def watching(self, step: Callable[..., Any]) -> Any:
        """Call the step, and look at what its code names."""
        before, self.before = sys.getprofile(), set(map(id, gc.get_objects()))
        try:
            sys.setprofile(self.called)
            return step()
        finally:
            if before is None or callable(before):
                sys.setprofile(before)
            else:  # a profiler of the standard library's
                before.enable()

    def called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code is _CALL:
            self.see_module(frame.f_locals["self"])
        elif code.co_filename not in OURS and _is_users(frame.f_globals.get("__name__") or ""):
            given = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
            arguments = {name: frame.f_locals.get(name) for name in given}
            mark = code, id(arguments[given[0]]) if given else 0
            if mark not in self.codes:
                self.codes.add(mark)
                self.see_code(code, frame, arguments)

    def see_code(self, code: CodeType, frame: FrameType, arguments: dict[str, Any]) -> None:
        named = {c for c in code.co_consts if type(c) is str and c.isidentifier()}  # getattr(x, "name")
        if new := (set(code.co_names) | named) - self.names:
            self.names |= new
            for value in list(self.seen.values()):  # whose attributes may be asked for by these names
                self.see_attributes(value, type(value).__name__, new, 1)
        for name in code.co_names:
            if name in frame.f_globals:
                self.see(frame.f_globals, name, name, 0)
        for name in code.co_freevars:
            self.see_value(frame.f_locals.get(name), name, 1)
        for name, value in arguments.items():
            self.see_value(value, name, 1)
        for function in gc.get_referrers(code):
            if type(function) is FunctionType:
                self.see_function(function, code.co_name)

    def see_function(self, function: Any, name: str) -> None:
        for cell, variable in zip(function.__closure__ or (), function.__code__.co_freevars):
            if not _empty(cell):
                self.note(Item(cell, None, cell.cell_contents, variable))
        for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
            self.note(Item(function, Attribute(attribute), getattr(function, attribute), f"{name}.{attribute}"))
        for key in self.names & vars(function).keys():
            self.see(vars(function), key, f"{name}.{key}", 1, function)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.see_value(value, name, 2)

    def is_new(self, value: Any) -> bool:
        """Whether an object was made by the step: in the next run it is another one."""
        return gc.is_tracked(value) and id(value) not in self.before

    def note(self, item: Item, owner: Any = None) -> None:
        if not self.is_new(item.container if owner is None else owner):
            self.items.setdefault((id(item.container), item.key), item)

    def see(self, container: Any, key: Any, name: str, depth: int, owner: Any = None) -> None:
        """An entry of a container, and what it leads to. `owner` has it as the dict of its attributes."""
        value = container[key]
        self.note(Item(container, key, value, name), owner)
        if type(value) not in PLAIN:
            self.see_value(value, name, depth + 1)

    def see_value(self, value: Any, name: str, depth: int) -> None:
        if depth > DEEP or type(value) in PLAIN or isinstance(value, TensorBase) or self.is_new(value):
            return
        if type(value) is numpy.ndarray:
            self.note(Item(value, contents, contents(value), name))
        elif isinstance(value, Module):
            self.see_module(value)
        elif isinstance(value, MethodType):
            self.see_value(value.__self__, name, depth)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.see_value(part, name, depth + 1)
        elif id(value) in self.seen:
            return
        elif isinstance(value, Optimizer):
            self.seen[id(value)] = value
            self.see_optimizer(value, name)
        elif isinstance(value, FunctionType):
            if value.__code__.co_filename not in OURS:
                self.seen[id(value)] = value
        elif isinstance(value, (dict, list, tuple, deque, set, frozenset)):
            self.seen[id(value)] = value
            self.see_items(value, name, depth)
        else:
            self.seen[id(value)] = value
            self.see_attributes(value, name, self.names, depth)

    def see_items(self, value: Any, name: str, depth: int) -> None:
        if not isinstance(value, tuple):
            self.note(Item(value, contents, contents(value), f"{name}, what is in it"))
        if isinstance(value, (dict, list)):
            for key in list(value) if isinstance(value, dict) else range(len(value)):
                self.see(value, key, f"{name}[{key!r}]", depth)
        else:
            for i, one in enumerate(value):
                self.see_value(one, f"{name}[{i}]", depth + 1)

    def see_attributes(self, value: Any, name: str, names: set[str], depth: int) -> None:
        """Those attributes of an object, a class or a module that have one of these names, wherever they stand."""
        if isinstance(value, (Module, Optimizer, FunctionType, dict, list, tuple, deque, set, frozenset)):
            return
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES:
            return
        own = getattr(value, "__dict__", {})
        ours = type(value).__module__.startswith("mutagrad.")
        if ours and not type(value).__module__.startswith(_STATEFUL):
            return
        for key in (own.keys() if ours else names & own.keys()) if isinstance(own, (dict, MappingProxyType)) else ():
            if not ours or type(own[key]) in PLAIN:
                self.see(own, key, f"{name}.{key}", depth, value)
        kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
        for kind in kinds:
            if kind.__module__.partition(".")[0] in _LIBRARIES:
                continue
            for key in names & vars(kind).keys():
                found = vars(kind)[key]
                if type(found).__name__ == "member_descriptor":
                    held = getattr(value, key, GONE)
                    self.note(Item(value, Attribute(key), held, f"{name}.{key}"))
                    self.see_value(held, f"{name}.{key}", depth + 1)
                else:
                    self.note(Item(vars(kind), key, found, f"{kind.__name__}.{key}"))
                    self.see_value(found, f"{kind.__name__}.{key}", depth + 1)
            if isinstance(own, dict):  # what an instance may get over what its class has
                for key in (names & vars(kind).keys()) - own.keys():
                    if hasattr(vars(kind)[key], "__get__"):  # a method is another object each time
                        continue
                    self.note(Item(value, Attribute(key), getattr(value, key, GONE), f"{name}.{key}"))

    def see_module(self, module: Any) -> None:
        if id(module) not in self.modules:
            self.modules[id(module)] = module, snapshot(module)
            if self.is_new(module):
                del self.modules[id(module)]
                return
            for kind in type(module).__mro__:
                if "forward" in vars(kind):
                    self.note(Item(vars(kind), "forward", vars(kind)["forward"], f"{kind.__name__}.forward"))
            for table in ("_parameters", "_buffers", "_modules"):
                found = module.__dict__.get(table, {})
                self.note(Item(found, contents, len(found), f"{type(module).__name__}.{table}"), module)
                for key, value in found.items():
                    self.note(Item(found, key, value, f"{type(module).__name__}.{key}"), module)
            for key, value in list(module.__dict__.items()):
                if key not in modules._TABLES and type(value) not in PLAIN and not key.startswith("_"):
                    self.see_value(value, f"{type(module).__name__}.{key}", 2)

    def see_optimizer(self, optimizer: Any, name: str) -> None:
        own = vars(optimizer)
        self.note(Item(own, "state", own["state"], f"{name}.state"), optimizer)
        self.note(Item(own, "param_groups", own["param_groups"], f"{name}.param_groups"), optimizer)
        self.note(Item(own["param_groups"], contents, len(own["param_groups"]), f"{name}.param_groups"))
        for i, group in enumerate(own["param_groups"]):
            self.note(Item(own["param_groups"], i, group, f"{name}.param_groups[{i}]"))
            self.note(Item(group, "params", group["params"], f"{name}'s parameters"))
            self.note(Item(group["params"], contents, len(group["params"]), f"{name}'s parameters"))
            for k, p in enumerate(group["params"]):
                self.note(Item(group["params"], k, p, f"{name}'s parameters"))
            for key, value in group.items():
                if type(value) in PLAIN:
                    self.watched[id(group), key] = Item(group, key, value, f"{name}'s {key}")
        self.optimizers = [*getattr(self, "optimizers", []), optimizer]

    # ------------------------------------------------------------------------------------------------------ afterwards

    def finish(self, session: Any, arguments: Iterable[Any]) -> None:
        """Note in which containers tensors from outside are, and what the step itself has changed."""
        given = {id(a) for a in arguments}
        grads = {id(session.tensors[k].grad) for k in session.grads}
        tensors = [seen.tensor for seen in session.tensors.values() if id(seen.tensor) not in given
                   and id(seen.tensor) not in grads]
        mine = {id(c) for c in (session.grads, tensors, self.seen, *(known for _, known in self.modules.values()))}
        for container, key, tensor in holders(tensors, mine):
            self.note(Item(container, key, tensor, f"a tensor ({key!r})"))
        for optimizer in getattr(self, "optimizers", []):
            for p, kept in optimizer.state.items():  # which the step may have made: for good
                self.note(Item(optimizer.state, p, kept, "an optimizer's state"), optimizer)
                for key, value in kept.items() if isinstance(kept, dict) else ():
                    self.note(Item(kept, key, value, f"an optimizer's {key}"), optimizer)
        self.changed = [f"{item.name}: {_told(item.value)} to {_told(now)}"
                        for item, now in self.different((*self.items.values(), *self.watched.values()))]
        self.changed += [f"{type(m).__name__}: {text}" for m, before in self.modules.values()
                         for text in differences(before, snapshot(m))]
        plain = [i for i in self.items.values() if isinstance(i.container, (dict, list)) and not callable(i.key)
                 and not isinstance(i.key, Attribute)]
        self.containers, self.keys, self.values = ([i[n] for i in plain] for n in range(3))
        sized = [i for i in self.items.values() if i.key is contents and type(i.value) is int]
        self.sized, self.sizes = [i.container for i in sized], [i.value for i in sized]
        cells = [i for i in self.items.values() if type(i.container) is CellType]
        self.cells, self.inside = [i.container for i in cells], [i.value for i in cells]
        named = [i for i in self.items.values() if isinstance(i.key, Attribute)]
        self.objects, self.attributes, self.expected = ([i[n] for i in named] for n in range(3))
        fast = set(map(id, (*plain, *sized, *cells, *named)))
        self.others = [i for i in self.items.values() if id(i) not in fast]
        self.before.clear()
        self.seen.clear()
        self.generation = CHANGES[0]
        self.outside = Unchanged(session, given, grads)

    def different(self, items: Iterable[Item]) -> Iterator[tuple[Item, Any]]:
        for item in items:
            now = item.now()
            if now is not item.value and not same_value(now, item.value):
                yield item, now

    def check(self) -> str | None:
        """Return why the program is not right any more; None if it is."""
        try:
            same = (all(map(is_, map(getitem, self.containers, self.keys), self.values))
                    and self.sizes == list(map(len, self.sized))
                    and all(map(is_, map(_CONTENTS, self.cells), self.inside))
                    and all(map(is_, map(getattr, self.objects, self.attributes, repeat(GONE)), self.expected)))
        except (KeyError, IndexError, ValueError):
            same = False
        for item, now in self.different(self.others if same else self.items.values()):
            return f"{item.name} was {_told(item.value)} and is {_told(now)}"
        if self.generation != CHANGES[0]:
            for module, before in self.modules.values():
                for text in differences(before, snapshot(module)):
                    return f"{type(module).__name__}: {text}"
            self.generation = CHANGES[0]
        return self.outside.check()


def same_value(a: Any, b: Any) -> bool:
    """Whether two values that are not the same object are the same to a program."""
    if type(a) is not type(b) or not isinstance(a, (*PLAIN, tuple)):
        return False
    if isinstance(a, float) and isinstance(b, float):
        return a == b and copysign(1, a) == copysign(1, b) or a != a and b != b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(x is y or same_value(x, y) for x, y in zip(a, b))
    return bool(a == b)


_CONTENTS = attrgetter("cell_contents")
_CALL = Module.__call__.__code__
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL = [value for name, value in vars(modules).items() if name.startswith("_global_") and isinstance(value, dict)]


def snapshot(module: Any) -> dict[str, Any]:
    """Return what of a module decides what it computes."""
    own = module.__dict__
    found = {name: value for name, value in own.items() if name not in modules._TABLES}
    found |= {name: tuple(own.get(name, {}).values()) for name in _HOOKS}
    return found | {"global hooks": tuple(hook for table in _GLOBAL for hook in table.values())}


def differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    for name in before.keys() | now.keys():
        a, b = before.get(name), now.get(name)
        if a is not b and not same_value(a, b):
            yield f"{name} was {_told(a)} and is {_told(b)}"


def _told(value: Any) -> str:
    if value is GONE:
        return "gone"
    return repr(value) if type(value) in PLAIN else f"another {type(value).__name__}"


def _empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is GONE
    except ValueError:
        return True


def holders(tensors: list[Any], ours: set[int]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the containers in which tensors stand, with their keys."""
    wanted = {id(t): t for t in tensors}
    for container in gc.get_referrers(*tensors) if tensors else ():
        if id(container) in ours or container is wanted:
            continue
        if type(container) is list:
            for i, value in enumerate(container):
                if id(value) in wanted:
                    yield container, i, value
        elif isinstance(container, dict):
            for key, value in list(container.items()):
                if id(value) in wanted:
                    yield container, key, value
        elif type(container) is CellType and not _empty(container):
            yield container, None, container.cell_contents
