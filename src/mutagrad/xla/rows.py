"""Scans of which a round writes one row of something: `record[t] = ...`, and in the reverse the row's adjoint.

To carry all of `record` from round to round would be right, and is what a round says; but XLA copies what a round both
reads and writes. So rows are given to the rounds and taken from them by the scan, and what has rows is put together
again behind it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
from jax import lax
from jax.extend.core import Literal
from jax.interpreters.partial_eval import dce_jaxpr

Round = Callable[[list[Any], Any, Any], tuple[list[Any], Any]]


class Row(NamedTuple):
    """Of something that is carried: by which equation a round writes its row, and by which it reads what was there."""

    carried: int
    write: Any
    reads: list[Any]


def scan(once: Round, start: Sequence[Any], xs: Any, first: Any, count: int, rounds: int, reverse: bool = False) -> Any:
    """`lax.scan` of `once(carry, number, x)`, over the numbers from `first` on, all of them below `rounds`."""
    start, numbers = list(start), first + jnp.arange(count, dtype=numpy.int64)
    parts = jax.tree_util.tree_map(lambda v: jax.ShapeDtypeStruct(v.shape[1:], v.dtype), xs)
    shapes = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in start]
    number = jax.ShapeDtypeStruct((), numbers.dtype)
    closed, (_, form) = jax.make_jaxpr(once, return_shape=True)(shapes, number, parts)
    jaxpr = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)[0]
    rows = rows_of(jaxpr, len(start), rounds)
    body = without(jaxpr, rows, len(start))
    apart = {row.carried for row in rows}
    spec = jax.tree_util.tree_structure(form)
    reads = [lax.dynamic_slice_in_dim(start[row.carried], first, count)[:, None] for row in rows for _ in row.reads]

    def one(carry: list[Any], given: Any) -> Any:
        number, x, reads = given
        rest = iter(carry)
        whole = [v if k in apart else next(rest) for k, v in enumerate(start)]
        found = jax.core.eval_jaxpr(body, closed.consts, *whole, number, *jax.tree_util.tree_leaves(x), *reads)
        carried, others = found[:len(start)], found[len(start):]
        return ([v for k, v in enumerate(carried) if k not in apart],
                (jax.tree_util.tree_unflatten(spec, others), [carried[row.carried] for row in rows]))

    end, (ys, written) = lax.scan(one, [v for k, v in enumerate(start) if k not in apart], (numbers, xs, reads),
                                  reverse=reverse)
    rest, put = iter(end), {row.carried: new for row, new in zip(rows, written)}
    return [lax.dynamic_update_slice_in_dim(v, put[k].reshape(count, *v.shape[1:]), first, 0) if k in apart
            else next(rest) for k, v in enumerate(start)], ys


def rows_of(jaxpr: Any, count: int, rounds: int) -> list[Row]:
    """What of the first `count` inputs, which are carried, a round has one row of: that of its number."""
    number = Number(jaxpr, jaxpr.invars[count])
    makers = {v: e for e in jaxpr.eqns for v in e.outvars}
    found = []
    for k, (before, after) in enumerate(zip(jaxpr.invars[:count], jaxpr.outvars)):
        write = None if isinstance(after, Literal) else makers.get(after)
        if write is None or write.primitive.name != "dynamic_update_slice" or write.invars[0] is not before:
            continue
        reads = [e for e in users(jaxpr, before) if e is not write]
        shape = before.aval.shape
        one = (1, *shape[1:])
        if (shape and shape[0] >= rounds and write.invars[1].aval.shape == one and number.starts(write.invars[2:])
                and not users(jaxpr, after) and jaxpr.outvars.count(after) == 1 and before not in jaxpr.outvars
                and all(e.primitive.name == "dynamic_slice" and e.params["slice_sizes"] == one
                        and number.starts(e.invars[1:]) for e in reads)):
            found.append(Row(k, write, reads))
    return found


def users(jaxpr: Any, value: Any) -> list[Any]:
    return [e for e in jaxpr.eqns if any(v is value for v in e.invars)]


def without(jaxpr: Any, rows: list[Row], count: int) -> Any:
    """The same with rows as inputs, behind all others, and as outputs, in the place of what has them."""
    gone = {id(e) for row in rows for e in (row.write, *row.reads)}
    outvars = list(jaxpr.outvars)
    for row in rows:
        outvars[row.carried] = row.write.invars[1]
    return jaxpr.replace(eqns=[e for e in jaxpr.eqns if id(e) not in gone], outvars=outvars,
                         invars=[*jaxpr.invars, *(e.outvars[0] for row in rows for e in row.reads)])


class Number:
    """The number of the round, which is not negative; also where it is asked whether it is: `i + n if i < 0 else i`."""

    def __init__(self, jaxpr: Any, number: Any) -> None:
        self.same = {number}
        self.negative: set[Any] = set()
        for equation in jaxpr.eqns:
            self.see(equation)

    def see(self, equation: Any) -> None:
        name, given = equation.primitive.name, equation.invars
        known = [not isinstance(v, Literal) and v in self.same for v in given]
        if name in ("jit", "pjit") and len(equation.params["jaxpr"].eqns) == 1:
            self.see_inner(equation)
        elif name == "lt" and known[0] and _is_zero(given[1]):
            self.negative.add(equation.outvars[0])
        elif (name == "select_n" and known[1] and not isinstance(given[0], Literal) and given[0] in self.negative
              or name == "convert_element_type" and known[0] and equation.params["new_dtype"].itemsize >= 4
              and equation.params["new_dtype"].kind == "i"):
            self.same.add(equation.outvars[0])

    def see_inner(self, equation: Any) -> None:
        """A `where` is a function of its own."""
        inner = equation.params["jaxpr"].jaxpr
        outside = dict(zip(inner.invars, equation.invars))
        one = inner.eqns[0]
        if inner.outvars == one.outvars and all(isinstance(v, Literal) or v in outside for v in one.invars):
            self.see(one.replace(invars=[v if isinstance(v, Literal) else outside[v] for v in one.invars],
                                 outvars=equation.outvars))

    def starts(self, indices: Sequence[Any]) -> bool:
        """Whether a row begins there: at this number, and at zero in all other dimensions."""
        first, *others = indices
        return not isinstance(first, Literal) and first in self.same and all(map(_is_zero, others))


def _is_zero(value: Any) -> bool:
    return isinstance(value, Literal) and value.val == 0
