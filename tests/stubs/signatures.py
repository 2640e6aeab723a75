"""The text of a function or method in a stub: its parameters, their types and defaults, and what it returns."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from inspect import Parameter, Signature
from math import isfinite
from types import FunctionType
from typing import Any

import mutagrad as mg

from .names import RESULTS, TENSOR, Scope, full_name, qualified
from .observed import FLAGS, Observation, Table, takes_numbers

ANY = "typing.Any"
VALUE = f"{TENSOR} | builtins.complex | typing.SupportsFloat"  # the last is for scalars and arrays of NumPy

# What parameters are by their names, where their annotations say no more than Any.
BY_NAME = {name: kind for names, kind in {
    "input self x tensor tensor1 tensor2 mat mat1 mat2 vec vec1 vec2 batch1 batch2 mask": TENSOR,
    "tensors": f"collections.abc.Sequence[{TENSOR}]",
    "dtype": "mutagrad.core.dtypes.dtype | builtins.type",
    "device": "mutagrad.base.device.device | builtins.str | builtins.int",
    "generator": "mutagrad.ops.random.generator.Generator",
    "layout": "mutagrad.base.layout.layout",
    "memory_format": "mutagrad.base.layout.memory_format",
}.items() for name in names.split()}

_OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift"
IN_PLACE_OPERATORS = {f"__i{name}__" for name in _OPERATORS.split()}

# Functions whose arguments decide what they return; OVERLOAD_NAMES has the names.
_BY_DIM = """
    (input: Tensor, dim: int, keepdim: bool = False, *, out: Any = None) -> return_types.{0}
    (input: Tensor, *, axis: int, keepdims: bool | None = None, out: Any = None) -> return_types.{0}"""
_EXTREME = """
    (input: Tensor, *, out: Tensor | None = None) -> Tensor
    (input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor""" + _BY_DIM
_MIDDLE = """
    (input: Tensor, dim: None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor""" + _BY_DIM
_AT_LEAST = """
    (tensor: Tensor, /) -> Tensor
    (*tensors: Any) -> tuple[Tensor, ...]"""
OVERLOADS = {
    "max": _EXTREME.format("max"),
    "min": _EXTREME.format("min"),
    "median": _MIDDLE.format("median"),
    "nanmedian": _MIDDLE.format("nanmedian"),
    "atleast_1d": _AT_LEAST,
    "atleast_2d": _AT_LEAST,
    "atleast_3d": _AT_LEAST,
    "trace": """
    (input: Tensor, *, out: Tensor | None = None) -> Tensor
    (*, max_events: int = 50_000, title: str = "") -> Trace""",
    "where": """
    (condition: Tensor, input: None = None, other: None = None) -> tuple[Tensor, ...]
    (condition: Tensor, input: Value, other: Value, *, out: Tensor | None = None) -> Tensor""",
    "Tensor.as_subclass": "(self, cls: type[AnyTensor]) -> AnyTensor",
    "Tensor.size": """
    (self, dim: None = None) -> Size
    (self, dim: int) -> int""",
    "Tensor.stride": """
    (self, dim: None = None) -> tuple[int, ...]
    (self, dim: int) -> int""",
    "Tensor.type": """
    (self, dtype: None = None, non_blocking: bool = False) -> str
    (self, dtype: DType | str, non_blocking: bool = False) -> Tensor""",
}
OVERLOAD_NAMES = {
    "Any": ANY, "AnyTensor": "mutagrad.core.leaf.AnyTensor", "DType": BY_NAME["dtype"], "Tensor": TENSOR,
    "Trace": "mutagrad.explain.tracing.Trace",
    "Value": VALUE, "Size": "mutagrad.core.size.Size", "return_types": RESULTS,
    **{name: f"builtins.{name}" for name in ("bool", "int", "str", "tuple", "type")},
}


@cache
def overloads() -> dict[Any, list[Signature]]:
    """Return the signatures in OVERLOADS, by their functions."""
    found = {}
    for name, text in OVERLOADS.items():
        function = getattr(mg.Tensor, name[7:]) if name.startswith("Tensor.") else getattr(mg, name)
        found[function] = [written_out(line.strip()) for line in text.strip().splitlines()]
    return found


def written_out(text: str) -> Signature:
    """Return the signature that a text like `(x: int) -> str` says, with full names."""
    scope: dict[str, Any] = {}
    exec(f"def f{text}: ...", scope)
    return with_types(inspect.signature(scope["f"]), lambda a: qualified(a, OVERLOAD_NAMES.__getitem__))


def with_types(signature: Signature, change: Callable[[str], str]) -> Signature:
    """Return a signature with all annotations changed."""
    def changed(annotation: Any) -> Any:
        return annotation if annotation is Signature.empty else change(annotation)

    parameters = [p.replace(annotation=changed(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=changed(signature.return_annotation))


# -------------------------------------------------------------------------------------------------------- one function


def declared(function: FunctionType) -> Signature:
    """Return a function's signature as its source declares it, with full names."""
    source = inspect.unwrap(function)
    module = source.__globals__["__name__"]  # of a generated function None, which has no annotations
    full = partial(full_name, module)
    return with_types(inspect.signature(function), lambda annotation: qualified(annotation, full))


def parameter_type(function: FunctionType, place: int, parameter: Parameter, returns: str) -> str:
    """Return the type of a parameter: as declared, or else what its name says."""
    name, known = parameter.name, parameter.annotation
    if known is not Parameter.empty and ANY not in known:
        return str(known)
    if parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
        return ANY
    if name == "out":
        kind = TENSOR if returns == TENSOR else ANY
    elif function in (mg.Tensor.__eq__, mg.Tensor.__ne__):
        kind = "builtins.object"
    elif name in ("other", "exponent", "input") and place == 1:
        kind = VALUE if takes_numbers(function, 1) else TENSOR
    elif place == 0 and name in ("input", "x") and len(operands(function)) > 1 and takes_numbers(function, 0):
        kind = VALUE
    else:
        kind = BY_NAME.get(name, ANY)
    if known not in (Parameter.empty, ANY) and not kind.startswith(known.partition("[")[0]):
        return str(known)  # as `Sequence[Any]`, where the name does not say of what
    return f"{kind} | None" if parameter.default is None and kind != ANY else kind


def operands(function: FunctionType) -> list[Parameter]:
    """Return the parameters that must be given."""
    parameters = inspect.signature(function).parameters.values()
    return [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


def return_type(name: str, function: FunctionType, table: Table, declared: str) -> str:
    """Return the type of the results: as declared, or, where that leaves something open, as observed."""
    if ANY not in declared and " | " not in declared:
        return declared
    if name.startswith("_foreach_"):
        return f"builtins.tuple[{TENSOR}, ...]"
    if is_write(name):
        return TENSOR
    seen = table.functions[function].usual if function in table.functions else set()
    if len(seen) != 1:
        return declared
    found = next(iter(seen))
    counted = declared.replace(ANY, TENSOR)  # `tuple[Any, Any]` says how many tensors there are
    return counted if found == f"builtins.tuple[{TENSOR}, ...]" and declared.startswith("builtins.tuple[") else found


def is_write(name: str) -> bool:
    """Whether a name is that of a function or operator that writes into its first argument and returns it."""
    return name.endswith("_") and not name.endswith("__") or name in IN_PLACE_OPERATORS


def signatures(name: str, function: FunctionType, table: Table) -> list[Signature]:
    """Return the signatures of a function, with full names: one, or several if its arguments decide what it returns."""
    if function in overloads():
        return overloads()[function]
    found = declared(function)
    known = ANY if found.return_annotation is Signature.empty else found.return_annotation
    returns = return_type(name, function, table, known)
    parameters = [p.replace(annotation=parameter_type(function, place, p, returns))
                  for place, p in enumerate(found.parameters.values())]
    if name.startswith("_foreach_"):
        parameters[0] = parameters[0].replace(annotation=BY_NAME["tensors"])
    if name.startswith("__"):  # an operator, for which `out` has no place
        parameters = [p for p in parameters if p.name != "out"]
    return by_flags(found.replace(parameters=parameters, return_annotation=returns), table.functions.get(function))


def by_flags(signature: Signature, seen: Observation | None) -> list[Signature]:
    """Return the signature, or one for each flag of FLAGS that turns its result into a tuple."""
    flags = [name for name in FLAGS if name in signature.parameters and signature.parameters[name].default is False]
    if not flags or seen is None or not seen.flagged:
        return [signature]
    usual = replaced(signature, dict.fromkeys(flags, "typing.Literal[False]"))
    set_by_name = [flagged(signature, flag, *seen.flagged) for flag in flags]
    return [usual, *set_by_name, signature.replace(return_annotation=ANY)]


def replaced(signature: Signature, types: dict[str, str]) -> Signature:
    parameters = signature.parameters.values()
    return signature.replace(parameters=[p.replace(annotation=types.get(p.name, p.annotation)) for p in parameters])


def flagged(signature: Signature, flag: str, returns: str) -> Signature:
    """Return the signature of calls in which the flag is set, by its name."""
    parameters = list(signature.parameters.values())
    place = list(signature.parameters).index(flag)
    keywords = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters[place:]]
    keywords[0] = keywords[0].replace(annotation="typing.Literal[True]", default=Parameter.empty)
    return signature.replace(parameters=[*parameters[:place], *keywords], return_annotation=returns)


# ---------------------------------------------------------------------------------------------------------------- text


def default_text(value: Any) -> str:
    """Return the text of a default, or `...` if it is not a literal."""
    plain = value is None or type(value) in (bool, int, str) or type(value) is float and isfinite(value)
    if type(value) is tuple and value and all(type(v) is int for v in value):
        plain = True
    return repr(value).replace("'", '"') if plain else "..."


def parameter_text(parameter: Parameter, scope: Scope) -> str:
    star = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = "" if parameter.annotation is Parameter.empty else f": {scope.short(parameter.annotation)}"
    default = "" if parameter.default is Parameter.empty else f" = {default_text(parameter.default)}"
    return f"{star}{parameter.name}{kind}{default}"


def parameters_text(parameters: list[Parameter], scope: Scope) -> str:
    """Return the parameters with the marks of those that are given by position or by keyword only."""
    parts = [parameter_text(parameter, scope) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if Parameter.KEYWORD_ONLY in kinds and Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(Parameter.KEYWORD_ONLY), "*")
    if Parameter.POSITIONAL_ONLY in kinds:
        parts.insert(kinds.count(Parameter.POSITIONAL_ONLY), "/")
    return ", ".join(parts)


def function_text(name: str, found: list[Signature], scope: Scope, owner: str = "") -> list[str]:
    """Return the lines that declare a function; `owner` is the first parameter of a method, "self" or "cls"."""
    lines = []
    if owner:  # without a form that takes no tensor
        found = [s for s in found if next(iter(s.parameters.values())).kind is not Parameter.KEYWORD_ONLY]
    for signature in found:
        lines += [f"@{scope.short('typing.overload')}"] if len(found) > 1 else []
        parameters, returns = list(signature.parameters.values()), signature.return_annotation
        if owner:
            first = [] if parameters[0].kind is Parameter.VAR_POSITIONAL else parameters[:1]
            kind = first[0].kind if first else Parameter.POSITIONAL_OR_KEYWORD
            parameters = [Parameter(owner, kind), *parameters[len(first):]]
            returns = "typing_extensions.Self" if is_write(name) and returns == TENSOR else returns
        lines.append(f"def {name}({parameters_text(parameters, scope)}) -> {scope.short(returns)}: ...")
    return lines
