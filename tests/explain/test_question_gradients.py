"""The gradients in `docs/questions` are those of finite differences.

A program there makes its leaves by `NAME = torch.tensor(NUMBERS, requires_grad=True)`, and says `LOSS.backward()` once. It runs in float64
up to there, with one number after the other moved a little.
"""
from __future__ import annotations

import ast
import warnings
from typing import Any

import pytest

from mutagrad import as_torch
from mutagrad.arrays import np
from test_docs import ROOT, blocks, file_name

STEP = 1e-6
WRONG = "graph-attribute.py"  # and the page says so
PROGRAMS = {f"{page.stem}-{file_name(b)}": b.text for page in sorted((ROOT / "docs" / "questions").glob("*.md"))
            for b in blocks(page) if b.kind == "python torch" and b.text.count(".backward()") == 1}


class Loss(ast.NodeTransformer):
    """Turns `LOSS.backward()` into `found_loss = LOSS`."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            return ast.Assign([ast.Name("found_loss", ast.Store())], call.func.value)
        return node


class Moved(ast.NodeTransformer):
    """Has a leaf made from other numbers."""

    def __init__(self, name: str, numbers: Any) -> None:
        self.name, self.numbers = name, numbers

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if is_leaf(node) and ast.unparse(node.targets[0]) == self.name:
            node.value.args = [ast.parse(repr(self.numbers.tolist()), mode="eval").body]  # type: ignore[attr-defined]
        return node


def is_leaf(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("torch.tensor(") and "requires_grad=True" in ast.unparse(node)


def leaves(source: str) -> dict[str, Any]:
    """The leaves that a program makes, and their numbers."""
    made = [node for node in ast.walk(ast.parse(source)) if is_leaf(node)]
    return {ast.unparse(n.targets[0]): np.array(ast.literal_eval(n.value.args[0])) for n in made}  # type: ignore[attr-defined]


def run(tree: ast.AST) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__", "print": lambda *_: None}
    with as_torch() as torch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            exec(compile(ast.fix_missing_locations(tree), "program.py", "exec"), names)
        finally:
            torch.set_default_dtype(before)
    return names


def loss(source: str, name: str, numbers: Any) -> float:
    cut = source[:source.index("\n", source.index(".backward()"))]
    value: float = run(Loss().visit(Moved(name, numbers).visit(ast.parse(cut))))["found_loss"].sum().item()
    return value


def differences(source: str, name: str, numbers: Any) -> Any:
    found = np.zeros(numbers.shape)
    for place in np.ndindex(numbers.shape):
        move = np.zeros(numbers.shape)
        move[place] = STEP
        found[place] = (loss(source, name, numbers + move) - loss(source, name, numbers - move)) / (2 * STEP)
    return found


def wrong(source: str) -> list[str]:
    """The leaves with a gradient that is not the derivative; where history was cut off, there is no gradient."""
    names, made = run(ast.parse(source)), leaves(source)
    assert made, "it makes no leaf"
    found = {name: (names[name].grad.tolist(), differences(source, name, made[name])) for name in made if names[name].grad is not None}
    return [name for name, (grad, right) in found.items() if not np.allclose(grad, right, rtol=1e-5, atol=1e-5)]


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(program: str) -> None:
    assert wrong(PROGRAMS[program]) == (["x"] if program == WRONG else [])


def test_the_pages_are_looked_at() -> None:
    assert len(PROGRAMS) > 30 and WRONG in PROGRAMS
