"""How functions of JAX's arrays become kernels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax

from ...arrays.xla.memory import XArray, tracing, unwrap, wrap
from ...arrays.xla.refusals import refusing
from ...arrays.xla.rules import FOLDED, place_among
from ...core.op import kernel
from ...ops.linalg import cholesky, lu, solving
from ...ops.math import special
from ...ops.nn import attention, conv, cross_entropy, ctc, normalize, pool, recurrent, resample
from ...ops.reduce import cumulative, reductions

# They declare what kernels are of, and are loaded when first used.
DECLARING = (attention, cholesky, conv, cross_entropy, ctc, cumulative, lu, normalize, pool, recurrent, reductions,
             resample, solving, special)
Function = TypeVar("Function", bound=Callable[..., Any])


def is_known(arguments: Any) -> bool:
    """Return whether a step is traced and all arrays among these are the same in every run, and small."""
    if tracing() is None:
        return False
    arrays = [a for a in arguments if type(a) is XArray]
    return all(a.known is not None for a in arrays) and sum(a.size for a in arrays) <= FOLDED


def lowered(*names: str) -> Callable[[Function], Function]:
    """Return a decorator that makes a function of JAX's arrays the kernel of operations.

    It may return NotImplemented for what it is not for.
    """
    def enter(function: Function) -> Function:
        def run(*arguments: Any) -> Any:
            if is_known(arguments):
                return NotImplemented
            found = refusing(function)(*(unwrap(a) for a in arguments))
            return found if found is NotImplemented else wrap(found, place_among(arguments))

        for name in names:
            kernel(name, XArray)(run)
        return function

    return enter


def transposed(function: Callable[[Any], Any], shape: Any, dtype: Any, g: Any) -> Any:
    """Return what the transpose of a linear function of an array of this shape and type gives for g."""
    struct: Any = jax.ShapeDtypeStruct
    found, = jax.linear_transpose(function, struct(tuple(shape), dtype))(g)
    return found
