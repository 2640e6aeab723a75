"""Rewrites of views that PyTorch does not let be written: of several at once, and those that were made in no_grad."""
from __future__ import annotations

import ast
from typing import Any

from .calls import ATOMS, call_on, is_fresh, is_imported, last_name, operand, simple
from .edits import Edit, Source
from .findings import Finding

SEVERAL = ("unbind", "split", "chunk")
BUILT = {"list", "tuple", "enumerate", "zip", "iter", "reversed", "map", "sorted", "dict", "deque"}


def take_one_by_one(source: Source, finding: Finding) -> list[Edit]:
    """Replace what returned several views: `y.unbind()`, `a, b = y`, `for row in y`, `list(y)`."""
    node = source.node_at(finding.facts.get("made", finding.saved_where))
    if isinstance(node, ast.Call) and last_name(node) == "zip":
        return _of_zip(source, node, finding)
    if isinstance(node, ast.Call) and last_name(node) in (*BUILT, *SEVERAL):
        return _of_call(source, node)
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store):
        return _unpacked(source, node)
    if isinstance(node, (ast.Tuple, ast.List)):
        return _starred(source, node)
    iterated = isinstance(node, ast.expr) and getattr(source.parents[node], "iter", None) is node
    return _elements(source, node) if iterated and isinstance(node, ast.expr) else []


def detach_view(source: Source, finding: Finding) -> list[Edit]:
    """Detach a view where it is made in no_grad: it is a constant, but only then PyTorch lets it be written."""
    node = source.node_at(finding.facts.get("made", finding.saved_where))
    read = isinstance(node, ast.Call) or isinstance(getattr(node, "ctx", None), ast.Load)
    return call_on(source, node, "detach()") if read and isinstance(node, ATOMS) else []


def take_anew(source: Source, finding: Finding) -> list[Edit]:
    """Replace a view that cannot be read after its memory was written."""
    return (detach_view if finding.facts.get("made_in") == "no_grad" else take_one_by_one)(source, finding)


# ----------------------------------------------------------------------------------------------------- several at once

def _unpacked(source: Source, target: ast.expr) -> list[Edit]:
    """`a, b = y`: y is what is assigned, or stands at the same place of what is."""
    parent = source.parents[target]
    if isinstance(parent, ast.Assign):
        return _elements(source, parent.value)
    if isinstance(parent, (ast.Tuple, ast.List)) and isinstance(source.parents[parent], ast.Assign):
        value = source.parents[parent].value  # type: ignore[attr-defined]
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parent.elts):
            return _elements(source, value.elts[parent.elts.index(target)])
    return []


def _starred(source: Source, display: Any) -> list[Edit]:
    starred = [e for e in display.elts if isinstance(e, ast.Starred)]
    return _elements(source, starred[0].value) if len(starred) == 1 else []


def _elements(source: Source, value: ast.expr) -> list[Edit]:
    """Replace a tensor that is iterated over by its elements, one by one."""
    if isinstance(value, ast.Call) and last_name(value) in SEVERAL:
        return _of_call(source, value)
    if simple(value) and (isinstance(source.parents[value], ast.Assign) or _is_bound_once(source, value)):
        text = source.flat(value)
        index = _index(source, value)
        return [_replace(source, value, f"({text}[{index}] for {index} in range(len({text})))")]
    whole, index = source.unused("whole"), _index(source, value)
    return [_replace(source, value, f"({whole}[{index}] for {whole} in [{source.flat(value)}] "
                                    f"for {index} in range(len({whole})))")]


def _is_bound_once(source: Source, node: ast.AST) -> bool:
    """Return whether a name means the same while a generator that reads it is consumed."""
    if isinstance(node, ast.Attribute):
        stores = [n for n in ast.walk(source.tree) if isinstance(n, ast.Attribute) and n.attr == node.attr
                  and isinstance(n.ctx, ast.Store)]
        return len(stores) <= 1 and _is_bound_once(source, node.value)
    if isinstance(node, ast.Subscript):
        return False
    return isinstance(node, ast.Name) and len(source.names.bindings(source.names.variable(node))) <= 1


def _replace(source: Source, node: ast.expr, text: str) -> Edit:
    start, end = source.start(node), source.end(node)
    parent = source.parents[node]
    only = isinstance(parent, ast.Call) and parent.args == [node] and not parent.keywords
    return Edit(start, end, text[1:-1] if only and text.startswith("(") else text)


def _index(source: Source, node: ast.AST) -> str:
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return next((name for name in "ijkmn" if name not in used), source.unused("index"))


def _of_call(source: Source, call: ast.Call) -> list[Edit]:
    name = last_name(call)
    if isinstance(call.func, ast.Name) and name in BUILT:
        return _of_built(source, call)
    method = isinstance(call.func, ast.Attribute) and not is_imported(source, call.func)
    tensor = call.func.value if method and isinstance(call.func, ast.Attribute) else call.args[0] if call.args else None
    rest = call.args if method else call.args[1:]
    given = {k.arg: k.value for k in call.keywords}
    if tensor is None or any(isinstance(a, ast.Starred) for a in call.args) or None in given:
        return []
    names = ["dim"] if name == "unbind" else [next((k for k in given if k not in ("dim", None)), "size"), "dim"]
    given |= dict(zip(names, rest))
    return _written(source, call, name, tensor, given.get(names[0]), given.get("dim"))


def _of_built(source: Source, call: ast.Call) -> list[Edit]:
    """`list(y)`, `enumerate(y)`; of several arguments, as zip has, all that the source shows to be tensors."""
    name = last_name(call)
    arguments = call.args if name == "zip" else call.args[1:] if name == "map" else call.args[:1]
    if len(arguments) > 1:
        arguments = [a for a in arguments if isinstance(a, ast.Name) and _is_tensor(source, a)]
    return [edit for a in arguments if simple(a) for edit in _elements(source, a)]


def _of_zip(source: Source, call: ast.Call, finding: Finding) -> list[Edit]:
    """Of `for a, b in zip(y, z): a.mul_(2)`, the argument that the written name runs through."""
    targets = getattr(getattr(source.parents[call], "target", None), "elts", [])
    written = operand(source, source.node_at(finding.where), str(finding.facts.get("name", "")), "0")
    places = [i for i, t in enumerate(targets) if written is not None and ast.unparse(t) == ast.unparse(written)]
    found = call.args[places[0]] if len(places) == 1 and len(targets) == len(call.args) else None
    return _elements(source, found) if simple(found) and found is not None else _of_built(source, call)


def _is_tensor(source: Source, name: ast.Name) -> bool:
    bindings = source.names.bindings(source.names.variable(name))
    return bool(bindings) and all(is_fresh(source, getattr(source.parents[b], "value", None)) for b in bindings)


def _written(source: Source, call: ast.Call, name: str, tensor: ast.expr, size: Any, dim: Any) -> list[Edit]:
    axis = _number(dim) if dim is not None else 0
    if axis is None or name not in SEVERAL:
        return []
    whole = source.flat(tensor) if simple(tensor) else source.unused("whole")
    index = _index(source, call)
    if isinstance(size, (ast.List, ast.Tuple)):
        made = _slices(source, whole, size, axis) if simple(tensor) else None
        return [] if made is None else [Edit(source.start(call), source.end(call), made)]
    length = f"len({whole})" if axis == 0 else f"{whole}.shape[{axis}]"
    if name == "unbind":
        part, steps = f"{whole}{_at(axis, index)}", f"range({length})"
    elif size is None or not (simple(size) or isinstance(size, ast.Constant)):
        return []
    else:
        step = source.flat(size) if name == "split" else f"-(-{length} // {source.flat(size)})"
        part, steps = f"{whole}{_at(axis, f'{index}:{index} + {step}')}", f"range(0, {length}, {step})"
    source_of = "" if simple(tensor) else f"for {whole} in [{source.flat(tensor)}] "
    return [Edit(source.start(call), source.end(call), f"tuple({part} {source_of}for {index} in {steps})")]


def _at(axis: int, index: str) -> str:
    """Return the index along one dimension: `[i]`, `[:, i]`, `[..., i]` for the last.

    >>> _at(2, "i"), _at(-2, "0:3")
    ('[:, :, i]', '[..., 0:3, :]')
    """
    if axis < 0:
        return f"[..., {', '.join([index, *[':'] * (-1 - axis)])}]"
    return f"[{', '.join([*[':'] * axis, index])}]"


def _number(node: Any) -> int | None:
    try:
        found = ast.literal_eval(node)
    except ValueError:
        return None
    return found if isinstance(found, int) else None


def _slices(source: Source, whole: str, sizes: Any, axis: int) -> str | None:
    """Return the parts of the given sizes, written out."""
    numbers = [_number(e) for e in sizes.elts]
    parts, start = [], 0
    for n in numbers:
        if n is None:
            return None
        parts.append(whole + _at(axis, f"{start or ''}:{start + n}"))
        start += n
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
