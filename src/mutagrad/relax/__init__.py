"""Smooth stand-ins for operations that have no derivative: argmax, sorting, rounding, an index that is computed.

>>> import mutagrad as mg
>>> scores = mg.tensor([0., 3., 2.], requires_grad=True)
>>> at = mg.relax.argmax(scores, temperature=0.5)
>>> mg.relax.read(mg.tensor([10., 20., 50.]), at).backward()
>>> scores.grad
tensor([-0.1460, -6.1573,  6.3033])

Each has the name of the exact operation, and most a temperature: the lower it is, the closer they are to that
operation and the larger and rarer are their gradients. docs/relax.md has a table of what is the limit of what.
"""
from __future__ import annotations

from .bounds import clamp, max, maximum, min, minimum
from .choice import argmax, argmin, bernoulli, gumbel_softmax, one_hot, straight_through
from .order import argsort, permutation, rank, sort, topk, topk_mask
from .positions import add_, gather, read, scatter_, scatter_add_, write_
from .rounding import ceil, floor, round
from .steps import eq, ge, gt, le, lt, ne, sign, step, where

__all__ = ["add_", "argmax", "argmin", "argsort", "bernoulli", "ceil", "clamp", "eq", "floor", "gather", "ge", "gt",
           "gumbel_softmax", "le", "lt", "max", "maximum", "min", "minimum", "ne", "one_hot", "permutation", "rank",
           "read", "round", "scatter_", "scatter_add_", "sign", "sort", "step", "straight_through", "topk",
           "topk_mask", "where", "write_"]
