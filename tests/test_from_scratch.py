"""`docs/from_scratch.md`: the engine it builds is right on random mutating programs; the library has what it names.

`test_docs.py` runs the page from top to bottom. Here the engine is the last definition of every name, and the judge is
not the page's but the complex step, which is exact to rounding.
"""
from __future__ import annotations

import ast
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from test_docs import ROOT, blocks

DOCUMENT = ROOT / "docs" / "from_scratch.md"
ROUNDING = 1e-9

Program = Callable[[Any], Any]


def engine_source() -> str:
    """Return the engine as it stands at the end of the page: the last definition of every name, without examples."""
    examples = ("print(", "judge(", "def slopes(")
    parts = [b.text for b in blocks(DOCUMENT) if b.kind == "python" and not any(word in b.text for word in examples)]
    source = "import numpy as np\n\n" + "\n".join(parts)
    lines = source.splitlines()
    last = {_name(statement): statement for statement in ast.parse(source).body}
    used = sorted((s for name, s in last.items() if name != "TAPE"), key=lambda s: s.lineno)
    return "\n".join("\n".join(lines[s.lineno - 1:s.end_lineno]) for s in used)


def _name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign):
        return ast.unparse(statement.targets[0])
    return statement.name if isinstance(statement, ast.FunctionDef | ast.ClassDef) else ast.unparse(statement)


def engine(source: str | None = None) -> SimpleNamespace:
    names: dict[str, Any] = {"__name__": "from_scratch"}
    exec(compile(source or engine_source(), "<engine>", "exec"), names)
    return SimpleNamespace(**names)


# ---------------------------------------------------------------------------------------------- random programs

def generate(seed: int, length: int = 9) -> tuple[str, np.ndarray]:
    """A random program in the statements that the page's engine has, and where to differentiate it.

    It grows on arrays: a statement is kept if NumPy can do it and values stay small.
    """
    r = random.Random(seed)
    x = np.array([r.uniform(-1, 1) for _ in range(6)]).reshape(r.choice([(6,), (2, 3), (3, 2)]))
    kept: list[str] = []
    for _ in range(4 * length):
        env = _replay(kept, x)
        statement = _statement(r, {n: a for n, a in env.items() if isinstance(a, np.ndarray)})
        if _fits(kept + [statement], x):
            kept.append(statement)
        if len(kept) == length:
            break
    names = [n for n, a in _replay(kept, x).items() if isinstance(a, np.ndarray)]
    kept.append("loss = " + " + ".join(f"({n} * {n} * {r.uniform(-1, 1):.2f} + np.sin({n})).sum()" for n in names))
    return "\n".join(kept), x


def _replay(statements: list[str], x: np.ndarray) -> dict[str, Any]:
    env = {"np": np, "x": x.copy()}
    exec("\n".join(statements), env)
    del env["np"], env["__builtins__"]
    return env


def _fits(statements: list[str], x: np.ndarray) -> bool:
    try:
        with np.errstate(all="raise"):
            return all(0 < np.abs(a).max() < 4 for a in _replay(statements, x).values() if isinstance(a, np.ndarray))
    except (ValueError, IndexError, FloatingPointError):
        return False


def _statement(r: random.Random, arrays: dict[str, np.ndarray]) -> str:
    target = _window(r, arrays)
    whole, new = "[" not in target, f"v{len(arrays)}"
    if not _shape(target, arrays):  # one element: NumPy has no view of it to give a name to
        return f"{target} {r.choice(['', '+', '-', '*'])}= {_expression(r, arrays, target)}"
    forms: list[Callable[[], str]] = [
        lambda: f"{new} = {target}[1:]" if whole else f"{new} = {target}",
        lambda: f"{new} = {_expression(r, arrays, target)}",
        lambda: f"{target} {r.choice('+-*')}= {_expression(r, arrays, target)}",
        lambda: f"{target}{'[...]' * whole} = {_expression(r, arrays, target)}",
        lambda: f"np.sin({_operand(r, arrays, target, scalar=False)}, out={target})",
        lambda: _overlapping(r, arrays),
        lambda: _loop(r, arrays),
    ]
    return r.choices(forms, [2, 2, 3, 3, 1, 2, 1])[0]()


def _shape(expression: str, arrays: dict[str, np.ndarray]) -> tuple[int, ...]:
    return np.shape(eval(expression, {**arrays}))


def _window(r: random.Random, arrays: dict[str, np.ndarray]) -> str:
    """A variable, or part of one."""
    found = r.choice(list(arrays))
    for _ in range(r.choice([0, 1, 1, 2])):
        shape = _shape(found, arrays)
        if not shape:
            break
        step = r.choice(["[1:]", "[:-1]", "[::2]", "[..., 1:]", "[..., 0]", ".T[...]", f"[{r.randrange(shape[0])}]"])
        if 0 not in _shape(found + step, arrays):
            found += step
    return found


def _operand(r: random.Random, arrays: dict[str, np.ndarray], target: str, scalar: bool = True) -> str:
    """What this engine can write into the target: something of its shape, or a scalar."""
    shape = _shape(target, arrays)
    tried = (_window(r, arrays) for _ in range(8))
    return next((w for w in tried if _shape(w, arrays) in (shape, () if scalar else shape)), target)


def _expression(r: random.Random, arrays: dict[str, np.ndarray], target: str) -> str:
    a, b, s = _operand(r, arrays, target), _operand(r, arrays, target), f"{r.uniform(-1.5, 1.5):.2f}"
    return r.choice([f"{a} * {b}", f"{a} + {b}", f"{a} - {b}", f"{a} * {a}", f"-{a}", f"{a} * {s}", f"np.sin({a})",
                     f"np.cos({a}) - {s}", f"np.exp(-{a})", f"{a} / (3 + {b})", f"{s} / (2 - {a})",
                     f"{a} * {b}.sum()", a, s])


def _overlapping(r: random.Random, arrays: dict[str, np.ndarray]) -> str:
    a = r.choice(list(arrays))
    return r.choice(["{a}[1:] = {a}[:-1] * 1.2", "{a}[:-1] *= {a}[1:]", "{a}[1:] += np.sin({a}[:-1])", "{a} *= {a}",
                     "{a}[0], {a}[1] = {a}[1] * 1, {a}[0] * 1", "{a} -= {a}[::-1]"]).format(a=a)


def _loop(r: random.Random, arrays: dict[str, np.ndarray]) -> str:
    a = r.choice([n for n, v in arrays.items() if v.ndim])
    b = r.choice([n for n, v in arrays.items() if v.shape == arrays[a].shape])
    n = len(arrays[a])
    return r.choice([f"for i in range(1, {n}):\n    {a}[i] = {a}[i] * 0.5 + {b}[i - 1] * {a}[i - 1]",
                     f"for i in range({n}):\n    {a}[i] *= {b}[{n - 1} - i]",
                     f"for i in range({n}):\n    {a}[i:] += np.sin({b}[i:]) * 0.3"])


def runnable(source: str) -> Program:
    code = compile(source, source, "exec")

    def program(x: Any) -> Any:
        names = {"np": np, "x": x}
        exec(code, names)
        return names["loss"]

    return program


# ---------------------------------------------------------------------------------------------------- the judge

def complex_step(program: Program, x: np.ndarray) -> np.ndarray:
    """The gradient of an analytic program, by its own statements on complex arrays."""
    steps = 1e-30j * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([program(x + step).imag / 1e-30 for step in steps]).reshape(x.shape)


def slope_along(program: Program, x: np.ndarray, direction: np.ndarray, h: float = 1e-4) -> np.ndarray:
    """The derivative of the gradient in a direction: central differences of the fourth order."""
    at = [complex_step(program, x + k * h * direction) for k in (-2, -1, 1, 2)]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)


def agree(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance * max(1.0, np.abs(expected).max())))


def wrong(e: SimpleNamespace, seeds: range) -> Iterator[str]:
    """The programs that an engine gets wrong."""
    for seed in seeds:
        source, x, expected = judged(seed)
        if not agree(e.grad(runnable(source))(x), expected, ROUNDING):
            yield f"seed {seed}:\n{source}"


@cache
def judged(seed: int) -> tuple[str, np.ndarray, np.ndarray]:
    source, x = generate(seed)
    return source, x, complex_step(runnable(source), x)


def test_first_derivatives_of_random_programs() -> None:
    assert list(wrong(engine(), range(80))) == []


def test_second_derivatives_of_random_programs() -> None:
    e = engine()
    for seed in range(1000, 1012):
        source, x = generate(seed, length=6)
        program, direction = runnable(source), np.cos(np.arange(6.0)).reshape(x.shape)
        found = e.grad(lambda x: (e.grad(program)(x) * direction).sum())(x)
        assert agree(found, slope_along(program, x, direction), 1e-6), source


def test_the_library_agrees() -> None:
    for seed in range(30):
        source, value, expected = judged(seed)
        x = mg.tensor(value, requires_grad=True)
        names = {"np": mg, "x": x}
        exec(source, names)
        names["loss"].backward()
        found = np.zeros(value.shape) if x.grad is None else x.grad.numpy()
        assert agree(found, expected, ROUNDING), source


@pytest.mark.parametrize(("line", "instead"), [
    ("part[...] = 0", "pass"),
    ("node.saved = [a.copy() if np.shares_memory(a, target.array) else a for a in node.saved]", "pass"),
    ("-next(order)", "next(order)"),
    ("for t in [target, *inputs]", "for t in inputs"),
    ("None if covers else storage.writer", "None"),
    ("g = part.copy()", "g = part"),
    ("g if window.shape else g.sum()", "g if window.shape else g.mean()"),
    ("g * np.cos(x)", "g * np.cos(x) * 1.001"),
])
def test_each_line_is_needed(line: str, instead: str) -> None:
    """Sabotage: without it, random programs come out wrong."""
    source = engine_source()
    assert source.count(line) == 1
    assert next(wrong(engine(source.replace(line, instead)), range(80)), None) is not None


# ----------------------------------------------------------------------------------------------------- the page

def test_the_engine_is_as_short_as_the_page_says() -> None:
    said = int(re.search(r"some (\d+) lines", DOCUMENT.read_text(encoding="utf-8"))[1])  # type: ignore[index]
    assert abs(sum(map(bool, map(str.strip, engine_source().splitlines()))) - said) <= 5


def test_what_the_engine_cannot_do_is_an_error() -> None:
    e = engine()
    t = e.Tensor(np.ones((2, 3)))
    for refused in (lambda: t * t[0], lambda: t[[0, 1]], lambda: t[t.array > 0]):
        with pytest.raises((AssertionError, ValueError)):
            refused()
    for refused in (lambda: np.log(t), lambda: np.add.outer(t, t), lambda: np.add(t, t, where=True)):
        with pytest.raises(TypeError):
            refused()


def named_in_the_library() -> list[str]:
    table = DOCUMENT.read_text(encoding="utf-8").partition("| in the library |")[2].partition("\n\n")[0]
    return [name for row in table.splitlines()[2:] for name in re.findall(r"`([\w.]+)`", row.rsplit("|", 2)[1])]


@pytest.mark.parametrize("name", named_in_the_library())
def test_the_library_has_what_the_page_names(name: str) -> None:
    assert pkgutil.resolve_name(f"mutagrad.{name}") is not None
