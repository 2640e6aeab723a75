"""Compiling: a function, a module or a whole step as one program of XLA's; see docs/compiled.md."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any, TypeVar

from ..arrays.kinds import Refused, is_replayed
from ..base.errors import BadArgument, MissingExtra
from ..base.package_name import called
from ..base.provenance import to_user
from ..base.sockets import socket
from ..nn.module import Module

F = TypeVar("F")


class _NotCallable(BadArgument, AssertionError):
    """PyTorch asserts that it is given something to call."""


class OptimizedModule(Module):
    """A module whose forward is compiled, and with it its backward. `_orig_mod` is the module itself."""

    def __init__(self, module: Module, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self.__dict__["_compiled"] = compiled
        self._orig_mod = module

    def forward(self, *arguments: Any, **settings: Any) -> Any:
        return self._compiled(*arguments, **settings)

    @property
    def dynamo_ctx(self) -> Callable[..., Any]:
        """What runs in the forward's place. Programs ask by this name whether a module is a compiled one."""
        return self._compiled

    def explain(self) -> Any:
        """Return what was compiled."""
        return self._compiled.explain()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_orig_mod"), name)

    def train(self: Any, mode: bool = True) -> Any:
        self._orig_mod.train(mode)
        return super().train(mode)


def compile(model: Callable[..., Any] | None = None, *, fallback: bool | None = None, fullgraph: bool = False,
            dynamic: bool | None = None, backend: str | Callable[..., Any] = "inductor", mode: str | None = None,
            options: dict[str, Any] | None = None, disable: bool = False, recompile_limit: int | None = None,
            **settings: Any) -> Any:
    """Return a function that does the same as one program of XLA's, or a module whose forward and backward are such.

    It is traced when it is first called, and again when something that the program depends on has changed. What cannot
    be traced (`x.item()`, `if x > 0`) is an error at its line; with `fallback` the function then runs as it is, and
    says so once. That is the default where this package stands for PyTorch, unless `fullgraph` forbids it.
    PyTorch's other settings have no meaning here.
    """
    if model is None:
        return lambda function: compile(function, fallback=fallback, fullgraph=fullgraph, disable=disable)
    if not callable(model):
        raise _NotCallable(f"compile: expects something to call, got {type(model).__name__}",
                           fix="mutagrad.compile(function)")
    if disable:
        return model
    eager = called("").startswith("torch") and not fullgraph if fallback is None else fallback and not fullgraph
    if find_spec("jax") is None:
        if fallback is False or fullgraph:
            raise MissingExtra("compile: needs JAX, which is not installed", why="it brings the compiler",
                               fix="pip install 'mutagrad[xla]'")
        warnings.warn("compile: JAX is not installed, so that the function runs as it is; "
                      "pip install 'mutagrad[xla]' brings the compiler", stacklevel=to_user())
        # The names in its state_dict are those that they would be with JAX.
        return OptimizedModule(model, model) if isinstance(model, Module) else model
    compiled = socket("compile").Compiled(model, eager)
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled


def explain(f: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Return a function that compiles f for the arguments it is given, and tells what became of it.

    So does `explain(f, x)` at once. It is `compile(f)` called once, and then its `explain()`.
    """
    compile(f, fallback=False)  # refuses what cannot be compiled at all

    def told(*arguments: Any, **settings: Any) -> Any:
        compiled = socket("compile").Compiled(f, False)
        try:
            compiled(*arguments, **settings)
        except Refused as error:
            compiled.eager = str(error)
        return compiled.explain()

    return told(*arguments, **settings) if arguments or settings else told


def is_compiling() -> bool:
    """Whether the code that asks is being traced."""
    return is_replayed()


is_dynamo_compiling = is_exporting = is_compiling


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    return fn if fn is not None else lambda function: function


def allow_in_graph(fn: F) -> F:
    return fn


assume_constant_result = allow_in_graph


def is_compile_supported(device_type: str) -> bool:
    """Whether there is a compiler for such a device: one for all, if JAX is installed."""
    return find_spec("jax") is not None


def reset() -> None:
    """Forget all compiled programs."""
    if find_spec("jax") is not None:
        socket("compile").reset()


def cudagraph_mark_step_begin() -> None:
    return None


def list_backends(exclude_tags: Iterable[str] = ()) -> list[str]:
    return ["xla"] if find_spec("jax") is not None else []


class TransformGetItemToIndex(nullcontext[None]):
    """A block in which a compiler would look at indexing in another way."""
