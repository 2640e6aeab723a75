"""Parameters that are given either as probabilities or as logits.

The other form is computed when it is first asked for, and kept: with its history, even where a draw asked for it.
"""
from __future__ import annotations

from functools import cached_property
from typing import Any

from ..autograd import enable_grad
from ..base.errors import BadValue
from ..core.dtypes import finfo
from ..ops.math.elementwise import sigmoid
from ..ops.reduce.softmax import logsumexp, softmax
from ..tensors.tensor import Tensor

__all__ = ["BinaryLogits", "Logits", "one_of"]


def one_of(owner: Any, **named: Any) -> tuple[str, Any]:
    """Return the name and the value of the one parameter that is given."""
    given = [(name, value) for name, value in named.items() if value is not None]
    if len(given) != 1:
        raise BadValue(f"{type(owner).__name__}: give one of {' and '.join(named)}, "
                       f"but not {'both' if given else 'neither'}")
    return given[0]


def _inside(probs: Tensor) -> Tensor:
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def _known(owner: Any) -> Tensor:
    """Whichever is known already."""
    return owner.__dict__["probs" if "probs" in owner.__dict__ else "logits"]  # type: ignore[no-any-return]


def _new_like_param(owner: Any, *data: Any, **settings: Any) -> Tensor:
    return owner._param.new(*data, **settings)  # type: ignore[no-any-return]


class BinaryLogits:
    """Each element is the chance of a one."""

    @cached_property
    @enable_grad()
    def logits(self) -> Tensor:
        inside = _inside(self.probs)
        return inside.log() - (-inside).log1p()

    @cached_property
    @enable_grad()
    def probs(self) -> Tensor:
        return sigmoid(self.logits)

    _param = cached_property(_known)
    _new = _new_like_param

    def _set_odds(self, probs: Tensor | float | None, logits: Tensor | float | None) -> str:
        """Takes the one that is given, as it is; its name."""
        name, value = one_of(self, probs=probs, logits=logits)
        self.__dict__[name] = value
        return name


class Logits:
    """Each row holds the chances of its positions; what is given is normalised."""

    @cached_property
    @enable_grad()
    def logits(self) -> Tensor:
        return _inside(self.probs).log()

    @cached_property
    @enable_grad()
    def probs(self) -> Tensor:
        return softmax(self.logits, -1)

    _param = cached_property(_known)
    _new = _new_like_param

    def _set_odds(self, probs: Tensor | None, logits: Tensor | None) -> Tensor:
        name, value = one_of(self, probs=probs, logits=logits)
        if not isinstance(value, Tensor) or value.ndim < 1:
            raise BadValue(f"{type(self).__name__}: {name} must be a tensor of at least one dimension",
                           fix=f"{name}=mutagrad.tensor([...])")
        if name == "probs":
            normalised = value / value.sum(-1, keepdim=True)
        else:
            normalised = value - logsumexp(value, -1, keepdim=True)
        self.__dict__[name] = normalised
        return normalised
