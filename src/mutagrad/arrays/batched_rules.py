"""What NumPy's functions mean for arrays that hold all slices of a `vmap`.

A rule is given its arguments as arrays of the level around, some of them `Split`: with the slices as their first
dimension. Where none is, the function itself is called. Functions without a rule are called for each slice.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from operator import attrgetter
from typing import Any

from ..base.modes import call_with, mode
from . import parallel
from .batched import RULES, Batched, Slices, Turns, fresh, geometry, lined_up
from .kinds import computed, raw, use
from .twins import ABOUT, LIKE, VIEWS

ndarray = raw.ndarray
Rule = Callable[..., Any]


class Split:
    """An argument that has the slices as its first dimension: `values`; `ndim` and `shape` are those of one slice."""

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def ndim(self) -> int:
        return self.values.ndim - 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape[1:]


def _batched(tree: Any) -> Iterator[Batched]:
    if type(tree) is Batched:
        yield tree
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _batched(part)
    elif isinstance(tree, dict) or (tree := _attributes(tree)):
        for part in tree.values():
            yield from _batched(part)


def _innermost(tree: Any) -> Slices:
    return max((a.level for a in _batched(tree)), key=_number)


def _map(function: Callable[[Any], Any], tree: Any) -> Any:
    if type(tree) is list and not tree:
        return tree  # which somebody may fill
    if isinstance(tree, (list, tuple)):
        parts = [_map(function, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if isinstance(tree, dict):
        return {k: _map(function, part) for k, part in tree.items()}
    if attributes := _attributes(tree):
        tree = copy(tree)
        for name, part in attributes.items():
            setattr(tree, name, _map(function, part))
        return tree
    return function(tree)


def _attributes(plan: Any) -> dict[str, Any]:
    """The attributes of an object that an operation keeps its arrays in, such as where the labels of a loss are.

    Those with an underscore are what it has worked out from the others, and may lead back to it.
    """
    if not type(plan).__module__.startswith(OPERATIONS):
        return {}
    names = [*getattr(plan, "__dict__", ()), *getattr(plan, "__slots__", ())]
    return {name: getattr(plan, name) for name in names if hasattr(plan, name) and not name.startswith("_")}


OPERATIONS = __name__.partition(".")[0] + ".ops."


def _released(value: Any) -> Any:
    """An array that has outlived its call as the one that it is."""
    while type(value) is Batched and value.outlived:
        value = value.values()[0]
    return value


def _open(level: Slices, value: Any) -> Any:
    """An argument as a rule is given it."""
    if type(value) is not Batched or value.level is not level:
        return value
    values, split = value.values()
    return Split(values) if split else values


def _opened(level: Slices, tree: Any) -> Any:
    return _map(lambda value: _open(level, value), tree)


_number = attrgetter("number")


def _wrapped(level: Slices, tree: Any, split: bool) -> Any:
    """Results as arrays of this level. Named tuples keep their names."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(_wrapped(level, part, split) for part in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_wrapped(level, part, split) for part in tree)
    return fresh(level, tree, split) if isinstance(tree, (ndarray, raw.generic)) else tree


def _slice(i: int) -> Callable[[Any], Any]:
    return lambda value: value.values[i, ...] if isinstance(value, Split) else value


def _one_by_one(level: Slices, function: Rule, arguments: Any, settings: Any) -> Any:
    """The function called for each slice, its results stacked; so is what it puts into empty lists that it is given."""
    name = getattr(function, "__name__", "a function")
    holders = [k for k, a in enumerate(arguments) if type(a) is list and not a]
    found, held = [], []
    for i in range(level.size):
        given = [[] if k in holders else _map(_slice(i), a) for k, a in enumerate(arguments)]
        found.append(call_with({"kind": level.outer}, function, *given, **_map(_slice(i), settings)))
        held.append([given[k] for k in holders])
    for k, contents in zip(holders, zip(*held)):
        arguments[k][:] = _stacked(level, list(contents), name)
    return _stacked(level, found, name)


def _stacked(level: Slices, found: list[Any], name: str) -> Any:
    first = found[0]
    if isinstance(first, (list, tuple)):
        parts = [_stacked(level, list(column), name) for column in zip(*found)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if first is None or not isinstance(first, (ndarray, raw.generic)) and all(f == first for f in found):
        return first
    if len({raw.shape(f) for f in found}) > 1 or type(first) is Batched and first.level is level:
        raise level.refuse(f"the shape that {name} gives depends on the slice")
    return fresh(level, raw.stack([raw.asarray(f) if isinstance(f, raw.generic) else f for f in found]), True)


# ------------------------------------------------------------------------------------------------------------- ufuncs

def _ufunc(ufunc: Any, method: str, inputs: Any, settings: dict[str, Any]) -> Any:
    out = settings.pop("out", None) or ()
    if method == "__call__":  # the commonest by far: nothing is nested
        inputs, out = [_released(v) for v in inputs], tuple([_released(v) for v in out])
        levels = [v.level for v in (*inputs, *out, *settings.values()) if type(v) is Batched]
    else:
        inputs, settings, out = _map(_released, (inputs, settings, out))
        levels = [a.level for a in _batched((inputs, settings, out))]
    if not levels:
        return getattr(ufunc, method)(*inputs, **settings, **({"out": out} if out else {}))
    level = levels[0] if len(levels) == 1 else max(levels, key=_number)
    given = [_open(level, v) for v in inputs] if method == "__call__" else _opened(level, inputs)
    settings = _opened(level, settings) if settings else settings
    split = any(isinstance(v, Split) for v in (*given, *settings.values()))
    if method == "at":
        return _at(level, ufunc, inputs, given)
    if not split:
        found = _call(level, getattr(ufunc, method), given, settings, out, False)
    elif method == "__call__" and ufunc.signature is None:
        ndim = max((v.ndim if isinstance(v, Split) else raw.ndim(v) for v in given), default=0)
        lined = [lined_up(v.values, ndim) if isinstance(v, Split) else v for v in given]
        if isinstance(settings.get("where"), Split):
            settings["where"] = lined_up(settings["where"].values, ndim)
        large = not settings and not out and ufunc.nout == 1 and max(raw.size(v) for v in lined) >= parallel.LARGE
        found = parallel.compute(ufunc, tuple(lined)) if large and _alike(lined) else None
        found = _call(level, ufunc, lined, settings, out, True) if found is None else fresh(level, found, True)
    elif ufunc is raw.matmul and method == "__call__":
        found = _into(level, fresh(level, _matmul(*given), True), out)
    elif method in ("reduce", "accumulate") and isinstance(given[0], Split):
        found = _into(level, _along(level, getattr(ufunc, method), given, settings), out)
    else:
        found = _into(level, _one_by_one(level, getattr(ufunc, method), given, settings), out)
    return found


def _alike(arrays: list[Any]) -> bool:
    """Whether all have one shape and float type, but for numbers: they are worth several threads."""
    first = next(a for a in arrays if raw.ndim(a))
    return first.dtype.char in "fd" and all(
        type(a) is ndarray and a.dtype == first.dtype and (a.size == 1 or a.shape == first.shape) for a in arrays)


def _call(level: Slices, function: Any, given: Any, settings: Any, out: Any, split: bool) -> Any:
    """Call a function of NumPy's that may write its results into arrays."""
    if not out or all(o is None for o in out):
        return _wrapped(level, function(*given, **settings), split)
    targets = []
    for o in out:
        if type(o) is not Batched or o.level is not level:
            if split:
                raise level.refuse("a value of each slice is written to memory that they share")
            targets.append(o)
        else:
            targets.append(o.writable(split)[0])
    function(*given, out=tuple(targets), **settings)
    return out[0] if len(out) == 1 else out


def _into(level: Slices, found: Any, out: Any) -> Any:
    if not out or out[0] is None:
        return found
    if type(out[0]) is not Batched:
        raise level.refuse("a value of each slice is written to memory that they share")
    out[0].assign(found)
    return out[0]


def _along(level: Slices, function: Any, given: Any, settings: Any) -> Any:
    """`reduce` and `accumulate` along dimensions of a slice."""
    array, *rest = given
    axis = rest.pop(0) if rest else settings.pop("axis", 0)
    where = settings.get("where")
    if isinstance(where, Split):
        settings["where"] = lined_up(where.values, array.ndim)
    return fresh(level, function(array.values, _shifted(axis, array.ndim), *rest, **settings), True)


def _shifted(axis: Any, ndim: int) -> Any:
    """Dimensions of a slice, counted with that of the slices; None: all."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, (tuple, list)):
        return tuple(_shifted(a, ndim) for a in axis)
    return raw.lib.array_utils.normalize_axis_index(axis, ndim) + 1 if ndim else 0


def _at(level: Slices, ufunc: Any, inputs: Any, given: Any) -> None:
    """`ufunc.at`, which writes: with the numbers of the slices as one more index."""
    target, index, *values = inputs
    if type(target) is not Batched or target.level is not level:
        raise level.refuse("a value of each slice is written to memory that they share")
    memory, split = target.writable(any(isinstance(v, Split) for v in _flat(given[1:])))
    if not split:
        ufunc.at(memory, *given[1:])
        return
    view, parts = target.prepared(index if isinstance(index, tuple) else (index,))
    key, shape, (found, wanted) = view.across(parts)
    each = [level.spread(v, shape) for v in values]
    ufunc.at(view.values()[0], key, *(raw.moveaxis(v, wanted, found) for v in each))


def _flat(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _flat(part)] if isinstance(tree, (list, tuple)) else [tree]


def _values(value: Any) -> Any:
    return value.values if isinstance(value, Split) else value


def _matmul(a: Any, b: Any) -> Any:
    """Products of all slices: as one product of matrices where one of the factors is the same for all."""
    if not isinstance(b, Split):
        x = a.values
        if b.ndim == 1 or a.ndim == 1 and b.ndim == 2:
            return raw.matmul(x, b)
        if a.ndim == 2 and b.ndim == 2:
            return raw.matmul(x.reshape(x.shape[0] * x.shape[1], x.shape[2]), b).reshape(*x.shape[:-1], b.shape[-1])
        if a.ndim == 1:
            return raw.matmul(lined_up(x, b.ndim - 1)[..., None, :], b)[..., 0, :]
        return raw.matmul(lined_up(x, b.ndim), b)
    y = b.values
    if not isinstance(a, Split):
        if a.ndim == 1:
            return raw.matmul(y, a) if b.ndim == 1 else raw.matmul(a, y)
        if b.ndim == 1:
            if a.ndim == 2:
                return raw.matmul(y, a.swapaxes(-1, -2))
            return raw.matmul(a, lined_up(y[..., None], a.ndim))[..., 0]
        return raw.matmul(a, lined_up(y, a.ndim))
    x = a.values
    ndim = max(a.ndim, b.ndim, 2)
    rows, columns = x[:, None, :] if a.ndim == 1 else x, y[..., None] if b.ndim == 1 else y
    rows, columns = lined_up(rows, ndim), lined_up(columns, ndim)
    # Of a column and a row matmul makes one product of BLAS's for each slice, which takes three times as long.
    found = rows * columns if rows.shape[-1] == columns.shape[-2] == 1 else raw.matmul(rows, columns)
    found = found[..., 0] if b.ndim == 1 else found
    return found if a.ndim > 1 else found[..., 0, :] if b.ndim > 1 else found[..., 0]


# ------------------------------------------------------------------------------------------------------------ functions

def _function(function: Any, arguments: Any, settings: dict[str, Any]) -> Any:
    if function in ABOUT:
        return function(*_map(geometry, arguments), **_map(geometry, settings))
    if function in VIEWS:
        return VIEWS[function](*arguments, **settings)
    arguments, settings = _map(_released, (arguments, settings))
    if not any(True for _ in _batched((arguments, settings))):
        return function(*arguments, **settings)
    level = _innermost((arguments, settings))
    if function in LIKE:
        return level.adopt(function(*_map(geometry, arguments), **settings))
    if function in WRITES:
        return WRITES[function](level, *arguments, **settings)
    given, settings = _opened(level, arguments), _opened(level, settings)
    if not any(isinstance(v, Split) for v in _flat((given, tuple(settings.values())))):
        return _wrapped(level, function(*given, **settings), False)
    if function in NEVER:
        raise level.refuse(f"the shape of what {function.__name__} gives depends on values")
    rule = TABLE.get(function)
    if rule is None or settings.get("out") is not None:
        return _one_by_one(level, function, given, settings)
    return _wrapped(level, rule(function, *given, **settings), True)


NEVER = {raw.nonzero, raw.flatnonzero, raw.argwhere, raw.unique}


def _copyto(level: Slices, target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    if type(target) is not Batched:
        raise level.refuse("a value of each slice is written to memory that they share")
    target.assign(source if where is True else raw.where(where, source, target))


def _put_along_axis(level: Slices, target: Any, indices: Any, values: Any, axis: int | None) -> None:
    if type(target) is not Batched:
        raise level.refuse("a value of each slice is written to memory that they share")
    given = [_opened(level, v) for v in (indices, values)]
    if not any(isinstance(v, Split) for v in given):
        memory, split = target.writable(False)
        raw.put_along_axis(memory, given[0], given[1], _shifted(axis, target.ndim) if split else axis)
        return
    memory = target.writable(True)[0]
    for i in range(level.size):
        raw.put_along_axis(memory[i], *(v.values[i] if isinstance(v, Split) else v for v in given), axis)


WRITES: dict[Any, Rule] = {raw.copyto: _copyto, raw.put_along_axis: _put_along_axis}


def _elementwise(function: Any, *arrays: Any, **settings: Any) -> Any:
    ndim = max(v.ndim if isinstance(v, Split) else raw.ndim(v) for v in (*arrays, *settings.values()) if v is not None)

    def lined(v: Any) -> Any:
        return lined_up(v.values, ndim) if isinstance(v, Split) else v

    return function(*map(lined, arrays), **_map(lined, settings))


def _reduction(function: Any, a: Any, axis: Any = None, *rest: Any, **settings: Any) -> Any:
    if isinstance(settings.get("where"), Split):
        settings["where"] = lined_up(settings["where"].values, a.ndim)
    return function(a.values, _shifted(axis, a.ndim), *rest, **settings)


def _vector(a: Split) -> Any:
    return a.values.reshape(len(a.values), -1)


def _flattening(default: int | None) -> Rule:
    """A function along one dimension; with None, of all elements as a vector."""
    def rule(function: Any, a: Any, axis: Any = default, **settings: Any) -> Any:
        if axis is None or not a.ndim:
            return function(_vector(a), 1, **settings)
        return function(a.values, _shifted(axis, a.ndim), **settings)

    return rule


def _roll(function: Any, a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return function(_vector(a), shift, 1).reshape(a.values.shape)
    return function(a.values, shift, _shifted(axis, a.ndim))


def _repeat(function: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    return function(_vector(a), repeats, 1) if axis is None else function(a.values, repeats, _shifted(axis, a.ndim))


def _diff(function: Any, a: Any, n: int = 1, axis: int = -1, **settings: Any) -> Any:
    return function(a.values, n, _shifted(axis, a.ndim), **settings)


def _partition(function: Any, a: Any, kth: Any, axis: Any = -1, **settings: Any) -> Any:
    return function(_vector(a), kth, 1) if axis is None else function(a.values, kth, _shifted(axis, a.ndim), **settings)


def _spread(v: Any, size: int) -> Any:
    """An argument with the slices as its first dimension, whether or not they differ."""
    return v.values if isinstance(v, Split) else raw.broadcast_to(v, (size, *raw.shape(v)))


def _size_of(*given: Any) -> int:
    return next(len(v.values) for v in _flat(given) if isinstance(v, Split))


def _take(function: Any, a: Any, indices: Any, axis: Any = None, **settings: Any) -> Any:
    size = _size_of(a, indices)
    values = _spread(a, size)
    values, axis = (values.reshape(size, -1), 0) if axis is None else (values, _shifted(axis, values.ndim - 1) - 1)
    if not isinstance(indices, Split):
        return function(values, indices, axis + 1)
    numbers = raw.arange(size).reshape((-1,) + (1,) * indices.ndim)
    found = raw.moveaxis(values, axis + 1, 1)[numbers, indices.values]
    return raw.moveaxis(found, range(1, 1 + indices.ndim), range(1 + axis, 1 + axis + indices.ndim))


def _take_along_axis(function: Any, a: Any, indices: Any, axis: Any = -1) -> Any:
    size = _size_of(a, indices)
    values, places = _spread(a, size), _spread(indices, size)
    if axis is None:
        return function(values.reshape(size, -1), places, 1)
    return function(values, places, _shifted(axis, values.ndim - 1))


def _join(function: Any, arrays: Any, axis: Any = 0, **settings: Any) -> Any:
    size = _size_of(arrays)
    spread = [_spread(a, size) for a in arrays]
    if axis is None:
        return function([s.reshape(size, -1) for s in spread], 1, **settings)
    return function(spread, axis + 1 if axis >= 0 else axis, **settings)


def _stacks(function: Any, a: Any, *rest: Any, **settings: Any) -> Any:
    """Linear algebra, which takes stacks of matrices as it is."""
    return function(a.values, *rest, **settings)


def _solve(function: Any, a: Any, b: Any) -> Any:
    ndim = max(a.ndim, b.ndim)

    def lined(v: Any) -> Any:
        values = _values(v)[..., None] if v.ndim == 1 else _values(v)
        return lined_up(values, max(ndim, 2)) if isinstance(v, Split) else values

    found = function(lined(a), lined(b))
    return found[..., 0] if b.ndim == 1 else found


def _triangle(function: Any, a: Any, k: int = 0) -> Any:
    return function(a.values, k) if a.ndim > 1 else raw.stack([function(v, k) for v in a.values])


def _pad(function: Any, a: Any, width: Any, mode: str = "constant", **settings: Any) -> Any:
    pairs = raw.broadcast_to(raw.asarray(width), (a.ndim, 2)).tolist()
    return function(a.values, [(0, 0), *pairs], mode, **settings)


def _einsum(function: Any, subscripts: str, *operands: Any, **settings: Any) -> Any:
    """One more letter, for the slices."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow:
        letters = inputs.replace(",", "").replace("...", "")
        output = ("..." if "..." in inputs else "") + "".join(sorted({c for c in letters if letters.count(c) == 1}))
    slices = next(c for c in "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in subscripts)
    terms = [slices * isinstance(v, Split) + term for term, v in zip(inputs.split(","), operands)]
    return function(f"{','.join(terms)}->{slices}{output}", *map(_values, operands), **settings)


def _tensordot(function: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    n = a.ndim if isinstance(a, Split) else raw.ndim(a)
    m = b.ndim if isinstance(b, Split) else raw.ndim(b)
    if isinstance(axes, int):
        axes = range(n - axes, n), range(axes)
    pairs = [[x] if isinstance(x, int) else list(x) for x in axes]
    first = [chr(97 + d) for d in range(n)]
    second = [chr(65 + d) for d in range(m)]
    for x, y in zip(*pairs):
        second[y] = first[x]
    kept = [c for c in first if c not in second] + [c for c in second if c not in first]
    return _einsum(raw.einsum, f"{''.join(first)},{''.join(second)}->{''.join(kept)}", a, b, optimize=True)


def _dot(function: Any, a: Any, b: Any) -> Any:
    return _matmul(a, b) if min(a.ndim, b.ndim) > 0 and b.ndim < 3 else _elementwise(raw.multiply, a, b)


def _fft(function: Any, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
    if axes is None:
        axes = range(a.ndim if s is None else -len(s), a.ndim if s is None else 0) if s is not None else range(a.ndim)
    return function(a.values, s, _shifted(tuple(axes), a.ndim), norm)


def _fft_one(function: Any, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    return function(a.values, n, _shifted(axis, a.ndim), norm)


_linalg, _transforms = raw.linalg, raw.fft
TABLE: dict[Any, Rule] = {function: rule for functions, rule in (
    ((raw.where, raw.clip, raw.nan_to_num, raw.round, raw.isclose, raw.angle, raw.sinc, raw.fix, raw.i0), _elementwise),
    ((raw.sum, raw.prod, raw.max, raw.min, raw.amax, raw.amin, raw.any, raw.all, raw.mean, raw.var, raw.std,
      raw.count_nonzero, raw.nansum, raw.nanmax, raw.nanmin, raw.nanmean, raw.nanprod, raw.median, raw.nanmedian,
      raw.ptp), _reduction),
    ((raw.argmax, raw.argmin, raw.cumsum, raw.cumprod), _flattening(None)),
    ((raw.sort, raw.argsort), _flattening(-1)),
    ((raw.partition, raw.argpartition), _partition),
    ((raw.concatenate, raw.stack), _join),
    ((raw.tril, raw.triu), _triangle),
    ((_linalg.inv, _linalg.det, _linalg.slogdet, _linalg.cholesky, _linalg.qr, _linalg.svd, _linalg.eigh,
      _linalg.eigvalsh, _linalg.eig, _linalg.eigvals, _linalg.pinv, _linalg.matrix_power), _stacks),
    ((_transforms.fft, _transforms.ifft, _transforms.rfft, _transforms.irfft, _transforms.hfft, _transforms.ihfft),
     _fft_one),
    ((_transforms.fftn, _transforms.ifftn, _transforms.rfftn, _transforms.irfftn), _fft),
    ((raw.roll,), _roll), ((raw.repeat,), _repeat), ((raw.diff,), _diff), ((raw.take,), _take),
    ((raw.take_along_axis,), _take_along_axis), ((_linalg.solve,), _solve), ((raw.pad,), _pad),
    ((raw.einsum,), _einsum), ((raw.tensordot,), _tensordot), ((raw.dot,), _dot),
) for function in functions}


def _each(function: Rule, arguments: Any, level: Slices | None = None) -> Any:
    """Call a function that was refused for each slice, of the innermost level first; others may refuse it again."""
    level = level or _innermost(arguments)
    return _one_by_one(level, lambda *given, **settings: computed(function, *given), _opened(level, arguments), {})


def begin(size: int, since: int, turns: Turns) -> Slices:
    """Begin a call of `vmap` over as many slices. `since` is the order of its first node."""
    level = Slices(size, mode.now.kind, since, turns)
    use(level)
    return level


RULES.update(ufunc=_ufunc, function=_function, each=_each)
