"""The softmax over very many classes, by clusters."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import BadIndex, BadValue, ShapeError
from ..core.dtypes import dtype
from ..ops.shape.shape import cat
from ..tensors.tensor import Tensor
from . import functional as F
from .common import check_count
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Frequent classes have scores of their own, rare ones share that of their cluster (Grave and others, 2017).

    Classes are numbered by falling frequency; `cutoffs` says where a new cluster starts. Each cluster further down
    works in a space smaller by the factor `div_value`.

    >>> import mutagrad as mg
    >>> loss = mg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3])
    >>> loss(mg.zeros(2, 4), mg.tensor([1, 5])).output.shape
    mutagrad.Size([2])
    """

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        cuts = list(cutoffs)
        disordered = not cuts or cuts != sorted(set(cuts))
        if disordered or cuts[0] <= 0 or cuts[-1] > n_classes - 1 or any(int(c) != c for c in cuts):
            raise BadValue("AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, growing integers "
                           f"between 1 and {n_classes - 1}, got {cuts}", fix=f"cutoffs=[{max(n_classes // 10, 1)}]")
        self.in_features = check_count(self, "in_features", in_features)
        self.n_classes = check_count(self, "n_classes", n_classes)
        self.cutoffs, self.div_value, self.head_bias = [*cuts, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = cuts[0], len(cuts)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList(self._cluster(i, device, dtype) for i in range(self.n_clusters))

    def _cluster(self, i: int, device: DeviceLike | None, dtype: dtype | None) -> Sequential:
        inner, size = int(self.in_features // self.div_value ** (i + 1)), self.cutoffs[i + 1] - self.cutoffs[i]
        return Sequential(Linear(self.in_features, inner, False, device, dtype),
                          Linear(inner, size, False, device, dtype))

    def reset_parameters(self) -> None:
        """Draws the weights anew.

        >>> import mutagrad as mg
        >>> mg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3]).reset_parameters() is None
        True
        """
        for layer in (self.head, *(layer for cluster in self.tail for layer in cluster)):
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Return the log probability of each item's class, and the mean of their negatives.

        >>> import mutagrad as mg
        >>> loss = mg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3])
        >>> output, mean = loss(mg.zeros(2, 4), mg.tensor([1, 5]))
        >>> output.shape, mean.shape
        (mutagrad.Size([2]), mutagrad.Size([]))
        """
        batched = target_.ndim > 0
        x, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        self._check(x, target)
        head = F.log_softmax(self.head(x), 1)
        output = head.new_zeros(x.shape[0])
        for i, (low, high) in enumerate(zip([0, *self.cutoffs], self.cutoffs)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if i == 0:
                output[rows] = head[rows, target[rows]]
            elif rows.numel():
                within = F.log_softmax(self.tail[i - 1](x[rows]), 1)
                of_target = within.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
                output[rows] = head[rows, self.shortlist_size + i - 1] + of_target
        return _ASMoutput(output if batched else output.squeeze(0), -output.mean())

    def _check(self, x: Tensor, target: Tensor) -> None:
        if x.ndim != 2 or target.ndim != 1 or x.shape[0] != target.shape[0]:
            raise ShapeError("AdaptiveLogSoftmaxWithLoss: Input and target should have the same size, got shapes "
                             f"{tuple(x.shape)} and {tuple(target.shape)}",
                             why="a row for each item, and a class", fix="input (N, in_features), target (N,)")
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise BadIndex(f"AdaptiveLogSoftmaxWithLoss: Target values should be in [0, {self.n_classes - 1}]",
                           why=f"they go from {int(target.min())} to {int(target.max())}")

    def log_prob(self, input: Tensor) -> Any:
        """Return the log probabilities of all classes.

        >>> import mutagrad as mg
        >>> loss = mg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3])
        >>> loss.log_prob(mg.zeros(2, 4)).exp().sum(1).round()
        tensor([1., 1.], grad_fn=<RoundBackward0>)
        """
        head = F.log_softmax(self.head(input), 1)
        short = self.shortlist_size
        clusters = [F.log_softmax(cluster(input), 1) + head[:, short + i].unsqueeze(1)
                    for i, cluster in enumerate(self.tail)]
        return cat([head[:, :short], *clusters], 1)

    def predict(self, input: Tensor) -> Any:
        """Return the likeliest class of each item.

        >>> import mutagrad as mg
        >>> loss = mg.nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[3])
        >>> loss.predict(mg.zeros(2, 4)).shape
        mutagrad.Size([2])
        """
        return self.log_prob(input).argmax(1)
