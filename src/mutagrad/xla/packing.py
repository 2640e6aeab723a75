"""Memory that a program changes in place, many arrays packed into one of each type, while nobody else looks at it.

A GPU is given its work by Python's thread, and to hand over an array and take another back costs more than what most
steps compute with it. A training step has four arrays for each parameter. So from its third run on a program has those
in an arena: one array of each type, of which it takes its parts, and which it makes anew of what it computed. Whoever
reads or writes one of the memories between two runs opens the arena: each memory has a value of its own again, and the
program runs on these. An arena that is opened again and again is made ever less often.
"""
from __future__ import annotations

from collections.abc import Iterable
from math import prod
from operator import is_
from typing import Any
from weakref import ref

import jax
import jax.numpy as jnp

from ..arrays.xla.memory import Cell, writing
from .session import BUFFER

PLATFORMS = {"gpu"}  # where handing over arrays takes longer than copying them
FEWEST = 8  # memories for which it pays
LARGEST = 1 << 25  # bytes, together: above that, copying them takes longer
FIRST = 2  # runs before the first arena, and after one that has lasted
LASTING = 16  # runs

SPARE = 3  # where memory for gradients stands among what a program is given besides what it changes
HELD: Any = Cell.__dict__["held"]


class Holder:
    """Holds one value."""

    __slots__ = ("held",)

    def __init__(self, held: Any = None) -> None:
        self.held = held


class Packed(Cell):
    """A cell whose value is part of an arena, until somebody asks for it."""

    __slots__ = ()

    def opened(self) -> Any:
        if type(found := HELD.__get__(self)) is Arena:
            found.open()
            return HELD.__get__(self)
        return found

    @property
    def held(self) -> Any:  # type: ignore[override]
        return self.opened()

    @held.setter
    def held(self, new: Any) -> None:
        self.opened()  # the others keep theirs
        HELD.__set__(self, new)


class Layout:
    """Which part of which array each of some values is."""

    def __init__(self, shapes: Iterable[Any]) -> None:
        self.parts: list[tuple[int, int, tuple[int, ...]]] = []
        sizes: dict[Any, int] = {}
        for one in shapes:
            begin = sizes.setdefault(one.dtype, 0)
            self.parts.append((list(sizes).index(one.dtype), begin, one.shape))
            sizes[one.dtype] += one.size
        self.arrays = [jax.ShapeDtypeStruct((size,), dtype) for dtype, size in sizes.items()]
        self.nbytes = sum(one.size * one.dtype.itemsize for one in self.arrays)
        self.packed = jax.jit(self.pack)
        self.unpacked = jax.jit(self.unpack)

    def pack(self, values: list[Any]) -> list[Any]:
        return [jnp.concatenate([v.reshape(-1) for v, part in zip(values, self.parts) if part[0] == k])
                for k in range(len(self.arrays))]

    def unpack(self, arrays: list[Any]) -> list[Any]:
        return [jax.lax.slice(arrays[k], (begin,), (begin + prod(shape),)).reshape(shape)
                for k, begin, shape in self.parts]


class Arena:
    """The values of some cells, which are parts of its arrays as long as it is closed."""

    def __init__(self, layout: Layout, buffers: list[Any], gradients: list[Any]) -> None:
        self.layout, self.buffers = layout, buffers
        cells = [array.cell for array in (*buffers, *gradients)]
        self.cells = [ref(cell) for cell in cells]
        self.arrays = [Holder(v) for v in layout.packed([cell.held for cell in cells])]
        self.closed = True
        for cell in cells:
            cell.__class__, cell.short = Packed, None
            HELD.__set__(cell, self)

    def open(self) -> None:
        """Give each cell a value of its own. What an interrupt leaves undone is done when the next one is asked for."""
        with writing:
            self.closed = False
            if self.arrays:
                with jax.ensure_compile_time_eval():  # also where a step is traced that reads one of them
                    values = self.layout.unpacked([array.held for array in self.arrays])
                for made, value in zip(self.cells, values):
                    if (cell := made()) is not None and HELD.__get__(cell) is self:
                        HELD.__set__(cell, value)
                        cell.__class__ = Cell
                self.arrays, self.buffers = [], []


class Packing:
    """What of a program's memory is packed, and when: what it changes in place, and gradients that it makes anew."""

    def __init__(self, program: Any) -> None:
        donated, *others = program.given
        self.memories = [k for k in program.donated if program.always[k] is not None]
        self.roots = [program.always[k] for k in self.memories]
        self.targets = [k for k in program.written if k not in self.memories]  # these are not packed
        self.donated = [k for k in program.donated if k not in self.memories]
        self.results = [n for n, (owner, *_) in enumerate(program.outputs) if owner is None]
        gradients = [n for n, (owner, *_) in enumerate(program.outputs) if owner is not None]
        shapes = dict(zip(program.donated, donated))
        self.layout = layout = Layout([*(shapes[k] for k in self.memories), *others[SPARE]])
        self.arena: Arena | None = None
        self.wait = self.left = FIRST
        self.runs = 0  # with this arena
        self.compiled = False
        written = len(program.written)
        places = [*(program.written.index(k) for k in self.memories), *(written + n for n in gradients)]
        others[SPARE] = []
        self.given = [layout.arrays, [shapes[k] for k in self.donated], *others]
        function, order = program.jitted.__wrapped__, program.donated

        def run(arrays: list[Any], donated: list[Any], *others: Any) -> list[Any]:
            values = dict(zip(self.memories, layout.unpack(arrays))) | dict(zip(self.donated, donated))
            found = function([values[k] for k in order], *others)
            return [*layout.pack([found[k] for k in places]), *(v for k, v in enumerate(found) if k not in places)]

        self.jitted = jax.jit(run, donate_argnums=(0, 1, 6))

    def pays(self, places: Iterable[Any]) -> bool:
        """Whether memories at these places are many and small enough."""
        return (len(self.layout.parts) >= FEWEST and self.layout.nbytes <= LARGEST
                and all(not place.over_mesh and place.device.platform in PLATFORMS for place in places))

    def compile_ahead(self) -> None:
        """Have XLA compile it before the first run that needs it, in which other threads' programs wait."""
        if self.left == 0 and self.arena is None and not self.compiled:
            self.jitted.lower(*self.given).compile()
            self.compiled = True

    def now(self, grads: list[Any] | None) -> Arena | None:
        """The arena for this run; None if it runs on memories of their own."""
        arena = self.arena
        if arena is not None:
            if arena.closed and grads is not None and all(map(is_, map(BUFFER.__get__, self.roots), arena.buffers)):
                self.runs += 1
                return arena
            arena.open()
            self.wait = FIRST if self.runs >= LASTING else 2 * self.wait
            self.arena, self.left = None, self.wait
        if self.left or grads is None:
            self.left -= self.left > 0
            return None
        self.runs = 0
        self.arena = Arena(self.layout, [root.buffer for root in self.roots], [grad._array for grad in grads])
        return self.arena
