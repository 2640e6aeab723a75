"""Layers with a state that goes along a sequence, and the single steps they are made of."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.errors import BadArgument, BadValue, ShapeError
from ..base.modes import mode
from ..core.dtypes import dtype
from ..ops.create.create import zeros
from ..ops.nn import recurrent
from ..ops.shape.shape import tensor_argument
from ..tensors.tensor import Tensor
from . import init
from .common import make_parameter
from .module import Module
from .utils.rnn import PackedSequence

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = Tensor | tuple[Tensor, Tensor]

KINDS = {"LSTM": recurrent.LSTM, "GRU": recurrent.GRU, "RNN_TANH": recurrent.RNN_TANH, "RNN_RELU": recurrent.RNN_RELU}


class RNNBase(Module):
    """What all recurrent layers share: their weights, the checks of their inputs, and the way through the layers.

    >>> import mutagrad as mg
    >>> isinstance(mg.nn.GRU(3, 5), mg.nn.RNNBase)
    True
    """

    mode: str

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        if mode not in KINDS:
            raise BadValue(f"RNNBase: unknown mode {mode!r}", fix=f"one of {', '.join(KINDS)}")
        _check_settings(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:1 + bool(bidirectional)]:
                self._all_weights.append(self._make_weights(layer, suffix, device, dtype))
        self.reset_parameters()

    def _make_weights(self, layer: int, suffix: str, device: DeviceLike | None,
                      dtype: dtype | None) -> list[str]:
        """Those of one layer in one direction; their names."""
        result = self.proj_size or self.hidden_size
        gates = KINDS[self.mode].gates * self.hidden_size
        width = result * (1 + bool(self.bidirectional)) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, width), "weight_hh": (gates, result)}
        shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if self.bias else {}
        shapes |= {"weight_hr": (self.proj_size, self.hidden_size)} if self.proj_size else {}
        for name, shape in shapes.items():
            setattr(self, f"{name}_l{layer}{suffix}", make_parameter(shape, device, dtype))
        return [f"{name}_l{layer}{suffix}" for name in shapes]

    def reset_parameters(self) -> None:
        """Draws new values: all within 1 / sqrt(hidden_size).

        >>> import mutagrad as mg
        >>> layer = mg.nn.GRU(3, 5)
        >>> layer.reset_parameters()
        >>> layer.weight_hh_l0.abs().max().item() <= 5 ** -0.5
        True
        """
        bound = 1 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """One list for each layer and direction.

        >>> import mutagrad as mg
        >>> layer = mg.nn.GRU(3, 5)
        >>> [w.shape for w in layer.all_weights[0]]
        [mutagrad.Size([15, 3]), mutagrad.Size([15, 5]), mutagrad.Size([15]), mutagrad.Size([15])]
        """
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        chosen: list[Tensor] | None = self.__dict__.get("_chosen_weights")
        return [getattr(self, name) for name in self._flat_weights_names] if chosen is None else chosen

    @_flat_weights.setter
    def _flat_weights(self, weights: Sequence[Tensor]) -> None:
        """What computes its weights sets them here, and parameters stay as they are: weight dropout, for example."""
        self.__dict__["_chosen_weights"] = list(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        chosen = self.__dict__.get("_chosen_weights")
        if chosen is not None and name in (names := self._flat_weights_names):
            chosen[names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self: Any, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Parameters that are exchanged are its weights again."""
        self.__dict__.pop("_chosen_weights", None)
        return super()._apply(fn, recurse)

    def flatten_parameters(self) -> None:
        """Does nothing: weights need not lie together.

        >>> import mutagrad as mg
        >>> layer = mg.nn.GRU(3, 5)
        >>> layer.flatten_parameters() is None
        True
        """

    # ---------------------------------------------------------------------------------------------------------- forward

    def forward(self, input: Tensor | PackedSequence, hx: State | None = None) -> Any:
        """Return the results of the last layer at every step, and the last states of all layers.

        >>> import mutagrad as mg
        >>> layer = mg.nn.GRU(3, 5)
        >>> output, h = layer(mg.zeros(7, 2, 3))
        >>> output.shape, h.shape
        (mutagrad.Size([7, 2, 5]), mutagrad.Size([1, 2, 5]))
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        dims = tensor_argument(input, self._get_name())._array.ndim
        if dims not in (2, 3):
            raise BadValue(f"{self._get_name()}: expects an input of 2 or 3 dimensions, got shape {tuple(input.shape)}",
                           fix="(steps, batch, features), or (steps, features)")
        states, x = self._given(hx, dims), input
        if dims == 2:
            x = input.unsqueeze(0 if self.batch_first else 1)
            states = None if states is None else tuple(s.unsqueeze(1) for s in states)
        states = self._checked(x, x.shape[0 if self.batch_first else 1], states)
        out, *last = recurrent.padded(KINDS[self.mode], x, states, self._flat_weights, self._shape(), self.batch_first)
        if dims == 2:
            out, last = out.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in last]
        return out, self._answer(last)

    def _packed(self, input: PackedSequence, hx: State | None) -> Any:
        data, batch_sizes, order, back = input
        if data.ndim != 2:
            raise ShapeError(f"{self._get_name()}: packed data must have 2 dimensions, got shape {tuple(data.shape)}",
                             fix="sequences of shape (steps, features)")
        states = self._given(hx, 3)
        if order is not None and states is not None:
            states = tuple(s.index_select(1, order) for s in states)
        sizes = batch_sizes.tolist()
        states = self._checked(data, sizes[0], states)
        out, *last = recurrent.network(KINDS[self.mode], data, sizes, states, self._flat_weights, self._shape())
        last = last if back is None else [s.index_select(1, back) for s in last]
        return PackedSequence(out, batch_sizes, order, back), self._answer(last)

    def _shape(self) -> recurrent.Shape:
        return recurrent.Shape(self.bias, self.num_layers, self.dropout, self.training, bool(self.bidirectional))

    def _given(self, hx: State | None, dims: int) -> tuple[Tensor, ...] | None:
        """The states that the caller gave, as a tuple."""
        if hx is None:
            return None
        pair = KINDS[self.mode].states == 2
        if pair and not (isinstance(hx, (tuple, list)) and len(hx) == 2):
            raise BadArgument(f"{self._get_name()}: hx must be a pair of tensors, state and cell state",
                              fix="lstm(x, (h, c))")
        states = tuple(tensor_argument(s, self._get_name()) for s in (hx if pair else (hx,)))
        if any(s.ndim != dims for s in states):
            raise ShapeError(f"{self._get_name()}: for an input of {dims} dimensions states have {dims}, too; got "
                             f"shapes {[tuple(s.shape) for s in states]}",
                             fix="(layers * directions, batch, hidden_size), without batch if the input has none")
        return states

    def _checked(self, input: Tensor, batch: int, states: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        """The states, or zeros, once they and the input are found to fit."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype and mode.now.autocast_dtype is None:
            raise BadValue(f"{self._get_name()}: the input is {input.dtype} and the weights are {weight.dtype}",
                           fix=f"input.to({weight.dtype})")
        if input.shape[-1] != self.input_size:
            raise ShapeError(f"{self._get_name()}: the input has {input.shape[-1]} features, expected "
                             f"{self.input_size}", why=f"its shape is {tuple(input.shape)}",
                             fix=f"input_size={input.shape[-1]}")
        count = self.num_layers * (1 + bool(self.bidirectional))
        of_state, of_cell = (count, batch, self.proj_size or self.hidden_size), (count, batch, self.hidden_size)
        shapes = [of_state, of_cell][:KINDS[self.mode].states]
        if states is None:
            return tuple(zeros(shape, dtype=input.dtype, device=input.device) for shape in shapes)
        for state, shape, what in zip(states, shapes, ("state", "cell state")):
            if tuple(state.shape) != shape:
                raise ShapeError(f"{self._get_name()}: the {what} has shape {tuple(state.shape)}, expected {shape}",
                                 fix=f"zeros{shape}")
        return states

    def _answer(self, last: Sequence[Tensor]) -> Any:
        return tuple(last) if KINDS[self.mode].states == 2 else last[0]

    def extra_repr(self) -> str:
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                 "bidirectional": False}
        changed = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *changed])


def _check_settings(mode: str, input_size: int, hidden_size: int, num_layers: int, bias: bool, batch_first: bool,
                    dropout: float, proj_size: int) -> None:
    for name, flag in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(flag, bool):
            raise BadArgument(f"{mode}: {name} must be a bool, got {type(flag).__name__}", fix=f"{name}=True")
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if not isinstance(size, int):
            raise BadArgument(f"{mode}: {name} must be an integer, got {type(size).__name__}", fix=f"{name}=1")
        if size <= 0:
            raise BadValue(f"{mode}: {name} must be above 0, got {size}", fix=f"{name}=1")
    if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise BadValue(f"{mode}: dropout is a probability, not {dropout!r}", fix="dropout=0.1")
    if proj_size and mode != "LSTM":
        raise BadValue(f"{mode}: proj_size argument is only supported for LSTM, not RNN or GRU, got {proj_size}",
                       fix="proj_size=0")
    if not 0 <= proj_size < hidden_size:
        raise BadValue(f"{mode}: proj_size={proj_size} must be below hidden_size={hidden_size}, or 0 for no projection",
                       fix="proj_size=0")
    if dropout and num_layers == 1:
        warnings.warn(f"dropout={dropout} acts between layers, and there is only one", stacklevel=4)


class RNN(RNNBase):
    """Each step's state is tanh (or relu) of a linear function of the input and the state before.

    >>> import mutagrad as mg
    >>> out, last = mg.nn.RNN(3, 4)(mg.ones(5, 2, 3))
    >>> out.shape, last.shape
    (mutagrad.Size([5, 2, 4]), mutagrad.Size([1, 2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise BadValue(f"RNN: Unknown nonlinearity {nonlinearity!r}, it must be 'tanh' or 'relu'",
                           fix="nonlinearity='tanh'")
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: a state, and a cell state that gates let through.

    >>> import mutagrad as mg
    >>> out, (h, c) = mg.nn.LSTM(3, 4, num_layers=2, batch_first=True)(mg.ones(2, 5, 3))
    >>> out.shape, h.shape, c.shape
    (mutagrad.Size([2, 5, 4]), mutagrad.Size([2, 2, 4]), mutagrad.Size([2, 2, 4]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)


class GRU(RNNBase):
    """Gated recurrent units: gates say how much of the state is kept and how much of it the new one sees.

    >>> import mutagrad as mg
    >>> output, h = mg.nn.GRU(3, 5, batch_first=True)(mg.zeros(2, 7, 3))
    >>> output.shape, h.shape
    (mutagrad.Size([2, 7, 5]), mutagrad.Size([1, 2, 5]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)


# ------------------------------------------------------------------------------------------------------------- one step

class RNNCellBase(Module):
    """What the single steps share.

    >>> import mutagrad as mg
    >>> isinstance(mg.nn.GRUCell(3, 5), mg.nn.RNNCellBase)
    True
    """

    states: ClassVar[int] = 1
    nonlinearity = "tanh"

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = num_chunks * hidden_size
        self.weight_ih = make_parameter((gates, input_size), device, dtype)
        self.weight_hh = make_parameter((gates, hidden_size), device, dtype)
        self.register_parameter("bias_ih", make_parameter((gates,), device, dtype) if bias else None)
        self.register_parameter("bias_hh", make_parameter((gates,), device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values: all within 1 / sqrt(hidden_size).

        >>> import mutagrad as mg
        >>> cell = mg.nn.GRUCell(3, 5)
        >>> cell.reset_parameters()
        >>> cell.weight_hh.abs().max().item() <= 5 ** -0.5
        True
        """
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _step(self, function: Callable[..., Any], input: Tensor, hx: State | None) -> Any:
        name = self._get_name()
        if tensor_argument(input, name)._array.ndim not in (1, 2):
            raise BadValue(f"{name}: expects an input of 1 or 2 dimensions, got shape {tuple(input.shape)}",
                           fix="(batch, input_size)")
        given: Any = hx if self.states == 2 else (hx,)
        if hx is None:
            state = zeros((*input.shape[:-1], self.hidden_size), dtype=input.dtype, device=input.device)
            given = (state,) * self.states
        for s in given:
            if tensor_argument(s, name)._array.ndim not in (1, 2):
                raise BadValue(f"{name}: expects a state of 1 or 2 dimensions, got shape {tuple(s.shape)}",
                               fix="(batch, hidden_size)")
        state = tuple(given) if self.states == 2 else given[0]
        return function(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def extra_repr(self) -> str:
        texts = [str(self.input_size), str(self.hidden_size)] + [f"bias={self.bias}"] * (self.bias is not True)
        return ", ".join(texts + [f"nonlinearity={self.nonlinearity}"] * (self.nonlinearity != "tanh"))


class RNNCell(RNNCellBase):
    """One step of an RNN: the new state.

    >>> import mutagrad as mg
    >>> mg.nn.RNNCell(3, 5)(mg.zeros(2, 3)).shape
    mutagrad.Size([2, 5])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise BadValue(f"RNNCell: nonlinearity must be 'tanh' or 'relu', not {self.nonlinearity!r}",
                           fix="nonlinearity='tanh'")
        function = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        return self._step(function, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: the new state and cell state.

    >>> import mutagrad as mg
    >>> h, c = mg.nn.LSTMCell(3, 5)(mg.zeros(2, 3))
    >>> h.shape, c.shape
    (mutagrad.Size([2, 5]), mutagrad.Size([2, 5]))
    """

    states = 2

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> Any:
        if hx is not None and not (isinstance(hx, (tuple, list)) and len(hx) == 2):
            raise BadArgument("LSTMCell: hx must be a pair of tensors, state and cell state", fix="cell(x, (h, c))")
        return self._step(recurrent.lstm_cell, input, hx)


class GRUCell(RNNCellBase):
    """One step of a GRU: the new state.

    >>> import mutagrad as mg
    >>> mg.nn.GRUCell(3, 5)(mg.zeros(2, 3)).shape
    mutagrad.Size([2, 5])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: DeviceLike | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Any:
        return self._step(recurrent.gru_cell, input, hx)
