"""Functions that make functions: derivatives, products with Jacobians, mapping over a dimension.

>>> import mutagrad as mg
>>> from mutagrad.func import grad, vmap
>>> grad(lambda x: x ** 3)(mg.tensor(2.))
tensor(12.)
>>> vmap(grad(lambda x: (x ** 2).sum()))(mg.tensor([[1., 2.], [3., 4.]]))
tensor([[2., 4.],
        [6., 8.]])

Arguments and results may be trees: nested tuples, lists and dicts of tensors. A derivative is detached unless it depends on
something from outside that requires a gradient, so these nest, and mix with `backward()`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..arrays.batched import OneByOne, Slices
from ..arrays.batched_rules import begin
from ..autograd.modes import enable_grad
from ..base.errors import BadData, BadValue, ShapeError
from ..base.modes import FORWARD, call_with, keeps_modes, mode
from ..base.pytree import tree_flatten, tree_map, tree_unflatten
from ..core.backward import grad as _autograd_grad
from ..core.graph import next_order
from ..nn.stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ..ops.create.create import ones_like, zeros_like
from ..ops.math.elementwise import equal
from ..ops.random.generator import default_generator
from ..ops.shape.shape import movedim, narrow, reshape, select, stack
from ..ops.shape.slices import enter_slices, leave_slices
from ..tensors.tensor import Tensor
from ..utils.checkpoint import outer_writers

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]

Argnums = int | tuple[int, ...]


class _Traced:
    """Arguments as tensors of their own, so that only what a function does with them counts."""

    @keeps_modes
    def __init__(self, trees: Any, name: str) -> None:
        self.since = next_order()
        leaves, self.spec = tree_flatten(trees)
        for x in leaves:
            if not isinstance(x, Tensor):
                raise BadData(f"{name}: expects tensors to differentiate by, got {type(x).__name__}", fix="argnums says which arguments those are")
        with enable_grad():
            self.leaves = [x.clone() if x.requires_grad else x.detach().clone().requires_grad_() for x in leaves]

    def given(self) -> Any:
        """To call the function with: copies, so that its writes leave alone what is differentiated by."""
        return tree_unflatten([x.clone() for x in self.leaves], self.spec)

    @keeps_modes
    def derivatives(self, outputs: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
        """Zeros where there is no influence."""
        pairs = [(o, s) for o, s in zip(outputs, seeds) if o.requires_grad]
        found: Sequence[Any] = [None] * len(self.leaves)
        if pairs:
            with enable_grad():
                found = _autograd_grad([o for o, _ in pairs], self.leaves, [s for _, s in pairs], create_graph=True, allow_unused=True)
        return [zeros_like(x) if g is None else g for g, x in zip(found, self.leaves)]

    def seen(self, values: Any) -> Any:
        """What the caller gets: constants, unless something older than this call has a part in them, and the caller records."""
        return tree_map(self._seen, values)

    def _seen(self, x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.requires_grad:
            return x
        return x if mode.grad and outer_writers([x], self.since)[0] else x.detach()


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
            raise BadData(f"{name}: expected the function to only return tensors, got {type(output).__name__}", fix="has_aux=True, for what is no output")
    if not outputs:
        raise BadData(f"{name}: expected the function to return at least one tensor")


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which returns one number, and that number."""
    @keeps_modes
    def derived(*arguments: Any, **settings: Any) -> Any:
        traced = _Traced(_chosen(arguments, argnums, "grad"), "grad")
        with enable_grad():
            value, aux = _split(func(*_with(arguments, argnums, traced.given()), **settings), has_aux, "grad")
        if not isinstance(value, Tensor) or value.ndim:
            raise ShapeError(f"grad: the function must return one number, a tensor of shape (), not {getattr(value, 'shape', type(value).__name__)}",
                             fix="return loss.sum()")
        found = tree_unflatten(traced.derivatives([value], [ones_like(value)]), traced.spec)
        gradient, value, aux = traced.seen((found, value, aux))
        return (gradient, (value, aux)) if has_aux else (gradient, value)

    return derived


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, which returns one number."""
    both = grad_and_value(func, argnums, has_aux)

    def derived(*arguments: Any, **settings: Any) -> Any:
        gradient, value = both(*arguments, **settings)
        return (gradient, value[1]) if has_aux else gradient

    return derived


@keeps_modes
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output, and a function that multiplies its argument, of the output's shape, with the Jacobian from the left."""
    traced = _Traced(primals, "vjp")
    with enable_grad():
        output, aux = _split(func(*traced.given()), has_aux, "vjp")
    outputs, shape = tree_flatten(output)
    _only_tensors(outputs, "vjp")

    @keeps_modes
    def product(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        seeds, given = tree_flatten(cotangents)
        if given != shape:
            raise BadData("vjp: what is multiplied must be a tree like the output", fix="vjp_fn(torch.ones_like(output))")
        return traced.seen(tree_unflatten(traced.derivatives(outputs, seeds), traced.spec))

    seen = traced.seen(output)
    return (seen, product, traced.seen(aux)) if has_aux else (seen, product)


@keeps_modes
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output, and the Jacobian times tangents, by differentiating the reverse once more: it is linear in what it starts from."""
    directions = _directions(primals, tangents)
    traced = _Traced(primals, "jvp")
    with enable_grad():
        output, aux = _split(func(*traced.given()), has_aux, "jvp")
        outputs, shape = tree_flatten(output)
        _only_tensors(outputs, "jvp")
        seeds = [zeros_like(o).requires_grad_() for o in outputs]
        reverse = call_with(FORWARD, traced.derivatives, outputs, seeds)
        pairs = [(r, t) for r, t in zip(reverse, directions) if r.requires_grad]
        found: Sequence[Any] = [None] * len(seeds)
        if pairs:
            found = _autograd_grad([r for r, _ in pairs], seeds, [t for _, t in pairs], create_graph=True, allow_unused=True)
    tangent = tree_unflatten([zeros_like(o) if t is None else t for t, o in zip(found, outputs)], shape)
    output, tangent, aux = traced.seen((output, tangent, aux))
    return (output, tangent, aux) if has_aux else (output, tangent)


def _directions(primals: Any, tangents: Any) -> list[Any]:
    """The tangents as a list, which must be of the structure, shapes and types of the primals."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise BadValue("jvp: Expected primals and tangents to be tuples, one element for each argument", fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    (points, spec), (found, given) = tree_flatten(primals), tree_flatten(tangents)
    if not points:
        raise BadValue("jvp: Expected primals to contain at least one tensor", fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    kinds, others = ([(tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x) for x in leaves] for leaves in (points, found))
    if spec != given or kinds != others:
        raise BadValue("jvp: Expected primals and tangents to have the same structure, shapes and types", why=f"they have {kinds} and {others}",
                       fix="jvp(f, (x,), (mutagrad.ones_like(x),))")
    return found


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output, and a function that multiplies the Jacobian at these arguments with tangents."""
    def product(*tangents: Any) -> Any:
        return jvp(func, primals, tangents)[1]

    return func(*primals), product


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the same results. (PyTorch's has no writes inside, which is for compilers; here writes are operations like any other.)"""
    if remove not in ("mutations", "mutations_and_views"):
        raise BadValue(f"functionalize: remove must be 'mutations' or 'mutations_and_views', not {remove!r}")
    return func


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """A function that gives all derivatives of all outputs of `func`: for each output a tree like the arguments."""
    _check_chunks("jacrev", chunk_size)

    @keeps_modes
    def derived(*arguments: Any, **settings: Any) -> Any:
        traced = _Traced(_chosen(arguments, argnums, "jacrev"), "jacrev")
        with enable_grad():
            output, aux = _split(func(*_with(arguments, argnums, traced.given()), **settings), has_aux, "jacrev")
            _only_tensors(tree_flatten(output)[0], "jacrev")
            table = tree_map(lambda out: tree_unflatten(_rows(traced, out), traced.spec), output)
        table, aux = traced.seen((table, aux))
        return (table, aux) if has_aux else table

    return derived


def _check_chunks(name: str, chunk_size: int | None) -> None:
    """How many at a time is for compiled kernels; here it is always one, whatever number is asked for."""
    if chunk_size is not None and chunk_size <= 0:
        raise BadValue(f"{name}: chunk_size should be greater than 0, got {chunk_size}", fix="leave chunk_size out")


def _rows(traced: _Traced, out: Any) -> list[Any]:
    """The Jacobians of one output with respect to every argument."""
    flat = reshape(out, -1)
    rows = [traced.derivatives([flat[i]], [ones_like(flat[i])]) for i in range(flat.numel())]
    return [reshape(stack([r[k] for r in rows]), *out.shape, *x.shape) if rows else x.new_zeros((*out.shape, *x.shape))
            for k, x in enumerate(traced.leaves)]


def jacfwd(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable[..., Any]:
    """The same derivatives as `jacrev`, and found as those are: by one reverse for each element of the output."""
    return jacrev(func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that gives all second derivatives of `func`."""
    return jacrev(jacrev(func, argnums), argnums)


# ---------------------------------------------------------------------------------------------------------------- mapping

def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Callable[..., Any]:
    """A function that calls `func` with every slice of its arguments, and stacks the results.

    `in_dims` says along which dimension each argument is sliced, None that it is not; `out_dims` where the results are stacked.
    """
    if randomness not in ("error", "different", "same"):
        raise BadValue(f"vmap: randomness must be 'error', 'different' or 'same', not {randomness!r}")
    _check_chunks("vmap", chunk_size)

    def mapped(*arguments: Any, **settings: Any) -> Any:
        leaves, spec = tree_flatten(arguments)
        dims = _spread(in_dims, arguments)
        size = _size(leaves, dims)
        if not size:  # zeros in the place of a slice say what the results would be like
            leaves = [x if d is None else zeros_like(x.sum(d, keepdim=True)) for x, d in zip(leaves, dims)]
        if size and (found := _at_once(func, leaves, dims, spec, settings, size, out_dims, randomness)) is not None:
            return found[0]
        results = [func(*tree_unflatten([x if d is None else select(x, d, i) for x, d in zip(leaves, dims)], spec), **settings)
                   for i in _drawing(size or 1, randomness)]
        return _stacked(results, out_dims, size)

    return mapped


def _at_once(func: Callable[..., Any], leaves: list[Any], dims: list[Any], spec: Any, settings: dict[str, Any], size: int, out_dims: Any,
             randomness: str) -> tuple[Any] | None:
    """The results of one call for all slices together; None where something in it has to be done for each."""
    level = begin(size, next_order(), randomness == "different")
    drawn = default_generator.get_state()
    try:
        found = call_with({"kind": level}, _inside, func, leaves, dims, spec, settings, level, out_dims)
    except OneByOne:
        if not level.refusals:
            raise
    finally:
        level.open = False
    if level.refusals:
        default_generator.set_state(drawn)
        return None
    if randomness == "error" and not (default_generator.get_state() == drawn).all():
        raise _draws()
    return (found,)


def _inside(func: Callable[..., Any], leaves: list[Any], dims: list[Any], spec: Any, settings: dict[str, Any], level: Slices, out_dims: Any) -> Any:
    entered = [x if d is None else enter_slices(x, d, level) for x, d in zip(leaves, dims)]
    for x, d in zip(entered, dims):
        if d is not None:
            x._array.frozen = True
    result = func(*tree_unflatten(entered, spec), **settings)
    outputs, shape = tree_flatten(result)
    wanted = _out_dims(out_dims, result, outputs)
    return tree_unflatten([_left(x, d, level) for x, d in zip(outputs, wanted)], shape)


def _left(x: Any, dim: int | None, level: Slices) -> Any:
    """One result of the function as that of vmap."""
    if dim is not None:
        return leave_slices(x, dim if dim >= 0 else dim + x.ndim + 1, level)
    if not isinstance(x, Tensor) or getattr(x._array, "level", None) is not level:
        return x
    if x._array.values()[1]:
        raise _differs()
    return select(leave_slices(x, 0, level), 0, 0)


def _differs() -> BadValue:
    return BadValue("vmap: out_dims cannot be None for this result, because every slice has its own", fix="out_dims=0")


def _draws() -> BadValue:
    return BadValue("vmap: the function draws random numbers", why="each slice could draw its own or all the same",
                    fix="vmap(func, randomness='different')")


def _spread(dims: Any, tree: Any) -> list[Any]:
    """A dimension for each leaf of a tree, from a tree of dimensions that may end higher up."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(tree)[0])
    if not isinstance(dims, (tuple, list, dict)):
        raise BadValue(f"vmap: a dimension must be a number or None, not {dims!r}", fix="in_dims=0")
    if isinstance(tree, dict) and isinstance(dims, dict):
        return [d for k in tree for d in _spread(dims[k], tree[k])]
    if not isinstance(tree, (tuple, list)) or len(dims) != len(tree):
        raise BadValue(f"vmap: dimensions {dims!r} are not compatible with {type(tree).__name__} of {len(tree) if hasattr(tree, '__len__') else 1}")
    return [d for part, inner in zip(dims, tree) for d in _spread(part, inner)]


def _size(leaves: list[Any], dims: list[Any]) -> int:
    for x, d in zip(leaves, dims):
        if d is not None and (not isinstance(x, Tensor) or not -x.ndim <= d < x.ndim):
            raise BadValue(f"vmap: cannot slice {type(x).__name__} of shape {tuple(getattr(x, 'shape', ()))} along dimension {d}", fix="in_dims=None for it")
    sizes = {x.shape[d] for x, d in zip(leaves, dims) if d is not None}
    if not sizes:
        raise BadValue("vmap: no argument is sliced", fix="in_dims=0 for at least one argument")
    if len(sizes) > 1:
        raise BadValue(f"vmap: the sliced dimensions have sizes {sorted(sizes)}", why="they are sliced together", fix="make them equal")
    return int(sizes.pop())


def _drawing(size: int, randomness: str) -> Iterator[int]:
    """The numbers of the slices; between them, random numbers are held to what was asked for."""
    state = None if randomness == "different" else default_generator.get_state()
    for i in range(size):
        if randomness == "same":
            default_generator.set_state(state)
        yield i
        if randomness == "error" and not (default_generator.get_state() == state).all():
            raise _draws()


def _out_dims(out_dims: Any, result: Any, outputs: list[Any]) -> list[Any]:
    """A dimension for each output of the function."""
    alone = isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(result, Tensor)
    dims = _spread(out_dims[0] if alone else out_dims, result)
    for x, d in zip(outputs, dims):
        if d is not None and not isinstance(x, Tensor):
            raise BadData(f"vmap: the function must only return tensors, not {type(x).__name__}", fix="out_dims=None for it")
    return dims


def _stacked(results: list[Any], out_dims: Any, size: int) -> Any:
    trees = [tree_flatten(r) for r in results]
    spec = trees[0][1]
    dims = _out_dims(out_dims, results[0], trees[0][0])
    found = [[leaves[k] for leaves, _ in trees] for k in range(len(dims))]
    columns = [_same(values) if d is None else narrow(stack(values), 0, 0, size) for values, d in zip(found, dims)]
    return tree_unflatten([column if d in (0, None) else movedim(column, 0, d) for column, d in zip(columns, dims)], spec)


def _same(values: list[Any]) -> Any:
    """The one result of all slices."""
    first = values[0]
    if any(value is not first and not (equal(value, first) if isinstance(first, Tensor) else value == first) for value in values):
        raise _differs()
    return first
