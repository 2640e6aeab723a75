"""How to write a program for PyTorch: for each finding the edits of the user's lines, where they are mechanical.

    propose(findings)           # gives each finding its diff, if it has one
    rewritten(findings)         # {"train.py": the text with all of them made}

A rewrite must run in PyTorch and give the gradient that the program has on mutagrad. Where the source does not say
enough for that, there is none, and the finding has its advice only. Rewrites that get in each other's way are made one
after the other: run the program again, and ask for the rest.
"""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from ...base.provenance import is_library
from .branches import take_harmless
from .calls import call_on, drop_keyword, is_method, last_name, operand, simple, torch_name
from .carried import go_back_once
from .clones import clone, keep_operand, keep_saved, keep_written, out_of_place_layers
from .edits import Edit, Source, apply, compatible, diff, parses, read
from .findings import RAISES, WRONG, Finding
from .leaves import is_read_later, write_to_copy
from .loops import stack_parts
from .transformed import copy_argument, make_mapped
from .unique import write_last_values
from .updates import update
from .views import detach_view, take_anew, take_one_by_one


def propose(findings: Iterable[Finding], reading: Callable[[str], str | None] = read) -> None:
    """Give each finding the diff of its rewrite."""
    sources = Sources(reading)
    for finding in findings:
        path, edits = sources.fix(finding)
        source = sources.get(path)
        if edits and source is not None:
            finding.diff = diff(finding.place[0] if path == finding.where[0].co_filename else path, source.text,
                                apply(source.text, edits))


def rewritten(findings: Iterable[Finding], reading: Callable[[str], str | None] = read) -> dict[str, str]:
    """Return the new text of every file that changes, by its path: what PyTorch refuses or gets wrong is rewritten."""
    sources, chosen = Sources(reading), dict[str, list[Edit]]()
    for finding in (f for f in findings if f.torch in (RAISES, WRONG)):
        path, edits = sources.fix(finding)
        made, source = chosen.setdefault(path, []), sources.get(path)
        if source is not None and edits and compatible(edits, made) and parses(apply(source.text, [*made, *edits])):
            made += edits
    return {path: apply(source.text, edits) for path, edits in chosen.items()
            if edits and (source := sources.get(path)) is not None}


class Sources:
    """The sources of a program, each read once."""

    def __init__(self, reading: Callable[[str], str | None] = read) -> None:
        self.reading = reading
        self._known: dict[str, Source | None] = {}

    def get(self, path: str) -> Source | None:
        if path not in self._known:
            text = None if is_library(path) else self.reading(path)
            self._known[path] = Source(text) if text is not None and parses(text) else None
        return self._known[path]

    def fix(self, finding: Finding) -> tuple[str, list[Edit]]:
        """Return the file to edit and its edits; none if no rewrite is certain."""
        place, function = FIXES.get(finding.kind, ("where", _nothing))
        where: Any = finding.facts.get("made", finding.saved_where) if place == "made" else getattr(finding, place)
        source = None if where is None else self.get(where[0].co_filename)
        if source is None:
            return "", []
        edits = [edit for one in (finding, *finding.also) for edit in function(source, one)]
        edits = sorted(set(edits))
        return where[0].co_filename, edits if edits and parses(apply(source.text, edits)) else []


def _nothing(source: Source, finding: Finding) -> list[Edit]:
    return []


# ------------------------------------------------------------------------------------------------------ small rewrites

def _without_out(source: Source, finding: Finding) -> list[Edit]:
    """`torch.cos(x, out=y)` becomes `y.copy_(torch.cos(x))`, or an assignment if y was to get its shape by it."""
    call = source.node_at(finding.where)
    out = _keyword(call, "out") if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or out is None:
        return []
    end = source.end(call)
    statement = source.parents[call]
    if isinstance(out, (ast.Tuple, ast.List)):
        if not isinstance(statement, ast.Expr) or not all(simple(e) for e in out.elts):
            return []
        before, after = ", ".join(f"{source.segment(e)}[...]" for e in out.elts) + " = ", ""
    elif isinstance(statement, ast.Expr) and isinstance(out, ast.Name) and _is_made_empty(source, out):
        before, after = f"{out.id} = ", ""
    else:
        before, after = f"{source.segment(out)}.copy_(", ")"
    start = source.start(call)
    return [Edit(start, start, before), drop_keyword(source, call, "out"), *([Edit(end, end, after)] if after else [])]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _is_made_empty(source: Source, name: ast.Name) -> bool:
    """Return whether a variable is made without elements: `torch.empty(0)`, `torch.tensor([])`."""
    bindings = source.names.bindings(source.names.variable(name))
    values = [getattr(source.parents[b], "value", None) for b in bindings]
    made = [v for v in values if isinstance(v, ast.Call) and last_name(v) in ("empty", "zeros", "tensor", "Tensor")]
    return any(not v.args or ast.unparse(v.args[0]) in ("0", "[]", "(0,)") for v in made)


def _as_tensor(source: Source, finding: Finding) -> list[Edit]:
    """`x[0] = [1., 2.]` becomes `x[0] = torch.tensor([1., 2.])`; of tensors, `torch.stack([a, b])`."""
    value = operand(source, source.node_at(finding.where), "copy_", finding.slot)
    torch, holds = torch_name(source), finding.facts.get("holds")
    functions = {"numbers": "tensor", "tensors": "stack", "array": "as_tensor", "both": "stack"}
    if value is None or torch is None or holds not in functions or isinstance(source.statement(value), ast.AugAssign):
        return []
    start, end = source.start(value), source.end(value)
    bare = isinstance(value, ast.Tuple) and source.text[start] != "("
    opened, closed = ("((", "))") if bare else ("(", ")")
    if holds == "both":
        opened, closed = f"([{torch}.as_tensor(v) for v in {opened[1:]}", f"{closed[1:]}])"
    return [Edit(start, start, f"{torch}.{functions[holds]}{opened}"), Edit(end, end, closed)]


def _sum_first(source: Source, finding: Finding) -> list[Edit]:
    """`y.backward()` becomes `y.sum().backward()`."""
    call = source.node_at(finding.where)
    if not isinstance(call, ast.Call):
        return []
    root: Any = call.func.value if is_method(source, call) and isinstance(call.func, ast.Attribute) else None
    if root is None:
        names = ("tensors", "outputs")
        root = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg in names), None)
    roots = root.elts if isinstance(root, (ast.List, ast.Tuple)) else [root]
    if any(r is None or isinstance(r, ast.Starred) for r in roots):
        return []
    return [edit for r in roots for edit in call_on(source, r, "sum()")]


def _detached(source: Source, finding: Finding) -> list[Edit]:
    """`v.detach_()` becomes `v = v.detach()`; of a view without a name, `y[0].detach()`."""
    call = source.node_at(finding.where)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return []
    named = isinstance(call.func.value, (ast.Name, ast.Attribute))
    if named and not isinstance(source.parents[call], ast.Expr):
        return []
    text, start, end = source.segment(call.func.value), source.start(call), source.end(call.func)
    return [Edit(end - 1, end, ""), *([Edit(start, start, f"{text} = ")] if named else [])]


def _clone_of_function(source: Source, finding: Finding) -> list[Edit]:
    """Clone what a Function returns, if nobody reads its arguments, whose memory that is, afterwards."""
    call = source.node_at(finding.saved_where)
    if finding.where == finding.saved_where:  # a layer writes what another one's hooks have wrapped
        return out_of_place_layers(source)
    if not isinstance(call, ast.Call) or any(simple(a) and is_read_later(source, a, call) for a in call.args):
        return []
    return clone(source, call)


def _without_inference(source: Source, finding: Finding) -> list[Edit]:
    """Compute in no_grad what was computed in inference mode: such tensors can be used everywhere."""
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and last_name(n) == "inference_mode"]
    return [Edit(source.end(call.func) - len("inference_mode"), source.end(call.func), "no_grad") for call in calls
            if isinstance(call.func, ast.Attribute) and not call.args and not call.keywords]


def _update_or_copy(source: Source, finding: Finding) -> list[Edit]:
    if finding.facts.get("given"):
        return copy_argument(source, finding)
    return update(source, finding) or write_to_copy(source, finding)


# Of each kind: the place whose file is edited, and the function that says how.
FIXES: dict[str, tuple[str, Callable[[Source, Finding], list[Edit]]]] = {
    "overwritten_saved_value": ("saved_where", keep_saved),
    "data_write": ("saved_where", keep_saved),
    "numpy_write": ("saved_where", keep_saved),
    "data_assigned": ("saved_where", keep_saved),
    "fused_step": ("saved_where", keep_saved),
    "attribute_of_function": ("saved_where", keep_saved),
    "saved_and_rewritten": ("saved_where", keep_saved),
    "unmapped_write": ("saved_where", make_mapped),
    "nan_of_no_influence": ("where", take_harmless),
    "overlapping_write": ("where", keep_operand),
    "overlapping_copy": ("where", keep_operand),
    "always_raises": ("where", keep_written),
    "write_to_leaf": ("where", _update_or_copy),
    "write_to_one_of_several_views": ("made", take_one_by_one),
    "write_to_view_made_in_no_grad": ("made", detach_view),
    "write_to_view_made_by_function": ("saved_where", _clone_of_function),
    "stale_view": ("made", take_anew),
    "out_argument": ("where", _without_out),
    "assigned_list": ("where", _as_tensor),
    "duplicate_indices": ("where", write_last_values),
    "detach_of_view": ("where", _detached),
    "inference_tensor": ("where", _without_inference),
    "quadratic_loop": ("where", stack_parts),
    "backward_of_several": ("where", _sum_first),
    "backward_twice": ("saved_where", go_back_once),
}
