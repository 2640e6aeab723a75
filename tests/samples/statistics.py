"""Samples of statistics, cumulative operations, differences and distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .base import WITHIN01, Array, P, R, along, domain, op


def at(find: Callable[[Array], Array]) -> Callable[..., Any]:
    """Values and where they are along a dimension; `find` names a place in each row."""

    def reference(x: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
        where = np.apply_along_axis(lambda row: np.array([find(row)]), dim, x)
        values = np.take_along_axis(x, where, dim)
        return (values, where) if keepdim else (values.squeeze(dim), where.squeeze(dim))

    return reference


def middle(row: Array) -> Any:
    return np.argsort(row, kind="stable")[(len(row) - 1) // 2]


# --------------------------------------------------------------------------------------------------- without what is nan

for name, ref in (("nansum", np.nansum), ("nanmean", np.nanmean)):
    op(name, R(3, 4, 5), ref=along(ref))
    op(name, R(3, 4, 5), dim=1, keepdim=True, ref=along(ref))
    op(name, R(5, 7), (0, 1), ref=along(ref))
    op(name, R(), ref=along(ref))

# ---------------------------------------------------------------------------------------------- medians, modes, quantiles

for name in ("median", "nanmedian"):
    op(name, R(5, 8), ref=lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2], ties=True)
    op(name, R(5, 8), dim=1, ref=at(middle), ties=True)
    op(name, R(5, 7), 0, True, ref=at(middle), ties=True)
    op(name, R(), 0, ref=lambda x, dim: (x, np.array(0)))
op("mode", R(5, 7), ref=at(np.argmin), ties=True)
op("mode", R(5, 7), dim=0, keepdim=True, ref=at(np.argmin), ties=True)
op("kthvalue", R(5, 7), 3, ref=lambda x, k: at(lambda row: np.argsort(row)[k - 1])(x), ties=True)
op("kthvalue", R(5, 7), 2, dim=0, keepdim=True, ref=lambda x, k, **s: at(lambda row: np.argsort(row)[k - 1])(x, **s), ties=True)


def quantile(x: Array, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear") -> Any:
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


for name in ("quantile", "nanquantile"):
    op(name, R(5, 7), 0.3, ref=quantile, ties=True)
    op(name, R(5, 7), WITHIN01(3), dim=1, ref=quantile, ties=True)
    op(name, R(5, 7), WITHIN01(2), 0, True, ref=quantile, ties=True)
for how in ("lower", "higher", "midpoint", "nearest"):
    op("quantile", R(5, 7), 0.37, dim=0, interpolation=how, ref=quantile, ties=True)

# ------------------------------------------------------------------------------------------------ running along a dimension


def running(accumulate: Any) -> Callable[..., Any]:
    def reference(x: Array, dim: int) -> tuple[Array, Array]:
        values = accumulate(x, dim)
        places = np.indices(x.shape)[dim]
        return values, np.maximum.accumulate(np.where(x == values, places, 0), dim)

    return reference


for name, extreme in (("cummax", np.maximum), ("cummin", np.minimum)):
    op(name, R(5, 7), dim=1, ref=running(extreme.accumulate), ties=True)
    op(name, R(3, 4, 5), 0, ref=running(extreme.accumulate), ties=True)
op("logcumsumexp", R(5, 7), dim=1, ref=lambda x, dim: np.log(np.cumsum(np.exp(x), dim)), complex=True)
op("logcumsumexp", domain(-500, 500)(5, 7), 0, ref=lambda x, dim: np.logaddexp.accumulate(x, dim))
op("logcumsumexp", R(), 0, ref=lambda x, dim: x)
op("diff", R(5, 7), ref=np.diff, complex=True)
op("diff", R(5, 7), 2, dim=0, ref=lambda x, n, dim: np.diff(x, n, dim))
op("diff", R(5, 7), prepend=R(5, 2), append=R(5, 1), ref=np.diff)
op("diff", R(5, 7), 0, ref=np.diff)

# ------------------------------------------------------------------------------------------------------------ areas, slopes


def trapezoid(y: Array, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Any:
    return cumulative(y, x, dx=dx, dim=dim).sum(dim)


def cumulative(y: Array, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Array:
    y, n = np.moveaxis(y, dim, -1), y.shape[dim]
    steps = dx if x is None else np.diff(x)
    return np.moveaxis((y[..., 1:] + y[..., :n - 1]) / 2 * steps, -1, dim)


for name, ref in (("trapezoid", trapezoid), ("trapz", trapezoid), ("cumulative_trapezoid", lambda *a, dim=-1, **s: cumulative(*a, dim=dim, **s).cumsum(dim))):
    op(name, R(5, 7), ref=ref)
    op(name, R(5, 7), dx=0.5, dim=0, ref=ref)
    op(name, R(5, 7), R(7), ref=ref)
op("gradient", R(5, 7), ref=np.gradient)
op("gradient", R(5, 7), spacing=0.5, dim=1, edge_order=2, ref=lambda x, spacing, dim, edge_order: np.gradient(x, spacing, axis=dim, edge_order=edge_order))
op("gradient", R(4, 5), spacing=(domain(0, 9)(4), 0.5), ref=lambda x, spacing: np.gradient(x, *spacing), ties=True)

# --------------------------------------------------------------------------------------------------------------- covariance


def cov(x: Array, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Array:
    """Written out, because NumPy's does not take the derivative by the weights of a float."""
    w = (1 if fweights is None else fweights) * (np.ones(x.shape[1]) if aweights is None else aweights)
    centred = x - (x * w).sum(1, keepdims=True) / w.sum()
    lost = correction if aweights is None else correction * (w * aweights).sum() / w.sum()
    return (centred * w) @ centred.conj().T / (w.sum() - lost)


op("cov", R(5, 7), ref=cov, complex=True)
op("cov", R(5, 7), correction=0, fweights=np.array([1, 2, 1, 3, 1, 1, 2]), ref=cov)
op("cov", R(4, 5), fweights=np.array([1, 2, 1, 3, 1]), aweights=P(5), ref=cov)
op("cov", R(7), ref=np.cov)
op("corrcoef", R(5, 7), ref=lambda x: cov(x) / np.sqrt(np.outer(np.diag(cov(x)).real, np.diag(cov(x)).real)), ties=True)

# ---------------------------------------------------------------------------------------------------------------- distances


def renorm(x: Array, p: float, dim: int, maxnorm: float) -> Array:
    axes = tuple(d for d in range(x.ndim) if d != dim)
    length = (np.abs(x)**p).sum(axes, keepdims=True)**(1 / p)
    return x * np.where(length > maxnorm, maxnorm / (length + 1e-7), 1)


op("renorm", R(5, 7), 2, 0, 3.0, ref=renorm)
op("renorm", R(3, 4, 3), 3, 1, 2.5, ref=renorm)


def cdist(x: Array, y: Array, p: float = 2, compute_mode: str = "") -> Any:
    apart = np.abs(x[..., :, None, :] - y[..., None, :, :])
    return apart.max(-1) if p == np.inf else (apart**p).sum(-1)**(1 / p)


for p in (2, 1, 3, 1.5, float("inf")):
    op("cdist", R(5, 3), R(4, 3), p, ref=cdist, ties=True)
op("cdist", R(2, 1, 3, 2), R(4, 2), compute_mode="use_mm_for_euclid_dist", ref=cdist, ties=True)
op("cdist", R(5, 3), R(4, 3), p=0, ref=lambda x, y, p: np.full((5, 4), 3.0), ties=True)
op("sum_to_size", R(2, 3, 4), (3, 1), ref=lambda x, size: x.sum((0, 2))[:, None])
op("sum_to_size", R(5, 7), 7, ref=lambda x, size: x.sum(0))
