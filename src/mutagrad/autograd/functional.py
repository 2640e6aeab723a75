"""Derivatives of a function as values: products with its Jacobian from either side, the Jacobian, the Hessian.

>>> import mutagrad as mg
>>> from mutagrad.autograd.functional import jacobian
>>> jacobian(lambda x: x ** 2, mg.tensor([1., 2.]))
tensor([[2., 0.],
        [0., 4.]])
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

from ..base.errors import BadArgument, BadValue, GradientError, Mismatch, NotSupported, ShapeError
from ..base.modes import FORWARD, Transformed, call_with, keeps_modes
from ..core.backward import grad
from ..core.storage import TensorBase
from ..ops.create.create import eye, ones_like, zeros_like
from ..ops.shape.shape import reshape, split, stack
from .modes import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

OneOrMore = Union[TensorBase, tuple[TensorBase, ...]]  # as a function takes them, or returns them


def _tuple(values: OneOrMore, what: str, name: str) -> tuple[TensorBase, ...]:
    found = values if isinstance(values, tuple) else (values,)
    for v in found:
        if not isinstance(v, TensorBase):
            raise BadArgument(f"{name}: {what} given to {name} must be either a Tensor or a tuple of Tensors, "
                              f"not {type(v).__name__}")
    return found


@keeps_modes
def _fresh(inputs: tuple[TensorBase, ...], create_graph: bool) -> tuple[TensorBase, ...]:
    """The inputs as tensors of their own, so that only what `func` does with them counts."""
    with enable_grad():
        return tuple(x.clone() if create_graph and x.requires_grad else x.detach().requires_grad_() for x in inputs)


@keeps_modes
def _call(func: Callable[..., OneOrMore], inputs: OneOrMore, create_graph: bool,
          name: str) -> tuple[tuple[TensorBase, ...], tuple[TensorBase, ...], bool]:
    xs = _fresh(_tuple(inputs, "The inputs", name), create_graph)
    with enable_grad():
        given = [x.clone() for x in xs]  # `func` may write to what it is given
        result = call_with({"transformed": Transformed("functional", given)}, func, *given)
    return xs, _tuple(result, "The outputs of the user-provided function", name), isinstance(result, tuple)


def _direction(v: OneOrMore | None, like: tuple[TensorBase, ...], what: str, name: str) -> tuple[TensorBase, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise ShapeError(f"{name}: The vector v can only be None if {what} has one element",
                             fix=f"{name}(func, inputs, v)")
        return (ones_like(like[0]),)
    found = _tuple(v, "The v", name)
    given, wanted = [tuple(t.shape) for t in found], [tuple(t.shape) for t in like]
    if given != wanted:
        raise ShapeError(f"{name}: v has invalid size: {given}, and {what} {wanted}",
                         why="v must have the shape of what it is multiplied with")
    return found


def _gradients(outputs: Sequence[TensorBase], inputs: Sequence[TensorBase], weights: Sequence[TensorBase],
               create_graph: bool, strict: bool, name: str) -> tuple[TensorBase, ...]:
    """Return zeros where there is no influence, or raise where `strict`."""
    for k, o in enumerate(outputs):
        if strict and not o.requires_grad:
            raise GradientError(f"{name}: Output {k} of the user-provided function does not require gradients",
                                why="strict=True asks for all to", fix="strict=False gives zeros")
    pairs = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    found: Sequence[Any] = [None] * len(inputs)
    if pairs:
        found = grad([o for o, _ in pairs], list(inputs), [w for _, w in pairs],
                     create_graph=create_graph, retain_graph=True, allow_unused=True)
    for i, g in enumerate(found):
        if strict and (g is None or create_graph and not g.requires_grad):
            raise GradientError(f"{name}: The {'output' if g is None else 'Jacobian'} of the user-provided function "
                                f"is independent of input {i}",
                                why="strict=True asks that it depends on all", fix="strict=False gives zeros")
    return tuple(zeros_like(x) if g is None else g for g, x in zip(found, inputs))


def _plain(values: tuple[TensorBase, ...], create_graph: bool, several: bool) -> OneOrMore:
    values = values if create_graph else tuple(v.detach() for v in values)
    return values if several else values[0]


@keeps_modes
def vjp(func: Callable[..., OneOrMore], inputs: OneOrMore, v: OneOrMore | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[OneOrMore, OneOrMore]:
    """Return the outputs, and v (of their shape) times the Jacobian.

    >>> import mutagrad as mg
    >>> mg.autograd.functional.vjp(lambda x: x ** 2, mg.tensor([1., 2.]), mg.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    xs, outputs, several = _call(func, inputs, create_graph, "vjp")
    found = _gradients(outputs, xs, _direction(v, outputs, "the output", "vjp"), create_graph, strict, "vjp")
    return _plain(outputs, create_graph, several), _plain(found, create_graph, isinstance(inputs, tuple))


@keeps_modes
def jvp(func: Callable[..., OneOrMore], inputs: OneOrMore, v: OneOrMore | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[OneOrMore, OneOrMore]:
    """Return the outputs, and the Jacobian times v (of the inputs' shape), by differentiating the reverse twice.

    The reverse is linear in what it starts from, and its derivative with respect to that is the Jacobian itself.

    >>> import mutagrad as mg
    >>> mg.autograd.functional.jvp(lambda x: x ** 2, mg.tensor([1., 2.]), mg.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    xs, outputs, several = _call(func, inputs, create_graph, "jvp")
    direction = _direction(v, xs, "the input", "jvp")
    seeds = tuple(ones_like(o).requires_grad_() for o in outputs)
    reverse = call_with(FORWARD, _gradients, outputs, xs, seeds, True, strict, "jvp")
    found = _gradients(reverse, seeds, direction, create_graph, strict, "jvp")
    return _plain(outputs, create_graph, several), _plain(found, create_graph, several)


@keeps_modes
def jacobian(func: Callable[..., OneOrMore], inputs: OneOrMore, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Return all derivatives of all outputs: of shape output + input, for each pair of them.

    They are found one row at a time, `vectorize` or not.

    >>> import mutagrad as mg
    >>> mg.autograd.functional.jacobian(lambda x: x ** 2, mg.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy("jacobian", strategy, strict, vectorize, create_graph)
    xs, outputs, several = _call(func, inputs, create_graph, "jacobian")
    table = []
    for out in outputs:
        flat = reshape(out, -1)
        rows = [_gradients((flat[i],), xs, (ones_like(flat[i]),), create_graph, strict, "jacobian")
                for i in range(flat.numel())]
        blocks = tuple(reshape(stack([r[k] for r in rows]), *out.shape, *x.shape) if rows
                       else zeros_like(x).new_zeros((*out.shape, *x.shape)) for k, x in enumerate(xs))
        table.append(_plain(blocks, create_graph, isinstance(inputs, tuple)))
    return tuple(table) if several else table[0]


def _check_strategy(name: str, strategy: str, strict: bool, vectorize: bool, create_graph: bool) -> None:
    """Raise as PyTorch does: its forward mode has restrictions that programs may count on."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise Mismatch(f"{name}: the strategy must be 'forward-mode' or 'reverse-mode', not {strategy!r}",
                       fix="leave it out")
    if strategy == "forward-mode" and (create_graph or not vectorize):
        raise NotSupported(f"{name}: strategy='forward-mode' needs vectorize=True, and cannot be differentiated",
                           fix="strategy='reverse-mode'")
    if vectorize and strict:
        raise BadValue(f"{name}: strict=True and vectorize=True are not supported together", fix="vectorize=False")


@keeps_modes
def hessian(func: Callable[..., OneOrMore], inputs: OneOrMore, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Return all second derivatives of a function with one number as its result.

    >>> import mutagrad as mg
    >>> mg.autograd.functional.hessian(lambda x: (x ** 3).sum(), mg.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy("hessian", outer_jacobian_strategy, strict, vectorize, create_graph)
    _tuple(inputs, "The inputs", "hessian")

    def gradient(*xs: TensorBase) -> OneOrMore:
        given = [x.clone() for x in xs]
        result = call_with({"transformed": Transformed("functional", given)}, func, *given)
        outputs = _tuple(result, "The outputs of the user-provided function", "hessian")
        one = ones_like(xs[0]).new_ones(())
        found = _gradients((_number(outputs, "hessian"),), xs, (one,), True, strict, "hessian")
        return found if isinstance(inputs, tuple) else found[0]

    return jacobian(gradient, inputs, create_graph, strict)


def _number(outputs: tuple[TensorBase, ...], name: str) -> Any:
    if len(outputs) != 1:
        raise ShapeError(f"{name}: The function given to {name} should return a single Tensor, not {len(outputs)}",
                         fix="return loss.sum()")
    if outputs[0]._array.size != 1:
        raise ShapeError(f"{name}: The Tensor returned by the function given to {name} should contain a single "
                         f"element, not {outputs[0]._array.size}", fix="return loss.sum()")
    return reshape(outputs[0], ())


def _gradient_product(func: Callable[..., OneOrMore], inputs: OneOrMore, v: OneOrMore | None, create_graph: bool,
                      strict: bool, name: str) -> tuple[OneOrMore, OneOrMore]:
    xs, outputs, _ = _call(func, inputs, create_graph, name)
    out = _number(outputs, name)
    first = _gradients((out,), xs, (ones_like(out),), True, strict, name)
    found = _gradients(first, xs, _direction(v, xs, "the input", name), create_graph, strict, name)
    return _plain((out,), create_graph, False), _plain(found, create_graph, isinstance(inputs, tuple))


@keeps_modes
def vhp(func: Callable[..., OneOrMore], inputs: OneOrMore, v: OneOrMore | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[OneOrMore, OneOrMore]:
    """Return the result, and v times the Hessian.

    >>> import mutagrad as mg
    >>> out, product = mg.autograd.functional.vhp(lambda x: (x ** 3).sum(), mg.tensor([1., 2.]), mg.ones(2))
    >>> product
    tensor([ 6., 12.])
    """
    return _gradient_product(func, inputs, v, create_graph, strict, "vhp")


@keeps_modes
def hvp(func: Callable[..., OneOrMore], inputs: OneOrMore, v: OneOrMore | None = None, create_graph: bool = False,
        strict: bool = False) -> tuple[OneOrMore, OneOrMore]:
    """Return the result, and the Hessian times v: the same, because a Hessian is symmetric.

    >>> import mutagrad as mg
    >>> out, product = mg.autograd.functional.hvp(lambda x: (x ** 3).sum(), mg.tensor([1., 2.]), mg.ones(2))
    >>> product
    tensor([ 6., 12.])
    """
    return _gradient_product(func, inputs, v, create_graph, strict, "hvp")


def _construct_standard_basis_for(tensors: Sequence[TensorBase],
                                  tensor_numels: Sequence[int]) -> tuple[TensorBase, ...]:
    """Return for each tensor a matrix of columns, its part of the unit vectors of all elements together."""
    if len(tensors) != len(tensor_numels) or not tensors:
        raise BadValue("_construct_standard_basis_for: expects as many sizes as tensors, and at least one")
    unit = eye(sum(tensor_numels))
    columns = split(unit, list(tensor_numels), 1)
    return tuple(part.to(t.dtype, copy=True) for t, part in zip(tensors, columns))


# What follows is not called here. Libraries import it from PyTorch to write Jacobians of their own.


def _as_tuple(inp: OneOrMore, arg_name: str | None = None, fn_name: str | None = None) -> tuple[bool, Any]:
    """Return whether it is a tuple, and it as one. Without a name of an argument, nothing is checked."""
    if arg_name is not None:
        _tuple(inp, f"The {arg_name}", fn_name or "autograd.functional")
    return isinstance(inp, tuple), inp if isinstance(inp, tuple) else (inp,)


def _grad_postprocess(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Return tensors, or tuples of them, without their history unless it is wanted."""
    if create_graph:
        return inputs
    return tuple(x.detach() if isinstance(x, TensorBase) else _grad_postprocess(x, False) for x in inputs)


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Return it as the caller gave it: a flag says for each level whether a tuple was meant there."""
    outer, inner = to_unpack if isinstance(to_unpack, tuple) else (to_unpack, True)
    if not inner:
        res = tuple(row[0] for row in res)
    return res if outer else res[0]
