"""Reading and writing between the elements: `x[i]`, `x[i] = v` and `x[i] += v` for positions that have a gradient.

An element at a fractional position is interpolated from those around it. So is what is written: a position between
two elements writes to both, to each by its share. Reading is what spatial transformers (Jaderberg et al., 2015) do to
images and `nn.functional.grid_sample` in normalized coordinates; adding is its transpose, "splatting".
"""
from __future__ import annotations

from ..arrays.kinds import perhaps
from ..base.errors import DTypeError, ShapeError
from ..ops.create.create import arange
from ..ops.shape.arguments import tensor_argument, whole_dim
from ..tensors.tensor import Tensor
from .arguments import floating
from .taps import Mode, Outside, Positions, Taps, find_taps

__all__ = ["add_", "gather", "read", "scatter_", "scatter_add_", "write_"]


def read(input: Tensor, positions: Positions, *, mode: Mode = "linear", outside: Outside = "error") -> Tensor:
    """Return the elements at fractional positions along the first dimension, or along the first few.

    >>> import mutagrad as mg
    >>> x = mg.tensor([0., 10., 40., 90.])
    >>> at = mg.tensor([0.5, 2.0], requires_grad=True)
    >>> y = mg.relax.read(x, at)
    >>> y.sum().backward(); y.detach(), at.grad
    (tensor([ 5., 40.]), tensor([10., 50.]))

    `positions` is what stands in the brackets of `x[i]` or `x[i, j]`: a tensor, or a tuple of tensors that broadcast,
    for as many of the first dimensions as there are. Integer tensors among them mean their elements exactly: `read(x,
    (batch, position))`.

    Where all positions are integers it is `x[positions]`, whatever the mode. 'linear' has the slope to the right
    there; 'cubic' is smooth, and passes the values of its neighbours by up to an eighth. Out of range: 'error';
    'clamp' takes the nearest element (and no gradient reaches the position); 'zero' goes on with zeros; 'wrap' begins
    anew.
    """
    return _read(input, positions, mode, outside, "relax.read")


def _read(input: Tensor, positions: Positions, mode: Mode, outside: Outside, name: str) -> Tensor:
    taps = find_taps(_numbers(input, name), positions, mode, outside, name)
    return (taps.weight * input[taps.picks]).sum(taps.dims)


def add_(input: Tensor, positions: Positions, values: Tensor | float, *, mode: Mode = "linear",
         outside: Outside = "error") -> Tensor:
    """Add values at fractional positions, in place: each is shared among the elements around its position.

    >>> import mutagrad as mg
    >>> mg.relax.add_(mg.zeros(4), mg.tensor([0.5, 2.0]), mg.tensor([1., 3.]))
    tensor([0.5000, 0.5000, 3.0000, 0.0000])

    Where all positions are integers it is `x.index_put_((positions,), values, accumulate=True)`. It is the transpose
    of `read`, which explains positions, mode and outside; with 'zero' what falls outside is lost, with the others the
    sum of values is kept.
    """
    return _add(input, positions, values, mode, outside, "relax.add_")


def _add(input: Tensor, positions: Positions, values: Tensor | float, mode: Mode, outside: Outside,
         name: str) -> Tensor:
    taps = find_taps(_numbers(input, name), positions, mode, outside, name)
    shared = taps.weight * _values(input, values, taps, name)
    return input.index_put_(taps.picks, shared.to(input.dtype), accumulate=True)


def write_(input: Tensor, positions: Positions, values: Tensor | float, *, outside: Outside = "error") -> Tensor:
    """Overwrite at fractional positions, in place: each element around a position goes towards the value by its share.

    >>> import mutagrad as mg
    >>> at = mg.tensor(1.25, requires_grad=True)
    >>> x = mg.zeros(4)
    >>> mg.relax.write_(x, at, 8.).detach()
    tensor([0., 6., 2., 0.])
    >>> x[2].backward(); at.grad
    tensor(8.)

    An element e with the share w becomes (1 - w) e + w value. Where all positions are integers it is
    `x.index_put_((positions,), values)`. Positions that share elements write one after the other; the last one
    prevails. `read` explains positions and outside.
    """
    return _write(input, positions, values, outside, "relax.write_")


def _write(input: Tensor, positions: Positions, values: Tensor | float, outside: Outside, name: str) -> Tensor:
    taps = find_taps(_numbers(input, name), positions, "linear", outside, name)
    values = _values(input, values, taps, name)
    rest = input.shape[len(taps.picks):]
    full = (*taps.shape, *taps.weight.shape[len(taps.shape):len(taps.shape) + len(taps.dims)])
    weight = taps.weight.expand(*full, *(1,) * len(rest)).reshape(-1, *(1,) * len(rest))
    add = weight * values.expand(*full, *rest).reshape(-1, *rest)
    index = tuple(i.expand(*full).reshape(-1) for i in taps.picks)
    cells, order = _cells(index, input).sort(stable=True)
    keep, add = _composed(cells, (1 - weight)[order], add[order])
    index = tuple(i[order] for i in index)
    return input.index_put_(index, keep * input[index] + add)  # of equal indices the last wins, which has all before it


def _cells(index: tuple[Tensor, ...], x: Tensor) -> Tensor:
    """The number of each indexed element, counted in row-major order."""
    cells = index[0].new_zeros(())
    for part, size in zip(index, x.shape):
        cells = cells * size + part.remainder(size)
    return cells


def _composed(cells: Tensor, keep: Tensor, add: Tensor) -> tuple[Tensor, Tensor]:
    """Make each map `e -> keep * e + add` that of itself after all before it which have the same cell.

    Cells are sorted. Maps are composed with those one place before, then two, four, ...: a scan by doubling.
    """
    shift, ones = 1, (1,) * (add.ndim - 1)
    while shift < len(cells) and perhaps((same := cells[shift:] == cells[:-shift])._array):
        same = same.reshape(-1, *ones)
        add[shift:] += keep[shift:] * add[:-shift].where(same, 0.0)
        keep[shift:] *= keep[:-shift].where(same, 1.0)
        shift *= 2
    return keep, add


def _numbers(input: Tensor, name: str) -> Tensor:
    """The tensor, which must be of floating point or complex numbers: a share of an integer is none."""
    if not (tensor_argument(input, name).is_floating_point() or input.is_complex()):
        raise DTypeError(f"{name}: expects a floating point tensor, got {input.dtype}",
                         why="what is between two elements is a fraction", fix="x.float()")
    return input


def _values(input: Tensor, values: Tensor | float, taps: Taps, name: str) -> Tensor:
    """Values in the input's type that broadcast with weights: ones stand for the places around each position."""
    given = values if isinstance(values, Tensor) else input.new_tensor(values)
    rest = input.shape[len(taps.picks):]
    try:
        spread = given.to(input.dtype).expand(*taps.shape, *rest)
    except RuntimeError:
        raise ShapeError(f"{name}: values of shape {tuple(given.shape)} do not broadcast to {(*taps.shape, *rest)}",
                         why="there is one for each position, and for what is not indexed") from None
    return spread.reshape(*taps.shape, *(1,) * len(taps.dims), *rest)


# ------------------------------------------------------------------------------------------- along a dimension, by rows


def gather(input: Tensor, dim: int, positions: Tensor, *, mode: Mode = "linear", outside: Outside = "error") -> Tensor:
    """Return for each row the elements at its own positions along `dim`: `mutagrad.gather` for fractional positions.

    >>> import mutagrad as mg
    >>> mg.relax.gather(mg.tensor([[0., 10.], [20., 40.]]), 1, mg.tensor([[0.5], [0.25]]))
    tensor([[ 5.],
            [25.]])
    """
    return _read(input, _rows(input, dim, positions, "relax.gather"), mode, outside, "relax.gather")


def scatter_(input: Tensor, dim: int, positions: Tensor, values: Tensor | float, *,
             outside: Outside = "error") -> Tensor:
    """Overwrite in each row at its own positions along `dim`, in place: `x.scatter_` for fractional positions.

    >>> import mutagrad as mg
    >>> mg.relax.scatter_(mg.zeros(4), 0, mg.tensor([1.]), mg.tensor([5.]))
    tensor([0., 5., 0., 0.])
    """
    return _write(input, _rows(input, dim, positions, "relax.scatter_"), values, outside, "relax.scatter_")


def scatter_add_(input: Tensor, dim: int, positions: Tensor, values: Tensor | float, *, mode: Mode = "linear",
                 outside: Outside = "error") -> Tensor:
    """Add in each row at its own positions along `dim`, in place: `x.scatter_add_` for fractional positions.

    >>> import mutagrad as mg
    >>> mg.relax.scatter_add_(mg.zeros(4), 0, mg.tensor([1.25]), mg.tensor([4.]))
    tensor([0., 3., 1., 0.])
    """
    rows = _rows(input, dim, positions, "relax.scatter_add_")
    return _add(input, rows, values, mode, outside, "relax.scatter_add_")


def _rows(input: Tensor, dim: int, positions: Tensor, name: str) -> tuple[Tensor, ...]:
    """The positions along `dim`, and for every other dimension the place itself."""
    dim = whole_dim(dim, tensor_argument(input, name).ndim, name)
    shape, limits = floating(positions, name, "positions.float()").shape, input.shape
    if len(shape) != len(limits) or any(d != dim and n > limits[d] for d, n in enumerate(shape)):
        raise ShapeError(f"{name}: positions of shape {tuple(shape)} do not fit shape {tuple(limits)}",
                         why=f"they must have as many dimensions, and be no longer except along dimension {dim}",
                         fix="positions[:, None], or relax.read(x, positions) for positions along the first dimension")
    places = [arange(n, device=positions.device).reshape(-1, *(1,) * (len(shape) - 1 - d)) for d, n in enumerate(shape)]
    return tuple(positions if d == dim else place for d, place in enumerate(places))
