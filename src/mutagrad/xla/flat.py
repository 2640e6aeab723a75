"""One function for all that is compared before a run of a program: its source is written for that program.

A guard is a look into some object, and the object that was there: `table["weight"] is not w`. In a loop each would cost
several calls; written one after the other they are a few instructions each.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from keyword import iskeyword
from typing import Any

from .items import GONE

OURS_TO_COMPARE = "__compared__"  # is in a table of objects that are held only to be compared


class Comparison:
    """What is compared, as conditions that hold where something has changed."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.values: dict[str, Any] = {OURS_TO_COMPARE: True}
        self.conditions: list[str] = []

    def name(self, value: Any) -> str:
        """What an object is called in the source: itself, if it is a constant."""
        if value is None:
            return "None"
        found = self.names.get(id(value))
        if found is None:
            found = self.names[id(value)] = f"v{len(self.values)}"
            self.values[found] = value
        return found

    # Each of these takes lists of as many objects as there are keys, names or values.
    def entries(self, containers: Iterable[Any], keys: Iterable[Any], values: Iterable[Any]) -> None:
        self.conditions += [f"{self.name(one)}[{self.name(key)}] is not {self.name(value)}"
                            for one, key, value in zip(containers, keys, values)]

    def attributes(self, objects: Iterable[Any], names: Iterable[str], values: Iterable[Any]) -> None:
        for one, name, value in zip(objects, names, values):
            plain = name.isidentifier() and not iskeyword(name)
            found = f"{self.name(one)}.{name}" if plain else f"getattr({self.name(one)}, {str(name)!r})"
            gone = f"hasattr({self.name(one)}, {str(name)!r})"
            self.conditions.append(gone if value is GONE else f"{found} is not {self.name(value)}")

    def lacking(self, containers: Iterable[Any], keys: Iterable[Any]) -> None:
        self.conditions += [f"{self.name(key)} in {self.name(one)}" for one, key in zip(containers, keys)]

    def equal(self, function: str, objects: Iterable[Any], values: Iterable[Any]) -> None:
        self.conditions += [f"{function}({self.name(one)}) != {self.name(value)}"
                            for one, value in zip(objects, values)]

    def function(self) -> Callable[[], bool]:
        """Return the function that says whether all is as it was."""
        body = "\n            or ".join(self.conditions or ["False"])
        source = ("def same():\n    try:\n"
                  f"        return not ({body})\n"
                  "    except (LookupError, AttributeError, ValueError):  # an entry, an attribute or a cell is gone\n"
                  "        return False\n")
        exec(compile(source, "<guards>", "exec"), self.values)
        return self.values.pop("same")  # type: ignore[no-any-return]
