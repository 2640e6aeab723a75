"""Carries values from PyTorch to mutagrad, and says in words where two answers differ."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mutagrad as mg

torch = pytest.importorskip("torch", reason="make oracle installs it")

DTYPES = {getattr(torch, name): getattr(mg, name) for name in
          ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
           "float16", "bfloat16", "float32", "float64", "complex64", "complex128")}
# Relative and absolute: what is left of two ways to compute the same in float32 and float64.
TOLERANCE = {"float16": (2e-3, 1e-3), "bfloat16": (1e-2, 8e-3), "float32": (3e-5, 1e-5), "complex64": (5e-5, 2e-5), "float64": (1e-9, 1e-9), "complex128": (1e-9, 1e-9)}


class Unmapped(Exception):
    """A value of PyTorch's that has no counterpart here, such as a quantized tensor."""


# ------------------------------------------------------------------------------------------------------- from PyTorch to us

def ours(value: Any) -> Any:
    """The same value for mutagrad: tensors with their strides, dtypes, devices, and sequences of these."""
    if isinstance(value, torch.Tensor):
        return our_tensor(value)
    if isinstance(value, torch.dtype):
        return _our_dtype(value)
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return mg.Size(value)
    if isinstance(value, (torch.memory_format, torch.layout)):
        return getattr(mg, name_of(value), value)
    if isinstance(value, slice):
        return slice(ours(value.start), ours(value.stop), ours(value.step))
    if isinstance(value, (tuple, list)):
        return type(value)(ours(v) for v in value)
    if isinstance(value, dict):
        return {name: ours(v) for name, v in value.items()}
    return value


def _our_dtype(dtype: Any) -> Any:
    if dtype not in DTYPES:
        raise Unmapped(f"no {dtype}")
    return DTYPES[dtype]


def our_tensor(t: Any) -> Any:
    _our_dtype(t.dtype)
    if t.layout is not torch.strided or t.device.type != "cpu":
        raise Unmapped(f"{t.layout} on {t.device}")
    plain = t.detach().resolve_conj().resolve_neg()
    stored = plain.untyped_storage().nbytes() // plain.itemsize
    if plain.is_contiguous() and stored == plain.numel():
        made = mg.tensor(array(plain)).to(_our_dtype(t.dtype))
    else:
        made = mg.tensor(array(plain.as_strided((stored,), (1,), 0))).to(_our_dtype(t.dtype))
        made = made.as_strided(plain.shape, plain.stride(), plain.storage_offset())
    return made.requires_grad_(t.requires_grad)


# ------------------------------------------------------------------------------------------------------- what is different

def tensors(tree: Any) -> Iterator[Any]:
    """Every tensor of either library in nested sequences, in order."""
    if isinstance(tree, (torch.Tensor, mg.Tensor)):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for v in tree:
            yield from tensors(v)
    elif isinstance(tree, dict):
        for v in tree.values():
            yield from tensors(v)


def array(t: Any) -> Any:
    if name_of(t.dtype) == "bfloat16":  # which NumPy has not
        t = t.float()
    return t.numpy(force=True) if isinstance(t, torch.Tensor) else np.array(t.detach().numpy())


def name_of(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


def difference(expected: Any, found: Any, values: bool = True, tolerance: tuple[float, float] | None = None) -> str:
    """In what `found` is not what PyTorch gave; "" if in nothing."""
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(expected, found, values, tolerance)
    if isinstance(expected, (tuple, list)):
        if not isinstance(found, (tuple, list)) or len(found) != len(expected):
            return f"expected {len(expected)} results, found {len(found) if isinstance(found, (tuple, list)) else type(found).__name__}"
        parts = (difference(e, f, values, tolerance) for e, f in zip(expected, found))
        return next((f"[{i}] {text}" for i, text in enumerate(parts) if text), "")
    if isinstance(expected, torch.dtype):
        return "" if name_of(expected) == name_of(found) else f"{found}, not {expected}"
    same_kind = type(expected) is type(found) or isinstance(expected, tuple)
    same = expected == found or expected != expected and found != found
    return "" if same_kind and (same or not values) else f"{found!r}, not {expected!r}"


def _tensor_difference(expected: Any, found: Any, values: bool, tolerance: tuple[float, float] | None) -> str:
    if not isinstance(found, mg.Tensor):
        return f"{type(found).__name__}, not a tensor"
    if name_of(found.dtype) != name_of(expected.dtype):
        return f"dtype {name_of(found.dtype)}, not {name_of(expected.dtype)}"
    if tuple(found.shape) != tuple(expected.shape):
        return f"shape {tuple(found.shape)}, not {tuple(expected.shape)}"
    tolerance = tolerance or TOLERANCE.get(name_of(expected.dtype))
    return value_difference(array(expected), array(found), tolerance) if values else ""


def value_difference(expected: Any, found: Any, tolerance: tuple[float, float] | None = None) -> str:
    if expected.dtype.kind in "fc":
        relative, absolute = tolerance or TOLERANCE[expected.dtype.name]
        with np.errstate(all="ignore"):
            same = np.isclose(found, expected, relative, absolute, equal_nan=True)
    else:
        same = found == expected
    if np.all(same):
        return ""
    return f"values {_few(found[~same])}, not {_few(expected[~same])} ({np.count_nonzero(~same)} of {same.size})"


def _few(values: Any) -> str:
    return str(values[:4].tolist()) if values.ndim else str(values)


# ------------------------------------------------------------------------------------------------------------- derivatives

def cotangents(results: Any, seed: int = 0) -> list[Any]:
    """A fixed random adjoint for each of PyTorch's results that has a history."""
    rng = np.random.default_rng(seed)
    found = []
    for t in tensors(results):
        if t.requires_grad:
            draw = rng.standard_normal(t.shape) + (1j * rng.standard_normal(t.shape) if t.is_complex() else 0)
            found.append(torch.from_numpy(np.asarray(draw)).to(t.dtype))
    return found


def gradients(library: Any, results: Any, inputs: Any, seeds: list[Any]) -> list[Any]:
    """The derivative for every input that requires one; zeros where there is no path."""
    outputs = [t for t in tensors(results) if t.requires_grad]
    wanted = [t for t in tensors(inputs) if t.requires_grad]
    if not outputs:
        return [library.zeros_like(t) for t in wanted]
    found = library.autograd.grad(outputs, wanted, seeds, allow_unused=True)
    return [library.zeros_like(t) if g is None else g for t, g in zip(wanted, found)]


def gradient_difference(expected: Any, found: Any, their_inputs: Any, our_inputs: Any, tolerance: tuple[float, float] | None = None) -> str:
    """Compares the derivatives of two results, given the inputs that each was computed from."""
    flags = [t.requires_grad for t in tensors(expected)], [t.requires_grad for t in tensors(found)]
    if flags[0] != flags[1]:
        return f"requires_grad {flags[1]}, not {flags[0]}"
    if not any(flags[0]):
        return ""
    seeds = cotangents(expected)
    theirs, refused = attempt(lambda: gradients(torch, expected, their_inputs, seeds), quiet=True)
    mine = gradients(mg, found, our_inputs, [ours(s) for s in seeds])
    if refused is not None:  # PyTorch has no derivative for a few forms that have one here
        return ""
    text = difference(*_where_defined(expected, theirs, mine), tolerance=tolerance)
    return f"gradient {text}" if text else ""


def _where_defined(result: Any, theirs: list[Any], mine: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both with zeros where the result itself is nan: what has no value has no derivative to compare."""
    if not isinstance(result, torch.Tensor) or not result.isnan().any():
        return theirs, mine
    defined = ~result.detach().isnan()
    return ([torch.where(defined, g, 0.0) if g.shape == defined.shape else g for g in theirs],
            [mg.where(ours(defined), g, 0.0) if g.shape == defined.shape else g for g in mine])


# ----------------------------------------------------------------------------------------------------------------- outcomes

def attempt(call: Callable[[], Any], quiet: bool = False) -> tuple[Any, Exception | None]:
    """What a call returned, or what it raised. `quiet` for PyTorch's calls: its warnings are not ours to judge."""
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore")
        try:
            return call(), None
        except Exception as error:
            return None, error


def stands_for(theirs: Exception, mine: Exception) -> bool:
    """Whether an `except` clause written for PyTorch's error catches ours."""
    return isinstance(mine, type(theirs))
