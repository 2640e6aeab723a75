"""Losses of class indices and shares: cross entropy and its kin."""
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ...arrays import np
from ...arrays.bfloat16 import SHORT, widened
from ...arrays.compiled import library, rows as compiled
from ...arrays.copies import in_order
from ...arrays.kinds import all_values, check_range, extremes, is_plain, perhaps, pick, unknown
from ...arrays.numpy import silently
from ...base.errors import BadIndex, BadValue, DTypeError, GradientError, NotSupported, ShapeError
from ...base.modes import mode
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import of_array
from ...core.factory import make
from ...core.indexing import put
from ...core.number import number, whole_number
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import cast
from ..reduce.softmax import softmax_dim
from ..shape.shape import reshape, tensor_argument, unsqueeze
from .linear import linear
from .loss import check_float, check_same_shape, check_tensors, reduction_of

__all__ = ["cross_entropy", "linear_cross_entropy", "nll_loss"]


# ----------------------------------------------------------------------------------------------------- of class indices

def _class_weight(name: str, weight: Tensor, a: Array) -> Tensor:
    """A weight for each class of `a` of shape (N, C, ...), in its type."""
    array = tensor_argument(weight, name)._array
    if array.shape != a.shape[1:2]:
        raise BadValue(f"{name}: weight tensor should be defined either for all {a.shape[1]} classes or no classes, "
                       f"got shape {array.shape}", fix=f"a weight of shape {a.shape[1:2]}")
    return weight if array.dtype is a.dtype else cast(weight, a.dtype)


def constant_weight(name: str, weight: Tensor | None, a: Array) -> Any:
    """The same as an array, or None; where targets are indices it has no derivative."""
    if weight is None:
        return None
    weight = _class_weight(name, weight, a)
    if mode.grad and weight.requires_grad:
        raise GradientError(f"{name}: no derivative with respect to 'weight' for targets that are class indices",
                            why="PyTorch has none either", fix="weight.detach()")
    return weight._array


_UNSIGNED = {"l": np.uint64, "q": np.uint64, "B": np.uint8}


def check_indices(name: str, a: Array, target: Tensor, ignore_index: int | None = None) -> Any:
    """The target's array, if each element of it is a class of `a` of shape (N, C, ...), or to be ignored."""
    t = tensor_argument(target, name)._array
    if t.dtype != np.int64 and t.dtype != np.uint8:
        raise DTypeError(f"{name}: class indices must be int64, not {of_array(t.dtype).name}", fix="target.long()")
    if t.shape != (*a.shape[:1], *a.shape[2:]):
        first = f"Expected input batch_size ({a.shape[0]}) to match target batch_size ({t.shape[0]})"
        expected = (f"{a.ndim - 1}D target tensor expected" if t.ndim != a.ndim - 1 else
                    first if t.shape[:1] != a.shape[:1] else "sizes differ")
        raise BadValue(f"{name}: {expected}: a target of shape {t.shape} for x of shape {a.shape}",
                       why="x is (N, C, ...), and class indices are (N, ...) of the same sizes",
                       fix=f"a target of shape {(*a.shape[:1], *a.shape[2:])}")
    if t.size and extremes(t.view(_UNSIGNED[t.dtype.char]))[1] >= a.shape[1]:  # negative ones are the largest then
        found = all_values(t)
        wrong = found[((found < 0) | (found >= a.shape[1])) & (found != ignore_index)]
        if wrong.size:
            raise _no_class(name, a.shape[1], ignore_index, wrong[0])
    elif unknown(t):
        check_range(t if ignore_index is None else np.where(t == ignore_index, 0, t), 0, a.shape[1] - 1,
                    partial(_no_class, name, a.shape[1], ignore_index))
    return t


def _no_class(name: str, classes: int, ignore_index: int | None, wrong: int, where: Any = None) -> BadIndex:
    return BadIndex(f"{name}: Target {wrong} is out of bounds for {classes} classes",
                    why=f"classes are from 0 to {classes - 1}",
                    fix=f"{name}(x, target, ignore_index={wrong}) leaves these out"
                        if ignore_index is not None else "target.clamp(min=0)", where=where)


class _Picks:
    """Which elements of x a loss of class indices is made of, and the share of each: one number, or one for each.

    `places` is where they are; None: everywhere. While targets are not known yet, all are picked, and the share of
    those that are to be ignored is zero.
    """

    __slots__ = ("index", "share", "shape", "places", "kept")

    def __init__(self, a: Array, t: Array, weight: Array | None, ignore_index: int, reduction: str) -> None:
        kept = t != ignore_index
        self.kept = kept if unknown(t) else None
        t = t if self.kept is None else np.where(kept, t, 0)
        self.places = None if all_values(kept).all() else np.nonzero(kept)
        self.shape = t.shape if reduction == "none" else None
        index = [np.arange(n).reshape((-1,) + (1,) * (t.ndim - 1 - d)) for d, n in enumerate(t.shape)]
        index.insert(1, np.array(t, np.int64))
        self.index = tuple(index) if self.places is None else tuple(np.broadcast_to(i, t.shape)[kept] for i in index)
        self.share = self._shares(a.dtype, weight, reduction == "mean")

    def _shares(self, dtype: Any, weight: Array | None, mean: bool) -> Any:
        count = self.index[1].size
        if not count or weight is None and self.places is None and self.kept is None:
            return 1.0 if not mean else 1 / count if count else float("nan")
        if weight is None:
            each = np.ones(count, np.float32 if dtype.char in SHORT else dtype)
        else:
            each = pick(widened(weight), self.index[1:2])
        each = each if self.kept is None else np.where(self.kept, each.reshape(self.kept.shape), 0)
        return silently(np.divide, each, each.sum()) if mean else each  # the weights may sum to zero

    def reduce(self, found: Array) -> Any:
        """The loss out of what the picked elements give."""
        alike = self.share.__class__ is float
        found = found if self.kept is None else np.where(self.kept, found, 0)
        weighted = found if alike else found * self.share
        if self.shape is not None:
            return weighted if self.places is None else _filled(self.places, weighted, self.shape)
        whole = np.add.reduce(weighted, None)
        return whole * whole.dtype.type(self.share) if alike else whole


def _coefficients(xp: Any, g: Any, picks: _Picks) -> Any:
    """The adjoint of what each picked element gives; of all of them, where it is the same."""
    incoming = g if picks.shape is None or picks.places is None else xp.pick(g, picks.places)
    return incoming * (picks.share if picks.share.__class__ is float else xp.as_value(picks.share))


def _filled(places: Any, values: Array, shape: tuple[int, ...]) -> Any:
    whole = np.zeros(shape, values.dtype)
    whole[places] = values
    return whole


def _filled_recorded(places: Any, values: Tensor, shape: tuple[int, ...]) -> Any:
    whole = make(np.zeros(shape, values._array.dtype))
    put(whole, places, values, "scatter_")
    return whole


def _subtract(whole: Array, index: Any, values: Array) -> Any:
    whole[index] -= values
    return whole


def _subtract_recorded(whole: Tensor, index: Any, values: Tensor) -> Any:
    put(whole, index, -values, "index_add_", accumulate=True)
    return whole


def _class_shares(a: Array, factor: Any) -> Any:
    """softmax along dimension 1 times a factor for each position, in one array."""
    if (loop := library.rows_of(a, compiled.softmax_times)) is not None and is_plain(factor):
        out = np.empty(a.shape, a.dtype)
        factors = np.broadcast_to(np.asarray(factor, a.dtype).reshape(-1), (len(a),)).copy()
        loop.share(len(a), a.size, a, factors, out)
        return out
    found = a - np.maximum.reduce(a, 1, keepdims=True) if a.size else a.copy()
    np.exp(found, out=found)
    found *= factor / np.add.reduce(found, 1, keepdims=True)
    return found


RAW.as_value, RECORDED.as_value = lambda a: a, make
RAW.filled, RECORDED.filled = _filled, _filled_recorded
RAW.subtract, RECORDED.subtract = _subtract, _subtract_recorded
RAW.class_shares, RECORDED.class_shares = _class_shares, lambda x, factor: softmax_dim(x, 1) * factor


def _cross_entropy(a: Array, picks: _Picks) -> Any:
    if (loop := library.rows_of(a, compiled.log_sums)) is not None:
        found = np.empty((len(a), 2), a.dtype)
        loop.share(len(a), a.size, a, found)
        tops, sums = found.T if picks.places is None else found[picks.places[0]].T
        return picks.reduce(sums - (pick(a, picks.index) - tops))
    shifted = a - np.maximum.reduce(a, 1, keepdims=True) if a.size else a.copy()
    picked = pick(shifted, picks.index)
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


cross_entropy_indices = primitive("cross_entropy", _cross_entropy, settings=("picks",), x=_cross_entropy_rule)
nll_indices = primitive("nll_loss", lambda a, picks: picks.reduce(-pick(a, picks.index)), settings=("picks",),
                        x=lambda xp, g, x_shape, picks: xp.filled(picks.index, -_coefficients(xp, g, picks), x_shape))


def _soft_cross_entropy(a: Array, b: Array, reduced: bool, scale: float) -> Any:
    if (loop := library.rows_of(a, compiled.shared_losses)) is not None and is_plain(b) and b.dtype is a.dtype:
        found = np.empty(len(a), a.dtype)
        loop.share(len(a), a.size, a, in_order(b), found)
        found = np.add.reduce(found, None) if reduced else found
    else:
        found = -np.add.reduce(RAW.log_softmax(a, 1) * b, None if reduced else 1)
    return found if scale == 1 else found * scale


def _each_class(xp: Any, g: Any, reduced: bool, scale: float) -> Any:
    scaled = g if scale == 1 else g * scale
    return scaled if reduced else xp.unsqueeze(scaled, 1)


cross_entropy_shares = primitive(
    "cross_entropy_shares", _soft_cross_entropy, settings=("reduced", "scale"), inputs=("x", "y"),
    x=lambda xp, g, x, y, reduced, scale:
        (xp.class_shares(x, xp.sum(y, (1,), True)) - y) * _each_class(xp, g, reduced, scale),
    y=lambda xp, g, x, reduced, scale: -xp.log_softmax(x, 1) * _each_class(xp, g, reduced, scale))


def with_batch(name: str, x: Tensor, target: Tensor) -> tuple[Any, Any]:
    """x as (N, C, ...) and class indices to match."""
    check_tensors(name, x, target)
    if not x._array.ndim:
        raise ShapeError(f"{name}: a 0-d x has no classes", why="x is (C,) or (N, C, ...)", fix="x.reshape(1, -1)")
    if x._array.ndim > 1:
        return x, target
    if target._array.size != 1 or target._array.ndim > 1:
        raise BadValue(f"{name}: Expected one target for x of shape {x._array.shape}, got shape {target._array.shape}",
                       why="x is (C,)", fix="a target of shape ()")
    return unsqueeze(x, 0), reshape(target, 1)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Any:
    """Return the mean of -x at the class indices (N, ...), for x of shape (N, C, ...), logarithms of probabilities.

    >>> import mutagrad as mg
    >>> mg.nn.functional.nll_loss(mg.tensor([[0.25, 0.75]]).log(), mg.tensor([1]))
    tensor(0.2877)
    """
    reduction = reduction_of("nll_loss", reduction, size_average, reduce)
    ignore_index = whole_number(ignore_index, "nll_loss", "ignore_index")
    return _of_indices("nll_loss", nll_indices, input, target, weight, ignore_index, reduction)


def _of_indices(name: str, operation: Callable[..., Tensor], x: Tensor, target: Tensor, weight: Tensor | None,
                ignore_index: int, reduction: str) -> Tensor:
    check_float(name, x)
    shape = tensor_argument(target, name)._array.shape
    x, target = with_batch(name, x, target)
    t = check_indices(name, x._array, target, ignore_index)
    found = operation(x, _Picks(x._array, t, constant_weight(name, weight, x._array), ignore_index, reduction))
    return found if reduction != "none" or found._array.shape == shape else reshape(found, shape)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Any:
    """Return the mean of -log(softmax(x)) at the class indices, or over classes of which the target has probabilities.

    x is (N, C, ...); class indices are (N, ...), probabilities as x.

    >>> import mutagrad as mg
    >>> logits = mg.zeros(2, 4, requires_grad=True)
    >>> loss = mg.nn.functional.cross_entropy(logits, mg.tensor([0, 3])); loss
    tensor(1.3863, grad_fn=<NllLossBackward0>)
    """
    reduction = reduction_of("cross_entropy", reduction, size_average, reduce)
    label_smoothing, ignore_index = number(label_smoothing), whole_number(ignore_index, "cross_entropy", "ignore_index")
    if not 0 <= label_smoothing <= 1:
        raise BadValue(f"cross_entropy: label_smoothing must be between 0.0 and 1.0, got {label_smoothing}",
                       fix="label_smoothing=0.1")
    check_float("cross_entropy", input)
    if tensor_argument(target, "cross_entropy")._array.dtype.kind in "fV" or target._array.shape == input._array.shape:
        return _of_shares(input, target, weight, reduction, label_smoothing, ignore_index)
    if not label_smoothing:
        return _of_indices("cross_entropy", cross_entropy_indices, input, target, weight, ignore_index, reduction)
    return _smoothed(input, target, weight, ignore_index, reduction, label_smoothing)


def _class_column(weight: Tensor, ndim: int) -> Any:
    """A weight for each class, to stand beside (N, C, ...)."""
    return reshape(weight, 1, -1, *(1,) * (ndim - 2))


def _of_shares(x: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float,
               ignore_index: int) -> Any:
    check_same_shape("cross_entropy", x, target)
    if target._array.dtype.kind not in "fV":
        raise DTypeError("cross_entropy: probabilities must be floating point, "
                         f"not {of_array(target._array.dtype).name}",
                         why="a target of x's shape is taken for probabilities",
                         fix="target.float(), or class indices of shape (N, ...)")
    if ignore_index >= 0:
        raise BadValue(f"cross_entropy: ignore_index={ignore_index} means nothing for targets that are probabilities",
                       fix="leave it out")
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


def _smoothed(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
              smoothing: float) -> Any:
    """Class indices as the probabilities that smoothing makes of them, with weights and ignored positions in them."""
    shape = target._array.shape
    x, target = with_batch("cross_entropy", x, target)
    a = x._array
    t = check_indices("cross_entropy", a, target, ignore_index)
    each = constant_weight("cross_entropy", weight, a)
    each = np.ones(a.shape[1], a.dtype) if each is None else each
    kept = np.expand_dims(t != ignore_index, 1)
    rest = smoothing / a.shape[1]
    shares = np.zeros_like(a)
    shares += rest
    np.put_along_axis(shares, np.expand_dims(np.where(t == ignore_index, 0, t), 1), 1 - smoothing + rest, 1)
    if weight is not None or perhaps(~kept):
        shares *= each.reshape(1, -1, *(1,) * (a.ndim - 2)) * kept
    scale = 1.0
    if reduction == "mean" and unknown(t):
        counted = np.where(kept[:, 0], pick(widened(each), (np.where(t == ignore_index, 0, t),)), 0)
        shares /= counted.sum().astype(a.dtype)
    elif reduction == "mean":
        scale = float(silently(np.divide, 1, widened(each)[t[kept[:, 0]]].sum()))
    found = cross_entropy_shares(x, make(shares), reduction != "none", scale)
    return reshape(found, shape) if reduction == "none" and found._array.shape != shape else found


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Any:
    """cross_entropy of `linear(x, linear_weight, linear_bias)`; the weight is (C, ..., inputs).

    >>> import mutagrad as mg
    >>> mg.nn.functional.linear_cross_entropy(mg.zeros(2, 3), mg.ones(5, 3), mg.tensor([0, 4]))
    tensor(1.6094)
    """
    if options is not None:
        raise NotSupported("linear_cross_entropy: options are not supported",
                           why="the logits are computed at once, not in chunks", fix="options=None")
    check_tensors("linear_cross_entropy", input, linear_weight, target)
    a, w = input._array, linear_weight._array
    if a.ndim not in (1, 2) or w.ndim < 2 or a.shape[-1] != w.shape[-1] or w.ndim > 2 and a.ndim == 1:
        raise ShapeError(f"linear_cross_entropy: x of shape {a.shape} and linear_weight of shape {w.shape} do not fit",
                         why="x is (inputs,) or (N, inputs), linear_weight (C, inputs), or (C, ..., inputs) "
                             "for batches", fix="x.flatten(0, -2)")
    if linear_bias is not None and tensor_argument(linear_bias, "linear_cross_entropy")._array.shape != w.shape[:-1]:
        raise ShapeError(f"linear_cross_entropy: linear_bias of shape {linear_bias._array.shape} for linear_weight "
                         f"of shape {w.shape}", fix=f"a bias of shape {w.shape[:-1]}")
    if target._array.dtype.kind in "fV" and ignore_index is not None:
        raise BadValue("linear_cross_entropy: ignore_index means nothing for targets that are probabilities",
                       fix="ignore_index=None")
    rows = reshape(linear_weight, -1, w.shape[-1]) if w.ndim > 2 else linear_weight
    logits = linear(input, rows, None if linear_bias is None else reshape(linear_bias, -1))
    logits = logits if w.ndim == 2 else reshape(logits, *a.shape[:1], *w.shape[:-1])
    ignore_index = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, reduction=reduction, ignore_index=ignore_index,
                         label_smoothing=label_smoothing)
