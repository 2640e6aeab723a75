"""Many small matrices and vectors: equations solved, distances, vectors in space. As rows.py, for Numba to read."""
# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations


def solve_each(start, stop, a, b, dets):
    """Gaussian elimination with the largest pivot of each column: both are overwritten, `b` with the solutions.

    `dets` are the determinants; where one is zero for want of a pivot, the solution means nothing.
    """
    n, k = a.shape[1], b.shape[2]
    for m in range(start, stop):
        A, B = a[m], b[m]
        det = 1.0
        for c in range(n):
            p, most = c, abs(A[c, c])
            for i in range(c + 1, n):
                size = abs(A[i, c])
                if size > most or size != size and most == most:
                    p, most = i, size
            if p != c:
                det = -det
                for j in range(c, n):
                    kept = A[c, j]
                    A[c, j] = A[p, j]
                    A[p, j] = kept
                for j in range(k):
                    kept = B[c, j]
                    B[c, j] = B[p, j]
                    B[p, j] = kept
            pivot = A[c, c]
            det *= pivot
            if pivot == F(0):
                break
            row, right = A[c, c:], B[c]
            for i in range(c + 1, n):
                below, of = A[i, c:], B[i]
                factor = below[0] / pivot
                for j in range(1, row.size):
                    below[j] -= factor * row[j]
                for j in range(right.size):
                    of[j] -= factor * right[j]
        dets[m] = det
        if det != 0.0 and k:
            for c in range(n - 1, -1, -1):
                right = B[c]
                share = F(1) / A[c, c]
                for j in range(right.size):
                    right[j] *= share
                for i in range(c):
                    factor, of = A[i, c], B[i]
                    for j in range(right.size):
                        of[j] -= factor * right[j]


def distances(start, stop, a, b, p, out):
    """How far the rows of `a` are from those of `b`, by the p-norm."""
    for i in range(start, stop):
        row = a[i]
        for j in range(b.shape[0]):
            other, found = b[j], F(0)
            if p == 1.0:
                for k in range(row.size):
                    found += abs(row[k] - other[k])
            elif p == 2.0:
                for k in range(row.size):
                    found += (row[k] - other[k]) * (row[k] - other[k])
                found = sqrt(found)
            elif p == np.inf:
                for k in range(row.size):
                    found = larger(found, abs(row[k] - other[k]))
            elif p == 0.0:
                for k in range(row.size):
                    found += F(row[k] != other[k])
            else:
                for k in range(row.size):
                    found += F(abs(row[k] - other[k]) ** F(p))
                found = F(found ** F(1.0 / p))
            out[i, j] = found


def cross(start, stop, a, b, out):
    """Products of vectors in space."""
    for i in range(start, stop):
        x, y, z = a[i, 0], a[i, 1], a[i, 2]
        u, v, w = b[i, 0], b[i, 1], b[i, 2]
        out[i, 0] = y * w - z * v
        out[i, 1] = z * u - x * w
        out[i, 2] = x * v - y * u
