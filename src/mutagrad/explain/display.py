"""How a notebook shows a tensor: a line about it, a picture of its values, and the values.

Vectors are drawn as a line, matrices as a heat map, images as they are, and of more dimensions the first few matrices
or images. The display never fails: what cannot be drawn is shown as text.
"""
from __future__ import annotations

from html import escape
from typing import Any

from ..arrays import np
from ..arrays.kinds import all_values, unknown
from ..tensors.tensor import Tensor
from .describe import line_about
from .png import as_image, data_uri, heat_map

LONGEST_VECTOR, LARGEST_SIDE, SMALLER_SIDE, MOST_PANELS = 400, 256, 112, 8
SMALLEST_IMAGE = 8  # (3, height, width) with larger sides is taken for an image
_BOX = "font: 12px system-ui, sans-serif; line-height: 1.5; max-width: 100%; overflow-x: auto"
_TEXT = "font: 12px ui-monospace, Menlo, Consolas, monospace; margin: 4px 0; background: none; color: inherit; " \
        "max-height: 16em; overflow: auto"


def _repr_html_(self: Tensor) -> str:
    """Return what a notebook shows; plain text if anything goes wrong, since a display must not raise."""
    try:
        picture = _picture(self)
        about, values = line_about(self), repr(self)
    except Exception:
        picture, about, values = "", "", _safe_repr(self)
    return (f'<div class="mutagrad-tensor" style="{_BOX}"><div>{escape(about)}</div>{picture}'
            f'<pre style="{_TEXT}">{escape(values)}</pre></div>')


def _safe_repr(x: object) -> str:
    try:
        return repr(x)
    except Exception as error:
        return f"{type(x).__name__} that cannot be shown ({type(error).__name__}: {error})"


def _picture(x: Tensor) -> str:
    if x.is_meta or unknown(x._array):
        return ""
    array = all_values(x._array)
    if array.size < 2 or array.dtype.kind not in "fiubcV":
        return ""
    array = np.abs(array) if array.dtype.kind == "c" else array
    return sparkline(array) if array.ndim == 1 else panels(array)


# ------------------------------------------------------------------------------------------------------------ vectors

def sparkline(values: Any, width: int = 320, height: int = 48) -> str:
    """Return a vector as a line chart, interrupted where values are not finite, with zero if that is in sight."""
    shown = values[::-(-len(values) // LONGEST_VECTOR)].astype(np.float64)
    finite = np.isfinite(shown)
    if not finite.any():
        return ""
    low, high = float(shown[finite].min()), float(shown[finite].max())
    with np.errstate(all="ignore"):
        level = (shown / 2 - low / 2) / ((high / 2 - low / 2) or 1.0) if high > low else np.full(shown.shape, 0.5)
    xs = np.linspace(3, width - 3, len(shown))
    points = [(x, height - 4 - y * (height - 8)) if ok else None for x, y, ok in zip(xs, level, finite)]
    zero = height - 4 - (0 - low) / (high - low) * (height - 8) if low < 0 < high else None
    axis = "" if zero is None else (f'<line x1="0" x2="{width}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="currentColor" '
                                    'stroke-opacity="0.3" stroke-dasharray="2 2"/>')
    return (f'<svg width="{width}" height="{height}" style="display: block">{axis}<path d="{_line(points)}" '
            'fill="none" stroke="#3b82f6" stroke-width="1.5" stroke-linecap="round"/></svg>')


def _line(points: list[tuple[float, float] | None]) -> str:
    text, pen = [], "M"
    for point in points:
        if point is not None:
            text.append(f"{pen}{point[0]:.1f} {point[1]:.1f}")
            # A lone point is a line of no length, which a round cap makes visible.
            text.append("h0" if pen == "M" else "")
        pen = "M" if point is None else "L"
    return "".join(text)


# ------------------------------------------------------------------------------------------------------------- panels

def panels(array: Any) -> str:
    """Return the matrices or images in an array as pictures side by side, the first few of them."""
    coloured, stack = _images(array)
    side = LARGEST_SIDE if len(stack) == 1 else SMALLER_SIDE
    shown = "".join(_panel(panel, coloured, side) for panel in stack[:MOST_PANELS])
    more = f"<div>{len(stack) - MOST_PANELS:,} more</div>" if len(stack) > MOST_PANELS else ""
    return f'<div style="display: flex; flex-wrap: wrap; gap: 4px">{shown}</div>{more}'


def _images(array: Any) -> tuple[bool, Any]:
    """Return whether the last dimension is colour, and all matrices or images in a row."""
    large = array.ndim > 2 and min(array.shape[-2:]) >= SMALLEST_IMAGE
    if large and array.shape[-3] in (3, 4):
        images = np.moveaxis(array, -3, -1)[..., :3]
    elif array.ndim > 2 and array.shape[-1] in (3, 4) and min(array.shape[-3:-1]) >= SMALLEST_IMAGE:
        images = array[..., :3]
    else:
        return False, _first(array, 2)
    return True, _first(images, 3)


def _first(array: Any, inner: int) -> Any:
    """Return all but the innermost dimensions as one; a view of the first ones, if they are many."""
    while array.ndim > inner + 1:
        array = array[0] if array.shape[1] >= MOST_PANELS else array.reshape(-1, *array.shape[2:])
    return array if array.ndim > inner else array[None]


def _panel(values: Any, coloured: bool, side: int) -> str:
    rows, columns = (-(-size // side) for size in values.shape[:2])
    pixels = (as_image if coloured else heat_map)(values[::rows, ::columns])
    height, width = pixels.shape[:2]
    scale = max(1, min(16, side // max(height, width)))
    return (f'<img src="{data_uri(pixels)}" alt="{values.shape[0]} × {values.shape[1]}" width="{width * scale}" '
            f'height="{height * scale}" style="image-rendering: pixelated">')
