"""Is a library's gradient of a program right? Finite differences of the same statements on NumPy arrays say so."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

import mutagrad
from mutagrad.autograd import forward_ad

from . import mirror
from .asking import gradients
from .generator import generate

STEP = 2e-4
TOLERANCE = 1e-6


class Discarded(Exception):
    """Finite differences cannot judge this program."""


@dataclass
class Verdict:
    """`kind` is right, wrong, error, diverged (the loss itself differs), refused (by an error that is meant) or discarded."""

    kind: str
    expected: object = None
    got: object = None
    message: str = ""

    @property
    def failed(self):
        return self.kind in ("wrong", "error", "diverged")


# What the arrays say.


def differences(f, point, directions):
    """Derivatives of f along the directions: central differences of two steps, extrapolated.

    At a kink, where these are alike, second differences grow with the step, and not with its square."""
    out, here = [], f(point)
    for u in directions:
        close_by, far_off = ((f(point + h * u), f(point - h * u)) for h in (STEP, 2 * STEP))
        near, far = (close_by[0] - close_by[1]) / (2 * STEP), (far_off[0] - far_off[1]) / (4 * STEP)
        bend = (sum(far_off) - 2 * here - 4 * (sum(close_by) - 2 * here)) / STEP
        out.append(((4 * near - far) / 3, max(abs(far - near), 10 * abs(bend))))
    values, errors = np.array(out).T
    if not np.isfinite(values).all() or (errors > 1e-3 * (1 + np.abs(values).max())).any():
        raise Discarded("too curved")
    return values


class OnArrays:
    """The program on NumPy arrays, as a function of its leaf values. `places`: which element of the first value of a leaf each of
    its elements is in the end, where the program has changed how it is looked at."""

    def __init__(self, program):
        self.program, self.tape = program, mirror.Tape()
        self.value = self.run(program.point, self.tape)

    def run(self, point, tape):
        with mirror.taped(tape), np.errstate(all="ignore"):
            leaves, names = self.program.start(mirror, point)
            value = float(self.program.run(mirror, names)["loss"].a)
        self.places = [leaf.places for leaf in leaves]
        return value

    def __call__(self, point):
        tape = mirror.Tape(self.tape.constants)
        try:
            value = self.run(point, tape)
        except Exception as e:
            raise Discarded(f"a perturbed run raises: {e}") from None
        if tape.decisions != self.tape.decisions:
            raise Discarded("a kink is too near")
        return value

    def gradient(self):
        point = self.program.point
        return differences(self, point, np.eye(point.size))


# What the library says.


def first_order(program, library, point, places=None):
    leaves, names = program.start(library, point)
    names = program.run(library, names)
    loss, before = names["loss"], copies(program, library, names)
    found = gradients(program, library, loss, leaves, names["kept"])
    for name, (x, copy) in before.items():
        assert bool((x == copy).all()), f"the sweep has changed the values of {name}"
    return loss.item(), flat(program, found, leaves, places)


def copies(program, library, names):
    """Of all values that a sweep must leave alone, where the program does what may endanger them."""
    if not program.careful:
        return {}
    return {name: (x.detach(), x.detach().clone()) for name, x in names.items() if isinstance(x, library.Tensor)}


def flat(program, gradients, leaves, places):
    """All gradients, end to end; none at all is zero. NaN where a program has kept no gradient for a probe."""
    missing = [np.nan if leaf.probe else 0.0 for leaf in program.leaves]
    arrays = [np.full(tuple(x.shape), none) if g is None else np.array(g.detach().clone().tolist())
              for g, x, none in zip(gradients, leaves, missing)]
    assert all(a.shape == tuple(x.shape) for a, x in zip(arrays, leaves)), "a gradient has another shape than its leaf"
    for a, where in zip(arrays, places or ()):
        a.reshape(-1)[where.ravel()] = a.ravel().copy()
    return np.concatenate([a.ravel() for a in arrays])


def second_order(program, library, weights, places):
    """The derivative of sum(weights * gradient)."""
    leaves, names = program.start(library, program.point)
    names = program.run(library, names)
    first = gradients(program, library, names["loss"], leaves, names["kept"], create_graph=True)
    names["kept"].without_hooks()
    parts = [w.ravel()[where] for w, where in zip(program.leaf_arrays(weights), places)]
    zero = library.tensor(0.0, dtype=library.float64)
    dot = sum([(g * library.tensor(w.tolist(), dtype=library.float64)).sum()
               for g, w in zip(first, parts) if g is not None], zero)
    return flat(program, gradients(replace(program, asking="once"), library, dot, leaves, names["kept"]), leaves, places)


# The verdict.


def judge(program, library, *, order=1, around=nullcontext, full=True):
    """Compare the library with finite differences; `around()` is a context that the library's runs happen in."""
    try:
        reference = OnArrays(program)
        expected = reference.gradient()
    except Discarded as e:
        return Verdict("discarded", message=str(e))
    try:
        with around():
            loss, got = first_order(program, library, program.point, reference.places)
            got = np.where(np.isnan(got) & program.probing, expected, got)
            if abs(loss - reference.value) > 1e-9 * (1 + abs(reference.value)):
                return Verdict("diverged", reference.value, loss)
            if order == 1 or not close(got, expected):
                return compared(expected, got)
            return judge_second(program, library, reference, full)
    except Discarded as e:
        return Verdict("discarded", message=str(e))
    except Exception as e:
        return Verdict("refused" if program.may_be_refused(e) else "error", expected, message=f"{type(e).__name__}: {e}")


def judge_second(program, library, reference, full):
    """Differences of the library's first order, just found right here; along all axes, or in two directions."""
    size = program.point.size
    rng = np.random.default_rng(size)
    weights = rng.uniform(0.5, 1.5, size)
    directions = np.eye(size) if full else rng.uniform(-1, 1, (2, size))

    def slope(point):
        reference(point)  # raises where a kink is too near
        return weights @ first_order(program, library, point, reference.places)[1]

    expected = differences(slope, program.point, directions)
    try:
        return compared(expected, directions @ second_order(program, library, weights, reference.places))
    except NotImplementedError as e:
        raise Discarded(f"no second derivative: {e}") from None


def judge_forward(program, library, carry):
    """The derivative along one direction, as `carry(program, primals, tangents)` finds it, against finite differences."""
    direction = np.random.default_rng(program.point.size).normal(size=program.point.size)
    try:
        expected = OnArrays(program).gradient() @ direction
    except Discarded as e:
        return Verdict("discarded", message=str(e))
    try:
        primals, tangents = ([library.tensor(a.tolist(), dtype=library.float64) for a in program.leaf_arrays(v)]
                             for v in (program.point, direction))
        found = carry(program, tuple(primals), tuple(tangents))
    except NotImplementedError as e:  # forward mode differentiates the reverse
        if "no second derivative" not in str(e):
            raise
        return Verdict("discarded", message=str(e))
    except Exception as e:
        return Verdict("error", expected, message=f"{type(e).__name__}: {e}")
    return compared(np.array([expected]), np.array([0.0 if found is None else found.item()]))


def by_function(program, primals, tangents):
    """`func.jvp`."""
    names = [leaf.name for leaf in program.leaves]
    return mutagrad.func.jvp(lambda *xs: program.run(mutagrad, dict(zip(names, xs)))["loss"], primals, tangents)[1]


def by_duals(program, primals, tangents):
    """Dual numbers."""
    with forward_ad.dual_level():
        duals = map(forward_ad.make_dual, primals, tangents)
        loss = program.run(mutagrad, {leaf.name: x for leaf, x in zip(program.leaves, duals)})["loss"]
        return forward_ad.unpack_dual(loss).tangent


def compared(expected, got):
    return Verdict("right" if close(got, expected) else "wrong", expected, got)


def close(got, expected):
    return bool(np.isfinite(got).all() and (abs(got - expected) <= TOLERANCE * (1 + np.abs(expected).max())).all())


def shrunk(program, fails):
    """Drop statements and leaves one by one, last first, as long as what is left still fails."""
    i = size(program)
    while i:
        i -= 1
        smaller = program.without(i)
        if still_runs(smaller) and fails(smaller):
            program, i = smaller, size(smaller)
    return program


def size(program):
    return len(program.statements) + len(program.leaves)


def still_runs(program):
    try:
        return len(program.leaves) > 0 and np.isfinite(OnArrays(program).value)
    except Exception:
        return False


def report(program, verdict, library, *, order=1, around=nullcontext):
    """The program, what it should have given, and a smaller one that fails as well."""
    def fails(smaller):
        return judge(smaller, library, order=order, around=around).kind == verdict.kind

    small = shrunk(program, fails)
    again = judge(small, library, order=order, around=around)
    return "\n".join([
        f"seed {program.seed}, order {order}: {verdict.kind} {verdict.message}", program.source, "",
        described(verdict), "", f"smallest that fails: {again.message}", small.source, "", described(again)])


def described(verdict):
    with np.printoptions(precision=6, suppress=True, linewidth=120):
        return f"expected {verdict.expected}\ngot      {verdict.got}"


# Many programs.


def count_failures(seeds, order=1, families=(), around=nullcontext, enough=None):
    """How many of these seeds' programs get a wrong gradient, or none; `enough` of them are counted, and no more are tried."""
    programs = (generate(seed, order=order, families=families) for seed in seeds)
    verdicts = (judge(p, mutagrad, order=order, around=around, full=False) for p in programs)
    return sum(1 for _ in islice((v for v in verdicts if v.failed), enough))
