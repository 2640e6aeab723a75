"""Is a derivative right? Finite differences of the function itself are the judge."""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..backends import np
from ..backward import grad
from ..construct import make
from ..errors import BadArgument, GradientError, NotSupported
from ..storage import TensorBase
from .modes import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(GradientError):
    """The derivative by the rules and the one by differences are not the same."""


def _wants_grad(x: Any) -> bool:
    return isinstance(x, TensorBase) and x._storage.writer is not None


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Any]:
    result = func(*inputs)
    return [o for o in (result if isinstance(result, (tuple, list)) else (result,)) if isinstance(o, TensorBase) and o._array.dtype.kind in "fcV"]


def _numeric(func: Callable[..., Any], inputs: tuple[Any, ...], which: int, eps: float) -> list[Any]:
    """For each output the derivatives by the real and, for complex inputs, the imaginary parts of one input, by differences."""
    x = inputs[which]
    array = x._array
    units = (1.0, 1j) if array.dtype.kind == "c" else (1.0,)
    columns: list[list[Any]] = []
    for place in np.ndindex(array.shape):
        for unit in units:
            ends = []
            for step in (eps, -eps):
                moved = array.copy()
                moved[place] += step * unit
                ends.append([o._array.copy() for o in _outputs(func, (*inputs[:which], make(moved), *inputs[which + 1:]))])
            columns.append([(a - b).reshape(-1) / (2 * eps) for a, b in zip(*ends)])
    return [np.stack([c[k] for c in columns]) if columns else np.zeros((0, 0)) for k in range(len(columns[0]) if columns else 0)]


def _by_rules(output: Any, x: Any) -> Any:
    """The same by the rules: a row for each real (and imaginary) part of x, a column for each element of the output."""
    columns = []
    units = (1.0, 1j) if output._array.dtype.kind == "c" else (1.0,)
    for place in np.ndindex(output._array.shape):
        parts = []
        for unit in units:
            seed = np.zeros_like(output._array)
            seed[place] = unit
            found, = grad([output], [x], [make(seed)], retain_graph=True, allow_unused=True) if output.requires_grad else (None,)
            g = np.zeros_like(x._array) if found is None else found._array
            flat = g.reshape(-1)
            parts.append(np.stack([flat.real, flat.imag], 1).reshape(-1) if x._array.dtype.kind == "c" else flat)
        columns.append(parts[0] + 1j * parts[1] if len(parts) > 1 else parts[0])
    return np.stack(columns, 1) if columns else np.zeros((x._array.size, 0))


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None) -> bool:
    """Whether the gradients of `func` are those by differences.

    >>> import mutagrad as mg
    >>> x = mg.rand(3, dtype=mg.float64, requires_grad=True)
    >>> mg.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    inputs = tuple(inputs)
    if check_batched_grad or check_batched_forward_grad or check_forward_ad:
        raise NotSupported("gradcheck: only reverse mode, one vector at a time, is checked",
                           why="check_batched_grad, check_batched_forward_grad or check_forward_ad was given", fix="autograd.functional.jvp")
    wanted = [i for i, x in enumerate(inputs) if _wants_grad(x)]
    if not wanted:
        raise BadArgument("gradcheck: no input requires a gradient", fix="mutagrad.rand(3, dtype=mutagrad.float64, requires_grad=True)")
    with enable_grad():
        outputs = _outputs(func, inputs)
    for i in wanted:
        with no_grad():
            expected = _numeric(func, inputs, i, eps)
        for k, e in enumerate(expected):
            found = _by_rules(outputs[k], inputs[i])
            if not np.allclose(found, e, rtol, atol):
                if raise_exception:
                    raise GradcheckError(f"gradcheck: the Jacobian of output {k} with respect to input {i} is not what differences give",
                                         why=f"by the rules\n{found}\nby differences\n{e}", fix="inputs must be float64 for differences to be exact enough")
                return False
    return True


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, **settings: Any) -> bool:
    """Whether the second derivatives of `func` are those by differences of the first."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with enable_grad():
        outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = [make(rng.normal(size=o._array.shape).astype(o._array.dtype)).requires_grad_() for o in outputs]
    grad_outputs = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(inputs)

    def first(*values: Any) -> Any:
        xs = tuple(x.requires_grad_() if _wants_grad(old) and not _wants_grad(x) else x for x, old in zip(values[:count], inputs))
        with enable_grad():
            results = [o for o in _outputs(func, xs) if o.requires_grad]
            wanted = [x for x in xs if _wants_grad(x)]
            return grad(results, wanted, list(values[count:]), create_graph=True, materialize_grads=True)

    return gradcheck(first, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


class _Module(ModuleType):
    """In PyTorch `autograd.gradcheck` is this module to an import statement and the function to everybody else."""

    def __call__(self, *arguments: Any, **settings: Any) -> bool:
        return gradcheck(*arguments, **settings)


sys.modules[__name__].__class__ = _Module
