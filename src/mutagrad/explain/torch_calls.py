"""Names the parts of a call, and tells what a rule about PyTorch may ask of it: kinds, values, layouts in memory.

A tensor is named by its *slot*: its position ("0"), its keyword where it has no position ("mask"), "1.2" for the third
tensor of a sequence at position 1; results are "out", or "out.0", "out.1" where there are several. All of this works on
tensors of either library, because the table is made with PyTorch's and asked with ours.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SCALARS = (bool, int, float, str, type(None))
KINDS = {bool: "bool", int: "number", float: "number", complex: "number", str: "str", type(None): "None"}

# ------------------------------------------------------------------------------------- slots of a call

def is_tensor(value: Any) -> bool:
    """Return whether this is a tensor, of either library."""
    return hasattr(value, "requires_grad") and hasattr(value, "ndim")


def by_slot(args: Sequence[Any], kwargs: Mapping[str, Any], parameters: str = "") -> dict[str, Any]:
    """Return the arguments by position, those given by keyword and defaults too where the parameters are known.

    >>> by_slot((1,), {"dim": 0, "other": 3}, "input other alpha=1")
    {'2': 1, '0': 1, 'dim': 0, '1': 3}
    """
    positions = {name.partition("=")[0]: str(i) for i, name in enumerate(parameters.split())}
    defaults = {str(i): json.loads(text) for i, p in enumerate(parameters.split()) for text in p.split("=")[1:]}
    return defaults | {str(i): v for i, v in enumerate(args)} | {positions.get(k, k): v for k, v in kwargs.items()}


def tensors_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensors among arguments by slot, those in sequences too; of sparse ones the values."""
    found = {}
    for slot, value in values.items():
        if is_tensor(value):
            found[slot] = value._numbers if getattr(value, "_own_layout", False) else value
        elif isinstance(value, (tuple, list)):
            found |= tensors_of({f"{slot}.{i}": v for i, v in enumerate(value)})
    return found


def results_of(result: Any) -> dict[str, Any]:
    """Return the tensors of a result by slot: "out", or "out.0" and so on."""
    return tensors_of({"out": result})


# ------------------------------------------------------------------------------------------ conditions

def kind(value: Any) -> str:
    """Return the kind of an argument, as conditions name it."""
    if is_tensor(value):
        return "tensor"
    if isinstance(value, slice):
        return "slice"
    if value is Ellipsis:
        return "..."
    if isinstance(value, (tuple, list)):
        return "sequence"
    return KINDS.get(type(value), "other")


def value(argument: Any) -> Any:
    """Return a setting as conditions compare it: a number, a flag or a word, else None."""
    return argument if isinstance(argument, SCALARS) else None


def element_kind(argument: Any) -> str | None:
    """Return the kind of a tensor's elements."""
    if not is_tensor(argument):
        return None
    if argument.dtype.is_floating_point:
        return "float"
    return "complex" if argument.dtype.is_complex else "bool" if str(argument.dtype).endswith("bool") else "int"


def merge(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether these dimensions can be viewed as one.

    >>> merge((2, 3), (3, 1)), merge((3, 2), (1, 3))
    (True, False)
    """
    kept = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    return all(kept[i][1] == kept[i + 1][0] * kept[i + 1][1] for i in range(len(kept) - 1))


def rows_merge(x: Any) -> bool | None:
    """Return whether all dimensions but the last can be viewed as one, as a product with a matrix wants them."""
    return merge(tuple(x.shape)[:-1], tuple(x.stride())[:-1]) if is_tensor(x) else None


def columns_merge(x: Any) -> bool | None:
    """Return the same of the transposed, for a product with a matrix on the left."""
    return rows_merge(x.mT) if is_tensor(x) and x.ndim > 1 else None


def batches_merge(x: Any, other: Any) -> bool | None:
    """Return whether the leading dimensions, broadcast with another's, can be viewed as one, as batches want them."""
    if not (is_tensor(x) and is_tensor(other) and x.ndim > 2):
        return None
    n = max(x.ndim, other.ndim) - 2
    ours, theirs = (([1] * n + list(t.shape)[:-2])[-n:] for t in (x, other))
    strides = ([0] * n + list(x.stride())[:-2])[-n:]
    shape = [max(a, b) for a, b in zip(ours, theirs)]
    strides = [stride if m == k else 0 for m, k, stride in zip(ours, shape, strides)]
    return merge(shape, strides)


def product(x: Any, y: Any) -> str | None:
    """Return which factors of a matrix product PyTorch keeps as they are; of the others it keeps copies."""
    if not (is_tensor(x) and is_tensor(y)):
        return None
    a, b = x.ndim > 2, y.ndim > 2
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:  # a batch of one is taken for a matrix
        a, b = x.shape[0] != 1, y.shape[0] != 1
    left = not a or bool(batches_merge(x, y) if b else rows_merge(x))
    right = not b or bool(batches_merge(y, x) if a else columns_merge(y))
    return which(left, right)


def which(left: bool, right: bool) -> str:
    return "both" if left and right else "left" if left else "right" if right else "none"


def contraction(equation: Any, x: Any, y: Any) -> str | None:
    """Return the same for the operands of einsum, which makes one product of batches; None if there are not two."""
    if not (isinstance(equation, str) and is_tensor(x) and is_tensor(y)) or "..." in equation:
        return None
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != 2 or any(len(set(term)) != len(term) for term in terms):
        return None
    kept = "".join(sorted(c for c in set(inputs) - {","} if inputs.count(c) == 1)) if not arrow else output
    left, right = ({c: (n, s) for c, n, s in zip(term, t.shape, t.stride()) if n > 1} for term, t in zip(terms, (x, y)))
    order = kept + "".join(sorted({*left, *right} - {*kept}))
    return which(operand_merges(left, right, kept, order), operand_merges(right, left, kept, order))


def operand_merges(mine: Mapping[str, Any], other: Mapping[str, Any], kept: str, order: str) -> bool:
    """Return whether an operand of einsum can be viewed as a batch of matrices."""
    if any(c not in other and c not in kept for c in mine):  # summed before the product
        return False
    if not any(c in other and c not in kept for c in mine):  # multiplied element by element
        return True
    kinds = {c: (c in other, c in kept) for c in order if c in mine}
    groups = ([mine[c] for c in kinds if kinds[c] == kind] for kind in set(kinds.values()))
    return all(merge(*zip(*group)) for group in groups)


def index_kind(argument: Any) -> str:
    """Return "basic" for an index that takes a view, "mask" if it holds booleans, otherwise "positions"."""
    parts = argument if isinstance(argument, tuple) else (argument,)
    if any(element_kind(p) == "bool" and p.ndim for p in parts):
        return "mask"
    basic = (int, slice, type(None), type(Ellipsis))
    return "basic" if all(isinstance(p, basic) or is_tensor(p) and p.ndim == 0 for p in parts) else "positions"


FEATURES: dict[str, Callable[[Any], Any]] = {
    "kind": kind,
    "value": value,
    "zero": lambda x: kind(x) == "number" and x == 0,
    "index": index_kind,
    "elements": element_kind,
    "dims": lambda x: x.ndim if is_tensor(x) else None,
    "length": lambda x: len(x) if isinstance(x, (tuple, list)) else None,
    "contiguous": lambda x: x.is_contiguous() if is_tensor(x) else None,
    "rows": rows_merge,
    "single": lambda x: x.numel() == 1 if is_tensor(x) else None,
}
SEVERAL: dict[str, Callable[..., Any]] = {
    "shapes": lambda x, y: is_tensor(x) and is_tensor(y) and tuple(x.shape) == tuple(y.shape),
    "product": product,
    "contraction": contraction,
}


def feature(name: str, values: Mapping[str, Any]) -> Any:
    """Return what a condition compares: "dims 0" the dimensions of argument 0, "shapes 0 1" whether two agree.

    An argument that is not given and has no default is None.
    """
    word, *slots = name.split()
    return (SEVERAL if word in SEVERAL else FEATURES)[word](*(values.get(slot) for slot in slots))


def same_value(found: Any, expected: Any) -> bool:
    """Return whether two values of a feature are the same, as 1 and True are not."""
    return found == expected and isinstance(found, bool) == isinstance(expected, bool)


def holds(conditions: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Return whether all conditions of a case hold."""
    return all(same_value(feature(name, values), expected) for name, expected in conditions.items())
