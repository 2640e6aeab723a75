"""Comparing tensors in tests: `assert_close`, and `make_tensor` for inputs.

>>> import mutagrad as mg
>>> mg.testing.assert_close(mg.tensor([1.0, 2.0]) / 3 * 3, mg.tensor([1.0, 2.0]))
"""
from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..arrays import np
from ..base.device import device as device_class
from ..base.errors import BadArgument, BadValue
from ..base.layout import has_own_layout, memory_format, sparse_coo
from ..base.operands import Array
from ..core.dtypes import FLOAT, as_dtype, dtype, finfo, float64, iinfo, of_array
from ..core.storage import TensorBase
from ..ops.create import create
from ..ops.random import draws
from ..tensors.tensor import Tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

# Relative and absolute tolerance by the type of the elements; whole numbers and booleans must be equal.
_TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
               "complex64": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "complex128": (1e-7, 1e-7)}


class _Mismatch(Exception):
    """What differs, and where in nested containers."""

    def __init__(self, text: str, place: str = "") -> None:
        super().__init__(text)
        self.text, self.place = text, place


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless the two are close: tensors, arrays, numbers, None, or containers of these.

    Close is |actual - expected| <= atol + rtol * |expected|; the tolerances follow from the types if not given.

    >>> import mutagrad as mg
    >>> mg.testing.assert_close(mg.tensor([1.]), mg.tensor([1. + 1e-7]))
    >>> try:
    ...     mg.testing.assert_close(mg.tensor([1.]), mg.tensor([2.]))
    ... except AssertionError:
    ...     print("they differ")
    they differ
    """
    if (rtol is None) != (atol is None):
        raise BadValue("assert_close: rtol and atol must both be given or both be left out", fix="rtol=1e-5, atol=1e-8")
    pair = _Pair(rtol, atol, equal_nan, check_dtype, check_layout, check_stride, allow_subclasses)
    try:
        pair.compare(actual, expected)
    except _Mismatch as found:
        text = found.text + (f"\n\nThe failure occurred for item {found.place}" if found.place else "")
        raise AssertionError(msg(text) if callable(msg) else msg if msg is not None else text) from None


class _Pair:
    """The settings of one comparison."""

    def __init__(self, rtol: float | None, atol: float | None, equal_nan: bool, check_dtype: bool, check_layout: bool,
                 check_stride: bool, subclasses: bool) -> None:
        self.given = None if rtol is None or atol is None else (rtol, atol)
        self.equal_nan, self.subclasses = equal_nan, subclasses
        self.check_dtype, self.check_layout, self.check_stride = check_dtype, check_layout, check_stride

    def compare(self, actual: Any, expected: Any) -> None:
        if isinstance(actual, Tensor) and isinstance(expected, Tensor) and self._related(actual, expected):
            self._tensors(actual, expected)
        elif isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
            self._tensors(create.tensor(actual), create.tensor(expected))
        elif actual is None or expected is None:
            if actual is not expected:
                raise _Mismatch(f"None mismatch: {actual} is not {expected}")
        elif isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
            if bool(actual) is not bool(expected):
                raise _Mismatch(f"Booleans mismatch: {actual} is not {expected}")
        elif isinstance(actual, numbers.Number) and isinstance(expected, numbers.Number):
            self._numbers(actual, expected)
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self._mappings(actual, expected)
        elif _is_sequence(actual) and _is_sequence(expected):
            self._sequences(actual, expected)
        else:
            raise BadArgument(f"assert_close: cannot compare {type(actual).__name__} with {type(expected).__name__}",
                              why="both must be tensors, arrays, numbers, or containers of these",
                              fix="mutagrad.tensor(value) on both sides")

    def _related(self, actual: Tensor, expected: Tensor) -> bool:
        if type(actual) is type(expected):
            return True
        return self.subclasses and (isinstance(actual, type(expected)) or isinstance(expected, type(actual)))

    def _mappings(self, actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
        missing, additional = (sorted(set(a) - set(b), key=str) for a, b in ((expected, actual), (actual, expected)))
        if missing or additional:
            raise _Mismatch(f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\n"
                            f"Additional keys in the actual mapping: {additional}")
        for key in expected:
            self._item(actual[key], expected[key], key)

    def _sequences(self, actual: Sequence[Any], expected: Sequence[Any]) -> None:
        if len(actual) != len(expected):
            raise _Mismatch(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
        for k, (a, e) in enumerate(zip(actual, expected)):
            self._item(a, e, k)

    def _item(self, actual: Any, expected: Any, key: Any) -> None:
        try:
            self.compare(actual, expected)
        except _Mismatch as found:
            raise _Mismatch(found.text, f"[{key!r}]{found.place}") from None

    def _numbers(self, actual: Any, expected: Any) -> None:
        actual, expected = (v.item() if isinstance(v, np.generic) else v for v in (actual, expected))
        if self.check_dtype and type(actual) is not type(expected):
            raise _Mismatch(f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        kinds = {create.inferred(v).category for v in (actual, expected)}
        rtol, atol = self.given or (_TOLERANCES["float64"] if max(kinds) >= FLOAT else (0.0, 0.0))
        size, same = abs(expected), actual == expected or self.equal_nan and actual != actual and expected != expected
        gap = abs(actual - expected)
        if not (same or gap <= atol + rtol * size and gap != float("inf")):
            raise _Mismatch(_number_text(actual, expected, gap, gap / size if size else float("inf"), rtol, atol))

    def _same(self, name: str, actual: Any, expected: Any) -> None:
        if actual != expected:
            raise _Mismatch(f"The values for attribute '{name}' do not match: {actual} != {expected}.")

    def _dense(self, *pair: Any) -> list[TensorBase]:
        """Both with all their elements. Those that are stored must be as many, where both say which these are."""
        pair = tuple(t.coalesce() if t.layout == sparse_coo else t for t in pair)
        if pair[0].layout == pair[1].layout:
            stored, wanted = (t._nnz() for t in pair)
            if stored != wanted:
                raise _Mismatch(f"The number of specified values in sparse tensors does not match: {stored} != "
                                f"{wanted}")
        return [t.to_dense() for t in pair]

    def _tensors(self, actual: TensorBase, expected: TensorBase) -> None:
        self._same("shape", actual.shape, expected.shape)
        if self.check_layout:
            self._same("layout", actual.layout, expected.layout)
        if has_own_layout((actual, expected)):
            actual, expected = self._dense(actual, expected)
        elif self.check_stride:
            self._same("stride()", actual.stride(), expected.stride())
        if self.check_dtype:
            self._same("dtype", actual.dtype, expected.dtype)
        given = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = self.given or (max(r for r, _ in given), max(a for _, a in given))
        found, wanted = _comparable(actual), _comparable(expected)
        with np.errstate(all="ignore"):
            matches = np.isclose(found, wanted, rtol, atol, self.equal_nan)
            if not matches.all():
                gaps = np.where(matches, 0, np.abs(found - wanted))
                ratios = np.where(matches, 0, gaps / np.abs(wanted))
                ratios = ratios.astype(_ratio_type(expected))
                raise _Mismatch(_tensor_text(found, wanted, matches, gaps, ratios, rtol, atol))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _comparable(t: TensorBase) -> Array:
    """Return the elements in a type whose differences are exact enough: not as booleans, nor as short floats."""
    kind = of_array(t._array.dtype)
    wide = {"float16": np.float32, "bfloat16": np.float32}.get(kind.name, None if kind.category >= FLOAT else np.int64)
    return t._array if wide is None else t._array.astype(wide)


def _ratio_type(t: TensorBase) -> Any:
    return t.dtype.to_real().array_type if t.dtype.category >= FLOAT else np.float32


def _allowed(tolerance: float, exact: bool) -> str:
    return "" if exact else f" (up to {tolerance} allowed)"


def _number_text(actual: Any, expected: Any, gap: Any, relative: Any, rtol: float, atol: float) -> str:
    exact = rtol == atol == 0
    return (f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
            f"Absolute difference: {gap}{_allowed(atol, exact)}\n"
            f"Relative difference: {relative}{_allowed(rtol, exact)}")


def _tensor_text(actual: Array, expected: Array, matches: Array, gaps: Array, ratios: Array, rtol: float,
                 atol: float) -> str:
    if not actual.ndim:
        return _number_text(actual.item(), expected.item(), gaps.item(), ratios.item(), rtol, atol)
    exact, wrong = rtol == atol == 0, int(np.count_nonzero(~matches))
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", "",
             f"Mismatched elements: {wrong} / {matches.size} ({wrong / matches.size:.1%})"]
    for name, values, tolerance in (("absolute", gaps, atol), ("relative", ratios, rtol)):
        at = tuple(int(i) for i in np.unravel_index(np.argmax(values), values.shape))
        lines.append(f"Greatest {name} difference: {values[at].item()} at index {at}{_allowed(tolerance, exact)}")
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------------------- inputs

def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None,
                    equal_nan: bool = True, msg: str = "") -> None:
    """Do as `assert_close` in an older form: types may differ, and nan is close to nan."""
    if not isinstance(actual, Tensor):
        actual = create.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = create.tensor(expected, dtype=actual.dtype)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def make_tensor(*shape: int | Sequence[int], dtype: dtype | type, device: device_class | str = "cpu",
                low: float | None = None, high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: memory_format | None = None) -> Any:
    """Return random values between bounds that suit the type: -9 to 9, 0 to 9 for bytes, 0 or 1 for booleans.

    >>> import mutagrad as mg
    >>> mg.testing.make_tensor(2, 3, dtype=mg.float32, device="cpu").shape
    mutagrad.Size([2, 3])
    """
    to = as_dtype(dtype)
    if requires_grad and to.category < FLOAT or noncontiguous and memory_format is not None:
        raise BadValue(f"make_tensor: requires_grad needs a floating point type, not {to.name}, and noncontiguous "
                       "leaves no choice of memory_format", fix="make_tensor(2, 3, dtype=mutagrad.float32)")
    low, high = _bounds(to, low, high)
    size = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    wide = draws.rand(*size, dtype=to.to_complex() if to.is_complex else float64, device=device)
    values = wide._array * (high - low) + (low * (1 + 1j) if to.is_complex else low)
    if to.category < FLOAT:
        values = np.floor(values)
    if exclude_zero:
        values[values == 0] = max(finfo(to).tiny, 0) if to.category >= FLOAT else 1
    made = create.tensor(values.astype(to.array_type))
    if noncontiguous and made.numel() > 1:
        spaced = create.zeros(*made.shape[:-1], 2 * made.shape[-1], dtype=to)
        spaced[..., ::2] = made
        made = spaced[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    return made.requires_grad_(requires_grad)


def _bounds(to: dtype, low: float | None, high: float | None) -> tuple[float, float]:
    if to.name in ("bool", "uint8"):
        least, most = 0, 2 if to.name == "bool" else 10
    else:
        least, most = -9, 10 if to.category < FLOAT else 9
    low, high = least if low is None else low, most if high is None else high
    if not low < high:
        raise BadValue(f"make_tensor: low={low} must be less than high={high}", fix="low=-9, high=9")
    if to.category < FLOAT and to.name != "bool":
        low, high = max(low, iinfo(to).min), min(high, iinfo(to).max + 1)
    return low, high
