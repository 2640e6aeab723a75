"""A function of ours as one of JAX's: a callback with a derivative of its own.

Where values are there, the function is simply called, and for `grad` its graph is kept until the reverse comes. Under
`jit` and `vmap` it is a `pure_callback`, whose shapes are found beforehand; the reverse then computes it anew. The
reverse is such a function, too, so derivatives of every order are there; forward mode is not, as JAX says itself.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp

from ..arrays import np
from ..arrays.dlpack import Writable
from ..autograd.modes import enable_grad, no_grad
from ..base.errors import BadData, NotSupported
from ..core.backward import GradientEdge, get_gradient_edge
from ..core.storage import export
from ..ops.create.create import from_numpy
from ..tensors.tensor import Tensor
from .program import Call, Mapped, Program, Reversed, Trees, check_tensors, freeze
from .recorded import Recorded, captured_leaves

TREES = Trees(jax.tree_util.tree_flatten, lambda leaves, spec: jax.tree_util.tree_unflatten(spec, leaves))


class _Function:
    """A function of the user's. `writes` once it has been seen to write to an argument: it is given copies then."""

    def __init__(self, function: Callable[..., Any], result: Callable[..., Any] | None) -> None:
        self.function, self.result, self.writes = function, result, False


class _Call(Call):
    """One call, with arrays of JAX's among its arguments."""

    owner: _Function
    shapes: dict[Any, list[Any]]

    def shapes_of(self, sources: Sequence[Any]) -> list[Any]:
        """Return what results are like, by the user's function, or by calling the other one with zeros."""
        like = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in sources]
        key = tuple((x.shape, str(x.dtype)) for x in like)
        if key not in self.shapes:
            if self.owner.result is None:
                found = _computed(self, [np.zeros(x.shape, x.dtype) for x in like])
            else:
                found = self._told(like)
            self.shapes[key] = [jax.ShapeDtypeStruct(y.shape, jax.dtypes.canonicalize_dtype(y.dtype)) for y in found]
        return self.shapes[key]

    def _told(self, like: list[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for place, x in zip(self.places, like):
            leaves[place] = x
        arguments, settings = TREES.unflatten(leaves, self.spec)
        assert self.owner.result is not None
        found, self.result_spec = TREES.flatten(self.owner.result(*arguments, **settings))
        self.others, self.result_places = [None] * len(found), [*range(len(found))]
        return found


def wrapped(function: Callable[..., Any], result: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a function as one of JAX's."""
    owner = _Function(function, result)

    @wraps(function)
    def called(*arguments: Any, **settings: Any) -> Any:
        leaves, spec = TREES.flatten((arguments, settings))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray, np.generic))]
        call = _Call(function, leaves, spec, places, TREES)
        call.owner, call.shapes = owner, {}
        return call.result(_apply(call, *(_array(leaves[i]) for i in places)))

    return called


def _array(leaf: Any) -> Any:
    """Return an array of JAX's. What is traced may stand for one of NumPy's of a type that JAX does not have."""
    return jnp.array(leaf) if isinstance(leaf, jax.core.Tracer) else jnp.asarray(leaf)


def _apply(program: Program, *sources: Any) -> tuple[Any, ...]:
    """Compute a program of ours as a function of JAX's arrays that has a reverse."""
    run: Any = jax.custom_vjp(partial(_outputs, program))
    run.defvjp(partial(_forward, program), partial(_backward, program))
    return run(*sources)  # type: ignore[no-any-return]


def _are_there(arrays: Sequence[Any]) -> bool:
    return not any(isinstance(x, jax.core.Tracer) for x in arrays)


def _outputs(program: Program, *sources: Any) -> tuple[Any, ...]:
    if _are_there(sources):
        return tuple(map(jnp.asarray, _computed(program, sources)))
    shapes = _shapes(program, sources)
    ranks = [x.ndim for x in sources]
    return tuple(jax.pure_callback(partial(_called_back, program, ranks, shapes), tuple(shapes), *sources,
                                   vmap_method="expand_dims"))


def _shapes(program: Any, sources: Sequence[Any]) -> list[Any]:
    if isinstance(program, Reversed):
        return [jax.ShapeDtypeStruct(sources[i].shape, sources[i].dtype) for i in program.wanted]
    return program.shapes_of(sources)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------------------------------- computing it, here

def _called_back(program: Program, ranks: list[int], shapes: list[Any], *arrays: Any) -> tuple[Any, ...]:
    """What JAX calls. Arrays may have more dimensions in front: those that are mapped over, of size 1 where not."""
    given = [np.asarray(x) for x in arrays]
    extra = given[0].ndim - ranks[0] if given else 0
    sizes = np.broadcast_shapes(*(x.shape[:extra] for x in given))
    for k in reversed(range(extra)):  # from the innermost mapping out
        program = Mapped(program, tuple(0 if x.shape[k] == sizes[k] else None for x in given))
    given = [x.reshape(tuple(n for d, n in enumerate(x.shape) if d >= extra or n == sizes[d])) for x in given]
    found = _computed(program, given)
    for y, like in zip(found, shapes):
        if y.shape[extra:] != like.shape:
            raise BadData(f"interop.jax: a result has shape {y.shape[extra:]} and should have {like.shape}",
                          why="under jit, shapes of results must not depend on values",
                          fix="interop.jax(fn, result=lambda *arguments: jax.ShapeDtypeStruct(shape, dtype))")
    return tuple(y.astype(like.dtype, copy=False) for y, like in zip(found, shapes))


def _computed(program: Program, sources: Sequence[Any]) -> list[Any]:
    """Run a program on arrays; return arrays."""
    owner, is_reverse = _origin(program)
    with enable_grad() if is_reverse else no_grad():
        _, found = _run(owner, program, sources, False)
    if any(y.requires_grad for y in found):
        raise _reads_parameters()
    return [export(y) for y in found]


def _origin(program: Any) -> tuple[_Function, bool]:
    """Return the function that a program comes from, and whether it is one of its derivatives."""
    is_reverse = False
    while not isinstance(program, _Call):
        program, is_reverse = program.program, is_reverse or isinstance(program, Reversed)
    return program.owner, is_reverse


def _run(owner: _Function, program: Program, sources: Sequence[Any],
         recorded: bool) -> tuple[list[GradientEdge | None], Sequence[Tensor]]:
    """Run a program; return where it began, if it is recorded, and what came back."""
    given = [_ours(np.asarray(x), owner.writes) for x in sources]
    wanted = [recorded and (x.is_floating_point() or x.is_complex()) for x in given]
    edges = [get_gradient_edge(x.requires_grad_()) if w else None for x, w in zip(given, wanted)]
    try:
        found = program(*given)
    except ValueError as error:
        if owner.writes or "read-only" not in str(error):
            raise
        owner.writes = True  # arrays of JAX's never change: from now on it is given copies
        return _run(owner, program, sources, recorded)
    check_tensors(found, "interop.jax")
    return edges, found


def _ours(array: Any, copied: bool) -> Tensor:
    """Return a tensor over the memory of an array of JAX's, which must not be written, or over a copy."""
    if copied or not array.flags.c_contiguous:
        return from_numpy(array.copy())  # type: ignore[no-any-return]
    plain = array.view(np.uint16) if array.dtype.kind == "V" else array
    found = from_numpy(np.asarray(Writable(plain)).view(array.dtype))
    freeze(found)
    return found  # type: ignore[no-any-return]


def _reads_parameters() -> NotSupported:
    return NotSupported("interop.jax: the function reads tensors of mutagrad's that require a gradient",
                        why="JAX knows of its arguments only",
                        fix="give them as arguments: mutagrad.func.functional_call(module, parameters, x)")


# ---------------------------------------------------------------------------------------------------------- the reverse

class _Held:
    """A graph of ours, in what JAX keeps for the reverse: no array of it."""

    def __init__(self, graph: Recorded | None, inputs: list[int], outputs: list[int]) -> None:
        self.graph, self.inputs, self.outputs = graph, inputs, outputs


jax.tree_util.register_pytree_node(_Held, lambda held: ((), held), lambda held, _: held)
_NOTHING = _Held(None, [], [])


def _forward(program: Program, *sources: Any) -> tuple[Any, Any]:
    """Return the outputs, and what the reverse needs."""
    if not _are_there(sources):
        return _apply(program, *sources), (_NOTHING, sources)
    with enable_grad():
        edges, found = _run(_origin(program)[0], program, sources, True)
        outputs = [get_gradient_edge(y) if y.requires_grad else None for y in found]
    inputs, chosen = _numbers(edges), _numbers(outputs)
    graph = Recorded(program, [e for e in edges if e is not None], [e for e in outputs if e is not None])
    if captured_leaves(graph.outputs, {id(e.node): 0 for e in graph.inputs}):
        raise _reads_parameters()
    return tuple(jnp.asarray(export(y)) for y in found), (_Held(graph, inputs, chosen), sources)


def _numbers(values: Sequence[Any]) -> list[int]:
    return [i for i, value in enumerate(values) if value is not None]


def _backward(program: Program, kept: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return gradients by the sources. JAX's of complex numbers are the conjugates of ours."""
    held, sources = kept
    seeded = [i for i, g in enumerate(grads) if g.dtype != jax.dtypes.float0]
    seeds = {i: _conjugate(grads[i]) for i in seeded}
    if held.graph is not None and _are_there([*sources, *seeds.values()]):
        given = [_ours(np.asarray(seeds[i]), False) for i in held.outputs]
        found = dict(zip(held.inputs, held.graph.reverse(given, False) if given else ()))
        answers = {i: jnp.asarray(export(g)) for i, g in found.items() if g is not None}
    else:
        wanted = tuple(i for i, x in enumerate(sources) if jnp.issubdtype(x.dtype, jnp.inexact))
        reverse = Reversed(program, len(sources), wanted, tuple(seeded))
        answers = dict(zip(wanted, _apply(reverse, *sources, *seeds.values())))
    return tuple(_conjugate(answers[i]) if i in answers else None for i in range(len(sources)))


def _conjugate(array: Any) -> Any:
    return array.conj() if jnp.issubdtype(array.dtype, jnp.complexfloating) else array
