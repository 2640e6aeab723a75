"""Borders, and channels shuffled into space."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Array, R, op

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def padded(x: Array, pads: Any, mode: str = "constant", value: Any = 0) -> Array:
    """NumPy's pad, after what negative pads cut off is gone."""
    pairs = [(0, 0)] * (x.ndim - len(pads) // 2) + [(pads[i], pads[i + 1]) for i in reversed(range(0, len(pads), 2))]
    if mode == "constant" or mode == "circular":
        x = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, pairs))]
    wide = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], MODES[mode], **({"constant_values": value or 0} if mode == "constant" else {}))
    if mode in ("reflect", "replicate"):  # here they are cut off afterwards
        wide = wide[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(wide.shape, pairs))]
    return wide


def shuffled(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    return np.einsum("...cabhw->...chawb", x.reshape(*lead, c // r**2, r, r, h, w)).reshape(*lead, c // r**2, h * r, w * r)


def unshuffled(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    return np.einsum("...chawb->...cabhw", x.reshape(*lead, c, h // r, r, w // r, r)).reshape(*lead, c * r**2, h // r, w // r)


def channels_shuffled(x: Array, groups: int) -> Array:
    return x.reshape(len(x), groups, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


op("constant_pad_nd", R(3, 4, 5), (1, 2), ref=padded, complex=True)
op("constant_pad_nd", R(3, 4, 5), (-1, 2, 1, -2), 7.5, ref=lambda x, pads, value: padded(x, pads, "constant", value))
op("nn.functional.pad", R(4, 9), (1, 2, 3, 0), ref=padded)
op("nn.functional.pad", R(2, 3, 4, 5), (2, 1, 3, 0), "reflect", ref=padded)
op("nn.functional.pad", R(2, 3, 7), (-2, 4), "reflect", ref=padded)
op("nn.functional.pad", R(2, 2, 3, 4), (5, 1, 0, 4), "replicate", ref=padded)
op("nn.functional.pad", R(2, 3, 3, 3, 4), (1, 2, 0, 1, 3, -1), mode="replicate", ref=padded)
op("nn.functional.pad", R(2, 3, 4, 5), (2, 5, 1, 0), "circular", ref=padded)
op("nn.functional.pad", R(2, 5, 6), (2, -1), "circular", ref=padded)
op("pixel_shuffle", R(2, 8, 3, 2), 2, ref=shuffled)
op("pixel_unshuffle", R(2, 4, 6), 2, ref=unshuffled)
op("channel_shuffle", R(2, 6, 3, 2), 3, ref=channels_shuffled)
