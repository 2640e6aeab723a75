"""Thousands of random index expressions on random views, to read and to write, good and bad: the same values, gradients and errors."""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import mutagrad as mg

from .compare import array, attempt, difference, gradients, ours, stands_for, value_difference

torch = pytest.importorskip("torch", reason="make oracle installs it")
pytestmark = pytest.mark.oracle

BLOCKS, BLOCK = 20, 250


# --------------------------------------------------------------------------------------------------- an index, in either library

class Part(NamedTuple):
    """One part of an index: a plain value, or an array that becomes a tensor of the library that is indexed."""

    value: Any
    tensor: bool = False

    def of(self, library: Any) -> Any:
        if self.tensor:
            return library.tensor(self.value)
        if isinstance(self.value, slice):
            return slice(*(v.of(library) if isinstance(v, Part) else v for v in (self.value.start, self.value.stop, self.value.step)))
        return self.value

    def __repr__(self) -> str:
        return f"tensor({self.value.tolist()})" if self.tensor else repr(self.value)


def key_of(parts: list[Part], library: Any) -> Any:
    found = tuple(p.of(library) for p in parts)
    return found[0] if len(found) == 1 else found


class Draw:
    """Draws a shape, a view of it and an index; about one index in six is wrong in some way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.wrong = self.random.random() < 0.17

    def shape(self) -> tuple[int, ...]:
        return tuple(self.random.choice((0, 1, 2, 3, 3, 4, 5)) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3, 3, 4))))

    def view(self) -> Callable[[Any], Any]:
        """A function from a tensor to a window on it, the same in both libraries."""
        kind = self.random.choice(("whole", "whole", "transposed", "every second", "tail", "diagonal", "unsqueezed"))
        if kind == "transposed":
            return lambda x: x.transpose(0, -1) if x.ndim else x
        if kind == "every second":
            return lambda x: x[..., ::2] if x.ndim else x
        if kind == "tail":
            return lambda x: x[1:] if x.ndim else x
        if kind == "diagonal":
            return lambda x: x.diagonal(0, 0, 1) if x.ndim > 1 else x
        return (lambda x: x.unsqueeze(-1)) if kind == "unsqueezed" else (lambda x: x)

    def key(self, shape: tuple[int, ...]) -> list[Part]:
        if self.wrong and shape and self.random.random() < 0.3:
            return [self.nonsense()]
        parts: list[Part] = []
        dims = list(range(len(shape)))[: self.random.randint(0, len(shape) + (1 if self.wrong else 0))]
        at = 0
        while at < len(dims):
            part, used = self.part(shape, at)
            parts.append(part)
            at += used
        if self.random.random() < 0.25:
            parts.insert(self.random.randint(0, len(parts)), Part(None))
        if self.random.random() < 0.25 and not any(isinstance(p.value, type(...)) for p in parts):
            at = self.random.randint(0, len(parts))
            parts.insert(at, Part(...))
            if self.random.random() < 0.5:  # what follows counts from the end
                parts = parts[:at + 1]
        if self.random.random() < 0.05:
            parts.append(self.random.choice((Part(True), Part(False), Part(np.array(True), True), Part(np.array(False), True))))
        if len(parts) == 1 and isinstance(parts[0].value, list):
            parts.append(Part(...))  # PyTorch still takes a lone nested list for a tuple, and warns that it will not
        return parts or [Part(...)]

    def part(self, shape: tuple[int, ...], dim: int) -> tuple[Part, int]:
        n = shape[dim] if dim < len(shape) else 2
        kind = self.random.choices(("int", "slice", "tensor", "list", "mask", "zero_dim", "array"), (3, 4, 3, 1.5, 1.5, 1, 0.7))[0]
        if kind == "slice":
            return Part(self.slice(n)), 1
        if kind == "mask":
            sizes = shape[dim: dim + self.random.choice((1, 1, 2))] or (n,)
            if self.wrong and self.random.random() < 0.5:
                sizes = (sizes[0] + 1, *sizes[1:])
            return Part(np.array(self.bits(sizes), bool).reshape(sizes), len(sizes) > 1 or self.random.random() < 0.8), len(sizes)
        if kind == "int":
            return Part(self.position(n) if n or self.wrong else slice(None)), 1
        if not n and not self.wrong:
            return Part(np.zeros(self.random.choice(((0,), (2, 0))), np.int64), True), 1
        if kind == "zero_dim":
            return Part(np.array(self.position(n), self.random.choice(("int64", "int32"))), True), 1
        sizes = self.random.choice(((), (1,), (2,), (3,), (2, 2), (0,), (1, 3)))
        picks = np.array([self.position(n) for _ in range(int(np.prod(sizes)))], np.int64).reshape(sizes)
        if kind == "list":
            return Part(picks.tolist()), 1
        return Part(picks, kind == "tensor"), 1

    def bits(self, sizes: tuple[int, ...]) -> list[bool]:
        return [self.random.random() < 0.5 for _ in range(int(np.prod(sizes)))]

    def position(self, n: int) -> int:
        if self.wrong and self.random.random() < 0.4:
            return self.random.choice((n, n + 3, -n - 1))
        return self.random.randint(-n, n - 1) if n else 0

    def slice(self, n: int) -> slice:
        def bound() -> Any:
            value = self.random.choice((None, None, self.random.randint(-n - 2, n + 2)))
            return Part(np.array(value), True) if value is not None and self.random.random() < 0.1 else value

        step = 0 if self.wrong and self.random.random() < 0.3 else self.random.choice((None, None, 1, 2, 3))
        return slice(bound(), bound(), step)

    def nonsense(self) -> Part:
        return self.random.choice((Part("a"), Part(1.5), Part(np.array([0.5]), True), Part(np.array(0.5), True), Part(slice("a")), Part(slice(1.5)),
                                   Part({}), Part(object()), Part(["a"]), Part(slice(None, None, 0)), Part((..., ...)), Part(1j)))


class Case(NamedTuple):
    """One index expression, and the same base in both libraries."""

    draw: Draw
    base: Any
    view: Callable[[Any], Any]
    parts: list[Part]

    def __str__(self) -> str:
        window = self.view(torch.from_numpy(self.base))
        return f"window of shape {tuple(window.shape)} and strides {window.stride()} [{', '.join(map(repr, self.parts))}]"


def case(seed: int) -> Case:
    draw = Draw(seed)
    shape, view = draw.shape(), draw.view()
    base = np.random.default_rng(seed).standard_normal(shape)
    return Case(draw, base, view, draw.key(tuple(view(torch.from_numpy(base)).shape)))


# Where an error in one library is none in the other, on purpose: words of the error, and the reason.
STRICTER_HERE = {"is out of bounds": "positions are checked although the window is empty, and PyTorch would read none of them",
                 "single ellipsis": "several `...` are as good as one in PyTorch, and a mistake in NumPy",
                 "cannot be written into shape (0,": "a value must fit although there is no place to write it to"}
STRICTER_THERE = {"Index put requires the source and destination dtypes match": "a write by position converts, as a write by slice does in both"}


def same_error(theirs: Exception | None, mine: Exception | None) -> str:
    if theirs is None or mine is None:
        meant = any(words in str(theirs or mine) for words in (STRICTER_HERE if theirs is None else STRICTER_THERE))
        return "" if meant else f"{mine!r}, where PyTorch gave {theirs!r}"
    meant = isinstance(theirs, (SystemError, AttributeError))  # PyTorch's own mistake: a tensor as a bound of a slice whose step is zero
    return "" if meant or stands_for(theirs, mine) else f"{type(mine).__mro__[:3]}, which does not stand for PyTorch's {theirs!r}: {mine}"


# ----------------------------------------------------------------------------------------------------------- reading, writing

def read(case: Case) -> str:
    leaf, our_leaf = torch.tensor(case.base, requires_grad=True), mg.tensor(case.base, requires_grad=True)
    expected, theirs = attempt(lambda: case.view(leaf)[key_of(case.parts, torch)], quiet=True)
    found, mine = attempt(lambda: case.view(our_leaf)[key_of(case.parts, mg)])
    if theirs or mine:
        return same_error(theirs, mine)
    seed = torch.randn(expected.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return (difference(expected, found) or memory_difference(leaf, expected, our_leaf, found)
            or difference(gradients(torch, expected, leaf, [seed]), gradients(mg, found, our_leaf, [ours(seed)])))


def memory_difference(base: Any, expected: Any, our_base: Any, found: Any) -> str:
    """Whether both are views, or both are copies; and of views, their strides."""
    if not expected.numel():
        return ""
    views = [a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() for a, b in [(base, expected)]]
    ours_too = np.shares_memory(our_base.detach().numpy(), found.detach().numpy())
    if views[0] != ours_too:
        return f"{'a view' if ours_too else 'a copy'}, not {'a view' if views[0] else 'a copy'}"
    if not ours_too:
        return ""
    moves = [(a, b) for n, a, b in zip(expected.shape, expected.stride(), found.stride()) if n > 1]
    return "" if all(a == b for a, b in moves) and expected.storage_offset() == found.storage_offset() else f"strides {found.stride()}, not {expected.stride()}"


def value_for(case: Case, shape: tuple[int, ...]) -> Any:
    """Something to write: a number, or an array that fits, broadcasts, or does not."""
    kinds = ("number", "zero_dim", "whole", "whole", "broadcast", "leading ones", "integers", "wrong")
    kind = case.draw.random.choice(kinds[:-2] if case.draw.wrong else kinds)  # of two mistakes either may be reported
    rng = np.random.default_rng(7)
    if kind == "number":
        return 2.5
    if kind == "zero_dim":
        return np.array(1.5)
    if kind == "broadcast":
        return rng.standard_normal(tuple(1 if case.draw.random.random() < 0.5 else n for n in shape)[case.draw.random.randint(0, len(shape)):])
    if kind == "leading ones":
        return rng.standard_normal((1, 1, *shape))
    if kind == "wrong":
        return rng.standard_normal((*shape[:-1], (shape[-1] if shape else 0) + 2))
    return rng.integers(0, 9, shape) if kind == "integers" else rng.standard_normal(shape)


def written(library: Any, case: Case, value: Any) -> tuple[Any, Any, list[Any]]:
    leaf = library.tensor(case.base, requires_grad=True)
    source = value if isinstance(value, float) else library.tensor(value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        source.requires_grad_()
    base = leaf * 1
    return leaf, base, [source]


def write(case: Case) -> str:
    picked, error = attempt(lambda: case.view(torch.from_numpy(case.base))[key_of(case.parts, torch)], quiet=True)
    value = value_for(case, tuple(picked.shape)) if error is None else 2.5
    leaf, base, [source] = written(torch, case, value)
    our_leaf, our_base, [our_source] = written(mg, case, value)

    def assign(window: Any, library: Any, source: Any) -> None:
        window[key_of(case.parts, library)] = source

    _, theirs = attempt(lambda: assign(case.view(base), torch, source), quiet=True)
    _, mine = attempt(lambda: assign(case.view(our_base), mg, our_source))
    if theirs or mine:
        return same_error(theirs, mine) or ("changed by a write that failed" if mine and value_difference(case.base, array(our_base)) else "")
    if duplicates(case):
        return ""
    seed = torch.randn(base.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    inputs, our_inputs = [leaf, source], [our_leaf, our_source]
    return difference(base, our_base) or difference(gradients(torch, base, inputs, [seed]), gradients(mg, our_base, our_inputs, [ours(seed)]))


def duplicates(case: Case) -> bool:
    """Whether a place is picked twice: which value stays is undefined in PyTorch, and its gradient counts the overwritten ones."""
    numbers = torch.arange(case.base.size).reshape(case.base.shape)
    picked = case.view(numbers)[key_of(case.parts, torch)]
    return picked.unique().numel() != picked.numel()


def run_block(block: int, check: Callable[[Case], str]) -> None:
    failed = []
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        drawn = case(seed)
        text = check(drawn)
        if text:
            failed.append(f"seed {seed}: {drawn}: {text}")
    assert not failed, f"{len(failed)} of {BLOCK} differ\n" + "\n".join(failed[:6])


@pytest.mark.parametrize("block", range(BLOCKS))
def test_read(block: int) -> None:
    run_block(block, read)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_write(block: int) -> None:
    run_block(block, write)


def test_enough_cases_are_good_and_enough_are_bad() -> None:
    outcomes = [attempt(lambda: case(seed).view(torch.from_numpy(case(seed).base))[key_of(case(seed).parts, torch)], quiet=True)[1] for seed in range(1000)]
    assert 50 < sum(error is not None for error in outcomes) < 300
