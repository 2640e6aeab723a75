"""Weights with a norm, a largest singular value or columns as one wants them, as parametrizations."""
from __future__ import annotations

from typing import Any, TypeVar

from ...arrays import np
from ...autograd import no_grad
from ...base.errors import BadIndex, BadValue, NotSupported
from ...base.modes import keeps_modes
from ...ops.create.create import eye, zeros
from ...ops.linalg.qr import geqrf, householder_product
from ...ops.linalg.solving import matrix_exp, solve
from ...ops.random.draws import randn
from ...ops.shape.shape import cat
from ...tensors.tensor import Tensor
from .. import functional as F
from ..module import Module
from . import parametrize
from .spectral_norm import as_matrix, output_dim, unit_vector
from .weight_norm import norm_except_dim, scaled

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise BadValue(f"{type(module).__name__} has no parameter or buffer {name!r}",
                       fix="a name from dict(module.named_parameters())")
    return weight


# ---------------------------------------------------------------------------------------------------------- weight norm

class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Any:
        return scaled(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> Any:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Represent a weight by lengths (`original0`) and directions (`original1`), which are trained apart.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.weight_norm(mg.nn.Linear(3, 2))
    >>> [name for name, p in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """States saved with the older form have other names."""
        if f"{prefix}{name}_g" in state_dict and f"{prefix}{name}_v" in state_dict:
            for new, old in ((0, "g"), (1, "v")):
                state_dict[f"{prefix}parametrizations.{name}.original{new}"] = state_dict.pop(f"{prefix}{name}_{old}")

    module._register_load_state_dict_pre_hook(rename)
    return module


# -------------------------------------------------------------------------------------------------------- spectral norm

class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise BadIndex(f"spectral_norm: dim={dim} of a weight with {weight.ndim} dimensions", fix="dim=0")
        if n_power_iterations <= 0:
            raise BadValue(f"spectral_norm: n_power_iterations must be above 0, got {n_power_iterations}",
                           fix="n_power_iterations=1")
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            self.register_buffer("_u", unit_vector(weight, matrix.shape[0], eps))
            self.register_buffer("_v", unit_vector(weight, matrix.shape[1], eps))
            self._iterate(matrix, 15)

    @keeps_modes
    def _iterate(self, matrix: Tensor, times: int) -> None:
        with no_grad():
            for _ in range(times):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call changes them, before backward perhaps
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
                  dim: int | None = None) -> M:
    """Divide a weight by its largest singular value, which a power iteration follows while training.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.spectral_norm(mg.nn.Linear(3, 2))
    >>> layer(mg.zeros(1, 3)).shape
    mutagrad.Size([1, 2])
    """
    weight = _weight(module, name)
    parametrization = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    parametrize.register_parametrization(module, name, parametrization)
    return module


# ----------------------------------------------------------------------------------------------------------- orthogonal

def _is_orthogonal(q: Tensor) -> bool:
    error = (q.mH @ q - eye(q.shape[-1], dtype=q.dtype, device=q.device)).detach().abs()
    return bool((error <= 10 * q.shape[-2] * np.finfo(q._array.dtype).eps).all())


def _made_orthogonal(a: Tensor) -> Any:
    """The first factor of a QR decomposition, such that the diagonal of the second is positive."""
    reflections, tau = geqrf(a)
    return householder_product(reflections, tau) * reflections.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Matrices with orthonormal columns (rows, where wider than high), as functions of any matrix of that shape."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise BadValue("orthogonal: the householder parametrization does not support complex tensors",
                           fix="orthogonal_map='matrix_exp'")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Any:
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        q = self._reflected(x) if self.orthogonal_map == "householder" else self._rotated(x)
        q = self.base @ q if hasattr(self, "base") else q
        return q.mT if wide else q

    def _rotated(self, x: Tensor) -> Any:
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = cat([x, zeros((*x.shape[:-2], n, n - k), dtype=x.dtype, device=x.device)], -1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = matrix_exp(skew)
        else:
            one = eye(n, dtype=x.dtype, device=x.device)
            q = solve(one - skew * 0.5, one + skew * 0.5)
        return q[..., :k]

    def _reflected(self, x: Tensor) -> Any:
        a = x.tril(-1)
        q = householder_product(a, 2.0 / (1.0 + (a * a).sum(-2)))
        signs = x.detach().diagonal(dim1=-2, dim2=-1)  # the diagonal holds signs, which are not trained
        return q * signs.int().unsqueeze(-2)

    @keeps_modes
    def right_inverse(self, q: Tensor) -> Any:
        if q.shape != self.shape:
            raise BadValue(f"orthogonal: expected a matrix or batch of matrices of shape {tuple(self.shape)}, got "
                           f"{tuple(q.shape)}", fix=f"a matrix of shape {tuple(self.shape)}")
        wide = q.shape[-2] < q.shape[-1]
        with no_grad():
            tall = q.mT if wide else q
            if hasattr(self, "base"):
                self.base = self._base(tall)
                start = zeros(tuple(q.shape), dtype=q.dtype, device=q.device)
                start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
                return start
            if self.orthogonal_map != "householder":
                raise NotSupported("orthogonal: it is not possible to assign to the matrix exponential or the Cayley "
                                   "parametrization with use_trivialization=False", fix="use_trivialization=True")
            return self._signed(tall).mT if wide else self._signed(tall)

    def _base(self, q: Tensor) -> Any:
        n, k = q.shape[-2:]
        if n == k:
            return q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
        return _made_orthogonal(cat([q, randn((*q.shape[:-2], n, n - k), dtype=q.dtype)], -1))

    def _signed(self, q: Tensor) -> Any:
        """The reflections below the diagonal, and on it the signs that give back q."""
        a, tau = geqrf(q)
        signs = a.diagonal(dim1=-2, dim2=-1)
        signs.copy_(signs.sign())
        signs[tau == 0.0] *= -1
        return a


def orthogonal(module: M, name: str = "weight", orthogonal_map: str | None = None, *,
               use_trivialization: bool = True) -> M:
    """Keep a weight's columns (or rows, where it is wider than high) orthonormal while it is trained.

    >>> import mutagrad as mg
    >>> layer = mg.nn.utils.parametrizations.orthogonal(mg.nn.Linear(3, 3))
    >>> mg.allclose(layer.weight @ layer.weight.T, mg.eye(3), atol=1e-5)
    True
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise BadValue(f"orthogonal: Expected a matrix or batch of matrices, got a tensor of {weight.ndim} dimensions",
                       fix="a weight of at least 2 dimensions")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise BadValue("orthogonal: orthogonal_map has to be one of 'matrix_exp', 'cayley' and 'householder', not "
                       f"{orthogonal_map!r}", fix="orthogonal_map=None")
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module
