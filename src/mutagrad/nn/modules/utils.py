"""`nn.modules.utils`: one number for every dimension, or one for each; names without their beginning."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple", "consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """A function that repeats a number n times, and leaves several as they are."""
    return lambda x: tuple(x) if isinstance(x, Iterable) else (x,) * n


_single, _pair, _triple, _quadruple = _ntuple(1), _ntuple(2), _ntuple(3), _ntuple(4)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix, such as "module.", off the names in a state_dict, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", {})
    for key in [key for key in metadata if f"{key}.".startswith(prefix)]:
        metadata[key[len(prefix):]] = metadata.pop(key)
