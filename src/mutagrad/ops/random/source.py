"""What each kind of draw takes from a generator, in which order, and what it makes of it: as PyTorch does on the CPU.

Arguments are given by their places: for other kinds of arrays (a `vmap`, a compiled step) others have these methods.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from ...arrays.compiled.library import find_for
from ...arrays.compiled.rejection import exchange
from ...arrays.kinds import raw as np
from ...arrays.numpy import silent
from . import rejection
from .box_muller import GROUP, each, fused, pairs, spread, turn_to_normal
from .permutation import permuted
from .twister import FEW, Twister

BLOCK = 1 << 15  # words that are drawn and turned into numbers while they are in the cache
_LAST, _LAST_SINGLE, _LAST_OF_FEW = np.uint64(2**53 - 1), np.uint32(2**24 - 1), np.uint64(2**24 - 1)
_PASSED = {"d": 2, "f": 1, "e": 0, "E": 0}  # words that are drawn, and not used, for each number beyond whole groups
WIDE = 1 << 28  # from how many whole numbers on each takes 64 bits
MANY = (2**32 - 1) // 20  # and from how many items on a permutation does

Shape = tuple[int, ...]


def _locked(method: Callable[..., Any]) -> Callable[..., Any]:
    """A draw that no other thread's comes into."""
    @wraps(method)
    def alone(self: Source, *arguments: Any) -> Any:
        with self.lock:
            return silent().run(method, self, *arguments)

    return alone


class Source(Twister):
    """Draws arrays of NumPy's."""

    # ------------------------------------------------------------------------------------------------------- uniform

    def _unit(self, out: Any) -> None:
        """Fill a vector with numbers from 0 to 1, as fine as its type."""
        if out.dtype == np.float64:
            np.multiply(self.long_words(out.size) & _LAST, 2.0**-53, out=out)
        elif out.size < FEW:  # fewer steps, as doubles
            np.multiply(self.bits.random_raw(out.size) & _LAST_OF_FEW, 2.0**-24, out=out, casting="same_kind")
        else:
            out[...] = (self.words(out.size) & _LAST_SINGLE).view(np.int32)
            out *= np.float32(2.0**-24)

    def _doubles(self, count: int) -> Any:
        out = np.empty(count)
        self._unit(out)
        return out

    @_locked
    def uniform(self, shape: Shape, kind: Any, low: float, high: float) -> Any:
        """Numbers from `low` up to `high`."""
        kind = np.dtype(kind)
        out = np.empty(math.prod(shape), kind)
        for block in _blocks(out.size, BLOCK):
            drawn = out[block] if kind.char in "fd" else np.empty(out[block].size, np.float32)
            self._unit(drawn)
            if drawn.base is not out or (low, high) != (0, 1):
                out[block] = _between(drawn, low, high, kind)
        return out.reshape(shape)

    @_locked
    def chosen(self, shape: Shape, p: float) -> Any:
        """Whether something of probability p has happened: a double is below p."""
        out = np.empty(math.prod(shape), bool)
        bound = np.uint64(math.ceil(p * 2**53))
        for block in _blocks(out.size, BLOCK):
            np.less(self.long_words(out[block].size) & _LAST, bound, out=out[block])
        return out.reshape(shape)

    @_locked
    def happened(self, p: Any) -> Any:
        """The same for an array of probabilities, whose type says how fine the numbers are."""
        out = np.empty(p.size, np.float64 if p.dtype == np.float64 else np.float32)
        self._unit(out)
        return out.reshape(p.shape) < p.astype(out.dtype)

    # -------------------------------------------------------------------------------------------------------- normal

    @_locked
    def normal(self, shape: Shape, kind: Any, mean: float, std: float, in_order: bool) -> Any:
        """Normal numbers, for memory that is in order or not."""
        kind, count = np.dtype(kind), math.prod(shape)
        if count < GROUP or not in_order:
            return _cast(spread(self._pairs(count), mean, std), kind).reshape(shape)
        out = np.empty(count, np.float64 if kind.char == "d" else np.float32)
        whole = count - count % GROUP
        for block in _blocks(whole, BLOCK):
            self._unit(out[block])
        turn_to_normal(out[:whole], mean, std)
        if whole < count:  # the last 16 are drawn anew
            self.skip((count - whole) * _PASSED[kind.char])
            self._unit(out[-GROUP:])
            turn_to_normal(out[-GROUP:], mean, std)
        return out.astype(kind, copy=False).reshape(shape)

    def _pairs(self, count: int) -> Any:
        """Standard normal doubles: the one that was kept, pairs, and of the last one perhaps the second is kept."""
        if not count:
            return np.empty(0)
        kept, self.spare = self.spare, None
        missing = count - (kept is not None)
        found = pairs(self._doubles(2 * -(-missing // 2)))
        if missing % 2:
            found, self.spare = found[:-1], float(found[-1])
        return found if kept is None else np.concatenate([[kept], found])

    @_locked
    def log_normal(self, shape: Shape, kind: Any, mean: float, std: float) -> Any:
        """Numbers whose logarithm is normal."""
        logarithms = spread(self._pairs(math.prod(shape)), mean, std)
        return _cast(_exactly(np.exp, math.exp, logarithms, kind), kind).reshape(shape)

    # ------------------------------------------------------------------------------------------------- whole numbers

    @_locked
    def integers(self, shape: Shape, low: int, span: int) -> Any:
        """Whole numbers from `low` on, of which there are `span`."""
        count = math.prod(shape)
        if span < WIDE:
            out = np.empty(count, np.int64)
            for block in _blocks(count, BLOCK):
                np.add(self.words(out[block].size) % np.uint32(span), np.int64(low), out=out[block])
            return out.reshape(shape)
        drawn = self.long_words(count)
        if span < 1 << 64:  # else all of them
            drawn = drawn % np.uint64(span) + np.uint64(low % 2**64)
        return drawn.view(np.int64).reshape(shape)

    @_locked
    def remainders(self, shape: Shape, divisor: int, long: bool) -> Any:
        """Words of 32 or 64 bits, modulo a number."""
        count = math.prod(shape)
        if not long and divisor < 1 << 32:
            out = np.empty(count, np.uint64)
            for block in _blocks(count, BLOCK):
                out[block] = self.words(out[block].size) % np.uint32(divisor)
            return out.reshape(shape)
        drawn = self.long_words(count) if long else self.words(count).astype(np.uint64)
        return (drawn if divisor == 1 << 64 else drawn % np.uint64(divisor)).reshape(shape)

    @_locked
    def permutation(self, count: int) -> Any:
        """The numbers below `count` in random order."""
        if not count:
            return np.empty(0, np.int64)
        words = self.words(count - 1) if count < MANY else self.long_words(count - 1)
        order = np.arange(count)
        if count < MANY and (kernel := find_for(exchange, order)) is not None:
            kernel(0, words.size, words.view(np.int32), order)
            return order
        return permuted(words % np.arange(count, 1, -1, dtype=words.dtype))

    @_locked
    def geometric(self, shape: Shape, p: float) -> Any:
        """How many trials there are up to the first success."""
        drawn = self._doubles(math.prod(shape))
        return np.ceil(np.log(drawn) / math.log(1 - p)).reshape(shape)

    # ----------------------------------------------------------------------------------------------------- continuous

    @_locked
    def exponential(self, shape: Shape, kind: Any, rate: float) -> Any:
        """Exponential numbers."""
        drawn = _exactly(np.log1p, math.log1p, -self._doubles(math.prod(shape)), kind)
        return _cast(np.divide(-1.0, rate) * drawn, kind).reshape(shape)

    @_locked
    def cauchy(self, shape: Shape, kind: Any, median: float, sigma: float) -> Any:
        """Cauchy numbers."""
        slopes = _exactly(np.tan, math.tan, math.pi * (self._doubles(math.prod(shape)) - 0.5), kind)
        return _cast(fused(np.float64(sigma), slopes, np.float64(median)), kind).reshape(shape)

    # ------------------------------------------------------------------------------------------------ drawn till good

    @_locked
    def gamma(self, concentration: Any) -> Any:
        """Gamma numbers of rate one, each with its concentration."""
        return rejection.gamma(concentration, self._each)

    @_locked
    def poisson(self, rate: Any) -> Any:
        """Poisson numbers, each with its rate."""
        return rejection.poisson(rate, self._each)

    @_locked
    def binomial(self, count: Any, p: Any) -> Any:
        """How many of `count` trials succeed, each with probability `p`."""
        return rejection.binomial(count, p, self._each)

    def _each(self, loop: Any, one: Any, *arrays: Any) -> Any:
        """What `one` draws for the elements of vectors, one after the other; a kernel does so on the state itself."""
        given = [np.ascontiguousarray(a, np.float64).reshape(-1) for a in arrays]
        out = np.empty(given[0].size)
        if (kernel := find_for(loop, out)) is not None:
            kept = self.bits.state
            words, spare = kept["state"], np.array([self.spare or 0.0])
            state = np.array([*words["key"].tolist(), words["pos"], self.spare is not None, *spare.view(np.int64)])
            kernel(0, out.size, state, *given, out)
            words["key"], words["pos"] = state[:-3].astype(np.uint32), int(state[-3])
            self.state = kept, float(state[-1:].view(np.float64)[0]) if state[-2] else None
        else:
            with self._one_by_one() as uniform:
                draw = uniform, self._normals(uniform)
                out[:] = [one(*numbers, draw) for numbers in zip(*(v.tolist() for v in given))]
        return out

    @contextmanager
    def _one_by_one(self) -> Iterator[Callable[[], float]]:
        """A function that gives one double after the other. They are drawn ahead; those left over go back."""
        before, taken = self.bits.state, 0

        def ahead() -> Iterator[float]:
            nonlocal taken
            size = 32
            while True:
                block = self._doubles(size).tolist()
                for number in block:
                    taken += 1
                    yield number
                size = min(2 * size, BLOCK)

        try:
            yield ahead().__next__
        finally:
            self.bits.state = before
            self.skip(2 * taken)

    def _normals(self, uniform: Callable[[], float]) -> Callable[[], float]:
        """The same for standard normal numbers."""
        def normal() -> float:
            kept = self.spare
            if kept is not None:
                self.spare = None
                return kept
            angle = 2 * math.pi * uniform()
            radius = math.sqrt(-2.0 * math.log1p(-uniform()))
            self.spare = radius * math.sin(angle)
            return radius * math.cos(angle)

        return normal


def _between(drawn: Any, low: float, high: float, kind: Any) -> Any:
    """Numbers from 0 to 1 as such from `low` to `high`, rounded once. What is rounded to `high` becomes `low`."""
    first, last = np.array([low, high]).astype(drawn.dtype)
    if drawn.dtype == np.float64:
        found = fused(drawn, last - first, first) if first else drawn * last
    else:
        wide = drawn.astype(np.float64)
        wide *= np.float64(last - first)
        wide += np.float64(first)
        found = _cast(wide, kind)
    first, last = _cast(np.array([low, high]), kind)
    if (beyond := found >= last).any():
        found[beyond] = first
    return found


def _exactly(function: Callable[[Any], Any], exact: Callable[[float], float], x: Any, kind: Any) -> Any:
    """A function of doubles; where they stay doubles, what the C library gives."""
    return each(exact, x) if np.dtype(kind).char == "d" else function(x)


def _cast(x: Any, kind: Any) -> Any:
    """Doubles in another type; in one of two bytes they are rounded to single precision first, as in PyTorch."""
    kind = np.dtype(kind)
    return x.astype(np.float32).astype(kind) if kind.char in "eE" else x.astype(kind, copy=False)


def _blocks(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]
