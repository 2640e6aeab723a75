"""Losses: one number for how far off a result is."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import BadArgument, BadValue, ShapeError
from ..core.dtypes import dtype
from ..tensors.tensor import Tensor
from . import functional as F
from .common import check_count, described
from .linear import Linear
from .module import Module
from .shapes import PairwiseDistance

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss"]


def _of_former(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """The reduction that two deprecated arguments ask for, if they are given."""
    if size_average is None and reduce is None:
        return reduction
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(f"size_average and reduce are deprecated: reduction={found!r} means the same", stacklevel=4)
    return found


class _Loss(Module):
    """'mean' and 'sum' reduce the losses of all items to one number, 'none' returns them."""

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _of_former(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """With a weight, which is part of the state."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


# ------------------------------------------------------------------------------------------------------------ distances

class MSELoss(_Loss):
    """The squared difference.

    >>> import mutagrad as mg
    >>> mg.nn.MSELoss()(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The absolute difference.

    >>> import mutagrad as mg
    >>> mg.nn.L1Loss()(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(1.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared below beta, absolute above.

    >>> import mutagrad as mg
    >>> mg.nn.SmoothL1Loss()(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(0.7500)
    """

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared below delta, and from there on along the tangent.

    >>> import mutagrad as mg
    >>> mg.nn.HuberLoss()(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(0.7500)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        if isinstance(delta, bool) or not isinstance(delta, (int, float)):
            raise BadArgument(f"HuberLoss: delta must be a float or int, got {delta!r}", fix="delta=1.0")
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


# ---------------------------------------------------------------------------------------------------------- likelihoods

class CrossEntropyLoss(_WeightedLoss):
    """The cross entropy of scores and the numbers (or probabilities) of the right classes.

    >>> import mutagrad as mg
    >>> mg.nn.CrossEntropyLoss()(mg.zeros(3, 2), mg.tensor([0, 1, 1]))
    tensor(0.6931)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
                 reduce: bool | None = None, reduction: str = "mean", label_smoothing: float = 0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)


class NLLLoss(_WeightedLoss):
    """The negative of the right class's log probability.

    >>> import mutagrad as mg
    >>> mg.nn.NLLLoss()(mg.tensor([[0.25, 0.75]]).log(), mg.tensor([1]))
    tensor(0.2877)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """The former name of NLLLoss for images."""

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, ignore_index: int = -100,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        warnings.warn("NLLLoss2d is deprecated: NLLLoss does the same", FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its results.

    >>> import mutagrad as mg
    >>> loss = mg.nn.LinearCrossEntropyLoss(3, 5)
    >>> loss(mg.zeros(2, 3), mg.tensor([0, 4]))
    tensor(1.6094, grad_fn=<NllLossBackward0>)
    """

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
                 device: DeviceLike | None = None, dtype: dtype | None = None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: Any = None) -> None:
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = check_count(self, "num_classes", num_classes), tuple(out_features)
        if weight is not None and tuple(weight.shape) != (self.num_classes,):
            raise ShapeError(f"LinearCrossEntropyLoss: weight has shape {tuple(weight.shape)}, not "
                             f"{(self.num_classes,)}", why="there is one a class")
        if not 0 <= label_smoothing <= 1:
            raise BadValue(f"LinearCrossEntropyLoss: label_smoothing must be between 0 and 1, got {label_smoothing}",
                           fix="label_smoothing=0.1")
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, math.prod((self.num_classes, *self.out_features)), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, -1), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
                + described(self, "reduction", "ignore_index", "label_smoothing", "options"))


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under Poisson rates, or under their logarithms.

    >>> import mutagrad as mg
    >>> mg.nn.PoissonNLLLoss()(mg.tensor([0., 1.]), mg.tensor([1., 2.]))
    tensor(0.8591)
    """

    def __init__(self, log_input: bool = True, full: bool = False, size_average: bool | None = None,
                 eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of targets under normal distributions.

    >>> import mutagrad as mg
    >>> mg.nn.GaussianNLLLoss()(mg.tensor([1.]), mg.tensor([2.]), mg.tensor([0.5]))
    tensor(0.6534)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """The divergence of log probabilities from a target distribution; 'batchmean' is the one of mathematics.

    >>> import mutagrad as mg
    >>> mg.nn.KLDivLoss(reduction="sum")(mg.tensor([0.5, 0.5]).log(), mg.tensor([0.25, 0.75]))
    tensor(0.1308)
    """

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 log_target: bool = False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """The cross entropy of probabilities and yes or no.

    >>> import mutagrad as mg
    >>> mg.nn.BCELoss()(mg.tensor([0.5, 0.9]), mg.tensor([0., 1.]))
    tensor(0.3993)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """The cross entropy of scores and yes or no.

    >>> import mutagrad as mg
    >>> mg.nn.BCEWithLogitsLoss()(mg.tensor([0., 2.]), mg.tensor([0., 1.]))
    tensor(0.4100)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                  reduction=self.reduction)


class CTCLoss(_Loss):
    """The negative log likelihood of a sequence under all alignments with a longer one (Graves and others, 2006).

    >>> import mutagrad as mg
    >>> p = mg.full((4, 1, 3), 1 / 3).log()  # steps, batch, classes
    >>> mg.nn.CTCLoss()(p, mg.tensor([[1, 2]]), mg.tensor([4]), mg.tensor([2]))
    tensor(0.8432)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
                target_lengths: Tensor | Sequence[int]) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)


# -------------------------------------------------------------------------------------------------------------- margins

class _Margin(_Loss):
    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_Loss):
    """Distances where the target is 1, and what they fall short of the margin where it is -1.

    >>> import mutagrad as mg
    >>> mg.nn.HingeEmbeddingLoss()(mg.tensor([0.2, 0.4]), mg.tensor([1., -1.]))
    tensor(0.4000)
    """

    def __init__(self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Margin):
    """How far two vectors are from pointing the same way (target 1), or from not doing so (target -1).

    >>> import mutagrad as mg
    >>> mg.nn.CosineEmbeddingLoss()(mg.tensor([[1., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([1.]))
    tensor(1.)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Margin):
    """By how much the first input is not larger (target 1) or not smaller (target -1) than the second.

    >>> import mutagrad as mg
    >>> mg.nn.MarginRankingLoss()(mg.tensor([1., 3.]), mg.tensor([2., 1.]), mg.tensor([1., 1.]))
    tensor(0.5000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)) for targets 1 and -1.

    >>> import mutagrad as mg
    >>> mg.nn.SoftMarginLoss()(mg.tensor([0., 2.]), mg.tensor([1., -1.]))
    tensor(1.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """By how much each right class is not ahead of each wrong one, for several right classes an item.

    >>> import mutagrad as mg
    >>> mg.nn.MultiLabelMarginLoss()(mg.tensor([[0.1, 0.2, 0.4]]), mg.tensor([[2, -1, -1]]))
    tensor(0.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The cross entropy of scores and yes or no, averaged over classes.

    >>> import mutagrad as mg
    >>> mg.nn.MultiLabelSoftMarginLoss()(mg.tensor([[0., 2.]]), mg.tensor([[0., 1.]]))
    tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """By how much the right class is not ahead of each wrong one.

    >>> import mutagrad as mg
    >>> mg.nn.MultiMarginLoss()(mg.tensor([[0.1, 0.2, 0.4]]), mg.tensor([2]))
    tensor(0.5000)
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                 size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise BadValue(f"MultiMarginLoss: only p == 1 and p == 2 are supported, got {p!r}", fix="p=1")
        if weight is not None and weight.ndim != 1:
            raise ShapeError("MultiMarginLoss: the weight must hold a number for each class, got shape "
                             f"{tuple(weight.shape)}", fix="weight.flatten()")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """By how much an anchor is not nearer to its positive example than to the negative one.

    >>> import mutagrad as mg
    >>> a, p, n = mg.tensor([[0., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([[1., 1.]])
    >>> mg.nn.TripletMarginLoss()(a, p, n)
    tensor(0.5858)
    """

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise BadValue(f"TripletMarginLoss: the margin must be positive, got {margin}", fix="margin=1.0")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """TripletMarginLoss with a distance of one's own.

    >>> import mutagrad as mg
    >>> a, p, n = mg.tensor([[0., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([[1., 1.]])
    >>> mg.nn.TripletMarginWithDistanceLoss()(a, p, n)
    tensor(0.5858)
    """

    def __init__(self, *, distance_function: Callable[[Any, Any], Any] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise BadValue(f"TripletMarginWithDistanceLoss: the margin must be positive, got {margin}",
                           fix="margin=1.0")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction)
