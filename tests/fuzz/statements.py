"""The kinds of statement: each function writes one at random, in terms of the variables that its generator knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kind(NamedTuple):
    """`family`: programs have the core's kinds, and those of the families that are asked for. `refuses`: the errors
    with which the library may decline a program that has such a statement, instead of giving the gradient: names of classes,
    and perhaps how the message begins."""

    name: str
    weight: float
    writes: bool
    unrecorded: bool
    family: str
    refuses: tuple[str, ...]
    make: object


KINDS: list[Kind] = []


def kind(weight, *, writes=False, unrecorded=False, family="core", refuses=()):
    """Register a function of a generator that returns a statement's source, or None where it finds no operands."""

    def register(make):
        KINDS.append(Kind(make.__name__, weight, writes, unrecorded, family, refuses, make))
        return make

    return register


def broadcasts_into(shape, target):
    return len(shape) <= len(target) and all(m in (1, n) for m, n in zip(shape[::-1], target[::-1]))


def bare(expression):
    """Without the parentheses that only an operand needs."""
    whole = expression.startswith("(") and expression.endswith(")") and expression.count(")") == 1
    return expression[1:-1] if whole else expression


# Out of place.


@kind(4)
def binary(g):
    x = g.variable()
    shape = g.shape(x)
    y = g.value(shape) if g.chance(0.7) else g.variable()
    return f"{g.new()} = " + g.r.choice([
        f"{x} + {y}", f"{x} - {y}", f"{x} * {y}", f"{x} * {y}", f"{y} * {x}", f"{x} / (1.5 + {y} * {y})",
        f"{g.scalar()} - {x}", f"{g.scalar()} / (2.0 + {x} * {x})"])


@kind(3.5)
def unary(g):
    x = g.variable()
    return f"{g.new()} = " + g.r.choice([
        f"mg.sin({x})", f"{x}.cos()", f"{x}.tanh()", f"mg.tanh({x})", f"{x}.square()", f"mg.exp({x}.tanh())", f"-{x}",
        f"{x}.abs()", f"{x}.relu()", f"{x}.sigmoid()", f"{x}.clamp(-0.7, 0.8)"])


@kind(1.5)
def choose(g):
    x = g.variable(lambda a: a.size)
    if x is None:
        return None
    shape = g.shape(x)
    if g.chance(0.3):
        return f"{g.new()} = mg.maximum({x}, {g.tensor_value(shape)})"
    return f"{g.new()} = mg.where({bare(g.mask(shape))}, {x}, {g.value(shape)})"


@kind(2.5)
def reduce(g):
    x = g.variable(lambda a: a.ndim > 0)
    if x is None:
        return None
    dim = g.r.randrange(len(g.shape(x)))
    keep = ", keepdim=True" if g.chance(0.4) else ""
    return f"{g.new()} = {x}." + g.r.choice([
        "sum()", "mean()", "prod()", "max()", "min()", f"sum({dim}{keep})", f"mean({dim}{keep})", f"prod({dim}{keep})",
        f"amax({dim}{keep})", f"amin({dim}{keep})", f"max({dim}{keep}).values", f"logsumexp({dim}{keep})"])


@kind(2)
def rearrange(g):
    x = g.variable(lambda a: a.ndim > 0)
    if x is None:
        return None
    dim = g.r.randrange(len(g.shape(x)))
    return f"{g.new()} = {x}." + g.r.choice([
        f"cumsum({dim})", f"softmax({dim})", f"sort({dim}).values", f"flip({dim})", f"roll(1, {dim})",
        f"roll(-1, {dim})", "clone()", "clone()"])


@kind(1.5)
def matmul(g):
    x = g.variable(lambda a: a.ndim in (1, 2))
    if x is None:
        return None
    y = g.variable(lambda a: a.ndim in (1, 2) and a.shape[max(a.ndim - 2, 0)] == g.shape(x)[-1])
    return f"{g.new()} = {x} @ {y}" if y else f"{g.new()} = {x} @ {x}.T" if len(g.shape(x)) == 2 else None


@kind(1.5)
def join(g):
    x = g.variable()
    shape = g.shape(x)
    dim = g.r.randrange(len(shape)) if shape else 0
    if not shape or g.chance(0.4):
        return f"{g.new()} = mg.stack([{x}, {bare(g.tensor_value(shape))}], {g.r.choice([0, len(shape)])})"
    return f"{g.new()} = mg.cat([{x}, {bare(g.tensor_value(shape))}], {dim})"


@kind(2.5)
def indexed_read(g):
    x = g.variable(lambda a: a.ndim > 0 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    dim = g.r.randrange(len(shape))
    index = f"mg.tensor({g.indices(shape[dim])})"
    full = np.array([g.r.randrange(shape[dim]) for _ in range(int(np.prod(shape)))]).reshape(shape).tolist()
    reads = [f"{x}[{g.indices(shape[0])}]", f"{x}[mg.tensor({g.indices(shape[0])})]", f"{x}[{bare(g.mask(shape))}]",
             f"{x}.index_select({dim}, {index})", f"{x}.gather({dim}, mg.tensor({full}))",
             f"{x}.take_along_dim(mg.tensor({full}), {dim})"]
    if len(shape) == 2:
        k = g.r.randint(1, 4)
        reads += [f"{x}[{g.indices(shape[0], k)}, {g.indices(shape[1], k)}]", f"{x}[:, {g.indices(shape[1])}]",
                  f"{x}[{g.basic_token(shape[0]).replace('-', '')}, {g.indices(shape[1])}]"]
    return f"{g.new()} = {g.r.choice(reads)}"


@kind(1)
def buffer(g):
    shape = g.shape(g.variable())
    return f"{g.new()} = {g.literal(shape)}"


# Views and aliases.


@kind(5)
def view(g):
    return f"{g.new()} = {g.window(g.variable(), g.r.choice([1, 1, 1, 2, 2, 3]))}"


@kind(1.5)
def views(g):
    x = g.variable(lambda a: a.ndim > 0 and max(a.shape) >= 2 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    dim = shape.index(max(shape))
    n = shape[dim]
    call, pieces = g.r.choice([(f"unbind({dim})", n), (f"split({n - 1}, {dim})", 2), (f"chunk(2, {dim})", 2)])
    return f"{', '.join(g.new() for _ in range(pieces))} = {x}.{call}"


@kind(1)
def alias(g):
    return f"{g.new()} = {g.variable()}"


@kind(0.8)
def expand(g):
    x = g.variable(lambda a: a.ndim < 2 or 1 in a.shape)
    if x is None:
        return None
    shape = g.shape(x)
    wide = ((2,) if len(shape) < 2 else ()) + tuple(2 if n == 1 else n for n in shape)
    return f"{g.new()} = {x}.expand({', '.join(map(str, wide))})"


# Writes in place.


@kind(6, writes=True)
def update(g):
    x = g.target()
    y = g.value(g.shape(x))
    return g.r.choice([
        f"{x}.add_({bare(y)})", f"{x}.add_({y}, alpha={g.scalar()})", f"{x}.sub_({bare(y)})", f"{x}.mul_({bare(y)})",
        f"{x}.mul_({bare(y)})", f"{x}.div_(1.5 + {y} * {y})"])


@kind(5, writes=True)
def augmented(g):
    x = g.variable()
    if g.chance(0.7):
        x += f"[{g.basic_index(g.shape(x))}]"
    y = g.value(g.shape(x))
    return g.r.choice([f"{x} += {bare(y)}", f"{x} -= {bare(y)}", f"{x} *= {bare(y)}", f"{x} /= 1.5 + {y} * {y}"])


@kind(3.5, writes=True)
def unary_in_place(g):
    return g.target() + g.r.choice([
        ".sin_()", ".sin_()", ".cos_()", ".tanh_()", ".tanh_().exp_()", ".exp_()", ".square_()", ".neg_()", ".abs_()",
        ".sigmoid_()", ".clamp_(-0.6, 0.7)", ".relu_()"])


@kind(1.5, writes=True)
def overwrite(g):
    x = g.target()
    scalar = g.variable(lambda a: a.ndim == 0)
    return x + g.r.choice([".zero_()", f".fill_({g.scalar()})", f".fill_({scalar or 0.5})"])


@kind(2.5, writes=True)
def copy(g):
    x = g.target()
    shape = g.shape(x)
    y = bare(g.value(shape))
    return f"{x}.copy_({y})" if not y.lstrip("-")[0].isdigit() else f"{x}.copy_({g.literal(shape)})"


@kind(5, writes=True)
def assign(g):
    x = g.variable() if g.chance(0.8) else g.window(g.variable(), 1)
    index = g.basic_index(g.shape(x))
    return f"{x}[{index}] = {bare(g.value(g.shape(f'{x}[{index}]')))}"


@kind(3, writes=True)
def overlap(g):
    x = g.variable(lambda a: a.ndim > 0 and a.shape[0] > 1)
    if x is None:
        return None
    forms = ["{x}[1:] = {x}[:-1] * {s}", "{x}[:-1] = {x}[1:]", "{x}[1:] += {x}[:-1]", "{x}[:-1] *= {x}[1:]",
             "{x}.mul_({x}[0])", "{x}.add_({x}[-1:])", "{x} *= {x}", "{x}.copy_({x}.flip(0))", "{x}[1:].sub_({x}[:-1])",
             "{x}.sub_({x}[1])", "{x}[1:].copy_(mg.sin({x}[:-1]))", "{x}.mul_({x})"]
    shape = g.shape(x)
    if len(shape) == 2 and shape[0] == shape[1]:
        forms += ["{x}.copy_({x}.T)", "{x}.add_({x}.T)", "{x} *= {x}.T", "{x}[0] = {x}[:, 0]",
                  "{x}.diagonal().mul_({x}[0])"]
    return g.r.choice(forms).format(x=x, s=g.scalar())


# Indexed writes.


@kind(5, writes=True)
def indexed_write(g):
    x = g.variable(lambda a: a.ndim > 0 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    rows = g.indices(shape[0], unique=g.chance(0.6))
    forms = [f"{x}[{rows}]", f"{x}[mg.tensor({rows})]", f"{x}[{bare(g.mask(shape))}]", f"{x}[{bare(g.mask(shape))}]"]
    if len(shape) == 2:
        k = g.r.randint(1, 3)
        columns = g.indices(shape[1], unique=g.chance(0.6))
        forms += [f"{x}[{g.indices(shape[0], k)}, {g.indices(shape[1], k)}]", f"{x}[:, {columns}]",
                  f"{x}[1:, mg.tensor({columns})]", f"{x}[{bare(g.mask(shape[:1]))}]"]
    place = g.r.choice(forms)
    y = bare(g.value(g.shape(place)))
    return f"{place} {g.r.choice(['=', '=', '+=', '*=', '-='])} {y}"


@kind(4, writes=True)
def index_method(g):
    x = g.variable(lambda a: a.ndim > 0 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    if g.chance(0.25):
        return masked_fill(g, x, shape)
    dim = g.r.randrange(len(shape))
    name = g.r.choice(["index_put_"] * 2 + ["index_add_", "index_copy_", "index_fill_", "scatter_", "scatter_add_"])
    adds = "add" in name or name == "index_put_"
    rows = g.indices(shape[dim], unique=not adds and g.chance(0.7))
    window = shape[:dim] + (len(rows),) + shape[dim + 1:]
    if name == "index_put_":
        rows = g.indices(shape[0])
        value = g.value((len(rows), *shape[1:]))
        value = f64_if_number(bare(value))
        return f"{x}.index_put_((mg.tensor({rows}),), {value}, accumulate={g.chance(0.7)})"
    if name == "index_fill_":
        return f"{x}.index_fill_({dim}, mg.tensor({rows}), {g.variable(lambda a: a.ndim == 0) or g.scalar()})"
    if name.startswith("index"):
        return f"{x}.{name}({dim}, mg.tensor({rows}), {bare(g.tensor_value(window))})"
    lines = [g.indices(shape[dim], len(rows), unique=not adds) for _ in range(int(np.prod(window)) // len(rows))]
    index = np.moveaxis(np.array(lines).reshape(*shape[:dim], *shape[dim + 1:], -1), -1, dim)
    return f"{x}.{name}({dim}, mg.tensor({index.tolist()}), {bare(g.tensor_value(index.shape))})"


def f64_if_number(y):
    return f"f64({y})" if y.lstrip("-")[0].isdigit() and y.lstrip("-").replace(".", "").isdigit() else y


def masked_fill(g, x, shape):
    value = g.variable(lambda a: a.ndim == 0) if g.chance(0.5) else None
    return f"{x}.masked_fill_({bare(g.mask(shape))}, {value or g.scalar()})"


# Several statements in one.


@kind(2.5, writes=True)
def loop(g):
    x = g.variable(lambda a: a.ndim > 0 and a.shape[0] > 1)
    if x is None:
        return None
    n = g.shape(x)[0]
    y = g.variable(lambda a: a.ndim > 0 and a.shape[0] == n and broadcasts_into(a.shape[1:], g.shape(x)[1:])) or x
    return g.r.choice([
        f"for i in range(1, {n}):\n    {x}[i] = {x}[i] * 0.5 + mg.sin({x}[i - 1])",
        f"for i in range({n}):\n    {x}[i] *= {y}[i]",
        f"for i in range({n - 1}):\n    {x}[i + 1] += {x}[i] * {y}[i]",
        f"for row in {x}:\n    row.mul_({g.scalar()})",
        f"for i in range({n}):\n    {x}[i].sub_({y}[{n - 1} - i] * 0.5)",
        f"for _ in range(3):\n    {x}.mul_(0.8).add_({x}.sin(), alpha=0.3)",
    ])


@kind(1, writes=True)
def swap(g):
    x = g.variable(lambda a: a.ndim > 0 and a.shape[0] > 1)
    if x is None:
        return None
    return g.r.choice([f"{x}[0], {x}[1] = {x}[1].clone(), {x}[0].clone()",
                       f"held = {x}[0]\n{x}[0] = {x}[1]\n{x}[1] = held * {g.scalar()}"])


@kind(1, writes=True)
def index_changed_later(g):
    """A recorded operation keeps the index it was given."""
    x = g.variable(lambda a: a.ndim > 0 and a.size)
    if x is None:
        return None
    shape = g.shape(x)
    index, mask = f"index = mg.tensor({g.indices(shape[0])})", f"mask = {bare(g.mask(shape))}"
    return g.r.choice([
        lambda: f"{index}\n{g.new()} = {x}[index]\nindex.zero_()",
        lambda: f"{index}\n{x}[index] = {bare(g.value(shape[1:]))}\nindex.zero_()",
        lambda: f"{index}\n{g.new()} = {x}.index_select(0, index)\nindex.fill_({shape[0] - 1})",
        lambda: f"{mask}\n{g.new()} = mg.where(mask, {x}, {g.value(shape)})\nmask.fill_(True)",
        lambda: f"{mask}\n{x}[mask] = {g.scalar()}\nmask.zero_()",
        lambda: f"{mask}\n{x}.masked_fill_(mask, {g.scalar()})\nmask.fill_(False)",
    ])()


# Custom functions.


@kind(1)
def function(g):
    x = g.variable()
    if g.chance(0.5):
        return f"{g.new()} = ScaledSin.apply({x}, {g.scalar()})"
    return f"{g.new()}, {g.new()} = SinCos.apply({x})"


@kind(1, writes=True)
def function_in_place(g):
    x = g.target()
    if g.chance(0.5):
        return f"{g.new()} = InPlaceTanh.apply({x})" if g.chance(0.6) else f"InPlaceTanh.apply({x})"
    written = g.array(x)
    y = g.variable(lambda a: a.shape == written.shape and not np.may_share_memory(a, written))
    return f"AddSquare.apply({x}, {y})" if y else None


# Opting out.


@kind(4, unrecorded=True)
def unrecorded_write(g):
    leaves = [g.env[leaf.name].a for leaf in g.leaves]
    x = g.variable(lambda a: not any(np.may_share_memory(a, leaf) for leaf in leaves))
    if x is None:
        return None
    index = g.basic_index(g.shape(x))
    return g.r.choice([
        f"with mg.no_grad():\n    {x}.mul_({bare(g.value(g.shape(x)))})",
        f"with mg.no_grad():\n    {x}[{index}] = {bare(g.value(g.shape(f'{x}[{index}]')))}",
        f"with mg.no_grad():\n    {x}[{index}] += {g.scalar()}",
        f"{x}.data[{index}] = {g.scalar()}", f"{x}.data.mul_({g.scalar()})", f"{x}.detach().zero_()",
        f"{x}.detach()[{index}].copy_({g.literal(g.shape(f'{x}[{index}]'))})"])


@kind(1.5, unrecorded=True)
def constant(g):
    return f"{g.new()} = {g.variable()}.detach().clone()"
