"""Updates of all parameters as one pass over memory.

An update that has been compiled is one as it is. Elsewhere it is a dozen elementary operations on four or five arrays.
Done one after the other on whole arrays, each would fetch them from main memory again, so they are done block by block:
what one operation leaves in the cache, the next finds there. The blocks of all parameters together are one queue, from
which every thread takes the next: a thread that is held up (the machine has other work) does fewer of them.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..arrays import np
from ..arrays.compiled.loops import Loop
from ..arrays.kinds import raw
from ..arrays.numpy import silently
from ..arrays.parallel import LARGE, SHARED, get_num_threads, in_spans
from ..base.operands import Array

# Elements of a block, measured with Adam: its arrays then lie in the cache that the cores share. Those nearer to a core
# would hold blocks of 16,000, but then calling the operations, and handing the interpreter lock over after each, takes
# longer.
BLOCK = 1 << 17
LEAST_BLOCK = 1 << 16  # for fewer elements, which should still be two blocks for each thread
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Job(NamedTuple):
    """One parameter's update: `update(hyper, scratch, parameter, gradient, *state)`, on vectors of real numbers.

    `loop` does the same in one go, where it has been compiled.
    """

    update: Callable[..., None]
    hyper: tuple[Any, ...]
    vectors: tuple[Array, ...]
    loop: Loop | None


class _Scratch(threading.local):
    """Of one thread: three blocks for what lies between two operations."""

    def __init__(self) -> None:
        self.by_type: dict[Any, tuple[Array, ...]] = {}

    def blocks(self, dtype: Any, size: int) -> list[Array]:
        made = self.by_type.get(dtype)
        if made is None:
            made = self.by_type[dtype] = tuple(raw.empty(BLOCK, dtype) for _ in range(3))
        return [block[:size] for block in made]


_scratch = _Scratch()


def computing_type(dtype: Any) -> Any:
    """Return the type in which numbers of this type are updated: two bytes are too few to add small things up."""
    return FLOAT64 if dtype.char in "dD" else FLOAT32


def vector(array: Array) -> Array:
    """Return the elements of a C-contiguous array as a vector of real numbers over the same memory."""
    flat = array if array.ndim == 1 else array.reshape(-1)
    return flat.view(computing_type(array.dtype)) if array.dtype.kind == "c" else flat


def run(jobs: list[Job]) -> None:
    """Does them all, on several threads if there is enough to do: those that are loops share each of these out."""
    for job in jobs:
        if job.loop is not None:
            job.loop.run(get_num_threads() if job.vectors[0].size >= SHARED else 1)
    jobs = [job for job in jobs if job.loop is None]
    total = sum([job.vectors[0].size for job in jobs])
    if total < LARGE:
        silently(_work, _blocks(jobs, BLOCK))
        return
    threads = get_num_threads()
    blocks = _blocks(jobs, min(BLOCK, max(LEAST_BLOCK, total // (2 * threads))))
    silently(in_spans, threads, lambda _: _work(blocks))


def _blocks(jobs: list[Job], most: int) -> Iterator[tuple[Job, int, int]]:
    """A list's iterator, because several threads may ask it at once (a generator they may not)."""
    found = []
    for job in jobs:
        size = job.vectors[0].size
        if size <= most:
            found.append((job, 0, size))
        else:
            found += [(job, start, min(start + most, size)) for start in range(0, size, most)]
    return iter(found)


def _work(blocks: Iterator[tuple[Job, int, int]]) -> None:
    for job, start, stop in blocks:
        update, hyper, vectors, _ = job
        if stop - start < vectors[0].size:
            vectors = tuple([v[start:stop] for v in vectors])
        dtype = vectors[0].dtype
        if dtype.itemsize > 2:
            update(hyper, _scratch.blocks(dtype, stop - start), *vectors)
        else:
            _in_single(update, hyper, vectors)


def _in_single(update: Callable[..., None], hyper: tuple[Any, ...], vectors: tuple[Array, ...]) -> None:
    """The update of two-byte numbers: in single precision, and rounded at the end."""
    wide = [v.astype(FLOAT32) for v in vectors]
    update(hyper, _scratch.blocks(FLOAT32, wide[0].size), *wide)
    for i, v in enumerate(vectors):
        if i != 1:  # the gradient is only read
            v[...] = wide[i]


def toward(p: Array, g: Array, maximize: bool, weight_decay: Any) -> Array:
    """Return the gradient that a formula goes by: turned around to maximize, with what weight decay adds."""
    g = -g if maximize else g
    return g if weight_decay is None else g + weight_decay * p


def seen_gradient(out: Array, p: Array, g: Array, maximize: bool, weight_decay: Any) -> Any:
    """Return the same for an update, which may use `out`."""
    if weight_decay is None:
        return np.negative(g, out) if maximize else g
    np.multiply(p, weight_decay, out)
    return np.subtract(out, g, out) if maximize else np.add(out, g, out)


def average(average: Array, value: Array, weight: Any, out: Array) -> None:
    """Moves a running average by `weight` towards a value."""
    np.subtract(value, average, out)
    np.multiply(out, weight, out)
    np.add(average, out, average)


def average_square(average: Array, value: Array, keep: Any, weight: Any, out: Array) -> None:
    """`average = keep * average + weight * value ** 2`."""
    np.multiply(value, value, out)
    np.multiply(out, weight, out)
    np.multiply(average, keep, average)
    np.add(average, out, average)


def divided_step(p: Array, above: Array, below: Array, rate: Any, out: Array) -> None:
    """`p -= rate * above / below`; `out` may be `below`."""
    np.divide(above, below, out)
    np.multiply(out, rate, out)
    np.subtract(p, out, p)
