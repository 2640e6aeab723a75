"""A forward and a backward out of one traced program: what does not depend on the adjoints is the forward."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax.extend.core import Literal

from ..arrays.xla.memory import HOST, XArray
from ..base.errors import NotSupported
from ..core.graph import Node
from ..core.op import RAW, Op
from ..core.storage import Storage
from ..ops.shape.shape import variadic


class Halves:
    """The two halves of a program of which some constants are adjoints (`late`), and so are its last results.

    `residuals` are the values of the forward that the backward needs.
    """

    def __init__(self, jaxpr: Any, given: dict[int, Any], count: int) -> None:
        late = set(given.values())
        self.given = sorted(given)  # which of the adjoints it uses
        first, second = [], []
        for equation in jaxpr.eqns:
            if any(not isinstance(v, Literal) and v in late for v in equation.invars):
                second.append(equation)
                late.update(equation.outvars)
            else:
                first.append(equation)
        results, adjoints = jaxpr.outvars[:len(jaxpr.outvars) - count], jaxpr.outvars[len(jaxpr.outvars) - count:]
        used = [v for e in second for v in e.invars] + adjoints
        self.residuals = list(dict.fromkeys(v for v in used if not isinstance(v, Literal) and v not in late))
        self.first = jaxpr.replace(invars=[], eqns=first, outvars=[*results, *self.residuals])
        late_first = [given[i] for i in self.given]
        self.second = jaxpr.replace(constvars=[], invars=[*self.residuals, *late_first], eqns=second, outvars=adjoints)
        self.backward = jax.jit(self._backward)

    def forward(self, consts: Sequence[Any]) -> list[Any]:
        """Results, and after them the residuals."""
        return jax.core.eval_jaxpr(self.first, consts)  # type: ignore[no-any-return]

    def _backward(self, residuals: Sequence[Any], adjoints: Sequence[Any]) -> list[Any]:
        return jax.core.eval_jaxpr(self.second, (), *residuals, *(adjoints[i] for i in self.given))  # type: ignore[no-any-return]


def compiled_rule(halves: Any, residuals: list[Any], memories: Sequence[int], adjoints: Sequence[Any],
                  reach: Sequence[set[int]], storages: Sequence[Storage], frees: bool) -> Op:
    """The operation that a call of a compiled function is: its reverse runs the backward half.

    `memories` are those of its results, `adjoints` are like theirs, and `reach` says what each result depends on.
    `frees`: it can be swept once, unless `retain_graph` is given.
    """
    def reverse(xp: Any, g: Any, saved: Any, links: Any) -> list[Any]:
        if xp is not RAW:
            raise NotSupported("compile: the backward of a compiled function cannot be differentiated again",
                               why="it is a program by itself, outside of which nothing is recorded",
                               fix="compile the whole step, with both derivatives inside; or do not compile it")
        given = [jnp.zeros_like(like) if g.get(k) is None else _adjoint(g[k], like)
                 for k, like in zip(memories, adjoints)]
        reached = set().union(*(ends for k, ends in zip(memories, reach) if g.get(k) is not None))
        found = halves.backward(residuals, given)
        return [None if link is None or k not in reached else _given(one, storage)
                for k, (one, link, storage) in enumerate(zip(found, links, storages))]

    return variadic("compiled", None, reverse, frees)


# One of several results whose histories have nothing in common: each can be swept once.
RESULT = variadic("compiled", None, lambda xp, g, saved, links: [g], True)


def saving(writer: Any) -> set[int]:
    """The nodes of a history that a sweep frees, by identity."""
    found, seen, waiting = set(), set(), [writer]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Node) and id(node) not in seen:
            seen.add(id(node))
            if node.op.frees:
                found.add(id(node))
            waiting += node
    return found


def _adjoint(g: Any, like: Any) -> Any:
    return (g.values() if type(g) is XArray else numpy.array(g)).reshape(like.shape)


def _given(value: Any, storage: Storage) -> Any:
    """An adjoint of the kind that the memory is."""
    buffer: Any = storage.buffer
    if type(buffer) is numpy.ndarray:
        return numpy.array(value)
    return buffer.level.wrapped(value) if buffer.level is not HOST else numpy.array(value)
