"""Writes src/mutagrad/explain/torch_saves.json: what PyTorch keeps of every call, by asking it. `make saves` runs it.

A function's calls are sorted into cases. Where all agree, there is one; otherwise the conditions that tell them apart are
looked for among the features of torch_calls.FEATURES, the largest case first.
"""
from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mutagrad.explain import torch_calls, torch_saves
from mutagrad.explain.torch_calls import by_slot, feature, same_value

from .saved_calls import all_calls
from .saved_probe import Call, Fact, NoAnswer, facts, torch

torch.set_num_threads(1)
TOGETHER = 2  # conditions of one case
FEW = 24  # values of a feature that conditions may choose from; of more, they would name samples
PLAIN = ("kind", "value", "zero", "index", "product", "contraction", "elements")
CASES = 9  # of one function, before the last


class Asked(NamedTuple):
    """A call and what PyTorch answered."""

    call: Call
    values: dict[str, Any]
    facts: dict[Fact, Any]


def ask(calls: Iterable[Call]) -> Iterator[Asked]:
    for call in calls:
        try:
            yield Asked(call, by_slot(call.args, call.kwargs, call.parameters), facts(call))
        except (NoAnswer, NotImplementedError, RuntimeError):
            continue


# ------------------------------------------------------------------------------------------------------------------ cases

def disagreements(group: list[Asked]) -> set[str]:
    """The words of facts in which two calls contradict each other."""
    known: dict[Fact, Any] = {}
    return {fact[0] for asked in group for fact, told in asked.facts.items() if known.setdefault(fact, told) != told}


def agree(group: list[Asked]) -> bool:
    return not disagreements(group)


def feature_names(group: list[Asked]) -> list[str]:
    """Features that may tell calls apart, the plainest first."""
    slots = sorted({slot for asked in group for slot in asked.values}, key=lambda s: (not s.isdigit(), s))
    tensors = [s for s in slots if any(torch_calls.is_tensor(asked.values.get(s)) for asked in group)]
    rates = [str(i) for i, name in enumerate(group[0].call.parameters.split()) if name.startswith("dropout_p")]
    return [*(f"zero {slot}" for slot in rates), *(f"{word} {slot}" for word in ("kind", "value") for slot in slots), *(f"index {s}" for s in slots if s == "1"),
            *(f"{word} {slot}" for word in ("elements", "dims") for slot in tensors), *(f"length {s}" for s in slots), *(f"{word} {s}" for word in ("contiguous", "rows", "single") for s in tensors),
            *(f"{word} {a} {b}" for word in ("shapes", "product") for a, b in itertools.permutations(tensors, 2)), *(["contraction 0 1 2"] if "0" not in tensors else [])]


def few(name: str, group: list[Asked]) -> bool:
    return len({str(feature(name, asked.values)) for asked in group}) <= FEW


def conditions(group: list[Asked], everything: list[Asked]) -> Iterator[tuple[dict[str, Any], list[Asked]]]:
    """Conditions, alone and in pairs, with the calls that they choose."""
    told = {name: [feature(name, asked.values) for asked in group] for name in feature_names(everything) if few(name, everything)}
    alone = []
    for name, found in told.items():
        for expected in {json.dumps(f): f for f in found if isinstance(f, torch_calls.SCALARS)}.values():
            chosen = frozenset(i for i, f in enumerate(found) if same_value(f, expected))
            if len(chosen) < len(group):
                alone.append(({name: expected}, chosen))
    for some, chosen in alone:
        yield some, [group[i] for i in sorted(chosen)]
    for (some, first), (more, second) in itertools.combinations(alone, TOGETHER):
        if some.keys() != more.keys() and first & second and first & second != first and first & second != second:
            yield some | more, [group[i] for i in sorted(first & second)]


def plainness(some: dict[str, Any]) -> float:
    """How much conditions are preferred: settings before shapes, which may be so in a few samples by chance."""
    return min(1.0 if name.startswith(PLAIN) else 0.2 for name in some) / len(some)


def cases(group: list[Asked]) -> list[tuple[dict[str, Any], list[Asked]]]:
    """Conditions and the calls of each case, in the order in which they are tried; those of the last may disagree."""
    found: list[tuple[dict[str, Any], list[Asked]]] = []
    rest = group
    while not agree(rest):
        usable = [(some, chosen) for some, chosen in conditions(rest, group) if agree(chosen)]
        if not usable or len(found) == CASES:
            break
        best = max(usable, key=lambda pair: len(pair[1]) * plainness(pair[0]))
        found.append(best)
        rest = [asked for asked in rest if not any(asked is other for other in best[1])]
    return [*found, ({}, rest)]


# ------------------------------------------------------------------------------------------------------------- as text

def merged(group: list[Asked]) -> dict[Fact, Any]:
    """What all calls say together; where they contradict each other, the most that is kept."""
    known: dict[Fact, Any] = {}
    for asked in group:
        for fact, told in asked.facts.items():
            known[fact] = max(known.get(fact, told), told, key=lambda v: (v is not None, v if isinstance(v, (bool, int)) else len(v or "")))
    return known


def case(group: list[Asked], some: dict[str, Any]) -> dict[str, Any]:
    """A case as the table writes it."""
    known = merged(group)
    tensors = {fact[2] for fact in known if fact[0] == "needs"}
    outs = {fact[1] for fact in known if fact[0] == "needs"}
    row: dict[str, Any] = {"if": some}
    row["saves"] = grouped({slot: reasons(known, "saves", slot, tensors) for slot in {f[1] for f in known if f[0] == "saves"}}, "")
    row["views"] = grouped({fact[1]: told for fact, told in known.items() if fact[0] == "views"}, "")
    row["writes"] = {fact[1]: told for fact, told in sorted(known.items()) if fact[0] == "writes" and told is not None}
    row["needs"] = {out: why for out in sorted(outs) if (why := reasons(known, "needs", out, tensors)) != "*"}
    row["raises"] = known.get(("raises",), False)
    row["missing"] = " ".join(sorted(fact[1] for fact in known if fact[0] == "missing"))
    row["depends"] = " ".join(sorted({fact[1] for fact in known if fact[0] == "depends"} | disagreements(group)))
    return {word: told for word, told in row.items() if told}


def reasons(known: dict[Fact, Any], word: str, slot: str, tensors: set[str]) -> str:
    """The arguments for which something is so, as text."""
    asked = {fact[2] for fact in known if fact[:2] == (word, slot)}
    why = {argument for argument in asked if known[word, slot, argument]}
    return "*" if why == tensors and why else " ".join(sorted(why))


def grouped(told: dict[str, str], nothing: str) -> dict[str, str]:
    """Without what says nothing, and with "out.*" for all members of a sequence where these agree."""
    found: dict[str, str] = {}
    for slot in sorted(told):
        head, dot, _ = slot.rpartition(".")
        members = [other for other in told if other.rpartition(".")[0] == head and "." in other]
        if dot and len(members) > 1 and len({told[m] for m in members}) == 1:
            slot = f"{head}.*"
            told = {**told, slot: told[members[0]]}
        if told[slot] != nothing:
            found[slot] = told[slot]
    return found


def parameters(group: list[Asked]) -> str:
    """The parameters, as far as a slot or a condition may mean them."""
    highest = max((int(slot) for asked in group for slot in asked.values if slot.isdigit()), default=0)
    return " ".join(group[0].call.parameters.split()[:highest + 1])


def row(calls: list[Call]) -> list[Any] | None:
    """All that the table has of a function, its parameters and its cases; None if PyTorch answered no call."""
    group = list(ask(calls))
    if not group:
        return None
    return [parameters(group), *(case(chosen, some) for some, chosen in cases(group))]


def rows() -> dict[str, Any]:
    return {name: told for name, calls in sorted(all_calls().items()) if (told := row(calls)) is not None}


def text(functions: dict[str, Any]) -> str:
    """The file: a line for each function."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(told, separators=(',', ':'))}" for name, told in functions.items())
    return f'{{"torch": "{torch.__version__.partition("+")[0]}", "functions": {{\n{lines}\n}}}}\n'


def main() -> None:
    written = text(rows())
    torch_saves.TABLE.write_text(written, encoding="utf-8")
    print(f"{written.count(chr(10)) - 2} functions, {len(written):,} bytes, {written.count('depends')} depend: {torch_saves.TABLE}")


if __name__ == "__main__":
    main()
