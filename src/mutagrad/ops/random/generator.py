"""Random numbers: a Generator, the default one, and `manual_seed`."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from math import prod
from typing import Any

from ...arrays import np
from ...arrays.kinds import is_replayed, raw
from ...arrays.numpy import silently
from ...arrays.threads import in_spans
from ...base.device import CPU, as_device, device as Device, place_named
from ...base.errors import BadArgument, BadData, BadValue
from ...base.modes import OTHER_KIND, mode
from ...core.factory import make
from ...core.storage import TensorBase as Tensor

FIRST_SEED = 67280421310721  # a fresh generator's, as in PyTorch


class Generator:
    """A source of random numbers with a state of its own.

    >>> import mutagrad as mg
    >>> a = mg.rand(2, generator=mg.Generator().manual_seed(1))
    >>> mg.equal(a, mg.rand(2, generator=mg.Generator().manual_seed(1)))
    True
    """

    __module__ = "mutagrad.random"

    device = CPU

    def __init__(self, device: Device | str | None = "cpu") -> None:
        if device is not None and place_named(device) is not None:
            self.device = as_device(device)  # for which numbers are drawn here, the same as for the CPU
        self._seed = FIRST_SEED

    @property
    def source(self) -> Any:
        """What draws: NumPy's generator, for whichever kind of array is on."""
        level = mode.now.kind if OTHER_KIND else None
        return self._source if level is None else level.drawing(self._source, self)

    @cached_property
    def _source(self) -> Any:
        """NumPy's generator, made when first asked for: importing numpy.random takes longer than this whole package."""
        return silently(np.random.default_rng, self._seed)  # NumPy sets its error state meanwhile, by `with`

    def manual_seed(self, seed: int) -> Generator:
        """The same numbers follow each time; a negative seed counts from 2^64 down."""
        if is_replayed():
            raise mode.now.kind.refuse("a generator is seeded, which happens only while the step is traced",
                                       "mutagrad.manual_seed(0) before the step is called")
        wanted = _whole(seed)
        if not -2**63 <= wanted < 2**64:
            raise BadValue(f"manual_seed: {seed} is out of range",
                           why="a seed has 64 bits", fix="mutagrad.manual_seed(0)")
        self._seed = wanted % 2**64
        self.__dict__.pop("_source", None)
        return self

    def seed(self) -> int:
        """Seed from the operating system's randomness."""
        return self.manual_seed(int.from_bytes(os.urandom(7), "little"))._seed

    def initial_seed(self) -> int:
        return self._seed

    def get_state(self) -> Any:
        """The state as a tensor of bytes, for `set_state`."""
        if is_replayed():  # a step that is traced draws in another way
            return mode.now.kind.drawing(self._source, self).state()
        state = self._source.bit_generator.state["state"]
        numbers = (self._seed, state["state"], state["inc"], self._source.bit_generator.state["has_uint32"],
                   self._source.bit_generator.state["uinteger"])
        return make(np.frombuffer(b"".join(n.to_bytes(16, "little") for n in numbers), np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        if is_replayed():
            mode.now.kind.drawing(self._source, self).go_back(state)
            return self
        if not hasattr(state, "_array") or state._array.dtype != np.uint8:
            raise BadArgument(f"set_state: a state is a tensor of bytes, not {type(state).__name__}",
                              fix="generator.set_state(generator.get_state())")
        numbers = [int.from_bytes(chunk, "little") for chunk in _chunks(state._array.tobytes())]
        self.manual_seed(numbers[0])
        whole = self._source.bit_generator.state
        whole["state"] = {"state": numbers[1], "inc": numbers[2]}
        whole["has_uint32"], whole["uinteger"] = numbers[3], numbers[4]
        self._source.bit_generator.state = whole
        return self

    def clone_state(self) -> Generator:
        """Another generator that will give the same numbers."""
        return Generator().set_state(self.get_state())


def _chunks(data: bytes) -> list[bytes]:
    if len(data) != 80:
        raise BadValue(f"set_state: a state has 80 bytes, not {len(data)}",
                       fix="generator.set_state(generator.get_state())")
    return [data[i:i + 16] for i in range(0, 80, 16)]


def _whole(seed: Any) -> int:
    try:
        return int(seed)
    except (TypeError, ValueError):
        raise BadData(f"manual_seed: the seed must be an integer, not {seed!r}",
                      fix="mutagrad.manual_seed(0)") from None


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator: the same numbers follow each time."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system's randomness."""
    return default_generator.seed()


def initial_seed() -> int:
    """What the default generator was last seeded with."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The default generator's state, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type: str = "cpu") -> Iterator[None]:
    """Within it random numbers may be drawn at will: afterwards the default generator is as it was.

    >>> import mutagrad as mg
    >>> state = mg.random.get_rng_state()
    >>> with mg.random.fork_rng():
    ...     drawn = mg.rand(3)
    >>> mg.equal(state, mg.random.get_rng_state())
    True
    """
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)


def source(generator: Generator | None) -> Any:
    """NumPy's generator behind ours, or behind the default one."""
    if generator is None:
        return default_generator.source
    if not isinstance(generator, Generator):
        raise BadArgument(f"generator: expected a mutagrad.Generator, not {type(generator).__name__}",
                          fix="generator=mutagrad.Generator().manual_seed(0)")
    return generator.source


BLOCK = 1 << 16  # numbers that are drawn from one source, where there are several


def drawn(generator: Generator | None, method: str, shape: tuple[int, ...], array_type: Any = np.float64) -> Any:
    """Return float32 or float64 numbers that a method of NumPy's generator draws.

    Many are drawn in blocks, each from a source that two numbers of the generator and its place seed: several threads
    share them, and which numbers come does not depend on how many threads there are.
    """
    given, size = source(generator), prod(shape)
    if size < 2 * BLOCK or not isinstance(given, np.random.Generator):
        return np.asarray(getattr(given, method)(shape, dtype=array_type))
    key = given.integers(0, 1 << 63, 2).tolist()
    out = raw.empty(size, array_type)

    def work(blocks: slice) -> None:
        for b in range(blocks.start, blocks.stop):
            seeded = np.random.Generator(np.random.SFC64((*key, b)))
            getattr(seeded, method)(dtype=array_type, out=out[b * BLOCK:(b + 1) * BLOCK])

    in_spans(-(-size // BLOCK), work)
    return out.reshape(shape)


_DIGITS = {"e": 11, "E": 8}  # of float16 and bfloat16, by their characters


def uniform(generator: Generator | None, shape: tuple[int, ...], array_type: Any = np.float64) -> Any:
    """Numbers in [0, 1). In a short type they are multiples of its precision: rounding others could give 1."""
    digits = _DIGITS.get(np.dtype(array_type).char)
    if digits is None:
        return np.asarray(source(generator).random(shape, dtype=array_type))
    return (source(generator).integers(0, 1 << digits, shape) * 0.5**digits).astype(array_type)
