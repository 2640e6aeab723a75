"""Every call of a public function, as it is made: what doctor, trace and profile listen to.

>>> import mutagrad as mg
>>> class Names(Watcher):
...     def before(self, call):
...         print(call.name)
>>> with Names():
...     x = mg.ones(3)
...     x[0] = 5.
...     x = x.exp() + 1
ones
Tensor.__setitem__
Tensor.exp
Tensor.add

A watcher is a mode of `__torch_function__`: while none is entered, calls cost what they cost without this module. What
a public function calls in turn is not seen, nor what computes inside this package; layers are seen as the functions
that they call. Reading a property is a call, `Tensor.grad.__get__`.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any

from ..base import modes
from ..base.modes import Block, mode, push
from ..base.provenance import Where, here
from ..torch_api import torch_function


class Call:
    """One call: of what, with what, from which line of the program; and what came of it, once it is over."""

    __slots__ = ("args", "began", "ended", "error", "kwargs", "name", "notes", "result", "thread", "where")

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name, self.args, self.kwargs, self.where = name, args, kwargs, here()
        self.thread, self.result, self.error, self.notes = threading.get_ident(), None, None, None
        self.began = self.ended = perf_counter_ns()

    name: str
    where: Where
    result: Any
    error: BaseException | None
    notes: Any  # what the watcher wants to remember from before the call to after it


class Watcher(Block):
    """Told of every call on this thread, in a block; with `threads`, also on those that begin while it lasts."""

    threads = False

    def before(self, call: Call) -> None:
        """Look at a call that is about to be made."""

    def after(self, call: Call) -> None:
        """Look at a call that was made, or has raised."""

    def changes(self) -> dict[str, Any]:
        return {"function_modes": push(self)}

    def __enter__(self) -> Any:
        torch_function.watch()
        asking, before = object(), mode.now
        known = self.__dict__.setdefault("_asking", [])
        try:
            known.append(asking)
            torch_function.ask_about_all(asking, True)
            self.enter()
            if self.threads:
                _on_threads.append(self)
                _tell_new_threads()
            return self
        except BaseException:  # an interrupt: nobody will leave what was not entered
            self._stop(asking)
            if mode.now is not before:
                self.leave()
            raise

    def __exit__(self, *error: Any) -> None:
        for asking in self.__dict__.get("_asking", [])[-1:]:
            self._stop(asking)
        self.leave()

    def _stop(self, asking: object) -> None:
        if self in _on_threads:
            _on_threads.remove(self)
            _tell_new_threads()
        torch_function.ask_about_all(asking, False)
        if asking in self.__dict__["_asking"]:
            self.__dict__["_asking"].remove(asking)

    def __torch_function__(self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        call = Call(_name(func), args, kwargs or {})
        self.before(call)
        call.began = perf_counter_ns()
        try:
            call.result = func(*args, **call.kwargs)
            return call.result
        except BaseException as error:
            call.error = error
            raise
        finally:
            call.ended = perf_counter_ns()
            self.after(call)


_on_threads: list[Watcher] = []  # those that are told of threads that begin, the outermost first


def _tell_new_threads() -> None:
    found = tuple(_on_threads)
    modes.begin_threads_with(**({"function_modes": found} if found else {}))


def _name(func: Callable[..., Any]) -> str:
    """Return the public name of a function without the package's: `Tensor.mul`, `nn.functional.linear`."""
    return torch_function.NAMES.get(func, getattr(func, "__name__", str(func)))
