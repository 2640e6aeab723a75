"""Samples of the table as programs of XLA's: their arrays are its arguments, results and gradients what it returns."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

import mutagrad as mg
import mutagrad.xla.kernels
from mutagrad.arrays.kinds import use
from mutagrad.arrays.xla.memory import HOST, Trace, XArray, wrap
from mutagrad.base.modes import call_with
from mutagrad.core.factory import make, stamp_storages
from samples import Sample
from samples.base import listed

Array = np.ndarray[Any, Any]
# Compiled once and run once: what takes the time is LLVM.
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
           "xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


def fixed_arrays(sample: Sample) -> list[Array]:
    """The arrays of a sample that are no draws: indices and masks."""
    found: list[Array] = []
    sample.bind(list(sample.arrays()), lambda array: found.append(array))
    return found


def call(sample: Sample, tensors: list[Any], fixed: Sequence[Any]) -> tuple[Any, ...]:
    rest = iter(fixed)
    tensors = [tensors[0].clone(), *tensors[1:]] if sample.writes else tensors
    arguments, settings = sample.bind(tensors, lambda _: next(rest))
    result = next(iter(sample.forms(mg).values()))(*arguments, **settings)
    return (tensors[0],) if sample.writes else listed(result)


def _weighted(results: Sequence[Any]) -> Any:
    """One number that depends on every element of the results that have a gradient."""
    parts = []
    for r in results:
        if isinstance(r, mg.Tensor) and r.requires_grad:
            weights = mg.arange(1.0, r.numel() + 1, dtype=mg.float64).reshape(r.shape).cos().to(r.dtype)
            parts.append((r * weights).sum().abs())
    return sum(parts[1:], parts[0]) if parts else None


def run(sample: Sample, tensors: Sequence[Any], fixed: Sequence[Any]) -> list[Any]:
    """Results, and the gradients of all inputs."""
    inputs = [t.clone() for t in tensors]
    if sample.grad:
        inputs = [t.requires_grad_() if t.dtype.is_floating_point or t.dtype.is_complex else t for t in inputs]
    results = list(call(sample, inputs, fixed))
    loss = _weighted(results) if sample.grad else None
    found = [r for r in results if isinstance(r, mg.Tensor)]
    if loss is None:
        return found
    loss.backward()
    return found + [mg.zeros_like(x) if x.grad is None else x.grad for x in inputs if x.requires_grad]


def step(function: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
    """A function of tensors as one of JAX's arrays."""
    def body(*values: Any) -> list[Any]:
        def inside() -> list[Any]:
            tensors = [make(wrap(v, HOST)) for v in values]
            found = [t._array for t in function(*tensors)]
            return [a.values() if type(a) is XArray else jnp.asarray(a) for a in found]

        trace = Trace()
        use(trace)
        stamp_storages(True)
        try:
            return call_with({"kind": trace}, inside)
        finally:
            stamp_storages(False)

    return body


def traced(function: Callable[..., Sequence[Any]], *arguments: Any) -> ClosedJaxpr:
    return jax.make_jaxpr(step(function))(*arguments)


def equations(program: Jaxpr) -> int:
    """How many there are, with those of loops and calls."""
    return sum(1 + sum(equations(inner) for v in e.params.values() for inner in _programs(v)) for e in program.eqns)


def _programs(value: Any) -> list[Jaxpr]:
    if isinstance(value, ClosedJaxpr):
        return [value.jaxpr]
    if isinstance(value, Jaxpr):
        return [value]
    return [p for v in value for p in _programs(v)] if isinstance(value, (tuple, list)) else []


def executed(programs: Sequence[tuple[ClosedJaxpr, Sequence[Any]]]) -> list[list[Array]]:
    """Several programs as one, so that they are compiled together."""
    def together(arguments: Any) -> Any:
        return [jax.core.eval_jaxpr(p.jaxpr, p.consts, *a) for (p, _), a in zip(programs, arguments)]

    found = jax.jit(together, compiler_options=QUICKLY)([list(a) for _, a in programs])
    return [[np.asarray(v) for v in values] for values in found]
