"""Products of small tiles, all of whose sums stay in the registers of the processor, and images laid out for them.

LLVM does not find such loops by itself, so they are written in its own terms, with vectors as long as the processor's.
None of these functions looks whether what it reads and writes is inside of the arrays.
"""
# mypy: ignore-errors
import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from mutagrad.arrays.compiled.memory import product_d, product_f

__all__ = [
    "POINTS", "POSITIONS", "ROWS", "add_dots", "arrange", "find_corners_32", "find_corners_64", "lay_out", "multiply",
    "put_lines", "room_for_product", "times_32", "times_64"]

_FEATURES = get_host_cpu_features()
BYTES = 64 if _FEATURES.get("avx512f", False) else 32 if _FEATURES.get("avx", False) else 16  # of a vector
_MANY = BYTES != 32  # registers: 32, or 16
ROWS = 8 if _MANY else 4  # of the tallest tile
POSITIONS = 256 // 4  # the length of a row of results is a multiple of this: that of the longest tile
_OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}}
_CONTRACT = ("contract",)


class _Builder:
    """LLVM's builder, for vectors of one type of numbers."""

    def __init__(self, context, builder, signature, values):
        self.context, self.builder, self.types, self.values = context, builder, signature.args, values
        self.number = context.get_value_type(signature.args[0].dtype)
        self.size = signature.args[0].dtype.bitwidth // 8
        self.width = BYTES // self.size
        self.vector = ir.VectorType(self.number, self.width)
        self.whole = context.get_value_type(types.intp)

    def constant(self, n):
        return ir.Constant(self.whole, n)

    def start(self, k, at):
        """The address of an element of an array, which is argument number k."""
        array = cgutils.create_struct_proxy(self.types[k])(self.context, self.builder, self.values[k])
        return self.builder.gep(array.data, [at])

    def load(self, address, at):
        place = self.builder.gep(address, [at])
        return self.builder.load(self.builder.bitcast(place, self.vector.as_pointer()), align=self.size)

    def store(self, value, address, at):
        place = self.builder.gep(address, [at])
        self.builder.store(value, self.builder.bitcast(place, self.vector.as_pointer()), align=self.size)

    def spread(self, value):
        nothing, first = ir.Constant(self.vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        one = self.builder.insert_element(nothing, value, first)
        return self.builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), self.width), None))

    def add_product(self, total, a, b):
        return self.builder.fadd(total, self.builder.fmul(a, b, flags=_CONTRACT), flags=_CONTRACT)

    def total(self, value):
        """The sum of a vector's elements, halves first."""
        width = self.width
        while width > 1:
            width //= 2
            kind = ir.VectorType(ir.IntType(32), width)
            low, high = (ir.Constant(kind, list(range(first, first + width))) for first in (0, width))
            value = self.builder.fadd(*(self.builder.shuffle_vector(value, value, half) for half in (low, high)))
        return self.builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    def loop(self, stop, step, sums, body):
        """Sums that begin with zero, after `body(k, sums)` has been done for k from 0 to `stop`, at least once."""
        before, zero = self.builder.block, ir.Constant(self.vector, None)
        again, after = self.builder.append_basic_block("again"), self.builder.append_basic_block("after")
        self.builder.branch(again)
        self.builder.position_at_end(again)
        k, old = self.builder.phi(self.whole), [self.builder.phi(self.vector) for _ in range(sums)]
        new = body(k, old)
        following = self.builder.add(k, self.constant(step))
        for name, first, then in zip([k, *old], [self.constant(0), *[zero] * sums], [following, *new]):
            name.add_incoming(first, before)
            name.add_incoming(then, again)
        self.builder.cbranch(self.builder.icmp_signed("<", following, stop), again, after)
        self.builder.position_at_end(after)
        return new


def _tile(rows, vectors):
    """out[to + r * pitch + j] = the sum over k of weights[first + k * rows + r] * x[at + places[k] + j]."""
    def build(context, builder, signature, values):
        b = _Builder(context, builder, signature, values)
        _, at, _, count, _, first, _, to, pitch = values
        x, places, weights, out = b.start(0, at), b.start(2, b.constant(0)), b.start(4, first), b.start(6, to)

        def body(k, sums):
            place = builder.gep(x, [builder.load(builder.gep(places, [k]))])
            seen = [b.load(place, b.constant(v * b.width)) for v in range(vectors)]
            row = builder.gep(weights, [builder.mul(k, b.constant(rows))])
            factors = [b.spread(builder.load(builder.gep(row, [b.constant(r)]))) for r in range(rows)]
            return [b.add_product(s, factors[i // vectors], seen[i % vectors]) for i, s in enumerate(sums)]

        for i, total in enumerate(b.loop(count, 1, rows * vectors, body)):
            shift = builder.mul(pitch, b.constant(i // vectors))
            b.store(total, out, builder.add(shift, b.constant(i % vectors * b.width)))
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, x, at, places, count, weights, first, out, to, pitch):
        n = types.intp
        return types.void(x, n, places, n, weights, n, out, n, n), build

    def interpreted(x, at, places, count, weights, first, out, to, pitch):
        length = vectors * BYTES // x.itemsize
        seen = np.stack([x[at + p:at + p + length] for p in places[:count]])
        found = weights[first:first + count * rows].reshape(count, rows).T @ seen
        for r in range(rows):
            out[to + r * pitch:to + r * pitch + length] = found[r]

    return interpreted if config.DISABLE_JIT else tile


def _dots(rows, taps):
    """out[to + r * pitch + k] += the sum over j of g[at + r * apart + j] * x[from + places[first + k] + j]."""
    def build(context, builder, signature, values):
        b = _Builder(context, builder, signature, values)
        _, at, apart, _, begin, _, first, last, count, _, to, pitch = values
        g, x, places, out = b.start(0, at), b.start(3, begin), b.start(5, b.constant(0)), b.start(9, to)
        numbers = [builder.add(first, b.constant(k)) for k in range(taps)]
        known = [builder.select(builder.icmp_signed("<", k, last), k, first) for k in numbers]
        starts = [builder.gep(x, [builder.load(builder.gep(places, [k]))]) for k in known]
        lines = [builder.gep(g, [builder.mul(apart, b.constant(r))]) for r in range(rows)]

        def body(j, sums):
            seen = [b.load(start, j) for start in starts]
            slopes = [b.load(line, j) for line in lines]
            return [b.add_product(s, slopes[i // taps], seen[i % taps]) for i, s in enumerate(sums)]

        for i, total in enumerate(b.loop(count, b.width, rows * taps, body)):
            with builder.if_then(builder.icmp_signed("<", numbers[i % taps], last)):
                place = builder.gep(out, [builder.add(builder.mul(pitch, b.constant(i // taps)), numbers[i % taps])])
                builder.store(builder.fadd(builder.load(place), b.total(total)), place)
        return context.get_dummy_value()

    @intrinsic
    def dots(typing, g, at, apart, x, begin, places, first, last, count, out, to, pitch):
        n = types.intp
        return types.void(g, n, n, x, n, places, n, n, n, out, n, n), build

    def interpreted(g, at, apart, x, begin, places, first, last, count, out, to, pitch):
        width = BYTES // x.itemsize
        count = -(-count // width) * width
        for k in range(first, min(first + taps, last)):
            seen = x[begin + places[k]:begin + places[k] + count]
            for r in range(rows):
                out[to + r * pitch + k] += g[at + r * apart:at + r * apart + count] @ seen

    return interpreted if config.DISABLE_JIT else dots


# Rows, and vectors or taps, of the tiles; their product is the number of sums.
TALL, SHORT, SINGLE = (ROWS, 2), (4, 4) if _MANY else (4, 2), (1, 4)
DOTS_TALL, DOTS_SHORT, DOTS_SINGLE = (ROWS, 3) if _MANY else (4, 2), (4, 5) if _MANY else (4, 2), (1, 8)
_tall, _short, _single = _tile(*TALL), _tile(*SHORT), _tile(*SINGLE)
_dots_tall, _dots_short, _dots_single = _dots(*DOTS_TALL), _dots(*DOTS_SHORT), _dots(*DOTS_SINGLE)
_TALL, _SHORT, _SINGLE = TALL[1], SHORT[1], SINGLE[1]
_DOTS_TALL, _DOTS_SHORT, _DOTS_SINGLE = DOTS_TALL[1], DOTS_SHORT[1], DOTS_SINGLE[1]


@njit(**_OPTIONS)
def arrange(weight, taps, out, to):
    """The weights (rows, channels, kernel elements) at some taps in the order in which `multiply` takes them."""
    rows, channels = weight.shape[0], weight.shape[1]
    m = 0
    while m < rows:
        height = ROWS if rows - m > 4 else 4 if rows - m > 1 else 1
        for c in range(channels):
            for t in range(taps.shape[0]):
                number = taps[t, 0]
                if rows - m >= ROWS:
                    for r in range(ROWS):
                        out[to + r] = weight[m + r, c, number]
                else:
                    for r in range(height):
                        out[to + r] = weight[m + r, c, number] if m + r < rows else 0
                to += height
        m += height
    return to


@njit(**_OPTIONS)
def multiply(x, at, length, places, count, weights, first, rows, out, pitch):
    """out[r * pitch + j] = the sum over k of the weights of row r times x[at + places[k] + j], for j below `length`."""
    width = BYTES // x.itemsize
    for begin in range(0, length, POSITIONS):
        end = begin + POSITIONS
        m = 0
        while m < rows:
            height = ROWS if rows - m > 4 else 4 if rows - m > 1 else 1
            row, to = first + m * count, m * pitch
            if height == 1:
                for j in range(begin, end, _SINGLE * width):
                    _single(x, at + j, places, count, weights, row, out, to + j, pitch)
            elif rows - m <= 4:
                for j in range(begin, end, _SHORT * width):
                    _short(x, at + j, places, count, weights, row, out, to + j, pitch)
            else:
                for j in range(begin, min(end, length), _TALL * width):
                    _tall(x, at + j, places, count, weights, row, out, to + j, pitch)
            m += height


@njit(**_OPTIONS)
def add_dots(g, at, apart, rows, x, places, count, length, out, to):
    """out[to + r * count + k] += the sum over j below `length` of g[at + r * apart + j] * x[at + places[k] + j]."""
    m = 0
    while m < rows:
        row, target = at + m * apart, to + m * count
        if rows - m >= ROWS:
            height = ROWS
            for k in range(0, count, _DOTS_TALL):
                _dots_tall(g, row, apart, x, at, places, k, count, length, out, target, count)
        elif rows - m >= 4:
            height = 4
            for k in range(0, count, _DOTS_SHORT):
                _dots_short(g, row, apart, x, at, places, k, count, length, out, target, count)
        else:
            height = 1
            for k in range(0, count, _DOTS_SINGLE):
                _dots_single(g, row, apart, x, at, places, k, count, length, out, target, count)
        m += height


_FIRST = np.zeros((1, 1), np.intp)  # the one tap of a weight that is a number


@njit(**_OPTIONS)
def room_for_product(rows, count, columns, kind):
    """Memory that `times` needs for up to so many rows: for the result, and for itself."""
    pitch = (columns + POSITIONS - 1) // POSITIONS * POSITIONS
    return np.empty((rows + ROWS, pitch), kind), np.empty((rows + ROWS) * count, kind), np.arange(count) * POSITIONS


def _times(product):
    @njit(**_OPTIONS)
    def times(blas, a, w, turned, lines, places, out):
        """Write `a @ w`, or with w transposed if it is `turned`, into the first rows and columns of `out`.

        By CBLAS's product, if `blas` is its address. If it is 0, by tiles: then `w`, not turned, is laid out in panels
        of POSITIONS columns. That takes time once, and half as long as BLAS for each product with few rows.
        """
        rows, count, pitch = a.shape[0], a.shape[1], out.shape[1]
        if blas != 0:
            columns, order = (w.shape[0], 112) if turned else (w.shape[1], 111)
            product(blas, 111, order, rows, columns, count, a.ctypes.data, count, w.ctypes.data, w.shape[1],
                    out.ctypes.data, pitch)
            return
        arrange(a.reshape(rows, count, 1), _FIRST, lines, 0)
        flat = out.reshape(-1)
        for p in range(w.shape[0]):
            multiply(w[p], 0, POSITIONS, places, count, lines, 0, rows, flat[p * POSITIONS:], pitch)

    return times


times_32, times_64 = _times(product_f), _times(product_d)


@njit(**_OPTIONS)
def lay_out(x, first, last, channel, channels, form, sources, length, out):
    """Images with their borders, channel after channel; each with the samples from `first` to `last` one after another.

    `form` has, for each of three dimensions, the stride, the border before the image, and the distance of two rows.
    With a stride there are several `sources`: images of every second row, for example, from the first or the second
    on. `length` is the distance of two channels. Borders are left as they are.
    """
    s0, s1, s2, p0, p1, p2, q0, q1, q2 = form[0], form[1], form[2], form[3], form[4], form[5], form[6], form[7], form[8]
    at = 0
    for c in range(channel, channel + channels):
        for f in range(sources.shape[0]):
            for n in range(first, last):
                begin = at + (n - first) * q0 * q1 * q2
                left = (sources[f, 2] - p2) % s2
                count = (x.shape[4] - left + s2 - 1) // s2
                for i in range((sources[f, 0] - p0) % s0, x.shape[2], s0):
                    for j in range((sources[f, 1] - p1) % s1, x.shape[3], s1):
                        line = begin + ((i + p0) // s0 * q1 + (j + p1) // s1) * q2 + (left + p2) // s2
                        row, to = x[n, c, i, j, left:], out[line:]
                        if s2 == 1:
                            for k in range(count):
                                to[k] = row[k]
                        elif s2 == 2:
                            for k in range(count):
                                to[k] = row[2 * k]
                        else:
                            for k in range(count):
                                to[k] = row[k * s2]
            at += length


@njit(**_OPTIONS)
def put_lines(products, pitch, begin, end, sample, channel, channels, bias, form, target, out):
    """Lines of results, which `multiply` has made, to where they belong in the images of the result."""
    q0, q1, q2, t0, t1, t2 = form[6], form[7], form[8], form[9], form[10], form[11]
    start0, start1, start2, low0, low1, low2 = target[2], target[3], target[4], target[5], target[6], target[7]
    high0, high1, high2 = target[8], target[9], target[10]
    for line in range(begin, end):
        n, rest = line // (q0 * q1), line % (q0 * q1)
        i, j = rest // q1, rest % q1
        if low0 <= i < high0 and low1 <= j < high1:
            for c in range(channels):
                shift = bias[channel + c] if bias.size else products.dtype.type(0)
                row = out[sample + n, channel + c, start0 + i * t0, start1 + j * t1]
                at = c * pitch + (line - begin) * q2
                found = products[at + low2:at + high2]
                to = row[start2 + low2 * t2:]
                if t2 == 1:
                    for k in range(found.size):
                        to[k] = found[k] + shift
                elif t2 == 2:
                    for k in range(found.size):
                        to[2 * k] = found[k] + shift
                else:
                    for k in range(found.size):
                        to[k * t2] = found[k] + shift


# ---------------------------------------------------------------------------------------------------------- coordinates

POINTS = 256  # as many at a time; where one row of a table begins after another, which LLVM has to know
ZEROS, BORDER = 0, 1  # what lies outside of an image; otherwise its reflection


# There are no branches but for the settings, so that LLVM makes vectors of these loops.

def _finder(kind):
    """For coordinates of this type."""
    @njit(**_OPTIONS, forceinline=True)
    def find_pixel(v, n, border, align):
        """The position along n pixels that a coordinate from -1 to 1 means, and how fast it changes with it."""
        slope = kind(n - 1) / kind(2) if align else kind(n) * kind(0.5)
        at = (v + kind(1)) * slope if align else ((v + kind(1)) * kind(n) - kind(1)) * kind(0.5)
        if border != ZEROS:
            if border != BORDER:
                low, span = (kind(0), kind(n - 1)) if align else (kind(-0.5), kind(n))
                away = at - low
                turns = np.floor(abs(away) / span) if span > 0 else kind(0)
                even = turns == kind(2) * np.floor(turns * kind(0.5))
                sign = (kind(-1) if away < 0 else kind(1)) * (kind(1) if even else kind(-1))
                sign = sign if span > 0 else kind(0)
                at = away * sign + ((-turns * span if even else (turns + kind(1)) * span) + low)
                slope = slope * sign
            last = kind(n - 1)
            slope = slope if (at > 0) & (at < last) else kind(0)
            at = kind(0) if at < 0 else at
            at = last if at > last else at
        return at, slope

    @njit(**_OPTIONS, forceinline=True)
    def place_of(at, n):
        """A position that there is, and 1 if it is the one that was asked for, 0 otherwise."""
        last = kind(n - 1)
        there = kind(1) if (at >= 0) & (at <= last) else kind(0)
        at = at if at > 0 else kind(0)
        at = at if at < last else last
        return min(np.intp(np.int32(at)), n - 1), there  # in single precision the last of many is rounded up

    return _corners(kind, find_pixel, place_of)


def _corners(kind, find_pixel, place_of):
    @njit(**_OPTIONS)
    def find_corners(grid, first, last, height, width, nearest, border, align, places, weights):
        """Of points from `first` to `last`: places of neighbours in the flat image, weights, and how they change.

        Weights of neighbours that do not exist are multiplied by zero, so that a nan among the coordinates is seen. (So
        is what lies there in their stead: it has to be finite.)
        """
        one, here = kind(1), grid[2 * first:2 * last]
        if nearest:
            for k in range(last - first):
                x, _ = find_pixel(here[2 * k], width, border, align)
                y, _ = find_pixel(here[2 * k + 1], height, border, align)
                left, there_x = place_of(np.rint(x), width)
                above, there_y = place_of(np.rint(y), height)
                places[k] = above * width + left
                weights[k] = there_x * there_y
                weights[4 * POINTS + k], weights[8 * POINTS + k] = kind(0), kind(0)
        else:
            for k in range(last - first):
                x, slope_x = find_pixel(here[2 * k], width, border, align)
                y, slope_y = find_pixel(here[2 * k + 1], height, border, align)
                fx, fy = np.floor(x), np.floor(y)
                left, tl = place_of(fx, width)
                right, tr = place_of(fx + one, width)
                above, ta = place_of(fy, height)
                below, tb = place_of(fy + one, height)
                wl, wr, wa, wb = (one - (x - fx)) * tl, (x - fx) * tr, (one - (y - fy)) * ta, (y - fy) * tb
                places[k], places[POINTS + k] = above * width + left, above * width + right
                places[2 * POINTS + k], places[3 * POINTS + k] = below * width + left, below * width + right
                weights[k], weights[POINTS + k] = wa * wl, wa * wr
                weights[2 * POINTS + k], weights[3 * POINTS + k] = wb * wl, wb * wr
                weights[4 * POINTS + k], weights[5 * POINTS + k] = -wa * tl * slope_x, wa * tr * slope_x
                weights[6 * POINTS + k], weights[7 * POINTS + k] = -wb * tl * slope_x, wb * tr * slope_x
                weights[8 * POINTS + k], weights[9 * POINTS + k] = -wl * ta * slope_y, -wr * ta * slope_y
                weights[10 * POINTS + k], weights[11 * POINTS + k] = wl * tb * slope_y, wr * tb * slope_y

    return find_corners


find_corners_32, find_corners_64 = _finder(np.float32), _finder(np.float64)
