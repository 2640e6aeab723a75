"""The Python array API standard, version 2024.12, over tensors: for libraries that compute with any arrays.

>>> import mutagrad as mg
>>> x = mg.tensor([3., 1., 2.], requires_grad=True)
>>> xp = x.__array_namespace__()
>>> y = xp.sum(xp.sort(x)[1:] ** 2)
>>> y.backward(); x.grad
tensor([6., 0., 4.])

The functions have the standard's names, arguments and types of results, and gradients wherever ours have. Tensors
themselves keep PyTorch's ways where the two contradict each other: `x.size` is a method, and in `x + y` a 0-d tensor
gives way to the type of the other.
"""
from math import e, inf, nan, pi
from sys import modules as _modules
from types import ModuleType as _ModuleType

from ..base.errors import BadValue as _BadValue
from ..core.dtypes import (
    bool_ as bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from . import fft, linalg
from .creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from .info import __array_namespace_info__
from .kinds import (
    astype,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    can_cast,
    finfo,
    iinfo,
    isdtype,
    result_type,
)
from .linalg import matmul, tensordot, vecdot
from .manipulation import (
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    nonzero,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unstack,
)
from .reductions import (
    all,
    any,
    argmax,
    argmin,
    argsort,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    isin,
    max,
    mean,
    min,
    prod,
    searchsorted,
    sort,
    std,
    sum,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    var,
)

newaxis = None
__array_api_version__ = "2024.12"
VERSIONS = frozenset(["2021.12", "2022.12", "2023.12", "2024.12"])


def standard(version: str | None) -> _ModuleType:
    """Return this namespace, for a version of the standard that it conforms to.

    >>> import mutagrad as mg
    >>> mg.array_api.standard("2024.12") is mg.array_api
    True
    """
    if version is not None and version not in VERSIONS:
        raise _BadValue(f"array API: version {version!r} is not among {', '.join(sorted(VERSIONS))}",
                        fix="x.__array_namespace__()")
    return _modules[__name__]
