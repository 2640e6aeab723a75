"""Interpolation, and reading at coordinates."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from .base import Array, R, domain, elsewhere, op
from .conv import tuple_of
from .pool import adaptive


def cubic(d: Array) -> Array:
    d = np.abs(d)
    return np.where(d <= 1, 1.25 * d**3 - 2.25 * d**2 + 1, np.where(d < 2, -0.75 * (d**3 - 5 * d**2 + 8 * d - 4), 0))


def smooth_cubic(d: Array) -> Array:
    d = np.abs(d)
    return np.where(d <= 1, 1.5 * d**3 - 2.5 * d**2 + 1, np.where(d < 2, -0.5 * (d**3 - 5 * d**2 + 8 * d - 4), 0))


def hat(d: Array) -> Array:
    return np.maximum(1 - np.abs(d), 0)


def matrix(n: int, out: int, mode: str, align: bool, antialias: bool, step: float) -> Array:
    """What one dimension is multiplied with."""
    at = np.arange(out) * (n - 1) / max(out - 1, 1) if align else (np.arange(out) + 0.5) * step - 0.5
    if mode.startswith("nearest"):
        at = np.floor(np.arange(out) * step + (step / 2 if mode == "nearest-exact" else 0))
        return hat(np.minimum(at, n - 1)[:, None] - np.arange(n))
    if antialias:
        found = (hat if mode == "bilinear" else smooth_cubic)((at[:, None] - np.arange(n)) / max(step, 1))
        return found / found.sum(1, keepdims=True)
    far = 4  # beyond either end the last value is repeated
    kernel = cubic if mode == "bicubic" else hat
    found = kernel(at[:, None] - np.arange(-far, n + far))
    found[:, far] += found[:, :far].sum(1)
    found[:, far + n - 1] += found[:, far + n:].sum(1)
    return found[:, far:far + n]


def resized(x: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None, recompute_scale_factor: Any = None,
            antialias: bool = False) -> Array:
    n = x.ndim - 2
    if mode == "area":
        return adaptive(n, np.mean)(x, size)
    scales = tuple_of(scale_factor, n)
    for d in range(n):
        m = x.shape[d + 2]
        out = tuple_of(size, n)[d] if size is not None else int(m * scales[d])
        step = m / out if size is not None or recompute_scale_factor else 1 / scales[d]
        x = np.moveaxis(np.moveaxis(x, d + 2, -1) @ matrix(m, out, mode, bool(align_corners), antialias, step).T.astype(x.dtype), -1, d + 2)
    return x


def into_image(at: Array, n: int, border: str, align: bool) -> Array:
    if border == "reflection":
        low, high = (0, 2 * (n - 1)) if align else (-1, 2 * n - 1)
        span = (high - low) / 2
        at = np.abs((at - low / 2 + span) % (2 * span) - span) + low / 2 if span else at * 0
    return at if border == "zeros" else at.clip(0, n - 1)


def read(x: Array, index: list[Array], border: str, align: bool) -> Array:
    """Images at whole positions, one array of them for each dimension."""
    index = [into_image(i, n, border, align) for i, n in zip(index, x.shape[2:])]
    inside = np.all([(i >= 0) & (i < n) for i, n in zip(index, x.shape[2:])], 0)
    whole = [i.clip(0, n - 1).astype(int) for i, n in zip(index, x.shape[2:])]
    return np.stack([image[(slice(None), *(w[k] for w in whole))] * inside[k] for k, image in enumerate(x)])


def sampled(x: Array, grid: Array, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None) -> Array:
    align = bool(align_corners)
    at = [(g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2 for g, n in zip(np.moveaxis(grid, -1, 0)[::-1], x.shape[2:])]
    if mode != "bicubic":
        at = [into_image(a, n, padding_mode, align) for a, n in zip(at, x.shape[2:])]
    if mode == "nearest":
        return read(x, [np.rint(a) for a in at], padding_mode, align)
    kernel, reach = (cubic, range(-1, 3)) if mode == "bicubic" else (hat, range(2))
    total: Any = 0
    for shift in product(reach, repeat=len(at)):
        places = [np.floor(a) + s for a, s in zip(at, shift)]
        weight = np.prod([kernel(a - p) for a, p in zip(at, places)], 0)
        total = total + read(x, places, padding_mode, align) * weight[:, None]
    return total


def by_number(x: Array, grid: Array, mode: int, border: int, align: bool) -> Array:
    return sampled(x, grid, ("bilinear", "nearest", "bicubic")[mode], ("zeros", "border", "reflection")[border], align)


def affine(theta: Array, size: Any, align_corners: Any = None) -> Array:
    lines = [np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) for n in size[2:]]
    axes = np.meshgrid(*lines, indexing="ij")
    return np.einsum("nij,...j->n...i", theta, np.stack([*axes[::-1], np.ones_like(axes[0])], -1)).astype(theta.dtype)


GRID = domain(-1.2, 1.2)
op("nn.functional.interpolate", R(2, 3, 7), 10, ref=resized)
op("nn.functional.interpolate", R(2, 2, 3, 5), (5, 3), mode="nearest-exact", ref=resized)
op("nn.functional.interpolate", R(2, 3, 6), scale_factor=1.7, mode="linear", ref=resized)
op("nn.functional.interpolate", R(2, 2, 3, 4), (5, 3), mode="bilinear", ref=resized)
op("nn.functional.interpolate", R(2, 2, 3, 4), scale_factor=(2, 1.6), mode="bilinear", recompute_scale_factor=True, ref=resized)
op("nn.functional.interpolate", R(1, 2, 5, 6), (3, 4), mode="bilinear", antialias=True, ref=resized)
op("nn.functional.interpolate", R(1, 2, 5, 4), (3, 6), mode="bicubic", ref=resized)
op("nn.functional.interpolate", R(1, 2, 4, 5), (6, 7), mode="bicubic", align_corners=True, ref=resized)
op("nn.functional.interpolate", R(1, 2, 6, 7), (4, 3), mode="bicubic", antialias=True, ref=resized)
op("nn.functional.interpolate", R(1, 2, 2, 3, 4), (3, 2, 5), mode="trilinear", ref=resized)
op("nn.functional.interpolate", R(1, 2, 5, 4), (2, 3), mode="area", ref=resized)
op("nn.functional.upsample", R(1, 2, 3, 6), scale_factor=2, mode="bilinear", align_corners=True, ref=resized)
op("nn.functional.upsample_nearest", R(1, 2, 3, 6), scale_factor=2, ref=resized)
op("nn.functional.upsample_bilinear", R(1, 2, 3, 6), (4, 5), ref=lambda x, size: resized(x, size, mode="bilinear", align_corners=True))
op("nn.functional.grid_sample", R(2, 2, 4, 5), GRID(2, 3, 3, 2), align_corners=False, ref=sampled)
op("nn.functional.grid_sample", R(1, 2, 4, 5), GRID(1, 5, 4, 2), padding_mode="border", align_corners=True, ref=sampled)
op("nn.functional.grid_sample", R(1, 2, 4, 5), GRID(1, 5, 4, 2), padding_mode="reflection", align_corners=False, ref=sampled)
op("nn.functional.grid_sample", R(1, 2, 4, 5), GRID(1, 5, 4, 2), "nearest", "reflection", True, ref=sampled)
op("nn.functional.grid_sample", R(1, 2, 4, 5), GRID(1, 5, 4, 2), "bicubic", align_corners=False, ref=sampled)
op("nn.functional.grid_sample", R(1, 2, 3, 4, 3), GRID(1, 2, 3, 3, 3), align_corners=False, ref=sampled)
elsewhere("weigh_corners write_corners")  # the adjoints of grid_sample, by its second derivatives
elsewhere("grid_sample")  # in one loop: test_compiled_images.py
op("grid_sampler", R(1, 2, 4, 5), GRID(1, 5, 4, 2), 2, 1, False, ref=by_number)
op("grid_sampler_2d", R(1, 2, 4, 5), GRID(1, 5, 4, 2), 0, 0, True, ref=by_number)
op("grid_sampler_3d", R(1, 2, 3, 4, 3), GRID(1, 2, 3, 3, 3), 1, 1, False, ref=by_number)
op("nn.functional.affine_grid", R(3, 2, 3), (3, 1, 3, 4), align_corners=False, ref=affine)
op("affine_grid_generator", R(2, 3, 4), (2, 1, 2, 3, 2), True, ref=affine)
