"""What published programs use of PyTorch is here: every row of api_usage.csv that two programs or more use."""
from __future__ import annotations

import csv
import importlib
import pathlib
from typing import Any

import pytest

import mutagrad as mg

TABLE = pathlib.Path(__file__).with_name("api_usage.csv")
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
USED = [row for row in ROWS if int(row["programs"]) >= 2]

# What is not here, and why. The table counts methods by name, so that some of these are other objects' methods.
EXCEPTIONS = {
    "Tensor.index": "ambiguous in the table: lists and strings have it, and PyTorch does not document a tensor's",
    "Tensor.name": "ambiguous in the table: files and nodes have it; a plain tensor's is None in PyTorch",
    "Tensor.solve": "PyTorch has removed it, and raises",
}

SYNTAX = {
    "x op= v": "x = mg.ones(3); x += 1", "x[slice/multi]": "mg.ones(3, 3)[1:, 0]", "x[idx] = v": "x = mg.ones(3); x[mg.tensor([0])] = 2.0", "x[...]": "mg.ones(2, 2)[..., 0]",
    "a @ b": "mg.ones(2, 2) @ mg.ones(2)", "x[idx] op= v": "x = mg.ones(3); x[x > 0] *= 2", "x[None]": "mg.ones(2)[None]",
}


def members(symbol: str) -> tuple[Any, str]:
    """Where a name of the table should be found here, and the rest of the name."""
    owner, _, rest = symbol.partition(".")
    if owner == "torch":
        return mg, rest
    if owner == "Tensor":
        return mg.ones(2, 2, requires_grad=True), rest
    if owner == "Module":
        return mg.nn.Module(), rest
    if owner == "Optimizer":
        return importlib.import_module("mutagrad.optim").SGD([mg.ones(1, requires_grad=True)], lr=0.1), rest
    assert owner == "ctx", symbol
    return importlib.import_module("mutagrad.autograd.function").Context, rest


def find(symbol: str) -> Any:
    """The object under PyTorch's name; AttributeError where there is none."""
    found, names = members(symbol)
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            if not hasattr(found, "__path__"):
                raise
            found = importlib.import_module(f"{found.__name__}.{name}")
    return found


def is_here(symbol: str) -> bool:
    try:
        find(symbol)
    except (AttributeError, ModuleNotFoundError):
        return False
    return True


@pytest.mark.parametrize("symbol", [row["symbol"] for row in USED if row["kind"] != "syntax" and row["symbol"] not in EXCEPTIONS])
def test_name_is_here(symbol: str) -> None:
    assert is_here(symbol), f"{symbol} is used by {next(row['programs'] for row in USED if row['symbol'] == symbol)} programs"


@pytest.mark.parametrize("symbol", [row["symbol"].removeprefix("<syntax> ") for row in USED if row["kind"] == "syntax"])
def test_syntax_works(symbol: str) -> None:
    exec(SYNTAX[symbol], {"mg": mg})


def test_exceptions_are_still_exceptions() -> None:
    """Each is in the table, and not here."""
    assert set(EXCEPTIONS) <= {row["symbol"] for row in ROWS}
    assert [symbol for symbol in EXCEPTIONS if is_here(symbol)] == []
