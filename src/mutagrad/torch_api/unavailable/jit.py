"""Scripting and tracing: there is no compiler, and a function runs as Python either way, so each is itself."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

from ...base.errors import NotSupported
from ...nn.module import Module

__all__ = ["Attribute", "Final", "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate",
           "export", "fork", "freeze", "ignore", "is_scripting", "is_tracing", "isinstance", "load",
           "optimize_for_inference", "save", "script", "script_if_tracing", "script_method", "trace", "trace_module",
           "unused", "wait"]

T = TypeVar("T")
M = TypeVar("M", bound=Module)
_isinstance = isinstance
Dict, List, Tuple = dict, list, tuple  # which PyTorch's module happens to have


class BroadcastingList1:
    """For annotations: a number, or a list of so many."""

    def __class_getitem__(cls, kind: Any) -> Any:
        return Any


BroadcastingList2 = BroadcastingList3 = BroadcastingList1


class ScriptModule(Module):
    """A base class of modules whose methods were to be compiled; they run as Python."""


class RecursiveScriptModule(ScriptModule):
    """A module that was compiled; there are none."""


class ScriptFunction:
    """A function that was compiled; there are none."""


class Error(RuntimeError):
    """Told of errors in compiled programs, of which there are none."""


class TracerWarning(Warning):
    """Told of tracing, which never happens."""


def script(obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> T:
    """Return the function, module or class itself."""
    return obj


def script_method(fn: T) -> T:
    return fn


def script_if_tracing(fn: T) -> T:
    return fn


_script_if_tracing = script_if_tracing


def trace(func: Callable[..., Any] | None = None, example_inputs: Any = None, **settings: Any) -> Any:
    """Return the function itself; a decorator, too. Unlike a trace, it still branches by the values it is given."""
    return func if func is not None else lambda f: f


def _compiled_only(name: str) -> NotSupported:
    return NotSupported(f"jit.{name}: there are no compiled modules", why="a module runs as Python, line by line",
                        fix="module.eval(), and call it")


def trace_module(mod: M, inputs: dict[str, Any], **settings: Any) -> M:
    """Return the module itself: each of its methods does what its trace would do."""
    return mod


def freeze(mod: Module, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True) -> NoReturn:
    raise _compiled_only("freeze")


def optimize_for_inference(mod: Module, other_methods: Sequence[str] | None = None) -> NoReturn:
    raise _compiled_only("optimize_for_inference")


def ignore(drop: Any = False, **settings: Any) -> Any:
    """Return a decorator, with or without arguments, that changes nothing."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: T) -> T:
    return fn


def export(fn: T) -> T:
    return fn


def _overload(func: T) -> T:
    """Return the function; a mark for compilers: Python runs the last definition of a name."""
    return func


_overload_method = _copy_to_script_wrapper = _overload


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Callable[..., Any],
                     if_false: Callable[..., Any], module_name: str, func_name: str) -> Callable[..., Any]:
    """Return a function that is one of two, by an argument of theirs."""
    def chosen(*args: Any, **kwargs: Any) -> Any:
        flag = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if flag else if_false)(*args, **kwargs)

    chosen.__doc__, chosen.__module__, chosen.__name__ = if_true.__doc__ or if_false.__doc__, module_name, func_name
    return chosen


def interface(obj: T) -> T:
    """Return the class itself."""
    return obj


def is_scripting() -> bool:
    return False


def is_tracing() -> bool:
    return False


def annotate(the_type: Any, the_value: T) -> T:
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    return _isinstance(obj, target_type)


def Attribute(value: T, type: Any) -> T:
    return value


def fork(func: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Run at once: what is waited for is there already."""
    return func(*arguments, **settings)


def wait(future: T) -> T:
    return future


def save(m: Module, f: Any, _extra_files: Any = None) -> NoReturn:
    raise NotSupported("jit.save: there are no compiled modules to save", fix="mutagrad.save(module.state_dict(), f)")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> NoReturn:
    raise NotSupported("jit.load: compiled modules cannot be loaded", fix="module.load_state_dict(mutagrad.load(f))")
