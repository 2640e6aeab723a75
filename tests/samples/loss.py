"""Losses and distances."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np

from .base import WITHIN01, Array, P, R, domain, op

F = "nn.functional."
CLASSES = np.array([2, 0, 3, 3, 1, 2])  # of 4, for six samples
PLANE = np.array([[[0, 2], [1, 1]], [[2, 0], [-100, 1]]])  # of 3, for two samples of two by two
SIGNS = np.where(np.arange(35).reshape(5, 7) % 3 == 1, -1, 1)
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.25])
FAR = domain(-4, 4)


def reduced(loss: Array, reduction: str = "mean", weight: Any = None) -> Array:
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean() if weight is None else loss.sum() / weight.sum()


def log_softmax(x: Array) -> Array:
    """Along the classes of (N, C, ...)."""
    return x - np.log(np.exp(x).sum(1, keepdims=True))


# -------------------------------------------------------------------------------------------------- differences of numbers

def mse(x: Array, y: Array, reduction: str = "mean", weight: Any = None) -> Array:
    loss = (x - y) ** 2 if weight is None else (x - y) ** 2 * weight
    return reduced(loss, reduction, weight)


def l1(x: Array, y: Array, reduction: str = "mean", weight: Any = None) -> Array:
    loss = np.abs(x - y) if weight is None else np.abs(x - y) * weight
    return reduced(loss, reduction, weight)


def huber(x: Array, y: Array, reduction: str = "mean", delta: float = 1.0, weight: Any = 1) -> Array:
    size = np.abs(x - y)
    return reduced(np.where(size < delta, size**2 / 2, delta * (size - delta / 2)) * weight, reduction)


for reduction in ("mean", "sum", "none"):
    op(F + "mse_loss", R(5, 7), R(5, 7), reduction=reduction, ref=mse)
    op(F + "l1_loss", R(5, 7), R(5, 7), reduction=reduction, ref=l1)
op(F + "mse_loss", R(5, 7), R(5, 7), weight=P(5, 7), ref=mse)
op(F + "l1_loss", R(5, 7), R(5, 7), weight=P(5, 7), ref=l1)
op(F + "mse_loss", R(5, 7), R(5, 7), False, ref=lambda x, y, average: mse(x, y, "sum"))
op(F + "mse_loss", R(5, 7), R(5, 7), reduce=False, ref=lambda x, y, reduce: mse(x, y, "none"))
op(F + "huber_loss", FAR(5, 7), FAR(5, 7), delta=1.5, ref=huber)
op(F + "huber_loss", FAR(5, 7), FAR(5, 7), "none", weight=P(5, 7), ref=huber)
op(F + "smooth_l1_loss", FAR(5, 7), FAR(5, 7), beta=0.5, ref=lambda x, y, beta: huber(x, y, "mean", beta) / beta)
op(F + "smooth_l1_loss", FAR(5, 7), FAR(5, 7), beta=0.0, ref=lambda x, y, beta: l1(x, y))

# ------------------------------------------------------------------------------------------------------- of class indices


def nll(x: Array, target: Array, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Array:
    kept = target != ignore_index
    safe = np.where(kept, target, 0)
    each = np.where(kept, 1.0 if weight is None else np.asarray(weight)[safe], 0.0)
    loss = -np.take_along_axis(x, safe[:, None], 1)[:, 0] * each
    return reduced(loss, reduction, each)


def cross_entropy(x: Array, target: Array, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> Array:
    classes = x.shape[1]
    column = np.asarray(np.ones(classes) if weight is None else weight).reshape(1, -1, *(1,) * (x.ndim - 2))
    if target.dtype.kind == "f":
        shares = target * (1 - label_smoothing) + label_smoothing / classes
        return reduced(-(log_softmax(x) * shares * column).sum(1), reduction)
    kept = target != ignore_index
    each = np.where(kept, column.reshape(-1)[np.where(kept, target, 0)], 0.0)
    plain = nll(log_softmax(x), target, weight, ignore_index, "none")
    smooth = -(log_softmax(x) * column).sum(1) / classes * kept
    return reduced(plain * (1 - label_smoothing) + smooth * label_smoothing, reduction, each)


for name, reference in (("nll_loss", nll), ("cross_entropy", cross_entropy)):
    op(F + name, R(6, 4), CLASSES, ref=reference)
    op(F + name, R(6, 4), CLASSES, WEIGHTS, ignore_index=3, ref=reference)
    op(F + name, R(6, 4), CLASSES, WEIGHTS, reduction="sum", ref=reference)
    op(F + name, R(2, 3, 2, 2), PLANE, ref=reference)
    op(F + name, R(2, 3, 2, 2), PLANE, reduction="none", ref=reference)
    op(F + name, R(6, 4), CLASSES, reduction="none", ref=reference)
    op(F + name, R(4), np.array(2), ref=lambda x, t, f=reference: f(x[None], t[None]))
op(F + "cross_entropy", R(4), np.array(2), reduction="none", ref=lambda x, t, reduction: cross_entropy(x[None], t[None]))
for reduction in ("mean", "none"):
    op(F + "cross_entropy", R(6, 4), CLASSES, WEIGHTS, label_smoothing=0.25, ignore_index=3, reduction=reduction, ref=cross_entropy)
    op(F + "cross_entropy", R(3, 4, 3), WITHIN01(3, 4, 3), reduction=reduction, ref=cross_entropy)
op(F + "cross_entropy", R(6, 4), WITHIN01(6, 4), P(4), label_smoothing=0.25, reduction="sum", ref=cross_entropy)
op(F + "cross_entropy", R(4), WITHIN01(4), ref=lambda x, t: cross_entropy(x[None], t[None]))
op(F + "linear_cross_entropy", R(6, 3), R(4, 3), CLASSES, linear_bias=R(4), ref=lambda x, w, t, linear_bias: cross_entropy(x @ w.T + linear_bias, t))
op(F + "linear_cross_entropy", R(2, 3), R(3, 2, 2, 3), PLANE, reduction="sum",
   ref=lambda x, w, t, reduction: cross_entropy(np.einsum("ni,cdei->ncde", x, w), t, reduction=reduction))

# ------------------------------------------------------------------------------------------------------- of probabilities


def binary(x: Array, y: Array, weight: Any = 1, reduction: str = "mean") -> Array:
    return reduced(-(y * np.log(x) + (1 - y) * np.log(1 - x)) * weight, reduction)


def binary_logits(x: Array, y: Array, weight: Any = 1, reduction: str = "mean", pos_weight: Any = 1) -> Array:
    return reduced((y * pos_weight * np.logaddexp(0, -x) + (1 - y) * np.logaddexp(0, x)) * weight, reduction)


def kl(x: Array, y: Array, reduction: str = "mean", log_target: bool = False) -> Array:
    loss = np.exp(y) * (y - x) if log_target else y * (np.log(y) - x)
    return loss.sum() / len(x) if reduction == "batchmean" else reduced(loss, reduction)


def poisson(x: Array, y: Array, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> Array:
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    return reduced(loss + np.where(y > 1, y * np.log(y) - y + np.log(2 * np.pi * y) / 2, 0) if full else loss, reduction)


def gaussian(x: Array, y: Array, var: Array, full: bool = False, reduction: str = "mean") -> Array:
    return reduced((np.log(var) + (x - y) ** 2 / var + (np.log(2 * np.pi) if full else 0)) / 2, reduction)


op(F + "binary_cross_entropy", WITHIN01(5, 7), WITHIN01(5, 7), ref=binary)
op(F + "binary_cross_entropy", WITHIN01(5, 7), WITHIN01(5, 7), P(7), reduction="sum", ref=binary)
op(F + "binary_cross_entropy_with_logits", FAR(5, 7), WITHIN01(5, 7), ref=binary_logits)
op(F + "binary_cross_entropy_with_logits", FAR(5, 7), WITHIN01(5, 7), P(5, 7), pos_weight=P(7), reduction="none", ref=binary_logits)
for reduction in ("mean", "batchmean"):
    op(F + "kl_div", R(5, 7), P(5, 7), reduction=reduction, ref=kl)
op(F + "kl_div", R(5, 7), R(5, 7), reduction="none", log_target=True, ref=kl)
op(F + "poisson_nll_loss", R(5, 7), P(5, 7), ref=poisson)
op(F + "poisson_nll_loss", P(5, 7), P(5, 7), False, True, reduction="none", ref=poisson)
op(F + "gaussian_nll_loss", R(5, 7), R(5, 7), P(5, 7), ref=gaussian)
op(F + "gaussian_nll_loss", R(5, 7), R(5, 7), P(5), full=True, reduction="sum", ref=lambda x, y, v, **settings: gaussian(x, y, v[:, None], **settings))

# ---------------------------------------------------------------------------------------------------------------- margins


def multi_margin(x: Array, target: Array, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> Array:
    each = np.ones(len(x)) if weight is None else weight[target]
    rows = [sum(max(0.0, margin - row[t] + v) ** p for j, v in enumerate(row) if j != t) / len(row) for row, t in zip(x, target)]
    return reduced(np.array(rows) * each, reduction)


def multilabel_margin(x: Array, target: Array, reduction: str = "mean") -> Array:
    rows = []
    for row, labels in zip(x, target.tolist()):
        labels = labels[:labels.index(-1)] if -1 in labels else labels
        rows.append(sum(max(0.0, 1 - row[i] + row[j]) for i in labels for j in range(len(row)) if j not in labels) / len(row))
    return reduced(np.array(rows), reduction)


op(F + "hinge_embedding_loss", R(5, 7), SIGNS, ref=lambda x, y: np.where(y == 1, x, np.maximum(0, 1 - x)).mean())
op(F + "hinge_embedding_loss", R(5, 7), SIGNS, 0.5, reduction="none", ref=lambda x, y, margin, reduction: np.where(y == 1, x, np.maximum(0, margin - x)))
op(F + "margin_ranking_loss", R(5, 7), R(5, 7), SIGNS, 0.5, ref=lambda x, y, t, margin: np.maximum(0, margin - t * (x - y)).mean())
op(F + "soft_margin_loss", R(5, 7), SIGNS, ref=lambda x, y: np.logaddexp(0, -y * x).mean())
op(F + "multi_margin_loss", R(6, 4), CLASSES, ref=multi_margin)
op(F + "multi_margin_loss", R(6, 4), CLASSES, 2, 0.5, WEIGHTS, reduction="none", ref=multi_margin)
op(F + "multilabel_margin_loss", R(3, 4), np.array([[3, 0, -1, 1], [-1, 2, 2, 2], [0, 1, 2, -1]]), ref=multilabel_margin)
op(F + "multilabel_soft_margin_loss", R(5, 7), WITHIN01(5, 7), P(7), ref=lambda x, y, w: (binary_logits(x, y, w, "none")).mean(1).mean())

# -------------------------------------------------------------------------------------------------------------- distances


def distance(x: Array, y: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    return np.linalg.norm(x - y + eps, p, axis=-1, keepdims=keepdim)


def cosine(x: Array, y: Array, dim: int = 1) -> Array:
    return (x * y).sum(dim) / (np.linalg.norm(x, axis=dim) * np.linalg.norm(y, axis=dim))


def triplet(x: Array, y: Array, z: Array, margin: float = 1.0, p: float = 2, swap: bool = False, reduction: str = "mean") -> Array:
    far = np.minimum(distance(x, z, p), distance(y, z, p)) if swap else distance(x, z, p)
    return reduced(np.maximum(0, margin + distance(x, y, p) - far), reduction)


op("pairwise_distance", R(5, 7), R(5, 7), ref=distance, complex=True)
op("pairwise_distance", R(5, 7), R(7), 3.0, keepdim=True, ref=distance)
op("cosine_similarity", R(5, 7), R(5, 7), ref=cosine)
op("cosine_similarity", R(5, 7), R(5, 1), dim=0, ref=cosine)
op(F + "cosine_embedding_loss", R(5, 7), R(5, 7), np.array([1, -1, -1, 1, -1]), -0.5,
   ref=lambda x, y, t, margin: np.where(t == 1, 1 - cosine(x, y), np.maximum(0, cosine(x, y) - margin)).mean())
op(F + "triplet_margin_loss", R(5, 7), R(5, 7), R(5, 7), ref=triplet)
op(F + "triplet_margin_loss", R(5, 7), R(5, 7), R(5, 7), 3.0, 1.0, swap=True, reduction="none", ref=triplet)
op(F + "triplet_margin_with_distance_loss", R(5, 7), R(5, 7), R(5, 7), margin=3.0, ref=triplet)
for p in (2.0, 1.0, 3.0):
    op("pdist", R(5, 7), p, ref=lambda x, p: np.array([np.linalg.norm(x[i] - x[j], p) for i in range(5) for j in range(i + 1, 5)]))


# -------------------------------------------------------------------------------------------------------------------- ctc

def ctc(x: Array, targets: Array, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean") -> Array:
    """By counting every path that spells the target."""
    losses = []
    for n, (steps, length) in enumerate(zip(input_lengths, target_lengths)):
        wanted = list(targets[n, :length])
        paths = [p for p in product(range(x.shape[2]), repeat=steps) if [k for k, _ in groupby(p) if k != blank] == wanted]
        losses.append(-np.log(sum(np.exp(sum(x[t, n, k] for t, k in enumerate(p))) for p in paths)))
    loss = np.array(losses)
    return (loss / np.maximum(target_lengths, 1)).mean() if reduction == "mean" else reduced(loss, reduction)


LABELS = np.array([[1, 1], [2, 1], [2, 0]])
op(F + "ctc_loss", R(4, 3, 3), LABELS, (4, 3, 4), (2, 2, 1), ref=ctc)
op(F + "ctc_loss", R(4, 3, 3), 2 - LABELS, (4, 4, 3), (2, 1, 0), blank=2, reduction="none", ref=ctc)
