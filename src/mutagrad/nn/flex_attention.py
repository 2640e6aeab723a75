"""Attention with scores and masks that are given as functions of where the query and the key are."""
from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import BadValue, NotSupported, ShapeError
from ..ops.create.create import arange, ones, zeros
from ..tensors.tensor import Tensor

if TYPE_CHECKING:
    from .common_types import DeviceLike

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask", "flex_attention",
    "noop_mask", "or_masks"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What is asked for besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for: the logarithm of the sum of the exponentials of a row's scores, and the largest of them."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class BlockMask:
    """A mask given as a function, for so many samples, heads, queries and keys. It is made by create_block_mask."""

    def __init__(self, mask_mod: Callable[..., Any], shape: tuple[int, int, int, int],
                 block_size: tuple[int, int]) -> None:
        if not callable(mask_mod):
            raise NotSupported("BlockMask: not supported for blocks that are given",
                               why="masks are computed for each element", fix="create_block_mask(mask_mod, ...)")
        self.mask_mod, self.shape, self.BLOCK_SIZE = mask_mod, shape, block_size
        self.seq_lengths = shape[2:]

    def to(self, device: DeviceLike) -> BlockMask:
        """Return itself: there is one device."""
        return self


def _places(*sizes: int, device: DeviceLike | None) -> tuple[Tensor, ...]:
    """The four indices of every score, in shapes that broadcast to that of the scores."""
    return tuple(arange(size, device=device).reshape([-1 if i == dim else 1 for i in range(4)])
                 for dim, size in enumerate(sizes))


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Any:
    """Leave everything: the mask that hides nothing."""
    return ones((), dtype=bool)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the mask that leaves what all of these leave."""
    def joined(*places: Tensor) -> Any:
        found = noop_mask(*places)
        for mask in mask_mods:
            found = found & mask(*places)
        return found

    return joined


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the mask that leaves what any of these leaves."""
    def joined(*places: Tensor) -> Any:
        found = ~noop_mask(*places)
        for mask in mask_mods:
            found = found | mask(*places)
        return found

    return joined


def create_mask(mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                device: DeviceLike = "cpu") -> Any:
    """Return the mask of a function of four indices, or what one of a score and four indices makes of zero scores."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    scores = (zeros(shape, device=device),) if len(signature(mod_fn).parameters) == 5 else ()
    return mod_fn(*scores, *_places(*shape, device=device)).expand(shape).clone()


def create_block_mask(mask_mod: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
                      device: DeviceLike = "cpu", BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
                      _compile: bool = False) -> BlockMask:
    """Return the mask of a function (batch, head, query, key), True where the key is seen.

    B or H is None where it is the same for all.
    """
    zeros(0, device=device)  # refuses a device that there is not
    block_size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block_size)


def _masked(scores: Tensor, mask: BlockMask) -> Any:
    expected = scores.shape
    broadcasts = all(given in (1, size) for given, size in zip(mask.shape[:2], expected[:2], strict=True))
    if not broadcasts or mask.shape[2:] != tuple(expected[2:]):
        raise ShapeError(f"flex_attention: the block mask is for {mask.shape}, and the scores are {tuple(expected)}",
                         why="batch, heads, queries, keys",
                         fix=f"create_block_mask(mask_mod, None, None, {expected[2]}, {expected[3]})")
    return scores.masked_fill(~mask.mask_mod(*_places(*expected, device=scores.device)), -math.inf)


def _grouped(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> tuple[Tensor, Tensor]:
    """The keys and values, repeated where several heads of the query share one."""
    heads, shared = query.shape[1], key.shape[1]
    if heads == shared:
        return key, value
    if not enable_gqa or heads % shared:
        raise BadValue(f"flex_attention: {heads} heads of the query and {shared} of the key",
                       fix="enable_gqa=True, and a multiple of the key's heads")
    return key.repeat_interleave(heads // shared, 1), value.repeat_interleave(heads // shared, 1)


def flex_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Callable[..., Any] | None = None,
                   block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: dict[str, Any] | None = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """Attend with scores changed by score_mod(score, batch, head, query, key), where a mask says which are seen.

    The functions are called once, with all scores and with indices that broadcast to them. A query that sees nothing
    gets zeros. kernel_options are about GPUs, and change nothing here.
    """
    key, value = _grouped(query, key, value, enable_gqa)
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = score_mod(scores, *_places(*scores.shape, device=scores.device))
    if block_mask is not None:
        scores = _masked(scores, block_mask)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    out = scores.softmax(-1).masked_fill(blind, 0.0).to(value.dtype) @ value
    if not return_lse and return_aux is None:
        return out
    asked = return_aux or AuxRequest(lse=True)
    lse = scores.logsumexp(-1)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse if asked.lse else None, scores.amax(-1) if asked.max_scores else None)
