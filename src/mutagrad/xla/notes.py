"""What of Python a step looks at, found while it is traced.

A profiler sees which functions run. Of every function of the user's its arguments are noted, and the globals, closure
variables and attributes that its code names; what these lead to, through containers and attributes; of modules and
optimizers their parts. What is looked at in other ways (getattr, os.environ, iterators) is noted where it happens.
"""
from __future__ import annotations

import builtins
import functools
import gc
import os
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from inspect import CO_GENERATOR
from itertools import compress, repeat
from operator import attrgetter, is_
from types import (
    BuiltinMethodType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any
from weakref import ref as weakref

import numpy

from ..base.provenance import OURS, Where
from ..core.storage import TensorBase
from ..nn import module as modules
from ..nn.module import Module
from ..optim import optimizer as optimizers
from ..optim.optimizer import Optimizer
from ..tensors.tensor import Tensor
from .asked import CLOCKS, DRAWS, GENERATORS, LOOKUPS, UNKNOWN, arguments_of, asked_by, inner, position
from .items import GONE, PLAIN, Attribute, Item, Reading, contents, is_empty, size

# Whose code is no part of a user's program: its own numbers are its own business.
_LIBRARIES = {"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "typing_extensions", "mutagrad",
              "_distutils_hack", "setuptools", *sys.stdlib_module_names}
_HOLDING = ("collections", "queue", "weakref")  # containers of the standard library's that are no dicts
_BUILTINS = vars(builtins).keys()
_OS = vars(os)
# Objects of this package whose state is a program's own.
_STATEFUL = ("mutagrad.torch_api.amp", "mutagrad.optim.", "mutagrad.distributions.", "mutagrad.utils.")
_EVERY_MODULES = {*vars(Module())}
NOTHING = numpy.zeros(0, numpy.uint64)


@functools.cache
def is_users(module: str) -> bool:
    finders = {(f if isinstance(f, type) else type(f)).__module__ for f in sys.meta_path}  # see what is imported
    return (module.partition(".")[0] not in _LIBRARIES and module not in finders
            and not module.startswith("namedtuple_"))


_CALL = Module.__call__.__code__


class Notes:
    """What a step looks at."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, Any], Item] = {}
        self.watched: dict[tuple[int, Any], Item] = {}  # inputs of each run, which the step itself must not change
        self.modules: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.codes: set[tuple[CodeType, int]] = set()
        self.names: set[str] = set()
        self.seen: dict[int, Any] = {}
        self.waiting: list[tuple[Any, str]] | None = None
        self.tables: dict[type, Any] = {}  # the attributes of classes, as one and the same object each
        self.objects: list[Any] = []
        self.before = NOTHING  # by identity, in order: all objects that there were before the step began
        self.generators: dict[int, FrameType] = {}  # those among them that wait to be continued
        self.optimizers: list[Any] = []
        self.changed: list[str] = []
        self.clocks: dict[str, Where] = {}  # what was asked for that is another one in each run, and where

    def watching(self, step: Callable[..., Any]) -> Any:
        """Call the step, and look at what its code names."""
        before = sys.getprofile()
        self.note_objects()
        if isinstance(step, functools.partial) and not isinstance(step.func, MethodType):
            self.see_value(step.func, "the step")
        try:
            sys.setprofile(self.called)
            return step()
        finally:
            if before is None or callable(before):
                sys.setprofile(before)
            else:  # a profiler of the standard library's
                before.enable()

    def note_objects(self) -> None:
        """Note which objects there are: hundreds of thousands, so nothing of Python's runs for each of them.

        They are held until the guards are known: else a new one could be where one of them was freed.
        """
        frozen = gc.get_freeze_count()
        if frozen:  # or they would not be told
            gc.unfreeze()
        objects = self.objects = gc.get_objects()
        if frozen:
            gc.freeze()
        self.before = numpy.fromiter(map(id, objects), numpy.uint64, len(objects))
        self.before.sort()
        waiting = compress(objects, map(is_, map(type, objects), repeat(GeneratorType)))
        self.generators = {id(frame): frame for g in waiting if (frame := g.gi_frame) is not None}

    def called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if argument in LOOKUPS:
                self.see_lookup(frame)
            elif argument in CLOCKS and (asking := asked_by(frame, is_users)) is not None:
                self.clocks.setdefault(CLOCKS[argument], (asking.f_code, asking.f_lasti))
            return
        if event != "call":
            return
        code = frame.f_code
        if code.co_flags & CO_GENERATOR and self.generators.pop(id(frame), None) is not None:
            self.changed.append(f"the generator {code.co_qualname if hasattr(code, 'co_qualname') else code.co_name}, "
                                "which was there before and is advanced")
        if code is _CALL:
            self.see_module(frame.f_locals["self"])
        elif code.co_filename in OURS:
            return
        elif is_users(frame.f_globals.get("__name__") or ""):
            given = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
            arguments = {name: frame.f_locals.get(name) for name in given}
            mark = code, id(arguments[given[0]]) if given else 0
            if mark not in self.codes:
                self.codes.add(mark)
                arguments |= {name: frame.f_locals.get(name) for name in code.co_freevars}
                self.see_code(code, frame.f_globals, arguments)
        elif frame.f_globals is _OS and type(frame.f_locals.get("self")) is type(os.environ):
            self.see_environment(frame)

    def see_code(self, code: CodeType, variables: dict[str, Any], arguments: dict[str, Any]) -> None:
        """What a function's code names; `arguments` and what is in its closure."""
        texts = {c for c in code.co_consts if type(c) is str and c.isidentifier()}
        self.add_names({*code.co_names, *texts, code.co_name})
        if not DRAWS.isdisjoint(code.co_names):
            for generator in GENERATORS:
                self.see_value(generator, "the global random generator")
        for name in code.co_names:
            if name in variables:
                self.see(variables, name, name)
            elif name in _BUILTINS or "NameError" in code.co_names:
                self.note(Item(variables, name, GONE, name))
        for name in (*code.co_names, *texts):
            if name in sys.modules and name not in variables:
                self.see_value(sys.modules[name], name)
        for name in texts if "globals" in code.co_names else ():
            if name in variables:
                self.see(variables, name, name)
            else:
                self.note(Item(variables, name, GONE, name))
        for name, value in arguments.items():
            self.see_value(value, name)
            for attribute in code.co_names if "AttributeError" in code.co_names else ():
                self.see_absent(value, attribute)
            if "__dict__" in code.co_names:
                self.see_whole(value)
        for function in gc.get_referrers(code):
            if type(function) is FunctionType:
                self.see_function(function, code.co_name)

    def add_names(self, names: set[str]) -> None:
        if new := names - self.names:
            self.names |= new
            self.see_library(Tensor, self.table(Tensor), "Tensor", new)
            for value in list(self.seen.values()):  # whose attributes may be asked for by these names
                self.see_attributes(value, _called(value), new)

    def see_function(self, function: Any, name: str) -> None:
        for cell, variable in zip(function.__closure__ or (), function.__code__.co_freevars):
            if not is_empty(cell):
                self.note(Item(cell, None, cell.cell_contents, variable))
        for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
            self.note(Item(function, Attribute(attribute), getattr(function, attribute), f"{name}.{attribute}"))
        for key in self.names & vars(function).keys():
            self.see(vars(function), key, f"{name}.{key}", function)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.see_value(value, name)

    def see_lookup(self, frame: FrameType) -> None:
        """A call of getattr, hasattr or vars, by the user or on behalf of the user."""
        if asked_by(frame, is_users) is None:
            return
        found = arguments_of(frame)
        value, name = found[0] if found else UNKNOWN, found[1] if len(found) > 1 else UNKNOWN
        if isinstance(name, str):
            self.add_names({name})
        for one in self.objects_seen() if value is UNKNOWN else [value]:
            if isinstance(name, str):
                self.see_absent(one, name)
            else:
                self.see_whole(one)

    def objects_seen(self) -> list[Any]:
        return [v for v in self.seen.values()
                if is_users((v if isinstance(v, type) else type(v)).__module__) and not isinstance(v, TensorBase)]

    def see_absent(self, value: Any, name: str) -> None:
        """An attribute that may be asked for and is not there, but could be later."""
        if self.is_new(value) or isinstance(value, Module) or type(value) in PLAIN:
            return
        self.see_value(value, _called(value))
        own = getattr(value, "__dict__", None)
        if hasattr(type(value), "__getattr__"):  # is code that is looked at itself
            if isinstance(own, dict) and name not in own:
                self.note(Item(own, name, GONE, f"{_called(value)}.{name}"), value)
        elif getattr(value, name, GONE) is GONE:
            self.note(Item(value, Attribute(name), GONE, f"{_called(value)}.{name}"))

    def see_whole(self, value: Any) -> None:
        """All attributes of an object, of which any may be asked for."""
        own = getattr(value, "__dict__", None)
        if type(own) is dict and not self.is_new(value) and not isinstance(value, (Module, ModuleType, FunctionType)):
            self.see_value(value, _called(value))
            self.note(Item(own, contents, contents(own), f"{_called(value)}'s attributes"), value)
            for key in list(own):
                self.see(own, key, f"{_called(value)}.{key}", value)

    def see_environment(self, frame: FrameType) -> None:
        """A method of os.environ that is asked for one of its entries, or for all."""
        if asked_by(frame, is_users) is None:
            return
        environ = frame.f_locals["self"]
        data = environ._data
        one = frame.f_code.co_name in ("__getitem__", "__setitem__", "__delitem__")
        if not one:
            self.note(Item(data, contents, contents(data), "os.environ"))
        for key in [environ.encodekey(frame.f_locals["key"])] if one else list(data):
            self.note(Item(data, key, data.get(key, GONE), f"os.environ[{environ.decodekey(key)!r}]"))

    def is_new(self, value: Any) -> bool:
        """Whether an object was made by the step: in the next run it is another one."""
        if not gc.is_tracked(value):
            return False
        at = self.before.searchsorted(numpy.uint64(id(value)))
        return at == len(self.before) or self.before[at] != id(value)

    def note(self, item: Item, owner: Any = None) -> None:
        if not self.is_new(item.container if owner is None else owner):
            self.items.setdefault((id(item.container), item.key), item)

    def see(self, container: Any, key: Any, name: str, owner: Any = None) -> None:
        """An entry of a container, and what it leads to. `owner` has it as the dict of its attributes."""
        value = container[key]
        self.note(Item(container, key, value, name), owner)
        self.see_value(value, name)

    def see_value(self, value: Any, name: str) -> None:
        """A value and all that it leads to, however deep: one after the other, not one inside the other."""
        if type(value) in PLAIN or self.is_new(value):
            return
        if self.waiting is not None:
            self.waiting.append((value, name))
            return
        self.waiting = [(value, name)]
        try:
            while self.waiting:
                self.see_one(*self.waiting.pop())
        finally:
            self.waiting = None

    def see_one(self, value: Any, name: str) -> None:
        if isinstance(value, Module):
            self.see_module(value)
        elif id(value) in self.seen:
            return
        elif isinstance(value, TensorBase):
            if value.__dict__:
                self.seen[id(value)] = value
                self.see_attributes(value, name, self.names)
        elif isinstance(value, FunctionType):
            if value.__code__.co_filename not in OURS:
                self.seen[id(value)] = value
            if isinstance(registry := getattr(value, "registry", None), MappingProxyType):  # of a singledispatch
                self.see_value(registry, name)
        else:
            self.seen[id(value)] = value
            if isinstance(value, (dict, list, tuple, deque, set, frozenset, MappingProxyType)):
                self.see_items(value, name)
                self.see_attributes(value, name, self.names)
            elif not self.see_special(value, name):
                self.see_attributes(value, name, self.names)

    def see_special(self, value: Any, name: str) -> bool:
        """What is no plain object: whether it was one of these, and has been seen."""
        if isinstance(value, (numpy.ndarray, bytearray, memoryview, array)):
            self.note(Item(value, contents, contents(value), name))
        elif isinstance(value, (MethodType, BuiltinMethodType)):
            self.see_value(value.__self__, name)
            self.see_value(getattr(value, "__func__", None), name)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.see_value(part, name)
        elif isinstance(value, functools._lru_cache_wrapper):  # its function does not run if it has run before
            function = value.__wrapped__
            if isinstance(function, FunctionType):
                closure = zip(function.__code__.co_freevars, function.__closure__ or ())
                self.see_code(function.__code__, function.__globals__,
                              {n: cell.cell_contents for n, cell in closure if not is_empty(cell)})
        elif isinstance(value, attrgetter):
            self.add_names({part for names in value.__reduce__()[1] for part in names.split(".")})
        elif isinstance(value, ContextVar):
            self.note(Item(value, _current, _current(value), name))
            self.see_value(_current(value), name)
        elif isinstance(value, weakref):
            self.see_value(value(), name)
        elif (now := position(value)) is not None:
            self.watched[id(value), position] = Item(value, position, now, name)
            for part in inner(now):
                self.see_value(part, name)
        elif isinstance(value, Optimizer):
            self.see_optimizer(value, name)
            return False
        else:
            return False
        return True

    def see_items(self, value: Any, name: str) -> None:
        if not isinstance(value, tuple):
            self.note(Item(value, contents, contents(value), f"{name}, what is in it"))
        if isinstance(value, (dict, list, MappingProxyType)):
            for key in range(len(value)) if isinstance(value, list) else list(value):
                self.see(value, key, f"{name}[{key!r}]")
        else:
            for i, one in enumerate(value):
                self.see_value(one, f"{name}[{i}]")

    def see_attributes(self, value: Any, name: str, names: set[str]) -> None:
        """Those attributes of an object, a class or a module that have one of these names, wherever they stand."""
        if isinstance(value, (Module, FunctionType, tuple, frozenset, MappingProxyType)):
            return
        if isinstance(value, (dict, list, deque, set)) and not is_users(type(value).__module__):
            return
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES:
            return self.see_library(value, vars(value), name, names)
        own, kind = getattr(value, "__dict__", {}), type(value)
        if isinstance(value, type):
            self.see_class(value, names)
        elif isinstance(own, dict):
            for key in self.asked_of(value, own, names):
                self.see(own, key, f"{name}.{key}", value)
        if is_users(kind.__module__):
            self.see_value(kind, kind.__name__)
            self.see_instance(value, own, name, names)

    def see_library(self, owner: Any, table: Any, name: str, names: set[str]) -> None:
        """Functions, classes and constants of a library: they may be exchanged. What they lead to is its business."""
        for key in names & table.keys():
            value = table[key]
            if not key.startswith("_") and (callable(value) or isinstance(value, (ModuleType, *PLAIN))):
                self.note(Item(table, key, value, f"{name}.{key}"), owner)
                if isinstance(value, ModuleType):
                    self.see_value(value, f"{name}.{key}")

    def asked_of(self, value: Any, own: dict[str, Any], names: set[str]) -> Iterable[str]:
        """Which of an object's own attributes matter."""
        module = type(value).__module__
        if isinstance(value, Optimizer):
            return (names & own.keys()) - {"state", "param_groups", "defaults"}
        if module.startswith("mutagrad.") and not isinstance(value, TensorBase):
            return [key for key in own if type(own[key]) in PLAIN] if module.startswith(_STATEFUL) else ()
        return list(own) if module in _HOLDING else names & own.keys()

    def see_instance(self, value: Any, own: Any, name: str, names: set[str]) -> None:
        """What of a class an object has, or may get over it."""
        if not isinstance(value, (TensorBase, ModuleType)):
            self.note(Item(value, Attribute("__class__"), type(value), f"{name}.__class__"))
        for kind in type(value).__mro__:
            for key in names & vars(kind).keys() if is_users(kind.__module__) else ():
                found = vars(kind)[key]
                if type(found) is MemberDescriptorType:
                    held = getattr(value, key, GONE)
                    self.note(Item(value, Attribute(key), held, f"{name}.{key}"))
                    self.see_value(held, f"{name}.{key}")
                elif isinstance(own, dict) and key not in own and not hasattr(type(found), "__set__"):
                    self.note(Item(own, key, GONE, f"{name}.{key}"), value)

    def see_class(self, kind: type, names: set[str]) -> None:
        """Attributes of a class, also those of classes that it inherits from and that may hide them later."""
        below: list[type] = []
        for one in kind.__mro__:
            if not is_users(one.__module__):
                continue
            for key in names & vars(one).keys():
                found = vars(one)[key]
                self.note(Item(self.table(one), key, found, f"{one.__name__}.{key}"), one)
                for lower in below:
                    if key not in vars(lower):
                        self.note(Item(self.table(lower), key, GONE, f"{lower.__name__}.{key}"), lower)
                self.see_value(found, f"{one.__name__}.{key}")
            below.append(one)

    def table(self, kind: type) -> Any:
        return self.tables.setdefault(kind, vars(kind))

    def see_module(self, module: Any) -> None:
        if id(module) not in self.modules:
            self.modules[id(module)] = module, snapshot(module)
            if self.is_new(module):
                del self.modules[id(module)]
                return
            for kind in type(module).__mro__:
                if "forward" in vars(kind):
                    forward = vars(kind)["forward"]
                    self.note(Item(self.table(kind), "forward", forward, f"{kind.__name__}.forward"), kind)
            if is_users(type(module).__module__):
                self.see_value(type(module), type(module).__name__)
            for table in modules._TABLES:
                found = module.__dict__.get(table, {})
                self.note(Item(found, size, len(found), f"{type(module).__name__}.{table}"), module)
                for key in list(found):
                    self.see(found, key, f"{type(module).__name__}.{key}", module)
            for key, value in list(module.__dict__.items()):
                if key not in _EVERY_MODULES:
                    self.see_value(value, f"{type(module).__name__}.{key}")

    def see_optimizer(self, optimizer: Any, name: str) -> None:
        own = vars(optimizer)
        self.note(Item(own, "state", own["state"], f"{name}.state"), optimizer)
        self.note(Item(own, "param_groups", own["param_groups"], f"{name}.param_groups"), optimizer)
        self.note(Item(own["param_groups"], size, len(own["param_groups"]), f"{name}.param_groups"))
        for i, group in enumerate(own["param_groups"]):
            self.note(Item(own["param_groups"], i, group, f"{name}.param_groups[{i}]"))
            self.note(Item(group, "params", group["params"], f"{name}'s parameters"))
            self.note(Item(group["params"], size, len(group["params"]), f"{name}'s parameters"))
            for k, p in enumerate(group["params"]):
                self.note(Item(group["params"], k, p, f"{name}'s parameters"))
            for key, value in group.items():
                if type(value) in PLAIN or type(value) is tuple:
                    self.watched[id(group), key] = Item(group, key, value, f"{name}'s {key}")
                if key != "params" and is_users(type(optimizer).__module__):
                    self.see_value(value, f"{name}'s {key}")
        self.optimizers.append(optimizer)
        self.modules[id(optimizer)] = optimizer, snapshot(optimizer)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_STEP_HOOKS = ("_step_pre_hooks", "_step_post_hooks")
_GLOBAL = [value for library in (modules, optimizers) for name, value in vars(library).items()
           if name.startswith("_global_") and isinstance(value, dict)]


def snapshot(module: Any) -> dict[str, Any]:
    """Return what of a module decides what it computes; of an optimizer, which hooks it has."""
    own = module.__dict__
    found: dict[str, Any]
    if isinstance(module, Optimizer):
        found = {name: tuple(own.get(name, {}).values()) for name in _STEP_HOOKS}
    else:
        found = {**own, "__class__": type(module)}
        found |= {f"the order of {table}": tuple(own.get(table, {})) for table in modules._TABLES}
        found |= {name: tuple(own.get(name, {}).values()) for name in _HOOKS}
    return found | {"global hooks": tuple(hook for table in _GLOBAL for hook in table.values())}


def _called(value: Any) -> str:
    return (value if isinstance(value, (type, FunctionType, ModuleType)) else type(value)).__name__


@Reading
def _current(variable: ContextVar[Any]) -> Any:
    return variable.get(GONE)
