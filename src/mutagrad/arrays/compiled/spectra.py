"""Spectra of real numbers, whose second half is the first, conjugated. As rows.py, for Numba to read."""
# mypy: ignore-errors
from __future__ import annotations


def whole(start, stop, half, out):
    """Rows of complex numbers, each as two elements."""
    n, known = out.shape[1] // 2, half.shape[1] // 2
    for r in range(start, stop):
        row, found = half[r], out[r]
        for j in range(row.size):
            found[j] = row[j]
        for j in range(known, n):
            found[2 * j] = row[2 * (n - j)]
            found[2 * j + 1] = -row[2 * (n - j) + 1]
