"""Programs as data: leaves and statements that any library with PyTorch's API can run.

A statement is its Python source: what a report prints is what ran.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from . import table


@dataclass(frozen=True)
class Leaf:
    name: str
    value: np.ndarray

    @property
    def source(self):
        return f"{self.name} = mg.tensor({self.value.tolist()}, dtype=mg.float64, requires_grad=True)"


@dataclass(frozen=True)
class Statement:
    kind: str
    source: str


@dataclass(frozen=True)
class Program:
    """`indirect`: the leaves are only cloned, never written, so `autograd.grad` with respect to them makes sense."""

    leaves: tuple[Leaf, ...]
    statements: tuple[Statement, ...]
    indirect: bool = False
    seed: int | None = None

    @property
    def source(self):
        lines = [leaf.source for leaf in self.leaves] + [s.source for s in self.statements]
        last = f"grads = mg.autograd.grad(loss, [{', '.join(leaf.name for leaf in self.leaves)}])"
        return "\n".join([*lines, last if self.indirect else "loss.backward()"])

    @cached_property
    def code(self):
        return compile("\n".join(s.source for s in self.statements), f"<program {self.seed}>", "exec")

    @property
    def kinds(self):
        return {s.kind for s in self.statements}

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

    def run(self, library, leaves):
        """Run on the tensors of any library; the names it leaves behind, `loss` among them."""
        names = names_of(library) | {leaf.name: x for leaf, x in zip(self.leaves, leaves)}
        exec(self.code, names)
        return names


_names: dict[object, dict] = {}


def names_of(library):
    """What a program may call: the library, a float64 constant, and custom functions defined in its terms."""
    if library in _names:
        return _names[library]

    class ScaledSin(library.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return library.sin(x * k)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g * ctx.k * library.cos(x * ctx.k), None

    class InPlaceTanh(library.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            y.tanh_()
            ctx.mark_dirty(y)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            out, = ctx.saved_tensors
            return g * (1 - out * out)

    class AddSquare(library.autograd.Function):
        """y += x * x, where the two do not overlap."""

        @staticmethod
        def forward(ctx, y, x):
            ctx.save_for_backward(x)
            ctx.mark_dirty(y)
            return y.add_(x * x)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return g, 2 * g * x

    class SinCos(library.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return library.sin(x), library.cos(x)

        @staticmethod
        def backward(ctx, g_sin, g_cos):
            x, = ctx.saved_tensors
            return g_sin * library.cos(x) - g_cos * library.sin(x)

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

    functions = (ScaledSin, InPlaceTanh, AddSquare, SinCos, f64, near, weighed)
    own = library.OWN_NAMES if hasattr(library, "OWN_NAMES") else own_names(library)
    _names[library] = {"mg": library} | {f.__name__: f for f in functions} | own
    return _names[library]


def own_names(library):
    """What programs do by name, and the mirror in its own way: samples, sweeps, hooks and running statistics."""
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

    def checkpoint(function, *xs):
        return library.utils.checkpoint.checkpoint(function, *xs, use_reentrant=False)

    return {f.__name__: f for f in (call, write, into, sweep, watch, batch_norm, checkpoint)}
