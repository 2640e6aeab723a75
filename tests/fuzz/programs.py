"""Programs as data: leaves and statements that any library with PyTorch's API can run.

A statement is its Python source: what a report prints is what ran.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from . import table
from .functions import functions_of, spoil
from .statements import KINDS

MARGIN = 0.25  # what stands in the buffer of all leaves where there is no leaf


@dataclass(frozen=True)
class Leaf:
    """`window`: which part of the buffer `flat` the leaf is, if it is no tensor of its own. `probe`: what a program adds, as
    zeros, to a value whose gradient it keeps; the gradient that was kept is then this leaf's."""

    name: str
    value: np.ndarray
    window: str | None = None
    probe: bool = False

    @property
    def source(self):
        if self.window:
            return f"{self.name} = {self.window}.requires_grad_()"
        grad = "" if self.probe else ", requires_grad=True"
        return f"{self.name} = mg.tensor({self.value.tolist()}, dtype=mg.float64{grad})"


@dataclass(frozen=True)
class Statement:
    kind: str
    source: str


@dataclass(frozen=True)
class Program:
    """`indirect`: the leaves are only cloned, never written, so `autograd.grad` with respect to them makes sense.

    `asking` says how the gradient is asked for otherwise: see `asking.py`."""

    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    indirect: bool = False
    seed: int | None = None
    asking: str = "once"

    @property
    def source(self):
        lines = [leaf.source for leaf in self.leaves] + [s.source for s in self.statements]
        if self.in_one_buffer:
            lines.insert(0, f"flat = mg.tensor({self.buffer(self.point).tolist()}, dtype=mg.float64)")
        last = f"grads = mg.autograd.grad(loss, [{', '.join(leaf.name for leaf in self.leaves)}])" if self.indirect else "loss.backward()"
        return "\n".join([*lines, last + ("" if self.asking == "once" else f"  # {self.asking}")])

    @cached_property
    def code(self):
        return compile("\n".join(s.source for s in self.statements), f"<program {self.seed}>", "exec")

    @property
    def kinds(self):
        return {s.kind for s in self.statements}

    def may_be_refused(self, error):
        """Whether a library may decline the program with this error: one that is meant, and belongs to a kind of statement."""
        told = getattr(error, "what", None)
        errors = [entry.partition(": ") for kind in KINDS if kind.name in self.kinds for entry in kind.refuses]
        return told is not None and any(name in {c.__name__ for c in type(error).__mro__} and told.startswith(start) for name, _, start in errors)

    @property
    def careful(self):
        """Whether it does what could change values behind everybody's back."""
        return any(kind.name in self.kinds for kind in KINDS if kind.family not in ("core", "rooms"))

    @property
    def probing(self):
        """Which elements of the point are those of probes."""
        return np.concatenate([np.full(leaf.value.size, leaf.probe) for leaf in self.leaves])

    @property
    def point(self):
        """All leaf values, end to end."""
        return np.concatenate([leaf.value.ravel() for leaf in self.leaves])

    def leaf_arrays(self, point):
        parts = np.split(point, np.cumsum([leaf.value.size for leaf in self.leaves])[:-1])
        return [part.reshape(leaf.value.shape) for part, leaf in zip(parts, self.leaves)]

    def at(self, point):
        leaves = (replace(leaf, value=value) for leaf, value in zip(self.leaves, self.leaf_arrays(point)))
        return replace(self, leaves=tuple(leaves))

    def without(self, i):
        """Without one statement or leaf, the statements counted first."""
        n = len(self.statements)
        if i < n:
            return replace(self, statements=self.statements[:i] + self.statements[i + 1:])
        return replace(self, leaves=self.leaves[:i - n] + self.leaves[i - n + 1:])

    # Leaves that are windows of one buffer.

    @property
    def in_one_buffer(self):
        return any(leaf.window for leaf in self.leaves)

    def buffer(self, point):
        flat = np.full(BUFFER, MARGIN)
        for leaf, value in zip(self.leaves, self.leaf_arrays(point)):
            if leaf.window:
                eval(leaf.window, {"flat": flat})[...] = value
        return flat

    # Running.

    def start(self, library, point):
        """The leaves on a library, in their order, and what else there is before the first statement."""
        names = {}
        if self.in_one_buffer:
            names["flat"] = library.tensor(self.buffer(point).tolist(), dtype=library.float64)
        for leaf, value in zip(self.leaves, self.leaf_arrays(point)):
            if leaf.window:
                names[leaf.name] = eval(leaf.window, names).requires_grad_()
            else:
                names[leaf.name] = library.tensor(value.tolist(), dtype=library.float64, requires_grad=not leaf.probe)
        names.pop("__builtins__", None)
        if hasattr(names.get("flat"), "live"):  # in the mirror: it has no part in the leaves' history until one of them is written
            names["flat"].live = "follows"
        return [names[leaf.name] for leaf in self.leaves], names

    def run(self, library, names):
        """Run on the tensors of any library; the names it leaves behind, `loss` among them."""
        names = names_of(library) | names | {"kept": Kept()}
        exec(self.code, names)
        return names


BUFFER = 24  # elements of the buffer


class Retained:
    """The gradient that a tensor keeps itself."""

    def __init__(self, tensor):
        self.tensor = tensor

    def forget(self):
        self.tensor.grad = None

    def total(self):
        return self.tensor.grad


class Seen:
    """The sum of the gradients that a hook was shown."""

    def __init__(self):
        self.found = []

    def see(self, g):
        self.found.append(g.detach().clone())

    def forget(self):
        self.found.clear()

    def total(self):
        return sum(self.found[1:], self.found[0]) if self.found else None


class Kept:
    """What a run leaves for whoever asks for gradients: those that it keeps itself, by the name of a probe, and its hooks."""

    def __init__(self):
        self.gradients, self.handles = {}, []

    def without_hooks(self):
        """A second sweep goes through the same versions, and is not what the hooks are there for."""
        while self.handles:
            self.handles.pop().remove()

_names: dict[object, dict] = {}


def names_of(library):
    """What a program may call: the library, a float64 constant, and custom functions defined in its terms."""
    if library in _names:
        return _names[library]

    def f64(values):
        return library.tensor(values, dtype=library.float64)

    def near(values, x):
        """These values, each moved a little by an element of x."""
        values, n = np.array(values), x.reshape(-1).shape[0]
        moved = x.reshape(-1)[[i % n for i in range(values.size)]].reshape(values.shape)
        return f64(values.tolist()) + library.tanh(moved) * 0.1

    def weighed(x):
        """The sum of all elements with a weight for each."""
        size = x.reshape(-1).shape[0]
        return (x.reshape(-1) * f64(np.cos(1.7 * np.arange(size) + 0.3).round(3).tolist())).sum()

    own = library.OWN_NAMES if hasattr(library, "OWN_NAMES") else own_names(library)
    _names[library] = {"mg": library} | {f.__name__: f for f in (f64, near, weighed)} | functions_of(library) | own
    return _names[library]


def own_names(library):
    """What programs do by name, and the mirror in its own way: samples, sweeps, hooks, running statistics, probes."""
    def call(key, *xs, form="function"):
        return table.on_tensors(library, key, xs, form)

    def write(key, *xs):
        table.write_on_tensors(library, key, xs)

    def into(key, out, *xs):
        table.out_on_tensors(library, key, out, xs)

    def sweep(x, **options):
        if x.requires_grad:
            x.sum().backward(retain_graph=True, **options)

    def watch(x, change=False):
        """A hook that replaces the adjoint by the same numbers, as a result or in place."""
        if x.requires_grad:
            x.register_hook((lambda g: None if g.mul_(1.0) is g else g) if change else lambda g: g * 1.0)

    def batch_norm(x, mean, var):
        return library.nn.functional.batch_norm(x, mean, var, training=True)

    def hook(x, factor, how, kept):
        """A hook that scales the adjoint of x as it is now."""
        if x.requires_grad:
            factor = library.tensor(factor, dtype=library.float64)
            kept.handles.append(x.register_hook(partial(HOOKS[how], factor)))
            if how == "removed":
                kept.handles.pop().remove()

    def keep(x, probe, name, how, kept):
        """Keeps the gradient of x as it is now, under the name of a probe."""
        if not x.requires_grad:
            return
        if how == "retain":
            x.retain_grad()
            kept.gradients[name] = Retained(x)
        else:
            kept.gradients[name] = Seen()
            x.register_hook(kept.gradients[name].see)

    def as_data(values):
        """A constant, and a warning that it is one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return names_of(library)["f64"](values)

    def number(text, **given):
        """An expression in which a tensor stands for a number; in C order, because what `reshape` gives depends on it."""
        return eval(text, {"mg": library, "F": library.nn.functional, "f64": names_of(library)["f64"], **given}).contiguous()

    def checkpoint(function, *xs):
        return library.utils.checkpoint.checkpoint(function, *xs, use_reentrant=False)

    return {f.__name__: f for f in (call, write, into, sweep, watch, batch_norm, hook, keep, as_data, number, checkpoint)} | {
        "spoil": partial(spoil, library), "to_vector": library.nn.utils.parameters_to_vector, "from_vector": library.nn.utils.vector_to_parameters}


def _in_place(factor, g):
    g.mul_(factor)


# Ways for a hook to scale a gradient.
HOOKS = {
    "returned": lambda factor, g: g * factor,
    "in place": _in_place,
    "in place, returned": lambda factor, g: g.mul_(factor),
    "in pieces": lambda factor, g: _in_place(factor, g[...]),
    "removed": lambda factor, g: g * factor,
}
