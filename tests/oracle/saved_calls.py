"""The calls that PyTorch is asked about: those of its own table of operations, and those of own_calls.py that this lacks."""
from __future__ import annotations

import functools
import inspect
import itertools
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from .own_calls import OWN
from .saved_probe import Call, differentiable, quietly, seed, tensors_of, torch

pytest.importorskip("expecttest", reason="PyTorch's table imports it; make oracle installs it")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.overrides import get_testing_overrides
    from torch.testing._internal.common_methods_invocations import op_db

LARGEST = 600  # elements of a sample's tensor
MOST = 16  # samples of an entry, taken evenly from all
OVERRIDES = quietly(get_testing_overrides)
# Entries that are no public function, or whose arguments come in an order of their own: own_calls.py has the real ones.
OWN_ORDER = {"einsum", "where", "polygamma", "special.polygamma", "nn.functional.embedding", "nn.functional.embedding_bag", "svd_lowrank", "pca_lowrank", "normal",
             "linalg.eig", "linalg.lstsq-grad_oriented", "linalg.pinv-singular", "__getitem__", "item", "slice", "zero_", "resize_", "resize_as_", "nn.functional.multi_head_attention_forward",
             "nn.functional.scaled_dot_product_attention", "to_sparse"}
PRIVATE = ("_", "masked.", "jiterator", "torch.ops", "max_pool2d_with_indices_backward", "native_dropout_backward", "ops.")
ROOMS = ("", "nn.functional.", "special.", "linalg.", "fft.")
# Parameters that share a position, or that PyTorch does not tell.
PARAMETERS = {
    "max": "input other", "min": "input other", "where": "condition input other", "clamp": "input min max", "clip": "input min max", "pow": "input exponent", "float_power": "input exponent",
    "__pow__": "input exponent", "std": "input dim", "var": "input dim", "div": "input other", "index_put_": "self indices values accumulate", "index_put": "self indices values accumulate",
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "input hx params has_biases num_layers dropout train bidirectional batch_first"), "__setitem__": "self index value", "__getitem__": "self index",
}


def public(name: str) -> Any:
    """The function or method of this name; None if there is none."""
    method = getattr(torch.Tensor, name, None)
    if name.startswith("__"):
        return method
    try:
        found = functools.reduce(getattr, name.split("."), torch)
    except AttributeError:
        return method
    return method if isinstance(found, torch.dtype) else found


def parameters(name: str, function: Any) -> str:
    """The parameters that can be given by position, with their defaults."""
    if name in PARAMETERS or name.rstrip("_") in PARAMETERS:
        return PARAMETERS.get(name, PARAMETERS.get(name.rstrip("_"), ""))
    try:
        found = inspect.signature(OVERRIDES.get(function, function)).parameters.values()
    except (ValueError, TypeError):
        return ""
    return " ".join(map(parameter, itertools.takewhile(by_position, found)))


def by_position(p: inspect.Parameter) -> bool:
    return p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in ("out", "args", "kwargs")


def parameter(p: inspect.Parameter) -> str:
    plain = type(p.default) in (bool, int, float, str) and " " not in str(p.default)
    return f"{p.name}={json.dumps(p.default)}" if plain else p.name


# ------------------------------------------------------------------------------------------------- PyTorch's own table

def entry_id(op: Any) -> str:
    return f"{op.name}-{op.variant_test_name}" if op.variant_test_name else str(op.name)


def samples(op: Any) -> list[Any]:
    """Some samples of an entry, of moderate size and none of them empty."""
    seed()
    found = [s for s in quietly(lambda: list(op.sample_inputs("cpu", torch.float64, requires_grad=True))) if usable(s)]
    return found[:: max(1, -(-len(found) // MOST))]


def usable(sample: Any) -> bool:
    tensors = tensors_of({"0": sample.input, "1": list(sample.args), "2": list(sample.kwargs.values())}).values()
    return all(0 < t.numel() <= LARGEST and t.layout is torch.strided for t in tensors) and any(map(differentiable, tensors))


def names(op: Any) -> Iterator[str]:
    """Every public name under which this entry's samples may be tried: aliases, the same in other rooms, in place."""
    bare = op.name.rpartition(".")[2]
    for name in dict.fromkeys([op.name, *(a.name for a in op.aliases), *(f"{room}{bare}" for room in ROOMS)]):
        yield from (n for n in (name, f"{name}_") if callable(public(n)))


def table_calls() -> Iterator[tuple[str, list[Call]]]:
    """The calls of PyTorch's table, function by function."""
    for op in op_db:
        if entry_id(op) in OWN_ORDER or op.name in OWN_ORDER or op.name.startswith(PRIVATE) and not op.name.startswith("__"):
            continue
        if torch.float64 in op.dtypes:
            tried = samples(op)
            for name in names(op):
                yield name, [made for s in tried for made in calls_of(name, s)]


def calls_of(name: str, sample: Any) -> Iterator[Call]:
    function = public(name)
    known = parameters(name, function)
    args = (sample.input, *sample.args)
    yield Call(name, function, args, sample.kwargs, known)
    if " inplace" in known and "inplace" not in sample.kwargs:
        yield Call(name, function, args, {**sample.kwargs, "inplace": True}, known)


# ---------------------------------------------------------------------------------------------------------- our own calls

def own_calls() -> Iterator[tuple[str, list[Call]]]:
    """The calls of own_calls.py."""
    for name, made in OWN.items():
        function = public(name)
        assert function is not None, name
        yield name, [Call(name, function, args, kwargs, parameters(name, function)) for args, kwargs in made]


def all_calls() -> dict[str, list[Call]]:
    """Every call, by the public name of its function."""
    found: dict[str, list[Call]] = {}
    for name, made in (*table_calls(), *own_calls()):
        found.setdefault(name, []).extend(made)
    return found
