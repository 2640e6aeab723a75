"""Convolutions by compiled loops: the tables that say where everything lies.

The images of a few samples are copied with their borders, so that each kernel element sees them shifted by a fixed
distance in memory, row ends and all. Rows share their borders: what follows the end of one is what precedes the next.
With a stride the rows and columns are sorted by their remainders, each an image of its own (a `source`), which makes
the distance fixed again. Then a result is the sum, over channels and kernel elements, of weights times what lies a
fixed distance from the result's own place: a product of matrices, one of which need not be made.

The transposed convolution is the same, from results to images. With a stride, positions of each remainder (a `target`)
have the sums of some kernel elements only.
"""
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, NamedTuple

from ...arrays import np, parallel as large
from ...arrays.compiled import images, library
from ...arrays.compiled.compiler import choice
from ...arrays.kinds import is_plain, remembered
from ...base.operands import Array
from .planes import usable

Sizes = tuple[int, ...]
_WORTH = 1 << 14  # products from which a compiled loop is worth its call
_FAST = 32  # how many of them take as long as one element does elsewhere


class Plan(NamedTuple):
    """What the loops are given. All have three dimensions."""

    form: Array  # strides, borders, distances of rows; strides of the result; the largest shift
    sources: Array  # for each source its remainders
    taps: Array  # the number of the kernel element, of its source, and its shift
    targets: Array  # the first tap and the last; where results begin; from and to which place of a row they are


def _three(sizes: Sizes, fill: int) -> Sizes:
    return (fill,) * (3 - len(sizes)) + sizes


def _plan(strides: Sizes, borders: Sizes, rows: Sizes, steps: Sizes, sources: list[Any], taps: list[Any],
          targets: list[Any]) -> Plan:
    form = (*strides, *borders, *rows, *steps, max((t[2] for t in taps), default=0))
    return Plan(np.array(form, np.intp), *(np.array(v, np.intp).reshape(len(v), -1) for v in (sources, taps, targets)))


@remembered(1024)
def forward_plan(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Plan:
    size, kernel, out = _three(size, 1), _three(kernel, 1), _three(out, 1)
    stride, padding, dilation = _three(stride, 1), _three(padding, 0), _three(dilation, 1)
    rows = tuple(max(-(-(n + p) // s), o) for n, p, s, o in zip(size, padding, stride, out))
    sources: dict[Sizes, int] = {}
    taps = []
    for number, at in enumerate(product(*map(range, kernel))):
        seen = tuple(i * d for i, d in zip(at, dilation))
        source = sources.setdefault(tuple(i % s for i, s in zip(seen, stride)), len(sources))
        taps.append((number, source, _flat(tuple(i // s for i, s in zip(seen, stride)), rows)))
    return _plan(stride, padding, rows, (1, 1, 1), list(sources), taps, [(0, len(taps), *(0,) * 6, *out)])


@remembered(1024)
def transposed_plan(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, out: Sizes) -> Plan:
    """From images of the sizes `out` to such of `size`."""
    size, kernel, out = _three(size, 1), _three(kernel, 1), _three(out, 1)
    stride, padding, dilation = _three(stride, 1), _three(padding, 0), _three(dilation, 1)
    skipped = tuple(p // s for p, s in zip(padding, stride))  # places of each remainder before the result begins
    farthest = tuple(d * (k - 1) // s for d, k, s in zip(dilation, kernel, stride))
    border = tuple(max(f - e, 0) for f, e in zip(farthest, skipped))
    rows = tuple(max(b + o, (n - 1 + p) // s + 1)
                 for b, o, n, p, s in zip(border, out, size, padding, stride))
    taps: list[Any] = []
    targets: list[Any] = []
    for rest in product(*map(range, stride)):
        first = len(taps)
        for number, at in enumerate(product(*map(range, kernel))):
            seen = tuple(i * d for i, d in zip(at, dilation))
            if all(i % s == r for i, s, r in zip(seen, stride, rest)):
                back = tuple(e - i // s + b for e, i, s, b in zip(skipped, seen, stride, border))
                taps.append((number, 0, _flat(back, rows)))
        start = tuple(e * s + r - p for e, s, r, p in zip(skipped, stride, rest, padding))
        low = tuple(-(z // s) if z < 0 else 0 for z, s in zip(start, stride))
        high = tuple((n - 1 - z) // s + 1 for n, z, s in zip(size, start, stride))
        targets.append((first, len(taps), *start, *low, *high))
    return _plan((1, 1, 1), border, rows, stride, [(0, 0, 0)], taps, targets)


def _flat(at: Sizes, rows: Sizes) -> int:
    return (at[0] * rows[1] + at[1]) * rows[2] + at[2]


# ------------------------------------------------------------------------------------------------------------ the loops

def _loop(function: Callable[..., Any], work: int, *arrays: Array) -> Any:
    """A compiled loop for these arrays; None if there is none, or it is not worth it."""
    if not choice.on or work < _WORTH or not is_plain(*arrays):
        return None
    return library.find(function, arrays[0].dtype)


def _images(a: Array) -> Any:
    return usable(a).reshape(*a.shape[:2], *_three(a.shape[2:], 1))


def _parts(image: Array, weights: int) -> int:
    """How often each sample is gone through, for a share of the channels each time.

    A thread lays out its images and its weights; that is done twice for the smaller of the two.
    """
    threads = large.get_num_threads()
    return 1 if len(image) >= 2 * threads and image.size >= weights else threads


def conv(x: Array, weight: Array, bias: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int,
         out: Sizes) -> Any | None:
    """The convolution; None where NumPy has to do it."""
    o, c, *kernel = weight.shape
    n = x.shape[0]
    loop = _loop(images.correlate, n * prod(out) * weight.size, x, weight)
    if loop is None:
        return None
    plan = forward_plan(x.shape[2:], tuple(kernel), stride, padding, dilation, out)
    matrix = usable(weight).reshape(groups, o // groups, c, prod(kernel))
    return _run(loop, x, matrix, bias, plan, np.empty((n, o, *out), x.dtype))


def conv_transpose(g: Array, weight: Array, bias: Array | None, size: Sizes, stride: Sizes, padding: Sizes,
                   dilation: Sizes, groups: int) -> Any | None:
    """The transposed convolution; None where NumPy has to do it."""
    o, c, *kernel = weight.shape
    n = g.shape[0]
    loop = _loop(images.correlate, n * prod(g.shape[2:]) * weight.size, g, weight)
    if loop is None:
        return None
    plan = transposed_plan(size, tuple(kernel), stride, padding, dilation, g.shape[2:])
    matrix = usable(weight.reshape(groups, o // groups, c, prod(kernel)).swapaxes(1, 2))
    out = (np.empty if (plan.targets[:, 0] < plan.targets[:, 1]).all() else np.zeros)((n, c * groups, *size), g.dtype)
    if bias is not None and (plan.targets[:, 0] == plan.targets[:, 1]).any():
        out += bias.reshape(-1, *(1,) * len(size))
    return _run(loop, g, matrix, bias, plan, out)


def _run(loop: Any, x: Array, matrix: Array, bias: Array | None, plan: Plan, out: Array) -> Any:
    shift = np.zeros(0, x.dtype) if bias is None else usable(bias)
    parts, image = _parts(x, matrix.size), _images(x)
    given = image, matrix, shift, parts, *plan, _images(out)
    loop.share(len(x) * parts, out.size * prod(matrix.shape[2:]) // _FAST, *given)
    return out


def conv_weight(g: Array, x: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes,
                groups: int) -> Any | None:
    """The gradient by the weight; None where NumPy has to do it."""
    n, o = g.shape[:2]
    c, work = x.shape[1] // groups, g.size * (x.shape[1] // groups) * prod(kernel)
    loop = _loop(images.correlate_weights, work, x, g)
    if loop is None:
        return None
    plan = forward_plan(x.shape[2:], kernel, stride, padding, dilation, g.shape[2:])
    shape = groups, o // groups, c, prod(kernel)
    parts, slopes, image = _parts(x, prod(shape)), _images(g), _images(x)

    def share(part: slice) -> Any:
        found = np.zeros(shape, x.dtype)
        loop(part.start, part.stop, slopes, image, parts, *plan[:3], found)
        return found

    sums = large.in_shares(n * parts, work // _FAST, share)
    return (sums[0] if len(sums) == 1 else np.add.reduce(sums, 0)).reshape(o, c, *kernel)
