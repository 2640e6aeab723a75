"""Rewrites of writes to leaves: the leaf keeps its name and its `.grad`, and the program goes on with a copy of it.

    x = torch.ones(3, requires_grad=True)         x = torch.ones(3, requires_grad=True)
    x[0] = 5.                                     x_copy = x.clone()
    (x * x).sum().backward()                      x_copy[0] = 5.
    print(x.grad)                                 (x_copy * x_copy).sum().backward()
                                                  print(x.grad)

Every use of the leaf either means its values, and becomes the copy's, or means the leaf itself (`x.grad`, an
optimizer's list): `Meaning` says which, following lists, other names and functions of the same file. Where a use may
be both, there is no rewrite.
"""
from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .calls import VIEWS, dotted, is_fresh, is_method, last_name, operand, repeatable
from .edits import Edit, Source
from .findings import Finding
from .names import COMPREHENSIONS, DEFINITIONS, Variable

LEAF, VALUE = "leaf", "value"
LEAF_ATTRIBUTES = {"grad", "requires_grad", "requires_grad_", "is_leaf", "retain_grad", "retains_grad",
                   "register_post_accumulate_grad_hook"}
PASSING = VIEWS | {"chunk", "split", "unbind", "enumerate", "list", "tuple", "zip", "iter"}
COLLECTING = {"append", "appendleft", "add", "insert", "extend", "setdefault", "update"}
DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Constant)
OPTIMIZERS = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "LBFGS", "Rprop",
              "ASGD", "Muon"}


def write_to_copy(source: Source, finding: Finding) -> list[Edit]:
    """Return the edits that let the program write to a copy of the leaf; none where they cannot be told for certain."""
    node = source.node_at(finding.where)
    written = _written(source, node, finding)
    if node is None or written is None:
        return []
    if finding.facts.get("what") == "a leaf" and isinstance(written, ast.Subscript):  # an element of a list or a dict
        return _copy_expression(source, written, node, finding.count)
    root = _root(source, written, 0)
    if isinstance(root, ast.Name):
        return _copy_variable(source, root)
    return [] if root is None else _copy_expression(source, root, node, finding.count)


def _written(source: Source, node: Any, finding: Finding) -> ast.expr | None:
    """Return the expression of the tensor that is written."""
    function = str(finding.facts.get("name", ""))
    return operand(source, node, function, "0" if isinstance(node, (ast.Subscript, ast.AugAssign)) else finding.slot)


# --------------------------------------------------------------------------------------------- whose memory is written

def _root(source: Source, node: Any, depth: int) -> ast.Name | ast.Attribute | None:
    """Return the name or attribute that a view comes from, through other names and calls of the file's functions."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute) and node.attr not in PASSING:
            return node if dotted(node) else None
        node = _viewed(source, node)
        if node is None:
            return None
    bindings = source.names.bindings(source.names.variable(node))
    if depth > 20 or len(bindings) != 1:
        fresh = all(is_fresh(source, _bound_to(source, b)) for b in bindings)
        return node if bindings and fresh else None
    if isinstance(bindings[0], ast.arg):
        given = _given(source, source.names.variable(node))
        return node if given is None else _root(source, given, depth + 1)
    value = _bound_to(source, bindings[0])
    if is_fresh(source, value):
        return node
    return _root(source, value, depth + 1) if _is_alias(value) else None


def _viewed(source: Source, node: Any) -> Any:
    """Return what an expression is a view of, one step down; None if it is no view."""
    if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        return node.value
    if isinstance(node, COMPREHENSIONS):
        return getattr(node, "elt", None)
    if isinstance(node, ast.NamedExpr):
        return node.value
    if not isinstance(node, ast.Call) or last_name(node) not in PASSING and not last_name(node).endswith("_"):
        return None
    if is_method(source, node) and isinstance(node.func, ast.Attribute):
        return node.func.value
    return node.args[0] if node.args else None


def _is_alias(value: Any) -> bool:
    """Return whether a value may be the memory of something that has a name already."""
    if isinstance(value, ast.Call):
        return last_name(value) in PASSING and last_name(value) != "requires_grad_"
    return isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, *COMPREHENSIONS))


def _bound_to(source: Source, binding: ast.AST) -> Any:
    """Return what a name is assigned, or runs through."""
    if not isinstance(binding, ast.Name):
        return None
    parent = source.parents[binding]
    if isinstance(parent, (ast.Tuple, ast.List)):
        above = source.parents[parent]
        value = getattr(above, "value", None) or getattr(above, "iter", None)
        return _place(value, parent.elts.index(binding), len(parent.elts))  # type: ignore[arg-type]
    return getattr(parent, "value", None) or getattr(parent, "iter", None)


def _place(value: Any, index: int, count: int) -> Any:
    """Return what the n-th name of `a, b = ...` or of `for a, b in ...` gets."""
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == count:
        return value.elts[index]
    if isinstance(value, ast.Call) and last_name(value) == "zip":
        return value.args[index] if index < len(value.args) else None
    return value


def _given(source: Source, parameter: Variable) -> ast.expr | None:
    """Return what a parameter gets, if its function is called at one place of the file."""
    calls = _calls_of(source, parameter.scope)
    return _argument_for(parameter, calls[0]) if len(calls) == 1 else None


def _calls_of(source: Source, function: Any) -> list[ast.Call]:
    assigned = getattr(source.parents.get(function), "targets", [None])[0]  # of a lambda
    name = function.name if isinstance(function, DEFINITIONS) else getattr(assigned, "id", None)
    if name == "forward":
        return []
    return [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and name is not None and last_name(n) == name]


def _argument_for(parameter: Variable, call: ast.Call) -> ast.expr | None:
    names = [a.arg for a in parameter.scope.args.args]  # type: ignore[attr-defined]
    made = getattr(parameter.scope, "name", "") == "__init__"
    if names[:1] == ["self"] and (made or isinstance(call.func, ast.Attribute)):
        names = names[1:]
    index = names.index(parameter.name) if parameter.name in names else None
    if index is not None and index < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args):
        return call.args[index]
    return next((k.value for k in call.keywords if k.arg == parameter.name), None)


def _functions_called(source: Source, name: str) -> list[Any]:
    """Return the functions of the file that a call by this name may run; of a class, its `__init__`."""
    found = [n for n in ast.walk(source.tree) if isinstance(n, DEFINITIONS) and n.name == name]
    classes = [n for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef) and n.name == name]
    return found + [n for c in classes for n in c.body if isinstance(n, DEFINITIONS) and n.name == "__init__"]


# ------------------------------------------------------------------------------------------------------------ its uses

class Meaning:
    """Says whether an expression that is a leaf is used for its values or as the leaf.

    What is asked after a write (`autograd.grad(loss, x)`, a hook) is asked of the values as they are then.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._seen: set[ast.AST] = set()

    def of(self, node: ast.AST, inside: bool = False) -> set[str]:
        """Return {"leaf"}, {"value"}, both, or nothing; `inside`: the leaf is an element of what the node is."""
        if node in self._seen:
            return set()
        self._seen.add(node)
        parent = self.source.parents[node]
        handler = getattr(self, f"_{type(parent).__name__}", None)
        return {VALUE} if handler is None else handler(node, parent, inside)

    def of_variable(self, variable: Variable, inside: bool = False) -> set[str]:
        return set().union(*(self.of(use, inside) for use in self.source.names.uses(variable)))

    def _Expr(self, node: ast.AST, parent: ast.AST, inside: bool) -> set[str]:
        return set()

    def _Attribute(self, node: ast.AST, parent: ast.Attribute, inside: bool) -> set[str]:
        above = self.source.parents[parent]
        if inside and parent.attr in COLLECTING:
            return set()
        if inside and parent.attr in ("values", "items", "copy") and isinstance(above, ast.Call):
            return self.of(above, inside)
        return {LEAF} if parent.attr in LEAF_ATTRIBUTES else {VALUE}

    def _Subscript(self, node: ast.AST, parent: ast.Subscript, inside: bool) -> set[str]:
        return self.of(parent) if inside and node is parent.value else {VALUE}

    def _display(self, node: ast.AST, parent: ast.AST, inside: bool) -> set[str]:
        return self.of(parent, inside=True)

    _List = _Tuple = _Set = _Dict = _display

    def _passed(self, node: ast.AST, parent: ast.AST, inside: bool) -> set[str]:
        return self.of(parent, inside)

    _Starred = _IfExp = _BoolOp = _keyword = _passed

    def _Call(self, node: ast.AST, parent: ast.Call, inside: bool) -> set[str]:
        name = last_name(parent)
        if name in OPTIMIZERS or "optim" in dotted(parent.func) or name.startswith(("clip_grad", "add_param_group")):
            return {LEAF}
        if name in COLLECTING and isinstance(parent.func, ast.Attribute):
            return self._bound(parent.func.value, inside=True)
        if isinstance(node, ast.keyword) and node.arg == "inputs" and name == "backward":
            return {LEAF, VALUE}  # whose values are meant, but whose `.grad` gets it
        return self._called(node, parent, inside)

    def _called(self, node: ast.AST, call: ast.Call, inside: bool) -> set[str]:
        """Of an argument of one of the file's own functions, what its parameter is used for."""
        name = last_name(call)
        functions = _functions_called(self.source, name)
        found: set[str] = set() if functions else {VALUE}
        for function in functions:
            given = [Variable(function, a.arg) for a in function.args.args]
            mine = [v for v in given if _argument_for(v, call) in (node, getattr(node, "value", node))]
            found |= self.of_variable(mine[0], inside) if mine else {LEAF, VALUE}
        return found

    def _Assign(self, node: ast.AST, parent: Any, inside: bool) -> set[str]:
        found: set[str] = set()
        for target in getattr(parent, "targets", None) or [parent.target]:
            found |= self._bound(target, inside)
        return found

    _AnnAssign = _NamedExpr = _Assign

    def _bound(self, target: ast.AST, inside: bool) -> set[str]:
        if isinstance(target, ast.Name):
            return self.of_variable(self.source.names.variable(target), inside)
        if isinstance(target, ast.Attribute):
            return self._attributes(target.attr, inside)
        if isinstance(target, ast.Subscript):
            return self._bound(target.value, inside=True)
        if isinstance(target, (ast.Tuple, ast.List)) and inside:
            return set().union(*(self._bound(element, False) for element in target.elts))
        return {VALUE}

    def _attributes(self, name: str, inside: bool) -> set[str]:
        uses = [n for n in ast.walk(self.source.tree) if isinstance(n, ast.Attribute) and n.attr == name
                and isinstance(n.ctx, ast.Load)]
        return set().union(*(self.of(use, inside) for use in uses))

    def _For(self, node: ast.AST, parent: Any, inside: bool) -> set[str]:
        if not inside:
            return {VALUE}
        targets = parent.target.elts if isinstance(parent.target, (ast.Tuple, ast.List)) else [parent.target]
        return set().union(*(self._bound(target, False) for target in targets))

    _comprehension = _For

    def _AugAssign(self, node: ast.AST, parent: ast.AugAssign, inside: bool) -> set[str]:
        return {VALUE}

    def _Return(self, node: ast.AST, parent: ast.AST, inside: bool) -> set[str]:
        """Of what a function returns, what its callers do with it."""
        calls = _calls_of(self.source, self.source.names.function_of(parent))
        return set().union(*(self.of(call, inside) for call in calls)) if calls else {LEAF, VALUE}

    def _Lambda(self, node: ast.AST, parent: ast.AST, inside: bool) -> set[str]:
        return {LEAF, VALUE}

    _Yield = _Lambda


# --------------------------------------------------------------------------------------------------------------- edits

def _copy_variable(source: Source, root: ast.Name) -> list[Edit]:
    """Put `x_copy = x.clone()` behind what makes the leaf, and the copy for x wherever its values are meant."""
    variable = source.names.variable(root)
    if any(source.names.lookup(scope, name) == variable for scope, name in source.names.declared):
        return []  # a function's `global x`
    if isinstance(source.names.bindings(variable)[0], ast.arg):
        return _copy_parameter(source, variable)
    life = _life(source, variable, root)
    if life is None:
        return []
    made, end = life
    uses = [u for u in source.names.uses(variable) if source.names.function_of(u) is not variable.scope
            or source.end(made) < source.start(u) < end]
    return _go_on_with_copy(source, variable.name, variable.name, uses, lambda line: source.after(made, line))


def _copy_parameter(source: Source, variable: Variable) -> list[Edit]:
    """Copy a parameter where its function begins, if none of the callers reads the values afterwards."""
    calls, first = _calls_of(source, variable.scope), _first(variable.scope)
    given = [_argument_for(variable, call) for call in calls]
    if first is None or not calls or any(is_read_later(source, g, call) for g, call in zip(given, calls)):
        return []
    uses = source.names.uses(variable)
    return _go_on_with_copy(source, variable.name, variable.name, uses, lambda line: source.before(first, line))


def is_read_later(source: Source, given: ast.AST | None, call: ast.Call) -> bool:
    """Return whether the values of an argument may be read after a call: by its name, if it has one."""
    if not isinstance(given, ast.Name):
        return not is_fresh(source, given)
    variable = source.names.variable(given)
    if not all(is_fresh(source, _bound_to(source, b)) for b in source.names.bindings(variable)):
        return True
    later = [u for u in source.names.uses(variable) if source.start(u) > source.end(call)
             or source.names.function_of(u) is not source.names.function_of(call)]
    return source.is_in_loop(call) or any(VALUE in Meaning(source).of(use) for use in later)


def _go_on_with_copy(source: Source, name: str, leaf: str, uses: list[Any],
                     insert: Callable[[str], Edit]) -> list[Edit]:
    renamed = _with_values(source, uses)
    if not renamed or _is_updated(source, uses):
        return []
    copy = source.unused(f"{name}_copy")
    return [insert(f"{copy} = {leaf}.clone()"), *(Edit(source.start(u), source.end(u), copy) for u in renamed)]


def _life(source: Source, variable: Variable, root: ast.Name) -> tuple[ast.stmt, int] | None:
    """Return the statement that makes the leaf that a name stands for, and where the name becomes another's."""
    bindings = [source.statement(b) for b in source.names.bindings(variable)]
    if any(isinstance(b, (ast.For, ast.With, ast.AsyncFor, ast.AsyncWith)) for b in bindings):
        return None
    uses = source.names.uses(variable)
    own, end = bindings[0], len(source.text)
    if len(bindings) > 1:
        inner = any(source.names.function_of(u) is not variable.scope for u in uses)
        if inner or not all(b in source.block(own) for b in bindings):
            return None
        own = [b for b in bindings if source.end(b) < source.start(root)][-1]
        end = min([source.end(b) for b in bindings if source.start(b) > source.start(own)], default=end)
    alive = [u for u in uses if source.end(own) < source.start(u) < end]
    asked = [source.statement(u) for u in alive if _asks_for_gradient(source, u)]
    return (asked or [own])[-1], end


def _first(function: Any) -> ast.stmt | None:
    if isinstance(function, ast.Lambda):
        return None
    body = function.body
    has_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    return body[1] if has_text else body[0]  # type: ignore[no-any-return]


def _asks_for_gradient(source: Source, use: ast.Name) -> bool:
    """Return whether this is `x.requires_grad_()` or `x.requires_grad = True`."""
    parent = source.parents[use]
    if not isinstance(parent, ast.Attribute):
        return False
    if parent.attr == "requires_grad":
        return isinstance(parent.ctx, ast.Store)
    return parent.attr == "requires_grad_" and isinstance(source.parents[parent], ast.Call)


def _with_values(source: Source, uses: list[Any]) -> list[Any] | None:
    """Return the uses for values; None if one may mean both."""
    meanings = [(use, Meaning(source).of(use)) for use in uses]
    if any(len(meaning) > 1 for _, meaning in meanings):
        return None
    return [use for use, meaning in meanings if meaning != {LEAF} and not isinstance(use.ctx, ast.Del)]


def _is_updated(source: Source, uses: list[Any]) -> bool:
    """Return whether a leaf is updated between sweeps, by hand or by an optimizer: the copy would be of old values."""
    for use in uses:
        blocks = [n for n in source.above(use) if isinstance(n, ast.With)]
        unrecorded = any("no_grad" in source.segment(item.context_expr) for block in blocks for item in block.items)
        statement = source.statement(use)
        updates = isinstance(statement, ast.AugAssign) and source.start(use) < source.end(statement.target)
        parent = source.parents[use]
        through_data = isinstance(parent, ast.Attribute) and parent.attr == "data"
        if (unrecorded and updates or through_data) and _is_used_again(source, use, uses):
            return True
    loops = [use for use in uses if source.is_in_loop(use)]
    return bool(loops) and any(_is_optimized(source, use) for use in uses)


def _is_used_again(source: Source, use: Any, uses: list[Any]) -> bool:
    end = source.end(source.statement(use))
    return source.is_in_loop(use) or any(source.start(u) > end and Meaning(source).of(u) != {LEAF} for u in uses)


def _is_optimized(source: Source, use: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) and last_name(n) in OPTIMIZERS for n in source.above(use))


def _copy_expression(source: Source, leaf: Any, write: ast.AST, count: int) -> list[Edit]:
    """Copy `self.w` or `params["w"]` before a function uses it, if nobody else reads its values."""
    function = source.names.function_of(write)
    if not _is_made_here(source, leaf) or not repeatable(leaf) or count > 1 and not source.is_in_loop(write):
        return []
    mine = [n for n in ast.walk(function) if _same(n, leaf) and source.names.function_of(n) is function]
    others = [(n, inside) for n, inside in _others(source, leaf) if n not in mine]
    if any(VALUE in Meaning(source).of(n, inside) for n, inside in others) or any(_is_bound(source, n) for n in mine):
        return _copy_attribute(source, leaf) if isinstance(leaf, ast.Attribute) else []
    name = leaf.attr if isinstance(leaf, ast.Attribute) else str(getattr(leaf.slice, "value", "leaf"))
    first = min((source.statement(n) for n in mine), key=source.start)
    while first not in function.body:  # type: ignore[attr-defined]
        first = source.statement(source.parents[first])
    return _go_on_with_copy(source, name if name.isidentifier() else "leaf", source.flat(leaf), mine,
                            lambda line: source.before(first, line))


def _copy_attribute(source: Source, leaf: ast.Attribute) -> list[Edit]:
    """Put `self.w_copy = self.w.clone()` behind what makes the leaf, for all of the file to go on with."""
    every = [n for n in ast.walk(source.tree) if isinstance(n, ast.Attribute) and n.attr == leaf.attr]
    stores = [n for n in every if _is_bound(source, n)]
    made = source.parents[stores[0]]
    if len(stores) != 1 or not isinstance(made, ast.Assign) or not is_fresh(source, made.value):
        return []
    uses = [n for n in every if n is not stores[0]]
    renamed = _with_values(source, uses)
    optimized = any(isinstance(n, ast.Call) and last_name(n) in OPTIMIZERS for n in ast.walk(source.tree))
    if not renamed or optimized or _is_updated(source, uses):
        return []
    copy, text = source.unused(f"{leaf.attr}_copy"), source.segment(stores[0])
    inserted = source.after(made, f"{text.removesuffix(leaf.attr)}{copy} = {text}.clone()")
    return [inserted, *(Edit(source.end(n) - len(leaf.attr), source.end(n), copy) for n in renamed)]


def _is_made_here(source: Source, leaf: Any) -> bool:
    """Return whether the file itself makes the attribute or the container: no layer of PyTorch's reads it, unseen."""
    if isinstance(leaf, ast.Attribute):
        return any(isinstance(n, ast.Attribute) and n.attr == leaf.attr and isinstance(n.ctx, ast.Store)
                   for n in ast.walk(source.tree))
    bindings = source.names.bindings(source.names.variable(leaf.value)) if isinstance(leaf.value, ast.Name) else []
    return len(bindings) == 1 and isinstance(_bound_to(source, bindings[0]), DISPLAYS)


def _same(node: ast.AST, other: ast.AST) -> bool:
    return type(node) is type(other) and ast.unparse(node) == ast.unparse(other)


def _is_bound(source: Source, node: Any) -> bool:
    return isinstance(node.ctx, ast.Store) and not isinstance(source.parents[node], ast.AugAssign)


def _others(source: Source, leaf: Any) -> list[tuple[Any, bool]]:
    """Return what else may read an attribute's value, or that of an element of a container."""
    if isinstance(leaf, ast.Attribute):
        return [(n, False) for n in ast.walk(source.tree) if isinstance(n, ast.Attribute) and n.attr == leaf.attr
                and isinstance(n.ctx, ast.Load)]
    uses = source.names.uses(source.names.variable(leaf.value))
    return [(u, True) for u in uses if not _is_another_element(source.parents[u], leaf)]


def _is_another_element(node: Any, leaf: ast.Subscript) -> bool:
    """Return whether this is an element, by a number or a string that is not the leaf's; or the leaf itself."""
    if not isinstance(node, ast.Subscript):
        return False
    return _same(node, leaf) or isinstance(node.slice, ast.Constant) and isinstance(leaf.slice, ast.Constant)
