"""Attention: averages of values, weighted by how well queries match keys.

It is one node, which saves its inputs and the weights. In reverse, as forward, one head after the other is finished
while its scores are still in the cache.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any, NamedTuple

from ...arrays import blas, np, parallel as large
from ...arrays.compiled import library, steps
from ...arrays.kinds import is_frozen
from ...base.errors import BadArgument, BadValue, DTypeError, Mismatch, ShapeError, may_need_much
from ...base.operands import Array
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, of_array
from ...core.factory import make
from ...core.number import number
from ...core.op import RAW, RECORDED, Op
from ...core.storage import TensorBase as Tensor
from ..math.elementwise import cast, where
from ..random.generator import default_generator
from ..reduce.reductions import mean_dims
from ..shape.shape import cat, chunk, expand, permute, reshape, squeeze, tensor_argument, transpose, unsqueeze
from .linear import linear

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


class Plan(NamedTuple):
    """What is no input: the scale of scores, where they are `blocked`, and the factors of dropout (or None).

    Where each query sees the keys up to its own position, `causal` says so and nothing is in `blocked`.
    """

    scale: float
    blocked: Any
    kept: Any
    causal: bool = False


# ------------------------------------------------------------------------------------------------------ in whole arrays

def _swap(xp: Any, x: Any) -> Any:
    n = len(x.shape)
    return xp.transpose(x, n - 2, n - 1)


def _sum_to(xp: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """Sums over dimensions that were broadcast."""
    lead = len(g.shape) - len(shape)
    dims = tuple(range(lead)) + tuple(d + lead for d, n in enumerate(shape) if n == 1 != g.shape[d + lead])
    return xp.reshape(xp.sum(g, dims, True), shape) if dims else g


def _recorded_weights(q: Tensor, k: Tensor, bias: Tensor, plan: Plan) -> Any:
    """The weights with the history that they have; rows in which everything is blocked are zero."""
    scores = RECORDED.matmul(q, _swap(RECORDED, k)) * plan.scale
    scores = scores + bias if len(bias.shape) else scores
    blocked = _later(*scores._array.shape[-2:]) if plan.causal else plan.blocked
    if blocked is not None:
        scores = where(make(blocked), float("-inf"), scores)
    e = RECORDED.exp(scores - make(_top(scores._array)))
    total = RECORDED.sum(e, (len(e.shape) - 1,), True)
    return e / where(total == 0, 1.0, total)


def _top(scores: Array) -> Any:
    """The largest score of each row, and 0 where there is none: what is subtracted so that nothing overflows."""
    top = np.maximum.reduce(scores, -1, keepdims=True, initial=-np.inf)
    return np.where(top == -np.inf, np.zeros((), top.dtype), top)


def _grad_scores(xp: Any, g: Any, weights: Any, v: Any, kept: Any) -> Any:
    g = xp.matmul(g, _swap(xp, v))
    g = g if kept is None else g * xp.as_constant(kept)
    return weights * (g - xp.sum(g * weights, (len(g.shape) - 1,), True))


def _grad_query(xp: Any, g: Any, q: Any, k: Any, v: Any, bias: Any, plan: Plan) -> Any:
    weights = _recorded_weights(q, k, bias, plan)
    return _sum_to(xp, xp.matmul(_grad_scores(xp, g, weights, v, plan.kept), k) * plan.scale, q.shape)


def _grad_key(xp: Any, g: Any, q: Any, k: Any, v: Any, bias: Any, plan: Plan) -> Any:
    weights = _recorded_weights(q, k, bias, plan)
    return _sum_to(xp, xp.matmul(_swap(xp, _grad_scores(xp, g, weights, v, plan.kept)), q) * plan.scale, k.shape)


def _grad_value(xp: Any, g: Any, q: Any, k: Any, v: Any, bias: Any, plan: Plan) -> Any:
    weights = _recorded_weights(q, k, bias, plan)
    weights = weights if plan.kept is None else weights * xp.as_constant(plan.kept)
    return _sum_to(xp, xp.matmul(_swap(xp, weights), g), v.shape)


def _grad_bias(xp: Any, g: Any, q: Any, k: Any, v: Any, bias: Any, plan: Plan) -> Any:
    weights = _recorded_weights(q, k, bias, plan)
    return _sum_to(xp, _grad_scores(xp, g, weights, v, plan.kept), bias.shape)


RECORDED.as_constant = make


# --------------------------------------------------------------------------------------------------- head by head: raw

Stripe = tuple[slice, slice]  # some queries, and the keys that any of them sees
_ROWS = 32  # the least number of queries in a stripe: smaller products are not worth their calls


def _later(queries: int, keys: int) -> Any:
    """Where a key comes after the query."""
    return ~np.tri(queries, keys, dtype=bool)


def _stripes(plan: Plan, queries: int, keys: int) -> list[Stripe]:
    """What is computed at once: all; or, where queries see no later keys, some queries with the keys up to their last.

    That leaves out almost half of the scores, in time and in memory.
    """
    if not plan.causal:
        return [(slice(0, queries), slice(0, keys))]
    step = max(_ROWS, -(-queries // 4))
    ends = [(start, min(start + step, queries)) for start in range(0, max(queries, 1), step)]
    return [(slice(start, end), slice(0, min(end, keys))) for start, end in ends]


def _attend(q: Array, k: Array, v: Array, bias: Array | None, blocked: Array | None, kept: Array | None, out: Array,
            weights: Array, plan: Plan, first: int) -> None:
    """Some queries, of which the first has this number."""
    np.matmul(q * q.dtype.type(plan.scale), k.swapaxes(-2, -1), out=weights)
    if bias is not None:
        weights += bias
    queries, keys = weights.shape[-2:]
    if (loop := _loop(steps.attend, weights)) is not None:
        if blocked is not None:
            np.copyto(weights, -np.inf, where=blocked)
        rows = weights.reshape(-1, keys)
        loop(0, len(rows), rows, queries, first, plan.causal)
    else:
        _normalise(weights, _later(queries, max(keys - first, 0)) if plan.causal else blocked)
    np.matmul(weights if kept is None else weights * kept, v, out=out)


def _loop(function: Callable[..., Any], *arrays: Array) -> Callable[..., Any] | None:
    """The compiled loop over the rows of these, if there is one."""
    for a in arrays:
        if type(a) is not np.ndarray or not a.size or not a.flags.c_contiguous or a.dtype is not arrays[0].dtype:
            return None
    return library.find_for(function, arrays[0])


def _normalise(weights: Array, blocked: Array | None) -> None:
    """softmax in place of what is not blocked."""
    if blocked is not None:
        np.copyto(weights[..., weights.shape[-1] - blocked.shape[-1]:], -np.inf, where=blocked)
    weights -= _top(weights)
    np.exp(weights, out=weights)
    total = np.einsum("...ij->...i", weights)[..., None]  # in half the time of a reduction along short rows
    total[total == 0] = 1
    weights /= total


def _forward(q: Array, k: Array, v: Array, bias: Array, plan: Plan, weights: list[Array]) -> Any:
    """`weights`, one array for each stripe, are filled; what arrays that never change need is their kernel's."""
    dtype, narrow = weights[0].dtype, q.dtype
    q, k, v = (a.astype(dtype, copy=False) for a in (q, k, v))
    lead, queries, keys = weights[0].shape[:-2], q.shape[-2], k.shape[-2]
    out = np.empty((*lead, queries, v.shape[-1]), dtype)
    stripes = _stripes(plan, queries, keys)
    masks = (bias if bias.ndim else None, plan.blocked, plan.kept)

    def work(q: Any, k: Any, v: Any, bias: Any, blocked: Any, kept: Any, out: Any, *weights: Any) -> None:
        for (rows, seen), w in zip(stripes, weights):
            _attend(q[..., rows, :], k[..., seen, :], v[..., seen, :], bias, blocked, _cut(kept, rows, seen),
                    out[..., rows, :], w, plan, rows.start)

    heads = _heads((q, k, v), masks, (out, *weights), (*lead, queries, keys))
    if heads is None:
        work(q, k, v, *masks, out, *weights)
    else:
        _by_heads(heads, queries * keys, len(stripes), work)
    return out.astype(narrow, copy=False)


def _cut(mask: Array | None, rows: slice, seen: slice) -> Any:
    """The part of a mask of the scores that belongs to a stripe."""
    return mask if mask is None else mask[..., rows, seen]


def _heads(inputs: Sequence[Array], masks: Sequence[Array | None], results: Sequence[Array],
           scores: tuple[int, ...]) -> list[Any] | None:
    """All with a long dimension that heads are counted in first; None where they are broadcast, or too few to share.

    That is the first, if it is long enough: what belongs to some of it lies in one piece. No copies are made: heads
    that were split off the last dimension lie between each other in memory.
    """
    lead = scores[:-2]
    if not lead or prod(scores) < large.SHARED or any(a.shape[:-2] != lead for a in (*inputs, *results)):
        return None
    longest = 0 if lead[0] >= 4 else lead.index(max(lead))

    def mask(m: Array | None) -> Any:
        if m is None or prod(m.shape[:-2]) == 1:  # one for all heads
            return m if m is None or m.ndim < 2 else m.reshape(m.shape[-2:])
        return np.broadcast_to(m, scores).swapaxes(0, longest)

    return [*(a.swapaxes(0, longest) for a in inputs), *map(mask, masks), *(a.swapaxes(0, longest) for a in results)]


def _by_heads(heads: list[Any], size: int, stripes: int, work: Callable[..., None]) -> None:
    """Call `work` with the matrices of some heads at a time, until all are done. (A mask may be one for all heads.)"""
    first = heads[0].shape

    def some(part: slice) -> None:
        work(*(a if a is None or a.ndim < 3 else a[part] for a in heads))

    blas.on_one_thread(lambda free: large.in_blocks(first[0], size * prod(first[1:-2]), some, free, stripes))


def _reverse_stripe(g: Array, q: Array, k: Array, v: Array, kept: Array | None, weights: Array, scale: Any,
                    targets: Sequence[Array | None], first: bool) -> None:
    """Write the adjoints of query, key, value and scores where there is a target.

    Those of keys and values, which later queries see too, add up.
    """
    to_query, to_key, to_value, to_scores = targets
    _product_into(to_value, (weights if kept is None else weights * kept).swapaxes(-2, -1), g, first)
    if to_query is None and to_key is None and to_scores is None:
        return
    slope = np.matmul(g, v.swapaxes(-2, -1), out=to_scores)
    if kept is not None:
        slope *= kept
    if (loop := _loop(steps.attend_back, weights, slope)) is not None:
        rows = slope.reshape(-1, slope.shape[-1])
        loop(0, len(rows), weights.reshape(rows.shape), rows)
    else:
        slope -= np.einsum("...ij,...ij->...i", slope, weights)[..., None]
        slope *= weights
    _product_into(to_query, slope, k * scale, True)
    _product_into(to_key, slope.swapaxes(-2, -1), q * scale, first)


def _product_into(target: Array | None, a: Array, b: Array, first: bool) -> None:
    if target is not None and first:
        np.matmul(a, b, out=target)
    elif target is not None:
        target += np.matmul(a, b)


_attention = primitive(
    "scaled_dot_product_attention", _forward, settings=("plan", "weights"),
    q=lambda xp, g, q, k, v, bias, plan, weights: _grad_query(xp, g, q, k, v, bias, plan),
    k=lambda xp, g, q, k, v, bias, plan, weights: _grad_key(xp, g, q, k, v, bias, plan),
    v=lambda xp, g, q, k, v, bias, plan, weights: _grad_value(xp, g, q, k, v, bias, plan),
    bias=lambda xp, g, q, k, v, bias, plan, weights: _grad_bias(xp, g, q, k, v, bias, plan))


def _share_the_work(op: Op) -> None:
    """On raw arrays one pass serves all inputs; the rules are for recorded sweeps."""
    rules = op.reverse

    def reverse(xp: Any, g: Any, s: Any, i: Any) -> Any:
        if xp is not RAW:
            return rules(xp, g, s, i)
        q, k, v, bias, plan, weights = s
        found = RAW.attention_reverse(g, q, k, v, plan, weights, [w is not None for w in i[:4]])
        return tuple(None if f is None else _sum_to(RAW, f, shape).astype(g.dtype, copy=False)
                     for f, shape in zip(found, (q.shape, k.shape, v.shape, bias.shape)))

    op.reverse = reverse


def _reverse(g: Array, q: Array, k: Array, v: Array, plan: Plan, weights: list[Array],
             wanted: Sequence[bool]) -> Sequence[Any]:
    """The adjoints of query, key, value and scores, those that are wanted."""
    dtype = weights[0].dtype
    q, k, v, g = (a.astype(dtype, copy=False) for a in (q, k, v, g))
    lead, queries, keys = weights[0].shape[:-2], q.shape[-2], k.shape[-2]
    make_room = np.zeros if plan.causal else np.empty  # there may be keys that nobody sees
    found = [make_room(lead + side, dtype) if want else None
             for want, side in zip(wanted, (q.shape[-2:], k.shape[-2:], v.shape[-2:], (queries, keys)))]
    stripes = _stripes(plan, queries, keys)

    def work(q: Any, k: Any, v: Any, g: Any, kept: Any, *rest: Any) -> None:
        weights, results = rest[:len(stripes)], iter(rest[len(stripes):])
        targets = [next(results) if want else None for want in wanted]
        for n, (rows, seen) in enumerate(stripes):
            parts = [None if t is None else t[..., side, :] for t, side in zip(targets, (rows, seen, seen, rows))]
            _reverse_stripe(g[..., rows, :], q[..., rows, :], k[..., seen, :], v[..., seen, :],
                            _cut(kept, rows, seen), weights[n], dtype.type(plan.scale), parts, len(stripes) == 1)

    results = [f for f in found if f is not None]
    heads = _heads((q, k, v, g), (plan.kept,), (*weights, *results), (*lead, queries, keys))
    if heads is None:
        work(q, k, v, g, plan.kept, *weights, *results)
    else:
        _by_heads(heads, queries * keys, len(stripes), work)
    return found


RAW.attention_reverse = _reverse


_share_the_work(_attention.op)
_ABSENT = make(np.zeros(()))  # stands for a mask that is not added


# ------------------------------------------------------------------------------------------------------------ functions

@may_need_much
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Any:
    """Return for each query the average of the values, weighted by the softmax of its products with the keys.

    >>> import mutagrad as mg
    >>> q, k, v = mg.zeros(1, 2), mg.ones(2, 2), mg.tensor([[1.], [3.]])
    >>> mg.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])

    A mask is added to the scores, or, if boolean, says which may count; `is_causal` lets each query see keys up to its
    own position. With `enable_gqa` several heads of queries share one of keys and values.
    """
    name = "scaled_dot_product_attention"
    _check(name, query, key, value, attn_mask, is_causal)
    dropout_p = number(dropout_p)
    if not 0 <= dropout_p <= 1:
        raise BadValue(f"{name}: dropout_p is a probability, not {dropout_p}", fix="dropout_p=0.1")
    whole = query._array.shape
    if enable_gqa:
        query, key, value, attn_mask = _shared_heads(name, query, key, value, attn_mask)
    shape = _scores_shape(name, query, key, value)
    scale = 1 / sqrt(query._array.shape[-1] or 1) if scale is None else number(scale)
    blocked, bias = _masks(name, attn_mask, shape)
    dtype = np.dtype(np.float32) if query._array.dtype.char in "eE" else query._array.dtype
    kept = None
    if dropout_p:
        drawn = default_generator.source.chosen(shape, 1 - dropout_p)
        kept = drawn.astype(dtype) * dtype.type(1 / (1 - dropout_p) if dropout_p < 1 else 0)
    plan = Plan(scale, blocked, kept, is_causal)
    weights = [] if is_frozen(query._array) else [
        np.empty((*shape[:-2], rows.stop - rows.start, seen.stop), dtype) for rows, seen in _stripes(plan, *shape[-2:])]
    out = _attention(query, key, value, bias, plan, weights)
    return reshape(out, *whole[:-1], out._array.shape[-1]) if enable_gqa else out


def _check(name: str, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool) -> None:
    for x in (query, key, value):
        tensor_argument(x, name)
    kinds = [of_array(x._array.dtype) for x in (query, key, value)]
    if len(set(kinds)) > 1 or kinds[0].category != FLOAT:
        raise DTypeError(f"{name}: query, key and value have types {', '.join(d.name for d in kinds)}",
                         why="it needs one floating point type", fix="key.to(query.dtype)")
    if min(x._array.ndim for x in (query, key, value)) < 2:
        raise ShapeError(f"{name}: query, key and value need at least two dimensions, "
                         f"got shapes {[x._array.shape for x in (query, key, value)]}", fix="x.unsqueeze(0)")
    if attn_mask is None:
        return
    if is_causal:
        raise BadValue(f"{name}: Explicit attn_mask should not be set when is_causal=True",
                       fix="is_causal=False and a mask that is causal itself")
    tensor_argument(attn_mask, name)
    if attn_mask._array.dtype.kind != "b" and attn_mask._array.dtype is not query._array.dtype:
        raise DTypeError(f"{name}: attn_mask must be boolean or of the query's type, "
                         f"not {of_array(attn_mask._array.dtype).name}", fix="attn_mask.to(query.dtype)")


def _scores_shape(name: str, query: Tensor, key: Tensor, value: Tensor) -> tuple[int, ...]:
    q, k, v = (x._array.shape for x in (query, key, value))
    try:
        lead = np.broadcast_shapes(q[:-2], k[:-2], v[:-2])
    except ValueError:
        lead = None
    if lead is None or q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(f"{name}: shapes {q}, {k} and {v} do not fit",
                         why="queries and keys need one width, keys and values one number, "
                             "and all the same dimensions before",
                         fix="check the shapes (..., L, E), (..., S, E) and (..., S, Ev); "
                             "enable_gqa=True for shared heads")
    return (*lead, q[-2], k[-2])


def _masks(name: str, attn_mask: Tensor | None, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Where scores are blocked (an array or None), and what is added to them."""
    if attn_mask is None:
        return None, _ABSENT
    try:
        np.broadcast_to(attn_mask._array, shape)
    except ValueError:
        raise ShapeError(f"{name}: attn_mask of shape {attn_mask._array.shape} does not broadcast "
                         f"to the scores' shape {shape}", fix=f"a mask of shape {shape[-2:]}") from None
    if attn_mask._array.dtype.kind == "b":
        return ~attn_mask._array, _ABSENT
    return None, attn_mask if attn_mask._array.ndim > 1 else expand(attn_mask, *shape[-2:])


def _shared_heads(name: str, query: Tensor, key: Tensor, value: Tensor,
                  attn_mask: Tensor | None) -> tuple[Any, Any, Any, Any]:
    """Queries with their heads grouped by the head of keys and values that they share."""
    shape, heads = query._array.shape, key._array.shape[-3] if key._array.ndim > 2 else 0
    groups = value._array.shape[-3] if value._array.ndim > 2 else 0
    if len(shape) < 3 or not heads or groups != heads or shape[-3] % heads:
        raise ShapeError(f"{name}: with enable_gqa the heads of key and value must be equal and divide the query's, "
                         f"got shapes {shape}, {key._array.shape} and {value._array.shape}",
                         fix="tensors of shape (..., heads, L, E)")
    each = shape[-3] // heads
    query = reshape(query, *shape[:-3], heads, each, *shape[-2:])
    if attn_mask is not None and attn_mask._array.ndim > 2:
        at = attn_mask._array.shape
        attn_mask = reshape(attn_mask, *at[:-3], *((heads, each) if at[-3] != 1 else (1, 1)), *at[-2:])
    return query, unsqueeze(key, -3), unsqueeze(value, -3), attn_mask


# ----------------------------------------------------------------------------------------------------------- many heads

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
                                 in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
                                 bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
                                 out_proj_bias: Tensor | None, training: bool = True,
                                 key_padding_mask: Tensor | None = None, need_weights: bool = True,
                                 attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
                                 v_proj_weight: Tensor | None = None, static_k: Tensor | None = None,
                                 static_v: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Any, Any]:
    """Apply several heads of attention to projections of queries, keys and values; return the weights (or None), too.

    Inputs are of shape (length, batch, width), or (length, width). In masks True blocks, unlike in
    scaled_dot_product_attention.

    >>> import mutagrad as mg
    >>> layer, x = mg.nn.MultiheadAttention(4, 2), mg.zeros(5, 1, 4)
    >>> inside = layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.
    >>> out = layer.out_proj.weight, layer.out_proj.bias
    >>> y, weights = mg.nn.functional.multi_head_attention_forward(x, x, x, 4, 2, *inside, *out)
    >>> y.shape, weights.shape
    (mutagrad.Size([5, 1, 4]), mutagrad.Size([1, 5, 5]))
    """
    name = "multi_head_attention_forward"
    batched = _check_inputs(name, query, key, value, key_padding_mask, attn_mask)
    if not batched:
        query, key, value = (unsqueeze(x, 1) for x in (query, key, value))
        key_padding_mask = key_padding_mask if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
    length, batch, width = query._array.shape
    if width != embed_dim_to_check or width % num_heads:
        raise Mismatch(f"{name}: a width of {width} is not {embed_dim_to_check}, "
                       f"or cannot be shared by {num_heads} heads", fix="embed_dim = num_heads * n")
    if is_causal and attn_mask is None:
        raise BadValue(f"{name}: Need attn_mask if specifying the is_causal hint",
                       fix="attn_mask=mutagrad.ones(L, L).triu(1).bool()")
    weights = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else _thirds(in_proj_weight)
    q, k, v = _projected(name, (query, key, value), weights, in_proj_bias)
    _check_biases(name, bias_k, bias_v, static_k, static_v)
    extra = int(bias_k is not None) + int(add_zero_attn)
    if bias_k is not None and bias_v is not None:
        k, v = (cat([x, expand(b, 1, batch, width)]) for x, b in ((k, bias_k), (v, bias_v)))
    q = _by_head(q, num_heads)
    k, v = (_by_head(x, num_heads) if s is None else _static(name, s, batch, num_heads, width)
            for x, s in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (cat([x, make(np.zeros((batch, num_heads, 1, x._array.shape[-1]), x._array.dtype))], 2) for x in (k, v))
    causal = is_causal and key_padding_mask is None and not need_weights  # the hint then stands for the mask
    scores = batch, num_heads, length, k._array.shape[2]
    mask = _merged_masks(name, None if causal else attn_mask, key_padding_mask, scores, extra, query._array.dtype)
    dropout_p = number(dropout_p) if training else 0.0
    if need_weights:
        out, seen = _weighed(q, k, v, mask, dropout_p)
    else:
        out, seen = scaled_dot_product_attention(q, k, v, mask, dropout_p, causal), None
    out = linear(reshape(permute(out, 2, 0, 1, 3), length, batch, width), out_proj_weight, out_proj_bias)
    if seen is not None and average_attn_weights:
        seen = mean_dims(seen, (1,), False)
    return (out, seen) if batched else (squeeze(out, 1), None if seen is None else squeeze(seen, 0))


def _projected(name: str, inputs: Sequence[Tensor], weights: Sequence[Any], bias: Tensor | None) -> list[Any]:
    if any(w is None for w in weights):
        raise BadValue(f"{name}: the projection of queries, keys or values is missing",
                       fix="in_proj_weight, or q_proj_weight, k_proj_weight and v_proj_weight")
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, _thirds(bias))]


def _check_biases(name: str, bias_k: Tensor | None, bias_v: Tensor | None, static_k: Tensor | None,
                  static_v: Tensor | None) -> None:
    if (bias_k is None) != (bias_v is None):
        raise Mismatch(f"{name}: bias_k and bias_v come together", fix="both, or neither")
    for kind, static in (("key", static_k), ("value", static_v)):
        if static is not None and bias_k is not None:
            raise Mismatch(f"{name}: bias cannot be added to static {kind}.", fix="bias_k=None and bias_v=None")


def _check_inputs(name: str, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None,
                  attn_mask: Tensor | None) -> bool:
    """Whether there is a batch."""
    for x in (query, key, value):
        tensor_argument(x, name)
    dims, key_dims, value_dims = (x._array.ndim for x in (query, key, value))
    if dims not in (2, 3):
        raise Mismatch(f"{name}: query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor",
                       fix="(length, batch, width)")
    if not key_dims == value_dims == dims:
        raise Mismatch(f"{name}: expected `key` and `value` to be {dims}-D but found {key_dims}-D "
                       f"and {value_dims}-D tensors respectively", fix="as many dimensions as the query has")
    if key._array.shape[:-1] != value._array.shape[:-1]:
        raise Mismatch(f"{name}: keys of shape {key._array.shape} and values "
                       f"of shape {value._array.shape} differ in number", fix="as many of both")
    masks = (key_padding_mask, "key_padding_mask", (dims - 1,)), (attn_mask, "attn_mask", (2, 3))
    for mask, called, allowed in masks:
        if mask is None:
            continue
        if not (isinstance(mask, Tensor) and mask._array.dtype.kind in "bfV"):
            raise BadArgument(f"{name}: a mask must be a boolean or floating point tensor", fix="mask.bool()")
        if mask._array.ndim not in allowed:
            raise Mismatch(f"{name}: expected `{called}` to be `None`{' or' if len(allowed) == 1 else ','} "
                           f"{' or '.join(f'{n}-D' for n in allowed)} "
                           f"but found {mask._array.ndim}-D tensor instead", fix="one column for each key")
    return bool(dims == 3)


def _thirds(packed: Tensor | None) -> Sequence[Any]:
    return (None,) * 3 if packed is None else chunk(packed, 3)


def _by_head(x: Tensor, heads: int) -> Any:
    """(length, batch, width) as (batch, head, length, part of the width)."""
    length, batch, width = x._array.shape
    return permute(reshape(x, length, batch, heads, width // heads), 1, 2, 0, 3)


def _static(name: str, x: Tensor, batch: int, heads: int, width: int) -> Any:
    shape = x._array.shape
    if len(shape) != 3 or shape[0] != batch * heads or shape[2] != width // heads:
        raise Mismatch(f"{name}: static keys and values have shape ({batch * heads}, length, {width // heads}), "
                       f"not {shape}", fix="static.reshape(...)")
    return reshape(x, batch, heads, *shape[1:])


def _added_mask(mask: Tensor, extra: int, dtype: Any) -> Tensor:
    """A mask as what is added to scores, zero for the `extra` keys at the end."""
    if mask._array.dtype.kind == "b":
        mask = make(np.where(mask._array, -np.inf, 0.0).astype(dtype))
    else:
        mask = cast(mask, dtype)
    return cat([mask, make(np.zeros((*mask._array.shape[:-1], extra), dtype))], -1) if extra else mask


def _merged_masks(name: str, attn_mask: Tensor | None, padding: Tensor | None, shape: tuple[int, ...], extra: int,
                  dtype: Any) -> Any:
    """What is added to the scores, for (batch, head, query, key); None if nothing is."""
    batch, heads, length, count = shape
    found = None
    if attn_mask is not None:
        at = attn_mask._array.shape
        if at not in ((length, count - extra), (batch * heads, length, count - extra)):
            wanted = (length, count - extra) if len(at) == 2 else (batch * heads, length, count - extra)
            raise Mismatch(f"{name}: Expected `attn_mask` shape to be {wanted} but got {at}",
                           fix="one row for each query, one column for each key")
        found = _added_mask(attn_mask, extra, dtype)
        found = reshape(found, batch, heads, length, count) if len(at) == 3 else found
    if padding is not None:
        if padding._array.shape != (batch, count - extra):
            raise Mismatch(f"{name}: Expected `key_padding_mask` shape to be {(batch, count - extra)} "
                           f"but got {padding._array.shape}", fix="one row for each item, one column for each key")
        padding = reshape(_added_mask(padding, extra, dtype), batch, 1, 1, count)
        found = padding if found is None else found + padding
    return found


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float) -> tuple[Any, Any]:
    """The average of the values, and the weights as a result of their own."""
    scores = RECORDED.matmul(q * (1 / sqrt(q._array.shape[-1])), transpose(k, 2, 3))
    weights = RECORDED.softmax(scores if mask is None else scores + mask, 3)
    if dropout_p:
        kept = default_generator.source.chosen(weights._array.shape, 1 - dropout_p)
        kind = weights._array.dtype
        weights = weights * make(kept.astype(kind) * kind.type(1 / (1 - dropout_p) if dropout_p < 1 else 0))
    return RECORDED.matmul(weights, v), weights
