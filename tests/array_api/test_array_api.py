"""Every function of the array API standard against array_api_strict, the standard's reference, on generated inputs.

A case is the arguments of one call; arrays in it are NumPy's and stand for a tensor here and for an array there. Results must
agree in element type, shape, value and, where zero, in sign.
"""
from __future__ import annotations

import inspect
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

strict = pytest.importorskip("array_api_strict", reason="pip install 'mutagrad[dev]'")
xp = mg.ones(1).__array_namespace__()

inf, nan = float("inf"), float("nan")
SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, FLOATS, COMPLEX = SIGNED + UNSIGNED, ("float32", "float64"), ("complex64", "complex128")
REAL, FLOATING, NUMERIC = INTEGERS + FLOATS, FLOATS + COMPLEX, INTEGERS + FLOATS + COMPLEX
ALL = ("bool", *NUMERIC)
SHAPES = ((), (3,), (2, 3), (0,), (2, 0, 3))
PAIRS = (((3,), (3,)), ((2, 1), (3,)), ((), (2, 2)), ((), ()), ((0,), (1,)))
SPECIAL = (nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.0, 3.0, 2.5, -2.5, 1e-30, -1e30)
VERSION = "2024.12"


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """The reference computes in double precision by default."""
    mg.set_default_dtype(mg.float64)
    yield
    mg.set_default_dtype(mg.float32)


# ----------------------------------------------------------------------------------------------------------------- inputs

def draw(dtype: str, shape: tuple[int, ...] = (2, 3), seed: int = 0, low: float = -4, high: float = 5) -> Any:
    """Numbers of a type: integers from `low` (0 without a sign) to `high`, floats between."""
    rng = np.random.default_rng(seed + len(shape))
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(max(low, 0) if dtype in UNSIGNED else low, high, shape).astype(dtype)
    parts = rng.uniform(low, high, (2, *shape))
    return np.asarray(parts[0] + 1j * parts[1] if dtype in COMPLEX else parts[0]).astype(dtype)


def specials(dtype: str) -> Any:
    """All special numbers, or complex numbers with all pairs of them as parts."""
    if dtype in FLOATS:
        return np.array(SPECIAL, dtype)
    found = np.empty((len(SPECIAL), len(SPECIAL)), dtype)
    found.real, found.imag = np.array(SPECIAL)[:, None], np.array(SPECIAL)
    return found.ravel()


def promotable(kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The pairs of types that the standard says how to promote."""
    for a, b in itertools.product(kinds, kinds):
        alike = any(a in group and b in group for group in (INTEGERS, FLOATING, ("bool",)))
        if alike and not ("uint64" in (a, b) and {a, b} & set(SIGNED)):
            yield a, b


def widening(kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Of these pairs, those whose second type holds the first."""
    return ((a, b) for a, b in promotable(kinds) if np.promote_types(a, b) == b)


class Case:
    """The arguments of one call."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.arguments, self.settings = arguments, settings

    def call(self, library: Any, function: Any) -> Any:
        return function(*convert(library, self.arguments), **convert(library, self.settings))

    def __repr__(self) -> str:
        shown = [repr(a) if not isinstance(a, np.ndarray) or a.size < 10 else f"{a.dtype}{list(a.shape)}" for a in self.arguments]
        return ", ".join([*shown, *(f"{k}={v!r}" for k, v in self.settings.items())])


def convert(library: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return library.asarray(value.copy())
    if isinstance(value, np.dtype):
        return getattr(library, value.name)
    if isinstance(value, (list, tuple)):
        return type(value)(convert(library, v) for v in value)
    return {k: convert(library, v) for k, v in value.items()} if isinstance(value, dict) else value


# ------------------------------------------------------------------------------------------------------------- comparison

def difference(expected: Any, found: Any, loose: float = 1.0) -> str:
    if isinstance(expected, (tuple, list)):
        if len(found) != len(expected) or getattr(expected, "_fields", ()) != getattr(found, "_fields", ()):
            return f"{type(found)} of {len(found)}, not {type(expected)} of {len(expected)}"
        return next((f"[{i}] {text}" for i, pair in enumerate(zip(expected, found)) if (text := difference(*pair, loose))), "")
    if not isinstance(expected, strict.Device) and not hasattr(expected, "shape"):
        return "" if str(found).rpartition(".")[2] == str(expected).rpartition(".")[2] else f"{found!r}, not {expected!r}"
    theirs, mine = np.asarray(expected), found.detach().numpy()
    if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
        return f"{mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}"
    if theirs.dtype.kind not in "fc":
        return "" if np.array_equal(mine, theirs) else f"{mine}, not {theirs}"
    tolerance = loose * (1e-5 if theirs.dtype.name in ("float32", "complex64") else 1e-12)
    with np.errstate(all="ignore"):
        same = np.isclose(mine, theirs, tolerance, tolerance, equal_nan=True) & (same_signs(mine, theirs) if loose == 1 else True)
    return "" if np.all(same) else f"{mine[~same][:4]}, not {theirs[~same][:4]} at {np.argwhere(~same)[:4].tolist()}"


def same_signs(a: Any, b: Any) -> Any:
    """Whether zeros have the same sign."""
    if a.dtype.kind == "c":
        return same_signs(a.real, b.real) & same_signs(a.imag, b.imag)
    return (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b))


# From which NumPy on the reference computes all cases of a function, and what it raises with an older one.
SINCE = {"take": ((2, 1), TypeError), "linalg.matrix_norm": ((2, 3), ValueError)}
REFUSED = {name: error for name, (version, error) in SINCE.items() if tuple(map(int, np.__version__.split(".")[:2])) < version}


def check(name: str, cases: Iterator[Case], loose: float = 1.0, compare: Any = None) -> None:
    """Calls both for every case; `compare` takes from the results what is determined."""
    ours, theirs = find(xp, name), find(strict, name)
    wrong, count = [], 0
    for case in cases:
        count += 1
        with np.errstate(all="ignore"):
            found = case.call(xp, ours)
            try:
                expected = case.call(strict, theirs)
            except REFUSED.get(name, ()):
                continue
        text = difference(expected, found, loose) if compare is None else compare(case, expected, found)
        if text:
            wrong.append(f"{name}({case}): {text}")
    assert count and not wrong, f"{len(wrong)} of {count} differ\n" + "\n".join(wrong[:8])


def find(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


# ------------------------------------------------------------------------------------------------------------ elementwise

UNARY = {
    **dict.fromkeys(["abs", "negative", "positive", "square", "sign", "conj"], NUMERIC),
    **dict.fromkeys(["isfinite", "isinf", "isnan", "round"], NUMERIC),
    **dict.fromkeys(["ceil", "floor", "trunc"], REAL),
    **dict.fromkeys(["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh"], FLOATING),
    "signbit": FLOATS, "real": COMPLEX, "imag": COMPLEX, "bitwise_invert": ("bool", *INTEGERS), "logical_not": ("bool",),
}
BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply"], NUMERIC), **dict.fromkeys(["equal", "not_equal"], ALL),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"], REAL), "divide": FLOATING, "pow": NUMERIC,
    **dict.fromkeys(["floor_divide", "remainder"], REAL), **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], FLOATS),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], ("bool", *INTEGERS)), **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], ("bool",)),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
}
POSITIVE = {"floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "pow"}  # of integers, for the second operand
NUMBERS = {"bool": (True,), **dict.fromkeys(INTEGERS, (2,)), **dict.fromkeys(FLOATS, (2, 1.5, 0.0, -inf, nan)), **dict.fromkeys(COMPLEX, (2, 1.5, 1 - 2j))}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    def cases() -> Iterator[Case]:
        for dtype in UNARY[name]:
            yield from (Case(draw(dtype, shape)) for shape in SHAPES)
            if dtype in FLOATS or dtype in COMPLEX and name != "sign":  # of an infinite complex number, ours is a direction and theirs nan
                yield Case(specials(dtype))

    check(name, cases())


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    def second(dtype: str, shape: tuple[int, ...]) -> Any:
        return draw(dtype, shape, 1, 1 if name in POSITIVE and dtype in INTEGERS else -4)

    def cases() -> Iterator[Case]:
        for a, b in promotable(BINARY[name]):
            yield from (Case(draw(a, shapes[0]), second(b, shapes[1])) for shapes in PAIRS)
        for dtype in BINARY[name]:
            for number in NUMBERS[dtype]:
                yield Case(draw(dtype), number)
                if name not in POSITIVE or dtype not in INTEGERS:
                    yield Case(number, draw(dtype))
        for dtype in set(BINARY[name]) & set(FLOATS):
            yield Case(specials(dtype)[:, None], specials(dtype))
            if name != "pow":  # for which numbers have faster ways, that differ in the last digit
                yield from (Case(specials(dtype), number) for number in SPECIAL)

    check(name, cases())


# What the standard says itself of numbers that are not finite, and of zeros.
STATED = [
    ("pow", 1.0, nan, 1.0), ("pow", nan, 0.0, 1.0), ("pow", nan, -0.0, 1.0), ("pow", nan, 2.0, nan), ("pow", -2.0, inf, inf), ("pow", -2.0, -inf, 0.0),
    ("pow", -1.0, inf, 1.0), ("pow", 1.0, -inf, 1.0), ("pow", 0.5, inf, 0.0), ("pow", 0.5, -inf, inf), ("pow", inf, 2.0, inf), ("pow", inf, -2.0, 0.0),
    ("pow", -inf, 3.0, -inf), ("pow", -inf, 2.0, inf), ("pow", -inf, -3.0, -0.0), ("pow", -inf, -2.0, 0.0), ("pow", 0.0, 2.0, 0.0), ("pow", 0.0, -2.0, inf),
    ("pow", -0.0, 3.0, -0.0), ("pow", -0.0, 2.0, 0.0), ("pow", -0.0, -3.0, -inf), ("pow", -0.0, -2.0, inf), ("pow", -2.0, 0.5, nan),
    ("atan2", nan, 1.0, nan), ("atan2", 1.0, 0.0, np.pi / 2), ("atan2", 0.0, -0.0, np.pi), ("atan2", -0.0, 0.0, -0.0), ("atan2", -0.0, -1.0, -np.pi),
    ("atan2", inf, inf, np.pi / 4), ("atan2", inf, -inf, 3 * np.pi / 4), ("atan2", -1.0, inf, -0.0), ("atan2", -inf, 1.0, -np.pi / 2),
    ("floor_divide", nan, 1.0, nan), ("floor_divide", inf, inf, nan), ("floor_divide", 0.0, -0.0, nan), ("floor_divide", 0.0, 2.0, 0.0),
    ("floor_divide", -0.0, 2.0, -0.0), ("floor_divide", 1.0, 0.0, inf), ("floor_divide", 1.0, -0.0, -inf), ("floor_divide", 1.0, inf, 0.0),
    ("remainder", inf, 2.0, nan), ("remainder", 1.0, 0.0, nan), ("remainder", 0.0, 2.0, 0.0), ("remainder", -0.0, 2.0, 0.0), ("remainder", 0.0, -2.0, -0.0),
    ("remainder", 1.0, inf, 1.0), ("remainder", 1.0, -inf, -inf), ("remainder", -1.0, inf, inf), ("remainder", -1.0, -inf, -1.0),
    ("hypot", inf, nan, inf), ("hypot", nan, -inf, inf), ("hypot", nan, 1.0, nan), ("logaddexp", nan, 1.0, nan), ("logaddexp", inf, 1.0, inf),
    ("maximum", nan, 1.0, nan), ("minimum", 1.0, nan, nan), ("copysign", 1.0, -0.0, -1.0), ("copysign", 1.0, 0.0, 1.0), ("copysign", nan, -1.0, nan),
    ("nextafter", 0.0, nan, nan), ("nextafter", -0.0, 0.0, 0.0), ("nextafter", 0.0, -0.0, -0.0), ("divide", 1.0, -0.0, -inf), ("divide", 0.0, 0.0, nan),
    ("sign", nan, None, nan), ("sign", -0.0, None, 0.0), ("round", 2.5, None, 2.0), ("round", -0.5, None, -0.0), ("ceil", -0.5, None, -0.0),
    ("signbit", -0.0, None, True), ("sqrt", -0.0, None, -0.0), ("log1p", -1.0, None, -inf), ("expm1", -0.0, None, -0.0), ("atanh", 1.0, None, inf),
    ("reciprocal", -0.0, None, -inf), ("acosh", 0.5, None, nan),
]


@pytest.mark.parametrize("name, x, y, expected", STATED)
def test_what_the_standard_states(name: str, x: float, y: float | None, expected: float) -> None:
    for dtype in (xp.float32, xp.float64):
        arguments = [xp.asarray(v, dtype=dtype) for v in (x, y) if v is not None]
        found = getattr(xp, name)(*arguments).item()
        assert found == pytest.approx(expected, nan_ok=True, rel=1e-6)
        assert expected != 0 or name == "sign" or np.signbit(found) == np.signbit(expected)


def test_clip() -> None:
    def cases() -> Iterator[Case]:
        for dtype, shape in itertools.product(REAL, SHAPES):
            x, low, high = draw(dtype, shape), draw(dtype, shape, 1, -4, 1), draw(dtype, shape, 2, 2, 5)
            yield from (Case(x), Case(x, low), Case(x, low, high), Case(x, None, high), Case(x, min=1), Case(x, max=3), Case(x, 1, 3), Case(x, min=low, max=3))
        for dtype in FLOATS:
            yield from (Case(specials(dtype), -1.0, 2.0), Case(specials(dtype), nan, 1.0))

    check("clip", cases())
    # Where a bound is the zero of the other sign, the standard leaves open which of the two is taken.
    check("clip", (Case(specials(dtype), specials(dtype)[:, None]) for dtype in FLOATS), 2.0)


def test_where() -> None:
    def cases() -> Iterator[Case]:
        for a, b in promotable(ALL):
            yield from (Case(draw("bool", (2, 3)), draw(a, shape), draw(b, (3,), 1)) for shape in ((2, 3), (3,), (), (2, 1)))
        yield from (Case(draw("bool"), draw("float32"), 1.5), Case(draw("bool"), 1, draw("int8")), Case(draw("bool"), True, draw("bool")))

    check("where", cases())


# --------------------------------------------------------------------------------------------------- creation, element types

def dtype_settings(*names: str) -> list[dict[str, Any]]:
    return [{}, *({"dtype": np.dtype(name)} for name in names)]


CREATION: dict[str, list[Case]] = {
    "zeros": [Case(shape, **s) for shape in (3, (), (2, 3), (0,)) for s in dtype_settings(*ALL)],
    "ones": [Case(shape, **s) for shape in (3, (), (2, 3), (0,)) for s in dtype_settings(*ALL)],
    "full": [*(Case((2,), value) for value in (True, 2, 1.5, 1 + 2j, nan)), *(Case(3, 1, dtype=np.dtype(d)) for d in ALL), Case((), 2.5), Case((0, 2), 1)],
    "zeros_like": [Case(draw(d, shape), **s) for d in ALL for shape in SHAPES for s in dtype_settings("float32", "bool")],
    "ones_like": [Case(draw(d, shape), **s) for d in ALL for shape in SHAPES for s in dtype_settings("float32", "bool")],
    "full_like": [*(Case(draw(d, shape), 1) for d in NUMERIC for shape in SHAPES), Case(draw("int8"), 2.5, dtype=np.dtype("float32"))],
    "arange": [Case(5), Case(2, 7), Case(0, 10, 3), Case(5, 0, -2), Case(5, 0), Case(0), Case(2.5), Case(0, 1, 0.25), Case(3, 3), Case(1, stop=4, step=2),
               *(Case(1, 6, 2, dtype=np.dtype(d)) for d in REAL), Case(0.5, 4, dtype=np.dtype("float32"))],
    "linspace": [Case(0, 1, 5), Case(0.0, -3.0, 4), Case(1, 2, 1), Case(1, 2, 0), Case(0, 1, num=4, endpoint=False), Case(1 + 1j, 2, 3),
                 *(Case(0, 4, 5, dtype=np.dtype(d)) for d in FLOATING)],
    "eye": [Case(3), Case(2, 4), Case(4, 2, k=-1), Case(3, k=5), Case(0), *(Case(2, dtype=np.dtype(d)) for d in ALL)],
    "meshgrid": [Case(*(draw(d, (n,), n) for n in sizes), **s) for d in ("int8", "float32") for sizes in ((3,), (2, 3), (2, 3, 4), (0, 2))
                 for s in ({}, {"indexing": "ij"}, {"indexing": "xy"})],
    "tril": [Case(draw(d, shape), **s) for d in ALL for shape in ((3, 3), (2, 3, 4), (0, 2)) for s in ({}, {"k": 1}, {"k": -1}, {"k": 9})],
    "triu": [Case(draw(d, shape), **s) for d in ALL for shape in ((3, 3), (2, 3, 4), (0, 2)) for s in ({}, {"k": 1}, {"k": -1}, {"k": 9})],
    "asarray": [*map(Case, (True, 2, 1.5, 2j, [], [1, 2], [1, 2.5], [[True, False]], [[1, 2], [3, 4]], [1, 2j], (1, 2))),
                *(Case([0, 1], dtype=np.dtype(d)) for d in ALL), *(Case(draw(d), dtype=np.dtype(e)) for d, e in widening(ALL)),
                Case(draw("int8"), copy=True), Case(draw("int8"), copy=False), Case(2**63, dtype=np.dtype("uint64"))],
    "astype": [*(Case(draw(a, shape, low=0), np.dtype(b)) for a, b in itertools.product(ALL, ALL) if a not in COMPLEX or b in COMPLEX for shape in SHAPES),
               *(Case(draw("int8"), np.dtype("int8"), copy=copy) for copy in (True, False))],
    "broadcast_to": [Case(draw("int16", (3,)), (2, 3)), Case(draw("bool", ()), (2,)), Case(draw("float32", (2, 1)), shape=(0, 2, 3)), Case(draw("int8", ()), ())],
    "result_type": [*(Case(np.dtype(a), draw(b)) for a, b in promotable(ALL)), Case(draw("float32", ()), 1.5), Case(np.dtype("int8"), 2), Case(np.dtype("float32"), 2j)],
    "can_cast": [Case(np.dtype(a), np.dtype(b)) for a, b in itertools.product(ALL, ALL) if (a in INTEGERS) == (b in INTEGERS) and (a == "bool") == (b == "bool")],
    "isdtype": [Case(np.dtype(d), kind) for d in ALL for kind in ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating",
                                                                  "numeric", np.dtype("int8"), ("bool", np.dtype("float32"), "integral"))],
}


@pytest.mark.parametrize("name", CREATION)
def test_creation_and_types(name: str) -> None:
    check(name, iter(CREATION[name]))


@pytest.mark.parametrize("name", ["empty", "empty_like"])
def test_empty(name: str) -> None:
    def same(case: Case, expected: Any, found: Any) -> str:
        return "" if tuple(found.shape) == expected.shape and found.dtype.name == str(expected.dtype).rpartition(".")[2] else f"{found.dtype} {found.shape}"

    given = [Case((2, 3)), Case(2, dtype=np.dtype("int8")), Case(())] if name == "empty" else [Case(draw(d, s)) for d in ALL for s in SHAPES]
    check(name, iter(given), compare=same)


def test_broadcasting_together() -> None:
    check("broadcast_arrays", iter([Case(draw("int8", (3,)), draw("float32", (2, 1))), Case(draw("bool", ())), Case(draw("int8", (0, 1)), draw("int8", (4,)))]),
          compare=lambda case, expected, found: difference(tuple(expected), tuple(found)))
    assert xp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)


@pytest.mark.parametrize("dtype", FLOATING)
def test_finfo(dtype: str) -> None:
    for given in (getattr(xp, dtype), xp.ones(2, dtype=getattr(xp, dtype))):
        found, expected = xp.finfo(given), np.finfo(dtype)
        assert (found.bits, found.dtype.name) == (expected.bits, expected.dtype.name)
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(found, name)) is float and getattr(found, name) == getattr(expected, name)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_iinfo(dtype: str) -> None:
    found, expected = xp.iinfo(getattr(xp, dtype)), np.iinfo(dtype)
    assert (found.bits, found.max, found.min, found.dtype) == (expected.bits, expected.max, expected.min, getattr(xp, dtype))


def test_impossible_promotion() -> None:
    for call in (lambda: xp.add(xp.ones(2, dtype=xp.uint64), xp.ones(2, dtype=xp.int8)), lambda: xp.result_type(1, 2), lambda: xp.finfo(xp.int8),
                 lambda: xp.iinfo(xp.float32), lambda: xp.astype(xp.ones(1, dtype=xp.complex64), xp.float32)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(xp.int8, "number")


def test_memory_is_shared_or_copied_as_asked() -> None:
    array = np.arange(3.0)
    shared, copied = xp.asarray(array), xp.asarray(array, copy=True)
    array[0] = 7
    assert shared[0] == 7 and copied[0] == 0
    assert xp.asarray(shared) is shared and xp.asarray(shared, copy=True) is not shared
    frozen = np.arange(2.0)
    frozen.flags.writeable = False
    for forbidden in (lambda: xp.asarray([1, 2], copy=False), lambda: xp.asarray(frozen, copy=False), lambda: xp.asarray(shared, dtype=xp.int8, copy=False)):
        with pytest.raises(ValueError, match="copy"):
            forbidden()
    lent = bytearray(b"ab")
    over = xp.asarray(lent)
    lent[0] = 7
    assert over.dtype is xp.uint8 and over.tolist() == [7, 98]
    view = xp.reshape(shared, (3, 1), copy=False)
    assert view.data_ptr() == shared.data_ptr() and xp.reshape(shared, (3, 1), copy=True).data_ptr() != shared.data_ptr()


def test_dlpack() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for other in (array, strict.asarray(array, copy=False), mg.from_numpy(array)):
        found = xp.from_dlpack(other)
        assert found.dtype is xp.float32 and found.tolist() == array.tolist()
    x = xp.ones((2, 2))
    assert np.from_dlpack(x).tolist() == [[1, 1], [1, 1]] and x.__dlpack_device__()[0] == 1
    copied = xp.from_dlpack(x, device="cpu", copy=True)
    copied[0, 0] = 5
    assert x[0, 0] == 1


# --------------------------------------------------------------------------------------------------- shapes, picking, sorting

def repeated(dtype: str, shape: tuple[int, ...]) -> Any:
    return draw(dtype, shape, 3, 0, 3) if dtype != "bool" else draw(dtype, shape)


ONE_OF_EACH = ("bool", "uint8", "uint64", "int32", "float32", "complex128")
AXES = [(x, axis) for x in ((3,), (2, 3), (2, 0, 3), (2, 1, 3)) for axis in range(-len(x), len(x))]
SHAPE: dict[str, list[Case]] = {
    "concat": [*(Case([draw(a, (2, 3)), draw(b, (2, 3), 1)], axis=axis) for a, b in promotable(ALL) for axis in (0, 1, -1, None)),
               Case((draw("int8", ()), draw("int8", (2, 2))), axis=None), Case([draw("int8", (0,)), draw("int8", (3,))])],
    "stack": [*(Case([draw(a, (2, 3)), draw(b, (2, 3), 1)], axis=axis) for a, b in promotable(ALL) for axis in (0, 1, 2, -1, -3)), Case([draw("int8", ())])],
    "unstack": [Case(draw(d, shape), axis=axis) for d in ONE_OF_EACH for shape, axis in AXES if shape[axis]],
    "expand_dims": [*(Case(draw(d, shape), axis) for d in ONE_OF_EACH for shape, axis in AXES), Case(draw("int8", ()), axis=0), Case(draw("int8", ()), axis=-1)],
    "squeeze": [Case(draw(d, (1, 2, 1)), axis) for d in ONE_OF_EACH for axis in (0, 2, -1, (0, 2), (-1,), ())],
    "flip": [*(Case(draw(d, shape), axis=axis) for d in ONE_OF_EACH for shape, axis in AXES), Case(draw("int8", (2, 3))), Case(draw("int8", (2, 3)), axis=(0, 1)), Case(draw("int8", ()))],
    "moveaxis": [Case(draw(d, (2, 3, 4)), a, b) for d in ONE_OF_EACH for a, b in ((0, 2), (-1, 0), ((0, 1), (1, 2)), ((2, 0), (-3, -1)))],
    "permute_dims": [*(Case(draw(d, (2, 3, 4)), axes) for d in ONE_OF_EACH for axes in itertools.permutations(range(3))), Case(draw("int8", ()), axes=())],
    "matrix_transpose": [Case(draw(d, shape)) for d in ONE_OF_EACH for shape in ((2, 3), (4, 2, 3), (0, 2))],
    "reshape": [*(Case(draw(d, (2, 3)), shape) for d in ONE_OF_EACH for shape in ((6,), (3, 2), (-1,), (1, 6, 1), (3, -1))), Case(draw("int8", ()), (1,)),
                Case(draw("int8", (0, 2)), shape=(0,)), Case(draw("int8", (1,)), ()), *(Case(draw("int8", (2, 3)), (6,), copy=copy) for copy in (True, False, None))],
    "roll": [*(Case(draw(d, (2, 3)), s, axis=a) for d in ONE_OF_EACH for s, a in ((1, None), (-2, 0), (7, 1), ((1, 2), (0, 1)), (1, (0, 1)), (0, -1))),
             Case(draw("int8", ()), 1), Case(draw("int8", (0,)), shift=1)],
    "repeat": [*(Case(draw(d, (2, 3)), 2, axis=axis) for d in ONE_OF_EACH for axis in (0, 1, -1, None)), Case(draw("int8", (3,)), np.array([1, 0, 2])),
               *(Case(draw("int8", (2, 3)), np.array([1, 0, 2], t), axis=1) for t in INTEGERS), Case(draw("int8", (3,)), 0)],
    "tile": [Case(draw(d, (2, 3)), times) for d in ONE_OF_EACH for times in ((2,), (2, 1), (1, 2, 2), (), (0, 1))],
    "take": [*(Case(draw(d, (2, 3)), np.array([1, 0, 1], t), axis=axis) for d in ONE_OF_EACH for t in INTEGERS for axis in (0, 1, -1)), Case(draw("int8", (3,)), np.array([2, 0]))],
    "take_along_axis": [Case(draw(d, (2, 3)), np.array([[0, 1, 1], [1, 0, 1]]), axis=axis) for d in ONE_OF_EACH for axis in (0, 1, -1)],
    "nonzero": [Case(repeated(d, shape)) for d in ALL for shape in SHAPES if shape],
    "tensordot": [*(Case(draw(a, (2, 3, 4)), draw(b, (3, 4, 2), 1)) for a, b in promotable(NUMERIC)),
                  *(Case(draw(d, (2, 3)), draw(d, (3, 2)), axes=axes) for d in NUMERIC for axes in (1, 0, ((1,), (0,)), ((0, 1), (1, 0)), ([-1], [-2])))],
    "matmul": [*(Case(draw(a, (2, 3)), draw(b, (3, 4), 1)) for a, b in promotable(NUMERIC)),
               *(Case(draw(d, a), draw(d, b, 1)) for d in NUMERIC for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3, 4)), ((2, 1, 2, 3), (4, 3, 1)), ((0, 3), (3, 2))))],
    "vecdot": [*(Case(draw(a, (2, 3)), draw(b, (3,), 1)) for a, b in promotable(NUMERIC)),
               *(Case(draw(d, (2, 3)), draw(d, (4, 2, 3), 1), axis=axis) for d in NUMERIC for axis in (-1, -2))],
}


@pytest.mark.parametrize("name", SHAPE)
def test_shapes_and_products(name: str) -> None:
    check(name, iter(SHAPE[name]), loose=2.0 if name in ("tensordot", "matmul", "vecdot") else 1.0)


SEARCH: dict[str, list[Case]] = {
    "argmax": [Case(repeated(d, (2, 3)), axis=axis, keepdims=kept) for d in REAL for axis in (None, 0, 1, -1) for kept in (False, True)],
    "argmin": [Case(repeated(d, (2, 3)), axis=axis, keepdims=kept) for d in REAL for axis in (None, 0, 1, -1) for kept in (False, True)],
    "count_nonzero": [Case(repeated(d, shape), keepdims=kept) for d in ALL for shape in SHAPES for kept in (False, True)]
    + [Case(repeated(d, (2, 3)), axis=axis) for d in ALL for axis in (0, (0, 1), -1)],
    "searchsorted": [Case(np.sort(draw(a, (5,))), draw(b, shape, 1), side=side) for a, b in promotable(REAL) for shape in ((4,), (2, 2), ()) for side in ("left", "right")]
    + [Case(draw("float32", (5,)), draw("float32", (3,), 1), sorter=np.argsort(draw("float32", (5,))))],
    "argsort": [Case(repeated(d, shape), axis=axis, descending=down) for d in REAL for shape, axis in (((5,), 0), ((2, 3), 0), ((2, 3), -1), ((0,), -1)) for down in (False, True)],
    "sort": [Case(repeated(d, shape), axis=axis, descending=down, stable=s) for d in REAL for shape, axis in (((5,), 0), ((2, 3), 0), ((2, 3), -1), ((0,), -1))
             for down in (False, True) for s in (True, False)],
    **{name: [Case(repeated(d, shape)) for d in ALL for shape in SHAPES] + [Case(np.array([nan, 1.0, nan, 0.0, -0.0, inf]))]
       for name in ("unique_all", "unique_counts", "unique_inverse", "unique_values")},
    "isin": [Case(repeated(d, (2, 3)), np.array([0, 2], d)) for d in INTEGERS],
}


@pytest.mark.parametrize("name", SEARCH)
def test_searching_sorting_and_sets(name: str) -> None:
    check(name, iter(SEARCH[name]))


def test_not_among() -> None:
    assert xp.isin(xp.arange(4), xp.asarray([1, 2]), invert=True).tolist() == [True, False, False, True]


# ------------------------------------------------------------------------------------------------------------- statistics

def reductions(kinds: tuple[str, ...], several: bool = True, empty: bool = True, **settings: Any) -> Iterator[Case]:
    for d, shape, kept in itertools.product(kinds, SHAPES, (False, True)):
        if empty or np.prod(shape):
            yield Case(draw(d, shape), keepdims=kept, **settings)
    for d, axis, kept in itertools.product(kinds, (0, 1, -1, (0, 1), ()), (False, True)):
        if several or isinstance(axis, int):
            yield Case(draw(d, (2, 3)), axis=axis, keepdims=kept, **settings)


STATISTICS: dict[str, list[Case]] = {
    **{name: [*reductions(NUMERIC), *(Case(draw(d), dtype=np.dtype(to)) for d, to in widening(NUMERIC))] for name in ("sum", "prod")},
    **{name: list(reductions(REAL, empty=False)) + [Case(specials("float32"))] for name in ("max", "min")},
    "mean": list(reductions(FLOATING)),
    **{name: [case for correction in (0.0, 1, 0.5) for case in reductions(FLOATS, correction=correction)] for name in ("var", "std")},
    **{name: [Case(draw(d, shape), axis=axis, include_initial=first) for d in NUMERIC for shape, axis in (((4,), None), ((4,), 0), ((2, 3), 0), ((2, 3), -1), ((0,), 0))
              for first in (False, True)] + [Case(draw(d, (3,)), dtype=np.dtype(to)) for d, to in widening(NUMERIC)] for name in ("cumulative_sum", "cumulative_prod")},
    "diff": [Case(draw(d, (3, 4)), axis=axis, n=n) for d in NUMERIC for axis in (0, 1, -1) for n in (0, 1, 2)]
    + [Case(draw(d, (2, 3)), prepend=draw(d, (2, 1), 1), append=draw(d, (2, 2), 2)) for d in NUMERIC] + [Case(draw("int8", (3,)), append=draw("int8", (1,)))],
    **{name: list(reductions(ALL)) for name in ("all", "any")},
}


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning", "ignore:Degrees of freedom:RuntimeWarning")
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name: str) -> None:
    check(name, iter(STATISTICS[name]), loose=20.0)


# --------------------------------------------------------------------------------------------------- linear algebra, Fourier

def square(dtype: str, shape: tuple[int, ...] = (3, 3)) -> Any:
    """Well conditioned matrices."""
    return draw(dtype, shape) + np.asarray(6 * np.eye(shape[-1]), dtype)


def hermitian(dtype: str, shape: tuple[int, ...] = (3, 3)) -> Any:
    x = draw(dtype, shape)
    return np.asarray(x + np.conj(np.swapaxes(x, -1, -2)) + 20 * np.eye(shape[-1]), dtype)


STACKS = ((3, 3), (2, 3, 3), (0, 3, 3), (1, 1), (0, 0), (2, 0, 0))
OBLONG = ((2, 3), (3, 2), (2, 4, 3))
HOLLOW = ((0, 0), (0, 3), (3, 0), (2, 0, 3))
ORDERS = (1, 2, inf, -inf, -1, -2, "fro", "nuc")
LINALG: dict[str, list[Case]] = {
    **{name: [Case(square(d, shape)) for d in FLOATING for shape in STACKS] for name in ("det", "inv", "slogdet")},
    "matrix_power": [Case(square(d, shape), n) for d in FLOATING for shape in STACKS for n in (0, 1, 2, 3, -1, -2)],
    "solve": [Case(square(d, a), draw(d, b, 1)) for d in FLOATING for a, b in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 3, 3), (2, 3)[::-1]),
                                                                               ((3, 3, 3), (3, 3)), ((2, 3, 3), (3,)))],
    "cholesky": [Case(hermitian(d, shape), **s) for d in FLOATING for shape in STACKS for s in ({}, {"upper": True})],
    "eigvalsh": [Case(hermitian(d, shape)) for d in FLOATING for shape in STACKS],
    "svdvals": [Case(draw(d, shape)) for d in FLOATING for shape in OBLONG + HOLLOW],
    "pinv": [Case(draw(d, shape), **s) for d in FLOATING for shape in OBLONG for s in ({}, {"rtol": 0.5}, {"rtol": np.array(0.3)})],
    "matrix_rank": [Case(draw(d, shape), **s) for d in FLOATING for shape in OBLONG for s in ({}, {"rtol": 0.5}, {"rtol": np.array(0.3)})] + [Case(np.zeros((2, 2)))],
    "matrix_norm": [Case(draw(d, shape), ord=order, keepdims=kept) for d in FLOATING for shape in OBLONG for order in ORDERS for kept in (False, True)]
    + [Case(draw("float64"))] + [Case(draw(d, shape), ord=order) for d in FLOATING for shape in HOLLOW for order in (1, 2, inf, "fro", "nuc")],
    "vector_norm": [Case(draw(d, (2, 3)), ord=order, axis=axis, keepdims=kept) for d in FLOATING for order in (0, 1, 2, 3, inf, -inf, 2.5) for axis in (None, 0, -1, (0, 1))
                    for kept in (False, True)] + [Case(draw("float32", ()))],
    "outer": [Case(draw(a, (3,)), draw(b, (2,), 1)) for a, b in promotable(NUMERIC)],
    "cross": [Case(draw(a, (2, 3)), draw(b, (3,), 1)) for a, b in promotable(NUMERIC)] + [Case(draw("float64", (3, 2)), draw("float64", (3, 1), 1), axis=-2)],
    "diagonal": [Case(draw(d, shape), offset=k) for d in ALL for shape in ((3, 3), (2, 3, 4), (0, 2)) for k in (0, 1, -1)],
    "trace": [Case(draw(d, shape), offset=k) for d in NUMERIC for shape in ((3, 3), (2, 3, 4), (0, 2)) for k in (0, 1, -1)] + [Case(draw("int8"), dtype=np.dtype("int16"))],
    "matmul": SHAPE["matmul"][-20:], "tensordot": SHAPE["tensordot"][-20:], "vecdot": SHAPE["vecdot"][-20:], "matrix_transpose": SHAPE["matrix_transpose"],
}


@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra(name: str) -> None:
    check(f"linalg.{name}", iter(LINALG[name]), loose=300.0)


FACTORS: dict[str, Any] = {
    "qr": (lambda q, r: q @ r, [Case(draw(d, shape), **s) for d in FLOATING for shape in OBLONG + HOLLOW for s in ({}, {"mode": "complete"})]),
    "svd": (lambda u, s, v: (u[..., :, :s.shape[-1]] * s[..., None, :]) @ v[..., :s.shape[-1], :],
            [Case(draw(d, shape), **s) for d in FLOATING for shape in OBLONG + HOLLOW for s in ({}, {"full_matrices": False})]),
    "eigh": (lambda w, v: (v * w[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2)), [Case(hermitian(d, shape)) for d in FLOATING for shape in STACKS]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_multiply_to_the_matrix(name: str) -> None:
    product, cases = FACTORS[name]

    def compare(case: Case, expected: Any, found: Any) -> str:
        whole = np.asarray(product(*(t.numpy() for t in found)))
        shapes = [(np.asarray(t).shape, np.asarray(t).dtype) for t in expected], [(t.numpy().shape, t.numpy().dtype) for t in found]
        return "" if expected._fields == found._fields and shapes[0] == shapes[1] and np.allclose(whole, case.arguments[0], atol=1e-4) else f"{found}"

    check(f"linalg.{name}", iter(cases), compare=compare)


NORMS = ("backward", "ortho", "forward")
FOURIER: dict[str, list[Case]] = {
    **{name: [Case(draw(d, (4, 5)), n=n, axis=axis, norm=norm) for d in kinds for n in (None, 4, 7) for axis in (0, -1) for norm in NORMS]
       for name, kinds in (("fft", COMPLEX), ("ifft", COMPLEX), ("irfft", COMPLEX), ("hfft", COMPLEX), ("rfft", FLOATS), ("ihfft", FLOATS))},
    **{name: [Case(draw(d, (3, 4, 5)), axes=axes, norm=norm) for d in kinds for axes in (None, (0, 1), (-1,)) for norm in NORMS]
       + [Case(draw(d, (3, 4)), s=(4, 3), axes=(0, 1)) for d in kinds] for name, kinds in (("fftn", COMPLEX), ("ifftn", COMPLEX), ("irfftn", COMPLEX), ("rfftn", FLOATS))},
    **{name: [Case(n, **s) for n in (1, 4, 5) for s in ({}, {"d": 0.5}, {"dtype": np.dtype("float32")})] for name in ("fftfreq", "rfftfreq")},
    **{name: [Case(draw(d, (4, 5)), axes=axes) for d in FLOATING for axes in (None, 0, (0, 1), -1)] for name in ("fftshift", "ifftshift")},
}


@pytest.mark.parametrize("name", FOURIER)
def test_fourier(name: str) -> None:
    check(f"fft.{name}", iter(FOURIER[name]), loose=50.0)


# ---------------------------------------------------------------------------------------------------- names and signatures

OTHERS = {"Device", "set_array_api_strict_flags", "get_array_api_strict_flags", "reset_array_api_strict_flags", "ArrayAPIStrictFlags", "__version__"}
NAMES = sorted(set(strict.__all__) - OTHERS - {"linalg", "fft"})
FUNCTIONS = [n for n in NAMES if inspect.isfunction(getattr(strict, n))] + [f"linalg.{n}" for n in strict.linalg.__all__] + [f"fft.{n}" for n in strict.fft.__all__]
TESTED = (set(UNARY) | set(BINARY) | set(CREATION) | set(SHAPE) | set(SEARCH) | set(STATISTICS) | {f"linalg.{n}" for n in {**LINALG, **FACTORS}} | {f"fft.{n}" for n in FOURIER}
          | {"clip", "where", "empty", "empty_like", "broadcast_arrays", "broadcast_shapes", "finfo", "iinfo", "from_dlpack", "__array_namespace_info__"})


def test_every_name_is_here_and_every_function_compared() -> None:
    assert [n for n in NAMES if not hasattr(xp, n)] == []
    assert set(FUNCTIONS) - TESTED == set()
    assert xp.__array_api_version__ == VERSION
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (np.e, np.pi, inf, None) and xp.nan != xp.nan


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature(name: str) -> None:
    """The same parameters in the same order, passed in the same ways; what theirs has as a default, ours has, too."""
    theirs, ours = (list(inspect.signature(find(library, name)).parameters.values()) for library in (strict, xp))
    by_position = [p for p in theirs if p.kind is p.POSITIONAL_ONLY]
    assert [p.kind for p in ours] == [p.kind for p in theirs]
    assert [p.name for p in ours[len(by_position):]] == [p.name for p in theirs[len(by_position):]]
    given = [(p.default, q.default) for p, q in zip(theirs, ours) if "Undef" not in type(p.default).__name__]
    assert [a for a, _ in given] == [b for _, b in given]


def test_info() -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] and info.default_device() == mg.ones(1).device and info.devices() == [info.default_device()]
    assert info.default_dtypes() == {"real floating": xp.float64, "complex floating": xp.complex128, "integral": xp.int64, "indexing": xp.int64}
    assert set(info.dtypes()) == set(ALL) and set(info.dtypes(kind="integral")) == set(INTEGERS) and set(info.dtypes(kind=("bool", "real floating"))) == {"bool", *FLOATS}


# --------------------------------------------------------------------------------------------------------- tensors themselves

OPERATORS = {"__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide", "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow",
             "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
             "__lt__": "less", "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal", "__eq__": "equal", "__ne__": "not_equal"}


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str) -> None:
    """Of tensors of all pairs of types, beside numbers, reflected and in place."""
    name = OPERATORS[operator]
    wrong = []
    for a, b in promotable(BINARY[name]):
        x, y = draw(a), draw(b, (3,), 1, 1 if name in POSITIVE and b in INTEGERS else -4)
        with np.errstate(all="ignore"):
            calls = [(x, y, operator)]
            if not operator.endswith(("t__", "e__", "q__")) and strict.result_type(strict.asarray(x), strict.asarray(y)) == strict.asarray(x).dtype:
                calls += [(x, y, f"__i{operator[2:]}")]
            if a == b and name in ("add", "subtract", "multiply", "bitwise_and", "bitwise_left_shift") and a != "bool":
                calls += [(x, 2, operator), (np.abs(x), 2, f"__r{operator[2:]}")]
            for left, right, method in calls:
                expected = getattr(convert(strict, left), method)(convert(strict, right))
                text = difference(expected, getattr(convert(xp, left), method)(convert(xp, right)))
                wrong += [f"{a} {method} {b}: {text}"] if text else []
    assert not wrong, wrong[:5]


def test_matrix_operators() -> None:
    x, y = draw("float64", (2, 2)), draw("float64", (2, 2), 1)
    assert difference(strict.asarray(x) @ strict.asarray(y), mg.from_numpy(x) @ mg.from_numpy(y), 2.0) == ""
    z = mg.from_numpy(x.copy())
    z @= mg.from_numpy(y)
    assert np.allclose(z.numpy(), x @ y)
    assert np.allclose(mg.from_numpy(x).__rmatmul__(mg.from_numpy(y)).numpy(), y @ x)


INDICES = [0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(3, 0, -2), ..., None, (0, 1), (slice(None), 0), (..., -1), (None, slice(0, 2), ..., None),
           (slice(0, 0),), (slice(None, None, -2), slice(5, None))]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing(index: Any) -> None:
    array = draw("float32", (4, 3))
    x = xp.asarray(array.copy())
    assert x[index].shape == array[index].shape and np.array_equal(x[index].numpy(), array[index])
    x[index] = 7.0
    array[index] = 7.0
    assert np.array_equal(x.numpy(), array)


def test_masks() -> None:
    array = draw("float32", (2, 3))
    x = xp.asarray(array.copy())
    assert np.array_equal(x[x > 0].numpy(), array[array > 0])
    scalar = xp.asarray(3.0)
    assert scalar[xp.asarray(True)].tolist() == [3.0] and scalar[xp.asarray(False)].tolist() == []


def test_numbers_out_of_tensors() -> None:
    x = xp.asarray(3)
    assert (bool(x), int(x), float(x), complex(x), x.__index__(), [0, 1, 2, 3][x]) == (True, 3, 3.0, 3 + 0j, 3, 3)
    assert complex(xp.asarray(1 + 2j)) == 1 + 2j
    assert x.to_device(x.device) is x and xp.ones((2, 3)).mT.shape == xp.ones((2, 3)).T.shape == (3, 2)
    assert (1 << x).item() == 8 and (16 >> x).item() == 2


def test_versions() -> None:
    x = mg.ones(1)
    assert x.__array_namespace__(api_version="2022.12") is x.__array_namespace__(api_version=None) is xp
    with pytest.raises(ValueError, match=r"1999\.01"):
        x.__array_namespace__(api_version="1999.01")


# -------------------------------------------------------------------------------------------------------------- gradients

DIFFERENTIABLE = {
    "sum": lambda x: xp.sum(x, axis=0), "prod": xp.prod, "mean": xp.mean, "var": lambda x: xp.var(x, correction=1), "std": lambda x: xp.std(x, axis=1), "max": lambda x: xp.max(x, axis=0),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=0, include_initial=True), "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=1), "diff": xp.diff,
    "sort": lambda x: xp.sort(x, axis=0), "take": lambda x: xp.take(x, xp.asarray([2, 0, 2]), axis=1), "clip": lambda x: xp.clip(x, -0.5, 0.5), "add": lambda x: xp.add(x, 2.0),
    "pow": lambda x: xp.pow(x, 3.0), "where": lambda x: xp.where(x > 0, x * x, 1.0), "concat": lambda x: xp.concat([x, x * 2], axis=None), "astype": lambda x: xp.astype(x, xp.float64),
    "reshape": lambda x: xp.reshape(x, (9,), copy=True) ** 2, "repeat": lambda x: xp.repeat(x, 2), "tile": lambda x: xp.tile(x, (2, 1)) ** 2, "roll": lambda x: xp.roll(x, 1) * x,
    "unique_values": lambda x: xp.unique_values(x) ** 2, "matmul": lambda x: xp.matmul(x, x), "vecdot": lambda x: xp.vecdot(x, x), "solve": lambda x: xp.linalg.solve(x + 3 * xp.eye(3), x),
    "det": xp.linalg.det, "fft": lambda x: xp.abs(xp.fft.rfft(x)), "vector_norm": xp.linalg.vector_norm, "trace": xp.linalg.trace, "asarray": lambda x: xp.asarray(x) ** 2,
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_pass(name: str) -> None:
    x = mg.tensor(np.random.default_rng(5).standard_normal((3, 3)), requires_grad=True)
    assert mg.autograd.gradcheck(DIFFERENTIABLE[name], (x,))


# --------------------------------------------------------------------------------------------------------------- consumers

def test_array_api_compat_knows_tensors() -> None:
    compat = pytest.importorskip("array_api_compat", reason="an optional consumer")
    x = mg.ones(2, 3)
    assert compat.array_namespace(x, x) is xp and compat.is_array_api_obj(x) and compat.size(x) == 6 and compat.device(x) == x.device
    assert compat.to_device(x, "cpu") is x


SCIPY_PROGRAM = """
import mutagrad as mg, numpy as np, scipy.special, scipy.stats, scipy.signal
x = mg.tensor([[1.0, 2.0, 4.0], [0.5, 0.25, 8.0]], dtype=mg.float64, requires_grad=True)
plain = x.detach().numpy()
for call in CALLS:
    found, expected = call(x), np.asarray(call(plain))
    assert isinstance(found, mg.Tensor), found
    assert np.allclose(found.detach().numpy(), expected), (found, expected)
scipy.special.logsumexp(x, axis=1).sum().backward()
assert np.allclose(x.grad.numpy(), scipy.special.softmax(plain, axis=1)), x.grad
print("fine")
"""
SCIPY_CALLS = """[lambda x: scipy.special.logsumexp(x, axis=1), lambda x: scipy.special.softmax(x, axis=0), lambda x: scipy.special.xlogy(x.detach(), x.detach())
if hasattr(x, 'detach') else scipy.special.xlogy(x, x), lambda x: scipy.stats.zmap(x, x), lambda x: scipy.stats.pmean(x, 2.0, axis=1)]"""


def test_scipy_computes_with_tensors_and_gradients_pass() -> None:
    """SciPy's functions that are written against the standard; they look for it once, when SciPy is imported."""
    pytest.importorskip("scipy", "1.16", reason="older ones convert to arrays here and there: pip install 'mutagrad[scipy]', with Python 3.11 or newer")
    program = SCIPY_PROGRAM.replace("CALLS", SCIPY_CALLS)
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "SCIPY_ARRAY_API": "1"}, capture_output=True, text=True, timeout=120)
    assert done.stdout == "fine\n", done.stderr
