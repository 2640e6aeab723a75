"""Printed tensors, held to the text that PyTorch 2.13.0 prints: a recorded table, then random arrays beside a live PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from mutagrad.tensors.printing import (
    dtype_suffix_needed,
    format_scalar,
    format_tensor,
    set_printoptions,
    size_suffix_needed,
)

Array = np.ndarray[Any, Any]
inf, nan = np.inf, np.nan
DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


class Case(NamedTuple):
    """An array and what PyTorch printed for it, under these options and with these suffixes after size and dtype."""

    array: Array
    expected: str
    options: dict[str, Any] = {}
    extra: tuple[str, ...] = ()


def f16(*values: Any) -> Array:
    return np.array(values, dtype=np.float16)


def f32(*values: Any) -> Array:
    return np.array(values, dtype=np.float32)


def f64(*values: Any) -> Array:
    return np.array(values, dtype=np.float64)


def c64(*values: Any) -> Array:
    return np.array(values, dtype=np.complex64)


def scalar(value: Any, dtype: str) -> Array:
    return np.array(value, dtype=dtype)


def upto(*shape: int, dtype: str = "float32") -> Array:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


GRAD = ("requires_grad=True",)
CLONE = ("grad_fn=<CloneBackward0>",)

CASES = {
    # scalars
    "scalar whole": Case(scalar(3.0, "float32"), "tensor(3.)"),
    "scalar fraction": Case(scalar(1.5, "float32"), "tensor(1.5000)"),
    "scalar negative zero": Case(scalar(-0.0, "float32"), "tensor(-0.)"),
    "scalar nan": Case(scalar(nan, "float32"), "tensor(nan)"),
    "scalar negative infinity": Case(scalar(-inf, "float32"), "tensor(-inf)"),
    "scalar large": Case(scalar(1e10, "float32"), "tensor(1.0000e+10)"),
    "scalar small": Case(scalar(-9e-5, "float64"), "tensor(-9.0000e-05, dtype=torch.float64)"),
    "scalar int": Case(scalar(-7, "int64"), "tensor(-7)"),
    "scalar int32": Case(scalar(7, "int32"), "tensor(7, dtype=torch.int32)"),
    "scalar bool": Case(scalar(True, "bool"), "tensor(True)"),
    "scalar complex": Case(scalar(1 - 2.5j, "complex64"), "tensor(1.-2.5000j)"),
    "scalar half": Case(scalar(65504, "float16"), "tensor(65504., dtype=torch.float16)"),
    # integers and bools
    "ints aligned by sign and width": Case(np.array([1, -20, 300]), "tensor([  1, -20, 300])"),
    "int8": Case(np.array([-128, 3], dtype=np.int8), "tensor([-128,    3], dtype=torch.int8)"),
    "uint8 matrix": Case(upto(2, 3, dtype="uint8"), """\
tensor([[0, 1, 2],
        [3, 4, 5]], dtype=torch.uint8)"""),
    "largest uint64": Case(
        np.array([2**64 - 1, 0], dtype=np.uint64), "tensor([18446744073709551615,                    0], dtype=torch.uint64)"
    ),
    "smallest int64": Case(np.array([-(2**63), 1]), "tensor([-9223372036854775808,                    1])"),
    "bools mixed": Case(np.array([True, False]), "tensor([ True, False])"),
    "bools all true": Case(np.array([[True], [True]]), """\
tensor([[True],
        [True]])"""),
    # floats
    "whole floats": Case(f32(1, 2, 3), "tensor([1., 2., 3.])"),
    "whole floats with sign": Case(f32(1, -20), "tensor([  1., -20.])"),
    "one fraction shows all fractions": Case(f32(1, 2.5, -30), "tensor([  1.0000,   2.5000, -30.0000])"),
    "negative zero among whole": Case(f32(-0.0, 0.0, 1.0), "tensor([-0., 0., 1.])"),
    "negative zero juts out": Case(f32(-0.0, 1.5), "tensor([-0.0000, 1.5000])"),
    "all zeros count as one wide": Case(np.zeros(25, dtype=np.float32), """\
tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0., 0.,
        0.])"""),
    "nan and infinities alone": Case(f32(nan, inf, -inf), "tensor([nan, inf, -inf])"),
    "infinity juts out": Case(f32(inf, 1), "tensor([inf, 1.])"),
    "nan among fractions": Case(f32(nan, -1.5, inf), "tensor([    nan, -1.5000,     inf])"),
    "rounding to precision": Case(f64(0.00005, 0.12345, 2 / 3) + 0.1, "tensor([0.1001, 0.2235, 0.7667], dtype=torch.float64)"),
    "half": Case(f16(0.1, 2, 1000 / 3), "tensor([9.9976e-02, 2.0000e+00, 3.3325e+02], dtype=torch.float16)"),
    "double": Case(f64(0.1, 0.25), "tensor([0.1000, 0.2500], dtype=torch.float64)"),
    # scientific notation
    "whole ratio of 1000 stays fixed": Case(f32(1, 1000), "tensor([   1., 1000.])"),
    "whole ratio over 1000": Case(f32(1, 1001), "tensor([1.0000e+00, 1.0010e+03])"),
    "fraction ratio of 1000 stays fixed": Case(f64(0.5, 500), "tensor([  0.5000, 500.0000], dtype=torch.float64)"),
    "fraction ratio over 1000": Case(f64(0.5, -500.5), "tensor([ 5.0000e-01, -5.0050e+02], dtype=torch.float64)"),
    "largest 1e8 stays fixed": Case(f32(1e8), "tensor([100000000.])"),
    "over 1e8": Case(f32(1.1e8), "tensor([1.1000e+08])"),
    "smallest 1e-4 stays fixed": Case(f64(1e-4), "tensor([0.0001], dtype=torch.float64)"),
    "float32 of 1e-4 lies below it": Case(f32(1e-4), "tensor([1.0000e-04])"),
    "under 1e-4": Case(f64(9.9e-5, 0, nan), "tensor([9.9000e-05, 0.0000e+00,        nan], dtype=torch.float64)"),
    "three digit exponents": Case(
        f64(1e-150, -1, 1e150), "tensor([1.0000e-150, -1.0000e+00, 1.0000e+150], dtype=torch.float64)"
    ),
    "half subnormal": Case(f16(1.5, nan, 6e-8), "tensor([1.5000e+00,        nan, 5.9605e-08], dtype=torch.float16)"),
    "quotient overflows": Case(f64(1e300, 1e-300), "tensor([1.0000e+300, 1.0000e-300], dtype=torch.float64)"),
    # complex
    "complex whole": Case(c64(1 + 2j, -3 - 4j), "tensor([ 1.+2.j, -3.-4.j])"),
    "complex parts choose alone": Case(c64(1.5 + 1j, 2 + 100j), "tensor([1.5000+1.j, 2.0000+100.j])"),
    "complex scientific real": Case(c64(1e10 + 1.5j, 2 + 2j), "tensor([1.0000e+10+1.5000j, 2.0000e+00+2.0000j])"),
    "complex scientific imaginary": Case(c64(1 + 1e9j, 2 - 3j), "tensor([1.+1.0000e+09j, 2.-3.0000e+00j])"),
    "complex nan and inf": Case(c64(complex(nan, inf), complex(-inf, -nan)), "tensor([nan+infj, -inf+nanj])"),
    "complex zeros": Case(c64(0, complex(-0.0, -0.0)), "tensor([0.+0.j, -0.-0.j])"),
    "complex double": Case(np.array([[1 + 2j]]), "tensor([[1.+2.j]], dtype=torch.complex128)"),
    "complex rows wrap": Case(np.arange(12).astype(np.complex64) * np.complex64(1.5 - 100.25j), """\
tensor([ 0.0000+0.0000j,  1.5000-100.2500j,  3.0000-200.5000j,
         4.5000-300.7500j,  6.0000-401.0000j,  7.5000-501.2500j,
         9.0000-601.5000j, 10.5000-701.7500j, 12.0000-802.0000j,
        13.5000-902.2500j, 15.0000-1002.5000j, 16.5000-1102.7500j])"""),
    "complex zeros run wide": Case(np.zeros(15, dtype=np.complex64), """\
tensor([0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j, 0.+0.j,
        0.+0.j])"""),
    # shapes
    "matrix": Case(upto(2, 3), """\
tensor([[0., 1., 2.],
        [3., 4., 5.]])"""),
    "blank line between matrices": Case(upto(2, 2, 2), """\
tensor([[[0., 1.],
         [2., 3.]],

        [[4., 5.],
         [6., 7.]]])"""),
    "two blank lines in rank 4": Case(upto(2, 2, 1, 2, dtype="int64"), """\
tensor([[[[0, 1]],

         [[2, 3]]],


        [[[4, 5]],

         [[6, 7]]]])"""),
    "rank 5 of ones": Case(np.ones((1, 1, 1, 1, 2), dtype=np.float32), "tensor([[[[[1., 1.]]]]])"),
    "transposed": Case(upto(2, 3).T, """\
tensor([[0., 3.],
        [1., 4.],
        [2., 5.]])"""),
    "row wraps": Case(np.arange(30) * 1000, """\
tensor([    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,  9000,
        10000, 11000, 12000, 13000, 14000, 15000, 16000, 17000, 18000, 19000,
        20000, 21000, 22000, 23000, 24000, 25000, 26000, 27000, 28000, 29000])"""),
    "matrix rows wrap": Case(upto(2, 20) / 8, """\
tensor([[0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
         1.1250, 1.2500, 1.3750, 1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250,
         2.2500, 2.3750],
        [2.5000, 2.6250, 2.7500, 2.8750, 3.0000, 3.1250, 3.2500, 3.3750, 3.5000,
         3.6250, 3.7500, 3.8750, 4.0000, 4.1250, 4.2500, 4.3750, 4.5000, 4.6250,
         4.7500, 4.8750]])"""),
    # empty
    "empty vector": Case(f32(), "tensor([])"),
    "empty matrix": Case(np.zeros((0, 3), dtype=np.float32), "tensor([], size=(0, 3))"),
    "empty inner": Case(np.zeros((2, 0, 3), dtype=np.float32), "tensor([], size=(2, 0, 3))"),
    "empty int64 names its dtype": Case(np.zeros(0, dtype=np.int64), "tensor([], dtype=torch.int64)"),
    "empty bool": Case(np.zeros((1, 0), dtype=bool), "tensor([], size=(1, 0), dtype=torch.bool)"),
    "empty complex": Case(c64(), "tensor([], dtype=torch.complex64)"),
    "empty double": Case(np.zeros((2, 0)), "tensor([], size=(2, 0), dtype=torch.float64)"),
    "empty with grad": Case(np.zeros((0, 3)), "tensor([], size=(0, 3), dtype=torch.float64, requires_grad=True)", extra=GRAD),
    # summaries
    "1001 elements": Case(upto(1001, dtype="int64"), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    "long matrix": Case(upto(1000, 1000, dtype="int64"), """\
tensor([[     0,      1,      2,  ...,    997,    998,    999],
        [  1000,   1001,   1002,  ...,   1997,   1998,   1999],
        [  2000,   2001,   2002,  ...,   2997,   2998,   2999],
        ...,
        [997000, 997001, 997002,  ..., 997997, 997998, 997999],
        [998000, 998001, 998002,  ..., 998997, 998998, 998999],
        [999000, 999001, 999002,  ..., 999997, 999998, 999999]])"""),
    "rank 3 cut where long": Case(upto(2, 10, 100, dtype="int64"), """\
tensor([[[   0,    1,    2,  ...,   97,   98,   99],
         [ 100,  101,  102,  ...,  197,  198,  199],
         [ 200,  201,  202,  ...,  297,  298,  299],
         ...,
         [ 700,  701,  702,  ...,  797,  798,  799],
         [ 800,  801,  802,  ...,  897,  898,  899],
         [ 900,  901,  902,  ...,  997,  998,  999]],

        [[1000, 1001, 1002,  ..., 1097, 1098, 1099],
         [1100, 1101, 1102,  ..., 1197, 1198, 1199],
         [1200, 1201, 1202,  ..., 1297, 1298, 1299],
         ...,
         [1700, 1701, 1702,  ..., 1797, 1798, 1799],
         [1800, 1801, 1802,  ..., 1897, 1898, 1899],
         [1900, 1901, 1902,  ..., 1997, 1998, 1999]]])"""),
    "tall": Case(upto(2000, 1), """\
tensor([[0.0000e+00],
        [1.0000e+00],
        [2.0000e+00],
        ...,
        [1.9970e+03],
        [1.9980e+03],
        [1.9990e+03]])"""),
    "hidden elements have no say": Case(
        np.where(upto(2000) == 1000, 1e30, 1).astype(np.float32), "tensor([1., 1., 1.,  ..., 1., 1., 1.])"
    ),
    "complex summary": Case(np.arange(2000).astype(np.complex64) * np.complex64(1 - 1j), """\
tensor([0.0000e+00+0.0000e+00j, 1.0000e+00-1.0000e+00j, 2.0000e+00-2.0000e+00j,
         ..., 1.9970e+03-1.9970e+03j, 1.9980e+03-1.9980e+03j,
        1.9990e+03-1.9990e+03j])"""),
    "rank 4 summary": Case(upto(7, 1, 5, 40, dtype="int64"), """\
tensor([[[[   0,    1,  ...,   38,   39],
          [  40,   41,  ...,   78,   79],
          ...,
          [ 120,  121,  ...,  158,  159],
          [ 160,  161,  ...,  198,  199]]],


        [[[ 200,  201,  ...,  238,  239],
          [ 240,  241,  ...,  278,  279],
          ...,
          [ 320,  321,  ...,  358,  359],
          [ 360,  361,  ...,  398,  399]]],


        ...,


        [[[1000, 1001,  ..., 1038, 1039],
          [1040, 1041,  ..., 1078, 1079],
          ...,
          [1120, 1121,  ..., 1158, 1159],
          [1160, 1161,  ..., 1198, 1199]]],


        [[[1200, 1201,  ..., 1238, 1239],
          [1240, 1241,  ..., 1278, 1279],
          ...,
          [1320, 1321,  ..., 1358, 1359],
          [1360, 1361,  ..., 1398, 1399]]]])""", {"edgeitems": 2}),
    # options
    "precision 2": Case(f32(1.23456, 2), "tensor([1.23, 2.00])", {"precision": 2}),
    "precision 0": Case(f32(0.5, 1.5, 2.5), "tensor([0, 2, 2])", {"precision": 0}),
    "precision 20": Case(f32(0.1), "tensor([0.10000000149011611938])", {"precision": 20}),
    "threshold": Case(upto(12, dtype="int64"), "tensor([ 0,  1,  2,  ...,  9, 10, 11])", {"threshold": 10}),
    "threshold is still shown in full": Case(
        upto(10, dtype="int64"), "tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])", {"threshold": 10}
    ),
    "edgeitems 1": Case(upto(4, 4), """\
tensor([[ 0.,  ...,  3.],
        ...,
        [12.,  ..., 15.]])""", {"threshold": 0, "edgeitems": 1}),
    "exactly twice the edgeitems is kept": Case(upto(4, 5), """\
tensor([[ 0.,  1.,  ...,  3.,  4.],
        [ 5.,  6.,  ...,  8.,  9.],
        [10., 11.,  ..., 13., 14.],
        [15., 16.,  ..., 18., 19.]])""", {"threshold": 10, "edgeitems": 2}),
    "edgeitems 0 hides all": Case(
        upto(2, 3, dtype="int32"), "tensor([...], size=(2, 3), dtype=torch.int32)", {"threshold": 5, "edgeitems": 0}
    ),
    "edgeitems 0 under the threshold": Case(upto(2, 3), """\
tensor([[0., 1., 2.],
        [3., 4., 5.]], size=(2, 3))""", {"edgeitems": 0}),
    "edgeitems 0 scalar": Case(scalar(1.5, "float32"), "tensor(1.5000, size=())", {"edgeitems": 0, "threshold": 0}),
    "linewidth 20 wraps a summary": Case(upto(100, dtype="int64") * 1000, """\
tensor([    0,
         1000,
         2000,
         ...,
        97000,
        98000,
        99000])""", {"linewidth": 20, "threshold": 10}),
    "linewidth 1": Case(f64(1, 2.5), """\
tensor([1.0000,
        2.5000],
       dtype=torch.float64)""", {"linewidth": 1}),
    "linewidth 40": Case(upto(2, 12), """\
tensor([[ 0.,  1.,  2.,  3.,  4.,  5.,
          6.,  7.,  8.,  9., 10., 11.],
        [12., 13., 14., 15., 16., 17.,
         18., 19., 20., 21., 22., 23.]])""", {"linewidth": 40}),
    "forced scientific": Case(
        f32(1, -2, 0, nan), "tensor([ 1.0000e+00, -2.0000e+00,  0.0000e+00,         nan])", {"sci_mode": True}
    ),
    "forced scientific leaves zeros and nans": Case(f32(0, nan, inf), "tensor([0., nan, inf])", {"sci_mode": True}),
    "forced scientific complex": Case(
        c64(1, 2j), "tensor([1.0000e+00+0.0000e+00j, 0.0000e+00+2.0000e+00j])", {"sci_mode": True}
    ),
    "forced fixed": Case(f32(1e20, -1.5, 0), """\
tensor([100000002004087734272.0000,                    -1.5000,
                            0.0000])""", {"sci_mode": False}),
    "forced fixed loses the small": Case(f32(1, 1e-7), "tensor([1.0000, 0.0000])", {"sci_mode": False}),
    "profile short": Case(upto(2000) / 7, "tensor([0.00e+00, 1.43e-01,  ..., 2.85e+02, 2.86e+02])", {"profile": "short"}),
    "profile full": Case(
        np.zeros(1008, dtype=np.float32),
        "tensor([" + ",\n        ".join([", ".join(["0."] * 24)] * 42) + "])",
        {"profile": "full"},
    ),
    "options beside a profile": Case(upto(2000) / 7, """\
tensor([0.0e+00, 1.4e-01, 2.9e-01, 4.3e-01,  ..., 2.9e+02, 2.9e+02, 2.9e+02,
        2.9e+02])""", {"profile": "short", "precision": 1, "edgeitems": 4}),
    "unknown profile": Case(f32(1.5), "tensor([1.5000])", {"profile": "nope"}),
    # suffixes
    "requires_grad": Case(f32(1, 2), "tensor([1., 2.], requires_grad=True)", extra=GRAD),
    "grad_fn": Case(f32(1, 2), "tensor([1., 2.], grad_fn=<CloneBackward0>)", extra=CLONE),
    "dtype then grad": Case(f64(1, 2), "tensor([1., 2.], dtype=torch.float64, requires_grad=True)", extra=GRAD),
    "suffix breaks the line": Case(upto(14), """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.],
       grad_fn=<CloneBackward0>)""", extra=CLONE),
    "dtype and grad_fn break once": Case(upto(14, dtype="float64"), """\
tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.],
       dtype=torch.float64, grad_fn=<CloneBackward0>)""", extra=CLONE),
    "every suffix on its own line": Case(f64(1.5), """\
tensor([1.5000],
       dtype=torch.float64,
       requires_grad=True)""", {"linewidth": 25}, GRAD),
    "two suffixes just fit after a break": Case(f64(1.5, 2.5, 3.5), """\
tensor([1.5000, 2.5000, 3.5000],
       dtype=torch.float64, requires_grad=True)""", {"linewidth": 46}, GRAD),
    "two suffixes just too long after a break": Case(f64(1.5, 2.5, 3.5), """\
tensor([1.5000, 2.5000, 3.5000],
       dtype=torch.float64,
       requires_grad=True)""", {"linewidth": 45}, GRAD),
    "dtype just fits": Case(upto(2, dtype="float64"), "tensor([0., 1.], dtype=torch.float64)", {"linewidth": 38}),
    "dtype just too long": Case(upto(2, dtype="float64"), """\
tensor([0., 1.],
       dtype=torch.float64)""", {"linewidth": 37}),
    "suffix after a short last line": Case(upto(9, dtype="float64"), """\
tensor([0., 1., 2., 3., 4., 5., 6., 7.,
        8.], dtype=torch.float64)""", {"linewidth": 40}),
}


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")


def printed(array: Array, extra: tuple[str, ...] = (), default_float: str = "float32") -> str:
    """`array` as a caller prints it, under PyTorch's name so that lines break in the same places."""
    size = [f"size={array.shape}"] if size_suffix_needed(array) else []
    dtype = [f"dtype=torch.{array.dtype.name}"] if dtype_suffix_needed(array, default_float) else []
    return format_tensor(array, suffixes=[*size, *dtype, *extra])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_recorded(case: Case) -> None:
    set_printoptions(**case.options)
    assert printed(case.array, case.extra) == case.expected


def test_prefix_sets_the_indent() -> None:
    assert format_tensor(upto(2, 2), prefix="Sub(", suffixes=["x" * 70]) == f"Sub([[0., 1.],\n     [2., 3.]],\n    {'x' * 70})"


def test_sci_mode_lasts_until_the_next_call() -> None:
    set_printoptions(sci_mode=True, precision=2)
    assert printed(f32(1)) == "tensor([1.00e+00])"
    set_printoptions(linewidth=60)
    assert printed(f32(1.5)) == "tensor([1.50])"


def test_huge_array_is_cut_before_it_is_formatted() -> None:
    huge = np.broadcast_to(np.float32(1), (10**5, 10**5, 10**5))
    assert printed(huge).count("1.") == 6**3


@pytest.mark.parametrize(
    ("default_float", "numbers", "empty"),
    [
        ("float16", {"bool", "int64", "float16", "complex64"}, {"float16"}),
        ("float32", {"bool", "int64", "float32", "complex64"}, {"float32"}),
        ("float64", {"bool", "int64", "float64", "complex128"}, {"float64"}),
    ],
)
def test_dtypes_left_out(default_float: str, numbers: set[str], empty: set[str]) -> None:
    def left_out(size: int) -> set[str]:
        return {name for name in DTYPES if not dtype_suffix_needed(np.zeros(size, dtype=name), default_float)}

    assert left_out(1) == numbers
    assert left_out(0) == empty


@pytest.mark.parametrize(
    ("array", "spec", "expected"),
    [
        (scalar(1.23456, "float32"), ".3f", "1.235"),
        (scalar(1.23456, "float32"), "", "1.2345600128173828"),
        (scalar(0.1, "float16"), "", "0.0999755859375"),
        (scalar(3, "int64"), "d", "3"),
        (scalar(3, "int32"), ">10", "         3"),
        (scalar(True, "bool"), "", "True"),
        (scalar(True, "bool"), ".3f", "1.000"),
        (scalar(1 + 2j, "complex64"), ".3f", "1.000+2.000j"),
    ],
)
def test_format_scalar(array: Array, spec: str, expected: str) -> None:
    assert format_scalar(array, spec) == expected


def test_format_scalar_leaves_errors_to_python() -> None:
    with pytest.raises(ValueError, match="Unknown format code 'd' for object of type 'float'"):
        format_scalar(scalar(1.5, "float32"), "d")


OPTION_VALUES: dict[str, list[Any]] = {
    "precision": [0, 1, 2, 3, 6, 10],
    "threshold": [0, 1, 5, 20, 100, inf],
    "edgeitems": [0, 1, 2, 3, 5],
    "linewidth": [1, 10, 20, 40, 60, 81, 120, 200],
    "profile": ["default", "short", "full"],
    "sci_mode": [True, False],
}
LARGEST_DIMENSION = {0: 0, 1: 60, 2: 14, 3: 8, 4: 5}
LARGEST_EXPONENT = {"float16": 4, "float32": 38, "float64": 300}


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    rank = int(rng.integers(len(LARGEST_DIMENSION)))
    smallest = 0 if rng.random() < 0.1 else 1
    return tuple(int(size) for size in rng.integers(smallest, LARGEST_DIMENSION[rank] + 1, size=rank))


def random_floats(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    """One of several scales, as each sets off other rules, and at times with zeros, infinities and nans strewn in."""
    normal, top = rng.standard_normal(shape), LARGEST_EXPONENT[dtype]
    values = [
        normal,
        np.abs(normal),
        np.zeros(shape),
        np.round(normal * 10 ** rng.uniform(0, 5)),
        normal * 10.0 ** rng.integers(-8, 10),
        normal * 10.0 ** rng.uniform(-top, top, shape),
        rng.choice([1, -1], shape) * 10.0 ** rng.integers(-5, 10, shape),
    ][rng.integers(7)]
    strewn = (rng.random(shape) < 0.3) & (rng.random() < 0.4)
    with np.errstate(over="ignore", under="ignore"):
        return np.where(strewn, rng.choice([0.0, -0.0, inf, -inf, nan], shape), values).astype(dtype)


def random_integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    limits, largest = np.iinfo(dtype), 10 ** int(rng.integers(20))
    low, high = max(limits.min, -largest), min(limits.max, largest)
    return np.asarray(rng.integers(low, high, shape, dtype=np.dtype(dtype).type, endpoint=True))


def random_array(rng: np.random.Generator, dtype: str) -> Array:
    shape, kind = random_shape(rng), np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < rng.choice([0, 0.5, 1]))
    if kind in "iu":
        return random_integers(rng, shape, dtype)
    if kind == "f":
        return random_floats(rng, shape, dtype)
    array = np.empty(shape, dtype=dtype)
    array.real = random_floats(rng, shape, array.real.dtype.name)
    array.imag = random_floats(rng, shape, array.real.dtype.name)
    return array


def random_options(rng: np.random.Generator) -> dict[str, Any]:
    return {name: values[rng.integers(len(values))] for name, values in OPTION_VALUES.items() if rng.random() < 0.25}


@pytest.fixture
def torch() -> Iterator[Any]:
    module = pytest.importorskip("torch")
    yield module
    module.set_printoptions(profile="default")
    module.set_default_dtype(module.float32)


def torch_tensor(torch: Any, array: Array, extra: tuple[str, ...]) -> Any:
    tensor = torch.from_numpy(array.copy()).requires_grad_(bool(extra))
    return tensor.clone() if extra == CLONE else tensor


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_record_is_what_torch_prints(torch: Any, case: Case) -> None:
    torch.set_printoptions(**case.options)
    assert repr(torch_tensor(torch, case.array, case.extra)) == case.expected


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_arrays_print_as_in_torch(torch: Any, dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    for _ in range(60):
        array, options, default_float = random_array(rng, dtype), random_options(rng), str(rng.choice(list(LARGEST_EXPONENT)))
        extra = ((), GRAD, CLONE)[rng.integers(3)] if array.dtype.kind in "fc" else ()
        torch.set_default_dtype(getattr(torch, default_float))
        for set_options in (torch.set_printoptions, set_printoptions):
            set_options(profile="default")
            set_options(**options)
        assert printed(array, extra, default_float) == repr(torch_tensor(torch, array, extra)), (options, default_float)
