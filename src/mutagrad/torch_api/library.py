"""Operations that programs declare by name.

>>> import mutagrad as mg
>>> @mg.library.custom_op("mine::double", mutates_args=())
... def double(x: mg.Tensor) -> mg.Tensor:
...     return 2 * x
>>> double(mg.ones(2))
tensor([2., 2.])
"""
from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..autograd import Function
from ..base.errors import BadValue, NotSupported
from ..base.sockets import socket
from ..nn import functional
from ..tensors.tensor import Tensor
from . import fft, linalg, special

__all__ = ["CustomOp", "Library", "custom_op", "define", "impl", "ops", "register_autograd", "register_fake"]


class CustomOp:
    """A function with a name; its derivative is that of what it computes, unless one is registered.

    >>> import mutagrad as mg
    >>> @mg.library.custom_op("mine::thrice", mutates_args=())
    ... def thrice(x: mg.Tensor) -> mg.Tensor:
    ...     return 3 * x
    >>> type(thrice).__name__, thrice(mg.ones(2))
    ('CustomOp', tensor([3., 3.]))
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self._function = name, function
        self._differentiable: type[Function] | None = None
        self.__doc__, self.__name__ = function.__doc__, name.rpartition("::")[2]

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        if self._differentiable is None:
            return self._function(*arguments, **settings)
        given = inspect.signature(self._function).bind(*arguments, **settings)
        given.apply_defaults()
        return self._differentiable.apply(*given.arguments.values())

    def register_autograd(self, backward: Callable[..., Any], /, *,
                          setup_context: Callable[..., None] | None = None) -> None:
        """Give it a derivative: `backward(ctx, *grads)`, from what `setup_context(ctx, inputs, output)` saved.

        >>> import mutagrad as mg
        >>> @mg.library.custom_op("mine::same", mutates_args=())
        ... def same(x: mg.Tensor) -> mg.Tensor:
        ...     return x.clone()
        >>> same.register_autograd(lambda ctx, g: 10 * g)
        >>> x = mg.ones(2, requires_grad=True)
        >>> same(x).sum().backward()
        >>> x.grad
        tensor([10., 10.])
        """
        function, prepare = self._function, setup_context

        class Derived(Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                output = function(*inputs)
                if prepare is not None:
                    prepare(ctx, inputs, output)
                return output

        Derived.backward = staticmethod(backward)  # type: ignore[method-assign,assignment]
        self._differentiable = Derived

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Take what a compiler would call for shapes alone; nothing does."""
        return fn


_declared: dict[str, CustomOp] = {}
_named: set[str] = set()  # by their schemas; what computes them may follow

# PyTorch's own operations, of which there is no list here: any name may be one.
_OF_PYTORCH = {"aten", "prims", "prim", "higher_order", "quantized", "mkldnn", "c10d", "_c10d_functional", "inductor"}


def custom_op(name: str, fn: Callable[..., Any] | None = None, /, *, mutates_args: str | Iterable[str] = (),
              device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None) -> Any:
    """Declare an operation; a decorator, too.

    >>> import mutagrad as mg
    >>> @mg.library.custom_op("mine::twice", mutates_args=())
    ... def twice(x: mg.Tensor) -> mg.Tensor:
    ...     return 2 * x
    >>> twice(mg.ones(2))
    tensor([2., 2.])
    """
    if fn is None:
        return lambda function: custom_op(name, function, mutates_args=mutates_args)
    made = _declared[name] = CustomOp(name, fn)
    return made


def _find(op: CustomOp | str) -> CustomOp:
    """Return an operation, or the one that was declared under this name."""
    found = op if isinstance(op, CustomOp) else _declared.get(op)
    if found is None:
        raise BadValue(f"library: no operation {op!r} is declared",
                       fix="mutagrad.library.custom_op(name, function, mutates_args=())")
    return found


def register_autograd(op: CustomOp | str, backward: Callable[..., Any], /, *,
                      setup_context: Callable[..., None] | None = None, lib: Library | None = None) -> None:
    """Give a declared operation a derivative."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def register_fake(op: CustomOp | str, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None,
                  allow_override: bool = False) -> Any:
    """Take what a compiler would call for shapes alone; nothing does."""
    return func if func is not None else lambda function: function


impl_abstract = register_fake


class Library:
    """Operations under one name: `define` names one by its schema, `impl` says what computes it."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Note the name in front of the schema's parenthesis, and give it back."""
        name = schema.partition("(")[0]
        _named.add(f"{self.ns}::{name.partition('.')[0]}")
        return name

    def impl(self, op_name: NamedOp | str, fn: Callable[..., Any], dispatch_key: str = "", *,
             with_keyset: bool = False, allow_override: bool = False) -> None:
        """Say what computes an operation; what is for other devices or for shapes alone is left."""
        key = dispatch_key or self.dispatch_key
        if key.startswith("Autograd"):
            raise NotSupported(f"library: {op_name} for the key {key}",
                               why="nothing is dispatched by keys, and the derivative would be lost",
                               fix="mutagrad.library.register_autograd(name, backward, setup_context=...)")
        name = str(getattr(op_name, "name", op_name)).rpartition("::")[2]
        _named.add(f"{self.ns}::{name}")
        if key in ("", "CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd"):
            custom_op(f"{self.ns}::{name}", fn)

    def _destroy(self) -> None:
        for name in [name for name in (*_declared, *_named) if name.startswith(f"{self.ns}::")]:
            _declared.pop(name, None)
            _named.discard(name)


def define(qualname: str, schema: str | None = None, *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Name an operation, for `impl` to say what computes it."""
    _named.add(qualname)
    return None if schema is not None else lambda function: function


def impl(qualname: Library | str, types: Any = "", func: Callable[..., Any] | None = None, *,
         lib: Library | None = None) -> Any:
    """Say what computes an operation that is named; a decorator, too."""
    if func is None:
        return lambda function: impl(qualname, types, function, lib=lib) or function
    if isinstance(qualname, Library):
        return qualname.impl(types, func)
    space, _, name = str(qualname).partition("::")
    keys = {"cpu": "CPU", "default": ""}
    for kind in (types,) if isinstance(types, str) else types:
        Library(space, "IMPL").impl(name, func, keys.get(kind, kind))
    return None


# --------------------------------------------------------------------------------------------------- operations by name

class NamedOp:
    """`ops.aten.add`, and its overloads `ops.aten.add.Tensor`: all of them are the function of that name."""

    def __init__(self, name: str, overload: str = "") -> None:
        self._name, self._overload = name, overload
        self.__name__ = f"{name.rpartition('::')[2]}.{overload}" if overload else name.rpartition("::")[2]
        self._found: dict[str, Any] = {}

    def __getattr__(self, overload: str) -> NamedOp:
        if overload.startswith("__") or self._overload:
            raise AttributeError(overload)
        return self._found.setdefault(overload, NamedOp(self._name, overload))  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        function = _declared.get(self._name) or _of_torch(self._name)
        if function is None:
            raise NotSupported(f"ops: {self._name} is not an operation here",
                               why="operations are functions of Python; there is no C++ library behind them",
                               fix="mutagrad.library.custom_op(name, function, mutates_args=())")
        return function(*arguments, **settings)

    def __repr__(self) -> str:
        return f"<op {self._name.replace('::', '.')}{'.' if self._overload else ''}{self._overload}>"


def _of_torch(name: str) -> Any:
    """Return the function of ours that PyTorch's own operation of a name is."""
    space, _, plain = name.partition("::")
    places = {"linalg_": linalg, "fft_": fft, "special_": special}
    for start, module in places.items():
        if plain.startswith(start):
            return getattr(module, plain[len(start):], None)
    homes = (socket("top"), Tensor, functional) if space in ("aten", "prims") else ()
    return next((getattr(home, plain) for home in homes if hasattr(home, plain)), None)


class _Space:
    """The operations of one library: `ops.aten`."""

    def __init__(self, name: str) -> None:
        self._name, self._found = name, dict[str, NamedOp]()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self._name}::{name}"
        if self._name not in _OF_PYTORCH and full not in _declared and full not in _named:  # programs ask what is there
            raise AttributeError(f"'_OpNamespace' {self._name!r} object has no attribute {name!r}")
        return self._found.setdefault(name, NamedOp(full))


class NoLibrary(NotSupported, OSError):
    """A compiled library, which nothing here could call."""


class _Ops:
    """All operations by name: `ops.aten.add(x, y)`, `ops.mine.double(x)`."""

    def __getattr__(self, name: str) -> _Space:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _Space(name)
        return made

    def load_library(self, path: str | os.PathLike[str]) -> None:
        raise NoLibrary(f"ops.load_library: cannot load {path}", why="there is no C++ library behind it",
                        fix="mutagrad.library.custom_op")


ops = _Ops()
