"""Statements that put hooks on values, whole and in part, that change their gradients; and that keep gradients of views.

A hook belongs to the version of the memory on which it was registered, whatever reads that version. So each of these statements
makes a version first: a result, or a write.
"""

from __future__ import annotations

from .programs import HOOKS
from .statements import kind


def windows(g, name, shown, count):
    """Ways to look at something, as text with its name, that may overlap each other but not themselves."""
    found = []
    for _ in range(count):
        seen = g.window(shown, g.r.choice([0, 1, 1, 2]))
        if g.array(seen).size and 0 not in g.array(seen).strides:
            found.append((name + seen[len(shown):], g.shape(seen)))
    return found


def hook_lines(g, name, shown):
    """Several hooks on a version, that scale what they are shown, and perhaps a gradient that is kept."""
    lines = []
    if g.order == 1 and not g.indirect and g.chance(0.5):  # before those that scale: what is kept is what they leave
        lines += [keep_line(g, *seen, "retain") for seen in windows(g, name, shown, 1)]
    for seen, shape in windows(g, name, shown, g.r.randint(1, 3)):
        factor = g.scalar() if g.chance(0.6) else g.r.choice([0.5, 2.0]) if not shape else weights(g, shape)
        lines.append(f"hook({seen}, {factor}, {g.r.choice(list(HOOKS))!r}, kept)")
    return lines


def weights(g, shape):
    return [weights(g, shape[1:]) for _ in range(shape[0])] if shape else g.scalar()


def keep_line(g, seen, shape, how):
    """What has a name already may be a leaf, or keep the gradient of another version: there, a view is asked to keep its own.

    A whole tensor keeps the gradient of its newest version, which later statements make: tests/core/test_aliases.py asks that.
    """
    probe = g.new_probe(shape)
    seen += "[...]" * (seen in g.names or how == "retain" and seen.isidentifier())
    return f"keep({seen}, {probe}, {probe!r}, {how!r}, kept)"


FRESH = ["({x} * {s})", "mg.sin({x})", "{x}.clone()", "({x} * {x})", "({x} + {s})"]


@kind(14, family="hooks")
def hooked_result(g):
    name, shown = g.new(), g.r.choice(FRESH).format(x=g.variable(), s=g.scalar())
    return "\n".join([f"{name} = {shown}", *hook_lines(g, name, shown)])


@kind(14, writes=True, family="hooks")
def hooked_write(g):
    """On a version that a write has made, of a part perhaps."""
    x = g.variable(lambda a: a.size and 0 not in a.strides)
    if x is None:
        return None
    target = f"{x}[{g.basic_index(g.shape(x))}]"
    write = g.r.choice([f"{x}.mul_({g.scalar()})", f"{target} = {g.scalar()}", f"{target}.sin_()", f"{target} += {g.scalar()}"])
    return "\n".join([write, *hook_lines(g, x, x)])


@kind(10, family="hooks")
def hooked_leaf(g):
    """Before anything is computed."""
    if g.statements or g.indirect:
        return None
    return "\n".join(line for leaf in g.leaves if not leaf.probe for line in hook_lines(g, leaf.name, leaf.name)) or None


@kind(5, family="hooks")
def gradient_kept_by_hook(g):
    if g.indirect or g.order > 1:
        return None
    name, shown = g.new(), g.r.choice(FRESH).format(x=g.variable(), s=g.scalar())
    return "\n".join([f"{name} = {shown}", *(keep_line(g, *seen, "hook") for seen in windows(g, name, shown, 2))])


@kind(5, writes=True, family="hooks")
def gradient_of_view_kept(g):
    """Of several views of a version that a write has made."""
    x = g.variable(lambda a: a.size and 0 not in a.strides)
    if x is None or g.indirect or g.order > 1:
        return None
    return "\n".join([f"{x}.mul_({g.scalar()})", *(keep_line(g, *seen, "retain") for seen in windows(g, x, x, 2))])
