"""Weights as a length and a direction, recomputed before each forward."""
from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ...base.errors import BadValue
from ...ops.linalg.norms import vector_norm
from ...tensors.tensor import Tensor
from ..module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def norm_except_dim(v: Tensor, dim: int) -> Any:
    """Return the norm over all dimensions but one; over all of them for -1."""
    if dim == -1:
        return vector_norm(v)
    return vector_norm(v, 2, tuple(d for d in range(v.ndim) if d != dim % v.ndim), True) if v.ndim > 1 else v.abs()


def scaled(v: Tensor, g: Tensor, dim: int) -> Any:
    """Return the direction of v with the lengths g."""
    return v * (g / norm_except_dim(v, dim))


class WeightNorm:
    """The hook that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        return scaled(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module))


def find_hook(module: Module, kind: type[Any], name: str) -> Any:
    """Return the number and the hook of a kind that computes the parameter of this name, or None."""
    hooks = module._forward_pre_hooks.items()
    return next(((number, hook) for number, hook in hooks if isinstance(hook, kind) and hook.name == name), None)


def check_plain(module: Module, kind: type, name: str, what: str) -> None:
    """Raise unless a parameter has a shape and is not computed in this way already."""
    if find_hook(module, kind, name) is not None:
        raise BadValue(f"{what}: cannot register two {what} hooks on the same parameter {name!r}",
                       fix=f"remove_{what}(module, {name!r})")
    if is_lazy(getattr(module, name)):
        raise BadValue(f"{what}: the module can't have uninitialized parameters.", fix="call it once first")


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Replaces a parameter by lengths `name_g` and directions `name_v`; `parametrizations.weight_norm` is newer."""
    warnings.warn("nn.utils.weight_norm is deprecated in favor of nn.utils.parametrizations.weight_norm",
                  FutureWarning, stacklevel=2)
    check_plain(module, WeightNorm, name, "weight_norm")
    hook, weight = WeightNorm(name, dim), getattr(module, name)
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight.detach(), hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, None)
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Makes the weight that was computed last a parameter again."""
    found = find_hook(module, WeightNorm, name)
    if found is None:
        raise BadValue(f"weight_norm of {name!r} not found in {module}", fix=f"weight_norm(module, {name!r})")
    number, hook = found
    weight = hook.compute_weight(module)
    for attribute in (name, name + "_g", name + "_v"):
        delattr(module, attribute)
    setattr(module, name, Parameter(weight.detach()))
    del module._forward_pre_hooks[number]
    return module
