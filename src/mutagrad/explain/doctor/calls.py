"""Which expression of the source is an argument of a call, and whether a function, a method or a layer is called."""
from __future__ import annotations

import ast
from typing import Any

from ...tensors.tensor import Tensor
from ..torch_saves import row
from .edits import Edit, Source

ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
VIEWS = {"T", "mT", "H", "real", "imag", "view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze",
         "select", "narrow", "diagonal", "flatten", "ravel", "expand", "expand_as", "view_as", "unfold", "movedim",
         "swapaxes", "swapdims", "unflatten", "data", "requires_grad_", "contiguous"}
# Whose results may be the tensor itself, or its memory.
SHARING = VIEWS | {"detach", "to", "cpu", "cuda", "float", "double", "type", "type_as"}
BUILTINS = {"abs", "pow", "round", "divmod", "float", "int", "len", "bool"}  # which hand their arguments on as they are


def simple(node: ast.AST | None) -> bool:
    """Return whether an expression can be written twice: names, attributes, and items by numbers, names and slices."""
    if isinstance(node, ast.Attribute):
        return simple(node.value)
    if isinstance(node, ast.Subscript):
        return simple(node.value) and _is_plain(node.slice)
    return isinstance(node, ast.Name)


def _is_plain(index: ast.AST) -> bool:
    return not any(isinstance(n, (ast.Call, ast.NamedExpr, ast.Await)) for n in ast.walk(index))


def repeatable(node: ast.AST | None) -> bool:
    """Return whether an expression gives the same memory when it is evaluated again: views of what is simple, too."""
    if isinstance(node, ast.Call):
        plain = all(isinstance(a, (ast.Constant, ast.UnaryOp)) or simple(a) for a in node.args) and not node.keywords
        view = isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS
        return plain and view and repeatable(node.func)
    if isinstance(node, ast.Subscript):
        return _is_plain(node.slice) and repeatable(node.value)
    return repeatable(node.value) if isinstance(node, ast.Attribute) else isinstance(node, ast.Name)


def dotted(node: ast.AST) -> str:
    """Return `a.b.c`, or "" if it is something else."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def last_name(call: ast.Call) -> str:
    """Return the name by which something is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


# ------------------------------------------------------------------------------------------------------ what is called

def is_imported(source: Source, node: ast.AST) -> bool:
    """Return whether a name, or the first part of a dotted one, is a module's or was imported from one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if not isinstance(node, ast.Name):
        return False
    found = source.names.bindings(source.names.variable(node))
    if not found:
        return node.id in ("torch", "F", "nn")
    return any(isinstance(b, (ast.Import, ast.ImportFrom)) for b in found)


def operator(node: ast.AugAssign | ast.BinOp) -> str:
    """Return the sign of an operation."""
    return ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b")))[2:-2]


def is_fresh(source: Source, node: Any) -> bool:
    """Return whether an expression makes a tensor with memory of its own, to which nothing else refers."""
    if not isinstance(node, ast.Call):
        return isinstance(node, (ast.BinOp, ast.UnaryOp))
    name = last_name(node)
    if is_imported(source, node.func):
        if name == "Parameter":
            return bool(node.args) and is_fresh(source, node.args[0])
        shares = name in ("from_numpy", "as_tensor", "asarray", "frombuffer")
        return not shares and (name[:1].islower() or "Tensor" in name)
    if not is_method(source, node) or not isinstance(node.func, ast.Attribute):
        return False
    return name not in SHARING or is_fresh(source, node.func.value)


def torch_name(source: Source) -> str | None:
    """Return the name under which the source has PyTorch."""
    for node in ast.walk(source.tree):
        for alias in node.names if isinstance(node, ast.Import) else ():
            if alias.name.partition(".")[0] == "torch" and (alias.asname is None or alias.name == "torch"):
                return alias.asname or "torch"
    return "torch" if any(isinstance(n, ast.Name) and n.id == "torch" for n in ast.walk(source.tree)) else None


def is_method(source: Source, call: ast.Call) -> bool:
    """Return whether this calls a method of a tensor, as far as one can see."""
    func = call.func
    if not isinstance(func, ast.Attribute) or is_imported(source, func) or not hasattr(Tensor, func.attr):
        return False
    return not is_object(source, func.value)


def is_object(source: Source, node: ast.AST) -> bool:
    """Return whether a name is a module's or another object's: self, or made by calling a class."""
    if not isinstance(node, ast.Name):
        return False
    bindings = source.names.bindings(source.names.variable(node))
    values = [getattr(source.parents[b], "value", None) for b in bindings]
    made = any(isinstance(v, ast.Call) and last_name(v)[:1].isupper() and last_name(v) not in ("Parameter", "Tensor")
               and "Tensor" not in last_name(v) for v in values)
    return node.id == "self" or made


def is_function(source: Source, call: ast.Call) -> bool:
    """Return whether this calls a function of PyTorch's, or one of Python's that calls a method of its argument."""
    name = last_name(call)
    if isinstance(call.func, ast.Name) and name in BUILTINS:
        return True
    return is_imported(source, call.func) and not name[:1].isupper()


def is_direct(source: Source, call: ast.Call) -> bool:
    """Return whether this calls a function or a method of PyTorch's."""
    return is_method(source, call) or is_function(source, call)


def is_around(source: Source, call: ast.Call, function: str) -> bool:
    """Return whether this is a call inside of which a function of that name was called: of a layer, of vmap's."""
    other = is_imported(source, call.func) and last_name(call) != function.rpartition(".")[2]
    return other or not is_direct(source, call)


# ----------------------------------------------------------------------------------------------------------- arguments

def operand(source: Source, node: ast.AST | None, function: str, slot: str) -> ast.expr | None:
    """Return the expression of an argument; None where that is not certain, or nothing to be seen in the source."""
    first, _, rest = slot.partition(".")
    if function.startswith("ops.recurrent."):
        return _of_recurrent(source, node, first, rest)
    found = _operand(source, node, function, first)
    for part in rest.split(".") if rest else ():
        found = _element(found, int(part)) if part.isdigit() else None
    return found


def _operand(source: Source, node: ast.AST | None, function: str, slot: str) -> ast.expr | None:
    if isinstance(node, ast.Call):
        return _argument(source, node, function, slot)
    parts: list[Any] = []
    if isinstance(node, ast.BinOp):
        parts = [node.right, node.left] if function.startswith("__r") else [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        parts = [node.target, node.value]
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    elif isinstance(node, ast.Attribute):
        parts = [node.value]
    elif isinstance(node, ast.Subscript):
        parts = [node.value, node.slice, getattr(source.parents[node], "value", None)]
    return parts[int(slot)] if slot.isdigit() and int(slot) < len(parts) else None


def _element(node: ast.expr | None, index: int) -> ast.expr | None:
    """Return the element of a list or tuple that is written out."""
    if not isinstance(node, (ast.List, ast.Tuple)) or any(isinstance(e, ast.Starred) for e in node.elts):
        return None
    return node.elts[index] if index < len(node.elts) else None


def _argument(source: Source, call: ast.Call, function: str, slot: str) -> ast.expr | None:
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if is_method(source, call):
        assert isinstance(call.func, ast.Attribute)
        return _of_call([call.func.value, *call.args], call, function, slot)
    if is_function(source, call) or last_name(call) == "apply":  # of a Function of the program's
        return _of_call(call.args, call, function, slot)
    return _of_layer(call, function, slot)


def _of_call(positional: list[ast.expr], call: ast.Call, function: str, slot: str) -> ast.expr | None:
    named = {k.arg: k.value for k in call.keywords}
    if not slot.isdigit():
        return named.get(slot)
    if int(slot) < len(positional):
        return positional[int(slot)]
    parameters = [name.partition("=")[0] for name in (row(function) or ("",))[0].split()]
    return named.get(parameters[int(slot)]) if int(slot) < len(parameters) else None


def _of_recurrent(source: Source, node: ast.AST | None, first: str, rest: str) -> ast.expr | None:
    """Return the input or the state of a recurrent layer: `gru(x, h)`, `lstm(x, (h, c))`."""
    position = {"1": 0, "2": 1}.get(first)
    if not isinstance(node, ast.Call) or position is None or position >= len(node.args):
        return None
    given = node.args[position]
    if isinstance(given, ast.Tuple):
        return _element(given, int(rest))
    return None if first == "2" and "LSTM" in source.text else given  # a name may be that of a tuple


def _of_layer(call: ast.Call, function: str, slot: str) -> ast.expr | None:
    """Return an argument of a layer: what it computes with first is its input, and a loss has a target, too."""
    inputs = 3 if "attention" in function else 2 if "loss" in function or "entropy" in function else 1
    return call.args[int(slot)] if slot.isdigit() and int(slot) < min(inputs, len(call.args)) else None


# ------------------------------------------------------------------------------------------------------ edits of calls

def call_on(source: Source, expression: ast.expr, method: str) -> list[Edit]:
    """Return the edits that make `(expression).method` of an expression.

    >>> from .edits import apply
    >>> source = Source("a + b")
    >>> apply(source.text, call_on(source, source.tree.body[0].value, "clone()"))
    '(a + b).clone()'
    """
    start, end = source.start(expression), source.end(expression)
    if isinstance(expression, ATOMS):
        return [Edit(end, end, f".{method}")]
    enclosed = source.text[start - 1:start] == "(" and source.text[end:end + 1] == ")"
    if enclosed and not _is_only_argument(source, expression):
        return [Edit(end + 1, end + 1, f".{method}")]
    return [Edit(start, start, "("), Edit(end, end, f").{method}")]


def _is_only_argument(source: Source, expression: ast.expr) -> bool:
    """Return whether the parentheses around an expression are those of a call."""
    parent = source.parents[expression]
    return isinstance(parent, ast.Call) and source.start(expression) - 1 == source.end(parent.func)


def drop_keyword(source: Source, call: ast.Call, name: str) -> Edit:
    """Return the edit that takes a keyword out of a call."""
    arguments: list[Any] = sorted([*call.args, *call.keywords], key=source.start)
    i = next(i for i, a in enumerate(arguments) if isinstance(a, ast.keyword) and a.arg == name)
    if i:
        comma = source.text.rindex(",", source.end(arguments[i - 1]), source.start(arguments[i]))
        return Edit(comma, source.end(arguments[i]), "")
    if len(arguments) > 1:
        return Edit(source.start(arguments[0]), source.start(arguments[1]), "")
    return Edit(source.start(arguments[0]), source.end(arguments[0]), "")


def add_keyword(source: Source, call: ast.Call, name: str, value: str) -> Edit:
    """Return the edit that gives a keyword to a call, or another value to the one it has."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return Edit(source.start(keyword.value), source.end(keyword.value), value)
    inside = source.text[source.end(call.func):source.end(call) - 1]
    trailing = inside.rstrip().endswith(",")
    end = source.end(call) - 1 - (len(inside) - len(inside.rstrip()))
    given = bool(call.args or call.keywords)
    return Edit(end, end, (" " if trailing else ", " if given else "") + f"{name}={value}")
