"""What PyTorch's autograd does with a call: which memories it keeps for backward, what is a view, what is written.

    found = saved_by("mul", (x, y), {}, needs=lambda t: t.requires_grad)
    found.saves            # {"0", "1"}: both arguments, if both require a gradient

`torch_saves.json` holds it function by function, as PyTorch 2.13 answered when it was asked: `make saves` writes it
(tests/oracle/saved_table.py). Tensors are named by their slots (torch_calls.py).

A function has its parameters, which name positions, with defaults (conditions see these where nothing is given), and a
list of cases, of which the first whose conditions hold counts. A case holds:

- `saves`: a slot, and the arguments for whose derivative it is kept: {"0": "1"} keeps argument 0 if argument 1 requires
  a gradient; "*" stands for any argument. Where a kept memory is written afterwards, PyTorch's backward raises. What a
  call writes is kept as it is after the call, under the name of the result.
- `views`: a result, and the argument whose memory it shares. "=" before it: it is that very tensor. "#" before it: it
  is one of several views that one call made, in which PyTorch refuses to write.
- `writes`: an argument that is written, and by how much that raises its version.
- `needs`: a result, and the arguments that make it require a gradient, where these are not all: "" is a result without
  a derivative.
- `raises`: backward through it always raises, because it writes what it keeps.
- `missing`: the arguments whose derivative PyTorch does not have: backward raises.
- `depends`: those of the words above in which samples disagree and no condition was found: then `saves` is the most
  that is kept, and `views` what may be shared.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from .torch_calls import by_slot, holds, tensors_of

TABLE = Path(__file__).with_name("torch_saves.json")


@dataclass(frozen=True)
class Saved:
    """What one call keeps, by slots."""

    saves: frozenset[str]  # slots of arguments and results
    views: Mapping[str, str] = field(default_factory=dict)  # a result: the argument that it is a view of
    same: frozenset[str] = frozenset()  # results that are the argument itself, not a new view of it
    multiple: frozenset[str] = frozenset()  # results that are one of several views, in which PyTorch refuses to write
    writes: Mapping[str, int] = field(default_factory=dict)  # slot of an argument: by how much its version rises
    differentiable: Mapping[str, bool] = field(default_factory=dict)  # a result: whether it requires a gradient
    raises: bool = False  # backward always raises
    missing: frozenset[str] = frozenset()  # arguments that require a gradient, for which PyTorch has no derivative
    depends: frozenset[str] = frozenset()  # not known exactly: "saves" (these are the most that may be kept), "views"


@cache
def table() -> dict[str, Any]:
    """Return the whole table."""
    return json.loads(TABLE.read_text(encoding="utf-8"))["functions"]  # type: ignore[no-any-return]


def row(name: str) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the parameters and cases of a function; None if it is not in the table."""
    found = table().get(name)
    return None if found is None else (found[0], found[1:])


def positional(name: str, args: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments by position: operands of einsum may come as a list, and mean the same."""
    return (args[0], *args[1]) if name == "einsum" and len(args) == 2 and isinstance(args[1], (tuple, list)) else args


@cache
def takes_inplace(name: str) -> bool:
    """Return whether a function is in the table and has a flag `inplace`."""
    found = row(name)
    return found is not None and "inplace=" in found[0]


def arguments(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors of a call by the slots that `saved_by` speaks of."""
    parameters, _ = row(name) or ("", [])
    return tensors_of(by_slot(positional(name, args), kwargs, parameters))


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
    (`results_of`). A case may depend on shapes, layout and settings: ask with the arguments as they were before it.
    """
    found = row(name)
    if found is None:
        return None
    parameters, cases = found
    values = by_slot(positional(name, args), kwargs, parameters)
    tensors = tensors_of(values)
    needing = [slot for slot, t in tensors.items() if needs(t)]
    case = next(c for c in cases if holds(c.get("if", {}), values))
    return _answer(case, tensors, needing, list(results))


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
