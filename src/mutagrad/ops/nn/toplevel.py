"""Layers and losses as PyTorch has them beside `add` and `sum`.

Arguments come in another order than in `nn.functional`, and reductions are numbers. Where a reduction is left out
PyTorch takes 0, none, whatever its schemas say.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import BadValue
from ...core.storage import TensorBase as Tensor
from ..linalg.norms import matrix_norm
from ..reduce.reductions import norm
from ..shape.shape import tensor_argument
from . import ctc, embedding as tables, loss, margins, normalize, pool
from .resample import Ints

FUNCTIONS = """
    adaptive_max_pool1d batch_norm binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss
    embedding frobenius_norm hinge_embedding_loss instance_norm kl_div margin_ranking_loss norm_except_dim
    nuclear_norm poisson_nll_loss triplet_margin_loss
"""

_REDUCTIONS = ("none", "mean", "sum")


def _named(name: str, reduction: int) -> str:
    """The word for a reduction that is given as a number."""
    if reduction not in (0, 1, 2):
        raise BadValue(f"{name}: reduction={reduction!r} is not 0 (none), 1 (mean) or 2 (sum)",
                       fix=f"mutagrad.nn.functional.{name} takes words")
    return _REDUCTIONS[reduction]


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False,
              sparse: bool = False) -> Any:
    """Return the rows of a table with these numbers.

    >>> import mutagrad as mg
    >>> mg.embedding(mg.tensor([[1., 2.], [3., 4.]]), mg.tensor([1, 0, 1]))
    tensor([[3., 4.],
            [1., 2.],
            [3., 4.]])
    """
    padding = None if padding_idx < 0 else padding_idx
    return tables.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def batch_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
               running_var: Tensor | None, training: bool, momentum: float, eps: float,
               cudnn_enabled: bool = False) -> Any:
    """Bring each channel to mean 0 and variance 1 over all items, then scale and shift it.

    >>> import mutagrad as mg
    >>> mg.batch_norm(mg.tensor([[1., 4.], [3., 0.]]), None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000,  1.0000],
            [ 1.0000, -1.0000]])
    """
    return normalize.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                  running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool = False) -> Any:
    """Bring each channel of each item to mean 0 and variance 1, then scale and shift it.

    >>> import mutagrad as mg
    >>> mg.instance_norm(mg.tensor([[[1., 3.], [2., 6.]]]), None, None, None, None, True, 0.1, 0., False)
    tensor([[[-1.,  1.],
             [-1.,  1.]]])
    """
    return normalize.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def adaptive_max_pool1d(input: Tensor, output_size: Ints) -> Any:
    """Return the largest of so many windows of nearly equal size, and where each was.

    >>> import mutagrad as mg
    >>> mg.adaptive_max_pool1d(mg.tensor([[1., 2., 3., 4.]]), 2)
    (tensor([[2., 4.]]), tensor([[1, 3]]))
    """
    return pool.adaptive_max_pool1d(input, output_size, return_indices=True)


def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Any:
    """target * (log(target) - x), for x that are logarithms of probabilities.

    >>> import mutagrad as mg
    >>> mg.kl_div(mg.tensor([0.5, 0.5]).log(), mg.tensor([0.25, 0.75]), reduction=1)
    tensor(0.0654)
    """
    return loss.kl_div(input, target, reduction=_named("kl_div", reduction), log_target=log_target)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     pos_weight: Tensor | None = None, reduction: int = 0) -> Any:
    """binary_cross_entropy of sigmoid(x), without underflow.

    >>> import mutagrad as mg
    >>> mg.binary_cross_entropy_with_logits(mg.tensor([0., 2.]), mg.tensor([0., 1.]))
    tensor([0.6931, 0.1269])
    """
    name = "binary_cross_entropy_with_logits"
    return loss.binary_cross_entropy_with_logits(input, target, weight, reduction=_named(name, reduction),
                                                 pos_weight=pos_weight)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Any:
    """x - target * log(x) for counts with mean x.

    >>> import mutagrad as mg
    >>> mg.poisson_nll_loss(mg.tensor([0., 1.]), mg.tensor([1., 2.]), True, False, 1e-8, 1)
    tensor(0.8591)
    """
    return loss.poisson_nll_loss(input, target, log_input, full, eps=eps,
                                 reduction=_named("poisson_nll_loss", reduction))


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
                          reduction: int = 0) -> Any:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    >>> import mutagrad as mg
    >>> a, b = mg.tensor([[1., 0.]]), mg.tensor([[0., 1.]])
    >>> mg.cosine_embedding_loss(a, b, mg.tensor([1.]))
    tensor([1.])
    """
    return margins.cosine_embedding_loss(input1, input2, target, margin,
                                         reduction=_named("cosine_embedding_loss", reduction))


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Any:
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> import mutagrad as mg
    >>> mg.hinge_embedding_loss(mg.tensor([0.2, 0.4]), mg.tensor([1., -1.]))
    tensor([0.2000, 0.6000])
    """
    return margins.hinge_embedding_loss(input, target, margin, reduction=_named("hinge_embedding_loss", reduction))


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0) -> Any:
    """max(0, margin - target * (x1 - x2)).

    >>> import mutagrad as mg
    >>> mg.margin_ranking_loss(mg.tensor([1., 3.]), mg.tensor([2., 1.]), mg.tensor([1., 1.]))
    tensor([1., 0.])
    """
    return margins.margin_ranking_loss(input1, input2, target, margin,
                                       reduction=_named("margin_ranking_loss", reduction))


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
                        eps: float = 1e-6, swap: bool = False, reduction: int = 0) -> Any:
    """max(0, margin + distance to the positive - distance to the negative).

    >>> import mutagrad as mg
    >>> mg.triplet_margin_loss(mg.tensor([[0., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([[3., 4.]]))
    tensor([0.])
    """
    return margins.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap,
                                       reduction=_named("triplet_margin_loss", reduction))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
             target_lengths: Tensor | Sequence[int], blank: int = 0, reduction: int = 0,
             zero_infinity: bool = False) -> Any:
    """-log of the probability that a sequence of log-probabilities spells the targets.

    >>> import mutagrad as mg
    >>> p = mg.full((4, 1, 3), 1 / 3).log()  # steps, batch, classes
    >>> mg.ctc_loss(p, mg.tensor([[1, 2]]), mg.tensor([4]), mg.tensor([2]))
    tensor([1.6864])
    """
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, _named("ctc_loss", reduction),
                        zero_infinity)


def frobenius_norm(input: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Any:
    """Return the square root of the sum of squares.

    >>> import mutagrad as mg
    >>> mg.frobenius_norm(mg.tensor([[3., 0.], [0., 4.]]), (0, 1))
    tensor(5.)
    """
    return norm(input, "fro", dim, keepdim)


def nuclear_norm(input: Tensor, dim: Sequence[int] = (-2, -1), keepdim: bool = False) -> Any:
    """Return the sum of the singular values of matrices.

    >>> import mutagrad as mg
    >>> mg.nuclear_norm(mg.tensor([[3., 0.], [0., 4.]]))
    tensor(7.)
    """
    return matrix_norm(input, "nuc", tuple(dim), keepdim)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Any:
    """Return the norm over all dimensions but one, which are kept with size one; dim -1 takes all.

    >>> import mutagrad as mg
    >>> mg.norm_except_dim(mg.tensor([[3., 4.], [0., 1.]]))
    tensor([[5.],
            [1.]])
    """
    others = tuple(d for d in range(tensor_argument(v, "norm_except_dim")._array.ndim) if d != dim)
    return norm(v, pow) if dim == -1 else norm(v, pow, others, True)
