"""What has to be as it was of the tensors that a step uses, besides their values."""
from __future__ import annotations

from collections.abc import Collection
from operator import is_
from typing import Any

from ..arrays.xla.memory import XArray
from .flat import Comparison


class Unchanged:
    """Tensors and storages from outside, but for arguments (`given`) and gradients (`grads`), as they were.

    All is looked at in each call, nearly all of it by a function that is written for it: see `flat.py`.
    """

    def __init__(self, session: Any, given: Collection[int], grads: Collection[int]) -> None:
        made = [g._storage for t in session.grads.values() if (g := session.tensors[id(t)].grad) is not None]
        storages = [s for s in session.storages.values() if id(s.storage.root or s.storage) not in session.given
                    and not any(s.storage is other for other in made)]
        tensors = [s for s in session.tensors.values() if id(s.tensor) not in given and id(s.tensor) not in grads]
        leaves = [s.leaf for s in storages if s.leaf is not None]
        quiet = [leaf for leaf in leaves if leaf.hooks is None and leaf.after is None]
        self.hooked = [(leaf, hooks_of(leaf)) for leaf in leaves if leaf.hooks is not None or leaf.after is not None]
        # Those of which the step has seen the gradient: without one, and with one like this.
        asked = [(t, session.tensors[id(t)].grad) for t in session.grads.values() if id(t) not in given]
        self.like = [(t, like(grad)) for t, grad in asked if grad is not None]
        found = [(s.storage, name, value) for s in storages for name, value in (("leaf", s.leaf), ("writer", s.writer))]
        found += [(leaf, name, None) for leaf in quiet for name in ("hooks", "after")]
        found += [(s.tensor, name, v) for s in tensors for name, v in (("_array", s.array), ("_storage", s.storage))]
        found += [(t, "_grad", None) for t, grad in asked if grad is None]
        self.objects, self.names, self.values = ([one[k] for one in found] for k in range(3))

    def compare(self, comparison: Comparison) -> None:
        """Enter what a comparison is to look at."""
        comparison.attributes(self.objects, self.names, self.values)

    def check(self, same: bool) -> str | None:
        """Return what has changed; None if nothing has. `same`: what is compared has not."""
        if not same and not all(map(is_, map(getattr, self.objects, self.names), self.values)):
            changed = next(name for one, name, value in zip(self.objects, self.names, self.values)
                           if getattr(one, name) is not value)
            return _WHAT.get(changed, _HISTORY)
        if self.hooked and not all(hooks_of(leaf) == hooks for leaf, hooks in self.hooked):
            return _HISTORY
        if self.like and not all(like(t._grad) == before for t, before in self.like):
            return _WHAT["_grad"]
        return None


_HISTORY = "a tensor that the step uses requires a gradient, or does no longer; or it was computed anew"
_MEMORY = "a tensor that the step uses has another memory (x.data = ..., set_)"
_WHAT = {"_array": _MEMORY, "_storage": _MEMORY,
         "_grad": "a tensor has a gradient now, or has none any more, or another one"}


def like(grad: Any) -> Any:
    """Return what of a gradient a program depends on."""
    if grad is None:
        return None
    array, storage = grad._array, grad._storage
    return (array.shape, array.strides, array.dtype, grad._offset, storage.writer is None,
            getattr(array, "level", None), (storage.root or storage).buffer.shape, spread_of(array))


def spread_of(array: Any) -> Any:
    """How an array is spread over a mesh; None where it is not."""
    return array.cell.settled().sharding if type(array) is XArray and array.cell.place.over_mesh else None


def hooks_of(leaf: Any) -> Any:
    return tuple((leaf.hooks or {}).values()), tuple((leaf.after or {}).values())
