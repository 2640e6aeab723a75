"""Rows of a matrix, each gone over once or twice by one loop: softmax and its like, normalisation.

These functions are compiled for float32 and float64. `F` is the type, `exp` and `log` are that type's (scalars.py); as
they stand they are no code to be run, but for Numba to read. `start` and `stop` are the rows of one thread.
"""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

TOGETHER = 256  # rows whose elements are added before that goes on in double

def softmax(start, stop, x, out):
    for r in range(start, stop):
        row, found = x[r], out[r]
        top = largest(row)
        total = F(0)
        for j in range(row.size):
            e = exp(row[j] - top)
            found[j] = e
            total += e
        share = F(1) / total
        for j in range(row.size):
            found[j] *= share


def softmax_times(start, stop, x, factor, out):
    """softmax, times a factor for each row."""
    for r in range(start, stop):
        row, found = x[r], out[r]
        top = largest(row)
        total = F(0)
        for j in range(row.size):
            e = exp(row[j] - top)
            found[j] = e
            total += e
        share = factor[r] / total
        for j in range(row.size):
            found[j] *= share


def log_sums(start, stop, x, out):
    """The largest of each row, and the logarithm of the sum of exponentials of what lies below it."""
    for r in range(start, stop):
        row = x[r]
        top = largest(row)
        total = F(0)
        for j in range(row.size):
            total += exp(row[j] - top)
        out[r, 0] = top
        out[r, 1] = log(total)


def softmax_back(start, stop, y, g, out):
    for r in range(start, stop):
        row, slope, found = y[r], g[r], out[r]
        along = F(0)
        for j in range(row.size):
            along += row[j] * slope[j]
        for j in range(row.size):
            found[j] = (slope[j] - along) * row[j]


def log_softmax(start, stop, x, out):
    for r in range(start, stop):
        row, found = x[r], out[r]
        top = largest(row)
        total = F(0)
        for j in range(row.size):
            total += exp(row[j] - top)
        shift = log(total)
        for j in range(row.size):
            found[j] = (row[j] - top) - shift


def shared_losses(start, stop, x, shares, out):
    """The logarithms of softmax, times a share of the loss for each, added up and negated."""
    for r in range(start, stop):
        row, share = x[r], shares[r]
        top = largest(row)
        total = F(0)
        for j in range(row.size):
            total += exp(row[j] - top)
        shift, loss = log(total), 0.0
        for first in range(0, row.size, 512):
            part, run, each = F(0), row[first:first + 512], share[first:first + 512]
            for j in range(run.size):
                part += ((run[j] - top) - shift) * each[j]
            loss += part
        out[r] = F(-loss)


def log_softmax_back(start, stop, y, g, out):
    for r in range(start, stop):
        row, slope, found = y[r], g[r], out[r]
        total = F(0)
        for j in range(row.size):
            total += slope[j]
        for j in range(row.size):
            found[j] = slope[j] - exp(row[j]) * total


def log_sum_exp(start, stop, x, out):
    for r in range(start, stop):
        row = x[r]
        top = largest(row)
        top = top if abs(top) < np.inf else (F(0) if top == top else top)
        total = F(0)
        for j in range(row.size):
            total += exp(row[j] - top)
        out[r, 0] = log(total) + top


def log_sum_exp_back(start, stop, x, g, total, out):
    for r in range(start, stop):
        row, found = x[r], out[r]
        slope, shift = g[r, 0], total[r, 0]
        for j in range(row.size):
            found[j] = exp(row[j] - shift) * slope


def extremes_back(start, stop, x, g, top, out):
    """The adjoint of what is `top` of each row, in equal shares where several elements are; nan is any nan."""
    for r in range(start, stop):
        row, found, best = x[r], out[r], top[r, 0]
        many = np.int64(0)
        for j in range(row.size):
            many += (row[j] == best) | ((row[j] != row[j]) & (best != best))
        share = g[r, 0] / F(many)
        for j in range(row.size):
            found[j] = share if (row[j] == best) | ((row[j] != row[j]) & (best != best)) else F(0)


def centred_times(start, stop, x, factor, mean, out):
    for r in range(start, stop):
        row, found, steep, middle = x[r], out[r], factor[r, 0], mean[r, 0]
        for j in range(row.size):
            found[j] = (row[j] - middle) * steep


def normalise(start, stop, x, weight, bias, inner, centred, eps, mean, scale, out):
    """Rows that are normalised; the weight of element j is number j // inner, counted on over `groups` of rows."""
    groups = max(weight.size, bias.size) * inner // x.shape[1]
    for r in range(start, stop):
        row, found = x[r], out[r]
        n = row.size
        middle = F(total_of(row) / n) if centred else F(0)
        squares = 0.0
        for first in range(0, n, 512):
            part, run = F(0), row[first:first + 512]  # LLVM makes vectors of it only where indices begin at 0
            for j in range(run.size):
                d = run[j] - middle
                part += d * d
            squares += part
        factor = F(1) / sqrt(F(squares) / F(n) + F(eps))
        if centred:
            mean[r] = middle
        scale[r] = factor
        at = (r % groups) * (n // inner) if groups > 1 else 0
        if inner == 1:
            if weight.size and bias.size:
                w, b = weight[at:at + n], bias[at:at + n]
                for j in range(n):
                    found[j] = (row[j] - middle) * factor * w[j] + b[j]
            elif weight.size:
                w = weight[at:at + n]
                for j in range(n):
                    found[j] = (row[j] - middle) * factor * w[j]
            else:
                for j in range(n):
                    found[j] = (row[j] - middle) * factor
                if bias.size:
                    b = bias[at:at + n]
                    for j in range(n):
                        found[j] += b[j]
        else:
            for c in range(n // inner):
                slope = factor * weight[at + c] if weight.size else factor
                shift = bias[at + c] if bias.size else F(0)
                a, o = row[c * inner:(c + 1) * inner], found[c * inner:(c + 1) * inner]
                for j in range(inner):
                    o[j] = (a[j] - middle) * slope + shift


def normalise_back(start, stop, cuts, g, x, weight, inner, centred, mean, scale, wanted, gx, gw, gb):
    """The derivative of the same, for parts of the rows: `gw` and `gb` have a row of sums for each, if wanted."""
    groups = max(gw.shape[1], gb.shape[1], weight.size) * inner // x.shape[1]
    for p in range(start, stop):
        for r in range(cuts[p], cuts[p + 1]):
            row, slope = x[r], g[r]
            n = row.size
            middle = mean[r] if centred else F(0)
            factor = scale[r]
            at = (r % groups) * (n // inner) if groups > 1 else 0
            along, level = F(0), F(0)
            if inner == 1:
                if gw.shape[1] and gb.shape[1]:
                    slopes, levels = gw[p, at:at + n], gb[p, at:at + n]
                    for j in range(n):
                        slopes[j] += slope[j] * ((row[j] - middle) * factor)
                        levels[j] += slope[j]
                elif gw.shape[1]:
                    slopes = gw[p, at:at + n]
                    for j in range(n):
                        slopes[j] += slope[j] * ((row[j] - middle) * factor)
                elif gb.shape[1]:
                    levels = gb[p, at:at + n]
                    for j in range(n):
                        levels[j] += slope[j]
                if wanted and weight.size:
                    w = weight[at:at + n]
                    for j in range(n):
                        s = slope[j] * w[j]
                        level += s
                        along += s * (row[j] - middle)
                elif wanted:
                    for j in range(n):
                        level += slope[j]
                        along += slope[j] * (row[j] - middle)
            else:
                for c in range(n // inner):
                    a, s = row[c * inner:(c + 1) * inner], slope[c * inner:(c + 1) * inner]
                    product, total = F(0), F(0)
                    for j in range(inner):
                        product += s[j] * (a[j] - middle)
                        total += s[j]
                    if gw.shape[1]:
                        gw[p, at + c] += product * factor
                    if gb.shape[1]:
                        gb[p, at + c] += total
                    w = weight[at + c] if weight.size else F(1)
                    along += w * product
                    level += w * total
            if wanted:
                along *= factor * factor / F(n)
                level = level / F(n) if centred else F(0)
                for c in range(n // inner if inner > 1 and weight.size else 1):
                    size = inner if inner > 1 and weight.size else n
                    s, a, o = slope[c * size:], row[c * size:], gx[r, c * size:(c + 1) * size]
                    if inner == 1 and weight.size:
                        w = weight[at:at + n]
                        for j in range(o.size):
                            o[j] = (s[j] * w[j] - (a[j] - middle) * along - level) * factor
                    else:
                        w = weight[at + c] if weight.size else F(1)
                        for j in range(o.size):
                            o[j] = (s[j] * w - (a[j] - middle) * along - level) * factor


def normalise_channels(start, stop, x, weight, bias, given, eps, mean, scale, out):
    """Channels of all samples; with `given` mean and scale are constants."""
    samples, n = x.shape[0], x.shape[2]
    for c in range(start, stop):
        if not given:
            total, squares = 0.0, 0.0
            for s in range(samples):
                total += total_of(x[s, c])
            middle = F(total / (samples * n))
            for s in range(samples):
                row = x[s, c]
                for first in range(0, n, 512):
                    part, run = F(0), row[first:first + 512]
                    for j in range(run.size):
                        d = run[j] - middle
                        part += d * d
                    squares += part
            mean[c] = middle
            scale[c] = F(1.0 / math.sqrt(squares / (samples * n) + eps))
        middle = mean[c]
        slope = scale[c] * weight[c] if weight.size else scale[c]
        shift = bias[c] if bias.size else F(0)
        for s in range(samples):
            row, found = x[s, c], out[s, c]
            for j in range(n):
                found[j] = (row[j] - middle) * slope + shift


def normalise_channels_back(start, stop, g, x, weight, given, mean, scale, wanted, gx, along, level):
    """The derivative of the same. `along` and `level` are those of weight and bias."""
    samples, n = x.shape[0], x.shape[2]
    for c in range(start, stop):
        middle, factor = mean[c], scale[c]
        product, total = 0.0, 0.0
        for s in range(samples):
            row, slope = x[s, c], g[s, c]
            for first in range(0, n, 512):
                part, rest, run, steep = F(0), F(0), row[first:first + 512], slope[first:first + 512]
                for j in range(run.size):
                    part += steep[j] * (run[j] - middle)
                    rest += steep[j]
                product += part
                total += rest
        along[c] = F(product * factor)
        level[c] = F(total)
        if wanted:
            scaled = factor * weight[c] if weight.size else factor
            share = F(0) if given else F(product * factor * factor / (samples * n))
            shift = F(0) if given else F(total / (samples * n))
            for s in range(samples):
                row, slope, found = x[s, c], g[s, c], gx[s, c]
                for j in range(n):
                    found[j] = (slope[j] - (row[j] - middle) * share - shift) * scaled


def normalise_columns(start, stop, x, columns, weight, bias, given, eps, mean, scale, out):
    """As normalise_channels, where channels lie side by side: `columns` of them at a time, row by row.

    For sums four rows at a time; after the last of them stands the mean, which adds nothing.
    """
    n = x.shape[0]
    for low in range(start * columns, min(stop * columns, x.shape[1]), columns):
        width = min(columns, x.shape[1] - low)
        high = low + width
        middle, part, total = np.zeros(width, x.dtype), np.zeros(width, x.dtype), np.zeros(width)
        for squares in range(0 if given else 2):
            total[:] = 0
            for first in range(0, n, TOGETHER):
                end = min(first + TOGETHER, n)
                part[:] = 0
                for r in range(first, end, 4):
                    row0, row1 = x[r, low:high], x[r + 1, low:high] if r + 1 < end else middle
                    row2 = x[r + 2, low:high] if r + 2 < end else middle
                    row3 = x[r + 3, low:high] if r + 3 < end else middle
                    if squares:
                        for j in range(width):
                            m = middle[j]
                            a, b, c, d = row0[j] - m, row1[j] - m, row2[j] - m, row3[j] - m
                            part[j] += (a * a + b * b) + (c * c + d * d)
                    else:
                        for j in range(width):
                            part[j] += (row0[j] + row1[j]) + (row2[j] + row3[j])
                for j in range(width):
                    total[j] += part[j]
            for j in range(width):
                if squares:
                    scale[low + j] = F(1.0 / math.sqrt(total[j] / n + eps))
                else:
                    middle[j] = mean[low + j] = F(total[j] / n)
        slope = part
        shift = np.zeros(width, x.dtype)
        for j in range(width):
            middle[j] = mean[low + j]
            slope[j] = scale[low + j] * weight[low + j] if weight.size else scale[low + j]
            shift[j] = bias[low + j] if bias.size else F(0)
        for r in range(n):
            row, found = x[r, low:high], out[r, low:high]
            for j in range(width):
                found[j] = (row[j] - middle[j]) * slope[j] + shift[j]


def normalise_columns_back(start, stop, g, x, columns, weight, given, mean, scale, wanted, gx, along, level):
    """The derivative of the same, as that of normalise_channels."""
    n = x.shape[0]
    for low in range(start * columns, min(stop * columns, x.shape[1]), columns):
        width = min(columns, x.shape[1] - low)
        high = low + width
        middle, zeros, product, total = mean[low:high], np.zeros(width, x.dtype), np.zeros(width), np.zeros(width)
        part, rest, scaled = np.zeros(width, x.dtype), np.zeros(width, x.dtype), np.zeros(width, x.dtype)
        for first in range(0, n, TOGETHER):
            end = min(first + TOGETHER, n)
            part[:] = 0
            rest[:] = 0
            for r in range(first, end, 2):
                row0, slope0 = x[r, low:high], g[r, low:high]
                row1, slope1 = (x[r + 1, low:high], g[r + 1, low:high]) if r + 1 < end else (middle, zeros)
                for j in range(width):
                    part[j] += slope0[j] * (row0[j] - middle[j]) + slope1[j] * (row1[j] - middle[j])
                    rest[j] += slope0[j] + slope1[j]
            for j in range(width):
                product[j] += part[j]
                total[j] += rest[j]
        for j in range(width):
            factor = scale[low + j]
            along[low + j] = F(product[j] * factor)
            level[low + j] = F(total[j])
            scaled[j] = factor * weight[low + j] if weight.size else factor
            part[j] = F(0) if given else F(product[j] * factor * factor / n)
            rest[j] = F(0) if given else F(total[j] / n)
        for r in range(n if wanted else 0):
            row, slope, found = x[r, low:high], g[r, low:high], gx[r, low:high]
            for j in range(width):
                found[j] = (slope[j] - (row[j] - middle[j]) * part[j] - rest[j]) * scaled[j]
