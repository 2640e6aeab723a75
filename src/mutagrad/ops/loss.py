"""Losses and distances."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..backends import np
from ..backends.host import QUIET, add_at, hush, unhush
from ..call import elementwise, primitive
from ..construct import make
from ..dtypes import of_array
from ..errors import BadIndex, BadValue, DTypeError, GradientError, NotSupported, ShapeError
from ..graph import mode
from ..op import RAW, RECORDED
from ..storage import TensorBase
from .activation import linear, logsigmoid_values, relu
from .elementwise import abs as abs_values
from .elementwise import add_values, cast, clamp, exp, log, minimum, where
from .indexing import put
from .reduce import mean as average
from .reduce import mean_dims, norm, softmax_dim, sum_dims
from .reduce import sum as total
from .selecting import gather
from .shape import broadcast_tensors, reshape, tensor_argument, unsqueeze, whole_dim

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "linear_cross_entropy", "margin_ranking_loss", "mse_loss",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "pairwise_distance", "pdist", "poisson_nll_loss",
    "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss"]

# -------------------------------------------------------------------------------------------------------------- arguments


def _reduction(name: str, reduction: Any, size_average: Any = None, reduce: Any = None, more: tuple[str, ...] = ()) -> str:
    """The reduction's name; the two older arguments, where one is given, take its place."""
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            return "none"
        return "mean" if size_average is None or size_average else "sum"
    if reduction not in ("none", "mean", "sum", *more):
        raise BadValue(f"{name}: reduction={reduction!r} is not 'none', 'mean' or 'sum'", fix=f"{name}(x, y, reduction='mean')")
    return str(reduction)


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return average(loss) if reduction == "mean" else total(loss)


def _tensors(name: str, *values: Any) -> None:
    for value in values:
        tensor_argument(value, name)


def _weighted(name: str, loss: Any, x: Any, weight: Any, reduction: str, by_weight: bool) -> Any:
    """The loss times a weight for each element; `by_weight`: the mean is over the weights, not over the elements."""
    if weight is None:
        return _reduced(loss, reduction)
    if tensor_argument(weight, name)._array.shape != x._array.shape:
        raise BadValue(f"{name}: weight of shape {weight._array.shape} for x of shape {x._array.shape}", why="there must be one for each element",
                       fix="weight.expand_as(x)")
    loss = loss * weight
    return total(loss) / total(weight) if by_weight and reduction == "mean" else _reduced(loss, reduction)


def _paired(name: str, x: Any, y: Any) -> None:
    """Two tensors of one shape; PyTorch broadcasts others, and warns, since a column against a row is rarely meant."""
    _tensors(name, x, y)
    if x._array.shape != y._array.shape:
        broadcast_tensors(x, y)
        warnings.warn(f"{name}: x of shape {tuple(x._array.shape)} and target of shape {tuple(y._array.shape)} are broadcast, which is rarely meant",
                      stacklevel=3)


def _same_shape(name: str, x: Any, y: Any) -> None:
    _tensors(name, x, y)
    if x._array.shape != y._array.shape:
        raise BadValue(f"{name}: x of shape {x._array.shape} and target of shape {y._array.shape}", why="they must have one shape",
                       fix="target.reshape(x.shape), or target.expand_as(x)")


# -------------------------------------------------------------------------------------------------- differences of numbers

squared_error = elementwise("squared_error", lambda a, b: np.square(a - b), x=lambda g, x, y: (x - y) * (g + g), y=lambda g, x, y: (y - x) * (g + g))


def _huber(a: Any, b: Any, delta: float, scale: float) -> Any:
    size = np.abs(a - b)
    near = np.minimum(size, delta)
    return near * (size - 0.5 * near) * scale


huber_values = elementwise("huber", _huber, settings=("delta", "scale"),
                           x=lambda xp, g, x, y, delta, scale: g * xp.clamp(x - y, -delta, delta) * scale,
                           y=lambda xp, g, x, y, delta, scale: g * xp.clamp(y - x, -delta, delta) * scale)


def mse_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None) -> Any:
    """The mean of the squared differences.

    >>> import mutagrad as mg
    >>> mg.nn.functional.mse_loss(mg.tensor([1., 2.]), mg.tensor([1., 4.]))
    tensor(2.)
    """
    reduction = _reduction("mse_loss", reduction, size_average, reduce)
    _paired("mse_loss", input, target)
    return _weighted("mse_loss", squared_error(input, target), input, weight, reduction, True)


def l1_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Any = None) -> Any:
    """The mean of the absolute differences."""
    reduction = _reduction("l1_loss", reduction, size_average, reduce)
    _paired("l1_loss", input, target)
    return _weighted("l1_loss", abs_values(input - target), input, weight, reduction, True)


def smooth_l1_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0) -> Any:
    """The absolute difference, but half its square divided by beta where it is below beta."""
    reduction = _reduction("smooth_l1_loss", reduction, size_average, reduce)
    _paired("smooth_l1_loss", input, target)
    if beta < 0:
        raise BadValue(f"smooth_l1_loss: beta must not be negative, got {beta}", fix=f"beta={-beta}")
    if beta == 0:
        return _reduced(abs_values(input - target), reduction)
    return _reduced(huber_values(input, target, beta, 1 / beta), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Any:
    """Half the squared difference, but growing linearly from where the difference is delta."""
    reduction = _reduction("huber_loss", reduction)
    if delta <= 0:
        raise BadValue(f"huber_loss: delta must be positive, got {delta}", fix="delta=1.0")
    _paired("huber_loss", input, target)
    return _weighted("huber_loss", huber_values(input, target, delta, 1.0), input, weight, reduction, False)


# ------------------------------------------------------------------------------------------------------- of class indices

def _class_weight(name: str, weight: Any, a: Any) -> Any:
    """A weight for each class of `a` of shape (N, C, ...), in its type."""
    array = tensor_argument(weight, name)._array
    if array.shape != a.shape[1:2]:
        raise BadValue(f"{name}: weight of shape {array.shape} for {a.shape[1]} classes", why="there must be one for each class",
                       fix=f"a weight of shape {a.shape[1:2]}")
    return weight if array.dtype is a.dtype else cast(weight, a.dtype)


def _constant_weight(name: str, weight: Any, a: Any) -> Any:
    """The same as an array, or None; where targets are indices it has no derivative."""
    if weight is None:
        return None
    weight = _class_weight(name, weight, a)
    if mode.grad and weight.requires_grad:
        raise GradientError(f"{name}: no derivative with respect to 'weight' for targets that are class indices", why="PyTorch has none either",
                            fix="weight.detach()")
    return weight._array


def _check_float(name: str, x: Any) -> None:
    if tensor_argument(x, name)._array.dtype.kind not in "fV":
        raise DTypeError(f"{name}: expects a floating point tensor, got {of_array(x._array.dtype).name}", fix=f"{name}(x.float(), target)")


_UNSIGNED = {"l": np.uint64, "q": np.uint64, "B": np.uint8}


def _check_indices(name: str, a: Any, target: Any, ignore_index: int | None = None) -> Any:
    """The target's array, if each element of it is a class of `a` of shape (N, C, ...), or to be ignored."""
    t = tensor_argument(target, name)._array
    if t.dtype != np.int64 and t.dtype != np.uint8:
        raise DTypeError(f"{name}: class indices must be int64, not {of_array(t.dtype).name}", fix="target.long()")
    if t.shape != (*a.shape[:1], *a.shape[2:]):
        raise BadValue(f"{name}: a target of shape {t.shape} for x of shape {a.shape}",
                       why="x is (N, C, ...), and class indices are (N, ...) of the same sizes", fix=f"a target of shape {(*a.shape[:1], *a.shape[2:])}")
    if t.size and t.view(_UNSIGNED[t.dtype.char]).max() >= a.shape[1]:  # negative ones are the largest then
        wrong = t[((t < 0) | (t >= a.shape[1])) & (t != ignore_index)]
        if wrong.size:
            raise BadIndex(f"{name}: target {wrong[0]} is out of bounds for {a.shape[1]} classes", why=f"classes are from 0 to {a.shape[1] - 1}",
                           fix=f"{name}(x, target, ignore_index={wrong[0]}) leaves these out" if ignore_index is not None else "target.clamp(min=0)")
    return t


class _Picks:
    """Which elements of x a loss of class indices is made of, and each one's share in the loss: one number, or one for each."""

    __slots__ = ("index", "share", "shape", "places")

    def __init__(self, a: Any, t: Any, weight: Any, ignore_index: int, reduction: str) -> None:
        kept = t != ignore_index
        self.places = None if kept.all() else np.nonzero(kept)  # where in the target they are; None for everywhere
        self.shape = t.shape if reduction == "none" else None
        index = [np.arange(n).reshape((-1,) + (1,) * (t.ndim - 1 - d)) for d, n in enumerate(t.shape)]
        index.insert(1, np.array(t, np.int64))
        self.index = tuple(index) if self.places is None else tuple(np.broadcast_to(i, t.shape)[kept] for i in index)
        self.share = self._shares(a.dtype, weight, reduction == "mean")

    def _shares(self, dtype: Any, weight: Any, mean: bool) -> Any:
        count = self.index[1].size
        if not count or weight is None and self.places is None:
            return 1.0 if not mean else 1 / count if count else float("nan")
        each = np.ones(count, dtype) if weight is None else weight[self.index[1]]
        token = hush(QUIET)  # the weights may sum to zero
        each = each / each.sum() if mean else each
        unhush(token)
        return each

    def reduce(self, found: Any) -> Any:
        """The loss out of what the picked elements give."""
        alike = self.share.__class__ is float
        weighted = found if alike else found * self.share
        if self.shape is not None:
            return weighted if self.places is None else _filled(self.places, weighted, self.shape)
        whole = np.add.reduce(weighted, None)
        return whole * whole.dtype.type(self.share) if alike else whole


def _coefficients(xp: Any, g: Any, picks: _Picks) -> Any:
    """The adjoint of what each picked element gives; of all of them, where it is the same."""
    incoming = g if picks.shape is None or picks.places is None else xp.pick(g, picks.places)
    return incoming * (picks.share if picks.share.__class__ is float else xp.as_value(picks.share))


def _filled(places: Any, values: Any, shape: tuple[int, ...]) -> Any:
    whole = np.zeros(shape, values.dtype)
    whole[places] = values
    return whole


def _filled_recorded(places: Any, values: Any, shape: tuple[int, ...]) -> Any:
    whole = make(np.zeros(shape, values._array.dtype))
    put(whole, places, values, "scatter_")
    return whole


def _subtract(whole: Any, index: Any, values: Any) -> Any:
    whole[index] -= values
    return whole


def _subtract_recorded(whole: Any, index: Any, values: Any) -> Any:
    put(whole, index, -values, "index_add_", accumulate=True)
    return whole


def _class_shares(a: Any, factor: Any) -> Any:
    """softmax along dimension 1 times a factor for each position, in one array."""
    found = a - np.maximum.reduce(a, 1, keepdims=True) if a.size else a.copy()
    np.exp(found, out=found)
    found *= factor / np.add.reduce(found, 1, keepdims=True)
    return found


RAW.as_value, RECORDED.as_value = lambda a: a, make
RAW.filled, RECORDED.filled = _filled, _filled_recorded
RAW.subtract, RECORDED.subtract = _subtract, _subtract_recorded
RAW.class_shares, RECORDED.class_shares = _class_shares, lambda x, factor: softmax_dim(x, 1) * factor


def _in_single(forward: Any) -> Any:
    """Half precision is computed in single, as in PyTorch."""
    def wide(a: Any, *rest: Any) -> Any:
        return forward(a, *rest) if a.dtype.char != "e" else np.asarray(forward(a.astype(np.float32), *rest)).astype(a.dtype)

    return wide


def _cross_entropy(a: Any, picks: _Picks) -> Any:
    shifted = a - np.maximum.reduce(a, 1, keepdims=True) if a.size else a.copy()
    picked = shifted[picks.index]
    np.exp(shifted, out=shifted)
    sums = np.log(np.add.reduce(shifted, 1))
    return picks.reduce((sums if picks.places is None else sums[picks.places]) - picked)


def _cross_entropy_rule(xp: Any, g: Any, x: Any, picks: _Picks) -> Any:
    """(softmax - one at the target) times each position's share."""
    shares = _coefficients(xp, g, picks)
    wide = shares if picks.places is None else xp.filled(picks.places, shares, (x.shape[0], *x.shape[2:]))
    if len(wide.shape):
        wide = xp.reshape(wide, (x.shape[0], 1, *x.shape[2:]))
    return xp.subtract(xp.class_shares(x, wide), picks.index, shares)


cross_entropy_indices = primitive("cross_entropy", _in_single(_cross_entropy), settings=("picks",), x=_cross_entropy_rule)
nll_indices = primitive("nll_loss", _in_single(lambda a, picks: picks.reduce(-a[picks.index])), settings=("picks",),
                        x=lambda xp, g, x_shape, picks: xp.filled(picks.index, -_coefficients(xp, g, picks), x_shape))


def _soft_cross_entropy(a: Any, b: Any, reduced: bool, scale: float) -> Any:
    found = -np.add.reduce(RAW.log_softmax(a, 1) * b, None if reduced else 1)
    return found if scale == 1 else found * scale


def _each_class(xp: Any, g: Any, reduced: bool, scale: float) -> Any:
    scaled = g if scale == 1 else g * scale
    return scaled if reduced else xp.unsqueeze(scaled, 1)


cross_entropy_shares = primitive(
    "cross_entropy_shares", _soft_cross_entropy, settings=("reduced", "scale"), inputs=("x", "y"),
    x=lambda xp, g, x, y, reduced, scale: (xp.class_shares(x, xp.sum(y, (1,), True)) - y) * _each_class(xp, g, reduced, scale),
    y=lambda xp, g, x, reduced, scale: -xp.log_softmax(x, 1) * _each_class(xp, g, reduced, scale))


def _with_batch(name: str, x: Any, target: Any) -> tuple[Any, Any]:
    """x as (N, C, ...) and class indices to match."""
    _tensors(name, x, target)
    if not x._array.ndim:
        raise ShapeError(f"{name}: a 0-d x has no classes", why="x is (C,) or (N, C, ...)", fix="x.reshape(1, -1)")
    if x._array.ndim > 1:
        return x, target
    if target._array.size != 1 or target._array.ndim > 1:
        raise BadValue(f"{name}: a target of shape {target._array.shape} for x of shape {x._array.shape}", why="x is (C,), so there is one class index",
                       fix="a target of shape ()")
    return unsqueeze(x, 0), reshape(target, 1)


def nll_loss(input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
             reduction: str = "mean") -> Any:
    """The mean of -x at the class indices, for x that are logarithms of probabilities: x is (N, C, ...), the indices (N, ...)."""
    reduction = _reduction("nll_loss", reduction, size_average, reduce)
    return _of_indices("nll_loss", nll_indices, input, target, weight, ignore_index, reduction)


def _of_indices(name: str, operation: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    _check_float(name, x)
    shape = tensor_argument(target, name)._array.shape
    x, target = _with_batch(name, x, target)
    t = _check_indices(name, x._array, target, ignore_index)
    found = operation(x, _Picks(x._array, t, _constant_weight(name, weight, x._array), ignore_index, reduction))
    return found if reduction != "none" or found._array.shape == shape else reshape(found, shape)


def cross_entropy(input: Any, target: Any, weight: Any = None, size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
    """The mean of -log(softmax(x)) at the class indices, or averaged over classes where the target gives their probabilities.

    x is (N, C, ...); class indices are (N, ...), probabilities as x.

    >>> import mutagrad as mg
    >>> logits = mg.zeros(2, 4, requires_grad=True)
    >>> loss = mg.nn.functional.cross_entropy(logits, mg.tensor([0, 3])); loss
    tensor(1.3863, grad_fn=<CrossEntropyBackward0>)
    """
    reduction = _reduction("cross_entropy", reduction, size_average, reduce)
    if not 0 <= label_smoothing <= 1:
        raise BadValue(f"cross_entropy: label_smoothing must be from 0 to 1, got {label_smoothing}", fix="label_smoothing=0.1")
    _check_float("cross_entropy", input)
    if tensor_argument(target, "cross_entropy")._array.dtype.kind in "fV" or target._array.shape == input._array.shape:
        return _of_shares(input, target, weight, reduction, label_smoothing, ignore_index)
    if not label_smoothing:
        return _of_indices("cross_entropy", cross_entropy_indices, input, target, weight, ignore_index, reduction)
    return _smoothed(input, target, weight, ignore_index, reduction, label_smoothing)


def _class_column(weight: Any, ndim: int) -> Any:
    """A weight for each class, to stand beside (N, C, ...)."""
    return reshape(weight, 1, -1, *(1,) * (ndim - 2))


def _of_shares(x: Any, target: Any, weight: Any, reduction: str, smoothing: float, ignore_index: int) -> Any:
    _same_shape("cross_entropy", x, target)
    if target._array.dtype.kind not in "fV":
        raise DTypeError(f"cross_entropy: probabilities must be floating point, not {of_array(target._array.dtype).name}",
                         why="a target of x's shape is taken for probabilities", fix="target.float(), or class indices of shape (N, ...)")
    if ignore_index >= 0:
        raise BadValue(f"cross_entropy: ignore_index={ignore_index} means nothing for targets that are probabilities", fix="leave it out")
    unbatched = x._array.ndim == 1
    if unbatched:
        x, target = unsqueeze(x, 0), unsqueeze(target, 0)
    shape, dtype = x._array.shape, x._array.dtype
    weight = None if weight is None else _class_weight("cross_entropy", weight, x._array)
    target = target if target._array.dtype is dtype else cast(target, dtype)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / shape[1]
    if weight is not None:
        target = target * _class_column(weight, len(shape))
    count = math.prod(shape) // shape[1] if shape[1] else 0
    scale = (1 / count if count else float("nan")) if reduction == "mean" else 1.0
    found = cross_entropy_shares(x, target, reduction != "none", scale)
    return reshape(found, ()) if unbatched and reduction == "none" else found


def _smoothed(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, smoothing: float) -> Any:
    """Class indices as the probabilities that smoothing makes of them, with weights and ignored positions in them."""
    shape = target._array.shape
    x, target = _with_batch("cross_entropy", x, target)
    a = x._array
    t = _check_indices("cross_entropy", a, target, ignore_index)
    each = _constant_weight("cross_entropy", weight, a)
    each = np.ones(a.shape[1], a.dtype) if each is None else each
    kept = np.expand_dims(t != ignore_index, 1)
    shares = np.zeros_like(a)
    np.put_along_axis(shares, np.expand_dims(np.where(t == ignore_index, 0, t), 1), 1 - smoothing, 1)
    shares += smoothing / a.shape[1]
    shares *= each.reshape(1, -1, *(1,) * (a.ndim - 2)) * kept
    token = hush(QUIET)
    scale = float(1 / each[t[kept[:, 0]]].sum()) if reduction == "mean" else 1.0
    unhush(token)
    found = cross_entropy_shares(x, make(shares), reduction != "none", scale)
    return reshape(found, shape) if reduction == "none" and found._array.shape != shape else found


def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None, reduction: str = "mean",
                         ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any = None) -> Any:
    """cross_entropy of `linear(x, linear_weight, linear_bias)`; the weight is (C, ..., inputs)."""
    if options is not None:
        raise NotSupported("linear_cross_entropy: options are not supported", why="the logits are computed at once, not in chunks", fix="options=None")
    _tensors("linear_cross_entropy", input, linear_weight, target)
    a, w = input._array, linear_weight._array
    if a.ndim not in (1, 2) or w.ndim < 2 or a.shape[-1] != w.shape[-1] or w.ndim > 2 and a.ndim == 1:
        raise ShapeError(f"linear_cross_entropy: x of shape {a.shape} and linear_weight of shape {w.shape} do not fit",
                         why="x is (inputs,) or (N, inputs), linear_weight (C, inputs), or (C, ..., inputs) for batches", fix="x.flatten(0, -2)")
    if linear_bias is not None and tensor_argument(linear_bias, "linear_cross_entropy")._array.shape != w.shape[:-1]:
        raise ShapeError(f"linear_cross_entropy: linear_bias of shape {linear_bias._array.shape} for linear_weight of shape {w.shape}",
                         fix=f"a bias of shape {w.shape[:-1]}")
    if target._array.dtype.kind in "fV" and ignore_index is not None:
        raise BadValue("linear_cross_entropy: ignore_index means nothing for targets that are probabilities", fix="ignore_index=None")
    rows = reshape(linear_weight, -1, w.shape[-1]) if w.ndim > 2 else linear_weight
    logits = linear(input, rows, None if linear_bias is None else reshape(linear_bias, -1))
    logits = logits if w.ndim == 2 else reshape(logits, *a.shape[:1], *w.shape[:-1])
    return cross_entropy(logits, target, weight, reduction=reduction, ignore_index=-100 if ignore_index is None else ignore_index,
                         label_smoothing=label_smoothing)


# ------------------------------------------------------------------------------------------------------- of probabilities

def _binary(a: Any, b: Any) -> Any:
    return (b - 1) * np.maximum(np.log1p(-a), -100) - b * np.maximum(np.log(a), -100)


def _softplus_of_negative(a: Any) -> Any:
    return np.maximum(-a, 0) + np.log1p(np.exp(-np.abs(a)))


def _binary_logits(a: Any, b: Any) -> Any:
    return (1 - b) * a + _softplus_of_negative(a)


binary_values = elementwise("binary_cross_entropy", _binary,
                            x=lambda xp, g, x, y: g * (x - y) / xp.clamp(x * (1 - x), 1e-12, None),
                            y=lambda xp, g, x: g * (xp.clamp(xp.log1p(-x), -100.0, None) - xp.clamp(xp.log(x), -100.0, None)))
binary_logits_values = elementwise("binary_cross_entropy_with_logits", _binary_logits,
                                   x=lambda xp, g, x, y: g * (xp.sigmoid(x) - y), y=lambda g, x: -g * x)
binary_positive_values = elementwise(
    "binary_cross_entropy_pos_weight", lambda a, b, p: (1 - b) * a + (1 + (p - 1) * b) * _softplus_of_negative(a), inputs=("x", "y", "p"),
    x=lambda xp, g, x, y, p: g * (1 - y - (1 + (p - 1) * y) * xp.sigmoid(-x)), y=lambda xp, g, x, p: -g * (x + (p - 1) * xp.logsigmoid(x)),
    p=lambda xp, g, x, y: -g * y * xp.logsigmoid(x))


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """The mean of -log(x) where the target is 1 and -log(1 - x) where it is 0, and between; the logarithms are at least -100."""
    reduction = _reduction("binary_cross_entropy", reduction, size_average, reduce)
    _same_shape("binary_cross_entropy", input, target)
    _check_float("binary_cross_entropy", input)
    a = input._array
    if a.size and not (a.min() >= 0 and a.max() <= 1):
        raise BadValue(f"binary_cross_entropy: x must be from 0 to 1, but it is from {a.min()} to {a.max()}",
                       fix="binary_cross_entropy_with_logits(x, target)")
    loss = binary_values(input, target)
    return _reduced(loss if weight is None else loss * tensor_argument(weight, "binary_cross_entropy"), reduction)


def binary_cross_entropy_with_logits(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
                                     pos_weight: Any = None) -> Any:
    """binary_cross_entropy of sigmoid(x), without underflow; `pos_weight` weighs the targets that are 1.

    >>> import mutagrad as mg
    >>> mg.nn.functional.binary_cross_entropy_with_logits(mg.zeros(3), mg.ones(3))
    tensor(0.6931)
    """
    reduction = _reduction("binary_cross_entropy_with_logits", reduction, size_average, reduce)
    _same_shape("binary_cross_entropy_with_logits", input, target)
    _check_float("binary_cross_entropy_with_logits", input)
    if pos_weight is None:
        loss = binary_logits_values(input, target)
    else:
        loss = binary_positive_values(input, target, tensor_argument(pos_weight, "binary_cross_entropy_with_logits"))
    return _reduced(loss if weight is None else loss * tensor_argument(weight, "binary_cross_entropy_with_logits"), reduction)


def _divergence(a: Any, b: Any) -> Any:
    return b * np.log(np.where(b == 0, b.dtype.type(1), b)) - b * a


divergence_values = elementwise("kl_div", _divergence, promotes="float", x=lambda g, y: -g * y,
                                y=lambda xp, g, x, y: g * (xp.log(y) + (1 - x)))
log_divergence_values = elementwise("kl_div_log", lambda a, b: np.exp(b) * (b - a), promotes="float", x=lambda xp, g, y: -g * xp.exp(y),
                                    y=lambda xp, g, x, y: g * xp.exp(y) * (y - x + 1))


def kl_div(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False) -> Any:
    """target * (log(target) - x), for x that are logarithms of probabilities; "batchmean" divides the sum by the first size alone."""
    reduction = _reduction("kl_div", reduction, size_average, reduce, more=("batchmean",))
    _tensors("kl_div", input, target)
    loss = (log_divergence_values if log_target else divergence_values)(input, target)
    if reduction == "batchmean":
        loss = total(loss)
        return loss / input._array.shape[0] if input._array.ndim else loss
    return _reduced(loss, reduction)


def poisson_nll_loss(input: Any, target: Any, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8,
                     reduce: Any = None, reduction: str = "mean") -> Any:
    """x - target * log(x) for counts with mean x, which is given by its logarithm if `log_input`; `full` adds Stirling's terms."""
    reduction = _reduction("poisson_nll_loss", reduction, size_average, reduce)
    _tensors("poisson_nll_loss", input, target)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        safe = where(target > 1, target, 1)
        stirling = safe * log(safe) - safe + 0.5 * log(safe * (2 * math.pi))
        loss = loss + where(target > 1, stirling, 0)
    return _reduced(loss, reduction)


def _at_least(x: Any, low: float) -> Any:
    """x, raised to at least `low` without taking its gradient away."""
    array = x._array
    return add_values(x, make(np.maximum(array, array.dtype.type(low)) - array)) if (array < low).any() else x


def gaussian_nll_loss(input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Any:
    """-log of a normal distribution's density with mean x and variance `var`, without the constant unless `full`."""
    reduction = _reduction("gaussian_nll_loss", reduction)
    _tensors("gaussian_nll_loss", input, target)
    var = var if isinstance(var, TensorBase) else make(np.full(input._array.shape, var, input._array.dtype))
    shape, spread = input._array.shape, var._array.shape
    if (var._array < 0).any():
        raise BadValue(f"gaussian_nll_loss: a variance is negative: {var._array.min()}", fix="var.exp(), if these are logarithms")
    if spread != shape and spread == shape[:-1]:
        var = unsqueeze(var, -1)
    elif spread != shape and not (len(spread) == len(shape) and sum(n for m, n in zip(shape, spread) if m != n) == 1):
        raise BadValue(f"gaussian_nll_loss: var of shape {spread} for x of shape {shape}", why="one size may be 1 or left out at the end",
                       fix="var.expand_as(x)")
    var = _at_least(var, eps)
    loss = (log(var) + squared_error(input, target) / var) * 0.5
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


# ---------------------------------------------------------------------------------------------------------------- margins

def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    reduction = _reduction("hinge_embedding_loss", reduction, size_average, reduce)
    _tensors("hinge_embedding_loss", input, target)
    return _reduced(where(target != 1, clamp(margin - input, 0), 0) + where(target != -1, input, 0), reduction)


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None, reduce: Any = None,
                        reduction: str = "mean") -> Any:
    """max(0, margin - target * (x1 - x2)): the first should be larger where the target is 1, smaller where it is -1."""
    reduction = _reduction("margin_ranking_loss", reduction, size_average, reduce)
    _tensors("margin_ranking_loss", input1, input2, target)
    if not input1._array.ndim == input2._array.ndim == target._array.ndim:
        raise ShapeError(f"margin_ranking_loss: shapes {input1._array.shape}, {input2._array.shape} and {target._array.shape}",
                         why="all three must have as many dimensions", fix="target.unsqueeze(1)")
    return _reduced(clamp(-target * (input1 - input2) + float(margin), 0), reduction)


def soft_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """log(1 + exp(-target * x)), for targets 1 and -1."""
    reduction = _reduction("soft_margin_loss", reduction, size_average, reduce)
    _tensors("soft_margin_loss", input, target)
    _check_float("soft_margin_loss", input)
    return _reduced(-logsigmoid_values(input * target), reduction)


def multi_margin_loss(input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, size_average: Any = None, reduce: Any = None,
                      reduction: str = "mean") -> Any:
    """The mean over all other classes of max(0, margin - x[target] + x) ** p."""
    reduction = _reduction("multi_margin_loss", reduction, size_average, reduce)
    if p not in (1, 2):
        raise BadValue(f"multi_margin_loss: p must be 1 or 2, got {p}", fix="p=1")
    _check_float("multi_margin_loss", input)
    x, target = _with_batch("multi_margin_loss", input if input._array.ndim else reshape(input, 1), target)
    a = x._array
    if a.ndim != 2 or not a.shape[1]:
        raise ShapeError(f"multi_margin_loss: expects (N, C) or (C,), got shape {input._array.shape}", fix="x.flatten(1)")
    factor = _constant_weight("multi_margin_loss", weight, a)
    t = _check_indices("multi_margin_loss", a, target).astype(np.int64)
    each = np.full(a.shape, 1 / a.shape[1], a.dtype)
    if factor is not None:
        each *= factor[t][:, None]
    np.put_along_axis(each, t[:, None], 0, 1)
    over = relu(x - gather(x, 1, make(t[:, None])) + margin)
    loss = sum_dims((over if p == 1 else over * over) * make(each), (1,), False)
    return _reduced(loss if input._array.ndim == 2 else reshape(loss, ()), reduction)


def multilabel_margin_loss(input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """The sum of max(0, 1 - x[i] + x[j]) over classes i that are targets and j that are not, divided by the number of classes.

    The targets of a row are its class indices before the first -1.
    """
    reduction = _reduction("multilabel_margin_loss", reduction, size_average, reduce)
    _check_float("multilabel_margin_loss", input)
    _check_multilabel(input, tensor_argument(target, "multilabel_margin_loss"))
    classes = input._array.shape[-1] if input._array.ndim else 1
    x, t = reshape(input, -1, classes), target._array.reshape(-1, classes)
    counts = np.logical_and.accumulate(t >= 0, 1)  # up to the first -1
    safe = np.where(counts, t, 0)
    others = np.ones(t.shape, x._array.dtype)
    others[np.nonzero(counts)[0], safe[counts]] = 0
    pairs = make(counts[:, :, None] * others[:, None, :] / classes)
    over = relu(unsqueeze(x, 1) - unsqueeze(gather(x, 1, make(safe)), 2) + 1)
    loss = sum_dims(over * cast(pairs, x._array.dtype), (1, 2), False)
    return _reduced(loss if input._array.ndim == 2 else reshape(loss, ()), reduction)


def _check_multilabel(x: Any, target: Any) -> None:
    a, t = x._array, target._array
    if a.ndim > 2 or a.shape != t.shape or not a.size and (not a.ndim or not a.shape[-1]):
        raise ShapeError(f"multilabel_margin_loss: x of shape {a.shape} and target of shape {t.shape}", why="both must be (N, C) or (C,)",
                         fix="a target of x's shape, filled up with -1")
    if t.dtype != np.int64:
        raise DTypeError(f"multilabel_margin_loss: class indices must be int64, not {of_array(t.dtype).name}", fix="target.long()")
    classes = a.shape[-1] if a.ndim else 1
    if t.size and (t.max() >= classes or t.min() < -1):
        wrong = t.max() if t.max() >= classes else t.min()
        raise BadIndex(f"multilabel_margin_loss: target {wrong} is out of bounds for {classes} classes", fix="-1 ends the list of targets")


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
                                reduction: str = "mean") -> Any:
    """binary_cross_entropy_with_logits, averaged over the last dimension, the classes."""
    reduction = _reduction("multilabel_soft_margin_loss", reduction, size_average, reduce)
    _tensors("multilabel_soft_margin_loss", input, target)
    _check_float("multilabel_soft_margin_loss", input)
    if not input._array.ndim:
        raise BadIndex("multilabel_soft_margin_loss: a 0-d x has no classes", fix="x.reshape(1, -1)")
    loss = binary_logits_values(input, target)
    loss = loss if weight is None else loss * tensor_argument(weight, "multilabel_soft_margin_loss")
    return _reduced(mean_dims(loss, (loss._array.ndim - 1,), False), reduction)


# -------------------------------------------------------------------------------------------------------------- distances

def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """The p-norm of x1 - x2 + eps along the last dimension."""
    _tensors("pairwise_distance", x1, x2)
    return norm(x1 - x2 + eps, p, -1, keepdim)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along a dimension.

    >>> import mutagrad as mg
    >>> mg.cosine_similarity(mg.tensor([1., 0.]), mg.tensor([1., 1.]), dim=0)
    tensor(0.7071)
    """
    _tensors("cosine_similarity", x1, x2)
    common = RECORDED.common_dtype([x1, x2])
    if common.kind not in "fcV":
        raise DTypeError(f"cosine_similarity: expects floating point tensors, got {of_array(common).name}", fix="x1.float()")
    x1, x2 = broadcast_tensors(*(x if x._array.dtype is common else cast(x, common) for x in (x1, x2)))
    dim = whole_dim(dim, x1._array.ndim, "cosine_similarity")
    sizes = (_at_least(norm(x, 2, dim, True), eps) for x in (x1, x2))
    return total((x1 / next(sizes)) * (x2 / next(sizes)), dim)


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None, reduce: Any = None,
                          reduction: str = "mean") -> Any:
    """1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."""
    reduction = _reduction("cosine_embedding_loss", reduction, size_average, reduce)
    _tensors("cosine_embedding_loss", input1, input2, target)
    ndim = target._array.ndim
    if ndim > 1 or not input1._array.ndim == input2._array.ndim == ndim + 1:
        raise ShapeError(f"cosine_embedding_loss: shapes {input1._array.shape}, {input2._array.shape} and target {target._array.shape} do not fit",
                         why="the target is (N,) for inputs of (N, D), or () for (D,)", fix="target.flatten()")
    products, first, second = (total(a * b, ndim) for a, b in ((input1, input2), (input1, input1), (input2, input2)))
    cosine = products / RECORDED.sqrt((first + 1e-12) * (second + 1e-12))
    return _reduced(where(target == 1, 1 - cosine, 0) + where(target == -1, clamp(cosine - margin, 0), 0), reduction)


def _check_triplet(name: str, tensors: tuple[Any, ...], margin: float) -> None:
    _tensors(name, *tensors)
    if margin <= 0:
        raise BadValue(f"{name}: margin must be positive, got {margin}", fix="margin=1.0")
    if len({x._array.ndim for x in tensors}) > 1:
        raise ShapeError(f"{name}: shapes {', '.join(str(x._array.shape) for x in tensors)} do not fit", why="all three must have as many dimensions",
                         fix="x.unsqueeze(0)")


def triplet_margin_loss(anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
                        size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Any:
    """max(0, margin + distance to the positive - distance to the negative)."""
    reduction = _reduction("triplet_margin_loss", reduction, size_average, reduce)
    _check_triplet("triplet_margin_loss", (anchor, positive, negative), margin)
    return _triplet(lambda x, y: pairwise_distance(x, y, p, eps), anchor, positive, negative, margin, swap, reduction)


def triplet_margin_with_distance_loss(anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[[Any, Any], Any] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Any:
    """triplet_margin_loss with a distance of your own."""
    reduction = _reduction("triplet_margin_with_distance_loss", reduction)
    _check_triplet("triplet_margin_with_distance_loss", (anchor, positive, negative), margin)
    return _triplet(distance_function or pairwise_distance, anchor, positive, negative, margin, swap, reduction)


def _triplet(distance: Callable[[Any, Any], Any], anchor: Any, positive: Any, negative: Any, margin: float, swap: bool, reduction: str) -> Any:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced(clamp(near - far + margin, 0), reduction)


def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norm of the difference of every two rows: of row 0 and 1, 0 and 2, and so on."""
    _check_float("pdist", input)
    array = input._array
    if array.ndim != 2:
        raise ShapeError(f"pdist: expects a matrix, got shape {array.shape}", fix="x.flatten(1)")
    if p < 0:
        raise BadValue(f"pdist: p must not be negative, got {p}", fix="p=2")
    first, second = np.triu_indices(len(array), 1)
    return norm(input[make(first)] - input[make(second)], p, 1)


# -------------------------------------------------------------------------------------------------------------------- ctc

_NEVER = -1e30  # the logarithm of the probability of what cannot be: finite, so that differences of two of them are numbers


class _Alignment:
    """The ways through T steps that spell the targets: states are the labels, with a blank before, between and after them.

    `index` picks each state's log-probability at each step; `start`, `end` and `skip` (a step over a blank) are 0 where a way may begin,
    end and skip to, and _NEVER elsewhere.
    """

    __slots__ = ("index", "start", "end", "skip", "never", "last", "steps", "lengths", "zero_infinity")

    def __init__(self, a: Any, labels: Any, blank: int, steps: Any, lengths: Any, zero_infinity: bool) -> None:
        n, count = labels.shape
        states = np.full((n, 2 * count + 1), blank)
        states[:, 1::2] = labels
        place = np.arange(states.shape[1])
        self.index = np.arange(len(a)).reshape(-1, 1, 1), np.arange(n).reshape(-1, 1), states
        self.never = np.full(states.shape, _NEVER, a.dtype)
        self.start = self._where(place < np.where(lengths > 0, 2, 1)[:, None])
        self.end = self._where((place == 2 * lengths[:, None]) | (place == 2 * lengths[:, None] - 1))
        before = np.concatenate([np.full((n, 2), -1), states[:, :-2]], 1)[:, :states.shape[1]]
        self.skip = self._where((place % 2 == 1) & (states != before))
        self.last, self.steps, self.lengths, self.zero_infinity = np.maximum(steps - 1, 0), steps, lengths, zero_infinity

    def _where(self, allowed: Any) -> Any:
        return np.where(allowed, self.never.dtype.type(0), self.never)


def _moved(xp: Any, row: Any, plan: _Alignment, by: int) -> Any:
    """A row of states moved to the right (to the left, if negative), with what cannot be in the gap."""
    count = row.shape[1]
    gap = xp.as_value(plan.never[:, :min(abs(by), count)])
    return xp.join([gap, row[:, :max(count - by, 0)]] if by > 0 else [row[:, min(-by, count):], gap], 1)


def _ways_here(xp: Any, e: Any, plan: _Alignment) -> list[Any]:
    """For each step the log-probability of all ways that begin at the start and are in each state."""
    rows = [e[0] + xp.as_value(plan.start)]
    for t in range(1, e.shape[0]):
        stay_or_next = xp.logaddexp(rows[-1], _moved(xp, rows[-1], plan, 1))
        rows.append(e[t] + xp.logaddexp(stay_or_next, _moved(xp, rows[-1], plan, 2) + xp.as_value(plan.skip)))
    return rows


def _ways_on(xp: Any, e: Any, plan: _Alignment) -> list[Any]:
    """For each step the log-probability of all ways from each state to an end, without the step itself."""
    rows: list[Any] = [xp.as_value(plan.never)]
    for t in reversed(range(e.shape[0])):
        row = rows[-1]
        if t + 1 < e.shape[0]:
            row = row + e[t + 1]
            stay_or_next = xp.logaddexp(row, _moved(xp, row, plan, -1))
            row = xp.logaddexp(stay_or_next, _moved(xp, row + xp.as_value(plan.skip), plan, -2))
        rows.append(xp.where(xp.as_value((plan.last == t)[:, None]), xp.as_value(plan.end), row))
    return rows[:0:-1]


def _all_ways(xp: Any, rows: list[Any], plan: _Alignment) -> Any:
    """The log-probability of the targets, out of the rows at which each sample ends."""
    table = xp.join([xp.unsqueeze(row, 0) for row in rows], 0)
    each = np.arange(len(plan.last))
    blank_last = xp.pick(table, (plan.last, each, 2 * plan.lengths))
    label_last = xp.pick(table, (plan.last, each, np.maximum(2 * plan.lengths - 1, 0)))
    return xp.logaddexp(blank_last, label_last + xp.as_value(np.where(plan.lengths > 0, 0, _NEVER).astype(plan.never.dtype)))


def _ctc(a: Any, plan: _Alignment) -> Any:
    loss = -_all_ways(RAW, _ways_here(RAW, a[plan.index], plan), plan)
    loss[plan.steps == 0] = np.where(plan.lengths == 0, 0, np.inf)[plan.steps == 0]
    loss[loss > -_NEVER / 2] = 0 if plan.zero_infinity else np.inf
    return loss


def _ctc_rule(xp: Any, g: Any, x: Any, plan: _Alignment) -> Any:
    """Each state's share in all ways, at each step, with its sign changed."""
    e = xp.pick(x, plan.index)
    here, on = _ways_here(xp, e, plan), _ways_on(xp, e, plan)
    whole = xp.reshape(_all_ways(xp, here, plan), (-1, 1))
    idle = (plan.steps == 0) | xp.is_impossible(whole, plan)
    lost = np.where(idle, 0.0 if plan.zero_infinity else np.where(plan.steps == 0, 0.0, np.nan), 1.0).astype(plan.never.dtype)
    shares = xp.join([xp.unsqueeze(xp.exp(a + b - whole), 0) for a, b in zip(here, on)], 0)
    return xp.gathered(x.shape, plan.index, shares * xp.reshape(-g * xp.as_value(lost), (-1, 1)))


def _gathered(shape: tuple[int, ...], index: Any, values: Any) -> Any:
    whole = np.zeros(shape, values.dtype)
    add_at(whole, tuple(np.broadcast_arrays(*index)), values)
    return whole


def _gathered_recorded(shape: tuple[int, ...], index: Any, values: Any) -> Any:
    whole = make(np.zeros(shape, values._array.dtype))
    put(whole, index, values, "index_add_", accumulate=True)
    return whole


def _is_impossible(whole: Any, plan: _Alignment) -> Any:
    return whole[:, 0] < _NEVER / 2


RAW.gathered, RECORDED.gathered = _gathered, _gathered_recorded
RAW.is_impossible, RECORDED.is_impossible = _is_impossible, lambda whole, plan: _is_impossible(whole._array, plan)
ctc_values = primitive("ctc_loss", _ctc, settings=("plan",), x=_ctc_rule)


def _lengths(name: str, given: Any, count: int, most: int) -> Any:
    """Lengths, one for each sample, as an array."""
    found = np.asarray(given._array if isinstance(given, TensorBase) else given).reshape(-1)
    if found.dtype.kind not in "iu" and found.size:
        raise DTypeError(f"ctc_loss: {name} must be integers, not {found.dtype.name}", fix=f"{name}.long()")
    if len(found) != count or found.size and (found.min() < 0 or found.max() > most):
        raise BadValue(f"ctc_loss: {name} {found.tolist()} for {count} samples", why=f"there must be one for each, from 0 to {most}",
                       fix=f"{name} of shape ({count},)")
    return found.astype(np.int64)


def _labels(target: Any, lengths: Any, classes: int) -> Any:
    """The labels of each sample in a row of its own, filled up with 0."""
    t = target._array
    if t.ndim == 1:
        if t.size != lengths.sum():
            raise BadValue(f"ctc_loss: {t.size} labels for target_lengths {lengths.tolist()}", why=f"they sum to {lengths.sum()}",
                           fix="targets of shape (N, S), or all labels end to end")
        rows = np.zeros((len(lengths), int(lengths.max(initial=0))), np.int64)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = t
    else:
        rows = np.where(np.arange(t.shape[1]) < lengths[:, None], t, 0).astype(np.int64)[:, :int(lengths.max(initial=0))]
    if rows.size and (rows.min() < 0 or rows.max() >= classes):
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise BadIndex(f"ctc_loss: label {wrong} is out of bounds for {classes} classes", fix=f"labels from 0 to {classes - 1}")
    return rows


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Any:
    """-log of the probability that a sequence of (T, N, C) log-probabilities spells the targets, blanks and repetitions left out.

    Targets are (N, S), or all labels end to end. The mean is over samples, each divided by its number of labels.
    """
    reduction = _reduction("ctc_loss", reduction)
    _check_float("ctc_loss", log_probs)
    _tensors("ctc_loss", targets)
    a, t = log_probs._array, targets._array
    if a.ndim not in (2, 3) or not a.shape[0] or t.ndim > 2 or a.ndim == 3 and t.ndim == 2 and len(t) != a.shape[1]:
        raise ShapeError(f"ctc_loss: log_probs of shape {a.shape} and targets of shape {t.shape} do not fit",
                         why="log_probs are (T, N, C) or (T, C), and targets (N, S) or all labels end to end", fix="log_probs.transpose(0, 1)")
    if t.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss: targets must be integers, not {of_array(t.dtype).name}", fix="targets.long()")
    if not 0 <= blank < a.shape[-1]:
        raise BadValue(f"ctc_loss: blank {blank} is out of bounds for {a.shape[-1]} classes", fix="blank=0")
    x = log_probs if a.ndim == 3 else unsqueeze(log_probs, 1)
    count = x._array.shape[1]
    steps = _lengths("input_lengths", input_lengths, count, a.shape[0])
    lengths = _lengths("target_lengths", target_lengths, count, t.shape[-1] if t.ndim == 2 else t.size)
    plan = _Alignment(x._array, _labels(targets if t.ndim else reshape(targets, 1), lengths, a.shape[-1]), blank, steps, lengths, zero_infinity)
    loss = ctc_values(x, plan)
    if reduction == "mean":
        return average(loss / make(np.maximum(lengths, 1).astype(a.dtype)))
    return _reduced(loss if a.ndim == 3 or reduction == "sum" else reshape(loss, ()), reduction)
