"""What PyTorch's autograd does with a call: which memories it keeps for backward, which results are views, what is written.

    found = saved_by("mul", (x, y), {}, needs=lambda t: t.requires_grad)
    found.saves            # {"0", "1"}: both arguments, if both require a gradient

`torch_saves.json` holds it function by function, as PyTorch 2.13 answered when it was asked (tests/oracle/saved_table.py,
`make saves`). A tensor is named by its *slot*: its position ("0"), its keyword where it has no position ("mask"), "1.2" for
the third tensor of a sequence at position 1; results are "out", or "out.0", "out.1" where there are several.

A function has a list of cases, of which the first whose conditions hold counts. A case holds:

- `saves`: a slot, and the slots of those arguments for whose derivative it is kept: {"0": "1"} keeps argument 0 if argument 1
  requires a gradient; "*" stands for any argument. A kept memory that is written afterwards makes PyTorch's backward raise.
- `views`: a result, and the argument whose memory it shares. "=" before it: it is that very tensor. "#" before it: it is one
  of several views that one call made, in which PyTorch refuses to write.
- `writes`: an argument that is written, and by how much that raises its version.
- `needs`: a result, and the arguments that make it require a gradient, where these are not all: "" is a result without
  a derivative.
- `raises`: backward through it always raises, because it writes what it keeps.
- `depends`: the samples disagree and no condition was found: these are the most that is kept.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("torch_saves.json")
SCALARS = (bool, int, float, complex, str, type(None))
ABSENT = "absent"


@dataclass(frozen=True)
class Saved:
    """What one call keeps, by slots."""

    saves: frozenset[str]  # slots of arguments and results
    views: Mapping[str, str] = field(default_factory=dict)  # slot of a result: slot of the argument that it is a view of
    same: frozenset[str] = frozenset()  # results that are the argument itself, not a new view of it
    multiple: frozenset[str] = frozenset()  # results that are one of several views, in which PyTorch refuses to write
    writes: Mapping[str, int] = field(default_factory=dict)  # slot of an argument: by how much its version rises
    differentiable: Mapping[str, bool] = field(default_factory=dict)  # slot of a result, where not all require a gradient
    raises: bool = False  # backward always raises
    exact: bool = True  # False: `saves` is the most that may be kept


# ------------------------------------------------------------------------------------------------------- slots of a call

def is_tensor(value: Any) -> bool:
    """Return whether this is a tensor, of either library."""
    return hasattr(value, "requires_grad") and hasattr(value, "ndim")


def by_slot(args: Sequence[Any], kwargs: Mapping[str, Any], parameters: Sequence[str] = ()) -> dict[str, Any]:
    """Return the arguments by position, those given by keyword too where the parameters' names are known.

    >>> by_slot((1,), {"dim": 0, "other": 3}, ("input", "other"))
    {'0': 1, 'dim': 0, '1': 3}
    """
    named = {str(parameters.index(k)) if k in parameters else k: v for k, v in kwargs.items()}
    return {str(i): v for i, v in enumerate(args)} | named


def tensors_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors among arguments by slot, those in sequences too."""
    found = {}
    for slot, value in values.items():
        if is_tensor(value):
            found[slot] = value
        elif isinstance(value, (tuple, list)):
            found |= tensors_of({f"{slot}.{i}": v for i, v in enumerate(value)})
    return found


def results_of(result: Any) -> dict[str, Any]:
    """Return the tensors of a result by slot: "out", or "out.0" and so on."""
    return tensors_of({"out": result})


# ------------------------------------------------------------------------------------------------------------ conditions

def kind(value: Any) -> str:
    """Return the kind of an argument, as conditions name it."""
    if is_tensor(value):
        return "tensor"
    if isinstance(value, slice):
        return "slice"
    if value is Ellipsis:
        return "..."
    if isinstance(value, (tuple, list)):
        return "sequence"
    names = {bool: "bool", int: "number", float: "number", complex: "number", str: "str", type(None): "None", str(ABSENT): ABSENT}
    return names.get(type(value), type(value).__name__)


def value(argument: Any) -> Any:
    """Return a setting as conditions compare it: a number, a flag or a word, else None."""
    return argument if isinstance(argument, SCALARS) else None


def element_kind(argument: Any) -> str | None:
    """Return the kind of a tensor's elements."""
    if not is_tensor(argument):
        return None
    if argument.dtype.is_floating_point:
        return "float"
    return "complex" if argument.dtype.is_complex else "bool" if str(argument.dtype).endswith("bool") else "int"


def index_kind(argument: Any) -> str:
    """Return "basic" for an index that takes a view, "mask" if it holds booleans, otherwise "positions"."""
    parts = argument if isinstance(argument, tuple) else (argument,)
    if any(element_kind(p) == "bool" and p.ndim for p in parts):
        return "mask"
    basic = (int, slice, type(None), type(Ellipsis))
    return "basic" if all(isinstance(p, basic) or is_tensor(p) and p.ndim == 0 for p in parts) else "positions"


FEATURES: dict[str, Callable[[Any], Any]] = {
    "kind": kind,
    "value": value,
    "index": index_kind,
    "elements": element_kind,
    "dims": lambda x: x.ndim if is_tensor(x) else None,
    "length": lambda x: len(x) if isinstance(x, (tuple, list)) else None,
    "contiguous": lambda x: x.is_contiguous() if is_tensor(x) else None,
    "single": lambda x: x.numel() == 1 if is_tensor(x) else None,
}


def feature(name: str, values: Mapping[str, Any]) -> Any:
    """Return what a condition compares: "dims 0" is the number of dimensions of argument 0, "shapes 0 1" whether two agree."""
    word, *slots = name.split()
    if word == "shapes":
        first, second = (values.get(slot) for slot in slots)
        return is_tensor(first) and is_tensor(second) and tuple(first.shape) == tuple(second.shape)
    if word == "needs":
        return slots[0] in values["needs"]
    return FEATURES[word](values.get(slots[0], ABSENT))


def same_value(found: Any, expected: Any) -> bool:
    """Return whether two values of a feature are the same, as 1 and True are not."""
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def holds(conditions: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Return whether all conditions of a case hold."""
    return all(same_value(feature(name, values), expected) for name, expected in conditions.items())


# ------------------------------------------------------------------------------------------------------------- the table

@cache
def table() -> dict[str, Any]:
    """Return the whole table."""
    return json.loads(TABLE.read_text(encoding="utf-8"))["functions"]  # type: ignore[no-any-return]


def row(name: str) -> dict[str, Any] | None:
    """Return what is known of a function; None if nothing is."""
    found = table().get(name)
    return row(found) if isinstance(found, str) else found


def matches(slot: str, pattern: str) -> bool:
    """Return whether a slot is one of those that a pattern names: "0" itself, "0.*" for all in a sequence."""
    return slot == pattern or pattern.endswith(".*") and slot.startswith(pattern[:-1])


def chosen(patterns: Mapping[str, Any], slots: Iterable[str]) -> dict[str, Any]:
    """Return for each slot what the first pattern that names it says."""
    return {slot: told for slot in slots for pattern, told in patterns.items() if matches(slot, pattern)}


def any_needs(slots: str, needing: Iterable[str]) -> bool:
    """Return whether one of these arguments, as a case lists them, requires a gradient."""
    wanted = slots.split()
    return any("*" in wanted or any(matches(n, pattern) for pattern in wanted) for n in needing)


def saved_by(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], needs: Callable[[Any], bool],
             results: Iterable[str] = ("out",)) -> Saved | None:
    """Return what PyTorch does in this call; None if the function, or this way of calling it, is not in the table.

    `needs` says of a tensor whether it requires a gradient, and `results` are the slots of what the call returned
    (`results_of`). `args` and `kwargs` are the call's as they were before it: a case may depend on shapes and settings.
    """
    found = row(name)
    if found is None:
        return None
    values = by_slot(args, kwargs, found.get("parameters", "").split())
    tensors = tensors_of(values)
    needing = [slot for slot, t in tensors.items() if needs(t)]
    case = next((c for c in found["cases"] if holds(c.get("if", {}), {**values, "needs": needing})), None)
    return None if case is None else _answer(case, tensors, needing, list(results))


def _answer(case: Mapping[str, Any], tensors: Mapping[str, Any], needing: list[str], results: list[str]) -> Saved:
    kept = chosen(case.get("saves", {}), [*tensors, *results])
    views = chosen(case.get("views", {}), results)
    return Saved(
        saves=frozenset(slot for slot, why in kept.items() if any_needs(why, needing)),
        views={out: of.lstrip("=#") for out, of in views.items()},
        same=frozenset(out for out, of in views.items() if of.startswith("=")),
        multiple=frozenset(out for out, of in views.items() if of.startswith("#")),
        writes=chosen(case.get("writes", {}), tensors),
        differentiable={out: any_needs(case.get("needs", {}).get(out, "*"), needing) for out in results},
        raises=case.get("raises", False),
        exact=not case.get("depends", False),
    )
