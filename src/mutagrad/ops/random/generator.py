"""Random numbers: a Generator, the default one, and `manual_seed`, which gives the numbers of PyTorch's CPU."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ...arrays import np
from ...arrays.kinds import is_replayed
from ...base.device import CPU, as_device, device as Device, place_named
from ...base.errors import BadArgument, BadData, BadValue
from ...base.modes import OTHER_KIND, mode
from ...core.factory import make
from ...core.storage import TensorBase as Tensor
from .source import Source

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
        """What draws, for whichever kind of array is on."""
        level = mode.now.kind if OTHER_KIND else None
        return self._source if level is None else level.drawing(self._source, self)

    @cached_property
    def _source(self) -> Source:
        """Made when first asked for: importing numpy.random takes longer than this whole package."""
        return Source(self._seed)

    def manual_seed(self, seed: int) -> Generator:
        """The same numbers follow each time; a negative seed counts from 2^64 down.

        >>> import mutagrad as mg
        >>> mg.rand(2, generator=mg.Generator().manual_seed(0))
        tensor([0.4963, 0.7682])
        """
        if is_replayed():
            raise mode.now.kind.refuse("a generator is seeded, which happens only while the step is traced",
                                       "mutagrad.manual_seed(0) before the step is called")
        wanted = _whole(seed)
        if not -2**63 <= wanted < 2**64:
            raise BadValue(f"manual_seed: {seed} is out of range",
                           why="a seed has 64 bits", fix="mutagrad.manual_seed(0)")
        self._seed = wanted % 2**64
        if "_source" in self.__dict__:
            with self._source.lock:
                self._source.seed(self._seed)
        return self

    def seed(self) -> int:
        """Seed from the operating system's randomness.

        >>> import mutagrad as mg
        >>> generator = mg.Generator()
        >>> generator.seed() == generator.initial_seed()
        True
        """
        return self.manual_seed(int.from_bytes(os.urandom(7), "little"))._seed

    def initial_seed(self) -> int:
        """Return the seed that was set last.

        >>> import mutagrad as mg
        >>> mg.Generator().manual_seed(3).initial_seed()
        3
        """
        return self._seed

    def get_state(self) -> Any:
        """The state as a tensor of bytes, laid out as PyTorch's are, for `set_state` of either.

        >>> import mutagrad as mg
        >>> mg.Generator().manual_seed(3).get_state().shape
        mutagrad.Size([5056])
        """
        if is_replayed():  # a step that is traced draws in another way
            return mode.now.kind.drawing(self._source, self).state
        with self._source.lock:
            return make(np.frombuffer(self._source.to_bytes(), np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Go on from a state that `get_state` gave, here or in PyTorch.

        >>> import mutagrad as mg
        >>> generator = mg.Generator()
        >>> _ = generator.set_state(mg.Generator().manual_seed(3).get_state())
        >>> mg.equal(mg.rand(2, generator=generator), mg.rand(2, generator=mg.Generator().manual_seed(3)))
        True
        """
        if is_replayed():
            mode.now.kind.drawing(self._source, self).state = state
            return self
        if not hasattr(state, "_array") or state._array.dtype != np.uint8:
            raise BadArgument(f"set_state: a state is a tensor of bytes, not {type(state).__name__}",
                              fix="generator.set_state(generator.get_state())")
        with self._source.lock:
            self._source.from_bytes(state._array.tobytes())
        self._seed = self._source.first
        return self

    def clone_state(self) -> Generator:
        """Another generator that will give the same numbers.

        >>> import mutagrad as mg
        >>> generator = mg.Generator().manual_seed(3)
        >>> other = generator.clone_state()
        >>> mg.equal(mg.rand(2, generator=generator), mg.rand(2, generator=other))
        True
        """
        return Generator().set_state(self.get_state())


def _whole(seed: Any) -> int:
    try:
        return int(seed)
    except (TypeError, ValueError):
        raise BadData(f"manual_seed: the seed must be an integer, not {seed!r}",
                      fix="mutagrad.manual_seed(0)") from None


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator: the same numbers follow each time.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.rand(2)
    tensor([0.4963, 0.7682])
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seed the default generator from the operating system's randomness.

    >>> import mutagrad as mg
    >>> mg.seed() == mg.initial_seed()
    True
    """
    return default_generator.seed()


def initial_seed() -> int:
    """What the default generator was last seeded with.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(3)
    >>> mg.initial_seed()
    3
    """
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The default generator's state, for `set_rng_state`.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> state = mg.get_rng_state()
    >>> a = mg.rand(2)
    >>> mg.set_rng_state(state)
    >>> mg.equal(a, mg.rand(2))
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` gave.

    >>> import mutagrad as mg
    >>> state = mg.get_rng_state()
    >>> a = mg.rand(2)
    >>> mg.set_rng_state(state)
    >>> mg.equal(a, mg.rand(2))
    True
    """
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
    """What draws for a generator, or for the default one."""
    if generator is None:
        return default_generator.source
    if not isinstance(generator, Generator):
        raise BadArgument(f"generator: expected a mutagrad.Generator, not {type(generator).__name__}",
                          fix="generator=mutagrad.Generator().manual_seed(0)")
    return generator.source
