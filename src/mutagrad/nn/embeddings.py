"""Tables of vectors, looked up by number."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd import no_grad
from ..base.errors import BadArgument, BadSetting, Mismatch
from ..base.modes import keeps_modes
from ..base.operands import kind_name
from ..core.dtypes import dtype
from ..tensors.tensor import Tensor
from . import functional as F, init
from .common import check_count, make_parameter
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """A matrix of num_embeddings rows."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _set_up(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None, given: Tensor | None,
                freeze: bool, device: DeviceLike | None, dtype: dtype | None) -> None:
        self.num_embeddings = check_count(self, "num_embeddings", num_embeddings)
        self.embedding_dim = check_count(self, "embedding_dim", embedding_dim)
        if padding_idx is not None and not -self.num_embeddings <= padding_idx < self.num_embeddings:
            raise BadSetting(f"{type(self).__name__}: padding_idx must be within num_embeddings, "
                             f"{self.num_embeddings}; got {padding_idx}", fix="padding_idx=0")
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % self.num_embeddings
        shape = self.num_embeddings, self.embedding_dim
        if given is not None and tuple(given.shape) != shape:
            raise Mismatch(f"{type(self).__name__}: _weight has shape {tuple(given.shape)}, not {shape}",
                           fix="leave the weight out")
        self.weight = make_parameter(shape, device, dtype) if given is None else Parameter(given, not freeze)
        self.weight.requires_grad_(not freeze)
        if given is None:
            self.reset_parameters()

    @keeps_modes
    def reset_parameters(self) -> None:
        """Draws new values, with a row of zeros for the padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _check_pretrained(embeddings: Any, layer: str) -> None:
    if not isinstance(embeddings, Tensor):
        raise BadArgument(f"{layer}.from_pretrained: expects a tensor, got {kind_name(embeddings)}",
                          fix="mutagrad.as_tensor(embeddings)")
    if embeddings.ndim != 2:
        raise BadSetting(f"{layer}.from_pretrained: expects a matrix, a row for each embedding, got shape "
                         f"{tuple(embeddings.shape)}")


class Embedding(_Table):
    """Vectors by number.

    >>> import mutagrad as mg
    >>> words = mg.nn.Embedding(10, 3, padding_idx=0)
    >>> words(mg.tensor([[1, 2], [4, 0]])).shape
    mutagrad.Size([2, 2, 3])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                        sparse: bool = False) -> Embedding:
        """Make one with this matrix, which is shared; not trained unless freeze=False.

        >>> import mutagrad as mg
        >>> layer = mg.nn.Embedding.from_pretrained(mg.tensor([[1., 2.], [3., 4.]]))
        >>> layer(mg.tensor([1]))
        tensor([[3., 4.]])
        """
        _check_pretrained(embeddings, cls.__name__)
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse,
                   _weight=embeddings, _freeze=freeze)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        usual_values = (("padding_idx", None), ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False),
                        ("sparse", False))
        for name, usual in usual_values:
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class EmbeddingBag(_Table):
    """Sums, means or maxima of the vectors of each bag of numbers.

    >>> import mutagrad as mg
    >>> mg.nn.EmbeddingBag(10, 4)(mg.tensor([[1, 2], [3, 4]])).shape
    mutagrad.Size([2, 4])
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                 _weight: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
                 device: DeviceLike | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> EmbeddingBag:
        """Make one with this matrix, which is shared; not trained unless freeze=False.

        >>> import mutagrad as mg
        >>> layer = mg.nn.EmbeddingBag.from_pretrained(mg.tensor([[1., 2.], [3., 4.]]))
        >>> layer(mg.tensor([[0, 1]]))
        tensor([[2., 3.]])
        """
        _check_pretrained(embeddings, cls.__name__)
        rows, columns = embeddings.shape
        made = cls(rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings,
                   include_last_offset, padding_idx)
        made.weight.requires_grad_(not freeze)
        return made

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        usual_values = (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False), ("mode", ""),
                        ("padding_idx", None))
        for name, usual in usual_values:
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)!r}"
        return text
