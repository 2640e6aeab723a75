"""Who else can see a value, told by its reference count.

How many references mean "nobody" differs between interpreters, so it is measured, once, here. It is asked where the
value is used and not in a function of its own, since how a call counts its arguments can change while a program runs,
by a debugger for example.
"""
from __future__ import annotations

from sys import _getframe, getrefcount
from typing import Any

from ..arrays import np
from .op import Op
from .storage import TensorBase, new_storage
from .write import new_node


def _references_to_sole() -> int:
    holder = [np.zeros(1)]
    a = holder.pop()
    return getrefcount(a)


def _references_to_base() -> int:
    holder = [np.zeros((1, 1)).reshape(1)]
    base = holder.pop().base
    return getrefcount(base)


# References to an array for which one local variable is the only name, after it was popped from a list.
SOLE = _references_to_sole()
# The same for an array that has a view, which has been dropped; while it lives there is one more.
SOLE_BASE = _references_to_base() + 1


def _result() -> TensorBase:
    """A tensor that is the whole result of an operation."""
    value = TensorBase()
    value._storage, value._offset = new_storage(np.zeros(1)), None
    value._storage.writer = new_node(Op("probe", None, (), (), {}), ())
    return value


_RESULT = _result()
SOLE_STORAGE = getrefcount(_RESULT._storage)  # references to the storage of a tensor that has no views


def _unnamed() -> tuple[int, frozenset[int]]:
    """How many references a value has inside `__setitem__` when it has no name outside, and what instructions call it.

    The first is -1 if a value that has a name has no more.
    """
    found = []

    class Probe:
        def __setitem__(self, key: Any, value: Any) -> None:
            frame = _getframe(1)
            found.append((getrefcount(value), frame.f_code.co_code[frame.f_lasti]))

    probe, named, i = Probe(), object(), 0
    probe[i] = object()
    probe[i:i] = object()
    probe[i] = named
    counts, instructions = zip(*found)
    return counts[0] if counts[0] == counts[1] < counts[2] else -1, frozenset(instructions)


# In `y[i] = a + b` the sum has no name: nobody can ever see it but y. Its node can then *be* the write to y[i], which
# halves the nodes of every loop that fills a buffer. Interpreters that do not count references from the stack cannot
# tell; there it is never taken to be unnamed. Only an assignment holds the value on the stack: in
# `y.__setitem__(*arguments)`, or called by anything that is not Python, the one reference may be that of a tuple which
# lives on.
UNNAMED, ASSIGNS = _unnamed()
NOBODYS = 0


def is_nobodys(value: TensorBase) -> bool:
    """Return whether an unnamed value is the whole result of an operation that nothing else refers to."""
    source = value._storage
    writer = source.writer
    return (getrefcount(source) + getrefcount(writer) <= NOBODYS and value._offset is None and source.root is None
            and writer.hooks is None and writer.written is None)


while not is_nobodys(_result()):
    NOBODYS += 1
