"""Colours and PNG files, made with nothing but the standard library."""
from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from typing import Any

from ..arrays import np

# From low to high: of values of one sign, and of both (the middle is zero).
ONE_SIGN = ((0.10, 0.08, 0.25), (0.20, 0.25, 0.52), (0.13, 0.50, 0.55), (0.38, 0.75, 0.42), (0.98, 0.91, 0.35))
BOTH_SIGNS = ((0.13, 0.35, 0.67), (0.57, 0.74, 0.88), (0.97, 0.97, 0.97), (0.94, 0.64, 0.51), (0.72, 0.15, 0.18))
NAN, INF = (1.0, 0.0, 1.0), (0.0, 0.0, 0.0)


def png(pixels: Any) -> bytes:
    """Return an image of (height, width, 3) bytes as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # 8 bits of red, green and blue
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)


def data_uri(pixels: Any) -> str:
    return "data:image/png;base64," + b64encode(png(pixels)).decode()


def heat_map(values: Any) -> Any:
    """Return colours of (height, width) numbers as bytes: by sign if there are both, nan magenta, inf black."""
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        finite = np.isfinite(wide)
        low, high = (float(wide[finite].min()), float(wide[finite].max())) if finite.any() else (0.0, 0.0)
        both = low < 0 < high
        if both:
            low, high = -max(-low, high), max(-low, high)
        level = np.where(finite, wide / 2 - low / 2, 0.0) / ((high / 2 - low / 2) or 1.0)
        colours = _interpolated(np.clip(level, 0, 1), BOTH_SIGNS if both else ONE_SIGN)
        colours[np.isnan(wide)] = NAN
        colours[np.isinf(wide)] = INF
    return (colours * 255).round().astype(np.uint8)


def _interpolated(level: Any, scale: tuple[tuple[float, float, float], ...]) -> Any:
    at = np.linspace(0, 1, len(scale))
    return np.stack([np.interp(level, at, [colour[c] for colour in scale]) for c in range(3)], axis=-1)


def as_image(values: Any) -> Any:
    """Return (height, width, 3) numbers as bytes: stretched, if they are neither bytes nor between 0 and 1."""
    if values.dtype == np.uint8:
        return values
    with np.errstate(all="ignore"):
        wide = np.nan_to_num(values.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0)
        low, high = float(wide.min()), float(wide.max())
        if low < 0 or high > 1:
            wide = (wide / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)
    return (wide * 255).round().astype(np.uint8)
