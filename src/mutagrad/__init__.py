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

from . import autograd, rooms
from ._size import Size
from ._tensor import Tensor, is_tensor, numel
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .backends.threads import get_num_threads, set_num_threads
from .device import device
from .dtypes import bool_ as bool
from .dtypes import (
                     bfloat16,
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
                     get_default_dtype,
                     half,
                     iinfo,
                     int8,
                     int16,
                     int32,
                     int64,
                     long,
                     promote_types,
                     set_default_dtype,
                     short,
                     uint8,
                     uint16,
                     uint32,
                     uint64,
)
from .dtypes import float_ as float
from .dtypes import int_ as int
from .element_types import is_complex, is_floating_point, result_type
from .errors import MutagradError
from .layout import channels_last, channels_last_3d, contiguous_format, layout, memory_format, preserve_format, sparse_coo, strided
from .ops.create import (
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
                     rand,
                     rand_like,
                     randint,
                     randint_like,
                     randn,
                     randn_like,
                     randperm,
                     tensor,
                     zeros,
                     zeros_like,
)
from .ops.elementwise import (
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
from .ops.linalg import addmm, bmm, dot, einsum, matmul, mm, mv, outer, tensordot
from .ops.reduce import (
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
from .ops.selecting import (
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
                     scatter,
                     scatter_add,
                     scatter_reduce,
                     take,
                     take_along_dim,
)
from .ops.selecting import put_copy as put
from .ops.shape import copied as clone
from .ops.shape import (
                     as_strided,
                     broadcast_tensors,
                     broadcast_to,
                     cat,
                     chunk,
                     diagonal,
                     expand_as,
                     flatten,
                     flip,
                     movedim,
                     narrow,
                     permute,
                     repeat,
                     reshape,
                     roll,
                     select,
                     split,
                     squeeze,
                     stack,
                     t,
                     tile,
                     transpose,
                     unbind,
                     unflatten,
                     unfold,
                     unsqueeze,
)
from .ops.softmax import log_softmax, logsumexp, softmax
from .ops.sorting import argsort, sort, topk
from .printing import set_printoptions
from .random import Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .stats import stats

__version__ = "0.1.0"


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
    """What is loaded when first asked for: rooms.py says from where."""
    found = globals()[name] = rooms.find(name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *rooms.FUNCTIONS, *rooms.MODULES})
