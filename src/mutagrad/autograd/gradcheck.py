"""Is a derivative right? Finite differences of the function itself are the judge."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from ..arrays import np
from ..arrays.numpy import silently
from ..base.errors import GradientError, Mismatch
from ..base.layout import ANSWERING, has_own_layout, strided
from ..base.modes import keeps_modes
from ..base.operands import Array
from ..core.backward import grad
from ..core.factory import detached, make
from ..core.spread import check_separate
from ..core.storage import TensorBase, check_own, memory_of
from ..tensors.tensor import Tensor
from .forward_ad import dual_level, make_dual, unpack_dual
from .modes import enable_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(GradientError):
    """The derivative by the rules and the one by differences are not the same."""


def _wants_grad(x: Any) -> bool:
    return isinstance(x, TensorBase) and x._storage.writer is not None


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Any]:
    result = func(*inputs)
    given = result if isinstance(result, (tuple, list)) else (result,)
    given = [o.to_dense() if isinstance(o, TensorBase) and o.layout is not strided else o for o in given]
    return [o for o in given if isinstance(o, TensorBase) and o._array.dtype.kind in "fcV"]


def _differentiable(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Callable[..., Any], list[Any]]:
    """Return a function for the outputs that have a history, and these. If none has one, all: they must be constant."""
    outputs = _outputs(func, inputs)
    chosen = [k for k, output in enumerate(outputs) if output.requires_grad]
    if len(chosen) in (0, len(outputs)):
        return func, outputs
    return lambda *given: [_outputs(func, given)[k] for k in chosen], [outputs[k] for k in chosen]


def _same_kind(ends: list[list[Array]]) -> None:
    """Raise where the outputs' shapes or types change with the values of the inputs."""
    for what in ("shape", "dtype"):
        kinds = [[getattr(a, what) for a in arrays] for arrays in ends]
        if any(kind != kinds[0] for kind in kinds):
            raise Mismatch(f"gradcheck: func must return outputs with the same {what} when inputs are perturbed",
                           why=f"they have {kinds[0]} and {kinds[-1]}",
                           fix="check it at values where nothing is decided by a small difference")


def _units(array: Array) -> tuple[complex, ...]:
    return (1.0, 1j) if array.dtype.kind == "c" else (1.0,)


@contextmanager
def _moved(x: Any, place: Any, step: Any) -> Iterator[None]:
    """Move one element of a tensor, or all of them, for the time of a block, in its memory."""
    memory, value = detached(x), np.array(x._array[place])
    memory[place] = make(value + step)
    try:
        yield
    finally:
        memory[place] = make(value)


def _difference(func: Callable[..., Any], inputs: tuple[Any, ...], which: int, place: Any, step: Any,
                at: list[TensorBase]) -> list[Array]:
    """How far each output moves while one input is moved from one step before to one step behind."""
    ends = []
    for signed in (step, -step):
        with _moved(inputs[which], place, signed), enable_grad():
            ends.append([o._array.copy() for o in _outputs(func, inputs)])
    _same_kind([[o._array for o in at], *ends])
    return [a - b for a, b in zip(*ends)]


@keeps_modes
def _numeric(func: Callable[..., Any], inputs: tuple[Any, ...], which: int, eps: float,
             at: list[TensorBase]) -> list[Array]:
    """For each output the derivatives by the real (and imaginary) parts of one input, by differences.

    The very tensor is moved, as PyTorch does: what the function is given is what it may also find elsewhere, a
    module's parameter for example.
    """
    array = inputs[which]._array
    columns: list[list[Array]] = []
    for place in np.ndindex(array.shape):
        for unit in _units(array):
            moved = _difference(func, inputs, which, place, eps * unit, at)
            columns.append([difference.reshape(-1) / (2 * eps) for difference in moved])
    return [np.stack([c[k] for c in columns]) for k in range(len(columns[0]) if columns else 0)]


def _by_rules(output: TensorBase, x: TensorBase) -> Any:
    """The same by the rules: a row for each real (and imaginary) part of x, a column for each element of the output."""
    columns = []
    for place in np.ndindex(output._array.shape):
        parts = []
        for unit in _units(output._array):
            seed = np.zeros_like(output._array)
            seed[place] = unit
            g = _gradient(output, x, seed)
            flat = g.reshape(-1)
            parts.append(np.stack([flat.real, flat.imag], 1).reshape(-1) if x._array.dtype.kind == "c" else flat)
        columns.append(parts[0] + 1j * parts[1] if len(parts) > 1 else parts[0])
    return np.stack(columns, 1) if columns else np.zeros((x._array.size, 0))


def _gradient(output: TensorBase, x: TensorBase, seed: Array) -> Any:
    if not output.requires_grad:
        return np.zeros_like(x._array)
    found, = grad([output], [x], [make(seed)], retain_graph=True, allow_unused=True)
    return np.zeros_like(x._array) if found is None else found._array


def _tangents(func: Callable[..., Any], inputs: tuple[Any, ...], which: int, direction: Array) -> list[Array]:
    with dual_level():
        given = [detached(x) if isinstance(x, TensorBase) else x for x in inputs]
        given[which] = make_dual(given[which], make(direction))
        found = [(o, unpack_dual(o).tangent) for o in _outputs(func, tuple(given))]
    return [np.zeros_like(o._array) if t is None else t._array for o, t in found]


def _by_tangents(func: Callable[..., Any], inputs: tuple[Any, ...], which: int) -> list[Array]:
    """The same in forward mode: a row for each direction."""
    array = inputs[which]._array
    rows = []
    for place in np.ndindex(array.shape):
        for unit in _units(array):
            direction = np.zeros_like(array)
            direction[place] = unit
            rows.append([tangent.reshape(-1) for tangent in _tangents(func, inputs, which, direction)])
    return [np.stack([row[k] for row in rows]) for k in range(len(rows[0]) if rows else 0)]


def _compare(found: Array, expected: Array, what: str, rtol: float, atol: float) -> None:
    if not silently(np.allclose, found, expected, rtol, atol):
        raise GradcheckError(f"gradcheck: {what}", why=f"by the rules\n{found}\nby differences\n{expected}",
                             fix="inputs must be float64 for differences to be exact enough")


def _check_again(found: Array, again: Array, i: int, nondet_tol: float) -> None:
    if found.size and np.abs(found - again).max() > nondet_tol:
        raise GradcheckError("gradcheck: Backward is not reentrant: run twice, it gives different gradients "
                             f"for input {i}", why="a rule draws random numbers, or changes what it computes with",
                             fix="nondet_tol=1e-5, if that is meant")


def _check_zero(output: TensorBase, x: TensorBase) -> None:
    if np.any(_gradient(output, x, np.zeros_like(output._array))):
        raise GradcheckError("gradcheck: backward not multiplied by grad_output",
                             why="a gradient of zero at the output must be zero at the input, too",
                             fix="look at hooks, and at what backward() adds")


def _directions(x: TensorBase, outputs: list[TensorBase]) -> tuple[Array, list[Array]]:
    """For an input and each output a direction of length 1 with positive parts, the same in each run."""
    random = np.random.default_rng(0)
    drawn = [random.random(t._array.shape).astype(t._array.dtype) for t in (x, *outputs)]
    u, *vs = [a / max(np.linalg.norm(a), np.finfo(a.dtype).tiny) for a in drawn]
    return u, vs


def _check_along(func: Callable[..., Any], inputs: tuple[Any, ...], i: int, outputs: list[TensorBase], eps: float,
                 rtol: float, atol: float, nondet_tol: float, reverse: bool, forward: bool) -> None:
    """Compare the whole Jacobian between two directions, which takes two calls of the function for each input."""
    x = inputs[i]
    u, vs = _directions(x, outputs)
    tangents = _tangents(func, inputs, i, u) if forward else outputs
    for k, (v, moved) in enumerate(zip(vs, _difference(func, inputs, i, ..., eps * u, outputs))):
        expected, near = (v * moved).sum() / (2 * eps), atol * float(abs(u.sum() * v.sum()))
        what = f"mismatch for output {k} with respect to input {i}"
        if reverse:
            g = _gradient(outputs[k], x, v)
            _compare((g * u).sum(), expected, f"Jacobian {what}, along one direction", rtol, near)
            _check_again(g, _gradient(outputs[k], x, v), i, nondet_tol)
            _check_zero(outputs[k], x)
        if forward:
            _compare((v * tangents[k]).sum(), expected, f"Jacobian computed with forward mode {what}", rtol, near)


def _check_reverse(outputs: list[TensorBase], x: TensorBase, i: int, expected: list[Array],
                   rtol: float, atol: float, nondet_tol: float) -> None:
    for k, (output, e) in enumerate(zip(outputs, expected)):
        found = _by_rules(output, x)
        _compare(found, e, f"Jacobian mismatch for output {k} with respect to input {i}" if output.requires_grad else
                 "Numerical gradient for function expected to be zero, because its output has no history", rtol, atol)
        if output.requires_grad:
            _check_again(found, _by_rules(output, x), i, nondet_tol)
        _check_zero(output, x)


def _check_inputs(inputs: tuple[Any, ...]) -> list[int]:
    wanted = [i for i, x in enumerate(inputs) if _wants_grad(x)]
    if not wanted:
        raise Mismatch("gradcheck: expects at least one input tensor to require gradient, but none of them have "
                       "requires_grad=True", fix="mutagrad.rand(3, dtype=mutagrad.float64, requires_grad=True)")
    for i in wanted:
        check_separate(inputs[i], f"gradcheck: The {i}th input has a dimension with stride 0, "
                                  "or overlaps itself otherwise")
        check_own(memory_of(inputs[i]), f"gradcheck: The {i}th input had a dimension with stride 0")
        if inputs[i]._array.dtype.itemsize < (16 if inputs[i]._array.dtype.kind == "c" else 8):
            warnings.warn(f"gradcheck: Input #{i} requires gradient and is not a double precision floating point "
                          "or complex: differences will not be exact enough", stacklevel=3)
    return wanted


@keeps_modes
def gradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Any], *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Whether the gradients of `func` are those by differences.

    Every element of the Jacobian is compared; with `fast_mode`, the number that it gives between a direction drawn for
    the input and one drawn for the output (complex tensors are compared in full). Outputs that have no history are left
    out, unless none has one. Batches of gradients are computed one by one, and gradients are always of their input's
    type, so that there is no more to check for `check_batched_grad` and `check_grad_dtypes`.

    >>> import mutagrad as mg
    >>> x = mg.rand(3, dtype=mg.float64, requires_grad=True)
    >>> mg.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    if ANSWERING and has_own_layout((inputs,)):
        settings = {name: value for name, value in locals().items() if name not in ("func", "inputs")}
        return ANSWERING[0]("gradcheck", gradcheck, (func, inputs), settings)
    if not (check_forward_ad or check_backward_ad) or check_batched_forward_grad and not check_forward_ad:
        raise Mismatch("gradcheck: Expected at least one of check_forward_ad and check_backward_ad to be True, and "
                       "check_forward_ad with check_batched_forward_grad", fix="check_backward_ad=True")
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    wanted = _check_inputs(inputs)
    with enable_grad():
        func, outputs = _differentiable(func, inputs)
    try:
        for i in wanted:
            if fast_mode and all(t._array.dtype.kind != "c" for t in (inputs[i], *outputs)):
                _check_along(func, inputs, i, outputs, eps, rtol, atol, nondet_tol, check_backward_ad, check_forward_ad)
                continue
            expected = _numeric(func, inputs, i, eps, outputs)
            if check_backward_ad:
                _check_reverse(outputs, inputs[i], i, expected, rtol, atol, nondet_tol)
            for k, (found, e) in enumerate(zip(_by_tangents(func, inputs, i), expected) if check_forward_ad else ()):
                what = f"Jacobian computed with forward mode mismatch for output {k} with respect to input {i}"
                _compare(found, e, what, rtol, atol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@keeps_modes
def gradgradcheck(func: Callable[..., Any], inputs: Tensor | Sequence[Any],
                  grad_outputs: Tensor | Sequence[Tensor] | None = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
                  nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """Whether the second derivatives of `func` are those by differences of the first."""
    if ANSWERING and has_own_layout((inputs,)):
        settings = {name: value for name, value in locals().items() if name not in ("func", "inputs")}
        return ANSWERING[0]("gradgradcheck", gradgradcheck, (func, inputs), settings)
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    with enable_grad():
        outputs = [o for o in _outputs(func, inputs) if o.requires_grad]
    if grad_outputs is None:
        grad_outputs = [_drawn(o, gen_non_contig_grad_outputs) for o in outputs]
    seeds = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)
    count = len(inputs)

    @keeps_modes
    def first(*values: Any) -> Any:
        xs = tuple(x.requires_grad_() if _wants_grad(old) and not _wants_grad(x) else x
                   for x, old in zip(values[:count], inputs))
        with enable_grad():
            results = [o for o in _outputs(func, xs) if o.requires_grad]
            wanted = [x for x in xs if _wants_grad(x)]
            return grad(results, wanted, list(values[count:]), create_graph=True, materialize_grads=True)

    return gradcheck(first, (*inputs, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
                     fast_mode=fast_mode)


def _drawn(output: TensorBase, scattered: bool) -> Any:
    """A gradient to start from, of the output's shape; every other element of its memory, if asked."""
    size = (*output._array.shape, 2) if scattered else output._array.shape
    drawn = make(np.random.default_rng(0).normal(size=size).astype(output._array.dtype))
    return (drawn[..., 0] if scattered else drawn).requires_grad_()


class _Module(ModuleType):
    """In PyTorch `autograd.gradcheck` is this module to an import statement and the function to everybody else."""

    def __call__(self, *arguments: Any, **settings: Any) -> bool:
        return gradcheck(*arguments, **settings)


sys.modules[__name__].__class__ = _Module
