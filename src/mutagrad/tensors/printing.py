"""Write arrays the way PyTorch prints tensors.

>>> from mutagrad.arrays import np
>>> from mutagrad.tensors.printing import format_tensor
>>> print(format_tensor(np.array([[1.0, 2.5], [-3.0, 4.0]])))
tensor([[ 1.0000,  2.5000],
        [-3.0000,  4.0000]])

An array passes through four steps: cut to its edges when it is long, choose how its elements are written (its cell),
lay the cells out in brackets, append the suffixes. Only what survives the cut is ever formatted, so a huge tensor
prints at once, and the elements that do not show have no say in the notation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.kinds import all_values, is_plain, unknown
from ..base.modes import call_with
from ..core.storage import TensorBase


class PrintOptions(NamedTuple):
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, as `torch.set_printoptions` does: a profile first, then the options given beside it.

    As in PyTorch, an unknown profile changes nothing, and `sci_mode` goes back to None (choose by the values) on every
    call that does not name it.

    >>> import mutagrad as mg
    >>> mg.set_printoptions(precision=2)
    >>> mg.tensor([1 / 3])
    tensor([0.33])
    >>> mg.set_printoptions(profile="default")
    """
    global _options
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    base = _PROFILES.get(profile, _options) if profile is not None else _options
    _options = base._replace(sci_mode=sci_mode, **changes)


def format_tensor(array: np.ndarray, *, suffixes: Sequence[str] = (), prefix: str = "tensor(") -> str:
    """Return the printed form of `array`, with `suffixes` (such as "requires_grad=True") after the elements.

    Of an array that stands for all slices of a `vmap`, all slices.
    """
    if not is_plain(array):
        if unknown(array):
            return f"{prefix}..., shape={tuple(array.shape)}, dtype={array.dtype.name}, traced)"
        whole = all_values(array)
        prefix = "BatchedTensor(" if whole.shape != array.shape else prefix
        return call_with({"kind": None}, format_tensor, whole, suffixes=suffixes, prefix=prefix)
    indent = len(prefix)
    return _with_suffixes(prefix + _elements(array, indent), suffixes, indent) + ")"


def format_scalar(array: np.ndarray, spec: str) -> str:
    """Format the number in a 0-d tensor, as `f"{t:.3f}"` does; tensors of other ranks take `object.__format__`."""
    assert array.ndim == 0, "only a 0-d tensor formats as a number"
    return format(array.item(), spec)


def dtype_suffix_needed(array: np.ndarray, default_float: str) -> bool:
    """Whether PyTorch names the dtype: it leaves out what reading the printed numbers back would give anyway."""
    implied = {default_float}
    if array.size:
        implied |= {"bool", "int64", "complex128" if default_float == "float64" else "complex64"}
    return array.dtype.name not in implied


def size_suffix_needed(array: np.ndarray) -> bool:
    """Whether PyTorch names the size: `[]` alone means (0,), and without edge items little shape is left to see."""
    return array.ndim != 1 if array.size == 0 else _options.edgeitems == 0


def _elements(array: np.ndarray, indent: int) -> str:
    if array.size == 0:
        return "[]"
    if array.ndim == 0 or array.size <= _options.threshold:
        return _bracketed(array, (False,) * array.ndim, _cell(array), indent)
    if _options.edgeitems == 0:
        return "[...]"
    cut = tuple(size > 2 * _options.edgeitems for size in array.shape)
    edges = _edges(array, cut)
    return _bracketed(edges, cut, _cell(edges), indent)


def _edges(array: np.ndarray, cut: tuple[bool, ...]) -> np.ndarray:
    # One gather over all axes: axis by axis, almost all of an array that is short first and long last would be copied.
    ends = np.r_[: _options.edgeitems, -_options.edgeitems : 0]
    kept = [ends if is_cut else np.arange(size) for is_cut, size in zip(cut, array.shape, strict=True)]
    edges: np.ndarray = array[np.ix_(*kept)]
    return edges


class _Cell(NamedTuple):
    """How an element is written, and the columns that line breaking grants it (a text may take more)."""

    write: Callable[[Any], str]
    width: int


def _cell(array: np.ndarray) -> _Cell:
    if array.dtype.kind == "c":
        return _complex_cell(_float_cell(array.real), _float_cell(array.imag))
    if array.dtype.kind in "fV":
        return _float_cell(array)
    return _aligned(str, array)


def _aligned(write: Callable[[Any], str], measured: np.ndarray) -> _Cell:
    width = max(len(write(value)) for value in measured.ravel().tolist())
    return _Cell(lambda value: write(value).rjust(width), width)


def _float_cell(array: np.ndarray) -> _Cell:
    # Zeros, infinities and nans have no say in notation or width: a column of only these is one wide to PyTorch.
    telling = array[np.isfinite(array) & (array != 0)]
    return _aligned(_float_writer(telling), telling) if telling.size else _Cell(_write_whole, 1)


def _float_writer(telling: np.ndarray) -> Callable[[float], str]:
    precision = _options.precision
    if _scientific(np.abs(telling)):
        return lambda value: f"{value:.{precision}e}"
    if (telling == np.ceil(telling)).all():
        return _write_whole
    return lambda value: f"{value:.{precision}f}"


def _scientific(magnitudes: np.ndarray) -> bool:
    if _options.sci_mode is not None:
        return _options.sci_mode
    # Python floats: their quotient overflows to inf in silence, where NumPy's would warn.
    smallest, largest = float(magnitudes.min()), float(magnitudes.max())
    return largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4


def _write_whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value}"


def _complex_cell(real: _Cell, imag: _Cell) -> _Cell:
    def write(value: complex) -> str:
        # The imaginary part is not aligned: its padding would fall between the sign and the digits.
        imaginary = imag.write(value.imag).lstrip()
        sign = "" if imaginary.startswith("-") else "+"
        return f"{real.write(value.real)}{sign}{imaginary}j"

    return _Cell(write, real.width + len("+") + imag.width)


def _bracketed(array: np.ndarray, cut: tuple[bool, ...], cell: _Cell, indent: int) -> str:
    """The nested brackets of `array`, whose axes marked in `cut` have lost their middle."""
    if array.ndim == 0:
        return cell.write(array.item())
    if array.ndim == 1:
        return _row(array, cut[0], cell, indent)
    blocks: list[str] = [_bracketed(block, cut[1:], cell, indent + 1) for block in array]
    if cut[0]:
        blocks.insert(len(blocks) // 2, "...")
    between: str = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(blocks) + "]"


def _row(array: np.ndarray, is_cut: bool, cell: _Cell, indent: int) -> str:
    texts = [cell.write(value) for value in array.tolist()]
    if is_cut:
        texts.insert(len(texts) // 2, " ...")
    per_line = max(1, int((_options.linewidth - indent) / (cell.width + len(", "))))
    lines = [", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _with_suffixes(text: str, suffixes: Sequence[str], indent: int) -> str:
    # PyTorch counts two columns too many after the elements, but none too many after a line break of its own.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        column += len(", ") + len(suffix)
        if column > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
    return text


# -------------------------------------------------------------------------------- PyTorch's names for some of the above

class _Current:
    """The settings as they are now."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_options, name)


PRINT_OPTS = _Current()


def _tensor_str(self: TensorBase, indent: int) -> str:
    """Return the elements of a tensor as text, for a place so far from the left."""
    return _elements(self._array, indent)


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool = False) -> str:
    return _with_suffixes(tensor_str, suffixes, indent) + ")"
