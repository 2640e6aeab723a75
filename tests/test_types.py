"""Type checkers and editors know what the package has and returns: the stub files are up to date, complete and true."""
from __future__ import annotations

import ast
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import _lazy
from samples import SAMPLES
from samples.base import Draw, Sample
from stubs.names import Scope
from stubs.observed import CALLS, type_name

ROOT = Path(__file__).parents[1]
HOME = ROOT / "src" / "mutagrad"
PATH = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])


def test_stubs_are_up_to_date() -> None:
    """In a process of its own: once somebody has subclassed Tensor, public functions are wrapped."""
    pytest.importorskip("scipy", reason="needs the extra scipy")
    pytest.importorskip("ml_dtypes", reason="needs the extra bfloat16")
    found = subprocess.run([sys.executable, "-m", "stubs", "--check"], env={**os.environ, "PYTHONPATH": PATH},
                           capture_output=True, text=True, timeout=120)
    assert not found.stderr, found.stderr
    assert not found.stdout, f"run `make stubs`, which writes anew: {found.stdout}"


# --------------------------------------------------------------------------------------------------------------- names


def declared(body: list[ast.stmt]) -> set[str]:
    """The names that a stub has for others to see."""
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names |= {node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
    return names | {a.asname for node in body if isinstance(node, ast.ImportFrom) for a in node.names if a.asname}


def test_stub_has_exactly_the_public_names() -> None:
    stub = declared(ast.parse((HOME / "__init__.pyi").read_text(encoding="utf-8")).body)
    assert [name for name in stub if not hasattr(mg, name)] == []
    here = {name for name in dir(mg) if not name.startswith("_") and not isinstance(getattr(mg, name), ModuleType)}
    public = here | _lazy.FUNCTIONS.keys() | _lazy.MODULES | {"autograd", "__version__"}
    assert stub ^ public == set(), "run `make stubs`"


def test_stub_has_all_members_of_tensor() -> None:
    body = ast.parse((HOME / "tensors" / "tensor.pyi").read_text(encoding="utf-8")).body
    stub = declared(next(node.body for node in body if isinstance(node, ast.ClassDef)))
    assert {name for name in dir(mg.Tensor) if not name.startswith("_")} - stub == set(), "run `make stubs`"
    assert {name for name in stub if not hasattr(mg.Tensor, name)} == {"__getattr__"}, "which the stub takes away"


# ------------------------------------------------------------------------------------------------------------ programs

ACCEPTED = """
import mutagrad as mg
import mutagrad.nn.functional as F
from mutagrad import nn
from mutagrad.errors import ShapeError
from mutagrad.linalg import svd
from mutagrad.utils.data import DataLoader, TensorDataset
from typing_extensions import assert_type


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3, width)
        self.scale = nn.Parameter(mg.ones(width))

    def forward(self, x: mg.Tensor) -> mg.Tensor:
        return F.relu(self.layer(x)) * self.scale


def train(model: Net, x: mg.Tensor, y: mg.Tensor) -> float:
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for rows, wanted in DataLoader(TensorDataset(x, y), batch_size=2):
        optimizer.zero_grad()
        loss = F.mse_loss(model(rows), wanted)
        loss.backward()
        optimizer.step()
    value: float = loss.sum().item()
    return value


mg.manual_seed(0)
x = mg.randn(4, 3, requires_grad=True)
train(Net(2), x.detach(), mg.zeros(4, 2, dtype=mg.float32))
assert_type(mg.sin(x), mg.Tensor)
assert_type(x.sin() + 1 - 2.0 * x / x ** 2 @ mg.eye(3), mg.Tensor)
assert_type(x[0, 1:], mg.Tensor)
assert_type(mg.max(x, 0).values, mg.Tensor)
assert_type(mg.max(x), mg.Tensor)
values, indices = x.sort(dim=1, descending=True)
assert_type(indices, mg.Tensor)
assert_type(x.shape, mg.Size)
assert_type(x.size(0), int)
assert_type(x.dtype, mg.dtype)
assert_type(x.requires_grad, bool)
assert_type(x.grad, mg.Tensor | None)
assert_type(mg.allclose(x, x), bool)
assert_type(x > 0, mg.Tensor)
assert_type(mg.where(x > 0, x, 0.0), mg.Tensor)
assert_type(mg.linalg.svd(x).S, mg.Tensor)
assert_type(svd(x).S, mg.Tensor)
assert issubclass(ShapeError, RuntimeError)
assert_type(mg.fft.fft(x), mg.Tensor)
assert_type(nn.Parameter(x).zero_(), nn.Parameter)
y = x.clone()
y[0] = 5.0
y[1:, 0] += x[1:, 1]
y.mul_(2).clamp_(min=0)
y *= x
with mg.no_grad():
    y.add_(x, alpha=2)
y.sum().backward()
assert x.grad is not None
x.grad = None
gradient, = mg.autograd.grad((x * x).sum(), (x,))
mg.nn.init.zeros_(nn.Linear(3, 4).weight)
nn.utils.clip_grad_norm_(Net(2).parameters(), 1.0)
mg.utils.checkpoint.checkpoint(mg.sin, x, use_reentrant=False)
total = float(x.sum()) + sum(row.sum().item() for row in x)
array = x.detach().numpy()
"""

# Each of these lines is a mistake.
REFUSED = """
mg.sinn(x)
mg.sin(x).foo_bar()
mg.sin("x")
x + "y"
number: int = mg.sin(x)
mg.zeros(2, dtype="float32")
x.shape = (2, 3)
"""


SEVERAL = "tuple[Tensor, ...]"  # of which the checker may know how many there are


def argument(value: Any) -> str:
    """An argument of a sample as text; a LookupError if it has none."""
    if isinstance(value, (Draw, np.ndarray)):
        return "x"
    if isinstance(value, mg.dtype):
        return f"mg.{value.name}"
    if isinstance(value, (list, tuple)):
        return ("[{}]" if isinstance(value, list) else "({})").format("".join(f"{argument(v)}, " for v in value))
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if value is None or isinstance(value, (bool, int, float, complex, str, slice)):
        return repr(value)
    raise LookupError


def call(sample: Sample, form: str) -> str:
    """A call of the function or method, or the reading of the property, that a sample is of."""
    settings = (f"{name}={argument(value)}" for name, value in sample.settings.items())
    given = [*map(argument, sample.arguments), *settings]
    if form == "function":
        return f"mg.{sample.name}({', '.join(given)})"
    return f"x.{sample.name}" + f"({', '.join(given[1:])})" * (form == "method")


def claim(call: str, result: Any, scope: Scope) -> str:
    """A statement that is accepted if the checker knows the type of a call."""
    kind = scope.short(type_name(result))
    return f"several({call})" if kind == SEVERAL else f"assert_type({call}, {kind})"


def sample_program() -> str:
    """All calls of the table of samples, with the types that they really give."""
    scope, claims = Scope("program", {"mg", "x"}), {}
    for sample in SAMPLES:
        # Samples of several calls have no name of their own; mutagrad.masked says itself what it returns.
        for form, function in sample.forms(mg).items() if re.fullmatch(r"(?!masked\.)[\w.]+", sample.name) else ():
            try:
                text = call(sample, form)
            except LookupError:
                continue
            arguments, settings = sample.bind([mg.tensor(a) for a in sample.arrays()], mg.tensor)
            claims[claim(text, function(*arguments, **settings), scope)] = None
    head = ["import mutagrad as mg", "from typing_extensions import assert_type", *scope.header()]
    return "\n".join([*head, "x = mg.ones(2)", f"def several(found: {SEVERAL}) -> None: ...", *claims])


def listed_calls() -> str:
    return "\n".join(["import mutagrad as mg", "x = i = c = s = r = k = mg.ones(2)", *CALLS])


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says about each program."""
    pytest.importorskip("mypy", reason="needs the extra dev")
    pytest.importorskip("scipy", reason="needs the extra scipy")
    folder = tmp_path_factory.mktemp("programs")
    refused = f"import mutagrad as mg\nx = mg.ones(2)\nreveal_type(mg.sin(x)){REFUSED}"
    programs = {"accepted": ACCEPTED, "refused": refused, "sampled": sample_program(), "listed": listed_calls()}
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    options = ["--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={folder / 'cache'}"]
    found = subprocess.run([sys.executable, "-m", "mypy", *options, *(f"{name}.py" for name in programs)],
                           cwd=folder, capture_output=True, text=True,
                           env={**os.environ, "MYPYPATH": str(ROOT / "src")}, timeout=300)
    assert found.returncode == 1 and not found.stderr, found.stdout + found.stderr
    return {name: [line for line in found.stdout.splitlines() if line.startswith(f"{name}.py")] for name in programs}


def test_a_typed_program_is_accepted(complaints: dict[str, list[str]]) -> None:
    assert complaints["accepted"] == []


def test_the_typed_program_runs() -> None:
    pytest.importorskip("typing_extensions", reason="needs the extra dev")
    exec(compile(ACCEPTED, "accepted.py", "exec"), {"__name__": "accepted"})


def test_mistakes_are_found(complaints: dict[str, list[str]]) -> None:
    assert 'Revealed type is "mutagrad.tensors.tensor.Tensor"' in complaints["refused"][0]
    errors = {int(line.split(":")[1]) for line in complaints["refused"] if "error:" in line}
    assert errors == set(range(4, 3 + REFUSED.count("\n"))), complaints["refused"]


@pytest.mark.parametrize("program", ["sampled", "listed"])
def test_what_operations_return_is_known(complaints: dict[str, list[str]], program: str) -> None:
    assert complaints[program] == []
