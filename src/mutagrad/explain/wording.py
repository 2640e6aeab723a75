"""The words of `why`: what is said of each cut and each operation that passes nothing on, and what to write instead."""
from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """A cause, what is said about it, and the corrected code."""

    cause: str
    said: str
    fix: str


COMPARISON = Words("no_derivative", "compared: the result is True or False, which does not change by a little",
                   "mutagrad.relax.where(...), or mutagrad.sigmoid((x - threshold) / temperature), is smooth")
NUMBERS = "became a Python number, which has no history"
# Operations that give truth values.
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "isclose", "isnan", "isinf", "isfinite", "signbit", "logical_and",
               "logical_or", "logical_not", "logical_xor", "equal")

# By the kind of a cut.
CUT = {
    "detach": Words("detached", "cut off by detach()", "leave .detach() out, or clone() for a copy with its history"),
    "detach_": Words("detached", "cut off by detach_()", "leave .detach_() out"),
    "data": Words("detached", "cut off by .data", "use x itself; with mutagrad.no_grad(): for an update in place"),
    "no_grad": Words("no_grad", "used in no_grad, where nothing is recorded", "compute it outside of no_grad"),
    "item": Words("item", f"read by item(): it {NUMBERS}", "leave .item() out, and compute with the tensor"),
    "number": Words("item", f"read by float() or int(): it {NUMBERS}", "compute with the tensor itself"),
    "tolist": Words("item", f"read by tolist(): it {NUMBERS}", "compute with the tensor itself"),
    "numpy": Words("numpy", "handed to NumPy, which keeps no history", "compute with tensors, not with arrays"),
    "tensor": Words("tensor", "copied as data by tensor(...)", "mutagrad.stack([a, b]) of tensors, or x.clone()"),
    "parameter": Words("parameter", "made a leaf of its own by Parameter(...)",
                       "keep the tensor that it was computed from as the parameter, and compute it anew at each step"),
    "comparison": COMPARISON,
    **dict.fromkeys(COMPARISONS, COMPARISON),
    "cast": Words("no_derivative", "cast to integers or booleans, which have no derivative",
                  "stay with floats; mutagrad.relax.round(x) rounds with a gradient"),
    "index": Words("no_derivative", "used as an index, which has no derivative",
                   "mutagrad.relax.read(table, x) reads at fractional positions"),
    "indices": Words("no_derivative", "used by its positions (indices), which have no derivative",
                     "use the values; mutagrad.relax.argmax(x) or mutagrad.relax.sort(x) is smooth"),
    **{name: Words("no_derivative", f"passed through {name}, which gives positions and has no derivative",
                   f"mutagrad.relax.{name}(x) is smooth") for name in ("argmax", "argmin", "argsort")},
    **{name: Words("no_derivative", f"passed through {name}, of which only the values have a derivative",
                   f"use the values of {name}; mutagrad.relax.{relaxed}(x) is smooth")
       for name, relaxed in (("sort", "sort"), ("topk", "sort"), ("max", "argmax"), ("min", "argmin"),
                             ("kthvalue", "sort"), ("median", "sort"), ("mode", "sort"))},
    **{name: Words("no_derivative", f"passed through {name}, which has no derivative",
                   "mutagrad.relax.where(...), or a sum of mutagrad.sigmoid(...), is smooth")
       for name in ("any", "all", "count_nonzero", "nonzero", "argwhere", "searchsorted", "bucketize", "histc",
                    "unique", "one_hot", "allclose")},
    "multinomial": Words("no_derivative", "drawn from by multinomial, which has no derivative",
                         "mutagrad.nn.functional.gumbel_softmax(logits) draws with a gradient"),
}

SMOOTH = "leaky_relu, gelu or softplus pass a little everywhere"
ROUNDED = ("round", "floor", "ceil", "trunc")

# By the operation whose derivative is exactly zero.
FLAT = {
    **dict.fromkeys(("relu", "relu6", "threshold"),
                    Words("dead", "{op} passes nothing on where its input is not positive: it is dead there", SMOOTH)),
    **dict.fromkeys(("mul", "matmul", "linear", "linear_bias", "dot", "bmm", "mv", "mm", "einsum", "prod"),
                    Words("zero", "{op} multiplies by exactly zero",
                          "look at the other factor: a mask, or a weight that was never set")),
    **dict.fromkeys(("where", "masked_fill", "masked"),
                    Words("zero", "{op} takes the other value there: it is masked", "look at the condition")),
    **dict.fromkeys(("clamp", "hardtanh", "hardsigmoid", "clip"),
                    Words("zero", "{op} is constant outside of its range, and the value is there",
                          "a wider range, or mutagrad.relax.clamp(x, low, high)")),
    **dict.fromkeys(("sigmoid", "tanh", "softmax", "log_softmax", "erf"),
                    Words("dead", "{op} is saturated: its derivative is too small for the type",
                          "smaller inputs, or a normalization before it")),
    **dict.fromkeys(("max", "amax", "min", "amin", "maximum", "minimum", "max_pool", "fmax", "fmin"),
                    Words("zero", "{op} passes nothing on to what it did not choose",
                          "mutagrad.logsumexp(x, 0) has a share for each")),
    "dropout": Words("zero", "{op} dropped it", "model.eval() switches dropout off"),
}
NOTHING = Words("zero", "the derivative of {op} is exactly zero there", "look at the values there")


def flat(op: str) -> Words:
    """Return what to say of an operation whose derivative is zero."""
    return FLAT.get(op, NOTHING)


def without_derivative(op: str) -> Words:
    """Return what to say of an operation whose derivative is zero wherever it has one."""
    relaxed = op if op in ROUNDED else "where" if op in ("sign", "heaviside") else "round"
    fix = ("mutagrad.nn.functional.gumbel_softmax draws with a gradient" if op in ("bernoulli", "poisson", "binomial")
           else f"mutagrad.relax.{'round' if op in ROUNDED else relaxed}(x) has a gradient")
    return Words("no_derivative", f"{op} is flat: its derivative is zero wherever it has one", fix)
