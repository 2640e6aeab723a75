"""One of many: argmax as an expected position, one-hot rows that are not quite hot, draws that have a gradient."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..autograd import no_grad
from ..base.errors import ShapeError
from ..base.modes import keeps_modes
from ..nn import functional as F
from ..ops.create.create import arange
from ..ops.random.draws import rand
from ..ops.shape.arguments import tensor_argument
from ..tensors.tensor import Tensor
from .arguments import filled_dim, filled_dims, floating, positive

if TYPE_CHECKING:
    from ..ops.random.generator import Generator

__all__ = ["argmax", "argmin", "bernoulli", "gumbel_softmax", "one_hot", "straight_through"]


@keeps_modes
def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """Return the values of `hard` with the gradient of `soft`.

    >>> import mutagrad as mg
    >>> x = mg.tensor([0.2, 0.8], requires_grad=True)
    >>> y = mg.relax.straight_through(mg.round(x), x)
    >>> (y * mg.tensor([3., 5.])).sum().backward()
    >>> y.detach(), x.grad
    (tensor([0., 1.]), tensor([3., 5.]))

    The straight-through estimator: Hinton's lectures (2012); Bengio, Léonard & Courville (2013). There is no limit to
    take: the values are exact, and the gradient is that of another function. It is a write that is not recorded: to
    the last bit the values of `hard`, where `soft + (hard - soft).detach()` is rounded.
    """
    tensor_argument(hard, "relax.straight_through")
    if hard.shape != floating(soft, "relax.straight_through").shape:
        raise ShapeError(f"relax.straight_through: shapes {tuple(hard.shape)} and {tuple(soft.shape)} differ",
                         why="each value takes the gradient of the element in its place",
                         fix="hard.expand_as(soft), or one_hot(index, n) for an index")
    out = soft.clone()
    with no_grad():
        out.copy_(hard)
    return out


def one_hot(input: Tensor, dim: int = -1, hard: bool = False, *, temperature: Tensor | float = 1.0) -> Tensor:
    """Return the one-hot row of the largest element, softened: softmax(x / temperature).

    >>> import mutagrad as mg
    >>> scores = mg.tensor([1., 3., 2.])
    >>> mg.relax.one_hot(scores, temperature=0.5)
    tensor([0.0159, 0.8668, 0.1173])
    >>> mg.relax.one_hot(scores, hard=True)
    tensor([0., 1., 0.])

    As the temperature goes to 0: `one_hot(argmax(x), n)`; those that are equally large share. With `hard` the values
    are that limit, of the first where several are largest, and the gradient is the soft one's.
    """
    t = positive(temperature, floating(input, "relax.one_hot"), "relax.one_hot")
    dim = filled_dim(input, dim, "relax.one_hot")
    soft = soft_one_hot(input, dim, t)
    return straight_through(_hot(input, dim), soft) if hard else soft


def soft_one_hot(x: Tensor, dim: int, t: Any) -> Tensor:
    """Return softmax(x / t), where x / t may be infinite: a shift changes nothing."""
    return ((x - x.detach().amax(dim, True)) / t).softmax(dim)


def _hot(scores: Tensor, dim: int) -> Tensor:
    """1 where the first of the largest is, 0 elsewhere."""
    return scores.new_zeros(scores.shape).scatter_(dim, scores.argmax(dim, True), 1.0)


def argmax(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
           temperature: Tensor | float = 1.0) -> Tensor:
    """Return the position of the largest element as the mean of all positions, weighted by softmax(x / temperature).

    >>> import mutagrad as mg
    >>> mg.relax.argmax(mg.tensor([0., 1., 3., 2.]), temperature=0.5)
    tensor(2.0969)
    >>> peak = mg.zeros(4, 5); peak[1, 3] = 1.
    >>> mg.relax.argmax(peak, (0, 1), temperature=0.05)
    tensor([1., 3.])

    Without `dim` it is the position in the flattened input, as in `mutagrad.argmax`. Several dims are searched
    together: the result has a last dimension with a coordinate for each. As the temperature goes to 0:
    `mutagrad.argmax(x, dim)`, and the mean position where several are largest. Two separate peaks give a position
    between them, which is neither.

    Soft argmax: Kendall et al., "End-to-End Learning of Geometry and Context for Deep Stereo Regression" (2017).
    """
    return _position(floating(input, "relax.argmax"), dim, keepdim, temperature, "relax.argmax")


def _position(input: Tensor, dim: int | Sequence[int] | None, keepdim: bool, temperature: Tensor | float,
              name: str) -> Tensor:
    t, dims = positive(temperature, input, name), filled_dims(input, dim, name)
    several = isinstance(dim, (tuple, list)) and len(dim) > 0
    sizes = [input.shape[d] for d in dims]
    last = input.movedim(dims, tuple(range(-len(dims), 0)))
    kept = last.shape[:input.ndim - len(dims)]
    weights = soft_one_hot(last.reshape(*kept, math.prod(sizes)), -1, t)
    found = weights @ _coordinates(sizes if several else [math.prod(sizes)], input)
    if keepdim:
        found = found.reshape(*(1 if d in dims else n for d, n in enumerate(input.shape)), found.shape[-1])
    return found if several else found.squeeze(-1)


def _coordinates(sizes: list[int], like: Tensor) -> Tensor:
    """The coordinates of all places of a grid, row by row."""
    places = arange(math.prod(sizes), device=like.device)
    found = like.new_zeros(len(places), len(sizes))
    for d, size in enumerate(sizes):
        found[:, d] = places // math.prod(sizes[d + 1:]) % size
    return found


def argmin(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
           temperature: Tensor | float = 1.0) -> Tensor:
    """Return `argmax(-x)`. As the temperature goes to 0: `mutagrad.argmin(x, dim)`.

    >>> import mutagrad as mg
    >>> mg.relax.argmin(mg.tensor([3., 1., 2.]), dim=0, temperature=0.01)
    tensor(1.)
    """
    return _position(-floating(input, "relax.argmin"), dim, keepdim, temperature, "relax.argmin")


def gumbel_softmax(logits: Tensor, dim: int = -1, hard: bool = False, *, temperature: Tensor | float = 1.0,
                   generator: Generator | None = None) -> Tensor:
    """Draw a one-hot row, softened: softmax((logits + Gumbel noise) / temperature).

    As the temperature goes to 0: a draw of a category with probabilities softmax(logits), whatever the temperature
    before it with `hard`, of which the gradient is the soft one's: biased, and the less noisy the higher the
    temperature.

    Jang, Gu & Poole; Maddison, Mnih & Teh (both 2017). It is `nn.functional.gumbel_softmax`, with exact values if
    `hard`.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.relax.gumbel_softmax(mg.zeros(3), hard=True).sum().item()
    1.0
    """
    t = positive(temperature, floating(logits, "relax.gumbel_softmax"), "relax.gumbel_softmax")
    dim = filled_dim(logits, dim, "relax.gumbel_softmax")
    soft = F.gumbel_softmax(logits - logits.detach().amax(dim, True), t, dim=dim, generator=generator)
    return straight_through(_hot(soft, dim), soft) if hard else soft


def bernoulli(logits: Tensor, hard: bool = False, *, temperature: Tensor | float = 1.0,
              generator: Generator | None = None) -> Tensor:
    """Draw zeros and ones by their logits, softened: sigmoid((logits + logistic noise) / temperature).

    As the temperature goes to 0: `mutagrad.bernoulli(sigmoid(logits))`; so are the values with `hard`. It is
    `gumbel_softmax` for two categories, which Maddison, Mnih & Teh (2017) call binary concrete.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.relax.bernoulli(mg.zeros(3), hard=True).shape
    mutagrad.Size([3])
    """
    t = positive(temperature, floating(logits, "relax.bernoulli"), "relax.bernoulli")
    score = logits + rand(logits.shape, dtype=logits.dtype, device=logits.device, generator=generator).logit()
    soft = (score / t).sigmoid()
    return straight_through(score > 0, soft) if hard else soft
