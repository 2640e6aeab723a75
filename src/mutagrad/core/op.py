"""What an operation is: a forward and one derivative rule for each input.

A rule's parameters name what it needs, and only that is saved: an input, `out`, a setting, or `x_shape` for the shape
of x alone; `g` is the incoming adjoint. A rule runs on raw arrays in an ordinary sweep and on tensors in a recorded
one; `xp` holds the operations by name for whichever it is.
"""
from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeVar

from ..arrays import np
from ..arrays.bfloat16 import SHORT, in_single
from ..arrays.compiled.expressions import Symbol
from ..arrays.kinds import IN_USE, kind_of
from ..base.errors import GradientError
from ..base.provenance import OURS
from .factory import CODEGEN_GLOBALS
from .graph import Adjoint

Rule = Callable[..., Any]

RAW = SimpleNamespace()  # `xp` for raw arrays: every operation's forward, by name
RECORDED = SimpleNamespace()  # `xp` for tensors: every operation's function, by name
TABLE: dict[str, Op] = {}


def same(g: Adjoint) -> Adjoint:
    """The rule of an input that is passed through unchanged; as add's is this, `x += y` is an accumulating write."""
    return g


def zero(xp: SimpleNamespace, g: Adjoint) -> Any:
    """The rule of an input that the result does not depend on almost everywhere, such as floor's."""
    return xp.zeros_like(g)


class Op:
    """A declared operation.

    `saves` says for each slot of `node.saved` what it is: ("input", i), ("out", 0), ("shape", i) or ("setting", i); and
    `needed` which inputs' rules want it.
    """

    __slots__ = ("name", "forward", "inputs", "settings", "rules", "saves", "needed", "reverse", "frees", "adds",
                 "promotes", "conjugate", "threaded", "widened", "into", "function", "declared", "numbers")
    pure = True  # its reverse runs no code of the user's, and may be computed again
    reverse: Callable[..., Any]
    conjugate: Op
    threaded: Op
    widened: Op
    function: Callable[..., Any]

    def __init__(self, name: str, forward: Callable[..., Any] | None, inputs: Sequence[str], settings: Sequence[str],
                 rules: dict[str, Rule | None], promotes: str = "", into: bool = False) -> None:
        self.name, self.forward, self.inputs, self.settings = name, forward, tuple(inputs), tuple(settings)
        self.rules, self.promotes, self.into = rules, promotes, into
        self.saves, self.needed = self._plan()
        self.frees = any(kind in ("input", "out") for kind, _ in self.saves)
        self.adds = bool(inputs) and rules.get(inputs[0]) is same
        self.declared = False
        self.numbers: tuple[str, ...] = ()  # those of the settings that the user gives as numbers

    def __getattr__(self, name: str) -> Any:
        """What is made when first asked for: generating it all would take most of the time to import this package."""
        if name == "reverse":
            made: Any = _generate_reverse(self)
        elif name in VARIANTS:
            made = VARIANTS[name](self) if self.declared else self
        else:
            raise AttributeError(name)
        setattr(self, name, made)
        return made

    def _plan(self) -> tuple[tuple[tuple[str, int], ...], tuple[frozenset[int], ...]]:
        users: dict[tuple[str, int], set[int]] = {}
        for i, name in enumerate(self.inputs):
            rule = self.rules.get(name)
            for parameter in parameters(rule) if rule else ():
                if parameter not in ("g", "xp"):
                    users.setdefault(self.source(parameter), set()).add(i)
        return tuple(users), tuple(frozenset(u) for u in users.values())

    def source(self, parameter: str) -> tuple[str, int]:
        if parameter in self.inputs:
            return "input", self.inputs.index(parameter)
        if parameter == "out":
            return "out", 0
        if parameter in self.settings:
            return "setting", self.settings.index(parameter)
        if parameter.endswith("_shape") and parameter[:-6] in self.inputs:
            return "shape", self.inputs.index(parameter[:-6])
        raise TypeError(f"{self.name}: a rule asks for {parameter!r}, "
                        f"which is none of {self.inputs + self.settings}, out, g, xp")

    def __repr__(self) -> str:
        return f"<op {self.name}>"


# How to make the forms of a declared operation for complex results, large arrays and short floats; codegen.py knows.
VARIANTS: dict[str, Callable[[Op], Op]] = {}


def variant(op: Op, dtype: Any) -> Op:
    """Return the form of an operation whose rules are right for results of this array type."""
    return op.conjugate if dtype.kind == "c" else op.widened if dtype.char in SHORT else op


# Operations that depend on the very type they are given.
ABOUT_TYPES = {"cast_float", "nextafter", "normal", "to_device"}


# What NumPy, or ml_dtypes, converts short floats for, element by element; the result is the same.
ONE_BY_ONE = {np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.equal,
              np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}


def forward_for(op: Op, dtype: Any) -> Any:
    """Return the forward for arrays of this type: what is not NumPy's own computes short floats in float32."""
    in_float32 = (dtype.char in SHORT and op.name not in ABOUT_TYPES
                  and (not op.into or op.forward in ONE_BY_ONE))
    return in_single(op.forward, dtype) if in_float32 else op.forward


def parameters(rule: Rule) -> tuple[str, ...]:
    code = rule.__code__
    return code.co_varnames[: code.co_argcount]


# The commonest rules, known by their compiled form, are written out instead of called.
_AS_TEXT = {rule.__code__.co_code: text for rule, text in (
    (same, "{0}"), (lambda g, y: g * y, "{0} * {1}"), (lambda g, y: g / y, "{0} / {1}"), (lambda g: -g, "-{0}"))}


def _generate_reverse(op: Op) -> Callable[..., tuple[Any, ...]]:
    """`reverse(xp, g, s, i)`: the adjoints of all inputs whose link `i[k]` is not None, out of the saved values `s`."""
    closure: dict[str, Any] = {"missing": lambda name: _no_derivative(op, name)}
    terms = []
    for k, name in enumerate(op.inputs):
        rule = op.rules.get(name)
        if rule is None:
            terms.append(f"None if i[{k}] is None else missing({name!r})")
            continue
        given = [p if p in ("g", "xp") else f"s[{op.saves.index(op.source(p))}]" for p in parameters(rule)]
        applied = _AS_TEXT.get(rule.__code__.co_code, "").format(*given)
        if not applied:
            closure[f"rule{k}"] = rule
            applied = f"rule{k}({', '.join(given)})"
        terms.append(f"None if i[{k}] is None else {applied}")
    source = f"def call(xp, g, s, i):\n    return ({''.join(term + ', ' for term in terms)})\n"
    reverse: Callable[..., tuple[Any, ...]] = define(source, f"{op.name}_reverse", **closure)
    return reverse


def _no_derivative(op: Op, name: str) -> None:
    raise GradientError(f"{op.name}: no derivative with respect to {name!r} is known",
                        why="the operation was declared without one for this input", fix=f"pass {name}.detach()")


_factories: dict[str, Any] = {}


def define(source: str, name: str, **closure: Any) -> Any:
    """Define the generated function `call` so that tracebacks show it and provenance skips it.

    `closure` is what differs between operations; everything else the generated code names is in CODEGEN_GLOBALS, which
    all share. Operations of one form have the same source, which is compiled once.
    """
    if source not in _factories:
        body = (f"    {line}" for line in source.splitlines())
        lines = [f"def build({', '.join(closure)}):", *body, "    return call"]
        filename = f"<mutagrad generated {len(_factories)}>"
        OURS.add(filename)
        text = "\n".join(lines) + "\n"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        exec(compile(text, filename, "exec"), CODEGEN_GLOBALS)
        _factories[source] = CODEGEN_GLOBALS.pop("build")
    function = _factories[source](**closure)
    function.__code__ = function.__code__.replace(co_name=name)
    function.__name__ = function.__qualname__ = name
    return function


_deferred: dict[tuple[Op, str], tuple[Any, Callable[[], str]]] = {}
DESCRIPTIONS: dict[str, str] = {}  # docstrings of generated functions, by name; ops/descriptions.py fills it in


def define_later(source: Callable[[], str], name: str, arguments: Sequence[str], out: bool, **closure: Any) -> Any:
    """Return a function whose source is generated when it is first called; it then has the code that `define` gives."""
    given = ", ".join(arguments)
    head, settings = (f"def call({given}, *, out=None):", "{'out': out}") if out else (f"def call({given}):", "{}")
    body = f"    return first_call(({', '.join(closure)},), ({given},), {settings}, {name[-1] == '_'})"
    function = define(f"{head}\n{body}\n", name, **closure)
    function.__doc__ = DESCRIPTIONS.get(name)
    _deferred[closure["OP"], name] = function, source
    return function


def generated(op: Op, name: str) -> str:
    """Return the source of a function of an operation, whether or not it has been called yet."""
    return _deferred[op, name][1]()


def _first_call(closure: tuple[Any, ...], arguments: tuple[Any, ...], settings: dict[str, Any], in_place: bool) -> Any:
    op = closure[0]
    name = op.name + "_" * in_place
    function, source = _deferred[op, name]
    real = define(source(), name, **dict(zip(("OP", "forward"), closure)))
    function.__kwdefaults__, function.__code__ = real.__kwdefaults__, real.__code__
    return function(*arguments, **settings)


CODEGEN_GLOBALS["first_call"] = _first_call


def register(op: Op, raw: Callable[..., Any] | None, function: Any) -> Any:
    """Enter an operation into the table, and into `xp` under both its forms."""
    if op.name in TABLE:
        raise ValueError(f"operation {op.name!r} is declared twice")
    TABLE[op.name] = op
    setattr(RAW, op.name, raw)
    setattr(RECORDED, op.name, function)
    return function


def kernel(name: str, kind: type = np.ndarray) -> Callable[[Kernel], Kernel]:
    """Return a decorator that makes a function the way in which an operation is computed for one kind of array.

    What the operation was declared with stays as what it means, for kinds that have no kernel of it. So a kernel may be
    impure, or written for speed, or in another language; it takes the same arguments, and may return NotImplemented for
    those that it is not for. `name` is that of a declared operation, or of another function in `xp`.
    """
    op = TABLE.get(name)
    declared = KERNELS.get(name)
    if declared is None:
        pure = getattr(RAW, name) if op is None or op.forward is None else op.forward
        declared = KERNELS[name] = {None: pure}
        _compute_by(name, op, _choosing(declared))

    def enter(function: Kernel) -> Kernel:
        declared[kind] = function
        return function

    return enter


Kernel = TypeVar("Kernel", bound=Callable[..., Any])
# By operation and kind of array; None: what it was declared with.
KERNELS: dict[str, dict[type | None, Callable[..., Any]]] = {}


def _choosing(kernels: dict[type | None, Callable[..., Any]]) -> Callable[..., Any]:
    pure = kernels[None]

    def forward(*arguments: Any, **into: Any) -> Any:
        if into or arguments[0].__class__ is Symbol:  # NumPy's own function, computing into memory; or what it computes
            return pure(*arguments, **into)
        function = kernels.get(kind_of(arguments) if IN_USE else np.ndarray, pure)
        found = function(*arguments)
        return pure(*arguments) if found is NotImplemented else found

    return forward


def _compute_by(name: str, op: Op | None, forward: Callable[..., Any]) -> None:
    """Exchanges the forward of an operation, wherever it is kept; its function may have been called already."""
    setattr(RAW, name, forward)
    if op is not None:
        op.forward = forward
        for variable, cell in zip(op.function.__code__.co_freevars, op.function.__closure__ or ()):
            if variable == "forward":
                cell.cell_contents = forward
