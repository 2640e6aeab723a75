"""Losses with margins, and the distances they are made of."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arrays import np
from ...arrays.kinds import check_range
from ...arrays.places import add_at
from ...base.errors import BadIndex, BadValue, DTypeError, ShapeError
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.number import number
from ...core.op import RECORDED
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import cast, clamp, minimum, where
from ..reduce.reductions import mean_dims, norm, sum as total, sum_dims
from ..select.selecting import gather
from ..shape.shape import broadcast_tensors, reshape, tensor_argument, unsqueeze, whole_dim
from .activation import logsigmoid_values, relu
from .cross_entropy import check_indices, constant_weight, with_batch
from .loss import at_least, check_float, check_tensors, reduced, reduction_of

FUNCTIONS = "cosine_similarity pairwise_distance pdist"

__all__ = [
    "cosine_embedding_loss", "cosine_similarity", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "pairwise_distance", "pdist", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss"]


# -------------------------------------------------------------------------------------------------------------- margins

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Any:
    """x where the target is 1, max(0, margin - x) where it is -1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.hinge_embedding_loss(mg.tensor([0.2, 0.4]), mg.tensor([1., -1.]))
    tensor(0.4000)
    """
    reduction = reduction_of("hinge_embedding_loss", reduction, size_average, reduce)
    check_tensors("hinge_embedding_loss", input, target)
    return reduced(where(target != 1, clamp(margin - input, 0), 0) + where(target != -1, input, 0), reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Any:
    """max(0, margin - target * (x1 - x2)): the first should be larger where the target is 1, smaller where it is -1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.margin_ranking_loss(mg.tensor([1., 3.]), mg.tensor([2., 1.]), mg.tensor([1., 1.]))
    tensor(0.5000)
    """
    reduction = reduction_of("margin_ranking_loss", reduction, size_average, reduce)
    check_tensors("margin_ranking_loss", input1, input2, target)
    if not input1._array.ndim == input2._array.ndim == target._array.ndim:
        raise ShapeError(f"margin_ranking_loss: shapes {input1._array.shape}, "
                         f"{input2._array.shape} and {target._array.shape}",
                         why="all three must have as many dimensions", fix="target.unsqueeze(1)")
    return reduced(clamp(-target * (input1 - input2) + float(margin), 0), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Any:
    """log(1 + exp(-target * x)), for targets 1 and -1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.soft_margin_loss(mg.tensor([0., 2.]), mg.tensor([1., -1.]))
    tensor(1.4100)
    """
    reduction = reduction_of("soft_margin_loss", reduction, size_average, reduce)
    check_tensors("soft_margin_loss", input, target)
    check_float("soft_margin_loss", input)
    return reduced(-logsigmoid_values(input * target), reduction)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                      size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Any:
    """Return the mean over all other classes of max(0, margin - x[target] + x) ** p.

    >>> import mutagrad as mg
    >>> mg.nn.functional.multi_margin_loss(mg.tensor([[0.1, 0.2, 0.4]]), mg.tensor([2]))
    tensor(0.5000)
    """
    reduction = reduction_of("multi_margin_loss", reduction, size_average, reduce)
    p = number(p)
    if p not in (1, 2):
        raise BadValue(f"multi_margin_loss: p must be 1 or 2, got {p}", fix="p=1")
    check_float("multi_margin_loss", input)
    x, target = with_batch("multi_margin_loss", input if input._array.ndim else reshape(input, 1), target)
    a = x._array
    if a.ndim != 2 or not a.shape[1]:
        raise ShapeError(f"multi_margin_loss: expects (N, C) or (C,), got shape {input._array.shape}",
                         fix="x.flatten(1)")
    factor = constant_weight("multi_margin_loss", weight, a)
    t = check_indices("multi_margin_loss", a, target).astype(np.int64)
    each = np.full(a.shape, 1 / a.shape[1], a.dtype)
    if factor is not None:
        each *= factor[t][:, None]
    np.put_along_axis(each, t[:, None], 0, 1)
    over = relu(x - gather(x, 1, make(t[:, None])) + margin)
    loss = sum_dims((over if p == 1 else over * over) * make(each), (1,), False)
    return reduced(loss if input._array.ndim == 2 else reshape(loss, ()), reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                           reduction: str = "mean") -> Any:
    """Return the sum of max(0, 1 - x[i] + x[j]) over targets i and other classes j, divided by the number of classes.

    The targets of a row are its class indices before the first -1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.multilabel_margin_loss(mg.tensor([[0.1, 0.2, 0.4]]), mg.tensor([[2, -1, -1]]))
    tensor(0.5000)
    """
    reduction = reduction_of("multilabel_margin_loss", reduction, size_average, reduce)
    check_float("multilabel_margin_loss", input)
    _check_multilabel(input, tensor_argument(target, "multilabel_margin_loss"))
    classes = input._array.shape[-1] if input._array.ndim else 1
    x, t = reshape(input, -1, classes), target._array.reshape(-1, classes)
    counts = np.logical_and.accumulate(t >= 0, 1)  # up to the first -1
    safe = np.where(counts, t, 0)
    taken = np.zeros(t.shape, np.int64)
    add_at(taken, (np.broadcast_to(np.arange(len(t))[:, None], t.shape), safe), counts.astype(np.int64))
    pairs = make(counts[:, :, None] * (taken == 0)[:, None, :] / classes)
    over = relu(unsqueeze(x, 1) - unsqueeze(gather(x, 1, make(safe)), 2) + 1)
    loss = sum_dims(over * cast(pairs, x._array.dtype), (1, 2), False)
    return reduced(loss if input._array.ndim == 2 else reshape(loss, ()), reduction)


def _check_multilabel(x: Tensor, target: Tensor) -> None:
    a, t = x._array, target._array
    if a.ndim > 2 or a.shape != t.shape or not a.size and (not a.ndim or not a.shape[-1]):
        raise ShapeError(f"multilabel_margin_loss: Expected one target for each element: x of shape {a.shape}, "
                         f"target of shape {t.shape}",
                         why="both must be (N, C) or (C,)", fix="a target of x's shape, filled up with -1")
    if t.dtype != np.int64:
        raise DTypeError(f"multilabel_margin_loss: class indices must be int64, not {of_array(t.dtype).name}",
                         fix="target.long()")
    classes = a.shape[-1] if a.ndim else 1
    check_range(t, -1, classes - 1, lambda wrong, where: BadIndex(
        f"multilabel_margin_loss: target {wrong} is out of bounds for {classes} classes",
        fix="-1 ends the list of targets", where=where))


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Any:
    """binary_cross_entropy_with_logits, averaged over the last dimension, the classes.

    >>> import mutagrad as mg
    >>> mg.nn.functional.multilabel_soft_margin_loss(mg.tensor([[0., 2.]]), mg.tensor([[0., 1.]]))
    tensor(0.4100)
    """
    reduction = reduction_of("multilabel_soft_margin_loss", reduction, size_average, reduce)
    check_tensors("multilabel_soft_margin_loss", input, target)
    check_float("multilabel_soft_margin_loss", input)
    if not input._array.ndim:
        raise BadIndex("multilabel_soft_margin_loss: a 0-d x has no classes", fix="x.reshape(1, -1)")
    # Small slopes stay exact on either side.
    loss = -(target * logsigmoid_values(input) + (1 - target) * logsigmoid_values(-input))
    loss = loss if weight is None else loss * tensor_argument(weight, "multilabel_soft_margin_loss")
    return reduced(mean_dims(loss, (loss._array.ndim - 1,), False), reduction)


# ------------------------------------------------------------------------------------------------------------ distances

def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """Return the p-norm of x1 - x2 + eps along the last dimension.

    >>> import mutagrad as mg
    >>> mg.pairwise_distance(mg.tensor([[0., 0.]]), mg.tensor([[3., 4.]]))
    tensor([5.0000])
    """
    check_tensors("pairwise_distance", x1, x2)
    return norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Any:
    """Return the cosine of the angle between vectors along a dimension.

    >>> import mutagrad as mg
    >>> mg.cosine_similarity(mg.tensor([1., 0.]), mg.tensor([1., 1.]), dim=0)
    tensor(0.7071)
    """
    check_tensors("cosine_similarity", x1, x2)
    common = RECORDED.common_dtype([x1, x2])
    if common.kind not in "fcV":
        raise DTypeError(f"cosine_similarity: expects floating point tensors, got {of_array(common).name}",
                         fix="x1.float()")
    x1, x2 = broadcast_tensors(*(x if x._array.dtype is common else cast(x, common) for x in (x1, x2)))
    dim = whole_dim(dim, x1._array.ndim, "cosine_similarity")
    sizes = (at_least(norm(x, 2, dim, True), eps) for x in (x1, x2))
    return total((x1 / next(sizes)) * (x2 / next(sizes)), dim)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> Any:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1.

    >>> import mutagrad as mg
    >>> a, b = mg.tensor([[1., 0.]]), mg.tensor([[0., 1.]])
    >>> mg.nn.functional.cosine_embedding_loss(a, b, mg.tensor([1.]))
    tensor(1.)
    """
    reduction = reduction_of("cosine_embedding_loss", reduction, size_average, reduce)
    check_tensors("cosine_embedding_loss", input1, input2, target)
    ndim = target._array.ndim
    if ndim > 1:
        raise ShapeError("cosine_embedding_loss: 0D or 1D target tensor expected, multi-target not supported; "
                         f"got shape {target._array.shape}", fix="target.flatten()")
    if not input1._array.ndim == input2._array.ndim == ndim + 1:
        raise ShapeError(f"cosine_embedding_loss: {ndim}D target tensor expects {ndim + 1}D input tensors, "
                         f"got shapes {input1._array.shape}, "
                         f"{input2._array.shape} and {target._array.shape}",
                         why="the target is (N,) for inputs of (N, D), or () for (D,)", fix="target.flatten()")
    products, first, second = (total(a * b, ndim) for a, b in ((input1, input2), (input1, input1), (input2, input2)))
    cosine = products / RECORDED.sqrt((first + 1e-12) * (second + 1e-12))
    return reduced(where(target == 1, 1 - cosine, 0) + where(target == -1, clamp(cosine - margin, 0), 0), reduction)


def _check_triplet(name: str, tensors: tuple[Tensor, ...], margin: float) -> None:
    check_tensors(name, *tensors)
    if margin <= 0:
        raise BadValue(f"{name}: margin must be positive, got {margin}", fix="margin=1.0")
    if len({x._array.ndim for x in tensors}) > 1:
        raise ShapeError(f"{name}: shapes {', '.join(str(x._array.shape) for x in tensors)} do not fit",
                         why="all three must have as many dimensions", fix="x.unsqueeze(0)")


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Any:
    """max(0, margin + distance to the positive - distance to the negative).

    >>> import mutagrad as mg
    >>> a, p, n = mg.tensor([[0., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([[1., 1.]])
    >>> mg.nn.functional.triplet_margin_loss(a, p, n)
    tensor(0.5858)
    """
    reduction = reduction_of("triplet_margin_loss", reduction, size_average, reduce)
    _check_triplet("triplet_margin_loss", (anchor, positive, negative), margin)
    return _triplet(lambda x, y: pairwise_distance(x, y, p, eps), anchor, positive, negative, margin, swap, reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor,
                                      *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Any:
    """triplet_margin_loss with a distance of your own.

    >>> import mutagrad as mg
    >>> a, p, n = mg.tensor([[0., 0.]]), mg.tensor([[0., 1.]]), mg.tensor([[1., 1.]])
    >>> mg.nn.functional.triplet_margin_with_distance_loss(a, p, n)
    tensor(0.5858)
    """
    reduction = reduction_of("triplet_margin_with_distance_loss", reduction)
    _check_triplet("triplet_margin_with_distance_loss", (anchor, positive, negative), margin)
    return _triplet(distance_function or pairwise_distance, anchor, positive, negative, margin, swap, reduction)


def _triplet(distance: Callable[[Tensor, Tensor], Tensor], anchor: Tensor, positive: Tensor, negative: Tensor,
             margin: float, swap: bool, reduction: str) -> Any:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp(near - far + margin, 0), reduction)


def pdist(input: Tensor, p: float = 2.0) -> Any:
    """Return the p-norm of the difference of every two rows: of row 0 and 1, 0 and 2, and so on.

    >>> import mutagrad as mg
    >>> mg.pdist(mg.tensor([[0., 0.], [3., 4.], [0., 1.]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    check_float("pdist", input)
    array = input._array
    if array.ndim != 2:
        raise ShapeError(f"pdist: expects a matrix, got shape {array.shape}", fix="x.flatten(1)")
    if p < 0:
        raise BadValue(f"pdist: p must not be negative, got {p}", fix="p=2")
    first, second = np.triu_indices(len(array), 1)
    return norm(input[make(first)] - input[make(second)], p, 1)
