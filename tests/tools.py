"""What the tests of behaviour share: leaves with known values, a comparison, and files with damage."""

from __future__ import annotations

import errno
import io
import math
import random
from typing import Any

import numpy as np

import mutagrad as mg

N = 40  # more elements than are saved by copy


def leaf(*values: Any, **settings: Any) -> mg.Tensor:
    return mg.tensor(list(values), requires_grad=True, **settings)


def ramp(*shape: int) -> mg.Tensor:
    """A leaf with the values 1, 2, 3, ..."""
    return mg.arange(1.0, math.prod(shape) + 1, dtype=mg.float64).reshape(*shape).clone().requires_grad_()


def same(tensor: Any, expected: Any, tolerance: float = 1e-6) -> None:
    assert tensor is not None
    np.testing.assert_allclose(tensor.detach().numpy(), np.asarray(expected, float), tolerance, tolerance)


class Broken(io.BytesIO):
    """A file that cannot be read beyond its first hundred bytes."""

    def read(self, *size: Any) -> bytes:
        if self.tell() > 100:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(*size)


def survive(data: bytes, times: int) -> None:
    """Loading damaged copies raises our error or gives something; it never raises anything else."""
    source = random.Random(0)
    for _ in range(times):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 10])):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        if source.random() < 0.2:
            del damaged[source.randrange(len(damaged)):]
        try:
            mg.load(io.BytesIO(bytes(damaged)))
        except mg.MutagradError as error:
            assert str(error)
