"""What steps have in common: one is a method of all others, `pipe.map(f).batch(3)`."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from ....base.errors import BadArgument, BadValue
from ..dataset import Dataset, IterableDataset

__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Chained:
    """Finds methods among the steps that have been registered for the kind of pipe."""

    functions: ClassVar[dict[str, Callable[..., Any]]]

    def __getattr__(self, name: str) -> Any:
        if name in type(self).functions:
            return partial(type(self).functions[name], self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable[..., Any],
                                      enable_df_api_tracing: bool = False) -> None:
        """Makes a step a method of all pipes of this kind."""
        if function_name in cls.functions:
            raise BadValue(f"Unable to add DataPipe function name {function_name} as it is already taken",
                           fix="another name")
        cls.functions[function_name] = cls_to_register

    def __repr__(self) -> str:
        return type(self).__name__


class IterDataPipe(_Chained, IterableDataset[Any]):
    """A stream of items that can be gone through again and again.

    >>> import mutagrad as mg
    >>> class Count(mg.utils.data.IterDataPipe):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Count())
    [0, 1, 2]
    """

    functions = {}


class MapDataPipe(_Chained, Dataset[Any]):
    """Items by their keys.

    >>> import mutagrad as mg
    >>> class Squares(mg.utils.data.MapDataPipe):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, i):
    ...         return i ** 2
    >>> list(mg.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4])]
    """

    functions = {}


class functional_datapipe:
    """A decorator: `@functional_datapipe("map")` makes the class the method `map` of all pipes of its kind.

    >>> import mutagrad as mg
    >>> @mg.utils.data.functional_datapipe("doubled")
    ... class Doubled(mg.utils.data.IterDataPipe):
    ...     def __init__(self, source):
    ...         self.source = source
    ...     def __iter__(self):
    ...         return (2 * x for x in self.source)
    >>> class Count(mg.utils.data.IterDataPipe):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Count().doubled())
    [0, 2, 4]
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Any) -> Any:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise BadArgument("functional_datapipe: Can only decorate IterDataPipe or MapDataPipe",
                          fix="class Mine(IterDataPipe)")
