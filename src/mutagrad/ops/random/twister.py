"""PyTorch's generator of the CPU: a Mersenne twister's words of 32 bits, and the second normal number of a pair.

NumPy's `MT19937`, seeded as `RandomState` seeds it, has the same state and gives the same words.
"""
from __future__ import annotations

import struct
from threading import RLock
from typing import Any

from ...arrays.kinds import raw as np
from ...arrays.numpy import silently
from ...base.errors import BadValue

WORDS = 624  # of a state
FEW = 64  # words that are quicker drawn as Python's numbers are than through a Generator
# NumPy's objects that no generator has any more. One costs fifty times as much to make as to seed anew, and there are
# programs that make a generator for each draw.
_UNUSED: list[tuple[Any, Any]] = []
KEPT = 4

# The layout of a state in PyTorch: seed, how many words are left before the next round, whether it was seeded, the
# place of the next word; the words; of normal numbers what older versions kept, and the spare one; one of float32.
_HEAD, _TAIL = struct.Struct("<QiiQ"), struct.Struct("<dddixxxxfB3x")
SIZE = _HEAD.size + 8 * WORDS + _TAIL.size
_SPARE_SINGLE = 8  # bytes at the end that older versions do not have


class Twister:
    """Words of 32 and 64 bits, one after the other. `spare` is the normal number that comes next, if there is one."""

    def __init__(self, seed: int) -> None:
        try:
            self.bits, self._integers = _UNUSED.pop()
        except IndexError:
            self.bits, self._integers = _made()
        self.lock = RLock()  # for draws of several steps; a signal handler may draw meanwhile
        self.seed(seed)

    def __del__(self, unused: list[tuple[Any, Any]] = _UNUSED, kept: int = KEPT) -> None:
        # When the interpreter ends, this module's names may be gone: hence the defaults.
        if len(unused) < kept and "_integers" in self.__dict__:  # or its beginning was interrupted
            unused.append((self.bits, self._integers))

    def __getstate__(self) -> Any:
        return self.first, self.state

    def __setstate__(self, kept: Any) -> None:
        self.__init__(kept[0])  # type: ignore[misc]
        self.state = kept[1]

    def seed(self, seed: int) -> None:
        """Begin anew. Of the seed 32 bits count, as in PyTorch."""
        self.first = seed
        self.spare: float | None = None
        self.bits._legacy_seeding(seed & 0xFFFFFFFF)

    @property
    def state(self) -> Any:
        """All that decides which numbers come, to be set again."""
        return self.bits.state, self.spare

    @state.setter
    def state(self, state: Any) -> None:
        self.bits.state, self.spare = state

    def words(self, count: int) -> Any:
        """Draw words of 32 bits."""
        if count < FEW:
            return self.bits.random_raw(count).astype(np.uint32)
        return self._integers(0, 1 << 32, count, np.uint32)

    def long_words(self, count: int) -> Any:
        """Draw words of 64 bits, each made of two, the higher one first."""
        if count < FEW:
            parts = self.bits.random_raw(2 * count)
            return parts[::2] << np.uint64(32) | parts[1::2]
        return self._integers(0, 1 << 64, count, np.uint64)

    def skip(self, words: int) -> None:
        """Pass over words of 32 bits."""
        self.bits.random_raw(words, output=False)

    def to_bytes(self) -> bytes:
        """The state as PyTorch lays it out in memory."""
        kept = self.bits.state["state"]
        key, place = kept["key"], int(kept["pos"])
        fresh = place == WORDS and int(key[0]) == self.first & 0xFFFFFFFF  # PyTorch counts from 0 until it has drawn
        head = _HEAD.pack(self.first, 1 if fresh else WORDS + 1 - place, 1, 0 if fresh else place)
        spare = 0.0 if self.spare is None else self.spare
        tail = _TAIL.pack(0.0, spare, 0.0, self.spare is not None, 0.0, 0)
        return head + key.astype("<u8").tobytes() + tail

    def from_bytes(self, data: bytes) -> None:
        """Take a state that `to_bytes` or PyTorch gave."""
        if len(data) not in (SIZE, SIZE - _SPARE_SINGLE):
            raise BadValue(f"set_state: a state has {SIZE} bytes, not {len(data)}",
                           fix="generator.set_state(generator.get_state())")
        first, left, seeded, place = _HEAD.unpack_from(data)
        key = np.frombuffer(data, "<u8", WORDS, _HEAD.size)
        if not seeded or not 1 <= left <= WORDS or place > WORDS or (key >> 32).any():
            raise BadValue("set_state: these bytes are not the state of a generator",
                           fix="generator.set_state(generator.get_state())")
        _, spare, _, valid, _, _ = _TAIL.unpack(data[_HEAD.size + 8 * WORDS:].ljust(_TAIL.size, b"\0"))
        self.first, self.spare = first, spare if valid else None
        place = WORDS if left == 1 else place  # the next word begins a round
        self.bits.state = {"bit_generator": "MT19937", "state": {"key": key.astype(np.uint32), "pos": place}}


def _made() -> tuple[Any, Any]:
    """Make what draws words, few and many. NumPy sets its error state in there; its seed is replaced at once."""
    bits = silently(np.random.MT19937, 0)
    return bits, silently(np.random.Generator, bits).integers
