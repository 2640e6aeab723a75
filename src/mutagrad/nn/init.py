"""First values of parameters. Each function writes into its tensor, unrecorded, and returns it."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ..arrays import np
from ..arrays.bfloat16 import widened
from ..arrays.numpy import silently
from ..autograd import no_grad
from ..base.errors import BadArgument, BadValue
from ..base.modes import keeps_modes
from ..base.operands import Array, kind_name
from ..core.factory import make
from ..core.number import number
from ..ops.create.create import empty, empty_like
from ..ops.random.draws import randperm
from ..ops.random.generator import Generator
from ..tensors.tensor import Tensor

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal", "kaiming_normal_",
    "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_", "orthogonal", "orthogonal_", "sparse",
    "sparse_", "trunc_normal_", "uniform", "uniform_", "xavier_normal", "xavier_normal_", "xavier_uniform",
    "xavier_uniform_", "zeros_"]

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
          **{f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)}}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor on the weights with which a nonlinearity leaves the variance of its input as it was.

    >>> from mutagrad.nn import init
    >>> init.calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise BadValue(f"calculate_gain: negative_slope {param!r} is not a number",
                           fix="calculate_gain('leaky_relu', 0.01)")
        return math.sqrt(2 / (1 + slope**2))
    if not isinstance(nonlinearity, str) or nonlinearity not in _GAINS:
        raise BadValue(f"calculate_gain: {nonlinearity!r} is not known",
                       why=f"known are leaky_relu, {', '.join(_GAINS)}", fix="calculate_gain('relu')")
    return _GAINS[nonlinearity]


# --------------------------------------------------------------------------------------------------------- plain values

def _checked(tensor: Any, name: str) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise BadArgument(f"{name}: expects a tensor, got {kind_name(tensor)}", fix=f"{name}(layer.weight)")
    return tensor


@keeps_modes
def _write(tensor: Tensor, array: Array) -> Tensor:
    with no_grad():
        tensor.copy_(make(np.asarray(array)))
    return tensor


@keeps_modes
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with `val`.

    >>> import mutagrad as mg
    >>> mg.nn.init.constant_(mg.empty(2), 0.3)
    tensor([0.3000, 0.3000])
    """
    with no_grad():
        return _checked(tensor, "constant_").fill_(val)  # type: ignore[no-any-return]


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    >>> import mutagrad as mg
    >>> mg.nn.init.ones_(mg.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    >>> import mutagrad as mg
    >>> mg.nn.init.zeros_(mg.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """Fill with the identity matrix, as far as it goes.

    >>> import mutagrad as mg
    >>> mg.nn.init.eye_(mg.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if _checked(tensor, "eye_").ndim != 2:
        raise BadValue(f"eye_: needs a matrix, got shape {tuple(tensor.shape)}", fix="eye_(mutagrad.empty(3, 3))")
    return _write(tensor, np.eye(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill with the weights with which a convolution hands on as many channels as it can.

    >>> import mutagrad as mg
    >>> mg.nn.init.dirac_(mg.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if _checked(tensor, "dirac_").ndim not in (3, 4, 5):
        raise BadValue(f"dirac_: needs a convolution's weight of 3 to 5 dimensions, got shape {tuple(tensor.shape)}",
                       fix="dirac_(conv.weight)")
    if tensor.shape[0] % groups:
        raise BadValue(f"dirac_: {tensor.shape[0]} channels are not divisible by groups={groups}", fix="groups=1")
    filled = np.zeros(tuple(tensor.shape))
    each = tensor.shape[0] // groups
    middle = tuple(n // 2 for n in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(each, tensor.shape[1])):
            filled[group * each + channel, channel][middle] = 1
    return _write(tensor, filled)


# ------------------------------------------------------------------------------------------------------- random numbers

@keeps_modes
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers from a to b, all equally likely.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.uniform_(mg.empty(2, 2))
    tensor([[0.4963, 0.7682],
            [0.0885, 0.1320]])
    """
    with no_grad():
        return _checked(tensor, "uniform_").uniform_(a, b, generator=generator)  # type: ignore[no-any-return]


@keeps_modes
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.normal_(mg.empty(2, 2))
    tensor([[ 1.5410, -0.2934],
            [-2.1788,  0.5684]])
    """
    with no_grad():
        return _checked(tensor, "normal_").normal_(mean, std, generator=generator)  # type: ignore[no-any-return]


@no_grad()
def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                  generator: Generator | None = None) -> Tensor:
    """Fill with normally distributed numbers, drawn again until they are between a and b.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.trunc_normal_(mg.empty(2, 2))
    tensor([[ 1.5410, -0.2934],
            [ 0.4033,  0.5684]])
    """
    mean, std, a, b = map(number, (mean, std, a, b))
    if not a < b or not std > 0:
        raise BadValue(f"trunc_normal_: std={std}, a={a}, b={b}", why="std must be positive and a less than b",
                       fix="trunc_normal_(x, std=0.02, a=-2, b=2)")
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(f"trunc_normal_: mean={mean} is far outside [{a}, {b}], where few numbers can be told apart",
                      stacklevel=2)
    wide = _share_below((b - mean) / std) - _share_below((a - mean) / std) > 0.3
    draw = _normal_within if wide else _accepted
    return _write(tensor, draw(_checked(tensor, "trunc_normal_"), mean, std, a, b, generator))


def _share_below(x: float) -> float:
    """The share of standard normal numbers that are less than x."""
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def _normal_within(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Array:
    """Normal numbers. Those out of bounds are drawn again, all together with the others, as in PyTorch."""
    drawn = empty_like(tensor).normal_(mean, std, generator=generator)._array
    low, high = np.array([a, b]).astype(drawn.dtype)
    while (outside := (drawn < low) | (drawn > high)).any():
        drawn = np.where(outside, empty_like(tensor).normal_(mean, std, generator=generator)._array, drawn)
    return drawn


def _accepted(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Generator | None) -> Array:
    """Uniform numbers, drawn again until they are accepted, with chances in proportion to the normal density."""
    highest = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    found: Any = None
    pending: Any = None
    while pending is None or pending.any():
        drawn = empty_like(tensor).uniform_(a, b, generator=generator)
        log_density = drawn.sub(mean).div(std).pow(2).mul(-0.5).sub(highest)
        refused = (empty_like(tensor).uniform_(generator=generator).log() > log_density)._array
        found = drawn._array if pending is None else np.where(pending, drawn._array, found)
        pending = refused if pending is None else pending & refused
    return found


def _fans(tensor: Tensor, name: str) -> tuple[int, int]:
    """How many inputs each output has, and how many outputs each input."""
    if _checked(tensor, name).ndim < 2:
        raise BadValue(f"{name}: fan in and fan out can not be computed for shape {tuple(tensor.shape)}",
                       why="it takes at least 2 dimensions", fix="init.normal_ or init.zeros_ for a bias")
    positions = math.prod(tensor.shape[2:])
    return tensor.shape[1] * positions, tensor.shape[0] * positions


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    return _fans(tensor, "_calculate_fan_in_and_fan_out")


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """One of the two, by the name that kaiming_uniform_ takes for it."""
    if mode not in ("fan_in", "fan_out"):
        raise BadValue(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']", fix='mode="fan_in"')
    return _fans(tensor, "_calculate_correct_fan")[mode == "fan_out"]


def _xavier_std(tensor: Tensor, gain: float, name: str) -> float:
    return gain * math.sqrt(2 / max(sum(_fans(tensor, name)), 1))


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers that keep the variance of results and gradients, about (Glorot and Bengio, 2010).

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.xavier_uniform_(mg.empty(2, 2))
    tensor([[-0.0092,  0.6570],
            [-1.0080, -0.9013]])
    """
    bound = math.sqrt(3) * _xavier_std(tensor, gain, "xavier_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers that keep the variance of results and gradients, about (Glorot and Bengio, 2010).

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.xavier_normal_(mg.empty(2, 2))
    tensor([[ 1.0896, -0.2075],
            [-1.5406,  0.4019]])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain, "xavier_normal_"), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, name: str) -> float:
    if str(mode).lower() not in ("fan_in", "fan_out"):
        raise BadValue(f"{name}: mode {mode!r} is not 'fan_in' or 'fan_out'", fix="mode='fan_in'")
    fan_in, fan_out = _fans(tensor, name)
    fan = fan_in if mode.lower() == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(max(fan, 1))


def _is_empty(tensor: Tensor, name: str) -> bool:
    if 0 in _checked(tensor, name).shape:
        warnings.warn(f"{name}: a tensor of shape {tuple(tensor.shape)} has no elements: initializing zero-element "
                      "tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """Fill with uniform numbers that keep the variance through a nonlinearity (He and others, 2015).

    It is that of results for 'fan_in', that of gradients for 'fan_out'.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.kaiming_uniform_(mg.empty(2, 2))
    tensor([[-0.0130,  0.9291],
            [-1.4256, -1.2747]])
    """
    if _is_empty(tensor, "kaiming_uniform_"):
        return tensor
    bound = math.sqrt(3) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers that keep the variance through a nonlinearity (He and others, 2015).

    It is that of results for 'fan_in', that of gradients for 'fan_out'.

    >>> import mutagrad as mg
    >>> _ = mg.manual_seed(0)
    >>> mg.nn.init.kaiming_normal_(mg.empty(2, 2))
    tensor([[ 1.5410, -0.2934],
            [-2.1788,  0.5684]])
    """
    if _is_empty(tensor, "kaiming_normal_"):
        return tensor
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_"), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with orthogonal rows, or columns if these are fewer, of length `gain`; further dimensions are columns.

    >>> import mutagrad as mg
    >>> q = mg.nn.init.orthogonal_(mg.empty(3, 3))
    >>> mg.allclose(q @ q.T, mg.eye(3), atol=1e-5)
    True
    """
    if _checked(tensor, "orthogonal_").ndim < 2:
        raise BadValue(f"orthogonal_: needs at least 2 dimensions, got shape {tuple(tensor.shape)}",
                       fix="orthogonal_(layer.weight)")
    if 0 in tensor.shape:
        return tensor
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    drawn = widened(empty((rows, columns), dtype=tensor.dtype).normal_(generator=generator)._array)
    q, r = silently(np.linalg.qr, drawn if rows >= columns else drawn.T)
    q = q * np.sign(np.diagonal(r))  # otherwise not all orthogonal matrices are equally likely
    return _write(tensor, gain * (q if rows >= columns else q.T).reshape(tuple(tensor.shape)))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers, of which the share `sparsity` in each column is zero.

    >>> import mutagrad as mg
    >>> (mg.nn.init.sparse_(mg.empty(4, 2), sparsity=0.5) == 0).sum(0)
    tensor([2, 2])
    """
    if _checked(tensor, "sparse_").ndim != 2:
        raise BadValue(f"sparse_: needs a matrix, got shape {tuple(tensor.shape)}", fix="sparse_(layer.weight, 0.1)")
    rows, columns = tensor.shape
    tensor.normal_(0.0, std, generator=generator)
    for column in range(columns):
        tensor[randperm(rows)[:math.ceil(sparsity * rows)], column] = 0.0
    return tensor


# --------------------------------------------------------------------------------------------------------- former names

def _former(current: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function under the name without an underscore, which PyTorch has deprecated."""
    name = current.__name__

    def former(*arguments: Any, **settings: Any) -> Tensor:
        warnings.warn(f"nn.init.{name[:-1]} is deprecated: nn.init.{name} says that it writes", FutureWarning,
                      stacklevel=2)
        return current(*arguments, **settings)

    former.__name__, former.__doc__ = name[:-1], f"The former name of `{name}`."
    return former


uniform, normal, constant = _former(uniform_), _former(normal_), _former(constant_)
eye, dirac, orthogonal, sparse = _former(eye_), _former(dirac_), _former(orthogonal_), _former(sparse_)
xavier_uniform, xavier_normal = _former(xavier_uniform_), _former(xavier_normal_)
kaiming_uniform, kaiming_normal = _former(kaiming_uniform_), _former(kaiming_normal_)
