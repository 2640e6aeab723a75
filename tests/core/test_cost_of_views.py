"""Every operation of the table, on each of many views of one tensor: the cost of all of them grows with their number.

An operation that makes an adjoint as large as the storage for every view that it is given would make a loop over rows quadratic.
"""

import pytest

import mutagrad as mg
from samples import SAMPLES

# One sample for each operation and number of inputs: its cost is a matter of its code, not of its settings.
CHOSEN = list({(s.name, len(s.draws)): s for s in SAMPLES if s.grad and s.draws and all(d.shape for d in s.draws)}.values())
SIZES = 4, 8, 16

NOT_LINEAR = {
    "as_strided_scatter": "it copies all of the memory that its input is a window on, which is what its strides count in",
}


def stacked(sample, n):
    """For each input, n of them as one tensor."""
    return [mg.tensor(a, requires_grad=True).expand(n, *a.shape).clone().detach().requires_grad_() for a in sample.arrays()]


def total(results):
    return sum(r.abs().sum() for r in results if isinstance(r, mg.Tensor) and r.requires_grad)


def rows(sample, n):
    inputs = stacked(sample, n)
    loss = mg.zeros((), dtype=mg.float64)
    for i in range(n):
        loss = loss + total(sample.call(mg, [x[i] for x in inputs]))
    loss.backward()


def columns(sample, n):
    inputs = [x.detach().movedim(0, -1).contiguous().requires_grad_() for x in stacked(sample, n)]
    loss = mg.zeros((), dtype=mg.float64)
    for i in range(n):
        loss = loss + total(sample.call(mg, [x[..., i] for x in inputs]))
    loss.backward()


def written(sample, n):
    """The results are written into the rows of a buffer, one after the other."""
    inputs = stacked(sample, n)
    found = next(r for r in sample.call(mg, [x[0] for x in inputs]) if isinstance(r, mg.Tensor) and r.requires_grad)
    buffer = mg.zeros(n, *found.shape, dtype=found.dtype)
    for i in range(n):
        buffer[i] = next(r for r in sample.call(mg, [x[i] for x in inputs]) if isinstance(r, mg.Tensor) and r.requires_grad)
    buffer.abs().sum().backward()


def cost(program, sample, n):
    before = mg.stats()
    program(sample, n)
    return mg.stats() - before


@pytest.mark.parametrize("program", [rows, columns, written], ids=lambda p: p.__name__)
@pytest.mark.parametrize("sample", CHOSEN, ids=str)
def test_linear_in_the_number_of_views(sample, program):
    if sample.name in NOT_LINEAR:
        pytest.skip(NOT_LINEAR[sample.name])
    program(sample, 1)
    small, middle, large = (cost(program, sample, n) for n in SIZES)
    for name, a, b, c in zip(small._fields, small, middle, large):
        assert c - b <= 2.02 * (b - a) + 256, f"{name}: {a}, {b}, {c} for {SIZES} views"
