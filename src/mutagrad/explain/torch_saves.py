"""What PyTorch's autograd does with a call: which memories it keeps for backward, which results are views, what is written.

    found = saved_by("mul", (x, y), {}, needs=lambda t: t.requires_grad)
    found.saves            # {"0", "1"}: both arguments, if both require a gradient

`torch_saves.json` holds it function by function, as PyTorch 2.13 answered when it was asked (tests/oracle/saved_table.py,
`make saves`). A tensor is named by its *slot*: its position ("0"), its keyword where it has no position ("mask"), "1.2" for
the third tensor of a sequence at position 1; results are "out", or "out.0", "out.1" where there are several.

A function has its parameters, which name positions, with defaults (which conditions see where an argument is not given), and a
list of cases, of which the first whose conditions hold counts. A case holds:

- `saves`: a slot, and the slots of those arguments for whose derivative it is kept: {"0": "1"} keeps argument 0 if argument 1
  requires a gradient; "*" stands for any argument. A kept memory that is written afterwards makes PyTorch's backward raise.
- `views`: a result, and the argument whose memory it shares. "=" before it: it is that very tensor. "#" before it: it is one
  of several views that one call made, in which PyTorch refuses to write.
- `writes`: an argument that is written, and by how much that raises its version.
- `needs`: a result, and the arguments that make it require a gradient, where these are not all: "" is a result without
  a derivative.
- `raises`: backward through it always raises, because it writes what it keeps.
- `missing`: the arguments whose derivative PyTorch does not have: backward raises.
- `depends`: the words of this list in which samples disagree and no condition was found: then `saves` is the most that is
  kept, and `views` what may be shared.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("torch_saves.json")
SCALARS = (bool, int, float, str, type(None))


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
    missing: frozenset[str] = frozenset()  # arguments that require a gradient, for which PyTorch has no derivative
    depends: frozenset[str] = frozenset()  # what is not known exactly: "saves" (then it is the most that may be kept), "views", ...


# ------------------------------------------------------------------------------------------------------- slots of a call

def is_tensor(value: Any) -> bool:
    """Return whether this is a tensor, of either library."""
    return hasattr(value, "requires_grad") and hasattr(value, "ndim")


def by_slot(args: Sequence[Any], kwargs: Mapping[str, Any], parameters: str = "") -> dict[str, Any]:
    """Return the arguments by position, those given by keyword and defaults too where the parameters are known.

    >>> by_slot((1,), {"dim": 0, "other": 3}, "input other alpha=1")
    {'2': 1, '0': 1, 'dim': 0, '1': 3}
    """
    positions = {name.partition("=")[0]: str(i) for i, name in enumerate(parameters.split())}
    defaults = {str(i): json.loads(text) for i, p in enumerate(parameters.split()) for text in p.split("=")[1:]}
    return defaults | {str(i): v for i, v in enumerate(args)} | {positions.get(k, k): v for k, v in kwargs.items()}


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

KINDS = {bool: "bool", int: "number", float: "number", complex: "number", str: "str", type(None): "None"}


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
    return KINDS.get(type(value), "other")


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


def merge(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether these dimensions can be viewed as one.

    >>> merge((2, 3), (3, 1)), merge((3, 2), (1, 3))
    (True, False)
    """
    kept = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    return all(stride == after * m for (_, stride), (m, after) in zip(kept, kept[1:]))


def rows_merge(x: Any) -> bool | None:
    """Return whether all dimensions but the last can be viewed as one, as a product with a matrix wants them."""
    return merge(tuple(x.shape)[:-1], tuple(x.stride())[:-1]) if is_tensor(x) else None


def columns_merge(x: Any) -> bool | None:
    """Return the same of the transposed, for a product with a matrix on the left."""
    return rows_merge(x.mT) if is_tensor(x) and x.ndim > 1 else None


def batches_merge(x: Any, other: Any) -> bool | None:
    """Return whether the leading dimensions, broadcast with another's, can be viewed as one, as products of batches want them."""
    if not (is_tensor(x) and is_tensor(other) and x.ndim > 2):
        return None
    ours, theirs = ([1] * 9 + list(t.shape)[:-2] for t in (x, other))
    n = max(x.ndim, other.ndim) - 2
    shape = [max(a, b) for a, b in zip(ours[-n:], theirs[-n:])]
    strides = [stride if m == k else 0 for m, k, stride in zip(ours[-n:], shape, ([0] * 9 + list(x.stride())[:-2])[-n:])]
    return merge(shape, strides)


def product(x: Any, y: Any) -> str | None:
    """Return which factors of a matrix product PyTorch keeps as they are; of the others it keeps copies, laid out otherwise."""
    if not (is_tensor(x) and is_tensor(y)):
        return None
    a, b = x.ndim > 2, y.ndim > 2
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:  # a batch of one is taken for a matrix
        a, b = x.shape[0] != 1, y.shape[0] != 1
    left = not a or bool(batches_merge(x, y) if b else rows_merge(x))
    right = not b or bool(batches_merge(y, x) if a else columns_merge(y))
    return "both" if left and right else "left" if left else "right" if right else "none"


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
    "rows": rows_merge,
    "single": lambda x: x.numel() == 1 if is_tensor(x) else None,
}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "shapes": lambda x, y: is_tensor(x) and is_tensor(y) and tuple(x.shape) == tuple(y.shape),
    "product": product,
}


def feature(name: str, values: Mapping[str, Any]) -> Any:
    """Return what a condition compares: "dims 0" is the number of dimensions of argument 0, "shapes 0 1" whether two agree.

    An argument that is not given and has no default is None.
    """
    word, *slots = name.split()
    return (PAIRS if word in PAIRS else FEATURES)[word](*(values.get(slot) for slot in slots))


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


def row(name: str) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the parameters and cases of a function; None if it is not in the table."""
    found = table().get(name)
    return None if found is None else (found[0], found[1:])


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
    parameters, cases = found
    values = by_slot(args, kwargs, parameters)
    tensors = tensors_of(values)
    needing = [slot for slot, t in tensors.items() if needs(t)]
    case = next((c for c in cases if holds(c.get("if", {}), values)), None)
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
        missing=frozenset(slot for slot in needing if slot in case.get("missing", "").split()),
        depends=frozenset(case.get("depends", "").split()),
    )
