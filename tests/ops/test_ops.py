"""Every operation of the table in `samples/`: values, gradients, second order, in place, `out=`, layouts, types, bad input.

The reference for values is NumPy, and for gradients the finite differences of the same NumPy function; gradients under other
circumstances (strided inputs, overwritten values, `out=`) are then compared with those.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import _lazy
from mutagrad.core.graph import Leaf
from mutagrad.core.op import TABLE, generated
from mutagrad.core.window import overlaps_itself
from samples import (
    ALIASES,
    CASTS,
    CORE,
    INPUT_TYPES,
    KINKS,
    RESULT_TYPES,
    SAMPLES,
    UNSAMPLED,
    WITH_NUMBER,
    Array,
    Sample,
    listed,
    named,
    words,
)

STEP = 1e-6


def samples(keep: Any = lambda s: True) -> Any:
    """Parametrizes a test with the samples that it applies to."""
    found = [s for s in SAMPLES if keep(s)]
    assert found
    return pytest.mark.parametrize("sample", found, ids=str)


FIRST = {s.name: s for s in reversed(SAMPLES) if s.draws}


def form(sample: Sample) -> Any:
    """What generated functions have in common: the same text. Any other function is a form of its own."""
    function = mg
    for name in sample.name.split("."):
        function = getattr(function, name, None)
    op = getattr(function, "op", None)
    return str(sample) if op is None else (generated(op, op.name), sample.writes, *(d.shape for d in sample.draws))


def forms(keep: Any = lambda s: True) -> Any:
    """Parametrizes a test of generated code, with one sample of each form."""
    found: dict[Any, Sample] = {}
    for sample in SAMPLES:
        if keep(sample):
            found.setdefault(form(sample), sample)
    return pytest.mark.parametrize("sample", found.values(), ids=str)


def leaves(arrays: list[Array]) -> list[Any]:
    return [mg.tensor(a, requires_grad=True) for a in arrays]


def close(got: Any, expected: Any, tolerance: float = 1e-6) -> None:
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def parts(results: tuple[Any, ...]) -> list[Any]:
    """Complex results as their real and imaginary parts, so that all that is weighted is real."""
    found = []
    for r in results:
        if isinstance(r, mg.Tensor) and r.is_complex():
            found += [r.to(r.dtype.to_real()), (r * -1j).to(r.dtype.to_real())]
        else:
            found += [r.real, r.imag] if r.dtype in (np.complex128, np.complex64) else [r]
    return found


def weights(sample: Sample, results: tuple[Any, ...], seed: int = 7) -> list[Array | None]:
    """A random weight for every element of the float results; None for the others."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=tuple(r.shape)) if r.dtype in (np.float64, np.float32, mg.float64, mg.float32) else None for r in parts(results)]


def weighted(results: tuple[Any, ...], w: list[Any]) -> Any:
    """The number to differentiate."""
    return sum((r * (mg.tensor(v) if isinstance(v, np.ndarray) and isinstance(r, mg.Tensor) else v)).sum()
               for r, v in zip(parts(results), w) if v is not None)


def grads(tensors: list[Any]) -> list[Array]:
    return [np.zeros(tuple(x.shape)) if x.grad is None else x.grad.numpy().copy() for x in tensors]


def plain_gradient(sample: Sample, arrays: list[Array], w: list[Any]) -> list[Array]:
    """Of the operation on leaves, which `test_gradient` holds to finite differences."""
    xs = leaves(arrays)
    weighted(sample.call(mg, xs), w).backward()
    return grads(xs)


def differences(f: Any, arrays: list[Array]) -> list[Array]:
    """Central differences of f(arrays), which is a number."""
    found = []
    for k, a in enumerate(arrays):
        slope = np.zeros_like(a)
        for i in np.ndindex(a.shape):
            ends = []
            for h in (STEP, -STEP):
                moved = a.copy()
                moved[i] += h
                ends.append(f([*arrays[:k], moved, *arrays[k + 1:]]))
            slope[i] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(slope)
    return found


# -------------------------------------------------------------------------------------------------------------- the table


def nodes(tensor: Any) -> set[str]:
    """The names of all operations in the history of a tensor."""
    seen, names, stack = set(), set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in seen or isinstance(node, Leaf):
            continue
        seen.add(node)
        names.add(getattr(node, "op", node).name if hasattr(node, "op") else "")
        stack += [n for n, _ in node.next_functions]
    return names


def test_every_declared_operation_has_a_sample() -> None:
    _lazy.load_all()
    sampled = {s.name for s in SAMPLES} | UNSAMPLED
    for s in SAMPLES:
        if s.grad:
            for r in s.call(mg, leaves(s.arrays())):
                sampled |= nodes(r) if r.requires_grad else set()
    sampled |= nodes(mg.ones(2, requires_grad=True).double())  # casts have a test of their own, and so has gelu of short floats
    sampled |= nodes(mg.nn.functional.gelu(mg.ones(2, dtype=mg.float16, requires_grad=True)))
    sampled |= {"lstsq", "slope"}  # of larger matrices: test_lapack.py; of second derivatives: test_functional.py
    assert set(TABLE) <= sampled, f"without a sample: {sorted(set(TABLE) - sampled)}"


# Public callables that are not operations on tensors; test_semantics.py and tests/explain have them.
NOT_OPERATIONS = set(words("""
    arange as_tensor can_cast describe draw empty empty_like eye from_numpy full full_like get_default_dtype get_kernels get_num_threads get_rng_state initial_seed
    is_anomaly_check_nan_enabled is_anomaly_enabled is_complex is_floating_point is_grad_enabled is_inference_mode_enabled is_tensor keep_memory linspace logspace manual_seed numel ones
    ones_like promote_types rand rand_like randint randint_like randn randn_like randperm result_type seed set_default_dtype set_kernels set_num_threads
    set_printoptions set_rng_state show_config stats summary tensor why zeros zeros_like"""))
NOT_METHODS = set(words("""
    as_subclass backward cpu cuda data_ptr detach_ dim element_size is_complex is_contiguous is_floating_point is_inference is_signed item
    ndimension nelement new_empty new_full new_ones new_tensor new_zeros normal_ numel numpy register_hook
    register_post_accumulate_grad_hook requires_grad_ retain_grad size squeeze_ storage_offset stride t_ to tolist transpose_ type type_as
    uniform_ unsqueeze_ why"""))


def public(owner: Any) -> set[str]:
    return {n for n in dir(owner) if not n.startswith("_") and callable(getattr(owner, n)) and not inspect.isclass(getattr(owner, n))
            and not isinstance(getattr(owner, n), mg.dtype)}


def test_every_public_function_has_a_sample() -> None:
    _lazy.load_all()
    missing = public(mg) - {s.name for s in SAMPLES} - set(ALIASES) - NOT_OPERATIONS - UNSAMPLED - {"index_put_"}
    assert not missing, f"without a sample: {sorted(missing)}"


NAMESPACES = [n for n in ("linalg", "fft", "special", "nn.functional") if named(mg, n) is not None]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_of_a_namespace_has_a_sample(namespace: str) -> None:
    """Under its full name, or under the name by which it is a function of `mutagrad`."""
    room, sampled = named(mg, namespace), {named(mg, s.name) for s in SAMPLES}
    missing = {n for n in room.__all__ if f"{namespace}.{n}" not in UNSAMPLED and getattr(room, n) not in sampled}
    assert not missing, f"without a sample: {sorted(missing)}"


def test_every_method_has_a_sample() -> None:
    sampled = {s.name for s in SAMPLES} | set(ALIASES) | set(CASTS)
    missing = {n for n in public(mg.Tensor) if n not in sampled and n.removesuffix("_") not in sampled} - NOT_METHODS - UNSAMPLED
    assert not missing, f"without a sample: {sorted(missing)}"


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_are_the_same_object(alias: str) -> None:
    name = ALIASES[alias]
    assert getattr(mg, alias) is getattr(mg, name)
    for suffix in ("", "_"):
        if hasattr(mg.Tensor, alias + suffix):
            assert getattr(mg.Tensor, alias + suffix) is getattr(mg.Tensor, name + suffix)


# --------------------------------------------------------------------------------------------------------- values, memory


@samples()
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_value(sample: Sample, dtype: str) -> None:
    """As function and as method: value, shape, type; a fresh storage, or the input's where the result is a view."""
    arrays = sample.arrays(dtype)
    expected = sample.reference(arrays)
    for form in sample.forms(mg).values():
        tensors = [mg.tensor(a) for a in arrays]
        results = sample.call(mg, tensors, form)
        assert len(results) == len(expected)
        for r, e in zip(results, expected):
            if not isinstance(r, mg.Tensor):  # allclose, equal
                assert r is bool(e)
                continue
            assert r.shape == e.shape
            assert r.dtype.name == (dtype if e.dtype.kind == "f" else e.dtype.name)
            close(r.numpy(), e, 1e-10 if dtype == "float64" else 1e-4)
            buffer = r._storage.buffer
            assert buffer.flags.c_contiguous and buffer.flags.writeable
            shared = [x for x in tensors if np.shares_memory(r._array, x._array)]
            assert bool(shared) == (sample.view and r.numel() > 0)
        for x, a in zip(tensors, arrays):
            assert np.array_equal(x.numpy(), a), "an input was changed"


# -------------------------------------------------------------------------------------------------------------- gradients


@samples(lambda s: s.grad)
def test_gradient(sample: Sample) -> None:
    """Against finite differences of the NumPy reference."""
    arrays = sample.arrays()
    w = weights(sample, sample.reference(arrays))
    close(_flat(plain_gradient(sample, arrays, w)), _flat(differences(lambda a: weighted(sample.reference(a), w), arrays)))


def _flat(arrays: list[Array]) -> Array:
    return np.concatenate([a.reshape(-1) for a in arrays]) if arrays else np.zeros(0)


@samples(lambda s: s.grad and s is FIRST[s.name])
def test_nothing_is_recorded_under_no_grad(sample: Sample) -> None:
    with mg.no_grad():
        assert not any(r.requires_grad for r in sample.call(mg, leaves(sample.arrays())) if r.numel() and not sample.view)


@samples(lambda s: not s.grad)
def test_results_without_derivative_do_not_require_grad(sample: Sample) -> None:
    for r in sample.call(mg, leaves(sample.arrays())):
        assert not isinstance(r, mg.Tensor) or not r.requires_grad


def refused(sample: Sample) -> Any:
    """What the second order raises."""
    return NotImplementedError if sample.once else None


@samples(lambda s: s.grad)
@pytest.mark.parametrize("recorded", [False, True], ids=["raw", "recorded"])
def test_rules_keep_float32(sample: Sample, recorded: bool) -> None:
    """`.grad` is always cast to the leaf's type, so hooks look at what the rule itself made."""
    xs, seen = leaves(sample.arrays(np.float32)), []
    for x in xs:
        x.register_hook(lambda g: seen.append(g.dtype))
    results = sample.call(mg, xs)
    w = [None if v is None else v.astype(np.float32) for v in weights(sample, results)]
    with pytest.raises(refused(sample)) if recorded and refused(sample) else nullcontext():
        weighted(results, w).backward(create_graph=recorded)
    assert set(seen) <= {mg.float32}
    assert all(x.grad is None or x.grad.dtype is mg.float32 for x in xs)


@samples(lambda s: s.grad and not s.once)
def test_forward_mode(sample: Sample) -> None:
    """The Jacobian times a direction, against differences of the reference along it."""
    arrays = sample.arrays()
    rng = np.random.default_rng(9)
    direction = [rng.normal(size=a.shape) for a in arrays]

    def call(*tensors: Any) -> Any:
        return tuple(r for r in sample.call(mg, list(tensors)) if isinstance(r, mg.Tensor) and r.requires_grad)

    _, tangents = mg.autograd.functional.jvp(call, tuple(map(mg.tensor, arrays)), tuple(map(mg.tensor, direction)))
    ends = [sample.reference([a + h * v for a, v in zip(arrays, direction)]) for h in (STEP, -STEP)]
    expected = [(a - b) / (2 * STEP) for a, b in zip(*ends) if a.dtype.kind in "fc"]
    close(_flat([t.numpy() for t in tangents]), _flat(expected)[: sum(t.numel() for t in tangents)], 2e-5)


@samples(lambda s: s.grad)
def test_second_order(sample: Sample) -> None:
    """The Hessian of sum(w * f(x)) in x and w times a direction, against differences of the gradient."""
    arrays = sample.arrays()
    w = [v for v in weights(sample, sample.reference(arrays)) if v is not None]
    point, n = [*arrays, *w], len(arrays)
    rng = np.random.default_rng(3)
    direction = [rng.normal(size=a.shape) for a in point]

    def gradient(at: list[Any], **options: Any) -> Any:
        results = [r for r in sample.call(mg, at[:n]) if r.requires_grad]
        return mg.autograd.grad(weighted(tuple(results), at[n:]), at, materialize_grads=True, **options)

    xs = leaves(point)
    if refused(sample):
        with pytest.raises(refused(sample)):
            gradient(xs, create_graph=True)
        return
    first = gradient(xs, create_graph=True)
    along = sum((g * mg.tensor(v)).sum() for g, v in zip(first, direction))
    got = mg.autograd.grad(along, xs, materialize_grads=True)
    close(_flat([g.detach().numpy() for g in first]), _flat([g.numpy() for g in gradient(leaves(point))]), 1e-10)
    ends = [gradient(leaves([a + h * v for a, v in zip(point, direction)])) for h in (STEP, -STEP)]
    expected = [(a.numpy() - b.numpy()) / (2 * STEP) for a, b in zip(*ends)]
    close(_flat([g.detach().numpy() for g in got]), _flat(expected), 2e-5)


# ------------------------------------------------------------------------------------------------------- other circumstances

# How a window lies in its storage: the storage's shape for a window of shape s, and the window, on arrays and tensors alike.
LAYOUTS: dict[str, tuple[Any, Any]] = {
    "whole": (lambda s: s, lambda b: b),
    "transposed": (lambda s: s[::-1], lambda b: b.T),
    "stepped": (lambda s: (*s[:-1], 2 * s[-1] + 1) if s else (3,), lambda b: b[..., 1::2]),
    "row": (lambda s: (3, *s), lambda b: b[1, ...]),
}


def window(layout: str, base: Any, shape: tuple[int, ...]) -> Any:
    return LAYOUTS["row" if layout == "stepped" and not shape else layout][1](base)


def base_for(layout: str, array: Array) -> Array:
    """A storage with `array` in its window and other numbers around it."""
    base = np.random.default_rng(array.size).uniform(0.3, 0.8, LAYOUTS[layout][0](array.shape))
    window(layout, base, array.shape)[...] = array
    return base


BY_MEMORY = {"as_strided", "as_strided_copy", "as_strided_scatter"}  # what it means depends on how the input lies in memory
NEEDS_ORDER = {"view", "view_as", "view_copy"}  # raise where only a copy could have the shape


@forms(lambda s: s.grad and s.name not in BY_MEMORY)
@pytest.mark.parametrize("layout", ["transposed", "stepped", "row"])
def test_inputs_that_are_views(sample: Sample, layout: str) -> None:
    if sample.name in NEEDS_ORDER and layout != "row":
        return
    arrays = sample.arrays()
    expected = sample.reference(arrays)
    w = weights(sample, expected)
    bases = leaves([base_for(layout, a) for a in arrays])
    results = sample.call(mg, [window(layout, b, a.shape) for b, a in zip(bases, arrays)])
    for r, e in zip(results, expected):
        close(r.detach().numpy(), e, 1e-10)
    weighted(results, w).backward()
    for got, g, a in zip(grads(bases), plain_gradient(sample, arrays, w), arrays):
        whole = np.zeros_like(got)
        window(layout, whole, a.shape)[...] = g
        close(got, whole, 1e-10)


TIES = {"sort", "topk", "max", "min", "amax", "amin", "aminmax", "norm", "dist", "std", "std_mean", "scatter_reduce"}  # repeated values are kinks of theirs


@samples(lambda s: s.grad and not s.ties and s.name not in BY_MEMORY | NEEDS_ORDER | TIES and not s.writes and all(0 not in d.shape for d in s.draws))
def test_inputs_that_are_expanded(sample: Sample) -> None:
    narrow = [a[..., :1] if a.ndim else a for a in sample.arrays()]
    arrays = [np.broadcast_to(a, d.shape).copy() for a, d in zip(narrow, sample.draws)]
    w = weights(sample, sample.reference(arrays))
    bases = leaves(narrow)
    results = sample.call(mg, [b.expand(d.shape) for b, d in zip(bases, sample.draws)])
    weighted(results, w).backward()
    for got, g, d in zip(grads(bases), plain_gradient(sample, arrays, w), sample.draws):
        close(got, g.sum(-1, keepdims=True) if d.shape else g, 1e-10)


@samples(lambda s: s.grad)
def test_values_overwritten_afterwards(sample: Sample) -> None:
    """Inputs, results and index tensors may change once the operation is done."""
    arrays = sample.arrays()
    w = weights(sample, sample.reference(arrays))
    xs, constants = leaves(arrays), []
    inputs = [x * 1 for x in xs]
    arguments, settings = sample.bind([inputs[0].clone(), *inputs[1:]] if sample.writes else inputs,
                                      lambda a: constants.append(mg.tensor(a)) or constants[-1])
    results = listed(next(iter(sample.forms(mg).values()))(*arguments, **settings))
    results = (arguments[0],) if sample.writes else results
    loss = weighted(results, w)
    for x in [*constants, *inputs, *results]:
        if _can_be_written(x):
            x.zero_()
    loss.backward()
    for got, expected in zip(grads(xs), plain_gradient(sample, arrays, w)):
        close(got, expected, 1e-12)


@samples(lambda s: s.grad and refused(s) is None)
def test_values_overwritten_between_the_orders(sample: Sample) -> None:
    """What the first derivative was computed from may change before the second is asked for."""
    arrays = sample.arrays()
    found = []
    for overwrite in (False, True):
        xs = leaves(arrays)
        inputs = [x * 1 for x in xs]
        results = sample.call(mg, inputs)
        loss = weighted(results, weights(sample, results)) ** 2
        first = mg.autograd.grad(loss, xs, create_graph=True, materialize_grads=True)
        total = sum((g * g).sum() for g in first)
        if not total.requires_grad:
            return  # the first derivative is constant
        for x in [*inputs, *results, *first] if overwrite else ():
            if _can_be_written(x):
                x.zero_()
        found.append(_flat([g.numpy() for g in mg.autograd.grad(total, xs, materialize_grads=True)]))
    close(*found, 1e-10)


def _can_be_written(x: Any) -> bool:
    return not overlaps_itself(x._array.shape, x._array.strides, x._array.itemsize) if x.ndim else True


# ---------------------------------------------------------------------------------------------------------------- in place

SHAPE_ONLY = {"squeeze", "unsqueeze", "t", "transpose", "detach"}  # their in-place forms change the window, not the values


def in_place_name(sample: Sample) -> str | None:
    if sample.writes:
        return sample.name
    if sample.name in SHAPE_ONLY or not hasattr(mg.Tensor, sample.name + "_") or not sample.draws or sample.arguments[0] is not sample.draws[0]:
        return None
    return sample.name + "_" if single(sample, lambda result: result.shape == sample.draws[0].shape) else None


def single(sample: Sample, fits: Callable[[Array], bool]) -> bool:
    """Whether it has one result, which fits. Where the reference is not installed it is taken to: the test will be skipped, by name."""
    try:
        results = sample.reference(sample.arrays())
    except pytest.skip.Exception:
        return True
    return len(results) == 1 and fits(results[0])


@samples(in_place_name)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place(sample: Sample, layout: str) -> None:
    """A write through a window of a larger storage, all of which is overwritten once it has been used."""
    arrays = sample.arrays()
    shape, arrays[0] = arrays[0].shape, base_for(layout, arrays[0])
    rng = np.random.default_rng(5)
    w = rng.normal(size=arrays[0].shape)

    def program(a: list[Array]) -> Array:
        buffer = a[0].copy()
        target = window(layout, buffer, shape)
        target[...] = sample.reference([target.copy(), *a[1:]])[0]
        return buffer

    xs = leaves(arrays)
    buffer = xs[0].clone()
    target = window(layout, buffer, shape)
    version = buffer._version
    arguments, settings = sample.bind([target, *xs[1:]], mg.tensor)
    name = in_place_name(sample)
    result = (getattr(mg.Tensor, name, None) or named(mg, name))(*arguments, **settings)
    assert result is target or sample.name == "__setitem__"
    assert buffer._version > version or not target.numel()
    close(buffer.detach().numpy(), program(arrays), 1e-10)
    loss = (buffer * mg.tensor(w)).sum()
    buffer.zero_()
    loss.backward()
    if sample.grad:
        expected = differences(lambda a: (program(a) * w).sum(), arrays)
    else:  # a truth: no influence is left, and differences would see it jump
        window(layout, w, shape)[...] = 0
        expected = [w, *map(np.zeros_like, arrays[1:])]
    close(_flat(grads(xs)), _flat(expected))


@samples(lambda s: s.elementwise and in_place_name(s) and s.draws[0].shape == (5, 7))
def test_in_place_on_a_leaf(sample: Sample) -> None:
    """`x.grad` is with respect to the value that the leaf had, `autograd.grad` to the one that it has."""
    arrays = sample.arrays()
    w = weights(sample, sample.reference(arrays))[0]
    if w is None:
        w = np.ones((5, 7))
    xs = leaves(arrays)
    arguments, settings = sample.bind(xs, mg.tensor)
    getattr(xs[0], in_place_name(sample))(*arguments[1:], **settings)
    assert xs[0].requires_grad and not xs[0].is_leaf
    loss = (xs[0] * mg.tensor(w)).sum()
    close(mg.autograd.grad(loss, xs[0], retain_graph=True)[0].numpy(), w, 1e-12)
    loss.backward()
    expected = plain_gradient(sample, arrays, [w]) if sample.grad else [np.zeros_like(a) for a in arrays]
    for got, g in zip(grads(xs), expected):
        close(got, g, 1e-12)


# --------------------------------------------------------------------------------------------------------------------- out=


def takes_out(sample: Sample) -> bool:
    function = named(mg, sample.name)
    return function is not None and "out" in inspect.signature(function).parameters and single(sample, lambda result: result.dtype.kind != "c")


@samples(takes_out)
@pytest.mark.parametrize("layout", ["whole", "stepped"])
def test_out(sample: Sample, layout: str) -> None:
    arrays = sample.arrays()
    expected, = sample.reference(arrays)
    w = weights(sample, (expected,))[0]
    base = mg.tensor(base_for(layout, np.zeros(expected.shape)), requires_grad=True)
    around = np.ones(base.shape)
    window(layout, around, expected.shape)[...] = 0 if w is None else w
    xs = leaves(arrays)
    buffer = base.clone() if w is not None else mg.tensor(base.detach().numpy() > 9 if expected.dtype == bool else base.detach().numpy().astype(expected.dtype))
    target = window(layout, buffer, expected.shape)
    arguments, settings = sample.bind(xs, mg.tensor)
    assert named(mg, sample.name)(*arguments, **settings, out=target) is target
    close(target.detach().numpy(), expected, 1e-10)
    if w is None:
        return
    (buffer * mg.tensor(around)).sum().backward()
    window(layout, around, expected.shape)[...] = 0
    close(grads([base])[0], around, 1e-12)  # what was in the window before has no influence
    for got, g in zip(grads(xs), plain_gradient(sample, arrays, [w]) if sample.grad else grads(xs)):
        close(got, g, 1e-12)


@samples(lambda s: takes_out(s) and s.draws and s.draws[0].shape == (5, 7))
def test_out_of_another_shape_is_resized_and_of_the_wrong_type_refused(sample: Sample) -> None:
    arguments, settings = sample.bind([mg.tensor(a) for a in sample.arrays()], mg.tensor)
    kept = mg.full((3, 9), 4.0, dtype=mg.float64, requires_grad=True)
    with pytest.raises(RuntimeError):
        named(mg, sample.name)(*arguments, **settings, out=kept)
    assert (kept == 4).all() and kept._version == 0
    expected = sample.reference(sample.arrays())[0]
    if expected.dtype.kind in "bif":
        other = mg.full((3, 9), 4.0, dtype=mg.float64)
        with pytest.warns(UserWarning, match="was resized"):
            named(mg, sample.name)(*arguments, **settings, out=other)
        close(other.numpy(), expected.astype(float), 1e-12)
    if sample.reference(sample.arrays())[0].dtype == np.float64:
        integers = mg.full((5, 7), 4)
        with pytest.raises(RuntimeError):
            named(mg, sample.name)(*arguments, **settings, out=integers)
        assert (integers == 4).all()


# ------------------------------------------------------------------------------------------------------------------- views


@samples(lambda s: s.view and s.grad and len(s.draws) == 1)
def test_writes_through_views(sample: Sample) -> None:
    """Doubling through the view doubles that part of the input, for the value and for the gradient."""
    array, = sample.arrays()
    x = leaves([array])[0]
    buffer = x * 1
    results = sample.call(mg, [buffer])
    doubled = np.ones_like(array)
    for r, part in zip(results, sample.reference([doubled])):
        if not _can_be_written(r):
            with pytest.raises(RuntimeError, match="overlaps itself"):
                r.mul_(2)
            continue
        part *= 2
        r.mul_(2)
    close(buffer.detach().numpy(), array * doubled, 1e-12)
    w = np.random.default_rng(2).normal(size=array.shape)
    (buffer * mg.tensor(w)).sum().backward()
    close(x.grad.numpy(), w * doubled, 1e-12)


@samples(lambda s: s.view and s.grad and len(s.draws) == 1)
def test_views_see_writes_to_the_input(sample: Sample) -> None:
    array, = sample.arrays()
    xs = leaves([array])
    buffer = xs[0] * 1
    results = sample.call(mg, [buffer])
    buffer *= 3
    expected = sample.reference([array * 3])
    for r, e in zip(results, expected):
        close(r.detach().numpy(), e, 1e-12)
    w = weights(sample, expected)
    weighted(results, w).backward()
    close(xs[0].grad.numpy(), 3 * plain_gradient(sample, [array], w)[0], 1e-12)


# ------------------------------------------------------------------------------------------------------------------- types



def recorded_types() -> list[Any]:
    cases = [(n, d, t) for types, names in RESULT_TYPES.items() for n in names.split() for d, t in zip(INPUT_TYPES, types.split())]
    return [pytest.param(n, d, t, id=f"{n}-{d}") for n, d, t in cases if t != "-"]


def test_result_types_are_recorded_for_every_operation() -> None:
    """Of the core; the oracle has those of the rest."""
    assert sorted(" ".join(RESULT_TYPES.values()).split()) == sorted(CORE & set(FIRST))


@pytest.mark.parametrize(("name", "dtype", "expected"), recorded_types())
def test_types_of_results(name: str, dtype: str, expected: str) -> None:
    """Integers, booleans, half floats and complex numbers give what PyTorch gives."""
    sample = FIRST[name]
    arrays = [(np.arange(a.size).reshape(a.shape) % 3 + 1).astype(dtype) for a in sample.arrays()]
    results = sample.call(mg, [mg.tensor(a) for a in arrays])
    found = dict.fromkeys(r.dtype.array_type if isinstance(r, mg.Tensor) else np.dtype(type(r)) for r in results)
    assert [t.name for t in found] == [np.dtype(t).name for t in expected.split("/")]
    if dtype in ("int64", "complex64"):
        for r, e in zip(results, sample.reference(arrays)):
            np.testing.assert_allclose(r.numpy() if isinstance(r, mg.Tensor) else r, e, 1e-5, 1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("method", CASTS)
def test_casts(method: str, dtype: str) -> None:
    x = mg.tensor((np.arange(35).reshape(5, 7) / 4).astype(dtype))
    results = [getattr(x, method)(), x.to(getattr(mg, CASTS[method])), x.to(dtype=getattr(mg, CASTS[method])), x.type(getattr(mg, CASTS[method]))]
    results.append(x.type_as(mg.zeros(1, dtype=getattr(mg, CASTS[method]))))
    for y in results:
        assert y.dtype.name == CASTS[method]
        assert (y is x) == (dtype == CASTS[method])
        assert np.array_equal(y.numpy(), (x.numpy().real if "complex" in dtype and "complex" not in CASTS[method] else x.numpy()).astype(CASTS[method]))
    if "float" in dtype:
        x.requires_grad_()
        y = getattr(x, method)()
        assert y.requires_grad == ("float" in CASTS[method] or "complex" in CASTS[method])
        if y.requires_grad:
            w = mg.arange(35.0).reshape(5, 7).to(y.dtype)
            (y * w).backward(mg.ones(5, 7, dtype=y.dtype))
            assert x.grad.dtype is x.dtype
            close(x.grad.numpy(), np.arange(35.0).reshape(5, 7))


# NumPy's logaddexp and erf know no complex numbers; real results of complex numbers are there, too (abs, var, norm).
COMPLEX = [n for types, names in RESULT_TYPES.items() for n in names.split() if types.split()[-1] in ("c8", "f4", "f4/c8") and FIRST[n].grad]


@samples(lambda s: s.complex or s.name in COMPLEX and s is FIRST[s.name])
def test_complex_gradient(sample: Sample) -> None:
    """PyTorch's convention: the gradient of L = Re(sum(conj(g) * f(z))) is dL/dRe(z) + i dL/dIm(z)."""
    rng = np.random.default_rng(4)
    arrays = [a + 1j * rng.uniform(-0.5, 0.5, a.shape) for a in sample.arrays()]
    expected = sample.reference(arrays)
    seeds = [rng.normal(size=e.shape) + (1j * rng.normal(size=e.shape) if e.dtype.kind == "c" else 0) for e in expected]
    xs = leaves(arrays)
    results = sample.call(mg, xs)
    for r, e in zip(results, expected):
        close(r.detach().numpy(), e, 1e-10)
    mg.autograd.backward(results, [mg.tensor(g) for g in seeds])

    def loss(a: list[Array]) -> float:
        return sum((np.conj(g) * r).real.sum() for g, r in zip(seeds, sample.reference(a)))

    for k, got in enumerate(grads(xs)):
        before, after, zero = arrays[:k], arrays[k + 1:], np.zeros(got.shape)
        real, imaginary = (differences(lambda d, u=unit: loss([*before, arrays[k] + u * d[0], *after]), [zero])[0] for unit in (1, 1j))
        close(got, real + 1j * imaginary)


@pytest.mark.parametrize(("expression", "inputs", "expected"), KINKS, ids=[f"{e} at {v}" for e, v, _ in KINKS])
def test_gradient_where_it_is_a_convention(expression: str, inputs: list[list[float]], expected: list[list[float]]) -> None:
    tensors = [mg.tensor(v, dtype=mg.float64, requires_grad=True) for v in inputs]
    eval(expression, {"m": mg, "inf": np.inf}, dict(zip("xy", tensors))).sum().backward(mg.tensor(1.0, dtype=mg.float64))
    for x, e in zip(tensors, expected):
        np.testing.assert_allclose(x.grad.numpy(), e, 1e-6)


# --------------------------------------------------------------------------------------------------------------- operators

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
             "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
             "&": operator.and_, "|": operator.or_, "^": operator.xor}
OTHERS = {
    "int": 2, "float": 2.5, "bool": True, "np.int64": np.int64(2), "np.float32": np.float32(2.5), "np.float64": np.float64(2.5),
    "np.bool": np.bool_(True), "0-d": np.array(2.5), "float64 array": np.array([1.0, 2.5, 3.0]),
    "float32 array": np.array([1.5, 2.5, 3.0], np.float32), "int32 array": np.array([1, 2, 3], np.int32), "column": np.array([[1.5], [2.5]]),
    "strided array": np.arange(1.0, 7)[::2], "tensor": None,
}


def promoted(dtype: str, other: Any) -> str:
    if isinstance(other, np.ndarray):
        return np.result_type(np.dtype(dtype), other).name
    kind = "a bool" if isinstance(other, (bool, np.bool_)) else "an int" if isinstance(other, (int, np.integer)) else "a float"
    return WITH_NUMBER[dtype, kind]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_beside_numbers_and_arrays(sign: str, other: str, dtype: str) -> None:
    """On either side: values are NumPy's, types PyTorch's (of arrays, NumPy's), the result is a tensor, the gradient flows."""
    array, value = np.array([1, 2, 3]).astype(dtype), OTHERS[other]
    value = np.array([2, 1, 3]).astype(dtype) if other == "tensor" else value
    common = promoted(dtype, value)
    if sign in "&|^" and "float" in common or dtype == "bool" and common == "bool" and sign in ("-", "//", "%", "**"):
        return  # neither library computes these
    x = mg.tensor(array, requires_grad="float" in dtype)
    for left in (True, False):
        y = mg.tensor(value) if other == "tensor" else value
        result = OPERATORS[sign](x, y) if left else OPERATORS[sign](y, x)
        a, b = array.astype(common), np.asarray(value).astype(common)
        expected = OPERATORS[sign](*((a, b) if left else (b, a)))
        assert isinstance(result, mg.Tensor)
        close(result.detach().numpy(), expected, 1e-6)
        integer_quotient, quotient = sign == "/" and "float" not in common, "float64" if isinstance(value, np.ndarray) and other != "tensor" else "float32"
        assert result.dtype.name == ("bool" if expected.dtype == bool and sign not in "&|^" else quotient if integer_quotient else common)
        if result.requires_grad:
            x.grad = None
            result.sum().backward()
            if sign not in ("//", "%"):  # whole quotients are kinks of these
                ends = b.astype(float)
                slope = differences(lambda v: OPERATORS[sign](*((v[0], ends) if left else (ends, v[0]))).sum(), [array.astype(float)])[0]
                close(x.grad.numpy(), slope, 1e-5)


@pytest.mark.parametrize("other", [o for o in OTHERS if o != "column"])
@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^"])
def test_operators_that_assign(sign: str, other: str) -> None:
    """`x op= y` writes into x, whose type stays."""
    array, value = np.array([3, 1, 2]), OTHERS[other]
    value = np.array([1, 2, 3], np.float32) if other == "tensor" else value
    bits = sign in "&|^"
    if bits and not np.issubdtype(np.asarray(value).dtype, np.integer):
        return
    x = y = mg.tensor(array, dtype=mg.int64 if bits else mg.float32)
    y = {"+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "//": operator.ifloordiv, "%": operator.imod,
         "**": operator.ipow, "&": operator.iand, "|": operator.ior, "^": operator.ixor}[sign](y, mg.tensor(value) if other == "tensor" else value)
    assert y is x and x._version == 1 and x.dtype is (mg.int64 if bits else mg.float32)
    close(x.numpy(), OPERATORS[sign](array, value), 1e-5)


@pytest.mark.parametrize("sign", ["-", "+", "abs", "~"])
def test_unary_operators(sign: str) -> None:
    f = {"-": operator.neg, "+": operator.pos, "abs": abs, "~": operator.invert}[sign]
    array = np.array([1, -2, 0])
    assert np.array_equal(f(mg.tensor(array)).numpy(), f(array))


def test_matmul_operator_beside_arrays() -> None:
    x, a = mg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True), np.arange(12.0).reshape(3, 4)
    for result, expected in ((x @ a, x.detach().numpy() @ a), (a.T @ x.T, a.T @ x.detach().numpy().T)):
        assert isinstance(result, mg.Tensor) and result.requires_grad
        assert np.array_equal(result.detach().numpy(), expected)


def test_shifts() -> None:
    x = mg.tensor([1, 2, 3])
    assert (x << 2).tolist() == [4, 8, 12] and (x >> 1).tolist() == [0, 1, 1]


# --------------------------------------------------------------------------------------------------------------- bad input


@samples(lambda s: isinstance(s.settings.get("dim"), int))
@pytest.mark.parametrize("dim", [9, -9])
def test_dimensions_out_of_range(sample: Sample, dim: int) -> None:
    arguments, settings = sample.bind([mg.tensor(a) for a in sample.arrays()], mg.tensor)
    with pytest.raises(IndexError, match=f"{dim}"):
        sample.forms(mg)["function"](*arguments, **{**settings, "dim": dim})


@samples(lambda s: s.elementwise and len(s.draws) > 1 and s.draws[0].shape == s.draws[1].shape == (5, 7))
def test_shapes_that_do_not_broadcast(sample: Sample) -> None:
    first, second, *rest = [mg.tensor(a) for a in sample.arrays()]
    for form in sample.forms(mg).values():
        with pytest.raises(RuntimeError, match=r"\(5, 7\)"):
            form(first, second[:, :3], *rest, **sample.settings)
    if (name := in_place_name(sample)) is not None:
        before = first.tolist()
        for other in (second[:, :3], second.expand(2, 5, 7)):
            with pytest.raises(RuntimeError):
                getattr(first, name)(other, *rest, **sample.settings)
        assert first.tolist() == before and first._version == 0


@samples(lambda s: s.elementwise and len(s.draws) > 1 and s.draws[0].shape == s.draws[1].shape == (5, 7))
@pytest.mark.parametrize("wrong", ["text", None, [1.0, 2.0], object()], ids=["str", "None", "list", "object"])
def test_operands_of_the_wrong_kind(sample: Sample, wrong: Any) -> None:
    if wrong is None and sample.name == "clamp":
        return  # None is no bound
    first, _, *rest = [mg.tensor(a) for a in sample.arrays()]
    with pytest.raises(TypeError):
        next(iter(sample.forms(mg).values()))(first, wrong, *rest, **sample.settings)
