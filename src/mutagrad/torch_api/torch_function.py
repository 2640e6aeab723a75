"""Functions that first ask the classes of their arguments: `__torch_function__`, modes, and mixed precision.

Nothing asks until somebody could answer: until a subclass of Tensor is defined, `mutagrad.overrides` is loaded, a
mode or `autocast` entered, or a device other than the CPU used. Then `watch` puts functions that ask in the place of
the public ones and of Tensor's methods, for good. A program without any of these pays nothing; what computes inside
this package goes on with the plain functions.
"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import update_wrapper
from types import FunctionType, ModuleType
from typing import Any

from .. import autograd
from ..autograd.function import Function
from ..base.errors import BadArgument
from ..base.layout import ANSWERING, has_own_layout
from ..base.locks import new_lock
from ..base.modes import DISPATCHING, DROP_LAST, WATCHING, call_with, mode
from ..base.sockets import socket
from ..nn import functional, init
from ..ops.nn import recurrent
from ..tensors.tensor import Tensor, disabled_torch_function, incomparable
from . import fft, import_hook as stand_in, linalg, special
from .pytorch import check_ours

Asked = Callable[..., Any]
TOP = socket("top")

# Classes of arguments that have no answer: everything else is looked at, once or, where it may hold others, each time.
PLAIN: set[type] = {Tensor, type(None), bool, int, float, complex, str, slice, type(...)}


class NoAnswer(BadArgument):
    """A call that some classes take over, and none has an answer to."""


def takes_over(kind: type) -> bool:
    """Whether a class has an answer of its own to functions that are called with it."""
    if kind in PLAIN:
        return False
    answer = getattr(kind, "__torch_function__", None)
    if answer is not None and answer is not disabled_torch_function:
        return True
    known = kind.__module__.partition(".")[0] in ("builtins", "numpy", "mutagrad")
    if known and not issubclass(kind, (list, tuple)) and not getattr(kind, "_own_layout", False):
        PLAIN.add(kind)
    return False


def foreign(values: Iterable[Any]) -> list[Any]:
    """Return one value of each class that takes over, in the order in which they are asked: subclasses first."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if isinstance(value, (list, tuple)) and kind not in PLAIN:
            inside = foreign(value)
        else:
            inside = [value] if takes_over(kind) else []
        for one in inside:
            if type(one) not in map(type, found):
                before = (i for i, other in enumerate(found) if issubclass(type(one), type(other)))
                found.insert(next(before, len(found)), one)
    return found


def answer(func: Asked, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Answer a call by the mode, or else by the first of these values that has an answer; raise if none has."""
    check_ours(func, found)
    if getattr(func, "__name__", "") == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        args = (args[0], *args[1])  # classes are told of the operands one by one, as in PyTorch
    types = tuple(getattr(type(value), "stands_for", type(value)) for value in found)
    before = mode.now
    asked: list[Any] = list(found) if before.dispatch_off == 0 else []
    if before.function_modes and before.dispatch_off < 2:
        asked.insert(0, before.function_modes[-1])
        result = call_with({"function_modes": DROP_LAST}, asked[0].__torch_function__, func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    for value in found if before.dispatch_off == 0 else ():
        result = value.__torch_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = getattr(func, "__name__", repr(func))
    raise NoAnswer(f"no implementation found for {name!r} on types that implement __torch_function__: "
                   f"{[type(a) for a in asked]}", why="all of them returned NotImplemented",
                   fix=f"handle {name} in __torch_function__, or call super().__torch_function__")


def _ask(func: Asked, raw: Asked, args: tuple[Any, ...], kwargs: dict[str, Any], looks: bool = True,
         makes: bool = True) -> Any:
    """Answer a call of `func` by a class or mode; where none is to be asked, by `raw`, cast as autocast says."""
    now = mode.now
    found = foreign((*args, *kwargs.values())) if looks and now.dispatch_off < 2 else []
    if found and now.dispatch_off == 0 or now.function_modes and now.dispatch_off < 2:
        return answer(func, found, args, kwargs)
    if ANSWERING and has_own_layout((*args, *kwargs.values())):
        return ANSWERING[0](func.__name__, raw, args, kwargs)
    if PLACING and makes:
        return PLACING[0](raw, args, kwargs, looks)
    return raw(*args, **kwargs) if now.cast is None else now.cast(raw, args, kwargs)


PLACING: list[Callable[..., Any]] = []  # how calls are made once there are tensors on devices; xla/devices.py says


def untouched(func: Asked, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    """Make a call that no class is asked about."""
    check_ours(func, ())
    return call_with({"dispatch_off": max(mode.now.dispatch_off, 1)}, func, *args, **(kwargs or {}))


# --------------------------------------------------------------------------------------------------- functions that ask

_plain = PLAIN.issuperset


def _asking(raw: Asked, name: str, shown: Asked | None = None) -> Asked:
    """The function `raw` under a public name; `shown` is what classes are told, where an operator is a method."""
    def call(*args: Any, **kwargs: Any) -> Any:
        if not DISPATCHING and _plain(map(type, args)) and (not kwargs or _plain(map(type, kwargs.values()))):
            return raw(*args, **kwargs)
        return _ask(shown or call, raw, args, kwargs)

    return _named(call, raw, name)


def _operator(raw: Asked, name: str, shown: Asked | None = None) -> Asked:
    """The same for an operator of two operands: where no class has an answer, Python asks the second operand."""
    def call(x: Any, y: Any) -> Any:
        if not DISPATCHING and type(x) in PLAIN and type(y) in PLAIN:
            return raw(x, y)
        if name == "__ne__" and incomparable(y) and not takes_over(type(y)):
            return NotImplemented  # `ne`, which would be called in its place, refuses what `!=` may be asked about
        try:
            return _ask(shown or call, raw, (x, y), {})
        except NoAnswer:
            return NotImplemented

    return _named(call, raw, name)


def _making(raw: Asked, name: str) -> Asked:
    """The same for a function that makes a tensor of data: only modes are asked."""
    def call(*args: Any, **kwargs: Any) -> Any:
        return _ask(call, raw, args, kwargs, looks=False) if DISPATCHING or ANSWERING else raw(*args, **kwargs)

    return _named(call, raw, name)


def _named(call: Asked, raw: Asked, name: str) -> Asked:
    update_wrapper(call, raw)
    call.__name__ = name
    return call


def _asking_property(known: property) -> property:
    def read(x: Any) -> Any:
        if not DISPATCHING and type(x) in PLAIN:
            return known.fget(x)  # type: ignore[misc]
        return _ask(made.__get__, known.fget, (x,), {}, makes=False)  # type: ignore[arg-type]

    def write(x: Any, value: Any) -> None:
        if not DISPATCHING and type(x) in PLAIN and type(value) in PLAIN:
            known.fset(x, value)  # type: ignore[misc]
        else:
            _ask(made.__set__, known.fset, (x, value), {}, makes=False)  # type: ignore[arg-type]

    made = property(read, write if known.fset else None, known.fdel, known.__doc__)
    return made


# ------------------------------------------------------------------------------------------------------ what is watched

_MAKERS = """
    arange as_tensor asarray bartlett_window blackman_window broadcast_shapes empty empty_permuted empty_strided eye
    frombuffer from_dlpack from_numpy full hamming_window hann_window kaiser_window linspace logspace ones rand randint
    randn randperm scalar_tensor sparse_coo_tensor tensor tril_indices triu_indices zeros fftfreq rfftfreq"""
_LEFT_ALONE = """
    __array__ __array_namespace__ __array_ufunc__ __deepcopy__ __dlpack__ __dlpack_device__ __hash__ __iter__
    __reduce_ex__ __setitem__ __setstate__ as_subclass can_cast calculate_gain is_tensor result_type"""
MAKERS, LEFT_ALONE = frozenset(_MAKERS.split()), frozenset(_LEFT_ALONE.split())
# Which method classes are told of where an operator is used, as in PyTorch.
_SHOWN = {
    "__abs__": "abs", "__add__": "add", "__ge__": "ge", "__gt__": "gt", "__iadd__": "add_",
    "__ifloordiv__": "floor_divide_", "__imod__": "remainder_", "__imul__": "mul_", "__invert__": "bitwise_not",
    "__isub__": "sub_", "__itruediv__": "div_", "__le__": "le", "__lt__": "lt", "__matmul__": "matmul",
    "__mod__": "remainder", "__mul__": "mul", "__ne__": "ne", "__neg__": "neg", "__pos__": "positive",
    "__radd__": "add", "__rand__": "bitwise_and", "__rmul__": "mul", "__ror__": "bitwise_or",
    "__rxor__": "bitwise_xor", "__sub__": "sub", "__truediv__": "div"}
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_COMPARING = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
_OPERATORS = {f"__{form}{name}__" for name in _BINARY.split() for form in ("", "r", "i")} | _COMPARING
NAMESPACES: dict[str, ModuleType] = {"": TOP, "nn.functional": functional, "nn.init": init, "linalg": linalg,
                                     "fft": fft, "special": special, "ops.recurrent": recurrent, "autograd": autograd}
NAMES: dict[Asked, str] = {}  # below the package, of every function that asks and of properties' readers and writers
_lock = new_lock()


def watch() -> None:
    """Have the public functions, and the methods of Tensor, ask from now on."""
    with _lock:
        if NAMES:
            return
        for path, module in NAMESPACES.items():
            _watch_module(path, module, _by_raw)
        _watch_tensor()
        for package in ("mutagrad.nn.", "mutagrad.distributions."):
            _watch_package(package)
        WATCHING.append(_watch_package)
        stand_in.forget_functions()


_by_raw: dict[int, Asked] = {}  # the public functions that ask, by those that they have replaced


def _watch_package(package: str) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith(package) and module not in NAMESPACES.values():
            _exchange(module, _by_raw)


_HOMES = ("mutagrad", "mutagrad.nn.init")
_ROOMS = ("mutagrad.ops.", "mutagrad.tensors.", "mutagrad.core.", "mutagrad.sparse.")


def _is_operation(value: Any) -> bool:
    home = getattr(value, "__module__", "")
    return isinstance(value, FunctionType) and (home in _HOMES or home.startswith(_ROOMS))


def _watch_module(path: str, module: ModuleType, by_raw: dict[int, Asked]) -> None:
    """A function that has several names, here or elsewhere, is one and the same under all of them, as it was before."""
    hidden = LEFT_ALONE if path else LEFT_ALONE | TOP._lazy.MODULES
    public = [name for name in dir(module) if not name.startswith("_") and name not in hidden]
    found = {name: raw for name in public if _is_operation(raw := getattr(module, name))
             and (path != "ops.recurrent" or raw.__module__ == module.__name__)}
    for name, raw in sorted(found.items(), key=lambda item: item[0] != item[1].__name__):
        if id(raw) not in by_raw:
            by_raw[id(raw)] = (_making if name in MAKERS and path != "nn.init" else _asking)(raw, name)
            NAMES[by_raw[id(raw)]] = f"{path}.{name}".lstrip(".")
        setattr(module, name, by_raw[id(raw)])


def _watch_tensor() -> None:
    """Have the methods, operators and properties of Tensor ask; one that has several names stays one under all."""
    for name in dir(Tensor):
        getattr(Tensor, name, None)  # loads the methods that are not loaded yet
    methods = {name: value for name, value in vars(Tensor).items()
               if name not in LEFT_ALONE and (not name.startswith("_") or name.startswith("__"))}
    asking: dict[str, Any] = {}
    by_raw: dict[int, Asked] = {}

    def rank(item: tuple[str, Any]) -> tuple[bool, bool]:
        """Methods before operators, and each under its own name first."""
        name, raw = item
        return name in _OPERATORS or name in _SHOWN, name != getattr(raw, "__name__", "")

    for name, raw in sorted(methods.items(), key=rank):
        if isinstance(raw, property):
            made = asking[name] = _asking_property(raw)
            NAMES[made.__get__] = f"Tensor.{name}.__get__"
            NAMES[made.__set__] = f"Tensor.{name}.__set__"
        elif name in _OPERATORS or name in _SHOWN:
            asking[name] = (_operator if name in _OPERATORS else _asking)(raw, name, asking.get(_SHOWN.get(name, "")))
            NAMES[asking[name]] = f"Tensor.{name}"
        elif isinstance(raw, FunctionType):
            if id(raw) not in by_raw:
                by_raw[id(raw)] = _asking(raw, name)
            asking[name] = by_raw[id(raw)]
            NAMES.setdefault(asking[name], f"Tensor.{name}")
    for name, value in asking.items():
        setattr(Tensor, name, value)
    NAMES[Tensor.__setitem__] = "Tensor.__setitem__"
    NAMES[_APPLYING] = "autograd.Function.apply"


def _exchange(owner: ModuleType | type, by_raw: dict[int, Asked]) -> None:
    """Have what layers and distributions have imported by name, or hold in a class, ask, too."""
    for name, value in list(vars(owner).items()):
        if isinstance(value, FunctionType) and id(value) in by_raw:
            setattr(owner, name, by_raw[id(value)])
        elif isinstance(value, type) and isinstance(owner, ModuleType) and value.__module__ == owner.__name__:
            _exchange(value, by_raw)


_SET_ITEM = Tensor.__setitem__


def subclassed(kind: type[Tensor]) -> None:
    """Notice a subclass of Tensor. Its writes `x[i] = y` ask; those of others need not: a reference count tells y."""
    watch()
    if kind.__setitem__ is Tensor.__setitem__:
        asking = _asking(_SET_ITEM, "__setitem__", _SET_ITEM)
        kind.__setitem__ = asking  # type: ignore[method-assign,assignment]


_wanting: set[object] = set()


def ask_about_all(who: object, wanted: bool) -> None:
    """Have `x[i] = y` of plain tensors and calls of Functions ask, too, for as long as somebody wants it.

    To take it back twice, or before it was asked for, does nothing: an interrupt may come at any moment.
    """
    with _lock:
        if wanted:
            _wanting.add(who)
        else:
            _wanting.discard(who)
        on = bool(_wanting)
        asking = _asking(_SET_ITEM, "__setitem__", _SET_ITEM) if on else _SET_ITEM
        Tensor.__setitem__ = asking  # type: ignore[method-assign,assignment]
        Function.apply = classmethod(_APPLYING if on else _APPLY)  # type: ignore[method-assign,assignment]


_APPLY = Function.__dict__["apply"].__func__
_APPLYING = _asking(_APPLY, "apply")


def inherited(kind: type[Tensor], func: Asked, types: Iterable[type], args: tuple[Any, ...],
              kwargs: dict[str, Any] | None) -> Any:
    """Do what `Tensor.__torch_function__` does: call the function, whose results become tensors of the subclass."""
    if not all(issubclass(kind, other) for other in types):
        return NotImplemented
    result = untouched(func, args, kwargs)
    return result if func in unchanged() else _as_subclass(result, kind)


def unchanged() -> set[Asked]:
    """Return the functions whose results are kept as they are: gradients have a class of their own."""
    return {Tensor.grad.__get__}  # type: ignore[attr-defined]


def _as_subclass(result: Any, kind: type[Tensor]) -> Any:
    if isinstance(result, Tensor):
        return result if isinstance(result, kind) else result.as_subclass(kind)
    if isinstance(result, (list, tuple)) and any(isinstance(one, (Tensor, list, tuple)) for one in result):
        return type(result)([_as_subclass(one, kind) for one in result])
    return result


def late_dispatch(raw: Asked, args: tuple[Any, ...], error: Exception) -> Any:
    """Answer by an argument whose class was not known to take over at the time of the call; else raise the error."""
    check_ours(raw, args)
    watch()
    found = foreign(args) if mode.now.dispatch_off == 0 else []
    if not found:
        raise error from None
    return answer(next((call for call in NAMES if getattr(call, "__wrapped__", None) is raw), raw), found, args, {})
