"""Modules of ours as modules of PyTorch's, with parameters and buffers over the same memory.

To call one is to call ours as a function of the tensors that PyTorch's module has at that moment. So optimizers of
PyTorch's train it, and `torch.func.functional_call`, parametrizations and checkpoints work as they do with others.
"""
from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import torch

from ..autograd.modes import no_grad
from ..base.errors import NotSupported
from ..nn.module import Module
from ..nn.parameter import UninitializedBuffer, UninitializedParameter
from ..tensors.tensor import Tensor
from .torch_function import run
from .torch_memory import ours, theirs


def mirrored(module: Module) -> Any:
    """Return a module of PyTorch's that computes what one of ours does."""
    return _Mirror(module, {})


class _Mirror(torch.nn.Module):  # type: ignore[misc]
    """A module of PyTorch's over one of ours, `inner`; its children are mirrors of the children of that."""

    def __init__(self, inner: Module, known: dict[int, Any]) -> None:
        super().__init__()
        self.inner, self.training = inner, inner.training
        for name, parameter in inner._parameters.items():
            self.register_parameter(name, _shared(parameter, known, True))
        for name, buffer in inner._buffers.items():
            self.register_buffer(name, _shared(buffer, known, False), name not in inner._non_persistent_buffers_set)
        for name, child in inner._modules.items():
            if child is not None and id(child) not in known:
                known[id(child)] = _Mirror(child, known)
            self.add_module(name, None if child is None else known[id(child)])

    def forward(self, *arguments: Any, **settings: Any) -> Any:
        tensors = {(path, table, name): value for path, mirror, table, name in _slots(self)
                   if (value := mirror.__dict__[table].get(name)) is not None}
        return run(self._call, (tensors, arguments, settings), {})

    def _call(self, tensors: dict[Any, Tensor], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Call our module with these tensors as its parameters and buffers."""
        owners = {path: mirror.inner for path, mirror in self.named_modules(remove_duplicate=False)}
        before = {(path, table, name): owners[path].__dict__[table][name] for path, table, name in tensors}
        try:
            for (path, table, name), tensor in tensors.items():
                owners[path].__dict__[table][name] = tensor
            result = self.inner(*arguments, **settings)
            for (path, table, name), tensor in tensors.items():
                _take_over(tensor, owners[path].__dict__[table].get(name), name)
            return result
        finally:
            for (path, table, name), value in before.items():
                owners[path].__dict__[table][name] = value

    def train(self, mode: bool = True) -> Any:
        for mirror in self.modules():
            if isinstance(mirror, _Mirror):
                mirror.inner.training = mode
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """PyTorch's way of moving and casting; ours follows, so that memory is shared again."""
        super()._apply(fn, recurse)
        self._share()
        return self

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._share()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = self.__class__.__new__(self.__class__)
        memo[id(self)] = made
        made.__dict__.update({name: deepcopy(value, memo) for name, value in self.__dict__.items()})
        made._share()
        return made

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._share()

    def _share(self) -> None:
        """Put our parameters and buffers into the memory of PyTorch's."""
        for table in ("_parameters", "_buffers"):
            for name, value in self.__dict__[table].items():
                if value is not None and value.device.type == "cpu":
                    self.inner.__dict__[table][name].data = ours(value)[0]

    def extra_repr(self) -> str:
        return self.inner.extra_repr()

    def _get_name(self) -> str:
        return self.inner._get_name()


def _slots(module: Any) -> Iterator[tuple[str, Any, str, str]]:
    for path, mirror in module.named_modules():
        for table in ("_parameters", "_buffers"):
            for name in mirror.__dict__[table]:
                yield path, mirror, table, name


def _shared(tensor: Any, known: dict[int, Any], is_parameter: bool) -> Any:
    """Return a tensor of PyTorch's over the memory of ours; the same for one that several modules have."""
    if tensor is None:
        return None
    if isinstance(tensor, (UninitializedParameter, UninitializedBuffer)):
        raise NotSupported("interop.torch: this module has no parameters yet", why="the first call makes them",
                           fix="call it once before")
    if id(tensor) not in known:
        made = theirs(tensor.detach())
        known[id(tensor)] = torch.nn.Parameter(made, tensor.requires_grad) if is_parameter else made
    return known[id(tensor)]


def _take_over(tensor: Tensor, value: Any, name: str) -> None:
    """Keep what the module has put in the place of one of its buffers: PyTorch's has that value, too."""
    if value is tensor:
        return
    if not isinstance(value, Tensor) or value.shape != tensor.shape or value.dtype is not tensor.dtype:
        raise NotSupported(f"interop.torch: the module has replaced {name} by another shape or type",
                           why="PyTorch's module shares its memory", fix=f"self.{name}.copy_(...)")
    with no_grad():
        tensor.copy_(value)
