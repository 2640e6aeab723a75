"""Modules and parameters kept in order or by name."""
from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, SupportsIndex, TypeAlias, TypeVar

from ..base.errors import BadArgument, BadIndex, BadSetting, BadValue, NotSupported
from ..tensors.tensor import Tensor
from .module import Module
from .parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

R = TypeVar("R", bound="_Row")
S = TypeVar("S", bound="Sequential")
NamedModules: TypeAlias = "Mapping[str, Module] | ModuleDict | Iterable[tuple[str, Module]]"
NamedValues: TypeAlias = "Mapping[str, Any] | ParameterDict | Iterable[tuple[str, Any]]"


def _place(index: SupportsIndex, size: int, owner: str) -> int:
    index = int(operator.index(index))
    if not -size <= index < size:
        raise BadIndex(f"{owner}: index {index} is out of range, there are {size}")
    return int(index % size)


class _Row(Module):
    """Modules numbered from 0."""

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = OrderedDict((str(i), m) for i, m in enumerate(modules))

    def _checked(self, module: Module) -> Module:
        if module is not None and not isinstance(module, Module):
            raise BadArgument(f"{type(self).__name__}: {type(module).__name__} is not a Module")
        return module

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return list(self)[_place(index, len(self), type(self).__name__)]

    def _part(self: R, index: slice) -> R:
        return type(self)(list(self)[index])  # type: ignore[call-arg]

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[list(self._modules)[_place(index, len(self), type(self).__name__)]] = self._checked(module)

    def __delitem__(self, index: SupportsIndex | slice) -> None:
        kept = list(self)
        if not isinstance(index, slice):
            _place(index, len(self), type(self).__name__)
        del kept[index]
        self._renumber(kept)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self: R, module: Module) -> R:
        self.add_module(str(len(self)), self._checked(module))
        return self

    def extend(self: R, modules: Iterable[Module]) -> R:
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: R, index: int, module: Module) -> R:
        if not isinstance(module, Module):
            raise BadSetting(f"{type(self).__name__}.insert: {type(module).__name__} is not a Module")
        if not -len(self) <= index <= len(self):
            raise BadIndex(f"{type(self).__name__}.insert: index {index} is out of range, there are {len(self)}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: SupportsIndex | slice) -> Module:
        found: Module = self[key]
        del self[key]
        return found

    def __iadd__(self: R, modules: Iterable[Module]) -> R:
        return self.extend(modules)


class Sequential(_Row):
    """Modules called one after the other, each with the result of the one before.

    >>> import mutagrad as mg
    >>> mg.nn.Sequential(mg.nn.Flatten(), mg.nn.ReLU())
    Sequential(
      (0): Flatten(start_dim=1, end_dim=-1)
      (1): ReLU()
    )
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, self._checked(module))
        else:
            self.extend(modules)

    def _part(self: S, index: slice) -> S:
        """With the names that they have."""
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *other)

    def __mul__(self, times: int) -> Sequential:
        """The same modules several times in a row."""
        return Sequential(*list(self) * self._times(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self) * (self._times(times) - 1))

    @staticmethod
    def _times(times: int) -> int:
        if not isinstance(times, int):
            raise BadArgument(f"Sequential: cannot be multiplied by {type(times).__name__}", fix="Sequential(...) * 3")
        if times <= 0:
            raise BadValue(f"Sequential: cannot be multiplied by {times}", fix="Sequential(...) * 3")
        return times

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input


class ModuleList(_Row):
    """A list of modules that the module it belongs to knows about.

    >>> import mutagrad as mg
    >>> layers = mg.nn.ModuleList([mg.nn.Linear(2, 3), mg.nn.ReLU()])
    >>> len(layers), len(list(layers.parameters()))
    (2, 2)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, idx: SupportsIndex) -> str:
        """The name of a module, by its place: subclasses written for PyTorch ask for it."""
        return str(_place(idx, len(self), "ModuleList"))

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Runs of equal modules on one line, as PyTorch shows them."""
        groups: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if groups and groups[-1][2] == text:
                groups[-1] = groups[-1][0], i, text
            else:
                groups.append((i, i, text))
        if not groups:
            return f"{self._get_name()}()"
        lines = [f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}" for a, b, text in groups]
        return f"{self._get_name()}(\n  " + "\n  ".join(line.replace("\n", "\n  ") for line in lines) + "\n)"


class ModuleDict(Module):
    """Modules by name, which the module it belongs to knows about.

    >>> import mutagrad as mg
    >>> layers = mg.nn.ModuleDict({"first": mg.nn.Linear(2, 3), "last": mg.nn.ReLU()})
    >>> list(layers), layers["last"]
    (['first', 'last'], ReLU())
    """

    def __init__(self, modules: NamedModules | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Takes all out.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> layers.clear()
        >>> len(layers)
        0
        """
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> layers.pop("last"), len(layers)
        (Tanh(), 1)
        """
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the names, in the order in which they came.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> list(layers.keys())
        ['first', 'last']
        """
        return self._modules.keys()

    def values(self) -> ValuesView[Any]:
        """Return the modules, in the order in which they came.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> list(layers.values())
        [ReLU(), Tanh()]
        """
        return self._modules.values()

    def items(self) -> ItemsView[str, Any]:
        """Return the names with the modules, in the order in which they came.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> list(layers.items())
        [('first', ReLU()), ('last', Tanh())]
        """
        return self._modules.items()

    def update(self, modules: NamedModules) -> None:
        """Puts in modules by name, from a dict or from pairs.

        >>> import mutagrad as mg
        >>> layers = mg.nn.ModuleDict({"first": mg.nn.ReLU(), "last": mg.nn.Tanh()})
        >>> layers.update({"last": mg.nn.ELU()})
        >>> layers["last"]
        ELU(alpha=1.0)
        """
        if not isinstance(modules, (Mapping, ModuleDict, Iterable)):
            raise BadArgument(f"ModuleDict.update: expects modules by name, got {type(modules).__name__}")
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _shown(name: str, value: Any, kind: str) -> str:
    if not isinstance(value, Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    return f"({name}): Parameter containing: [{kind} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """Parameters (tensors become such) and other values, numbered from 0.

    >>> import mutagrad as mg
    >>> values = mg.nn.ParameterList([mg.ones(2), mg.zeros(3)])
    >>> [p.shape for p in values]
    [mutagrad.Size([2]), mutagrad.Size([3])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList(self[i] for i in range(*index.indices(len(self))))
        return getattr(self, str(_place(index, len(self), "ParameterList")))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, len(self), "ParameterList")), _as_parameter(value))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter, made of a tensor if need be, at the end.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterList([mg.ones(2)])
        >>> len(values.append(mg.zeros(1)))
        2
        """
        setattr(self, str(len(self)), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds parameters at the end.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterList([mg.ones(2)])
        >>> len(values.extend([mg.zeros(1), mg.zeros(2)]))
        3
        """
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise BadArgument(f"ParameterList.extend: expects several values, got {type(values).__name__}",
                              fix="append(value)")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return "\n".join("  " + _shown(str(i), v, str(getattr(v, "dtype", ""))) for i, v in enumerate(self))

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        raise NotSupported("ParameterList: cannot be called", fix="use its parameters in a module's forward")


class ParameterDict(Module):
    """Parameters (tensors become such) and other values by name.

    >>> import mutagrad as mg
    >>> values = mg.nn.ParameterDict({"a": mg.ones(2)})
    >>> values["a"].requires_grad
    True
    """

    def __init__(self, parameters: NamedValues | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: NamedValues) -> ParameterDict:
        """Both together; where both have a name, the other one's value."""
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: NamedValues) -> ParameterDict:
        made = ParameterDict(other)
        made.update(self)
        return made

    def __ior__(self, other: NamedValues) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> KeysView[str]:
        """Return the names.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> list(values.keys())
        ['a', 'b']
        """
        return self._keys.keys()

    def values(self) -> Iterator[Any]:
        """Return the parameters.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> [p.shape for p in values.values()]
        [mutagrad.Size([2]), mutagrad.Size([1])]
        """
        return (self[k] for k in self._keys)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return the names with the parameters.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> [(name, p.shape) for name, p in values.items()]
        [('a', mutagrad.Size([2])), ('b', mutagrad.Size([1]))]
        """
        return ((k, self[k]) for k in self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name, or the default.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.get("c") is None
        True
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name; if there is none, the default is put in.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.setdefault("a").shape
        mutagrad.Size([2])
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Takes a parameter out and returns it.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.pop("b").shape, len(values)
        (mutagrad.Size([1]), 1)
        """
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Takes out what came last, and returns its name and the parameter.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.popitem()[0]
        'b'
        """
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Takes all out.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.clear()
        >>> len(values)
        0
        """
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dict of the same parameters.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.copy()["a"] is values["a"]
        True
        """
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dict with one default for these names.

        >>> import mutagrad as mg
        >>> len(mg.nn.ParameterDict().fromkeys(["a", "b"], mg.ones(2)))
        2
        """
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: NamedValues) -> None:
        """Puts in parameters by name, from a dict or from pairs.

        >>> import mutagrad as mg
        >>> values = mg.nn.ParameterDict({"a": mg.ones(2), "b": mg.zeros(1)})
        >>> values.update({"b": mg.ones(3)})
        >>> values["b"].shape
        mutagrad.Size([3])
        """
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def extra_repr(self) -> str:
        return "\n".join("  " + _shown(k, v, v.type() if isinstance(v, Tensor) else "") for k, v in self.items())

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        raise NotSupported("ParameterDict: cannot be called", fix="use its parameters in a module's forward")
