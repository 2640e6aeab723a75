"""Reading the user's source: through which statement a value lost its history on the way to the loss.

What a program computes in `no_grad`, or by a comparison, leaves no trace in any graph. Its text tells: names are
followed from where they are bound to the tensor in question, statement by statement, into functions and `forward`s of
the user's, until they come to what cuts them off. This is a reading, not a proof: it is asked only where the graph has
no answer.
"""
from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..base.layout import has_own_layout
from ..base.provenance import OURS, describe_line
from ..core.storage import TensorBase

# Methods and functions whose result has no history, by the kind of cut.
CUTTING = {
    **dict.fromkeys(("detach", "detach_"), "detach"), "item": "item", "tolist": "tolist", "numpy": "numpy",
    "__array__": "numpy", "asarray": "numpy", "array": "numpy",
    **dict.fromkeys(("tensor", "from_numpy"), "tensor"), "Parameter": "parameter",
    **dict.fromkeys(("float", "int", "bool", "complex"), "number"),
    **dict.fromkeys(("long", "short", "byte", "char"), "cast"),
    **{name: name for name in (
        "argmax", "argmin", "argsort", "nonzero", "argwhere", "searchsorted", "bucketize", "multinomial", "histc",
        "any", "all", "count_nonzero", "one_hot", "isnan", "isinf", "isfinite", "signbit", "eq", "ne", "lt", "le", "gt",
        "ge", "greater", "less", "logical_and", "logical_or", "logical_not", "isclose", "allclose", "equal", "unique",
    )},
}
INTEGERS = {"long", "int", "int8", "int16", "int32", "int64", "uint8", "short", "bool", "byte"}
MOST = 200  # calls that are followed
OFF = {"no_grad", "inference_mode"}
# What is read off a tensor without its values.
ABOUT = {"shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "grad", "size", "numel", "dim", "grad_fn",
         "why", "zero_grad", "step"}


class Found(NamedTuple):
    """A cut, as the text has it."""

    kind: str
    file: str
    line: int
    block: int = 0  # of no_grad: the line at which it begins

    @property
    def place(self) -> str:
        return describe_line(self.file, self.line)


LIVE = Found("", "", 0)  # a value with its history


class Scope:
    """The names of one function or module while its text is followed: which of them come from the tensor, and how."""

    def __init__(self, code: CodeType, names: dict[str, Any], known: dict[str, Found]) -> None:
        self.code, self.names, self.known = code, names, known
        self.off: Found | None = None
        self.returned: list[Found] = []
        self.losses: list[Found] = []
        self.unrelated = 0  # calls of backward() on what does not come from the tensor, as far as the text tells
        self.cuts: list[Found] = []
        self.lost: list[Found] = []  # where a name that had it was bound to something else
        self.own = dict(known)  # its names

    def begin(self) -> None:
        """Forget what was read so far: it was about something else, which had the tensor's name before."""
        self.known, self.unrelated = dict(self.own), 0
        self.returned, self.losses, self.cuts, self.lost = [], [], [], []


class Reading(NamedTuple):
    """What the text says: the cuts behind what `backward()` was called on; all; names lost; and the tensor's names."""

    losses: list[Found]
    cuts: list[Found]
    lost: list[Found]
    names: list[str]
    unrelated: bool = False  # backward() was called, on what does not come from the tensor


NOTHING = Reading([], [], [], [])


def read(tensors: Iterable[TensorBase], frame: FrameType | None) -> Reading:
    """Follow the tensors through the text of the program.

    `frame` is the innermost of the user's frames to look at; those that called it come next.
    """
    wanted = [t._storage for t in tensors]
    while frame is not None:
        names = {**frame.f_globals, **frame.f_locals}
        known = dict(_names(names, wanted))
        if known and frame.f_code.co_filename not in OURS:
            scope = Scope(frame.f_code, names, dict.fromkeys(known, LIVE))
            Follower(wanted).follow(scope, frame.f_lineno)
            losses = [loss for loss in scope.losses if loss is not LIVE]
            return Reading([] if LIVE in scope.losses else losses, scope.cuts, scope.lost,
                           sorted(known, key=lambda name: name.count(".")),
                           bool(scope.unrelated) and not scope.losses)
        frame = frame.f_back
    return NOTHING


def _names(names: dict[str, Any], wanted: list[Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the names under which tensors on these storages are known, `model.layer.weight` among them."""
    for name, value in list(names.items()):
        if isinstance(value, TensorBase):
            if not has_own_layout((value,)) and any(value._storage is storage for storage in wanted):
                yield prefix + name, value
        elif depth < 4 and hasattr(value, "_parameters"):
            yield from _names({**value._parameters, **value._modules, **value._buffers}, wanted, f"{prefix}{name}.",
                              depth + 1)
        elif depth < 2 and isinstance(value, (list, tuple, dict)):
            parts = value.items() if isinstance(value, dict) else enumerate(value[:64])
            yield from _names({f"[{key!r}]": v for key, v in parts if isinstance(v, TensorBase)}, wanted,
                              prefix + name, depth + 1)
        elif depth < 2 and not isinstance(value, (type, ModuleType, FunctionType)):
            inside = {key: v for key, v in getattr(value, "__dict__", {}).items() if isinstance(v, TensorBase)}
            yield from _names(inside, wanted, f"{prefix}{name}.", depth + 1)


@lru_cache(64)
def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


@lru_cache(512)
def _functions(tree: ast.AST) -> dict[int, ast.AST]:
    """The functions in a tree by the line at which they begin."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
    return {min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]): node
            for node in reversed(list(ast.walk(tree))) if isinstance(node, kinds)}


def parse(code: CodeType) -> ast.AST | None:
    """Return the syntax tree of a function or module, from whatever `linecache` has for its file."""
    tree = _parsed("".join(linecache.getlines(code.co_filename)))
    if tree is None:
        return None
    if code.co_name == "<module>":
        return tree
    return _functions(tree).get(code.co_firstlineno)


def is_readable(frame: FrameType | None) -> bool:
    """Return whether the text of what a frame runs is there."""
    return frame is not None and bool(linecache.getlines(frame.f_code.co_filename))


class Follower:
    """Follows names through statements."""

    def __init__(self, wanted: list[Any]) -> None:
        self.wanted, self.depth, self.entered = wanted, 0, 0

    def follow(self, scope: Scope, until: int = 1 << 30) -> None:
        tree = parse(scope.code)
        body = getattr(tree, "body", None)
        if isinstance(body, list):
            self.statements(body, scope, until)
        elif body is not None:
            scope.returned.append(self.value(body, scope) or LIVE)

    def statements(self, body: list[ast.stmt], scope: Scope, until: int) -> None:
        for statement in body:
            if statement.lineno <= until:
                self.statement(statement, scope, until)

    def statement(self, s: ast.stmt, scope: Scope, until: int) -> None:
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self.assign(s, scope)
        elif isinstance(s, (ast.With, ast.AsyncWith)):
            self.block(s, scope, until)
        elif isinstance(s, ast.Return) and s.value is not None:
            state = self.value(s.value, scope)
            if state is not None:
                scope.returned.append(state)
        elif isinstance(s, (ast.For, ast.AsyncFor)):
            self.bind(s.target, self.value(s.iter, scope), scope)
            for _ in range(2):  # what an iteration leaves, the next finds
                self.statements(s.body + s.orelse, scope, until)
        elif isinstance(s, ast.Expr):
            self.value(s.value, scope)
        elif not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for test in (getattr(s, name, None) for name in ("test", "subject")):
                if isinstance(test, ast.expr):
                    self.value(test, scope)
            for name in ("body", "orelse", "finalbody"):
                self.statements(getattr(s, name, []), scope, until)
            for handler in getattr(s, "handlers", []):
                self.statements(handler.body, scope, until)

    def block(self, s: ast.With | ast.AsyncWith, scope: Scope, until: int) -> None:
        before = scope.off
        for item in s.items:
            name = _called(item.context_expr)
            if name in OFF or name == "set_grad_enabled" and _first_constant(item.context_expr) is False:
                scope.off = Found("no_grad", scope.code.co_filename, s.lineno)
            elif name in ("enable_grad", "set_grad_enabled"):
                scope.off = None
        self.statements(s.body, scope, until)
        scope.off = before

    def assign(self, s: ast.Assign | ast.AnnAssign | ast.AugAssign, scope: Scope) -> None:
        if s.value is None:
            return
        state = self.value(s.value, scope)
        if state is LIVE and scope.off is not None:
            state = self.cut("no_grad", s, scope)
        targets = s.targets if isinstance(s, ast.Assign) else [s.target]
        for target in targets:
            keeps = isinstance(s, ast.AugAssign) or isinstance(target, (ast.Subscript, ast.Attribute))
            old = self.value(target, scope) if keeps and not isinstance(target, ast.Attribute) else None
            self.bind(target, _joined([state, old]), scope)

    def bind(self, target: ast.expr, state: Found | None, scope: Scope) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.bind(part, state, scope)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, state, scope)
        else:
            while isinstance(target, ast.Subscript):
                target = target.value
            name = _dotted(target)
            if name and state is not None:
                scope.known[name] = state
            elif isinstance(target, ast.Name) and scope.own.get(name) is LIVE and self.is_wanted(name, scope):
                scope.begin()
            elif name in scope.known and not self.is_wanted(name, scope) and scope.known.pop(name) is LIVE:
                scope.lost.append(Found("rebound", scope.code.co_filename, target.lineno))

    def is_wanted(self, name: str, scope: Scope) -> bool:
        """Whether a name is still the tensor's own: where it was bound is where the tensor was made."""
        value = scope.names.get(name)
        return isinstance(value, TensorBase) and any(value._storage is storage for storage in self.wanted)

    def cut(self, kind: str, node: ast.AST, scope: Scope) -> Found:
        block = scope.off.line if kind == "no_grad" and scope.off is not None else 0
        found = Found(kind, scope.code.co_filename, getattr(node, "lineno", 0), block)
        scope.cuts.append(found)
        return found

    # ------------------------------------------------------------------------------------------------------ expressions

    def value(self, e: ast.expr, scope: Scope) -> Found | None:
        """Return how an expression comes from the tensor: with its history (LIVE), cut off, or not at all (None)."""
        name = _dotted(e)
        if name and name in scope.known:
            return scope.known[name]
        if name and any(known.startswith(f"{name}[") for known in scope.known):
            return LIVE
        if isinstance(e, ast.Attribute):
            return self.attribute(e, scope)
        if isinstance(e, ast.Call):
            return self.call(e, scope)
        if isinstance(e, ast.Compare):
            state = _joined([self.value(part, scope) for part in (e.left, *e.comparators)])
            plain = any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in e.ops)
            return None if plain else self.cut("comparison", e, scope) if state is LIVE else state
        if isinstance(e, ast.Subscript):
            if name and isinstance(e.value, ast.Name) and e.value.id not in scope.known:
                return None  # another element of a list or dict
            index = self.value(e.slice, scope)
            return _joined([self.value(e.value, scope), self.cut("index", e, scope) if index is LIVE else index])
        if isinstance(e, (ast.Lambda, ast.Constant)):
            return None
        if isinstance(e, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            return self.comprehension(e, scope)
        return _joined(self.value(part, scope) for part in ast.iter_child_nodes(e) if isinstance(part, ast.expr))

    def comprehension(self, e: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Found | None:
        for generator in e.generators:
            self.bind(generator.target, self.value(generator.iter, scope), scope)
        return self.value(e.elt, scope)

    def attribute(self, e: ast.Attribute, scope: Scope) -> Found | None:
        state = self.value(e.value, scope)
        if state is not LIVE:
            return state
        if e.attr == "data":
            return self.cut("data", e, scope)
        if e.attr == "indices":
            return self.cut("indices", e, scope)
        return None if e.attr in ABOUT else LIVE

    def call(self, e: ast.Call, scope: Scope) -> Found | None:
        name = _called(e)
        of = e.func.value if isinstance(e.func, ast.Attribute) else None
        receiver = self.value(of, scope) if of is not None else None
        if name == "backward":
            scope.losses.extend([receiver] if receiver is not None else [])
            scope.unrelated += receiver is None
            return None
        if name in ABOUT:
            return None
        if name == "set_grad_enabled" and isinstance(_first_constant(e), bool):
            scope.off = None if _first_constant(e) else Found("no_grad", scope.code.co_filename, e.lineno)
        given = [self.value(a.value if isinstance(a, ast.Starred) else a, scope) for a in e.args]
        named = {k.arg: self.value(k.value, scope) for k in e.keywords}
        inside = self.enter(e, given, named, scope)
        state = _joined([receiver, *given, *named.values(), *self.held(e.func, scope)])
        if state is not LIVE:
            return inside if inside is not None else state
        kind = self.cutting(name, e, of is not None)
        if kind:
            return self.cut(kind, e, scope)
        if scope.off is not None:
            return self.cut("no_grad", e, scope)
        return inside if inside is not None else LIVE

    def held(self, function: ast.expr, scope: Scope) -> list[Found]:
        """What a layer that is called has of the tensor, as a parameter."""
        prefix = _dotted(function) + "."
        return [state for name, state in scope.known.items() if name.startswith(prefix)]

    def cutting(self, name: str, e: ast.Call, method: bool) -> str:
        """What kind of cut a call is, if it is one. `x.float()` keeps the history, `float(x)` does not."""
        if name in ("float", "complex") and method or name in ("int", "bool") and method:
            return "cast" if name in ("int", "bool") else ""
        if name in ("to", "type"):
            kinds = [_dotted(a).rpartition(".")[2] for a in (*e.args, *(k.value for k in e.keywords))]
            return "cast" if any(kind in INTEGERS for kind in kinds) else ""
        return CUTTING.get(name, "")

    def enter(self, e: ast.Call, given: list[Found | None], named: dict[Any, Found | None],
              scope: Scope) -> Found | None:
        """Follow a call of a function or layer of the user's; None where it is none, or returns nothing of this."""
        found = self.resolve(e.func, scope)
        if found is None or self.depth > 5 or self.entered > MOST:
            return None
        function, instance, path = found
        inner = inspected(function)
        code = inner.__code__
        if code.co_filename in OURS:
            return None
        parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        known = {k: state for k, state in named.items() if k in parameters and state is not None}
        known |= {k: state for k, state in zip(parameters[instance:], given) if state is not None}
        names = {**inner.__globals__, **_closure(inner)}
        if instance and path is not None and parameters:
            names[parameters[0]] = path
            known |= {parameters[0] + name: LIVE for name, _ in _names({"": path}, self.wanted)}
        if not known:
            return None
        below = Scope(code, names, known)
        below.off = _decorated_off(code) or scope.off
        self.depth, self.entered = self.depth + 1, self.entered + 1
        self.follow(below)
        self.depth -= 1
        scope.cuts.extend(below.cuts)
        scope.losses.extend(below.losses)
        scope.unrelated += below.unrelated
        state = _joined(list(below.returned))
        return below.off if state is LIVE and below.off is not None and below.off is not scope.off else state

    def resolve(self, e: ast.expr, scope: Scope) -> tuple[Any, int, Any] | None:
        """The function that a call runs, whether its first parameter is an instance, and that."""
        value: Any = scope.names
        for part in _dotted(e).replace("[", ".[").split("."):
            value = value.get(part) if value is scope.names else getattr(value, part, None)
            if value is None:
                return None
        if isinstance(value, MethodType):
            return value.__func__, 1, value.__self__
        if isinstance(value, FunctionType):
            return value, 0, None
        forward = getattr(type(value), "forward", type(value).__call__)
        return (forward, 1, value) if isinstance(forward, FunctionType) else None


def inspected(function: Any) -> Any:
    """Return the function behind decorators."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def _closure(function: Any) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or ())
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return found


def _decorated_off(code: CodeType) -> Found | None:
    """The decorator that switches recording off for a function, if it has one."""
    tree = parse(code)
    for decorator in getattr(tree, "decorator_list", ()):
        if _called(decorator) in OFF:
            return Found("no_grad", code.co_filename, decorator.lineno)
    return None


def _joined(states: Iterable[Found | None]) -> Found | None:
    """What comes from several: with history if any has it, else as the first that was cut off."""
    found = [state for state in states if state is not None]
    return None if not found else LIVE if LIVE in found else found[0]


def _dotted(e: ast.AST) -> str:
    if isinstance(e, ast.Name):
        return e.id
    if isinstance(e, ast.Attribute):
        before = _dotted(e.value)
        return f"{before}.{e.attr}" if before else ""
    if isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Constant):
        before = _dotted(e.value)
        return f"{before}[{e.slice.value!r}]" if before else ""
    return ""


def _called(e: ast.expr) -> str:
    """The last name of what is called, or of what stands there without a call."""
    e = e.func if isinstance(e, ast.Call) else e
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""


def _first_constant(e: ast.expr) -> Any:
    return e.args[0].value if isinstance(e, ast.Call) and e.args and isinstance(e.args[0], ast.Constant) else None


def made(tensor: TensorBase, frame: FrameType | None) -> list[Found]:
    """Return the cuts in the statement that made a tensor, as the frames that know its name have it."""
    while frame is not None:
        names = {**frame.f_globals, **frame.f_locals}
        known = [name for name, value in names.items() if value is tensor]
        tree = parse(frame.f_code) if known and frame.f_code.co_filename not in OURS else None
        if tree is not None:
            return _cuts_of_binding(tree, set(known), frame)
        frame = frame.f_back
    return []


def _cuts_of_binding(tree: ast.AST, names: set[str], frame: FrameType) -> list[Found]:
    found: list[Found] = []
    for off, statement in _with_blocks(tree, None):
        bound = [target.id for target in ast.walk(statement) if isinstance(target, ast.Name)
                 and isinstance(target.ctx, ast.Store)] if isinstance(statement, (ast.Assign, ast.AnnAssign)) else []
        if statement.lineno <= frame.f_lineno and names & set(bound):
            file = frame.f_code.co_filename
            found = [Found(kind, file, line) for kind, line in _kinds(statement)]
            found += [] if off is None else [Found("no_grad", file, off)]
    return found


def _with_blocks(tree: ast.AST, off: int | None) -> Iterator[tuple[int | None, ast.stmt]]:
    """Yield all statements, each with the line of the no_grad block that it is in."""
    for statement in ast.iter_child_nodes(tree):
        if isinstance(statement, ast.stmt):
            yield off, statement
            inside = isinstance(statement, ast.With) and any(_called(i.context_expr) in OFF for i in statement.items)
            yield from _with_blocks(statement, statement.lineno if inside else off)


def _kinds(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Compare):
            yield "comparison", node.lineno
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            yield "data", node.lineno
        elif isinstance(node, ast.Call):
            kind = Follower([]).cutting(_called(node), node, isinstance(node.func, ast.Attribute))
            if kind and kind != "tensor":
                yield kind, node.lineno
