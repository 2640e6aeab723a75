"""Statements that reach memory by ways that an engine must be told of: lists of tensors, windows exchanged in place, `.data`,
saved values that are asked for and overwritten, leaves that are views, functions whose results are views."""

from __future__ import annotations

import numpy as np

from .functions import SPOIL, VIEWS
from .statements import bare, kind

# With what a write to the result of a Function that is a view may be declined, as in PyTorch.
DECLINED = ("WriteError", "GradientError", "NotSupported")


# Lists and tuples, of tensors, numbers and more lists.


def listed(g, shape):
    """An expression of nested lists that has this shape."""
    if not shape or len(shape) < 3 and g.chance(0.25):
        return item(g, shape)
    parts = [listed(g, shape[1:]) for _ in range(shape[0])]
    return f"[{', '.join(parts)}]" if g.chance(0.7) else f"({', '.join(parts)},)"


def item(g, shape):
    if not shape and g.chance(0.3):
        return str(g.scalar())
    return bare(g.tensor_value(shape))


@kind(12, writes=True, family="aliases")
def assign_list(g):
    x = g.variable(lambda a: a.ndim > 0 and a.size)
    if x is None:
        return None
    rows = g.indices(g.shape(x)[0], unique=True)
    index = g.r.choice([g.basic_index(g.shape(x)), f"{rows}", f"mg.tensor({rows})", bare(g.mask(g.shape(x)))])
    shape = g.shape(f"{x}[{index}]")
    if not shape or 0 in shape:
        return None
    return f"{x}[{index}] = {outer_list(g, shape)}"


def outer_list(g, shape):
    """A list at the outside, in any case; of one row where it is broadcast."""
    if len(shape) == 1 and shape[0] > 1 and g.chance(0.1):
        return f"[{item(g, ())}]"
    return f"[{', '.join(listed(g, shape[1:]) for _ in range(shape[0]))}]"


@kind(4, writes=True, family="aliases")
def copy_list(g):
    x = g.target()
    shape = g.shape(x)
    return f"{x}.copy_({outer_list(g, shape)})" if shape and 0 not in shape else None


@kind(3, unrecorded=True, family="aliases")
def tensor_of_list(g):
    """A constant, as documented."""
    parts = ", ".join(item(g, ()) for _ in range(g.r.randint(1, 3)))
    return f"{g.new()} = as_data([{parts}])"


@kind(2, family="aliases")
def stack_list(g):
    parts = [bare(g.tensor_value(())) for _ in range(g.r.randint(1, 3))]
    return f"{g.new()} = mg.stack([{', '.join(parts)}])"


# Another window in place, and other memory.


@kind(10, family="aliases", refuses=("GradientError: backward: a leaf of shape",))
def turn_in_place(g):
    x = g.variable(lambda a: a.ndim > 0)
    if x is None:
        return None
    shape = g.shape(x)
    n = len(shape)
    i, j = g.r.randrange(n), g.r.randrange(n)
    forms = [f"unsqueeze_({g.r.randrange(n + 1)})", "squeeze_()", f"transpose_({i}, {j})", f"swapaxes_({i}, {j})", f"swapdims_({i}, {j})"]
    forms += ["t_()"] * 4 * (n == 2) + [f"squeeze_({d})" for d in range(n) if shape[d] == 1] * 2
    return f"{x}.{g.r.choice(forms)}"


def alone(g, name):
    """Whether no other variable sees this memory."""
    a = g.env[name].a
    return not any(np.may_share_memory(a, g.env[n].a) for n in g.names if g.env[n] is not g.env[name])


@kind(6, unrecorded=True, family="aliases", refuses=("GradientError",))
def turned_data(g):
    """A leaf's memory looked at otherwise: what was computed of it before has a gradient in another shape, or none at all."""
    leaves = [leaf.name for leaf in g.leaves if unwritten(g, leaf.name) and g.array(leaf.name).ndim == 2 and alone(g, leaf.name)]
    if not leaves:
        return None
    x = g.r.choice(leaves)
    rows, columns = g.shape(x)
    if rows == columns and g.statements:  # by place or by element? Only where nothing was computed, there is one answer
        return None
    return f"{x}.data = {x}.data.t()"


def unwritten(g, name):
    """Whether this is a leaf that nothing has written to."""
    m = g.env[name]
    return name in g.names and m.leaf is not None and not m.leaf.written


@kind(4, unrecorded=True, family="aliases")
def leaf_data(g):
    leaves = [leaf.name for leaf in g.leaves if unwritten(g, leaf.name)]
    if not leaves:
        return None
    x = g.r.choice(leaves)
    return f"{x}.data = {other_memory(g, g.shape(x))}"


@kind(4, unrecorded=True, family="aliases", refuses=("NotSupported", "GradientError"))
def computed_data(g):
    leaves = [g.env[leaf.name].a for leaf in g.leaves]
    x = g.variable(lambda a: not any(np.may_share_memory(a, leaf) for leaf in leaves))
    if x is None:
        return None
    shape = g.shape(x)
    if len(shape) == 2 and shape[0] == shape[1] and alone(g, x) and g.chance(0.5):
        return f"{x}.data = {x}.data.t()"
    return f"{x}.data = {other_memory(g, shape)}"


def other_memory(g, shape):
    """Fresh memory that nobody else sees: whole, or a part of more."""
    if shape and 0 not in shape and g.chance(0.5):
        return g.literal((2, *shape)) + "[1]"
    return g.r.choice([g.literal(shape), f"{bare_number(g.value(shape))}.detach().clone().expand({str(shape)[1:-1].rstrip(',')}).clone()"]) if shape else g.literal(shape)


def bare_number(value):
    return f"f64({value})" if value.lstrip("-").replace(".", "").isdigit() else f"({value})"


@kind(3, unrecorded=True, family="aliases")
def parameters_of_vector(g):
    """All leaves become windows of one vector, which is then written to."""
    leaves = [leaf.name for leaf in g.leaves if unwritten(g, leaf.name)]
    if not leaves:
        return None
    names = ", ".join(leaves)
    size = sum(g.array(n).size for n in leaves)
    lines = [f"vector = to_vector([{names}]).detach() * {g.scalar()}", f"from_vector(vector, [{names}])"]
    if g.chance(0.6):
        start = g.r.randrange(size)
        lines.append(f"vector[{start}:{g.r.randint(start + 1, size)}] = {g.scalar()}")
    return "\n".join(lines)


# Leaves written without a record.


@kind(12, unrecorded=True, family="aliases")
def unrecorded_leaf_write(g):
    """To all of it, or to a part: it is a leaf again."""
    leaves = [leaf.name for leaf in g.leaves if leaf.name in g.names and g.array(leaf.name).size]
    if not leaves:
        return None
    x = g.r.choice(leaves)
    index = g.basic_index(g.shape(x))
    shape = g.shape(f"{x}[{index}]")
    forms = [
        f"with mg.no_grad():\n    {x}[{index}] = {bare(g.value(shape))}", f"with mg.no_grad():\n    {x}[{index}] += {g.scalar()}",
        f"with mg.no_grad():\n    {x}[{index}].mul_({bare(g.value(shape))})", f"with mg.no_grad():\n    {x}.sub_({g.scalar()})",
        f"{x}.data[{index}] = {g.scalar()}", f"{x}.detach()[{index}].zero_()", f"{x}[{index}].data.mul_({g.scalar()})",
        f"{x}[{index}].detach().copy_({g.literal(shape)})"]
    buffers = [name for name in ("flat", "vector") if name in g.env]
    if buffers:
        buffer = g.r.choice(buffers)
        start = g.r.randrange(g.array(buffer).size)
        part = f"{buffer}[{start}:{start + g.r.randint(1, 6)}]"
        forms += [f"with mg.no_grad():\n    {part} += {g.scalar()}", f"{part}.data.mul_({g.scalar()})"] * 2
        if buffer == "vector":  # parameters got their data from it: what is written to it is none of their business
            forms += [f"{part} = {g.scalar()}", f"{part}.mul_({g.scalar()})", f"{part} *= {g.scalar()}"]
    return g.r.choice(forms)


@kind(8, writes=True, family="aliases")
def buffer_write(g):
    """To the buffer that leaves are views of: it is a write to them. Before any has a history it is not recorded, which
    differences of second order cannot judge."""
    if "flat" not in g.env or g.order > 1 and not g.env["flat"].home.followed:
        return None
    start = g.r.randrange(g.array("flat").size)
    part = f"flat[{start}:{start + g.r.randint(1, 6)}]"
    return g.r.choice([f"{part} = {g.scalar()}", f"{part}.mul_({g.scalar()})", f"{part} *= {g.scalar()}", f"{part}.sin_()"])


# Saved values.


@kind(8, family="aliases")
def spoil_saved(g):
    return f"spoil({g.variable()}, {g.r.choice(list(SPOIL))!r})"


@kind(6, family="aliases")
def spoiling_function(g):
    x = g.variable(lambda a: a.size)
    if x is None:
        return None
    y = bare(g.tensor_value(g.shape(x)))
    made = g.new()
    line = f"{made} = Spoiling.apply({x}, {y}, {g.r.choice(list(SPOIL))!r})"
    return line + (f"\nsweep({made})" if g.chance(0.5) and not g.indirect else "")


# Functions whose results are views.


def ways(g, shape):
    """To look at a tensor of this shape, with a result that is not empty."""
    fitting = ["wrapped", "all", "itself"] + ["flat", "last"] * (len(shape) > 0) + ["turned"] * 2 * (len(shape) == 2)
    if shape and shape[0] > 1:
        fitting += ["rows", "step"] * 2
    return g.r.choice(fitting)


@kind(10, family="aliases", refuses=DECLINED)
def function_of_view(g):
    x = g.variable(lambda a: a.size and a.ndim < 3)
    if x is None:
        return None
    shape = g.shape(x)
    return g.r.choice([
        lambda: f"{g.new()} = Look.apply({x}, {ways(g, shape)!r})",
        lambda: f"{g.new()} = LookAtSin.apply({x}, {ways(g, shape)!r})",
        lambda: f"{g.new()}, {g.new()} = TwoViews.apply({x}, {ways(g, shape)!r}, {ways(g, shape)!r})",
        lambda: f"{g.new()}, {g.new()} = WithItself.apply({x})",
    ])()


@kind(5, writes=True, family="aliases", refuses=DECLINED)
def function_of_view_written(g):
    """The result of a function that is a view, or the input, is written to at once."""
    x = g.variable(lambda a: a.size and a.ndim < 3 and a.flags.writeable)
    if x is None:
        return None
    made, how = g.new(), ways(g, g.shape(x))
    seen = g.shape(VIEWED[how].format(x))
    return f"{made} = Look.apply({x}, {how!r})\n" + g.r.choice([
        f"{made}.mul_({g.scalar()})", f"{made} *= {bare(g.value(seen))}", f"{x}.mul_({g.scalar()})", f"{x}.copy_({g.literal(g.shape(x))})"])


VIEWED = {"rows": "{}[1:]", "step": "{}[::2]", "last": "{}[..., -1]", "flat": "{}.reshape(-1)", "turned": "{}.T",
          "wrapped": "{}.unsqueeze(0)", "all": "{}[...]", "itself": "{}"}
assert VIEWED.keys() == VIEWS.keys()


@kind(4, family="aliases", refuses=DECLINED)
def widening_function(g):
    x = g.variable(lambda a: a.size and a.ndim < 3 and a.size < 9)
    return x and f"{g.new()} = Widen.apply({x}, {g.r.choice([1, 2])}, {g.chance(0.5)})"


@kind(4, writes=True, family="aliases")
def function_writes_part(g):
    x = g.target()
    shape = g.shape(x)
    how = ways(g, shape).replace("flat", "all")  # which of a turned tensor is a copy, and of its gradient may be none
    return f"{g.new()} = ScalePart.apply({x}, {how!r}, {g.scalar()})" if 0 not in shape and len(shape) < 3 else None


@kind(5, family="aliases", refuses=("GradientError", "NotSupported"))
def function_saves_view(g):
    x = g.variable(lambda a: a.size and a.ndim < 3)
    return x and f"{g.new()} = SquareOfView.apply({x}, {ways(g, g.shape(x))!r})"


@kind(5, family="aliases")
def adjoint_of_view(g):
    """A function runs once more when it is differentiated, with respect to a view that it reads and that was saved."""
    x = g.variable(lambda a: a.size and a.ndim < 3)
    if x is None:
        return None
    how = ways(g, g.shape(x))
    return (f"held = {VIEWED[how].format(f'({x} * {g.scalar()})')}\n"
            f"{g.new()} = Adjoint.apply(lambda w=held: mg.sin(w) * w, held)")
