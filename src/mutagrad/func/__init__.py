"""Functions that make functions: derivatives, products with Jacobians, mapping over a dimension.

>>> import mutagrad as mg
>>> from mutagrad.func import grad, vmap
>>> grad(lambda x: x ** 3)(mg.tensor(2.))
tensor(12.)
>>> vmap(grad(lambda x: (x ** 2).sum()))(mg.tensor([[1., 2.], [3., 4.]]))
tensor([[2., 4.],
        [6., 8.]])

Arguments and results may be trees: nested tuples, lists and dicts of tensors. A derivative is detached unless it
depends on something from outside that requires a gradient, so these nest, and mix with `backward()`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.modes import enable_grad
from ..base.errors import BadData, BadValue, ShapeError
from ..base.modes import FORWARD, Transformed, call_with, keeps_modes, mode
from ..base.pytree import tree_flatten, tree_map, tree_unflatten
from ..core.backward import grad as _autograd_grad
from ..core.graph import next_order
from ..nn.stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ..ops.create.create import eye, ones_like, zeros_like
from ..ops.shape.shape import reshape
from ..tensors.tensor import Tensor
from ..utils.checkpoint import outer_writers
from ..utils.fence import recorded_since
from .functional_modules import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    make_functional,
    make_functional_with_buffers,
)
from .mapping import check_chunks, vmap

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers", "functional_call", "functionalize", "grad",
           "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "make_functional",
           "make_functional_with_buffers", "replace_all_batch_norm_modules_", "stack_module_state",
           "vjp", "vmap"]

Argnums = int | tuple[int, ...]


class _Traced:
    """Arguments as tensors of their own, so that only what a function does with them counts."""

    @keeps_modes
    def __init__(self, trees: Any, name: str) -> None:
        self.since, self.name = next_order(), name
        leaves, self.spec = tree_flatten(trees)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise BadData(f"{name}: expects tensors to differentiate by, got {type(x).__name__}",
                              fix="argnums says which arguments those are")
        with enable_grad():
            self.leaves = [x.clone() if x.requires_grad else x.detach().clone().requires_grad_() for x in leaves]

    def call(self, func: Callable[..., Any], place: Callable[[Any], Sequence[Any]], settings: dict[str, Any]) -> Any:
        """Call the function with copies, so that its writes leave alone what is differentiated by."""
        copies = [x.clone() for x in self.leaves]
        arguments = place(tree_unflatten(copies, self.spec))
        others = [x for x in tree_flatten((arguments, settings))[0] if isinstance(x, Tensor)]
        return call_with({"transformed": Transformed(self.name, copies, others)}, func, *arguments, **settings)

    @keeps_modes
    def derivatives(self, outputs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        """Zeros where there is no influence."""
        pairs = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
        found: Sequence[Any] = [None] * len(self.leaves)
        if pairs:
            recorded = self._can_matter(*zip(*pairs))
            with enable_grad():
                found = _autograd_grad([o for o, _ in pairs], self.leaves, [s for _, s in pairs],
                                       retain_graph=True, create_graph=recorded, allow_unused=True)
        return [zeros_like(x) if g is None else g for g, x in zip(found, self.leaves)]

    def _can_matter(self, outputs: Sequence[Any], seeds: Sequence[Any]) -> bool:
        """Whether something that is older than this call, or made by code of the user's, has a part in derivatives.

        Only then can they be differentiated again, and a sweep that is recorded takes twice as long.
        """
        if any(s.requires_grad for s in seeds):
            return True
        nodes, outer = recorded_since(outputs, self.since) if mode.grad else ([], [])
        return bool(outer) or any(node.hooks is not None or not getattr(node.op, "pure", node.op is None)
                                  for node in nodes)

    def seen(self, values: Any, seeds: Sequence[Any] = ()) -> Any:
        """What the caller gets: constants, unless it records and something else has a part in them.

        That is what is older than this call, or a seed.
        """
        from_seeds = any(s.requires_grad for s in seeds)
        return tree_map(lambda x: self._seen(x, from_seeds), values)

    def _seen(self, x: Any, from_seeds: bool) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return x
        return x if mode.grad and (from_seeds or outer_writers([x], self.since)[0]) else x.detach()


def _chosen(arguments: tuple[Any, ...], argnums: Argnums, name: str) -> Any:
    places = argnums if isinstance(argnums, tuple) else (argnums,)
    for place in places:
        if not isinstance(place, int) or not -len(arguments) <= place < len(arguments):
            raise BadValue(f"{name}: argnums={argnums!r}, but there are {len(arguments)} arguments", fix="argnums=0")
    if not places or len({place % len(arguments) for place in places}) < len(places):
        raise BadValue(f"{name}: argnums must be non-empty and its elements unique, not {argnums!r}", fix="argnums=0")
    return tuple(arguments[p] for p in places) if isinstance(argnums, tuple) else arguments[places[0]]


def _with(arguments: tuple[Any, ...], argnums: Argnums, chosen: Any) -> list[Any]:
    found = list(arguments)
    for place, value in zip(argnums, chosen) if isinstance(argnums, tuple) else ((argnums, chosen),):
        found[place] = value
    return found


def _split(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise BadData(f"{name}: with has_aux=True the function must return (output, aux), not {type(result).__name__}")
    return result


def _only_tensors(outputs: Sequence[Any], name: str) -> None:
    for output in outputs:
        if not isinstance(output, Tensor):
            raise BadData(f"{name}: expected the function to only return tensors, got {type(output).__name__}",
                          fix="has_aux=True, for what is no output")
    if not outputs:
        raise BadData(f"{name}: expected the function to return at least one tensor")


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives the gradient of `func`, which returns one number, and that number.

    >>> import mutagrad as mg
    >>> mg.func.grad_and_value(lambda x: (x ** 2).sum())(mg.tensor([1., 2.]))
    (tensor([2., 4.]), tensor(5.))
    """
    @keeps_modes
    def derived(*arguments: Any, **settings: Any) -> Any:
        traced = _Traced(_chosen(arguments, argnums, "grad"), "grad")
        with enable_grad():
            result = traced.call(func, lambda chosen: _with(arguments, argnums, chosen), settings)
            value, aux = _split(result, has_aux, "grad")
        if not isinstance(value, Tensor) or value.ndim:
            found = getattr(value, "shape", type(value).__name__)
            raise ShapeError(f"grad: the function must return one number, a tensor of shape (), not {found}",
                             fix="return loss.sum()")
        found = tree_unflatten(traced.derivatives([value], [ones_like(value)]), traced.spec)
        gradient, value, aux = traced.seen((found, value, aux))
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return derived


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that gives the gradient of `func`, which returns one number.

    >>> import mutagrad as mg
    >>> mg.func.grad(lambda x: (x ** 2).sum())(mg.tensor([1., 2.]))
    tensor([2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    def derived(*arguments: Any, **settings: Any) -> Any:
        gradient, value = both(*arguments, **settings)
        return (gradient, value[1]) if has_aux else gradient

    return derived


@keeps_modes
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the output, and a function that multiplies its argument, like the output, with the Jacobian.

    >>> import mutagrad as mg
    >>> out, pull = mg.func.vjp(lambda x: x ** 2, mg.tensor([1., 2.]))
    >>> pull(mg.ones(2))
    (tensor([2., 4.]),)
    """
    traced = _Traced(primals, "vjp")
    with enable_grad():
        output, aux = _split(traced.call(func, tuple, {}), has_aux, "vjp")
    outputs, shape = tree_flatten(output)
    _only_tensors(outputs, "vjp")

    @keeps_modes
    def product(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        seeds, given = tree_flatten(cotangents)
        if given != shape:
            raise BadData("vjp: what is multiplied must be a tree like the output",
                          fix="vjp_fn(torch.ones_like(output))")
        return traced.seen(tree_unflatten(traced.derivatives(outputs, seeds), traced.spec), seeds)

    seen = traced.seen(output)
    return (seen, product, traced.seen(aux)) if has_aux else (seen, product)


@keeps_modes
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Return the output, and the Jacobian times tangents: the reverse, which is linear, differentiated once more.

    >>> import mutagrad as mg
    >>> mg.func.jvp(lambda x: x ** 2, (mg.tensor([1., 2.]),), (mg.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    directions = _directions(primals, tangents)
    traced = _Traced(primals, "jvp")
    with enable_grad():
        output, aux = _split(traced.call(func, tuple, {}), has_aux, "jvp")
        outputs, shape = tree_flatten(output)
        _only_tensors(outputs, "jvp")
        seeds = [zeros_like(o).requires_grad_() for o in outputs]
        reverse = call_with(FORWARD, traced.derivatives, outputs, seeds)
        pairs = [(r, t) for r, t in zip(reverse, directions) if r.requires_grad]
        found: Sequence[Any] = [None] * len(seeds)
        if pairs:
            found = _autograd_grad([r for r, _ in pairs], seeds, [t for _, t in pairs],
                                   create_graph=True, allow_unused=True)
    tangent = tree_unflatten([zeros_like(o) if t is None else t for t, o in zip(found, outputs)], shape)
    output, tangent, aux = traced.seen((output, tangent, aux))
    return (output, tangent, aux) if has_aux else (output, tangent)


def _directions(primals: Any, tangents: Any) -> list[Any]:
    """The tangents as a list, which must be of the structure, shapes and types of the primals."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise BadValue("jvp: Expected primals and tangents to be tuples, one element for each argument",
                       fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    (points, spec), (found, given) = tree_flatten(primals), tree_flatten(tangents)
    if not points:
        raise BadValue("jvp: Expected primals to contain at least one tensor",
                       fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    kinds, others = ([(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x) for x in leaves]
                     for leaves in (points, found))
    if spec != given or kinds != others:
        raise BadValue("jvp: Expected primals and tangents to have the same structure, shapes and types",
                       why=f"they have {kinds} and {others}",
                       fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    return found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the output, and a function that multiplies the Jacobian at these arguments with tangents.

    >>> import mutagrad as mg
    >>> out, tangents = mg.func.linearize(lambda x: x ** 2, mg.tensor([1., 2.]))
    >>> tangents(mg.ones(2))
    tensor([2., 4.])
    """
    def product(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), product


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function with the same results.

    PyTorch's has no writes inside, which is for compilers; here writes are operations like any other.

    >>> import mutagrad as mg
    >>> mg.func.functionalize(lambda x: x.clone().add_(1))(mg.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise BadValue(f"functionalize: remove must be 'mutations' or 'mutations_and_views', not {remove!r}")
    return func


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """Return a function that gives all derivatives of `func`: for each output a tree like the arguments.

    >>> import mutagrad as mg
    >>> mg.func.jacrev(lambda x: x ** 2)(mg.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    check_chunks("jacrev", chunk_size)
    return _jacobian("jacrev", func, argnums, has_aux, chunk_size)


def _jacobian(name: str, func: Callable[..., Any], argnums: Argnums, has_aux: bool,
              chunk_size: int | None) -> Callable[..., Any]:
    @keeps_modes
    def derived(*arguments: Any, **settings: Any) -> Any:
        traced = _Traced(_chosen(arguments, argnums, name), name)
        with enable_grad():
            result = traced.call(func, lambda chosen: _with(arguments, argnums, chosen), settings)
            output, aux = _split(result, has_aux, name)
            _only_tensors(tree_flatten(output)[0], name)
            table = tree_map(lambda out: tree_unflatten(_rows(traced, out, chunk_size), traced.spec), output)
        table, aux = traced.seen((table, aux))
        return (table, aux) if has_aux else table

    return derived


def _rows(traced: _Traced, out: Any, chunk_size: int | None) -> list[Any]:
    """The Jacobians of one output with respect to every argument, by one sweep for all elements of the output."""
    flat, n = reshape(out, -1), out.numel()
    if not n:
        return [x.new_zeros((*out.shape, *x.shape)) for x in traced.leaves]
    seeds = eye(n, dtype=out.dtype, device=out.device)
    rows = vmap(lambda seed: tuple(traced.derivatives([flat], [seed])), chunk_size=chunk_size)(seeds)
    return [reshape(found, *out.shape, *x.shape) for found, x in zip(rows, traced.leaves)]


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Return the same derivatives as `jacrev`, found as those are.

    >>> import mutagrad as mg
    >>> mg.func.jacfwd(lambda x: x ** 2)(mg.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return _jacobian("jacfwd", func, argnums, has_aux, None)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that gives all second derivatives of `func`.

    >>> import mutagrad as mg
    >>> mg.func.hessian(lambda x: (x ** 3).sum())(mg.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
