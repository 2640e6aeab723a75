"""mutagrad: tensors with PyTorch's API, in which mutation is an ordinary differentiable operation.

>>> import mutagrad as mg
>>> x = mg.tensor([1., 2., 3.], requires_grad=True)
>>> x[0] = 5.
>>> (x * x).sum().backward()
>>> x.grad
tensor([0., 4., 6.])
"""
from math import e, inf, nan, pi
from typing import Any as _Any

from . import _lazy, autograd, xla
from .arrays.compiled.compiler import get_kernels, set_kernels
from .arrays.config import show_config
from .arrays.threads import get_num_threads, set_num_threads
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .base import sockets as _sockets
from .base.counters import stats
from .base.device import device
from .base.errors import MutagradError
from .base.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    strided,
)
from .core.dtypes import (
    bfloat16,
    bool_ as bool,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    float_ as float,
    get_default_dtype,
    half,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    int_ as int,
    long,
    promote_types,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .core.size import Size
from .ops.create.create import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    linspace,
    logspace,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from .ops.linalg.products import addmm, bmm, dot, einsum, matmul, mm, mv, outer, tensordot
from .ops.math.elementwise import (
    abs,
    acos,
    acosh,
    add,
    addcdiv,
    addcmul,
    allclose,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clamp,
    conj,
    cos,
    cosh,
    deg2rad,
    div,
    eq,
    equal,
    erf,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    frac,
    ge,
    gt,
    hypot,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    lerp,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    logit,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    positive,
    pow,
    rad2deg,
    reciprocal,
    relu,
    remainder,
    round,
    rsqrt,
    rsub,
    sgn,
    sigmoid,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    sub,
    tan,
    tanh,
    trunc,
    where,
)
from .ops.random.draws import rand, rand_like, randint, randint_like, randn, randn_like, randperm
from .ops.random.generator import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .ops.reduce.reductions import (
    all,
    amax,
    amin,
    aminmax,
    any,
    argmax,
    argmin,
    count_nonzero,
    cumprod,
    cumsum,
    dist,
    max,
    mean,
    min,
    norm,
    prod,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)
from .ops.reduce.softmax import log_softmax, logsumexp, softmax
from .ops.select.selecting import (
    argwhere,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_put,
    index_put_,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    put_copy as put,
    scatter,
    scatter_add,
    scatter_reduce,
    take,
    take_along_dim,
)
from .ops.select.sorting import argsort, sort, topk
from .ops.shape.moving import flip, repeat, roll, tile
from .ops.shape.shape import (
    as_strided,
    broadcast_tensors,
    broadcast_to,
    cat,
    chunk,
    copied as clone,
    diagonal,
    expand_as,
    flatten,
    movedim,
    narrow,
    permute,
    reshape,
    select,
    split,
    squeeze,
    stack,
    t,
    transpose,
    unbind,
    unflatten,
    unfold,
    unsqueeze,
)
from .tensors.casts import is_complex, is_floating_point, result_type
from .tensors.printing import set_printoptions
from .tensors.tensor import Tensor, is_tensor, numel

__version__ = "0.1.0"

_sockets.plug_in(_lazy.SOCKETS)
_lazy.install_aliases()
_lazy.install_lazy_methods(Tensor)


# PyTorch's other names for the same.
absolute, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh = abs, acos, acosh, asin, asinh, atan, atan2, atanh
subtract, multiply, divide, true_divide, negative, fix, clip = sub, mul, div, div, neg, trunc, clamp
not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
concat = concatenate = cat
swapaxes = swapdims = transpose
moveaxis = movedim
ger = outer
newaxis = None


def __getattr__(name: str) -> _Any:
    """Find what is loaded when it is first asked for; _lazy.py says from where."""
    found = globals()[name] = getattr(Tensor, name) if name in _lazy.WRITES else _lazy.find(name, __dir__)
    return found


def __dir__() -> list[str]:
    """Return the public names: no private ones, and no rooms that are only places of files."""
    here = {name for name, value in globals().items() if not isinstance(value, type(_lazy))}
    every = here | _lazy.FUNCTIONS.keys() | _lazy.WRITES | _lazy.MODULES | {"autograd"}
    return sorted(name for name in every if name[0] != "_" or name == "__version__")
