"""Modules as functions of their parameters, as the package functorch had them; `functional_call` is today's way."""
from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from ..base.errors import BadValue
from ..nn.module import Module
from ..nn.stateless import functional_call
from ..tensors.tensor import Tensor


class FunctionalModule(Module):
    """A module that is called with its parameters, in the order in which `make_functional` gave them.

    >>> import mutagrad as mg
    >>> from mutagrad.func import make_functional
    >>> function, parameters = make_functional(mg.nn.Linear(2, 1))
    >>> function([mg.ones(1, 2), mg.zeros(1)], mg.tensor([[1., 2.]]))
    tensor([[3.]])
    """

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.stateless_model, dict(zip(self.param_names, params)), args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers.

    >>> import mutagrad as mg
    >>> f, params, buffers = mg.func.make_functional_with_buffers(mg.nn.BatchNorm1d(2))
    >>> type(f).__name__
    'FunctionalModuleWithBuffers'
    """

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params: Iterable[Tensor], buffers: Iterable[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip(self.param_names, params)) | dict(zip(self.buffer_names, buffers))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a copy of a module as a function, and its parameters; those of a module with buffers are refused.

    >>> import mutagrad as mg
    >>> f, params = mg.func.make_functional(mg.nn.Linear(2, 1))
    >>> f(params, mg.ones(3, 2)).shape
    mutagrad.Size([3, 1])
    """
    if next(model.buffers(), None) is not None:
        raise BadValue("make_functional: the model has buffers", why="they would be left out",
                       fix="make_functional_with_buffers(model)")
    function, parameters, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(function.stateless_model, function.param_names), parameters


def make_functional_with_buffers(
        model: Module, disable_autograd_tracking: bool = False,
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a copy of a module as a function, its parameters and its buffers.

    >>> import mutagrad as mg
    >>> f, params, buffers = mg.func.make_functional_with_buffers(mg.nn.BatchNorm1d(2))
    >>> f(params, buffers, mg.randn(3, 2)).shape
    mutagrad.Size([3, 2])
    """
    copied = deepcopy(model)
    parameters, buffers = dict(copied.named_parameters()), dict(copied.named_buffers())
    if disable_autograd_tracking:
        for parameter in parameters.values():
            parameter.requires_grad_(False)
    function = FunctionalModuleWithBuffers(deepcopy(copied), tuple(parameters), tuple(buffers))
    return function, tuple(parameters.values()), tuple(buffers.values())
