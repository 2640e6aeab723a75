"""Special functions: gamma, beta, error, Bessel and their kin, and the elementwise functions that few programs use."""
from __future__ import annotations
