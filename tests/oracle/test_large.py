"""Arrays large enough to be computed in pieces on several threads: the same values, types and gradients as PyTorch's."""
from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

from .compare import attempt, difference, gradient_difference

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

SIDE = 887  # squared, more than the size from which work is split, and not a multiple of anything

# Separated by semicolons: x, y, c are square leaves, row and s broadcast, turned and stepped are windows that cannot be cut.
EXPRESSIONS = """
x + y; x - y; x * y; x / (y + 5); x + row; x * s; s - x; x + 1; 2 / (x + 5); x ** 2; x ** 3; (x + 5) ** 0.5; x ** y.abs(); 1 - x; -x; x + turned
turned * turned
x.exp(); x.sin(); x.tanh(); x.sigmoid(); x.relu(); x.abs(); x.sqrt(); x.log1p(); x.square(); x.erf(); x.sign(); x.floor(); x.round()
x.clamp(-0.5, 0.5); x.reciprocal(); x.rsqrt()
stepped.exp(); turned.sin(); turned + row; stepped * 2; x.t() * y; x.expand(2, -1, -1) * s
m.maximum(x, y); m.minimum(x, row); m.where(x > 0, x, y); m.where(x > 0, x, 0.0); m.where(mask, row, x); m.lerp(x, y, 0.3)
m.addcmul(x, y, y, value=2); m.atan2(x, y); m.clamp(x, y)
x % 0.3; x // 0.3; m.fmod(x, 0.3); m.remainder(x, y); m.hypot(x, y); m.logaddexp(x, y); m.add(x, y, alpha=3); m.div(x, 0.3, rounding_mode="trunc")
c.abs(); c.conj(); c.sgn(); c * c; c.exp(); c + x; x * c; c.abs() * x; c * 2j; c ** 2; c.abs().sum()
k + k; k * 2; k / 2; k // 3; k % 3; k.abs(); k.sign(); k ** 2; k + 0.5; k.float(); k * x; -k; k.square()
mask & (x > 0); ~mask; mask + mask; mask * x; x == y; x > row; k < 3; mask.float(); mask | mask; x.isnan(); mask ^ mask
x.sum(); x.mean(); x.sum(0); x.sum(1); x.max(); x.prod(1); x.std(); x.norm(); x.softmax(1); x.cumsum(0); x.var(1); k.sum(); mask.sum(); x.amax(1)
x.logsumexp(1)
x.to(m.float64); x.double() * 2; x.half().float(); x.clone(); x.contiguous(); x.t().contiguous(); x @ y; x.reshape(-1) * 2; m.cat([x, y])
x[1:] * x[:-1]; x.flip(0); x[x > 0]; x.sort(dim=0, stable=True).values
"""

# Statements that write, the last one an expression; `z` is what they write into.
PROGRAMS = """
z = x * 1; z += y; z
z = x * 1; z *= row; z *= s; z
z = x * 1; z.mul_(y).add_(1).exp_(); z
z = x * 1; z[1:] = z[:-1] * 2; z
z = x * 1; z[:, 3] = 5.0; z * z
z = x * 1; w = z * z; z.zero_(); w + z
z = x * 1; z.clamp_(-0.5, 0.5); z.pow_(2); z
z = x * 1; z.t().mul_(y); z
z = x * 1; z[x > 0] = 0.0; z
z = x * 1; z.copy_(row); z + x
z = x * 1; z.masked_fill_(mask, 1.0); z * y
z = x.clone(); z.maximum(y).mul_(2); z.sub_(y, alpha=0.5); z.div_(3); z.neg_(); z
z = c * 1; z *= 2j; z.add_(x); z
z = k * 1; z += 3; z //= 2; z
"""


@cache
def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((2, SIDE, SIDE)).astype(np.float32)
    return {"x": x, "y": y, "row": x[1] * 2, "s": np.array(0.7, np.float32), "c": x + 1j * y, "k": rng.integers(-9, 9, (SIDE, SIDE)), "mask": y > 0}


def tensors_for(library: Any) -> dict[str, Any]:
    return {name: library.tensor(a, requires_grad=a.dtype.kind in "fc") for name, a in arrays().items()}


def evaluate(source: str, library: Any, tensors: dict[str, Any]) -> Any:
    names = {"m": library, **tensors, "turned": tensors["x"].t(), "stepped": tensors["x"][:, ::2]}
    *statements, result = [part.strip() for part in source.split(";")]
    exec("\n".join(statements), names)
    return eval(result, names)


def check(source: str) -> None:
    theirs, mine = tensors_for(torch), tensors_for(mg)
    expected, refused = attempt(lambda: evaluate(source, torch, theirs), quiet=True)
    assert refused is None, f"PyTorch raised {refused!r}"
    found = evaluate(source, mg, mine)
    loose = (2e-4, 2e-4)  # sums over so many in float32 depend on their order
    text = difference(expected, found, tolerance=loose) or gradient_difference(expected, found, theirs, mine, tolerance=(1e-3, 2e-3))
    assert not text, f"{source}: {text}"


@pytest.mark.parametrize("expression", [part.strip() for line in EXPRESSIONS.strip().splitlines() for part in line.split(";")])
def test_expression(expression: str) -> None:
    check(expression)


@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_program(program: str) -> None:
    check(program)


def test_they_are_large_enough_to_be_split() -> None:
    from mutagrad.arrays import parallel as large

    assert large.LARGE <= SIDE * SIDE
