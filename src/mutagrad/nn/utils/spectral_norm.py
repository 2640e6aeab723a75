"""Weights divided by their largest singular value, which a power iteration follows."""
from __future__ import annotations

from typing import Any, TypeVar

from ...autograd import no_grad
from ...base.errors import BadValue
from ...base.modes import keeps_modes
from ...ops.linalg.norms import pinv
from ...tensors.tensor import Tensor
from .. import functional as F
from ..convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from ..parameter import Parameter
from .weight_norm import check_plain, find_hook

__all__ = [
    "SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm",
    "spectral_norm"]

M = TypeVar("M", bound=Module)


def output_dim(module: Module, dim: int | None) -> int:
    """Return the dimension of a weight that numbers the outputs."""
    if dim is not None:
        return dim
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def as_matrix(weight: Tensor, dim: int) -> Any:
    """Return a weight as a matrix with one row for each output."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


def unit_vector(weight: Tensor, size: int, eps: float) -> Any:
    return F.normalize(weight.detach().new_empty(size).normal_(0, 1), dim=0, eps=eps)


class SpectralNorm:
    """The hook that computes the weight."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise BadValue(f"spectral_norm: n_power_iterations must be above 0, got {n_power_iterations}",
                           fix="n_power_iterations=1")
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    @keeps_modes
    def compute_weight(self, module: Module, do_power_iteration: bool) -> Any:
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
        return weight / u.clone().dot(matrix.mv(v.clone()))  # the next call changes them, before backward perhaps

    @staticmethod
    def solved(matrix: Tensor, u: Tensor, sigma: Tensor) -> Any:
        """Return the v that goes with u, such that u · matrix v is sigma."""
        v = pinv(matrix.t() @ matrix) @ (matrix.t() @ u)
        return v * (sigma / u.dot(matrix.mv(v)))

    def __call__(self, module: Module, inputs: object) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Notes in the metadata of a state_dict which form it has."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
        local_metadata.setdefault("spectral_norm", {})[self.fn.name + ".version"] = SpectralNorm._version


class SpectralNormLoadStateDictPreHook:
    """Takes states of the first form, in which the divided weight stood for one of the two vectors."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    @keeps_modes
    def __call__(self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], strict: bool,
                 missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str]) -> None:
        key = prefix + self.fn.name
        if local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version") is not None or key not in state_dict:
            return
        if key + "_orig" not in state_dict or key + "_u" not in state_dict:
            return  # the usual check names what is missing
        original, divided = state_dict[key + "_orig"], state_dict.pop(key)
        with no_grad():
            matrix, ratio = as_matrix(original, self.fn.dim), (original / divided).mean()
            state_dict[key + "_v"] = self.fn.solved(matrix, state_dict[key + "_u"], ratio)


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> M:
    """Replaces a parameter by `name_orig`, and computes it before each forward.

    `parametrizations.spectral_norm` is the newer form.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.spectral_norm(mg.nn.Linear(3, 2))
    >>> layer(mg.zeros(1, 3)).shape
    mutagrad.Size([1, 2])
    """
    check_plain(module, SpectralNorm, name, "spectral_norm")
    hook = SpectralNorm(name, n_power_iterations, output_dim(module, dim), eps)
    weight = module._parameters[name]
    if weight is None:
        raise BadValue(f"spectral_norm: parameter {name!r} is None", fix="a module made with it")
    height, width = as_matrix(weight, hook.dim).shape
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", unit_vector(weight, height, eps))
    module.register_buffer(name + "_v", unit_vector(weight, width, eps))
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


@keeps_modes
def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Makes the weight a parameter again, divided as it was last.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.spectral_norm(mg.nn.Linear(3, 2))
    >>> [name for name, p in mg.nn.utils.remove_spectral_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    found = find_hook(module, SpectralNorm, name)
    if found is None:
        raise BadValue(f"spectral_norm of {name!r} not found in {module}", fix=f"spectral_norm(module, {name!r})")
    number, hook = found
    with no_grad():
        weight = hook.compute_weight(module, False)
    for suffix in ("", "_u", "_v", "_orig"):
        delattr(module, name + suffix)
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[number]
    for table in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number in [number for number, other in table.items() if getattr(other, "fn", None) is hook]:
            del table[number]
    return module
