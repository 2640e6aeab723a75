"""Element types: of every pair under every kind of operation, and of what `tensor` makes of data."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import DTYPES, attempt, difference, name_of, stands_for

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

NAMES = [name_of(d) for d in DTYPES]
SCALARS = (True, 2, 2.5, 1.5j)
KINDS = ("vector", "zero_dim")


def operand(library: Any, name: str, kind: str) -> Any:
    values = [3, 1, 2] if name != "bool" else [True, False, True]
    return library.tensor(values if kind == "vector" else values[0], dtype=getattr(library, name))


OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{name: (lambda f: lambda library, a, b: f(a, b))(getattr(operator, name)) for name in
       ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "ge", "eq", "ne", "and_", "or_", "xor")},
    "where": lambda library, a, b: library.where(library.tensor([True, False, True]), a, b),
    "cat": lambda library, a, b: library.cat([a.reshape(-1), b.reshape(-1)]),
    "stack": lambda library, a, b: library.stack([a.reshape(-1)[:1], b.reshape(-1)[:1]]),
    "maximum": lambda library, a, b: library.maximum(a, b),
    "fmod": lambda library, a, b: library.fmod(a, b),
    "atan2": lambda library, a, b: library.atan2(a, b),
    "trunc_division": lambda library, a, b: library.div(a, b, rounding_mode="trunc"),
    "add_alpha": lambda library, a, b: library.add(a, b, alpha=2),
    "lerp": lambda library, a, b: library.lerp(a, b, 0.5),
    "addcmul": lambda library, a, b: library.addcmul(a, b, b, value=2),
    "clamp": lambda library, a, b: library.clamp(a, b),
    "logical_and": lambda library, a, b: library.logical_and(a, b),
    "isclose": lambda library, a, b: library.isclose(a, b),
    "result_type": lambda library, a, b: library.result_type(a, b),
}
IN_PLACE = {name: (lambda f: lambda library, a, b: f(a, b))(getattr(operator, name)) for name in
            ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand")}
IN_PLACE |= {"copy_": lambda library, a, b: a.copy_(b), "setitem": lambda library, a, b: (a.__setitem__(..., b), a)[1],
             "fill_": lambda library, a, b: a.fill_(b), "lt_": lambda library, a, b: a.lt_(b)}
OF_TENSORS = {"cat", "stack", "maximum", "logical_and", "atan2", "isclose", "lerp", "addcmul"}  # take no bare numbers


# What PyTorch refuses and we compute: words of its error, and the reason.
LENIENT = {
    "with a bool tensor is not supported": "a boolean counts as 0 or 1 in `1.0 - mask`, as it does in `1.0 + mask`",
    "did not match": "isclose promotes, as the other comparisons do",
    "expected dtype": "lerp promotes, as the other arithmetic does",
    "does not support bool input": "argmax finds the first True",
    "does not support complex": "complex numbers are ordered as NumPy orders them",
}


def unimplemented(error: Exception) -> bool:
    """PyTorch has no kernel for the type, which says nothing about the rule."""
    return isinstance(error, NotImplementedError) or any(words in str(error) for words in ("not implemented for", "not supported for", "Promotion for uint16"))


def disagreement(name: str, operation: Callable[[Any, Any, Any], Any], arguments: Callable[[Any], tuple[Any, Any]]) -> str:
    expected, theirs = attempt(lambda: operation(torch, *arguments(torch)), quiet=True)
    if theirs is not None and unimplemented(theirs):
        return ""
    found, mine = attempt(lambda: operation(mg, *arguments(mg)))
    if theirs is not None:
        agreed = mine is not None and stands_for(theirs, mine) or mine is None and any(words in str(theirs) for words in LENIENT)
        return "" if agreed else f"{name}: {mine!r} or {found}, where PyTorch raised {theirs!r}"
    if mine is not None:
        return f"{name}: {type(mine)}: {mine}, where PyTorch gave {expected}"
    text = difference(without_complex32(expected), found)
    return f"{name}: {text}" if text else ""


def without_complex32(result: Any) -> Any:
    """PyTorch's answer in the smallest complex type that NumPy has."""
    if result is torch.complex32:
        return torch.complex64
    return result.to(torch.complex64) if isinstance(result, torch.Tensor) and result.dtype is torch.complex32 else result


def check(cases: Any, operations: dict[str, Any]) -> None:
    failed = []
    for label, arguments in cases:
        for name, operation in operations.items():
            text = disagreement(f"{label} {name}", operation, arguments)
            if text:
                failed.append(text)
    assert not failed, f"{len(failed)} differ\n" + "\n".join(failed[:12])


def pairs(first: str) -> Any:
    for second, (kind_a, kind_b) in itertools.product(NAMES, itertools.product(KINDS, KINDS)):
        yield (f"{first} {kind_a}, {second} {kind_b}:",
               lambda library, second=second, a=kind_a, b=kind_b: (operand(library, first, a), operand(library, second, b)))


@pytest.mark.parametrize("first", NAMES)
def test_two_tensors(first: str) -> None:
    check(pairs(first), OPERATIONS)


@pytest.mark.parametrize("first", NAMES)
def test_in_place(first: str) -> None:
    check(pairs(first), IN_PLACE)


@pytest.mark.parametrize("first", NAMES)
def test_tensor_and_number(first: str) -> None:
    cases = [(f"{first} {kind}, {value!r}:", lambda library, kind=kind, value=value: (operand(library, first, kind), value))
             for kind, value in itertools.product(KINDS, SCALARS)]
    check(cases, {name: f for name, f in (OPERATIONS | IN_PLACE).items() if name not in OF_TENSORS | {"clamp", "copy_"}})
    swapped = [(f"{value!r}, {first} {kind}:", lambda library, kind=kind, value=value: (value, operand(library, first, kind)))
               for kind, value in itertools.product(KINDS, SCALARS)
               if (first, value) != ("bfloat16", 1.5j)]  # PyTorch rounds 1 / x to bfloat16 on its way to a complex quotient
    check(swapped, {name: OPERATIONS[name] for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "eq", "and_", "where", "result_type")})


@pytest.mark.parametrize("first", NAMES)
def test_one_tensor(first: str) -> None:
    """What a function of one tensor returns for integers and booleans, and which it refuses."""
    names = ("neg", "abs", "sign", "sqrt", "exp", "sin", "floor", "round", "square", "reciprocal", "sum", "prod", "mean", "var", "std", "cumsum", "cumprod",
             "max", "min", "amax", "argmax", "any", "all", "logical_not", "bitwise_not", "isnan", "isfinite", "relu", "sigmoid", "trunc", "frac", "erf",
             "logsumexp", "softmax", "norm", "sort", "conj", "positive", "count_nonzero", "rsqrt", "tanh", "signbit", "aminmax", "nonzero", "log1p", "deg2rad",
             "std_mean", "logit", "exp2", "argsort", "isinf", "clone", "sgn", "fix", "log_softmax")
    needs_dim = {"cumsum", "cumprod", "logsumexp", "softmax", "log_softmax"}

    def call(name: str) -> Callable[[Any, Any, Any], Any]:
        return lambda library, x, dim: getattr(library, name)(x, dim) if name in needs_dim else getattr(library, name)(x)

    cases = [(f"{first} {kind}:", lambda library, kind=kind: (operand(library, first, kind), 0)) for kind in KINDS]
    check(cases, {name: call(name) for name in names})


def test_promote_types_and_can_cast() -> None:
    wrong = []
    for a, b in itertools.product(DTYPES, DTYPES):
        expected, refused = attempt(lambda: torch.promote_types(a, b), quiet=True)
        if refused is None and name_of(mg.promote_types(DTYPES[a], DTYPES[b])) != name_of(expected):
            wrong.append(f"promote_types({a}, {b}): {mg.promote_types(DTYPES[a], DTYPES[b])}")
        if torch.can_cast(a, b) != mg.can_cast(DTYPES[a], DTYPES[b]):
            wrong.append(f"can_cast({a}, {b}): {mg.can_cast(DTYPES[a], DTYPES[b])}")
    assert not wrong, "\n".join(wrong)


def test_conversions_between_all_types() -> None:
    for a, b in itertools.product(NAMES, NAMES):
        expected, _ = attempt(lambda: operand(torch, a, "vector").to(getattr(torch, b)), quiet=True)
        assert difference(expected, operand(mg, a, "vector").to(getattr(mg, b))) == ""


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_default_type(default: str) -> None:
    def results(library: Any) -> list[Any]:
        return [library.tensor(1.5), library.tensor([1, 2.5]), library.ones(2), library.tensor([1]) * 1.5, library.tensor([1]) / 2, library.tensor(2j),
                library.full((2,), 1.5), library.arange(0, 2, 0.5), library.tensor([True]) + 1.5, library.sqrt(library.tensor([4])),
                library.tensor([1], dtype=library.float32) + 1.5, library.linspace(0, 1, 3), library.tensor([])]

    torch.set_default_dtype(getattr(torch, default))
    mg.set_default_dtype(getattr(mg, default))
    try:
        assert difference(results(torch), results(mg)) == ""
    finally:
        torch.set_default_dtype(torch.float32)
        mg.set_default_dtype(mg.float32)


# ---------------------------------------------------------------------------------------------------------- what data becomes

def data(library: Any) -> list[Any]:
    """Everything that people hand to `tensor`, but lists of arrays and tensors that PyTorch half refuses and we stack."""
    t = library.tensor
    return [
        1, 1.5, True, 2j, [], [[]], [[], []], (), [1], [1, 2.5], [1, True], [True, False], [True, 1.5], [1, 2j], [1.5, 2j], [[1, 2], [3, 4]],
        [[1, 2], [3, 4.5]], [[True], [2]], ((1, 2), (3, 4)), [(1, 2), [3, 4]], range(3), [range(2), range(2)], 2**40, [2**62], -1, [0.1], 1e300, [1e-300],
        float("nan"), [float("inf"), 1], np.float32(1.5), np.float64(1.5), np.int8(3), np.int64(3), np.bool_(True), np.complex64(1j), np.uint16(7),
        [np.float32(1.5)], [np.float64(1.5), 1], [np.int8(3), np.int8(4)], [np.int32(1), 2.5], [np.bool_(True), False], [1, np.float64(2.5)],
        np.array(1.5), np.array([1, 2]), np.array([1.5], np.float16), np.zeros((0, 3)), np.zeros((2, 0), np.int32), np.array([True]), np.array([[1j]]),
        np.arange(6).reshape(2, 3).T, np.arange(6)[::2], [np.array([1, 2]), np.array([3, 4])], [np.array([1.5], np.float32)],
        [np.zeros((2, 2), np.float64)], t(1.5), t([1, 2]), t([1.5], dtype=library.float64), [t(1), t(2)], [t(1.5), t(2)], [t(1), 2.5], [2, t(1.5)],
        [[t(1.5), 2.0], [3, t(4)]], [t(True), t(False)], [t(1.5, dtype=library.float64), 1], [t(1, dtype=library.int8)], (t(2),),
        [[[1], [2]], [[3], [4]]], [[1.0, 2], [True, 4]], "bad", ["bad"], [[1, 2], [3]], [[1], 2], None, [None], {}, {1}, object(), [1, "a"], [[1, [2]]],
        b"x", [2**64], 2**70, [{}], [1, None], np.array(["a"]), np.array([object()]), [np.zeros(2), np.zeros(3)], [[1, 2], np.array([3, 4])],
    ]


def show(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("function", ["tensor", "as_tensor"])
def test_inferred_type(function: str) -> None:
    wrong = []
    for mine, theirs in zip(data(mg), data(torch)):
        expected, their_error = attempt(lambda: getattr(torch, function)(theirs), quiet=True)
        found, our_error = attempt(lambda: getattr(mg, function)(mine))
        if their_error is not None or our_error is not None:
            if their_error is None or our_error is None or not stands_for(their_error, our_error):
                wrong.append(f"{show(theirs)}: {our_error!r} {found}, not {their_error!r} {expected}")
        elif difference(expected, found):
            wrong.append(f"{show(theirs)}: {difference(expected, found)}")
    assert not wrong, "\n".join(wrong)


def test_given_type() -> None:
    """`tensor(data, dtype=...)` for all types; what PyTorch cannot convert, we refuse."""
    wrong = []
    for name in sorted(set(NAMES) - {"uint64"}):  # to which PyTorch converts only Python's integers
        for value in ([1, 0], [1.7, -1.2], [True], 300, [2j], np.array([1.5]), [np.int64(3)]):
            expected, theirs = attempt(lambda: torch.tensor(value, dtype=getattr(torch, name)), quiet=True)
            found, mine = attempt(lambda: mg.tensor(value, dtype=getattr(mg, name)))
            if theirs is not None or mine is not None:
                if theirs is None or mine is None or not stands_for(theirs, mine):
                    wrong.append(f"{name} {value!r}: {mine!r} {found}, not {theirs!r} {expected}")
            elif difference(expected, found):
                wrong.append(f"{name} {value!r}: {difference(expected, found)}")
    assert not wrong, "\n".join(wrong)
