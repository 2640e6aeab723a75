"""Is a library's gradient of a program right? Finite differences of the same statements on NumPy arrays say so."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from . import mirror
from .generator import generate
from .mirror import Mirror

STEP = 2e-4
TOLERANCE = 1e-6


class Discarded(Exception):
    """Finite differences cannot judge this program."""


@dataclass
class Verdict:
    """`kind` is right, wrong, error, diverged (the loss itself differs) or discarded."""

    kind: str
    expected: object = None
    got: object = None
    message: str = ""

    @property
    def failed(self):
        return self.kind in ("wrong", "error", "diverged")


# What the arrays say.


def differences(f, point, directions):
    """Derivatives of f along the directions: central differences of two steps, extrapolated."""
    out = []
    for u in directions:
        near = (f(point + STEP * u) - f(point - STEP * u)) / (2 * STEP)
        far = (f(point + 2 * STEP * u) - f(point - 2 * STEP * u)) / (4 * STEP)
        out.append(((4 * near - far) / 3, abs(far - near)))
    values, errors = np.array(out).T
    if not np.isfinite(values).all() or (errors > 1e-3 * (1 + np.abs(values).max())).any():
        raise Discarded("too curved")
    return values


class OnArrays:
    """The program on NumPy arrays, as a function of its leaf values."""

    def __init__(self, program):
        self.program, self.tape = program, mirror.Tape()
        self.value = self.run(program.point, self.tape)

    def run(self, point, tape):
        with mirror.taped(tape), np.errstate(all="ignore"):
            leaves = [Mirror(a.copy()) for a in self.program.leaf_arrays(point)]
            return float(self.program.run(mirror, leaves)["loss"].a)

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


def make_leaves(program, library, point):
    return [library.tensor(a.tolist(), dtype=library.float64, requires_grad=True) for a in program.leaf_arrays(point)]


def flat(gradients, leaves):
    """All gradients, end to end; none at all is zero."""
    arrays = [np.zeros(tuple(x.shape)) if g is None else np.array(g.detach().clone().tolist()) for g, x in zip(gradients, leaves)]
    assert all(a.shape == tuple(x.shape) for a, x in zip(arrays, leaves)), "a gradient has another shape than its leaf"
    return np.concatenate([a.ravel() for a in arrays])


def gradients(program, library, loss, leaves, **options):
    if not loss.requires_grad:  # every leaf was overwritten
        return [None] * len(leaves)
    if program.indirect:
        return library.autograd.grad(loss, leaves, allow_unused=True, **options)
    for x in leaves:
        x.grad = None
    loss.backward(**options)
    return [x.grad for x in leaves]


def first_order(program, library, point):
    leaves = make_leaves(program, library, point)
    loss = program.run(library, leaves)["loss"]
    return loss.item(), flat(gradients(program, library, loss, leaves), leaves)


def second_order(program, library, weights):
    """The derivative of sum(weights * gradient)."""
    leaves = make_leaves(program, library, program.point)
    loss = program.run(library, leaves)["loss"]
    first = gradients(program, library, loss, leaves, create_graph=True)
    parts = program.leaf_arrays(weights)
    zero = library.tensor(0.0, dtype=library.float64)
    dot = sum([(g * library.tensor(w.tolist(), dtype=library.float64)).sum()
               for g, w in zip(first, parts) if g is not None], zero)
    return flat(gradients(program, library, dot, leaves), leaves)


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
            loss, got = first_order(program, library, program.point)
            if abs(loss - reference.value) > 1e-9 * (1 + abs(reference.value)):
                return Verdict("diverged", reference.value, loss)
            if order == 1 or not close(got, expected):
                return compared(expected, got)
            return judge_second(program, library, reference, full)
    except Discarded as e:
        return Verdict("discarded", message=str(e))
    except Exception as e:
        return Verdict("error", expected, message=f"{type(e).__name__}: {e}")


def judge_second(program, library, reference, full):
    """Differences of the library's first order, just found right here; along all axes, or in two directions."""
    size = program.point.size
    rng = np.random.default_rng(size)
    weights = rng.uniform(0.5, 1.5, size)
    directions = np.eye(size) if full else rng.uniform(-1, 1, (2, size))

    def slope(point):
        reference(point)  # raises where a kink is too near
        return weights @ first_order(program, library, point)[1]

    expected = differences(slope, program.point, directions)
    try:
        return compared(expected, directions @ second_order(program, library, weights))
    except NotImplementedError as e:
        raise Discarded(f"no second derivative: {e}") from None


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


def count_failures(seeds, order=1, library=None, rooms=False):
    """How many of these seeds' programs get a wrong gradient, or none."""
    return sum(n for kind, n in tally(seeds, library or default_library(), order=order, rooms=rooms).items() if kind in FAILURES)


FAILURES = ("wrong", "error", "diverged")


def default_library():
    import mutagrad

    return mutagrad


def tally(seeds, library, *, order=1, around=nullcontext, plain=False, rooms=False):
    """Verdicts of many programs, counted by kind."""
    programs = (generate(seed, order=order, plain=plain, rooms=rooms) for seed in seeds)
    return Counter(judge(p, library, order=order, around=around, full=False).kind for p in programs)
