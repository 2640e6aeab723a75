"""Samples of operations on complex numbers; what makes them, and their views, have tests of their own in test_complex.py."""

from __future__ import annotations

import numpy as np

from .base import R, elsewhere, op

op("angle", R(5, 7), ref=np.angle, complex=True)
op("conj_physical", R(5, 7), ref=np.conj, complex=True)
op("real", R(5, 7), ref=np.real, view=True)
op("resolve_conj", R(5, 7), ref=lambda x: x, view=True)
op("resolve_neg", R(5, 7), ref=lambda x: x, view=True)
elsewhere("complex polar imag view_as_real view_as_complex is_conj is_neg chalf")
