"""Order that has a derivative: sorting by a matrix that is nearly a permutation, ranks by comparing all pairs.

Both need memory for the square of the number of elements along the dimension.
"""
from __future__ import annotations

from numbers import Integral

from ..base import return_types
from ..base.errors import BadValue
from ..ops.create.create import arange
from ..tensors.tensor import Tensor
from .arguments import filled_dim, finite, positive
from .choice import soft_one_hot
from .steps import logistic

__all__ = ["argsort", "permutation", "rank", "sort", "topk", "topk_mask"]


def permutation(input: Tensor, dim: int = -1, descending: bool = False, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return the matrix that sorts, softened: row i holds the weights of all elements in the i-th smallest.

    >>> import mutagrad as mg
    >>> mg.relax.permutation(mg.tensor([3., 1., 2.]), temperature=0.5)
    tensor([[0.0159, 0.8668, 0.1173],
            [0.1065, 0.1065, 0.7870],
            [0.8668, 0.0159, 0.1173]])

    Its shape is that of the input without `dim`, then (n, n). Rows sum to 1; columns do so in the limit only. As the
    temperature goes to 0: the permutation matrix of `mutagrad.sort(x, dim)`; equal elements share their rows. It is
    continuous everywhere, and differentiable where no two elements are equal.

    SoftSort: Prillo & Eisenschlos (2020), row i is softmax(-|sorted(x)_i - x| / temperature). NeuralSort (Grover et
    al., 2019) has the same limit and shape; the projections of Blondel et al., "Fast Differentiable Sorting and
    Ranking" (2020), need less memory and are not here.
    """
    last = _along(input, dim, "relax.permutation")
    return _rows(last.sort(-1, descending)[0], last, temperature, "relax.permutation")


def _along(input: Tensor, dim: int, name: str) -> Tensor:
    """The input with this dimension last."""
    dim = filled_dim(finite(input, name), dim, name)
    return input.movedim(dim, -1) if input.ndim else input[None]


def _rows(places: Tensor, x: Tensor, temperature: Tensor | float, name: str) -> Tensor:
    """For each of `places` the weights of all elements, by how close they are to it."""
    t = positive(temperature, x, name)
    return soft_one_hot(-(places[..., :, None] - x[..., None, :]).abs(), -1, t)


def _sorted(input: Tensor, k: int | None, dim: int, descending: bool, temperature: Tensor | float,
            name: str) -> tuple[Tensor, Tensor]:
    """The first k elements in order as mixtures of all, and their positions as means of all, along `dim`."""
    last = _along(input, dim, name)
    count = last.shape[-1] if k is None else _count(k, last, name)
    rows = _rows(last.sort(-1, descending)[0][..., :count], last, temperature, name)
    values = (rows @ last[..., None])[..., 0]
    indices = rows @ arange(last.shape[-1], dtype=last.dtype, device=last.device)
    if not input.ndim:
        return values[0], indices[0]
    return values.movedim(-1, dim), indices.movedim(-1, dim)


def sort(input: Tensor, dim: int = -1, descending: bool = False, *,
         temperature: Tensor | float = 1.0) -> return_types.sort:
    """Return the elements in order, each a mixture of those near it, and where they were, as fractional positions.

    >>> import mutagrad as mg
    >>> mg.relax.sort(mg.tensor([3., 1., 2.]), temperature=0.5)
    mutagrad.return_types.sort(
    values=tensor([1.1491, 2.0000, 2.8509]),
    indices=tensor([1.1014, 1.6805, 0.2505]))

    As the temperature goes to 0: `mutagrad.sort(x, dim)`; equal elements have their mean position. The rows of
    `permutation` are the weights. Indices can be read and written at: `relax.read`.
    """
    return return_types.sort(*_sorted(input, None, dim, descending, temperature, "relax.sort"))


def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return the indices of `sort`. As the temperature goes to 0: `mutagrad.argsort(x, dim)`.

    >>> import mutagrad as mg
    >>> mg.relax.argsort(mg.tensor([3., 1., 2.]), temperature=0.01).round()
    tensor([1., 2., 0.])
    """
    return _sorted(input, None, dim, descending, temperature, "relax.argsort")[1]


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, *,
         temperature: Tensor | float = 1.0) -> return_types.topk:
    """Return the first k of `sort(x, descending=largest)`, at the cost of k rows.

    As the temperature goes to 0: `mutagrad.topk(x, k)`. For k = 1 the index is `relax.argmax(x, dim)`.

    >>> import mutagrad as mg
    >>> mg.relax.topk(mg.tensor([3., 1., 2.]), 2, temperature=0.01).values
    tensor([3., 2.])
    """
    return return_types.topk(*_sorted(input, k, dim, largest, temperature, "relax.topk"))


def _count(k: int, last: Tensor, name: str) -> int:
    if isinstance(k, bool) or not isinstance(k, Integral) or not 0 <= k <= last.shape[-1]:
        raise BadValue(f"{name}: k must be an integer from 0 to {last.shape[-1]}, got {k!r}",
                       why="there are no more elements along the dimension")
    return int(k)


def topk_mask(input: Tensor, k: int, dim: int = -1, largest: bool = True, *,
              temperature: Tensor | float = 1.0) -> Tensor:
    """Return how far each element is among the k largest: a step halfway between the k-th and the next.

    >>> import mutagrad as mg
    >>> mg.relax.topk_mask(mg.tensor([3., 1., 2., 9.]), 2, temperature=0.1)
    tensor([9.9331e-01, 3.0590e-07, 6.6929e-03, 1.0000e+00])

    As the temperature goes to 0: 1 for the k largest and 0 for others, and 1/2 for equal ones of which only some can
    be among them. It sums to k in the limit only. All or none (k = n, k = 0) are constants.
    """
    last = _along(input, dim, "relax.topk_mask")
    positive(temperature, input, "relax.topk_mask")
    if _count(k, last, "relax.topk_mask") in (0, last.shape[-1]):
        return input.new_full(input.shape, 1.0 if k else 0.0)
    places = last.sort(-1, largest)[0]
    away = last - (places[..., k - 1:k] + places[..., k:k + 1]) / 2
    return logistic(away if largest else -away, temperature, "relax.topk_mask").movedim(-1, dim)


def rank(input: Tensor, dim: int = -1, descending: bool = False, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return how many elements are smaller than each: a sum of steps, one for each pair.

    >>> import mutagrad as mg
    >>> mg.relax.rank(mg.tensor([3., 1., 2.]), temperature=0.5)
    tensor([1.8628, 0.1372, 1.0000])

    As the temperature goes to 0: `argsort(argsort(x, dim), dim)`, where equal elements share the mean of their ranks:
    SciPy's `rankdata(x) - 1`. Ranks always sum to n (n - 1) / 2.

    Ranks by pairs: Qin, Liu & Li, "A general approximation framework for direct optimization of information retrieval
    measures" (2010).
    """
    last = _along(input, dim, "relax.rank")
    away = last[..., :, None] - last[..., None, :]
    above = logistic(-away if descending else away, temperature, "relax.rank")
    found = above.sum(-1) - 0.5  # each is halfway above itself
    return found.movedim(-1, dim) if input.ndim else found[0]
