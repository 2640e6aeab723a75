"""Recurrent layers: a state that each step of a sequence changes.

A layer in one direction is one node for the whole sequence. What the steps need of their inputs is one product before
it; in reverse all that does not depend on the adjoint is computed for all steps at once, and so is the derivative of
the weights.

Sequences of different lengths are packed: the rows of a step lie together, longest sequence first, so that a step works
on the first `n` rows of the state. The functions that do the work write into that state, and run on arrays and, in a
recorded sweep, on tensors alike.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from ...arrays import np
from ...arrays.blas import on_one_thread
from ...arrays.kinds import is_plain
from ...arrays.products import SMALL
from ...base.errors import BadArgument, BadValue, DTypeError, ShapeError
from ...core.codegen import primitive
from ...core.dtypes import FLOAT, of_array
from ...core.factory import make
from ...core.op import RAW, RECORDED
from ...core.storage import TensorBase as Tensor
from ..create.create import zeros_like
from ..shape.shape import cat, pack, reshape, stack, tensor_argument, transpose, unpack
from . import recurrent_loops as loops
from .dropout import dropout as drop
from .linear import linear

FUNCTIONS = "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell"

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]


class Plan(NamedTuple):
    """The order of steps: the rows of each, and how many. `hidden` is the width, `projected` that of LSTM results."""

    steps: tuple[tuple[slice, int], ...]
    hidden: int
    projected: int = 0

    @property
    def width(self) -> int:
        return self.projected or self.hidden


def _plan(batch_sizes: Sequence[int], backwards: bool, hidden: int, projected: int = 0) -> Plan:
    ends = list(accumulate(batch_sizes))
    steps = [(slice(end - n, end), n) for end, n in zip(ends, batch_sizes)]
    return Plan(tuple(reversed(steps) if backwards else steps), hidden, projected)


def _turned(xp: Any, w: Any, plan: Plan) -> Any:
    return loops.turned(w, plan) if xp is RAW else w.T


# Memory whose every element will be written: zeros would be fresh pages from the system each time, which costs more
# than the writes.
RAW.blank_like, RECORDED.blank_like = np.empty_like, zeros_like


# ----------------------------------------------------------------------------------------------------------------- LSTM

def _both_weights(w: Any, plan: Plan) -> tuple[Any, Any]:
    """The matrices for state and projection, which come as one vector where there are both."""
    if not plan.projected:
        return w, None
    gates, width = 4 * plan.hidden, plan.projected
    state, projection = unpack(w, [(gates, width), (width, plan.hidden)])
    return state, projection


def _lstm_steps(xp: Any, x: Any, h: Any, c: Any, w: Any, plan: Plan) -> tuple[Any, ...]:
    """Results, last states; and for the reverse: activated gates (i, f, g, o), and the states before each step."""
    n_rows, size = x.shape[0], plan.hidden
    weight, projection = (None if m is None else _turned(xp, m, plan) for m in _both_weights(w, plan))
    h, c = h * 1, c * 1
    out, before_h = xp.blank_like(x[:, :plan.width]), xp.blank_like(x[:, :plan.width])
    before_c, gates = xp.blank_like(x[:, :size]), xp.blank_like(x)
    for rows, n in plan.steps:
        before_h[rows], before_c[rows] = h[:n], c[:n]
        z = x[rows] + h[:n] @ weight
        gates[rows, :2 * size] = xp.sigmoid(z[:, :2 * size])
        gates[rows, 2 * size:3 * size] = xp.tanh(z[:, 2 * size:3 * size])
        gates[rows, 3 * size:] = xp.sigmoid(z[:, 3 * size:])
        i, f, new, o = (gates[rows, k * size:(k + 1) * size] for k in range(4))
        c[:n] = f * c[:n] + i * new
        hidden = o * xp.tanh(c[:n])
        h[:n] = hidden if projection is None else hidden @ projection
        out[rows] = h[:n]
    return out, h, c, gates.reshape(n_rows, 4, size), before_h, before_c


def _lstm_reverse(xp: Any, g: Any, x: Any, h: Any, c: Any, w: Any, plan: Plan, memory: Any) -> tuple[Any, ...]:
    gates, before_h, before_c = memory if xp is RAW else _lstm_steps(xp, x, h, c, w, plan)[3:]
    weight, projection = _both_weights(w, plan)
    n_rows, size = x.shape[0], plan.hidden
    dout, dh, dc = unpack(g, [(n_rows, plan.width), h.shape, c.shape])
    dh, dc = dh * 1, dc * 1
    i, f, new, o = (gates[:, k] for k in range(4))
    tanh_c = xp.tanh(f * before_c + i * new)
    c_by_hidden = o * (1 - tanh_c * tanh_c)
    o_by_hidden = tanh_c * o * (1 - o)
    by_c = xp.blank_like(gates[:, :3])
    by_c[:, 0], by_c[:, 1], by_c[:, 2] = new * i * (1 - i), before_c * f * (1 - f), i * (1 - new * new)
    dx, dresult = xp.blank_like(gates), xp.blank_like(dout)
    for rows, n in reversed(plan.steps):
        d = dh[:n] + dout[rows]
        dresult[rows] = d
        d = d if projection is None else d @ projection
        dcell = dc[:n] + d * c_by_hidden[rows]
        dx[rows, :3] = dcell[:, None] * by_c[rows]
        dx[rows, 3] = d * o_by_hidden[rows]
        dc[:n] = dcell * f[rows]
        dh[:n] = dx[rows].reshape(n, 4 * size) @ weight
    dx = dx.reshape(n_rows, 4 * size)
    dweight = dx.T @ before_h
    return dx, dh, dc, dweight if projection is None else xp.end_to_end(dweight, dresult.T @ (o * tanh_c))


RAW.end_to_end = lambda *parts: pack(parts)
RECORDED.end_to_end = lambda *parts: cat([reshape(part, -1) for part in parts])


# ------------------------------------------------------------------------------------------------------------------ GRU

def _gru_steps(xp: Any, x: Any, h: Any, w: Any, b: Any, plan: Plan) -> tuple[Any, ...]:
    """Results, last state; and for the reverse: activated gates (r, z, n), the state's part in n, the states before."""
    n_rows, size = x.shape[0], plan.hidden
    h, weight = h * 1, _turned(xp, w, plan)
    out, before, part = (xp.blank_like(x[:, :size]) for _ in range(3))
    gates = xp.blank_like(x)
    for rows, n in plan.steps:
        before[rows] = h[:n]
        state = h[:n] @ weight + b
        gates[rows, :2 * size] = xp.sigmoid(x[rows, :2 * size] + state[:, :2 * size])
        part[rows] = state[:, 2 * size:]
        reset, update = gates[rows, :size], gates[rows, size:2 * size]
        new = xp.tanh(x[rows, 2 * size:] + reset * part[rows])
        gates[rows, 2 * size:] = new
        h[:n] = new + update * (h[:n] - new)
        out[rows] = h[:n]
    return out, h, gates.reshape(n_rows, 3, size), part, before


def _gru_reverse(xp: Any, g: Any, x: Any, h: Any, w: Any, b: Any, plan: Plan, memory: Any) -> tuple[Any, ...]:
    gates, part, before = memory if xp is RAW else _gru_steps(xp, x, h, w, b, plan)[2:]
    n_rows, size = x.shape[0], plan.hidden
    dout, dh = unpack(g, [(n_rows, size), h.shape])
    dh = dh * 1
    reset, update, new = (gates[:, k] for k in range(3))
    slope = (1 - update) * (1 - new * new)
    by_result = xp.blank_like(gates)  # of what the state contributes to each gate
    by_result[:, 0], by_result[:, 1] = slope * part * reset * (1 - reset), (before - new) * update * (1 - update)
    by_result[:, 2] = slope * reset
    dstate, dresult = xp.blank_like(gates), xp.blank_like(dout)
    for rows, n in reversed(plan.steps):
        d = dh[:n] + dout[rows]
        dresult[rows] = d
        dstate[rows] = d[:, None] * by_result[rows]
        dh[:n] = d * update[rows] + dstate[rows].reshape(n, 3 * size) @ w
    dx = dstate * 1
    dx[:, 2] = dresult * slope
    dstate = dstate.reshape(n_rows, 3 * size)
    return dx.reshape(n_rows, 3 * size), dh, dstate.T @ before, xp.sum(dstate, (0,), False)


# ------------------------------------------------------------------------------------------------------ the simple kind

def _rnn_steps(xp: Any, act: Any, x: Any, h: Any, w: Any, plan: Plan) -> tuple[Any, ...]:
    """Results, last state; and for the reverse the states before each step."""
    h, weight = h * 1, _turned(xp, w, plan)
    out, before = xp.blank_like(x), xp.blank_like(x)
    for rows, n in plan.steps:
        before[rows] = h[:n]
        h[:n] = act(x[rows] + h[:n] @ weight)
        out[rows] = h[:n]
    return out, h, out, before


def _rnn_reverse(xp: Any, act: Any, slope: Any, g: Any, x: Any, h: Any, w: Any, plan: Plan,
                 memory: Any) -> tuple[Any, ...]:
    out, before = memory if xp is RAW else _rnn_steps(xp, act, x, h, w, plan)[2:]
    dout, dh = unpack(g, [x.shape, h.shape])
    dh = dh * 1
    by_result, dx = slope(xp, out), xp.blank_like(x)
    for rows, n in reversed(plan.steps):
        dx[rows] = (dh[:n] + dout[rows]) * by_result[rows]
        dh[:n] = dx[rows] @ w
    return dx, dh, dx.T @ before


# --------------------------------------------------------------------------------------------------------- declarations

def _in_steps(work: Callable[[], Any], arrays: Sequence[Any]) -> Any:
    """Call work that is a loop of products which are too small for OpenBLAS's threads, if they are."""
    _, states, *rest = arrays
    if is_plain(*arrays) and states.shape[0] * max(a.size for a in rest) < SMALL:
        return on_one_thread(lambda _: work())
    return work()


def _with_memory(steps: Callable[..., tuple[Any, ...]], results: int,
                 looped: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
    """The forward: results in one array, and what the reverse needs in the list `memory`. `looped` may know both."""
    def forward(*arguments: Any) -> Any:
        *arrays, plan, memory = arguments
        if (known := looped(*arrays, plan)) is not None:
            whole, memory[:] = known
            return whole
        found = _in_steps(lambda: steps(RAW, *arrays, plan), arrays)
        memory[:] = found[results:]
        return pack(found[:results])

    return forward


def _all_at_once(function: Any, reverse: Callable[..., tuple[Any, ...]],
                 looped: Callable[..., Any] = lambda *_: None) -> Any:
    """One pass serves all inputs; on raw arrays it is `lstm_reverse` for "lstm"."""
    name = f"{function.op.name}_reverse"

    def on_arrays(*arguments: Any) -> Any:
        found = looped(*arguments)
        return _in_steps(lambda: reverse(RAW, *arguments), arguments[1:-2]) if found is None else found

    setattr(RAW, name, on_arrays)

    def joint(xp: Any, g: Any, s: Any, i: Any) -> tuple[Any, ...]:
        found = getattr(RAW, name)(g, *s) if xp is RAW else reverse(xp, g, *s)
        return tuple(None if wanted is None else f for f, wanted in zip(found, i))

    function.op.reverse = joint
    return function


_SETTINGS = ("plan", "memory")

_lstm = _all_at_once(primitive(
    "lstm", _with_memory(_lstm_steps, 3, loops.lstm), settings=_SETTINGS,
    x=lambda xp, g, x, h, c, w, plan, memory: _lstm_reverse(xp, g, x, h, c, w, plan, memory)[0],
    h=lambda xp, g, x, h, c, w, plan, memory: _lstm_reverse(xp, g, x, h, c, w, plan, memory)[1],
    c=lambda xp, g, x, h, c, w, plan, memory: _lstm_reverse(xp, g, x, h, c, w, plan, memory)[2],
    w=lambda xp, g, x, h, c, w, plan, memory: _lstm_reverse(xp, g, x, h, c, w, plan, memory)[3]), _lstm_reverse,
    loops.lstm_reverse)

_gru = _all_at_once(primitive(
    "gru", _with_memory(_gru_steps, 2, loops.gru), settings=_SETTINGS,
    x=lambda xp, g, x, h, w, b, plan, memory: _gru_reverse(xp, g, x, h, w, b, plan, memory)[0],
    h=lambda xp, g, x, h, w, b, plan, memory: _gru_reverse(xp, g, x, h, w, b, plan, memory)[1],
    w=lambda xp, g, x, h, w, b, plan, memory: _gru_reverse(xp, g, x, h, w, b, plan, memory)[2],
    b=lambda xp, g, x, h, w, b, plan, memory: _gru_reverse(xp, g, x, h, w, b, plan, memory)[3]), _gru_reverse,
    loops.gru_reverse)


def _simple(name: str, steps: Callable[..., tuple[Any, ...]], reverse: Callable[..., tuple[Any, ...]]) -> Any:
    return _all_at_once(primitive(
        name, _with_memory(steps, 2), settings=_SETTINGS,
        x=lambda xp, g, x, h, w, plan, memory: reverse(xp, g, x, h, w, plan, memory)[0],
        h=lambda xp, g, x, h, w, plan, memory: reverse(xp, g, x, h, w, plan, memory)[1],
        w=lambda xp, g, x, h, w, plan, memory: reverse(xp, g, x, h, w, plan, memory)[2]), reverse)


_rnn_tanh = _simple("rnn_tanh", lambda xp, *rest: _rnn_steps(xp, xp.tanh, *rest),
                    lambda xp, *rest: _rnn_reverse(xp, xp.tanh, lambda xp, out: 1 - out * out, *rest))
_rnn_relu = _simple("rnn_relu", lambda xp, *rest: _rnn_steps(xp, xp.relu, *rest),
                    lambda xp, *rest: _rnn_reverse(xp, xp.relu, lambda xp, out: out != 0, *rest))


# --------------------------------------------------------------------------------------------- one layer, one direction

class Weights(NamedTuple):
    """Of one layer in one direction: for the input, for the state, their biases, and an LSTM's projection."""

    ih: Any
    hh: Any
    b_ih: Any = None
    b_hh: Any = None
    hr: Any = None


def _sum(a: Any, b: Any) -> Any:
    """Of two biases, of which there may be none."""
    return b if a is None else a if b is None else a + b


def _lstm_layer(x: Tensor, states: Sequence[Tensor], w: Weights, batch_sizes: Sequence[int],
                backwards: bool) -> tuple[Any, ...]:
    h, c = states
    hidden, projected = c._array.shape[1], 0 if w.hr is None else w.hr._array.shape[0]
    weight = w.hh if w.hr is None else RECORDED.end_to_end(w.hh, w.hr)
    x = linear(x, w.ih, _sum(w.b_ih, w.b_hh))
    found = _lstm(x, h, c, weight, _plan(batch_sizes, backwards, hidden, projected), [])
    return unpack(found, [(x._array.shape[0], projected or hidden), h._array.shape, c._array.shape])


def _gru_layer(x: Tensor, states: Sequence[Tensor], w: Weights, batch_sizes: Sequence[int],
               backwards: bool) -> tuple[Any, ...]:
    h, = states
    bias = make(np.zeros(w.hh._array.shape[0], w.hh._array.dtype)) if w.b_hh is None else w.b_hh
    x = linear(x, w.ih, w.b_ih)
    found = _gru(x, h, w.hh, bias, _plan(batch_sizes, backwards, h._array.shape[1]), [])
    return unpack(found, [(x._array.shape[0], h._array.shape[1]), h._array.shape])


def _rnn_layer(operation: Any) -> Callable[..., tuple[Any, ...]]:
    def layer(x: Tensor, states: Sequence[Tensor], w: Weights, batch_sizes: Sequence[int],
              backwards: bool) -> tuple[Any, ...]:
        h, = states
        x = linear(x, w.ih, _sum(w.b_ih, w.b_hh))
        found = operation(x, h, w.hh, _plan(batch_sizes, backwards, h._array.shape[1]), [])
        return unpack(found, [x._array.shape, h._array.shape])

    return layer


class Kind(NamedTuple):
    """A kind of recurrent layer: how it is called, how many gates and states it has, and what computes it."""

    name: str
    gates: int
    states: int
    layer: Callable[..., tuple[Any, ...]]


LSTM, GRU = Kind("lstm", 4, 2, _lstm_layer), Kind("gru", 3, 1, _gru_layer)
RNN_TANH, RNN_RELU = Kind("rnn_tanh", 1, 1, _rnn_layer(_rnn_tanh)), Kind("rnn_relu", 1, 1, _rnn_layer(_rnn_relu))


def _check_layer(name: str, kind: Kind, x: Tensor, states: Sequence[Tensor], w: Weights, batch: int) -> None:
    """Raise where sizes or types do not fit, before anything is computed."""
    given = [tensor_argument(t, name) for t in (x, *states, *w) if t is not None]
    dtypes = {t._array.dtype for t in given}
    if len(dtypes) > 1 or of_array(x._array.dtype).category != FLOAT:
        kinds = ", ".join(sorted(of_array(d).name for d in dtypes))
        raise DTypeError(f"{name}: input, state and weights have types {kinds}",
                         why="they need one floating point type", fix="x.to(weight.dtype)")
    rows, width = w.hh._array.shape if w.hh._array.ndim == 2 else (0, 0)
    hidden = rows // kind.gates
    shapes: list[tuple[str, Any, tuple[int, ...]]] = [
        ("the state", states[0], (batch, width)), ("w_ih", w.ih, (rows, x._array.shape[-1]))]
    shapes += [("w_hh", w.hh, (hidden * kind.gates, hidden))] if w.hr is None else [("w_hr", w.hr, (width, hidden))]
    shapes += [("the cell state", states[1], (batch, hidden))] if kind.states == 2 else []
    shapes += [("a bias", b, (rows,)) for b in (w.b_ih, w.b_hh) if b is not None]
    for what, tensor, shape in shapes:
        if tensor._array.shape != shape:
            raise ShapeError(f"{name}: {what} has shape {tensor._array.shape}, expected {shape}",
                             why=f"the input has shape {x._array.shape} and the weights "
                                 f"of the state {w.hh._array.shape}", fix=f"a tensor of shape {shape}")


# ------------------------------------------------------------------------------------------------------- whole networks

class Shape(NamedTuple):
    """How layers are put together."""

    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool


def network(kind: Kind, x: Tensor, batch_sizes: Sequence[int], states: Sequence[Tensor], params: Sequence[Any],
            shape: Shape) -> tuple[Any, ...]:
    """All layers on packed rows: the last one's results, and the last states of every layer and direction."""
    if sum(batch_sizes) != x._array.shape[0] or any(a < b for a, b in pairwise(batch_sizes)):
        raise ShapeError(f"{kind.name}: batch_sizes {batch_sizes} do not describe {x._array.shape[0]} packed rows",
                         why="they must not grow, and sum to the number of rows",
                         fix="nn.utils.rnn.pack_padded_sequence(x, lengths)")
    weights = _by_layer(kind, params, shape, projected=states[0]._array.shape[-1] != states[-1]._array.shape[-1])
    last: list[tuple[Any, ...]] = []
    for number in range(shape.num_layers):
        results = []
        for backwards in (False, True)[:1 + shape.bidirectional]:
            at = len(last)
            own = [s[at] for s in states]
            _check_layer(kind.name, kind, x, own, weights[at], batch_sizes[0])
            result, *new = kind.layer(x, own, weights[at], batch_sizes, backwards)
            results.append(result)
            last.append(tuple(new))
        x = cat(results, 1) if shape.bidirectional else results[0]
        if shape.dropout and number < shape.num_layers - 1:
            x = drop(x, shape.dropout, shape.train)
    return x, *(stack(s) for s in zip(*last))


def _by_layer(kind: Kind, params: Sequence[Any], shape: Shape, projected: bool) -> list[Weights]:
    """The flat list of weights, grouped by layer and direction."""
    each = 2 + 2 * bool(shape.has_biases) + projected
    count = shape.num_layers * (1 + bool(shape.bidirectional))
    if len(params) != each * count:
        raise BadValue(f"{kind.name}: got {len(params)} weights, expected {each * count}",
                       why=f"there are {count} layers and directions, each with {each}",
                       fix="w_ih, w_hh, b_ih, b_hh for each layer and direction")
    groups = [list(params[k:k + each]) for k in range(0, len(params), each)]
    if not shape.has_biases:
        groups = [[*group[:2], None, None, *group[2:]] for group in groups]
    return [Weights(*group) for group in groups]


def _call(kind: Kind, input: Tensor, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Either of PyTorch's forms: a padded batch `(input, hx, params, ..., batch_first)`, or packed rows.

    The latter are `(data, batch_sizes, hx, params, ...)`.
    """
    packed = (len(arguments) > 2 and isinstance(arguments[0], Tensor)
              and not (isinstance(arguments[1], (tuple, list)) and kind.states == 1))
    if len(arguments) != 8:
        raise BadArgument(f"{kind.name}: takes 9 arguments, got {len(arguments) + 1}",
                          fix=f"{kind.name}(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, "
                              "batch_first)")
    tensor_argument(input, kind.name)
    hx, params, *rest = arguments[packed:]
    states = (hx,) if kind.states == 1 else hx
    if packed:
        return network(kind, input, arguments[0].tolist(), states, params, Shape(*rest))
    *shape, batch_first = rest
    return padded(kind, input, states, params, Shape(*shape), batch_first)


def padded(kind: Kind, input: Tensor, states: Sequence[Tensor], params: Sequence[Any], shape: Shape,
           batch_first: bool) -> tuple[Any, ...]:
    """The same for a batch of sequences of one length: `(steps, batch, features)`."""
    if input._array.ndim != 3:
        raise ShapeError(f"{kind.name}: expects an input of 3 dimensions, got shape {input._array.shape}",
                         fix="(steps, batch, features)")
    x = transpose(input, 0, 1) if batch_first else input
    steps, batch, width = x._array.shape
    if not steps:
        raise ShapeError(f"{kind.name}: Expected sequence length to be larger than 0 in RNN",
                         why=f"the input has shape {input._array.shape}", fix="at least one step")
    out, *last = network(kind, reshape(x, steps * batch, width), [batch] * steps, states, params, shape)
    out = reshape(out, steps, batch, out._array.shape[1])
    return transpose(out, 0, 1) if batch_first else out, *last


def lstm(input: Tensor, *arguments: Any) -> tuple[Any, ...]:
    """Run layers of long short-term memory over a sequence: results, last state and last cell state.

    `lstm(input, (h, c), params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`, or, for rows that
    are packed, `lstm(data, batch_sizes, (h, c), params, has_biases, num_layers, dropout, train, bidirectional)`.

    >>> import mutagrad as mg
    >>> weights, start = [mg.ones(12, 2), mg.ones(12, 3)], [mg.zeros(1, 1, 3), mg.zeros(1, 1, 3)]
    >>> output, h, c = mg.lstm(mg.zeros(5, 1, 2), start, weights, False, 1, 0., False, False, False)
    >>> output.shape, h.shape
    (mutagrad.Size([5, 1, 3]), mutagrad.Size([1, 1, 3]))
    """
    return _call(LSTM, input, arguments)


def gru(input: Tensor, *arguments: Any) -> tuple[Any, ...]:
    """Run layers of gated recurrent units over a sequence: results, last state. Called like `lstm`, with one state.

    >>> import mutagrad as mg
    >>> weights = [mg.ones(9, 2), mg.ones(9, 3)]
    >>> output, h = mg.gru(mg.zeros(5, 1, 2), mg.zeros(1, 1, 3), weights, False, 1, 0., False, False, False)
    >>> output.shape, h.shape
    (mutagrad.Size([5, 1, 3]), mutagrad.Size([1, 1, 3]))
    """
    return _call(GRU, input, arguments)


def rnn_tanh(input: Tensor, *arguments: Any) -> tuple[Any, ...]:
    """Run layers that apply tanh to a linear function of input and state: results and last state. Called like `gru`.

    >>> import mutagrad as mg
    >>> weights = [mg.ones(3, 2), mg.ones(3, 3)]
    >>> output, h = mg.rnn_tanh(mg.zeros(5, 1, 2), mg.zeros(1, 1, 3), weights, False, 1, 0., False, False, False)
    >>> output.shape, h.shape
    (mutagrad.Size([5, 1, 3]), mutagrad.Size([1, 1, 3]))
    """
    return _call(RNN_TANH, input, arguments)


def rnn_relu(input: Tensor, *arguments: Any) -> tuple[Any, ...]:
    """Run layers that apply relu to a linear function of input and state: results and last state. Called like `gru`.

    >>> import mutagrad as mg
    >>> weights = [mg.ones(3, 2), mg.ones(3, 3)]
    >>> output, h = mg.rnn_relu(mg.zeros(5, 1, 2), mg.zeros(1, 1, 3), weights, False, 1, 0., False, False, False)
    >>> output.shape, h.shape
    (mutagrad.Size([5, 1, 3]), mutagrad.Size([1, 1, 3]))
    """
    return _call(RNN_RELU, input, arguments)


# ------------------------------------------------------------------------------------------------------------- one step

def _cell(name: str, kind: Kind, input: Tensor, states: Sequence[Tensor], w: Weights) -> tuple[Any, ...]:
    tensor_argument(input, name)
    if input._array.ndim not in (1, 2):
        raise ShapeError(f"{name}: expects an input of 1 or 2 dimensions, got shape {input._array.shape}",
                         fix="(batch, features)")
    one = input._array.ndim == 1
    x, *states = ((reshape(tensor_argument(t, name), 1, -1) for t in (input, *states)) if one else (input, *states))
    _check_layer(name, kind, x, states, w, x._array.shape[0])
    _, *new = kind.layer(x, states, w, [x._array.shape[0]], False)
    return tuple(reshape(s, -1) for s in new) if one else tuple(new)


def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None) -> tuple[Any, Any]:
    """One step of long short-term memory: the new state and cell state.

    >>> import mutagrad as mg
    >>> weights = mg.zeros(12, 2), mg.zeros(12, 3)
    >>> h, c = mg.lstm_cell(mg.ones(1, 2), (mg.zeros(1, 3), mg.zeros(1, 3)), *weights)
    >>> h.shape, c.shape
    (mutagrad.Size([1, 3]), mutagrad.Size([1, 3]))
    """
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise BadArgument("lstm_cell: hx must be a pair of tensors, state and cell state",
                          fix="lstm_cell(x, (h, c), w_ih, w_hh)")
    h, c = _cell("lstm_cell", LSTM, input, hx, Weights(w_ih, w_hh, b_ih, b_hh))
    return h, c


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Any:
    """One step of a gated recurrent unit: the new state.

    >>> import mutagrad as mg
    >>> mg.gru_cell(mg.ones(1, 2), mg.zeros(1, 3), mg.zeros(9, 2), mg.zeros(9, 3))
    tensor([[0., 0., 0.]])
    """
    return _cell("gru_cell", GRU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Any:
    """tanh of a linear function of input and state: the new state.

    >>> import mutagrad as mg
    >>> mg.rnn_tanh_cell(mg.ones(1, 2), mg.zeros(1, 3), mg.ones(3, 2), mg.zeros(3, 3))
    tensor([[0.9640, 0.9640, 0.9640]])
    """
    return _cell("rnn_tanh_cell", RNN_TANH, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Any:
    """relu of a linear function of input and state: the new state.

    >>> import mutagrad as mg
    >>> mg.rnn_relu_cell(mg.ones(1, 2), mg.zeros(1, 3), mg.ones(3, 2), mg.zeros(3, 3))
    tensor([[2., 2., 2.]])
    """
    return _cell("rnn_relu_cell", RNN_RELU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]
