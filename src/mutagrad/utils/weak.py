"""Dictionaries that do not keep their keys alive, and tell keys apart by identity.

That is what a tensor needs, which compares element by element.
"""
from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

__all__ = ["WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref):  # type: ignore[type-arg]
    """A weak reference that is equal to another of the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, WeakIdRef) and self() is not None and self() is other()

    def __ne__(self, other: object) -> bool:
        return not self == other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """
    >>> import mutagrad as mg
    >>> from mutagrad.utils.weak import WeakTensorKeyDictionary
    >>> x = mg.ones(2)
    >>> names = WeakTensorKeyDictionary({x: "x"})
    >>> names[x], mg.ones(2) in names
    ('x', False)
    >>> del x; len(names)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        data = self.data
        self._forget = lambda reference: data.pop(reference, None)
        self.update(dict or {})

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._forget)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of numbers and the like there are no weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        return iter([key for reference in list(self.data) if (key := reference()) is not None])

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary
