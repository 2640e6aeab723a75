"""Numbers that fill a cube more evenly than random ones: Sobol's sequence by SciPy, scrambled as PyTorch scrambles it.

Scrambling mixes the bits of each number by a random matrix and flips some: that is linear, so it is done to the points.
(PyTorch and SciPy do it to the numbers of which the points are made, which SciPy does not hand out.)
"""
from __future__ import annotations

import warnings
from typing import Any

from ..arrays import np
from ..arrays.scipy import scipy
from ..base.errors import BadValue
from ..core.dtypes import as_dtype, dtype, get_default_dtype
from ..core.factory import make
from ..core.out_arg import write_out
from ..ops.random.draws import randint
from ..ops.random.generator import Generator
from ..tensors.tensor import Tensor


class SobolEngine:
    """Points of a Sobol sequence in the unit cube; scrambled ones are a random shift of it that keeps its evenness.

    >>> import mutagrad as mg
    >>> mg.quasirandom.SobolEngine(dimension=2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise BadValue(f"SobolEngine: the dimension must be from 1 to {self.MAXDIM}, got {dimension}",
                           fix="SobolEngine(2)")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        qmc = scipy("stats", "SobolEngine").qmc
        self._sequence = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)
        if scramble:
            self._flips, self._mixes = _scrambling(dimension, self.MAXBIT, seed)

    @property
    def num_generated(self) -> int:
        """How many points have been drawn or passed over."""
        return self._sequence.num_generated  # type: ignore[no-any-return]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtype | None = None) -> Any:
        """Return the next n points, a row each.

        >>> import mutagrad as mg
        >>> engine = mg.quasirandom.SobolEngine(2)
        >>> engine.draw(2)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000]])
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # SciPy advises to draw a power of two at once
            points = self._sequence.random(n)
        if self.scramble:
            points = self._scrambled(points)
        kind = get_default_dtype() if dtype is None else as_dtype(dtype)
        return write_out("draw", make(points.astype(kind.array_type)), out)

    def _scrambled(self, points: Any) -> Any:
        whole = (points * 2**self.MAXBIT).astype(np.int64)
        mixed = np.broadcast_to(self._flips, whole.shape).copy()
        for bit, mix in enumerate(self._mixes):
            mixed ^= (whole >> bit & 1) * mix
        return mixed / 2**self.MAXBIT

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtype | None = None) -> Any:
        """Return the next 2^m points; of all points there must be a power of two, as only so many are evenly spread.

        >>> import mutagrad as mg
        >>> engine = mg.quasirandom.SobolEngine(2)
        >>> engine.draw_base2(2).shape
        mutagrad.Size([4, 2])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise BadValue(f"draw_base2: {total} points altogether are no power of two",
                           fix="engine.draw(n), or engine.reset() first")
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin anew.

        >>> import mutagrad as mg
        >>> engine = mg.quasirandom.SobolEngine(2)
        >>> _ = engine.draw(3)
        >>> engine.reset().draw(1)
        tensor([[0., 0.]])
        """
        self._sequence.reset()
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over n points.

        >>> import mutagrad as mg
        >>> engine = mg.quasirandom.SobolEngine(2)
        >>> engine.fast_forward(1).draw(1)
        tensor([[0.5000, 0.5000]])
        """
        self._sequence.fast_forward(n)
        return self

    def __repr__(self) -> str:
        settings = [f"dimension={self.dimension}"]
        settings += ["scramble=True"] * self.scramble + [f"seed={self.seed}"] * (self.seed is not None)
        return f"SobolEngine({', '.join(settings)})"


def _scrambling(dimension: int, bits: int, seed: int | None) -> tuple[Any, Any]:
    """Return the bits that are flipped in each dimension, and for each bit, the lowest first, what it is mixed into."""
    generator = None if seed is None else Generator().manual_seed(seed)
    flips = randint(2, (dimension, bits), generator=generator).numpy()
    lower = np.tril(randint(2, (dimension, bits, bits), generator=generator).numpy())  # the highest bit first
    lower[:, range(bits), range(bits)] = 1
    weights = 1 << np.arange(bits)
    return flips @ weights, (weights[::-1] @ lower)[:, ::-1].T
