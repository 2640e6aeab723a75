"""What NumPy's functions mean for arrays whose memory is XLA's: JAX's function of the same name, or a row of a table.

A function that JAX does not have is computed by NumPy on a copy, where the elements are known; inside a trace, an
elementwise one is called back while the program runs, and any other is refused.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy
from jax import lax

from ...base.modes import PRECISION, call_with
from ..numpy import fp_error, silently
from ..twins import ABOUT, LIKE, VIEWS
from .memory import (
    FOLDED as FOLDED,
    HOST,
    RULES,
    Place,
    XArray,
    cast,
    constant,
    known_of,
    new,
    not_traced,
    tracing,
    unwrap,
    wrap,
)
from .refusals import refusing
from .zeros import SIGNED

Rule = Callable[..., Any]
ndarray = numpy.ndarray


def words(text: str) -> list[str]:
    return text.split()


def _arrays(tree: Any) -> Iterator[XArray]:
    if type(tree) is XArray:
        yield tree
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _arrays(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from _arrays(part)


def place_among(tree: Any) -> Place:
    """Return where a result of these belongs: on the device, if one of them is there."""
    found: Place = HOST
    for array in _arrays(tree):
        found = array.level
        if found is not HOST:
            break
    return found


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        return type(tree)([_map(function, part) for part in tree])
    if isinstance(tree, dict):
        return {k: _map(function, part) for k, part in tree.items()}
    return function(tree)


def _folded(function: Rule, tree: Any, settings: dict[str, Any]) -> Any:
    """What a function gives where all that it is given is the same in every run, else None."""
    size = 0
    for array in _arrays((tree, settings)):
        if array.known is None:
            return None
        size += array.size
    if size > FOLDED:
        return None
    place = place_among((tree, settings))
    found = call_with({"kind": None}, silently, function, *_map(known_of, tree), **_map(known_of, settings))
    return _adopted(found, place)


def _adopted(found: Any, place: Place) -> Any:
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*(_adopted(f, place) for f in found))
    if isinstance(found, (tuple, list)):
        return type(found)(_adopted(f, place) for f in found)
    made: Any = numpy.asarray(found) if isinstance(found, numpy.generic) else found
    return new(made, place) if isinstance(found, (ndarray, numpy.generic)) else found


def _on_host(function: Rule, arguments: Any, settings: dict[str, Any]) -> Any:
    """A function that JAX does not have, of copies in NumPy's memory."""
    place, name = place_among((arguments, settings)), getattr(function, "__name__", "a function")

    def host(value: Any) -> Any:
        return value.only(f"{name} has no counterpart in JAX") if type(value) is XArray else value

    return _adopted(silently(function, *_map(host, arguments), **_map(host, settings)), place)


# -------------------------------------------------------------------------------------------------------------- ufuncs

BY_UFUNC: dict[Any, Rule] = {
    f: getattr(jnp, f.__name__, None) or getattr(jnp, name) for name, f in vars(numpy).items()
    if isinstance(f, numpy.ufunc) and (hasattr(jnp, f.__name__) or hasattr(jnp, name))}
BY_UFUNC.update(SIGNED)
# The same without JAX's wrapping, for floats: tracing them takes a third of the time.
FLOATS: dict[Any, Rule] = {
    numpy.add: lax.add, numpy.subtract: lax.sub, numpy.multiply: lax.mul, numpy.true_divide: lax.div,
    numpy.negative: lax.neg, numpy.exp: lax.exp, numpy.log: lax.log, numpy.tanh: lax.tanh, numpy.sqrt: lax.sqrt,
    numpy.sin: lax.sin, numpy.cos: lax.cos, numpy.absolute: lax.abs, numpy.maximum: lax.max, numpy.minimum: lax.min,
    numpy.greater: lax.gt, numpy.less: lax.lt, numpy.greater_equal: lax.ge, numpy.less_equal: lax.le,
    numpy.equal: lax.eq, numpy.not_equal: lax.ne, numpy.log1p: lax.log1p, numpy.expm1: lax.expm1,
    numpy.floor: lax.floor, numpy.ceil: lax.ceil, numpy.square: lambda x: lax.mul(x, x)}
BY_NAME: dict[str, Rule] = {name: getattr(special, name) for name in words(
    """erf erfc erfinv gammaln digamma expit logit ndtr ndtri i0 i1 i0e i1e gammainc gammaincc xlogy xlog1py entr
    log_ndtr zeta betaln betainc""") if hasattr(special, name)}
BY_NAME["psi"] = special.digamma
# Those that can divide by zero or be undefined: NumPy would have said so, and XLA does not (see core/sweep.py).
SINGULAR = {numpy.true_divide, numpy.log, numpy.log2, numpy.log10, numpy.log1p, numpy.sqrt, numpy.power,
            numpy.reciprocal, numpy.multiply, numpy.float_power, numpy.arctanh, numpy.arccos, numpy.arcsin,
            numpy.arccosh, numpy.cbrt, numpy.remainder, numpy.fmod, numpy.tan, numpy.matmul, numpy.logaddexp,
            numpy.hypot}


def _running(function: Rule) -> Rule:
    return lambda a, axis: function(a.astype(numpy.uint8) if a.dtype.kind == "b" else a, axis % a.ndim)


REDUCTIONS: dict[Any, Rule] = {
    numpy.add: jnp.sum, numpy.multiply: jnp.prod, numpy.maximum: jnp.max, numpy.minimum: jnp.min,
    numpy.logical_and: jnp.all, numpy.logical_or: jnp.any, numpy.fmax: jnp.nanmax, numpy.fmin: jnp.nanmin,
    numpy.bitwise_and: jnp.bitwise_and.reduce, numpy.bitwise_or: jnp.bitwise_or.reduce,
    numpy.bitwise_xor: jnp.bitwise_xor.reduce, numpy.logaddexp: lambda a, axis, keepdims: jax.nn.logsumexp(
        a, axis, keepdims=keepdims)}
ACCUMULATIONS: dict[Any, Rule] = {
    numpy.add: jnp.cumsum, numpy.multiply: jnp.cumprod, numpy.maximum: _running(lax.cummax),
    numpy.minimum: _running(lax.cummin), numpy.logaddexp: _running(lax.cumlogsumexp),
    numpy.logical_and: _running(lax.cummin), numpy.logical_or: _running(lax.cummax)}


def _ufunc(ufunc: Any, method: str, inputs: Any, settings: dict[str, Any]) -> Any:
    out = settings.pop("out", None) or (None,)
    if method == "at":
        return _at(ufunc, *inputs)
    found = None
    if tracing() is not None:
        found = _folded(getattr(ufunc, method), inputs, settings)
    if found is None:
        where = settings.pop("where", True)
        if ufunc in SINGULAR and not (ufunc is numpy.multiply and any(map(_is_finite, inputs))):
            fp_error.flag()
        found = wrap(METHODS[method](ufunc, inputs, settings), place_among((inputs, out)))
        if where is not True and out[0] is not None:
            found = numpy.where(where, found, out[0])
    if all(o is None for o in out):
        return found
    for target, value in zip(out, found if ufunc.nout > 1 else (found,)):
        write(target, value)
    return out[0] if len(out) == 1 else out


def _is_finite(value: Any) -> bool:
    """Whether a factor is a number that makes no zero undefined."""
    known = known_of(value) if type(value) is XArray else value
    return known is not None and numpy.ndim(known) == 0 and bool(numpy.isfinite(numpy.float64(abs(known))))


def write(target: Any, value: Any) -> None:
    """Write into an array that may be NumPy's."""
    if type(target) is XArray:
        target.assign(value)
    else:
        target[...] = value.only("NumPy's memory is written") if type(value) is XArray else value


def _types(ufunc: Any, inputs: Any) -> Any:
    given = []
    for x in inputs:
        kind = type(x)
        given.append(kind if kind in (int, float, complex) else numpy.dtype(bool) if kind is bool
                     else x.dtype if hasattr(x, "dtype") else numpy.asarray(x).dtype)
    return _resolved(ufunc, tuple(given))


@lru_cache(4096)
def _resolved(ufunc: Any, given: Any) -> Any:
    return ufunc.resolve_dtypes((*given, *[None] * ufunc.nout))


def _as(value: Any, dtype: Any) -> Any:
    """An operand as JAX's, in an element type."""
    if type(value) is XArray:
        value = value.values()
    elif not isinstance(value, jax.Array):
        value = numpy.asarray(value)
        return value.astype(dtype)[()] if value.ndim == 0 else constant(value.astype(dtype, copy=False))
    return value if value.dtype == dtype else cast(value, dtype)


def _called(ufunc: Any, inputs: Any, settings: dict[str, Any]) -> Any:
    if ufunc.signature is not None:
        return _matmul(ufunc, *inputs)
    types = _types(ufunc, inputs)
    given = [_as(x, t) for x, t in zip(inputs, types)]
    simple = FLOATS.get(ufunc) if tracing() is not None and types[0].kind in "fV" else None
    if simple is not None:
        shape = given[0].shape if len(given) == 1 or given[0].shape == given[1].shape else numpy.broadcast_shapes(
            *(g.shape for g in given))
        found = simple(*[_spread(g, shape) for g in given])
    else:
        function = BY_UFUNC.get(ufunc) or BY_NAME.get(ufunc.__name__)
        if function is None:
            return _called_back(ufunc, given, types)
        found = function(*given)
    if ufunc.nout == 1:
        dtype = numpy.dtype(settings.get("dtype") or types[-1])
        return found if found.dtype == dtype else found.astype(dtype)
    return tuple(f.astype(t) for f, t in zip(found, types[ufunc.nin:]))


def _spread(value: Any, shape: tuple[int, ...]) -> Any:
    if value.shape == shape or isinstance(value, numpy.generic):
        return value
    return lax.broadcast_in_dim(value, shape, range(len(shape) - value.ndim, len(shape))) if set(
        value.shape) != {1} and 1 not in value.shape else jnp.broadcast_to(value, shape)


def _called_back(ufunc: Any, given: list[Any], types: Any) -> Any:
    """A ufunc that JAX does not have, computed by NumPy while the program runs."""
    shape = numpy.broadcast_shapes(*(numpy.shape(g) for g in given))
    struct: Any = jax.ShapeDtypeStruct
    results = tuple(struct(shape, t) for t in types[ufunc.nin:])

    def compute(*arrays: Any) -> Any:
        found = silently(ufunc, *(numpy.asarray(a) for a in arrays))
        found = found if ufunc.nout > 1 else (found,)
        return tuple(numpy.asarray(f, t).reshape(shape) for f, t in zip(found, types[ufunc.nin:]))

    found = jax.pure_callback(compute, results, *given, vmap_method="broadcast_all")
    return found if ufunc.nout > 1 else found[0]


def _matmul(ufunc: Any, a: Any, b: Any) -> Any:
    types = _resolved(ufunc, (a.dtype, b.dtype))
    inner = b.shape[-2:][0] if ufunc.__name__ in ("matmul", "vecmat") else b.shape[-1]
    if a.shape[-1] != inner:
        raise ValueError(f"{ufunc.__name__}: shapes {a.shape} and {b.shape} do not fit")
    function: Any = getattr(jnp, ufunc.__name__)
    if ufunc is numpy.matmul and (short := all_short(a, b)):
        return jnp.matmul(*short, preferred_element_type=numpy.float32)
    a, b = _as(a, types[0]), _as(b, types[1])
    results = a.size // max(inner, 1) * (b.size // max(inner, 1))
    if ufunc is numpy.matmul and a.ndim <= 2 and b.ndim <= 2 and _is_long(a, inner, results):
        return _in_parts(a.reshape(-1, inner), b.reshape(inner, -1)).reshape(*a.shape[:-1], *b.shape[1:])
    more = {} if ufunc is not numpy.matmul else {"precision": precision()}
    return function(a, b, **more).astype(types[-1])


_LONG, _FEW = 1 << 12, 1 << 8  # products that are added for each of the results, and results


def _is_long(a: Any, inner: int, results: int) -> bool:
    return inner >= _LONG and results <= _FEW and a.dtype.kind in "fc"


def _in_parts(a: Any, b: Any) -> Any:
    """Return the product of matrices by sums of sums: XLA adds all products of an element one after the other."""
    inner = a.shape[1]
    size = 1 << (inner.bit_length() // 2)
    whole = inner - inner % size
    parts = jnp.einsum("mqc,qcn->qmn", a[:, :whole].reshape(a.shape[0], -1, size),
                       b[:whole].reshape(-1, size, b.shape[1]), precision=precision()).sum(0)
    return parts + jnp.matmul(a[:, whole:], b[whole:], precision=precision())


def all_short(*arrays: Any) -> list[Any]:
    """Return factors in the type of two bytes that all were made of; nothing where they were not."""
    found: list[Any] = [a.short_values() if type(a) is XArray else None for a in arrays]
    return [] if any(f is None or f.dtype != found[0].dtype for f in found) else found


_PRECISIONS = {"highest": lax.Precision.HIGHEST, "high": lax.Precision.HIGH, "medium": lax.Precision.DEFAULT}


def precision() -> Any:
    """Return how exact products of float32 are, as mutagrad.set_float32_matmul_precision says."""
    return _PRECISIONS[PRECISION[0]]


def _reduced(ufunc: Any, inputs: Any, settings: dict[str, Any]) -> Any:
    given = dict(zip(("axis", "dtype", "out", "keepdims", "initial"), inputs[1:])) | settings
    axis, dtype, keepdims = given.get("axis", 0), given.get("dtype"), bool(given.get("keepdims", False))
    a = inputs[0]
    a = jnp.stack([jnp.asarray(unwrap(v)) for v in a]) if isinstance(a, (list, tuple)) else jnp.asarray(unwrap(a))
    result = numpy.dtype(dtype) if dtype is not None else _reduced_type(ufunc, a.dtype)
    if ufunc not in REDUCTIONS:
        raise not_traced(f"numpy.{ufunc.__name__}.reduce has no counterpart in JAX")
    more = {} if given.get("initial") in (None, numpy._NoValue) else {"initial": unwrap(given["initial"])}
    if result != a.dtype and result.kind != "b":
        a = cast(a, result)
    axis = tuple(axis) if isinstance(axis, list) else axis
    found = REDUCTIONS[ufunc](a, axis=axis, keepdims=keepdims, **more)
    return found if found.dtype == result else found.astype(result)


@lru_cache(256)
def _reduced_type(ufunc: Any, dtype: Any) -> Any:
    return ufunc.reduce(numpy.ones(1, dtype)).dtype


def _accumulated(ufunc: Any, inputs: Any, settings: dict[str, Any]) -> Any:
    axis = inputs[1] if len(inputs) > 1 else settings.get("axis", 0)
    a = unwrap(inputs[0])
    dtype = (inputs[2] if len(inputs) > 2 else settings.get("dtype")) or _reduced_type(ufunc, a.dtype)
    if ufunc not in ACCUMULATIONS:
        raise not_traced(f"numpy.{ufunc.__name__}.accumulate has no counterpart in JAX")
    return ACCUMULATIONS[ufunc](cast(a, numpy.dtype(dtype)), axis=axis).astype(dtype)


def _outer(ufunc: Any, inputs: Any, settings: dict[str, Any]) -> Any:
    a, b = inputs
    n = numpy.ndim(b)
    return _called(ufunc, (a.reshape(a.shape + (1,) * n), b), settings)


METHODS: dict[str, Rule] = {"__call__": _called, "reduce": _reduced, "accumulate": _accumulated, "outer": _outer}


def _at(ufunc: Any, target: Any, index: Any, values: Any = None) -> None:
    if type(target) is not XArray:
        raise not_traced("NumPy's memory is written by a value that is not known")
    at = target.values().at[_jax_index(index if type(index) is tuple else (index,))]
    value = None if values is None else _as(values, target.dtype)
    target.assign(wrap(_AT[ufunc](at, value), target.level))


_AT: dict[Any, Rule] = {
    numpy.add: lambda at, v: at.add(v, mode="promise_in_bounds"), numpy.subtract: lambda at, v: at.add(-v),
    numpy.multiply: lambda at, v: at.multiply(v), numpy.maximum: lambda at, v: at.max(v),
    numpy.minimum: lambda at, v: at.min(v), numpy.true_divide: lambda at, v: at.divide(v),
    numpy.negative: lambda at, v: at.multiply(-1)}


# ------------------------------------------------------------------------------------------------------------ indexing

def _jax_index(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    found = []
    for p in parts:
        if type(p) is XArray and (known := p.known) is not None:
            p = known
        if type(p) is XArray:
            if p.dtype == bool and tracing() is not None:
                raise not_traced("how many elements a mask picks depends on values",
                                 "mutagrad.where(mask, x, 0.0) keeps the shape; x[mask] = value and masked_fill work")
            p = p.values()
        found.append(numpy.asarray(p) if isinstance(p, list) else p)
    return tuple(found)


def _getitem(array: XArray, parts: tuple[Any, ...]) -> Any:
    index = _jax_index(parts)
    if (known := array.known) is not None and all(not isinstance(p, jax.Array) for p in index):
        picked: Any = numpy.asarray(known[index])
        return new(picked, array.level)
    values = array.values()
    scalar = _one_traced(index, values.shape)
    if scalar is not None:
        dim, at = scalar
        rest = (*index[:dim], 0, *index[dim + 1:])
        return wrap(lax.dynamic_slice_in_dim(values, at, 1, dim)[rest], array.level)
    return wrap(values.at[index].get(mode="clip" if _in_range(index) else None), array.level)


def _one_traced(index: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[int, Any] | None:
    """The one number that is not known among slices and numbers, and its dimension."""
    if any(p is None or p is Ellipsis or isinstance(p, ndarray) for p in index):
        return None
    traced = [(d, p) for d, p in enumerate(index) if isinstance(p, jax.Array)]
    if len(traced) != 1 or traced[0][1].ndim:
        return None
    dim, at = traced[0]
    return dim, jnp.where(at < 0, at + shape[dim], at)


def _in_range(index: tuple[Any, ...]) -> bool:
    return not any(getattr(p, "dtype", numpy.dtype(int)).kind == "b" for p in index)


def _setitem(array: XArray, parts: tuple[Any, ...], value: Any) -> None:
    mask = parts[0]
    if len(parts) == 1 and type(mask) is XArray and mask.dtype == bool and mask.known is None:
        return _set_masked(array, mask, value)
    index = _jax_index(parts)
    if (array.known is not None and array.cell.twin.size <= FOLDED and (given := known_of(value)) is not None
            and not any(isinstance(p, jax.Array) for p in index)):
        array.writable()[index] = given
        return None
    values, new = array.values(), _as(value, array.dtype)
    scalar = _one_traced(index, values.shape)
    if scalar is not None and all(isinstance(p, jax.Array) or p == slice(None) for p in index):
        dim, at = scalar
        shape = values.shape[:dim] + (1,) + values.shape[dim + 1:]
        new = jnp.broadcast_to(new, values.shape[:dim] + values.shape[dim + 1:]).reshape(shape)
        array.assign(wrap(lax.dynamic_update_slice_in_dim(values, new, at, dim), array.level))
        return None
    array.assign(wrap(values.at[index].set(new), array.level))
    return None


def _set_masked(array: XArray, mask: XArray, value: Any) -> None:
    """`x[mask] = value`: a choice at each place. Several values are dealt out in order."""
    m = mask.values()
    new = _as(value, array.dtype)
    wide = m.reshape(m.shape + (1,) * (array.ndim - m.ndim))
    if numpy.ndim(new) and (numpy.ndim(new) > array.ndim - m.ndim):
        at = jnp.clip(jnp.cumsum(m.reshape(-1)) - 1, 0, max(new.shape[0] - 1, 0)).reshape(m.shape)
        new = jnp.asarray(new)[at]
    array.assign(wrap(jnp.where(wide, new, array.values()), array.level))


# ----------------------------------------------------------------------------------------------------------- functions

def _function(function: Any, arguments: Any, settings: dict[str, Any]) -> Any:
    if function in ABOUT:
        def twin(value: Any) -> Any:
            return value.twin if type(value) is XArray else value
        return function(*_map(twin, arguments), **_map(twin, settings))
    if function in VIEWS:
        return VIEWS[function](*arguments, **settings)
    place = place_among((arguments, settings))
    if function in LIKE:
        return place.adopt(_like(function, arguments, settings))
    if function in WRITES:
        return WRITES[function](*arguments, **settings)
    if tracing() is not None and (found := _folded(function, arguments, settings)) is not None:
        return found
    rule = TABLE.get(function)
    if rule is None:
        return _on_host(function, arguments, settings)
    out = settings.pop("out", None)
    if rule not in (_einsum, _tensordot):  # which look where their factors come from
        arguments = _map(_operand, arguments)
    found = wrap(rule(*arguments, **_map(_operand, settings)), place)
    if out is None:
        return found
    target = out[0] if type(out) is tuple else out
    write(target, found)
    return target


def _operand(value: Any) -> Any:
    if type(value) is XArray:
        return value.values()
    return value


def _like(function: Any, arguments: Any, settings: dict[str, Any]) -> Any:
    settings = {k: v for k, v in settings.items() if k != "like"}
    given = [a.twin if type(a) is XArray else a for a in arguments]
    return function(*given, **settings)


def _copyto(target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    write(target, source if where is True else numpy.where(where, source, target))


def _put_along_axis(target: Any, indices: Any, values: Any, axis: Any) -> None:
    target.assign(wrap(jnp.put_along_axis(target.values(), unwrap(indices), _as(values, target.dtype), axis,
                                          inplace=False), target.level))


def _fill_diagonal(target: Any, value: Any, wrap: bool = False) -> None:
    target.assign(jnp.fill_diagonal(target.values(), unwrap(value), wrap, inplace=False))


WRITES: dict[Any, Rule] = {numpy.copyto: _copyto, numpy.put_along_axis: _put_along_axis,
                           numpy.fill_diagonal: _fill_diagonal}


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        raise not_traced("how many elements a condition picks depends on values")
    x, y = choices
    dtype = numpy.result_type(*(v if type(v) in (int, float, complex, bool) else v.dtype for v in choices))
    shape = numpy.broadcast_shapes(numpy.shape(condition), numpy.shape(x), numpy.shape(y))
    condition = jnp.asarray(condition, bool)
    return lax.select(*(jnp.broadcast_to(v, shape) for v in (condition, _as(x, dtype), _as(y, dtype))))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **settings: Any) -> Any:
    a_min, a_max = settings.get("min", a_min), settings.get("max", a_max)
    bounds = [b for b in (a_min, a_max) if b is not None]
    dtype = numpy.result_type(*(v if type(v) in (int, float) else v.dtype for v in (a, *bounds)))
    a = _as(a, dtype)
    a = a if a_min is None else jnp.maximum(a, _as(a_min, dtype))
    return a if a_max is None else jnp.minimum(a, _as(a_max, dtype))


def _einsum(spec: Any, *arrays: Any, optimize: Any = True, **settings: Any) -> Any:
    if len(arrays) == 2 and (short := all_short(*arrays)):
        return jnp.einsum(spec, *short, preferred_element_type=numpy.float32)
    dtype = numpy.result_type(*(a.dtype for a in arrays))
    given = [_as(a, dtype) for a in arrays]
    found = _long_product(spec, *given) if len(given) == 2 and isinstance(spec, str) else None
    return jnp.einsum(spec, *given, precision=precision()) if found is None else found


def _long_product(spec: str, a: Any, b: Any) -> Any:
    """Return an einsum that is a product of matrices with long sums; None for others."""
    terms, _, result = spec.replace(" ", "").partition("->")
    first, _, second = terms.partition(",")
    inner = [c for c in first if c in second]
    rows, columns = ([c for c in term if c not in inner] for term in (first, second))
    if not spec.replace(" ", "").replace(",", "").replace("->", "").isalpha() or len({*first}) < len(first) \
            or len({*second}) < len(second) or sorted(result) != sorted(rows + columns):
        return None
    sizes = dict(zip(first + second, a.shape + b.shape))
    if [sizes[c] for c in first] != list(a.shape):  # one of them is broadcast
        return None
    length, shape = math.prod(sizes[c] for c in inner), [sizes[c] for c in rows + columns]
    if not _is_long(a, length, math.prod(shape)):
        return None
    found = _in_parts(a.transpose([first.index(c) for c in rows + inner]).reshape(-1, length),
                      b.transpose([second.index(c) for c in inner + columns]).reshape(length, -1))
    return found.reshape(shape).transpose([(rows + columns).index(c) for c in result])


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    if short := all_short(a, b):
        return jnp.tensordot(short[0], short[1], axes, preferred_element_type=numpy.float32)
    dtype = numpy.result_type(a.dtype, b.dtype)
    return jnp.tensordot(_as(a, dtype), _as(b, dtype), axes, precision=precision())


def _joined(function: Rule) -> Rule:
    def rule(arrays: Any, axis: Any = 0, dtype: Any = None, casting: Any = None) -> Any:
        dtype = dtype or numpy.result_type(*(a.dtype for a in arrays))
        return function([jnp.asarray(_as(a, dtype)) for a in arrays], axis)

    return rule


def _sorted(function: Rule) -> Rule:
    def rule(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = True) -> Any:
        return function(a, axis, stable=True)

    return rule


def _of_first(function: Rule) -> Rule:
    """A reduction: the same arguments, but those that JAX does not take; the result in NumPy's type."""
    def rule(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **settings: Any) -> Any:
        keepdims = keepdims if isinstance(keepdims, bool) else False
        settings = {k: v for k, v in settings.items() if v is not numpy._NoValue}
        if dtype is not None:
            settings["dtype"] = dtype
        return function(a, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims, **settings)

    return rule


def _sum_like(ufunc: Any) -> Rule:
    def rule(a: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, initial: Any = None,
             where: Any = None) -> Any:
        if where is not None and where is not numpy._NoValue:
            raise not_traced("a sum of some elements by `where`")
        keepdims = keepdims if isinstance(keepdims, bool) else False
        return _reduced(ufunc, (wrap(a, HOST), axis, dtype, None, keepdims, initial), {})

    return rule


def _cumulative(ufunc: Any) -> Rule:
    def rule(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        a, axis = (a.reshape(-1), 0) if axis is None else (a, axis)
        return _accumulated(ufunc, (wrap(a, HOST), axis, dtype), {})

    return rule


def _take(a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    return jnp.take(a, indices, axis, mode="clip" if mode == "clip" else "wrap" if mode == "wrap" else "fill")


def _take_along_axis(a: Any, indices: Any, axis: Any = -1) -> Any:
    return jnp.take_along_axis(a, indices, axis, mode="clip")


def _partitioned(function: Rule) -> Rule:
    """All of it in order, of which what is asked for is a part."""
    def rule(a: Any, kth: Any, axis: Any = -1, **settings: Any) -> Any:
        return function(a, axis)

    return rule


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    found = jnp.searchsorted(a, v, side=side, sorter=sorter)
    return found.astype(numpy.int64)


def _eigh(a: Any, UPLO: str = "L") -> Any:
    return jnp.linalg.eigh(a, UPLO, symmetrize_input=False)


def _cholesky(a: Any, *, upper: bool = False) -> Any:
    return jnp.linalg.cholesky(a, upper=upper, symmetrize_input=False)


def _round(a: Any, decimals: int = 0) -> Any:
    return jnp.round(a, decimals) if a.dtype.kind in "fcV" else a


def _sized(function: Any) -> Rule:
    """A function that finds as many as there are: while a step is traced, its result has no shape."""
    def rule(*arguments: Any, **settings: Any) -> Any:
        if tracing() is not None:
            raise not_traced(f"how many elements {function.__name__} finds (or a mask picks) depends on values")
        return getattr(jnp, function.__name__)(*arguments, **settings)

    return rule


def _same(*names: str) -> dict[Any, Rule]:
    return {getattr(numpy, name): getattr(jnp, name) for name in names if hasattr(numpy, name)}


def _linalg(*names: str) -> dict[Any, Rule]:
    return {getattr(numpy.linalg, name): getattr(jnp.linalg, name) for name in names}


TABLE: dict[Any, Rule] = {
    **_same(*words("""tril triu roll repeat diff outer kron trace diag diagflat cross tile isclose nan_to_num angle sinc
        i0 convolve interp dot inner vdot polyval array_equal rot90 fliplr flipud argmax argmin unwrap
        trapezoid gradient ediff1d digitize cov corrcoef isin vander select choose logspace packbits unpackbits
        delete insert append quantile percentile nanquantile median nanmedian count_nonzero meshgrid
        apply_along_axis""")),
    **{getattr(numpy, n): _of_first(getattr(jnp, n)) for n in words("""mean var std nansum nanmean nanmax nanmin nanprod
        ptp nanvar nanstd""")},
    **{f: _sum_like(u) for f, u in ((numpy.sum, numpy.add), (numpy.prod, numpy.multiply), (numpy.max, numpy.maximum),
                                    (numpy.min, numpy.minimum), (numpy.amax, numpy.maximum),
                                    (numpy.amin, numpy.minimum), (numpy.all, numpy.logical_and),
                                    (numpy.any, numpy.logical_or))},
    numpy.cumsum: _cumulative(numpy.add), numpy.cumprod: _cumulative(numpy.multiply),
    numpy.where: _where, numpy.clip: _clip, numpy.einsum: _einsum, numpy.tensordot: _tensordot,
    numpy.concatenate: _joined(jnp.concatenate), numpy.stack: _joined(jnp.stack),
    numpy.vstack: lambda arrays, **k: jnp.vstack(list(arrays)),
    numpy.hstack: lambda arrays, **k: jnp.hstack(list(arrays)),
    numpy.sort: _sorted(jnp.sort), numpy.argsort: _sorted(jnp.argsort), numpy.lexsort: jnp.lexsort,
    numpy.partition: _partitioned(jnp.sort), numpy.argpartition: _partitioned(jnp.argsort),
    numpy.take: _take, numpy.take_along_axis: _take_along_axis, numpy.searchsorted: _searchsorted,
    numpy.fix: jnp.trunc, numpy.round: _round, numpy.around: _round, numpy.pad: jnp.pad,
    numpy.ravel_multi_index: lambda i, dims, mode="raise", order="C": jnp.ravel_multi_index(i, dims, mode="clip"),
    numpy.unravel_index: lambda i, shape, order="C": jnp.unravel_index(i, shape),
    **_linalg(*words("""inv det slogdet qr svd eig eigvals eigvalsh pinv matrix_power solve norm matrix_rank lstsq
        cond""")),
    **{f: _sized(f) for f in (numpy.nonzero, numpy.flatnonzero, numpy.argwhere, numpy.unique, numpy.bincount,
                              numpy.extract, numpy.compress)},
    numpy.linalg.eigh: _eigh, numpy.linalg.cholesky: _cholesky,
    **{getattr(numpy.fft, n): getattr(jnp.fft, n) for n in words("""fft ifft rfft irfft hfft ihfft fftn ifftn rfftn
        irfftn fft2 ifft2 rfft2 irfft2 fftshift ifftshift""")},
}


_REFUSING: dict[str, Rule] = {"ufunc": _ufunc, "function": _function, "getitem": _getitem, "setitem": _setitem}
RULES.update({name: refusing(rule) for name, rule in _REFUSING.items()})
