"""Mistakes: our error must be caught by the `except` clause written for PyTorch's, say what failed, in which line of the user's
program and how to put it right, and leave every tensor as it was.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutagrad as mg
from mutagrad import MutagradError

from .compare import array, attempt, stands_for, value_difference

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle


class Given:
    """Tensors to make mistakes with, the same in both libraries; `changed` names those that no longer hold what they held."""

    def __init__(self, library: Any) -> None:
        self.library = m = library
        self.x = m.arange(6.0).reshape(2, 3)
        self.v = m.arange(4.0)
        self.s = m.tensor(2.5)
        self.i = m.arange(3)
        self.mask = m.tensor([True, False, True, False])
        self.c = m.tensor([1 + 2j, 3j])
        self.empty = m.zeros(0, 3)
        self.leaf = m.arange(3.0).requires_grad_()
        self.wide = m.ones(1).expand(4)
        self.turned = m.arange(6.0).reshape(2, 3).t()
        self.before = {name: array(t).copy() for name, t in self.tensors()}

    def tensors(self) -> list[tuple[str, Any]]:
        return [(name, t) for name, t in vars(self).items() if isinstance(t, (torch.Tensor, mg.Tensor))]

    def changed(self) -> list[str]:
        return [name for name, t in self.tensors() if array(t).shape != self.before[name].shape or value_difference(self.before[name], array(t))]


def assign(t: Any, key: Any, value: Any) -> None:
    t[key] = value


def twice(m: Any, y: Any) -> None:
    y.backward()
    y.backward()


# What is done wrong. `m` is the library, `t` the tensors above.
MISTAKES: dict[str, Callable[[Any, Any], Any]] = {
    # shapes that do not fit
    "add shapes": lambda m, t: t.x + t.v,
    "mul function shapes": lambda m, t: m.mul(t.x, t.v),
    "compare shapes": lambda m, t: t.x < t.v,
    "add_ shapes": lambda m, t: t.x.add_(t.v),
    "iadd would grow": lambda m, t: t.v[:1].__iadd__(t.v),
    "mul_ would grow": lambda m, t: t.v[:1].mul_(t.x),
    "where shapes": lambda m, t: m.where(t.mask, t.x, 0.0),
    "matmul inner": lambda m, t: t.x @ t.v,
    "matmul matrices": lambda m, t: t.x @ t.x,
    "matmul 0-d": lambda m, t: t.x @ t.s,
    "mm ranks": lambda m, t: m.mm(t.x, t.v),
    "mv ranks": lambda m, t: m.mv(t.v, t.v),
    "dot ranks": lambda m, t: m.dot(t.x, t.x),
    "dot sizes": lambda m, t: m.dot(t.v, t.v[:2]),
    "bmm ranks": lambda m, t: m.bmm(t.x, t.x),
    "outer ranks": lambda m, t: m.outer(t.x, t.v),
    "einsum sizes": lambda m, t: m.einsum("ij,ij->i", t.x, t.turned),
    "einsum operands": lambda m, t: m.einsum("ij,jk->ik", t.x),
    "einsum output": lambda m, t: m.einsum("ij->ik", t.x),
    "einsum rank": lambda m, t: m.einsum("ijk->i", t.x),
    "cat shapes": lambda m, t: m.cat([t.x, t.turned]),
    "cat ranks": lambda m, t: m.cat([t.x, t.v]),
    "cat 0-d": lambda m, t: m.cat([t.s, t.s]),
    "cat nothing": lambda m, t: m.cat([]),
    "stack shapes": lambda m, t: m.stack([t.x, t.v]),
    "stack nothing": lambda m, t: m.stack([]),
    "copy_ shapes": lambda m, t: t.x.copy_(t.v),
    "reshape size": lambda m, t: t.x.reshape(4),
    "reshape two unknown": lambda m, t: t.x.reshape(-1, -1),
    "view size": lambda m, t: t.x.view(5, -1),
    "view of transposed": lambda m, t: t.turned.view(6),
    "expand sizes": lambda m, t: t.v.expand(3),
    "expand fewer": lambda m, t: t.x.expand(6),
    "repeat fewer": lambda m, t: t.x.repeat(2),
    "unflatten size": lambda m, t: t.v.unflatten(0, (3, 2)),
    "split sizes": lambda m, t: t.v.split([1, 1]),
    "as_strided beyond": lambda m, t: t.v.as_strided((3, 3), (3, 1)),
    "tensordot sizes": lambda m, t: m.tensordot(t.x, t.x, 1),
    # dimensions that are not there
    "sum dim": lambda m, t: t.x.sum(2),
    "sum dim twice": lambda m, t: t.x.sum((0, 0)),
    "mean dim": lambda m, t: t.x.mean(-3),
    "max dim": lambda m, t: t.x.max(2),
    "softmax dim": lambda m, t: t.x.softmax(2),
    "cumsum dim": lambda m, t: t.x.cumsum(5),
    "transpose dim": lambda m, t: t.x.transpose(0, 2),
    "permute repeats": lambda m, t: t.x.permute(0, 0),
    "permute too few": lambda m, t: t.x.permute(0),
    "unsqueeze dim": lambda m, t: t.x.unsqueeze(4),
    "squeeze dim": lambda m, t: t.x.squeeze(3),
    "t of 3-d": lambda m, t: t.x.unsqueeze(0).t(),
    "select range": lambda m, t: t.x.select(0, 2),
    "narrow range": lambda m, t: t.v.narrow(0, 2, 3),
    "chunk none": lambda m, t: t.v.chunk(0),
    "diagonal same dim": lambda m, t: t.x.diagonal(0, 1, 1),
    "unfold size": lambda m, t: t.v.unfold(0, 5, 1),
    "size dim": lambda m, t: t.x.size(2),
    "movedim counts": lambda m, t: t.x.movedim((0, 1), (0,)),
    "roll counts": lambda m, t: t.x.roll((1, 2), 0),
    "flatten order": lambda m, t: t.x.flatten(1, 0),
    "sort dim": lambda m, t: t.x.sort(2),
    "topk too many": lambda m, t: t.v.topk(5),
    # positions out of range, of the wrong type, of the wrong shape
    "index range": lambda m, t: t.x[2],
    "index range negative": lambda m, t: t.x[0, -4],
    "index too many": lambda m, t: t.v[0, 0],
    "index 0-d": lambda m, t: t.s[0],
    "index tensor range": lambda m, t: t.v[m.tensor([0, 4])],
    "index float tensor": lambda m, t: t.v[t.v],
    "index mask shape": lambda m, t: t.x[t.mask],
    "index shapes": lambda m, t: t.x[m.tensor([0, 1]), m.tensor([0, 1, 2])],
    "index string": lambda m, t: t.v["a"],
    "slice step zero": lambda m, t: t.v[::0],
    "setitem shape": lambda m, t: assign(t.x, 0, t.v),
    "setitem range": lambda m, t: assign(t.x, 5, 1.0),
    "setitem mask count": lambda m, t: assign(t.v, t.mask, m.ones(3)),
    "setitem mask shape": lambda m, t: assign(t.x, t.mask, 1.0),
    "setitem kind": lambda m, t: assign(t.x, 0, "a"),
    "setitem object": lambda m, t: assign(t.x, 0, {}),
    "setitem tensor range": lambda m, t: assign(t.v, m.tensor([1, 9]), m.ones(2)),
    "index_select range": lambda m, t: t.x.index_select(1, m.tensor([3])),
    "index_select float": lambda m, t: t.x.index_select(1, t.v),
    "index_add_ shape": lambda m, t: t.x.index_add_(0, m.tensor([0, 1]), t.v),
    "index_add_ range": lambda m, t: t.x.index_add_(0, m.tensor([2]), m.ones(1, 3)),
    "index_copy_ shape": lambda m, t: t.x.index_copy_(0, m.tensor([0]), m.ones(2, 3)),
    "index_fill_ range": lambda m, t: t.x.index_fill_(0, m.tensor([7]), 0.0),
    "gather range": lambda m, t: t.v.gather(0, m.tensor([4])),
    "gather ranks": lambda m, t: t.x.gather(0, t.i),
    "gather float": lambda m, t: t.v.gather(0, t.v),
    "scatter_ range": lambda m, t: t.v.scatter_(0, m.tensor([0, 9]), m.ones(2)),
    "scatter_ source": lambda m, t: t.v.scatter_(0, m.tensor([0, 1, 2]), m.ones(2)),
    "scatter_add_ range": lambda m, t: t.v.scatter_add_(0, m.tensor([4]), m.ones(1)),
    "scatter_reduce mode": lambda m, t: t.v.scatter_reduce(0, m.tensor([0]), m.ones(1), "median"),
    "masked_fill_ shape": lambda m, t: t.x.masked_fill_(t.mask, 0.0),
    "masked_fill_ not a mask": lambda m, t: t.v.masked_fill_(t.v, 0.0),
    "masked_fill_ vector": lambda m, t: t.v.masked_fill_(t.mask, m.ones(2)),
    "masked_select shape": lambda m, t: t.x.masked_select(t.mask),
    "masked_scatter_ too few": lambda m, t: t.v.masked_scatter_(t.mask, m.ones(1)),
    "take range": lambda m, t: t.x.take(m.tensor([6])),
    "put_ range": lambda m, t: t.x.put_(m.tensor([6]), m.ones(1)),
    "put_ sizes": lambda m, t: t.x.put_(m.tensor([0, 1]), m.ones(3)),
    "index_put_ not a tuple": lambda m, t: t.v.index_put_(m.tensor([0]), m.ones(1)),
    "index_put_ range": lambda m, t: t.v.index_put_((m.tensor([8]),), m.ones(1)),
    "take_along_dim shape": lambda m, t: m.take_along_dim(t.x, m.zeros(3, 1, dtype=m.int64), 1),
    "fill_ vector": lambda m, t: t.x.fill_(t.v),
    # element types
    "in-place int plus float": lambda m, t: t.i.add_(1.5),
    "in-place int divide": lambda m, t: t.i.div_(2),
    "in-place bool of float": lambda m, t: t.mask.mul_(2.0),
    "mean of integers": lambda m, t: t.i.mean(),
    "var of integers": lambda m, t: t.i.var(),
    "softmax of integers": lambda m, t: t.i.softmax(0),
    "matmul types": lambda m, t: t.x @ m.ones(3, dtype=m.float64),
    "matmul int and float": lambda m, t: t.x @ t.i,
    "bitwise of floats": lambda m, t: t.v & t.v,
    "invert floats": lambda m, t: ~t.v,
    "negate booleans": lambda m, t: -t.mask,
    "subtract booleans": lambda m, t: t.mask - t.mask,
    "floor of complex": lambda m, t: m.floor(t.c),
    "remainder of complex": lambda m, t: t.c % 2,
    "where condition float": lambda m, t: m.where(t.v, t.v, 0.0),
    "integer negative power": lambda m, t: t.i ** -1,
    "integer divided by zero": lambda m, t: t.i // 0,
    "integer remainder zero": lambda m, t: t.i % m.zeros(3, dtype=m.int64),
    "randn of integers": lambda m, t: m.randn(2, dtype=m.int64),
    "add a string": lambda m, t: t.x + "a",
    "add None": lambda m, t: t.x + None,
    "add a list": lambda m, t: t.x + [1, 2, 3],
    "add_ None": lambda m, t: t.x.add_(None),
    "cat of numbers": lambda m, t: m.cat([1, 2]),
    "gather by a list": lambda m, t: t.v.gather(0, [0]),
    "scatter_ by a list": lambda m, t: t.v.scatter_(0, [0], 1.0),
    "masked_fill by a list": lambda m, t: t.v.masked_fill([True, False, True, False], 0.0),
    "index_select by a list": lambda m, t: t.v.index_select(0, [0]),
    "full of text": lambda m, t: m.full((2,), "a"),
    "clamp nothing": lambda m, t: t.v.clamp(),
    "div rounding mode": lambda m, t: m.div(t.v, 2, rounding_mode="up"),
    "unknown norm": lambda m, t: t.v.norm(p="taxicab"),
    "finfo of int": lambda m, t: m.finfo(m.int64),
    "iinfo of float": lambda m, t: m.iinfo(m.float32),
    "unknown dtype": lambda m, t: m.zeros(2, dtype="floaty"),
    "unknown device": lambda m, t: m.zeros(2, device="abacus"),
    # sizes
    "max of nothing": lambda m, t: t.empty.max(),
    "max of nothing dim": lambda m, t: t.empty.max(0),
    "amax of nothing": lambda m, t: t.empty.amax(0),
    "argmax of nothing": lambda m, t: t.empty.argmax(),
    "min of nothing": lambda m, t: t.empty.min(),
    "item of many": lambda m, t: t.x.item(),
    "item of none": lambda m, t: t.empty.item(),
    "bool of many": lambda m, t: bool(t.x),
    "bool of none": lambda m, t: bool(t.empty),
    "float of many": lambda m, t: float(t.x),
    "int of many": lambda m, t: int(t.x),
    "index of float": lambda m, t: [1, 2][t.s],
    "len of 0-d": lambda m, t: len(t.s),
    "iterate 0-d": lambda m, t: list(t.s),
    "unbind 0-d": lambda m, t: t.s.unbind(),
    "zeros negative": lambda m, t: m.zeros(-1),
    "zeros huge": lambda m, t: m.zeros(2**40, 2**20),
    "zeros fraction": lambda m, t: m.zeros(2.5),
    "arange step zero": lambda m, t: m.arange(0, 3, 0),
    "arange wrong way": lambda m, t: m.arange(0, 3, -1),
    "linspace negative": lambda m, t: m.linspace(0, 1, -1),
    "randint empty range": lambda m, t: m.randint(3, 3, (2,)),
    "randperm negative": lambda m, t: m.randperm(-1),
    "eye negative": lambda m, t: m.eye(-1),
    "full without size": lambda m, t: m.full(None, 1.0),
    "tensor ragged": lambda m, t: m.tensor([[1, 2], [3]]),
    "tensor of text": lambda m, t: m.tensor("text"),
    "tensor of None": lambda m, t: m.tensor(None),
    "normal_ negative": lambda m, t: t.v.normal_(0, -1),
    # windows that overlap themselves
    "write expanded": lambda m, t: t.wide.add_(1),
    "write expanded slice": lambda m, t: assign(t.wide, slice(0, 2), 1.0),
    "fill expanded": lambda m, t: t.wide.copy_(t.v),
    # derivatives
    "requires_grad of integers": lambda m, t: t.i.requires_grad_(),
    "tensor of ints with grad": lambda m, t: m.tensor([1, 2], requires_grad=True),
    "backward no history": lambda m, t: t.s.backward(),
    "backward of a constant": lambda m, t: (t.x * 2).sum().backward(),
    "backward twice": lambda m, t: twice(m, (t.leaf * t.leaf).sum()),
    "backward seed shape": lambda m, t: (t.leaf * 2).backward(m.ones(4)),
    "backward seed kind": lambda m, t: (t.leaf * 2).sum().backward("a"),
    "backward no inputs": lambda m, t: (t.leaf * 2).sum().backward(inputs=[]),
    "grad unused": lambda m, t: m.autograd.grad((t.leaf * 2).sum(), m.ones(2, requires_grad=True)),
    "grad of a constant": lambda m, t: m.autograd.grad((t.leaf * 2).sum(), t.x),
    "grad input kind": lambda m, t: m.autograd.grad((t.leaf * 2).sum(), "a"),
    "grad with wrong shape": lambda m, t: setattr(t.leaf, "grad", m.ones(4)),
    "grad with wrong type": lambda m, t: setattr(t.leaf, "grad", m.ones(3, dtype=m.float64)),
    "grad not a tensor": lambda m, t: setattr(t.leaf, "grad", 1.0),
    "non-leaf stops": lambda m, t: (t.leaf * 2).requires_grad_(False),
    "hook on a constant": lambda m, t: t.x.register_hook(print),
    "retain_grad of a constant": lambda m, t: t.x.retain_grad(),
    "numpy of a leaf": lambda m, t: t.leaf.numpy(),
    "asarray of a leaf": lambda m, t: np.asarray(t.leaf),
    "deepcopy of a result": lambda m, t: (t.leaf * 2).__deepcopy__({}),
    "data of the wrong kind": lambda m, t: setattr(t.leaf, "data", 1.0),
}

# Where PyTorch's class is no guide: its reason to be different, or ours.
OWN_CLASS = {
    "grad input kind": "an argument of the wrong kind is a TypeError",
    "backward no inputs": "an argument of the wrong kind is a TypeError",
}
# Nothing better can be said than what is wrong.
NO_FIX = {"grad input kind"}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    _, theirs = attempt(lambda: MISTAKES[name](torch, Given(torch)), quiet=True)
    assert theirs is not None, "no mistake to PyTorch"
    given = Given(mg)
    _, mine = attempt(lambda: MISTAKES[name](mg, given))
    assert mine is not None, f"accepted, where PyTorch raised {theirs!r}"
    bases = [c.__name__ for c in type(mine).__mro__]
    assert name in OWN_CLASS or stands_for(theirs, mine), f"{bases} does not stand for {type(theirs).__name__}: {theirs}\n{mine!r}"
    assert given.changed() == []
    assert isinstance(mine, MutagradError), repr(mine)
    text = str(mine)
    line = MISTAKES[name].__code__.co_firstlineno
    assert "test_errors.py:" in text, text
    assert f"test_errors.py:{line}:" in text or set(MISTAKES[name].__code__.co_names) & {"assign", "twice"}, f"line {line}\n{text}"
    assert ("fix: " in text) != (name in NO_FIX), text
