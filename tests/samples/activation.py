"""Activations, softmax and the layers' products. Those that draw random numbers are in test_dropout.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, Draw, R, each, elsewhere, op
from .core import erf

F = "nn.functional."
WIDE = (-8.0, 8.0)


def wide(*shape: int) -> Draw:
    """Far enough for every piece of the activations that have several."""
    return Draw(shape, *WIDE)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def elu(x: Array, alpha: float = 1.0, inplace: bool = False) -> Array:
    return np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))


def gelu(x: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + erf(x / np.sqrt(2)))


def softmax(x: Array, dim: int) -> Array:
    e = np.exp(x)
    return e / e.sum(dim, keepdims=True)


# ---------------------------------------------------------------------------------------------------------- straight pieces

for name in ("relu", "relu_"):
    op(F + name, R(5, 7), ref=lambda x: np.maximum(x, 0))
op(F + "relu6", wide(5, 7), ref=lambda x: np.clip(x, 0, 6))
for name in ("hardtanh", "hardtanh_"):
    op(F + name, R(5, 7), ref=lambda x: np.clip(x, -1, 1))
op(F + "hardtanh", R(5, 7), -0.5, max_val=1.5, ref=lambda x, low, max_val: np.clip(x, low, max_val))
each(F + "leaky_relu", R, ref=lambda x: np.where(x > 0, x, 0.01 * x))
for name in ("leaky_relu", "leaky_relu_"):
    op(F + name, R(5, 7), 0.25, ref=lambda x, slope: np.where(x > 0, x, slope * x))
op(F + "leaky_relu", R(5, 7), -1.5, ref=lambda x, slope: np.where(x > 0, x, slope * x))
op(F + "hardsigmoid", wide(5, 7), ref=lambda x: np.clip(x / 6 + 0.5, 0, 1))
op(F + "hardswish", wide(5, 7), ref=lambda x: x * np.clip(x / 6 + 0.5, 0, 1))
op("hardshrink", R(5, 7), ref=lambda x: np.where(np.abs(x) <= 0.5, 0, x))
op("hardshrink", R(5, 7), lambd=1.0, ref=lambda x, lambd: np.where(np.abs(x) <= lambd, 0, x))
op(F + "softshrink", R(5, 7), 0.75, ref=lambda x, lambd: np.sign(x) * np.maximum(np.abs(x) - lambd, 0))
for name in ("threshold", "threshold_"):
    op(name, R(5, 7), 0.25, -3.0, ref=lambda x, bound, value: np.where(x > bound, x, value))
op("prelu", R(5, 7), R(7), ref=lambda x, w: np.where(x > 0, x, w * x))
op("prelu", R(2, 3, 5), R(3), ref=lambda x, w: np.where(x > 0, x, w[:, None] * x))
op("prelu", R(5, 7), R(1), ref=lambda x, w: np.where(x > 0, x, w * x))
op("prelu", R(), R(), ref=lambda x, w: np.where(x > 0, x, w * x))
op("rrelu", R(5, 7), 0.1, 0.3, ref=lambda x, low, high: np.where(x > 0, x, 0.2 * x), note=" not training")
op("rrelu_", R(5, 7), 0.1, 0.3, ref=lambda x, low, high: np.where(x > 0, x, 0.2 * x), note=" not training")

# ------------------------------------------------------------------------------------------------------------ exponentials

each(F + "gelu", wide, ref=gelu)
op(F + "gelu", wide(5, 7), approximate="tanh", ref=gelu)
op(F + "elu", wide(5, 7), ref=elu)
for name in ("elu", "elu_"):
    op(F + name, wide(5, 7), 1.5, ref=elu)
op(F + "elu", wide(5, 7), -0.5, ref=elu)
for name in ("celu", "celu_"):
    op(name, wide(5, 7), 1.5, ref=lambda x, alpha: alpha * elu(x / alpha))
for name in ("selu", "selu_"):
    op(name, wide(5, 7), ref=lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772))
op(F + "silu", wide(5, 7), ref=lambda x: x * sigmoid(x), complex=True)
op(F + "mish", Draw((5, 7), -25, 25), ref=lambda x: x * np.tanh(np.logaddexp(x, 0)))
op(F + "softplus", wide(5, 7), ref=lambda x: np.logaddexp(x, 0))
op(F + "softplus", wide(5, 7), 2, 30.0, ref=lambda x, beta, bound: np.logaddexp(x * beta, 0) / beta)
op(F + "logsigmoid", Draw((5, 7), -40, 40), ref=lambda x: -np.logaddexp(-x, 0))
op(F + "softsign", R(5, 7), ref=lambda x: x / (1 + np.abs(x)), complex=True)
op(F + "tanhshrink", R(5, 7), ref=lambda x: x - np.tanh(x), complex=True)
op(F + "glu", R(5, 8), ref=lambda x: x[:, :4] * sigmoid(x[:, 4:]))
op(F + "glu", R(4, 7), dim=0, ref=lambda x, dim: x[:2] * sigmoid(x[2:]))

# ----------------------------------------------------------------------------------------------------------------- softmax

op(F + "softmax", R(5, 7), dim=1, ref=softmax)
op(F + "softmin", R(5, 7), dim=0, ref=lambda x, dim: softmax(-x, dim))
op(F + "log_softmax", R(5, 7), dim=-1, ref=lambda x, dim: np.log(softmax(x, dim)))
op(F + "normalize", R(5, 7), ref=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True), complex=True)
op(F + "normalize", R(5, 7), 3.0, dim=0, ref=lambda x, p, dim: x / np.linalg.norm(x, p, axis=dim, keepdims=True))
op(F + "normalize", R(5, 7), eps=100.0, ref=lambda x, eps: x / eps)

# ---------------------------------------------------------------------------------------------------------------- products


def linear(x: Array, w: Array, b: Any = 0) -> Array:
    return x @ w.T + b


op(F + "linear", R(5, 7), R(4, 7), R(4), ref=linear, complex=True)
op(F + "linear", R(5, 7), R(4, 7), ref=linear)
op(F + "linear", R(2, 3, 7), R(6, 7), R(6), ref=linear)
op(F + "linear", R(7), R(6, 7), R(6), ref=linear)
op(F + "linear", R(2, 3, 7), R(7), R(), ref=linear)
op(F + "linear", R(0, 7), R(4, 7), R(4), ref=linear)
op("bilinear", R(3, 4), R(3, 5), R(2, 4, 5), R(2), ref=lambda x, y, w, b: np.einsum("ni,kij,nj->nk", x, w, y) + b)
op("bilinear", R(4), R(5), R(2, 4, 5), ref=lambda x, y, w: np.einsum("i,kij,j->k", x, w, y))
op(F + "one_hot", np.array([[0, 2], [1, 1]]), ref=lambda i: np.eye(3, dtype=int)[i], grad=False)
op(F + "one_hot", np.array([0, 2]), 5, ref=lambda i, n: np.eye(n, dtype=int)[i], grad=False)

elsewhere("""
    alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ native_dropout
    native_dropout_backward nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.gumbel_softmax""")
