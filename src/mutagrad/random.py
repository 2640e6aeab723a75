"""Random numbers: a Generator, the default one, and `manual_seed`."""
from __future__ import annotations

import operator
import os
from functools import cached_property
from typing import Any

from .backends import np
from .construct import make
from .errors import BadArgument, BadValue


class Generator:
    """A source of random numbers with a state of its own.

    >>> import mutagrad as mg
    >>> a = mg.rand(2, generator=mg.Generator().manual_seed(1))
    >>> mg.equal(a, mg.rand(2, generator=mg.Generator().manual_seed(1)))
    True
    """

    def __init__(self, device: Any = "cpu") -> None:
        self._seed = 0

    @cached_property
    def source(self) -> Any:
        """NumPy's generator, made when first asked for: importing numpy.random takes longer than all of this package."""
        return np.random.default_rng(self._seed % 2**64)

    def manual_seed(self, seed: int) -> Generator:
        self._seed = _whole(seed)
        self.__dict__.pop("source", None)
        return self

    def seed(self) -> int:
        """Seeds from the operating system's randomness."""
        return self.manual_seed(int.from_bytes(os.urandom(7), "little"))._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        """The state as a tensor of bytes, for `set_state`."""
        state = self.source.bit_generator.state["state"]
        numbers = (self._seed % 2**64, state["state"], state["inc"], self.source.bit_generator.state["has_uint32"],
                   self.source.bit_generator.state["uinteger"])
        return make(np.frombuffer(b"".join(n.to_bytes(16, "little") for n in numbers), np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        numbers = [int.from_bytes(chunk, "little") for chunk in _chunks(state._array.tobytes())]
        self.manual_seed(numbers[0])
        whole = self.source.bit_generator.state
        whole["state"] = {"state": numbers[1], "inc": numbers[2]}
        whole["has_uint32"], whole["uinteger"] = numbers[3], numbers[4]
        self.source.bit_generator.state = whole
        return self


def _chunks(data: bytes) -> list[bytes]:
    if len(data) != 80:
        raise BadValue(f"set_state: a state has 80 bytes, not {len(data)}", fix="generator.set_state(generator.get_state())")
    return [data[i:i + 16] for i in range(0, 80, 16)]


def _whole(seed: Any) -> int:
    try:
        return int(operator.index(seed)) if not hasattr(seed, "item") else int(operator.index(seed.item()))
    except TypeError:
        raise BadArgument(f"manual_seed: the seed must be an integer, not {seed!r}", fix="mutagrad.manual_seed(0)") from None


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator: the same numbers follow each time."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    return default_generator.seed()


def initial_seed() -> int:
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    default_generator.set_state(state)


def source(generator: Generator | None) -> Any:
    return (generator or default_generator).source
